//! What the tests of captures are made of.

use super::{Capture, CaptureTerms, Captures};
use klamp_codec::Direction;
use klamp_codec::kept::{Kept, Part, Reading};
use klamp_metrics::{CaptureReason, Metrics};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// A frame of so many bytes, like no other.
pub(crate) fn frame(bytes: u64) -> Kept {
    static AT: AtomicU64 = AtomicU64::new(0);
    Kept {
        direction: Direction::Request,
        exchange: None,
        at: AT.fetch_add(1_000_000, Relaxed),
        bytes,
        received: SystemTime::UNIX_EPOCH,
        latency: None,
        reading: Reading::Token,
        change: None,
        errors: Vec::new(),
        parts: vec![Part::Bytes(vec![b'x'; bytes as usize])],
    }
}

/// A capture of one such frame.
pub(crate) fn capture(id: u64, bytes: u64) -> Capture {
    Capture {
        id,
        reason: "UNNAMED_250 in Produce".to_owned(),
        kind: CaptureReason::Unnamed,
        cause: None,
        taken: SystemTime::UNIX_EPOCH,
        client: "10.0.0.1:4000".parse().unwrap(),
        broker: None,
        upstream: "broker:9092".into(),
        client_id: Some("app".to_owned()),
        software: None,
        opened: SystemTime::UNIX_EPOCH,
        lost_frames: 0,
        frames: vec![frame(bytes)].into(),
        table: None,
    }
}

/// Captures that go on for three frames, and whose files have a byte a frame.
pub(crate) fn captures(on: &str, metrics: Arc<Metrics>) -> Captures {
    captures_within(1 << 20, on, metrics)
}

/// The same, of so much memory.
pub(crate) fn captures_within(memory: usize, on: &str, metrics: Arc<Metrics>) -> Captures {
    let terms = CaptureTerms {
        on: on.parse().unwrap(),
        frames: 3,
        time: Duration::from_secs(3600),
        memory,
        directory: None,
        has_pages: true,
    };
    let encode = |capture: &Capture, out: &mut dyn io::Write| {
        out.write_all(&vec![b'x'; capture.frames.len()])
    };
    Captures::new(terms, encode, metrics).unwrap()
}

/// An empty directory that goes with its test.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("klamp-captures-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The names of what is there, in order.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
