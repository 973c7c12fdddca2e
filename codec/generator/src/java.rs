//! Runs small Java programs on Kafka's own classes: they know what no definition says.

use crate::jars;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// What Kafka's classes need beside themselves.
const SLF4J: (&str, &str) = ("org.slf4j:slf4j-api", "1.7.36");

/// Compiles and runs a program of one file on the classes of a Kafka release, fetched where they are
/// not there yet, and returns what it printed.
///
/// # Errors
/// Where the classes or Java cannot be had, or the program fails; with what it said then.
pub fn run(source: &Path, release: &str, arguments: &[&str]) -> Result<String> {
    let kafka_clients = jars::fetch("kafka-clients", release)?;
    let slf4j = jars::fetch(SLF4J.0, SLF4J.1)?;
    let output = Command::new("java")
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"])
        .arg(std::env::join_paths([kafka_clients, slf4j])?)
        .arg(source)
        .args(arguments)
        .output()
        .context("cannot run Java")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let program = source.display();
    ensure!(output.status.success(), "{program} failed:\n{said}");
    Ok(String::from_utf8(output.stdout)?)
}
