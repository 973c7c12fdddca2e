//! Kafka's own tools, and small Java programs of ours, run by main class on the jars of a version.

use crate::kafka::Version;
use crate::place;
use crate::process::Process;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a tool may take: a JVM starts in a second or two, in ten on a machine under load.
const PATIENCE: Duration = Duration::from_secs(180);

/// A `java` command on the jars of `version`: small and quick to start.
pub fn command(version: Version) -> Command {
    let quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
    on_jars(version, &quick)
}

/// The same with more memory and all of the compiler: slow to start, and then as fast as it gets.
pub fn steady(version: Version) -> Command {
    on_jars(version, &["-Xmx512m", "-XX:+UseSerialGC"])
}

fn on_jars(version: Version, options: &[&str]) -> Command {
    let mut java = Command::new("java");
    java.args(options).arg("-Xshare:auto").arg(format!(
        "-Dlog4j2.configurationFile={}",
        place::java_source("log4j2.properties").display()
    ));
    java.arg("-cp").arg(place::kafka_jars(version.0).join("*"));
    java
}

/// Runs a main class of Kafka's to its end and returns what it printed.
///
/// # Panics
/// If it fails or takes too long, with what it printed.
#[track_caller]
pub fn tool(version: Version, main: &str, arguments: &[&str]) -> String {
    tool_fed(version, main, arguments, "")
}

/// As [`tool`], with standard input.
///
/// # Panics
/// If it fails or takes too long, with what it printed.
#[track_caller]
pub fn tool_fed(version: Version, main: &str, arguments: &[&str], input: &str) -> String {
    finish(start_tool(version, main, arguments, input))
}

/// Runs a main class of Kafka's that the broker refuses something, and returns what it said of that.
///
/// # Panics
/// If it ends well or takes too long, with what it printed.
#[track_caller]
pub fn failing_tool(version: Version, main: &str, arguments: &[&str], input: &str) -> String {
    let mut process = start_tool(version, main, arguments, input);
    let status = process.wait(PATIENCE);
    assert!(!status.success(), "{main}:\n{}", process.last_words());
    process.out() + &process.err()
}

/// Runs a program of `tests/java` to its end and returns what it printed. It is compiled as it starts.
///
/// # Panics
/// If it fails or takes too long, with what it printed.
#[track_caller]
pub fn program(version: Version, file: &str, arguments: &[&str]) -> String {
    finish(start_program(version, file, arguments))
}

/// Starts a program of `tests/java`. It is compiled first.
#[track_caller]
pub fn start_program(version: Version, file: &str, arguments: &[&str]) -> Process {
    let mut java = command(version);
    java.arg(place::java_source(file)).args(arguments);
    start(file, java, "")
}

/// Waits for the end of what has been started and returns what it printed.
///
/// # Panics
/// If it fails or takes too long, with what it printed.
#[track_caller]
pub fn finish(mut process: Process) -> String {
    let status = process.wait(PATIENCE);
    assert!(status.success(), "{status}:\n{}", process.last_words());
    process.out()
}

#[track_caller]
fn start_tool(version: Version, main: &str, arguments: &[&str], input: &str) -> Process {
    let mut java = command(version);
    java.arg(main).args(arguments);
    start(main.rsplit('.').next().unwrap_or(main), java, input)
}

fn start(name: &str, java: Command, input: &str) -> Process {
    let room = place::room(name);
    let fed = room.join("in");
    std::fs::write(&fed, input).expect("a room can be written to");
    let fed = File::open(&fed).expect("it has just been written");
    Process::spawn(name, java, Stdio::from(fed), &room, None)
}
