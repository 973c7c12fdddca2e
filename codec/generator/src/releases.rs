//! Which versions the brokers of each release speak, and what their APIs are called.

use crate::definition::Versions;
use crate::jars::Release;
use crate::merge::names;
use crate::message::Direction;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// For each release, oldest first, what its brokers speak.
pub(crate) struct Spoken {
    pub(crate) releases: Vec<(u16, u16)>,
    /// By API key, for each release; `None` where its brokers do not speak it.
    pub(crate) rows: BTreeMap<i16, Vec<Option<Versions>>>,
}

/// The name of each API, from the newest release that has it.
pub(crate) fn api_names(releases: &[Release]) -> BTreeMap<i16, String> {
    let mut found = BTreeMap::new();
    for definition in releases.iter().flat_map(|release| &release.definitions) {
        if let Ok(Some((api_key, Direction::Request))) = names(definition) {
            let name = definition.name.strip_suffix("Request");
            let name = name.unwrap_or(&definition.name);
            found.entry(api_key).or_insert_with(|| name.to_owned());
        }
    }
    found
}

pub(crate) fn spoken(releases: &[Release]) -> Result<Spoken> {
    let mut spoken = Spoken {
        releases: Vec::new(),
        rows: BTreeMap::new(),
    };
    for (index, release) in releases.iter().rev().enumerate() {
        spoken.releases.push(minor(release.version)?);
        for definition in &release.definitions {
            let Some((api_key, Direction::Request)) = names(definition)? else {
                continue;
            };
            // Before 4.0 there were brokers with ZooKeeper and without.
            let by_brokers = ["broker", "zkBroker"]
                .iter()
                .any(|listener| definition.listeners.iter().any(|it| it == listener));
            let mut versions = definition.valid_versions;
            if definition.latest_version_unstable {
                versions.last -= 1;
            }
            let row = spoken.rows.entry(api_key).or_default();
            row.resize(index, None);
            row.push(Some(versions).filter(|it| by_brokers && it.first <= it.last));
        }
    }
    let len = spoken.releases.len();
    spoken
        .rows
        .values_mut()
        .for_each(|row| row.resize(len, None));
    Ok(spoken)
}

/// `4.4.0` is of 4.4.
fn minor(version: &str) -> Result<(u16, u16)> {
    let mut parts = version.split('.');
    let mut part = || parts.next()?.parse().ok();
    part()
        .zip(part())
        .with_context(|| format!("no release: {version}"))
}
