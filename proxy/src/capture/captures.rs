//! What all connections, the pages and the directory share of the recorder: what triggers, how often it
//! may, and where captures go.
//!
//! The trap: whatever a peer can trigger, it can trigger with every message. So what is asked then takes
//! no lock, a capture is made only where the limit of its kind allows, and what is refused is counted.

use super::directory::{Directory, DirectoryBounds, Encode, file_name};
use super::store::{Bounds, Found, Store};
use super::tape::Usage;
use super::writer::Writer;
use super::{Capture, Reason, Triggers};
use crate::log::{self, Admitted, RateLimit};
use crate::shown::Shown;
use arc_swap::ArcSwap;
use klamp_codec::kept::Kept;
use klamp_metrics::{CaptureDropped, Metrics};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tracing::{Level, info};

/// Captures that one trouble (a code in answers of one API, say) may cause in a minute.
const A_MINUTE: u32 = 6;
/// Troubles that are told apart; those that share a place share its limit.
const TROUBLES: usize = 256;
/// Captures that are kept in memory.
const CAPTURES: usize = 256;

/// How captures are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaptureTerms {
    pub(crate) on: Triggers,
    /// Frames that a capture goes on for.
    pub(crate) frames: u32,
    /// How long it goes on at most.
    pub(crate) time: Duration,
    /// Bytes of memory for all captures; 0: none are taken.
    pub(crate) memory: usize,
    pub(crate) directory: Option<(PathBuf, DirectoryBounds)>,
    /// Whether there is a `--debug` listener to ask for them.
    pub(crate) has_pages: bool,
}

/// The recorder's part that all share.
#[derive(Debug)]
pub(crate) struct Captures {
    on: ArcSwap<Triggers>,
    /// How late an answer triggers, in nanoseconds.
    slow: AtomicU64,
    frames: u32,
    time: Duration,
    limits: Box<[RateLimit]>,
    last_id: AtomicU64,
    store: Arc<Store>,
    writer: Option<Writer>,
    /// What the tapes of all connections take.
    pub(crate) tapes: Arc<Usage>,
    encode: Encode,
    metrics: Arc<Metrics>,
    /// No memory was given to it.
    pub(crate) is_off: bool,
    /// Where captures can be had, for the log.
    has_pages: bool,
    directory: Option<PathBuf>,
}

impl Captures {
    /// Fails where the directory cannot be written to.
    pub(crate) fn new(
        terms: CaptureTerms,
        encode: Encode,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let store = Arc::new(Store::new(Bounds {
            captures: CAPTURES,
            bytes: terms.memory,
        }));
        let directory = terms.directory.as_ref().map(|(path, _)| path.clone());
        let writer = terms.directory.map(|(path, bounds)| {
            let directory = Directory::open(path, bounds, encode)?;
            Writer::start(directory, store.clone(), metrics.clone())
        });
        let limit = |_| RateLimit::new(A_MINUTE, Duration::from_secs(60));
        let captures = Self {
            on: ArcSwap::default(),
            slow: AtomicU64::new(u64::MAX),
            frames: terms.frames,
            time: terms.time,
            limits: (0..TROUBLES).map(limit).collect(),
            last_id: AtomicU64::new(0),
            store,
            writer: writer.transpose()?,
            tapes: Arc::default(),
            encode,
            metrics,
            is_off: terms.memory == 0,
            has_pages: terms.has_pages,
            directory,
        };
        captures.set_on(terms.on);
        Ok(captures)
    }

    /// What triggers.
    pub(crate) fn on(&self) -> arc_swap::Guard<Arc<Triggers>> {
        self.on.load()
    }

    /// From now on this triggers.
    pub(crate) fn set_on(&self, on: Triggers) {
        let slow = on.slow().map(|slow| slow.as_nanos() as u64);
        self.slow.store(slow.unwrap_or(u64::MAX), Relaxed);
        self.on.store(Arc::new(on));
    }

    /// Whether an answer is late, for one whose request did not ask to wait. Asked for each answer.
    #[inline]
    pub(crate) fn is_slow(&self, latency: Duration) -> bool {
        let nanos = latency.as_secs().saturating_mul(1_000_000_000);
        let nanos = nanos.saturating_add(u64::from(latency.subsec_nanos()));
        nanos > self.slow.load(Relaxed)
    }

    /// Whether a capture may be taken now; what may not is counted.
    pub(crate) fn admit(&self, reason: Reason) -> bool {
        let place = reason.trouble() as usize % self.limits.len();
        let admitted = self.limits[place].admit();
        if admitted.is_none() {
            self.refuse();
        }
        admitted.is_some()
    }

    /// Counts a capture that is not taken, since there have been such lately.
    pub(crate) fn refuse(&self) {
        self.metrics.capture_dropped(CaptureDropped::RateLimited);
    }

    /// A number that no other capture of this process has.
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Relaxed) + 1
    }

    /// How many frames a capture goes on for, and until when.
    pub(crate) fn terms(&self) -> (u32, Instant) {
        (self.frames, Instant::now() + self.time)
    }

    /// Keeps a capture that goes on until then; `false` where there is no room.
    pub(crate) fn take(&self, capture: Capture, connection: u64, until: Instant) -> bool {
        static SAID: LazyLock<Arc<RateLimit>> =
            LazyLock::new(|| log::limit(Level::INFO, "captures", 10));
        let (id, kind) = (capture.id, capture.kind);
        let said = SAID.admit().map(|Admitted { suppressed }| {
            let told = |name: &Option<String>| {
                name.as_ref()
                    .map(|name| Shown(Some(name.as_bytes())).to_string())
            };
            (
                suppressed,
                capture.reason.clone(),
                capture.client,
                told(&capture.client_id),
                capture.frames.len(),
                (self.directory.as_ref()).map(|at| at.join(file_name(&capture))),
            )
        });
        let given_up = self.store.insert(capture, connection, until);
        self.account(given_up.unwrap_or(1));
        if given_up.is_err() {
            return false;
        }
        self.metrics.captured(kind);
        self.write(id);
        if let Some((suppressed, reason, client, client_id, frames, file)) = said {
            let client_id = client_id.as_deref().unwrap_or("-");
            let place = match (self.has_pages, &file) {
                (true, _) => format!("GET /captures/{id}.pcapng on --debug has it"),
                (false, Some(_)) => "it becomes a file of --capture-dir".to_owned(),
                (false, None) => "give --debug or --capture-dir to see such".to_owned(),
            };
            let file = file.map(|file| file.display().to_string());
            info!(suppressed, capture = id, reason, connection, %client, client_id, frames, file,
                "a capture was taken: {place}");
        }
        true
    }

    /// Adds frames to a capture; `false` where it does not go on any more.
    pub(crate) fn append(&self, id: u64, frames: Vec<Kept>) -> bool {
        if frames.is_empty() {
            return true;
        }
        let given_up = self.store.append(id, frames);
        self.account(given_up.unwrap_or(0));
        given_up.is_ok()
    }

    /// A capture is complete.
    pub(crate) fn complete(&self, id: u64) {
        self.store.complete(id);
        self.write(id);
    }

    pub(crate) fn find(&self, id: u64) -> Option<Found> {
        self.store.find(id)
    }

    /// All that are in memory, the oldest first.
    pub(crate) fn all(&self) -> Vec<Found> {
        self.store.all()
    }

    /// Gives up a capture, but not its file; whether it was there.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let was_there = self.store.remove(id);
        self.account(0);
        was_there
    }

    /// Gives up all, and tells how many there were.
    pub(crate) fn clear(&self) -> usize {
        let cleared = self.store.clear();
        self.account(0);
        cleared
    }

    /// A capture as a file.
    pub(crate) fn file(&self, capture: &Capture) -> io::Result<Vec<u8>> {
        let mut file = Vec::new();
        (self.encode)(capture, &mut file)?;
        Ok(file)
    }

    /// The process ends: writes what is left to write, for at most so long.
    pub(crate) fn finish(&self, time: Duration) {
        if let Some(writer) = &self.writer {
            writer.finish(time);
        }
    }

    fn write(&self, id: u64) {
        if let Some(writer) = &self.writer
            && !writer.write(id)
        {
            self.metrics.capture_dropped(CaptureDropped::QueueFull);
        }
    }

    fn account(&self, given_up: u64) {
        for _ in 0..given_up {
            self.metrics.capture_dropped(CaptureDropped::Memory);
        }
        self.metrics.set_captures_bytes(self.store.bytes());
    }
}
