//! What the tests of captures are made of.

use super::Capture;
use klamp_codec::Direction;
use klamp_codec::kept::{Kept, Part, Reading};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::SystemTime;

/// A frame of so many bytes.
pub(super) fn frame(bytes: u64) -> Kept {
    Kept {
        direction: Direction::Request,
        exchange: None,
        at: 0,
        bytes,
        received: SystemTime::UNIX_EPOCH,
        latency: None,
        reading: Reading::Token,
        change: None,
        parts: vec![Part::Bytes(vec![b'x'; bytes as usize])],
    }
}

/// A capture of one such frame.
pub(super) fn capture(id: u64, bytes: u64) -> Capture {
    Capture {
        id,
        reason: "UNNAMED_250 in Produce".to_owned(),
        kind: "unnamed",
        taken: SystemTime::UNIX_EPOCH,
        client: "10.0.0.1:4000".parse().unwrap(),
        broker: None,
        upstream: "broker:9092".into(),
        client_id: Some("app".to_owned()),
        software: None,
        opened: SystemTime::UNIX_EPOCH,
        lost_frames: 0,
        frames: vec![frame(bytes)],
        table: None,
    }
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
