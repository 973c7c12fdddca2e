//! Turns the message definitions that Kafka publishes in its `kafka-clients` jars into the static
//! tables of `codec/src/generated`: fetch, read, merge, give roles, compile, write.
//!
//! The trap: definitions change from release to release, and a field that nobody looked at may be a
//! secret or an address. So whatever is new and looks like something klamp must know of fails the
//! run until somebody has said in `role.rs` what it is.

mod compile;
mod definition;
mod errors;
mod jars;
pub mod java;
mod merge;
mod message;
mod pack;
mod releases;
mod role;
mod row;
mod straight;
mod write;

use anyhow::Result;
use compile::{Reader, Table};
use jars::Release;
use role::Roles;
use std::path::{Path, PathBuf};

/// The jars that are read, newest first. To follow a new Kafka, put its release in front; each minor
/// release stands for its brokers with its last patch.
pub const RELEASES: [&str; 6] = ["4.4.0", "4.3.1", "4.2.2", "4.1.2", "4.0.2", "3.9.2"];

/// What a run writes.
#[derive(Debug)]
pub struct Generated {
    /// The files, in `codec/src/generated`.
    pub files: Vec<File>,
    /// A few lines of counts.
    pub summary: String,
}

/// One generated file.
#[derive(Debug)]
pub struct File {
    /// Where it belongs.
    pub path: PathBuf,
    /// All of its text.
    pub text: String,
}

/// Reads the jars (and fetches them before, where they are not there yet) and returns what
/// `codec/src/generated` has to contain.
///
/// # Errors
/// Where a jar cannot be had or read, releases disagree, or a field needs a role and has none.
pub fn generate() -> Result<Generated> {
    let releases = RELEASES
        .iter()
        .map(|version| Release::read(version))
        .collect::<Result<Vec<_>>>()?;
    let mut roles = Roles::default();
    let messages = merge::merge(&releases, &mut roles)?;
    roles.finish()?;

    let hot = Table::compile(&messages, Reader::Hot)?;
    let full = Table::compile(&messages, Reader::Full)?;
    let errors = errors::names(RELEASES[0])?;
    let api_names = releases::api_names(&releases);
    let spoken = releases::spoken(&releases)?;

    let summary = format!(
        "{} messages, {} fields with a role other than by rule\nhot: {}\nfull: {}\n",
        messages.len(),
        role::by_list(),
        hot.summary(),
        full.summary(),
    );
    let file = |name: &str, text| File {
        path: directory().join(name),
        text,
    };
    Ok(Generated {
        files: vec![
            file("hot.rs", write::hot(&hot)),
            file("straight.rs", straight::readers(&hot)),
            file("full.rs", write::full(&full)),
            file("names.rs", write::names(&api_names, &errors)),
            file("releases.rs", write::releases(&spoken)),
        ],
        summary,
    })
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .with_file_name("src")
        .join("generated")
}
