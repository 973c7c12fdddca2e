//! Runs small Java programs on Kafka's own classes: they know what no definition says.

use crate::jars;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// What Kafka's classes need beside themselves.
const SLF4J: (&str, &str) = ("org.slf4j:slf4j-api", "1.7.36");

/// What those of them need beside that which turn messages to JSON.
pub const JACKSON: [(&str, &str); 3] = [
    ("com.fasterxml.jackson.core:jackson-annotations", "2.21"),
    ("com.fasterxml.jackson.core:jackson-core", "2.21.2"),
    ("com.fasterxml.jackson.core:jackson-databind", "2.21.2"),
];

/// Compiles and runs a program of one file on the classes of a Kafka release and what these need, `more`
/// among it, fetched where they are not there yet, and returns what it printed.
///
/// # Errors
/// Where the classes or Java cannot be had, or the program fails; with what it said then.
pub fn run(
    source: &Path,
    release: &str,
    more: &[(&str, &str)],
    arguments: &[&str],
) -> Result<String> {
    let needed = [("kafka-clients", release), SLF4J];
    let needed = needed.iter().chain(more);
    let jars = needed.map(|(artifact, version)| jars::fetch(artifact, version));
    let jars = jars.collect::<Result<Vec<_>>>()?;
    let output = Command::new("java")
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"])
        .arg(std::env::join_paths(jars)?)
        .arg(source)
        .args(arguments)
        .output()
        .context("cannot run Java")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let program = source.display();
    ensure!(output.status.success(), "{program} failed:\n{said}");
    Ok(String::from_utf8(output.stdout)?)
}
