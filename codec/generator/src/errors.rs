//! The names of error codes: Kafka has them only in its class `Errors`, so Java is asked.

use crate::jars;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What the class `Errors` needs beside Kafka's own.
const SLF4J: (&str, &str) = ("org.slf4j:slf4j-api", "1.7.36");

/// Each code and its name, of the release whose jar this is.
pub(crate) fn names(kafka_clients: &Path) -> Result<BTreeMap<i16, String>> {
    let slf4j = jars::fetch(SLF4J.0, SLF4J.1)?;
    let class_path = std::env::join_paths([kafka_clients, &slf4j])?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("PrintErrors.java");
    let output = Command::new("java")
        .arg("-cp")
        .arg(class_path)
        .arg(source)
        .output()
        .context("cannot run Java")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "PrintErrors.java failed:\n{told}");
    let mut names = BTreeMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let Some((code, name)) = line.split_once(' ') else {
            bail!("not a code and a name: {line:?}");
        };
        names.insert(code.parse()?, name.to_owned());
    }
    ensure!(
        names.get(&0).is_some_and(|it| it == "NONE"),
        "0 is not NONE"
    );
    Ok(names)
}
