//! Gets jars from Maven and reads the message definitions in them.

use crate::definition::Definition;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned, so that Maven runs the same plugin everywhere.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

/// The definitions of one Kafka release.
pub(crate) struct Release {
    /// As in `4.4.0`.
    pub(crate) version: &'static str,
    pub(crate) definitions: Vec<Definition>,
}

impl Release {
    pub(crate) fn read(version: &'static str) -> Result<Self> {
        let path = fetch("kafka-clients", version)?;
        let definitions = read(&path).with_context(|| format!("in {}", path.display()))?;
        ensure!(
            !definitions.is_empty(),
            "no message definitions in {version}"
        );
        Ok(Self {
            version,
            definitions,
        })
    }
}

/// The jar of an artifact, fetched where it is not there yet. Of Kafka's unless it names its group.
pub(crate) fn fetch(artifact: &str, version: &str) -> Result<PathBuf> {
    let (group, artifact) = artifact
        .split_once(':')
        .unwrap_or(("org.apache.kafka", artifact));
    let dir = target_dir().join("kafka-clients");
    let name = format!("{artifact}-{version}.jar");
    let path = dir.join(&name);
    if path.is_file() {
        return Ok(path);
    }
    // Elsewhere first, so that a jar is there whole or not at all.
    let partial = dir.join(format!("{}.partial", std::process::id()));
    let status = Command::new("mvn")
        .args(["-q", "-B", COPY])
        .arg(format!("-Dartifact={group}:{artifact}:{version}"))
        .arg(format!("-DoutputDirectory={}", partial.display()))
        .status()
        .context("cannot run Maven (mvn)")?;
    ensure!(status.success(), "Maven did not fetch {artifact} {version}");
    fs::rename(partial.join(&name), &path)?;
    fs::remove_dir_all(&partial)?;
    Ok(path)
}

fn read(jar: &Path) -> Result<Vec<Definition>> {
    let mut jar = zip::ZipArchive::new(File::open(jar)?)?;
    let mut definitions = Vec::new();
    for index in 0..jar.len() {
        let mut entry = jar.by_index(index)?;
        let name = entry.name()?.into_owned();
        if !name.starts_with("common/message/") || !name.ends_with(".json") {
            continue;
        }
        let mut text = String::new();
        entry.read_to_string(&mut text)?;
        definitions.push(Definition::read(&text).with_context(|| format!("in {name}"))?);
    }
    Ok(definitions)
}

fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    )
}
