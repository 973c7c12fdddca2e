//! The flight recorder: what a connection said last, kept for when something goes wrong.
//!
//! The trap: a capture outlives its connection and is read by people who were not meant to see what
//! passed there. It holds nothing that the recorder had to leave out (`klamp_codec::kept`).

mod captures;
mod cause;
mod directory;
pub(crate) mod facts;
mod frames;
mod in_flight;
pub(crate) mod pcapng;
mod reason;
mod store;
pub(crate) mod tape;
#[cfg(test)]
pub(crate) mod tests;
mod trigger;
mod writer;

pub(crate) use captures::{CaptureTerms, Captures};
pub(crate) use cause::{Cause, Place};
pub(crate) use directory::{DirectoryBounds, file_name};
pub(crate) use frames::Frames;
pub(crate) use in_flight::InFlight;
pub(crate) use reason::Reason;
pub(crate) use store::Found;
pub(crate) use trigger::Triggers;

use klamp_codec::versions::VersionTable;
use klamp_metrics::CaptureReason;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// The latest exchanges of one connection, and why they were kept.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    /// Names it: no other capture of this process has it.
    pub(crate) id: u64,
    /// Why it was taken, for people: `UNNAMED_250 in Produce`.
    pub(crate) reason: String,
    /// Why it was taken, one of few, as metrics label it.
    pub(crate) kind: CaptureReason,
    /// The message it was taken for; `None` where there was none, or nothing of it is kept.
    pub(crate) cause: Option<Cause>,
    /// When.
    pub(crate) taken: SystemTime,
    /// The client's end of the connection.
    pub(crate) client: SocketAddr,
    /// The broker's, as dialled; `None` where it was not reached.
    pub(crate) broker: Option<SocketAddr>,
    /// The upstream by its name on the command line.
    pub(crate) upstream: Arc<str>,
    /// As in the latest request that had one.
    pub(crate) client_id: Option<String>,
    /// ClientSoftwareName and ClientSoftwareVersion, where the client told them.
    pub(crate) software: Option<(String, String)>,
    /// When the client's connection was accepted.
    pub(crate) opened: SystemTime,
    /// Frames that passed before the first one here and are no longer kept.
    pub(crate) lost_frames: u64,
    /// In order of time.
    pub(crate) frames: Frames,
    /// What the broker told of its versions, where it did.
    pub(crate) table: Option<Arc<VersionTable>>,
}
