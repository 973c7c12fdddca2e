//! The proxies of others, each as its documentation advises for what is measured here.
//!
//! The trap: a limit on connections or descriptors that a proxy keeps to in silence makes it look
//! cheap. So each gets room for all that the process may open, and one that cannot start is an error
//! and no gap in the table.

mod envoy;
mod file;
mod haproxy;
mod nginx;

pub use file::read as from_file;

use crate::contender::Contender;
use crate::sample::Facts;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Descriptors that a proxy needs beside those of connections: its log, its pollers, its threads'.
const SPARE: u64 = 64;

/// HAProxy, with and without splicing, nginx and Envoy. `tests/bench/run` installs them.
pub fn all() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(haproxy::COPYING),
        Box::new(haproxy::SPLICING),
        Box::new(nginx::Nginx),
        Box::new(envoy::Envoy),
    ]
}

/// What each of them says that it is.
pub fn versions() -> Facts {
    let envoy = envoy::binary().unwrap_or_default();
    let versions = [
        ("HAProxy", Path::new("haproxy"), "-v"),
        ("nginx", Path::new("nginx"), "-v"),
        ("Envoy", envoy.as_path(), "--version"),
    ];
    let versions = versions.into_iter().map(|(name, program, option)| {
        let version = version(program, option);
        (
            name.to_owned(),
            version.unwrap_or_else(|| "not here".to_owned()),
        )
    });
    versions.collect()
}

/// The first line that it writes with words in it.
fn version(program: &Path, option: &str) -> Option<String> {
    let output = Command::new(program).arg(option).output().ok()?;
    // nginx says it on the other stream.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    // Envoy begins with where it is.
    let place = program.display().to_string();
    Some(line.strip_prefix(&place).unwrap_or(line).trim().to_owned())
}

/// How many descriptors this process may open, and each that it starts.
fn descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(1 << 20)
}

/// Writes a configuration into a contender's folder.
fn configuration(dir: &Path, file: &str, text: &str) -> io::Result<PathBuf> {
    let path = dir.join(file);
    fs::write(&path, text)?;
    Ok(path)
}

#[cfg(test)]
mod tests;
