//! The `klamp` binary, built first, so that the demo is one command.
//!
//! The trap: cargo builds no binary for another package's sake, and where it puts one depends on its
//! configuration. So cargo is asked to build, and to say where the result is.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The one that `KLAMP_BIN` names, else the one that belongs to this source, in this profile.
///
/// # Panics
/// If it cannot be built.
pub(crate) fn klamp() -> PathBuf {
    match std::env::var_os("KLAMP_BIN") {
        Some(named) => PathBuf::from(named),
        None => built(),
    }
}

fn built() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command
        .args(["build", "--package", "klamp", "--bin", "klamp"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("cannot run {}: {e}", cargo.display()));
    assert!(output.status.success(), "cargo could not build klamp");
    executable(&String::from_utf8_lossy(&output.stdout)).expect("cargo says what it has built")
}

/// The executable among cargo's messages, of which there is one a line.
fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
}
