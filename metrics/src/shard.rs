//! The counters of one thread: dense arrays by row, and relaxed adds to cache lines that no other
//! thread writes.
//!
//! A key's counters lie together and are made when the key is first seen, so that only what is used
//! takes memory and only what is used is exported.

use crate::histogram::Histogram;
use crate::labels::{ACKS, KeyRow, Labels, OpaqueReason, Outcome, VERSIONS, acks_slot};
use crate::unnamed::UnnamedCodes;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What all shards and the collector share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) labels: Labels,
    pub(crate) unnamed: UnnamedCodes,
}

/// The counters of one thread. Any thread may call it, but a shard that two threads write is slow.
#[derive(Debug)]
#[repr(align(64))]
pub struct Shard {
    shared: Arc<Shared>,
    /// By [`KeyRow`].
    keys: Box<[OnceLock<Box<KeyCounters>>]>,
    pub(crate) opened: AtomicU64,
    pub(crate) active: AtomicI64,
    pub(crate) in_flight: AtomicI64,
    pub(crate) acks: [AtomicU64; ACKS.len()],
    pub(crate) opaque: [AtomicU64; OpaqueReason::ALL.len()],
}

/// The counters of one API key.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct KeyCounters {
    /// By version; the last is `other`.
    pub(crate) requests: [AtomicU64; VERSIONS + 1],
    pub(crate) request_bytes: AtomicU64,
    pub(crate) outcomes: [AtomicU64; Outcome::ALL.len()],
    pub(crate) response_bytes: AtomicU64,
    pub(crate) throttle_nanos: AtomicU64,
    pub(crate) durations: Histogram,
    pub(crate) excess: OnceLock<Box<Histogram>>,
    /// By error slot.
    pub(crate) errors: Box<[AtomicU64]>,
}

impl KeyCounters {
    fn new(error_codes: usize) -> Self {
        Self {
            requests: [const { AtomicU64::new(0) }; VERSIONS + 1],
            request_bytes: AtomicU64::new(0),
            outcomes: [const { AtomicU64::new(0) }; Outcome::ALL.len()],
            response_bytes: AtomicU64::new(0),
            throttle_nanos: AtomicU64::new(0),
            durations: Histogram::default(),
            excess: OnceLock::new(),
            errors: (0..error_codes).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Shard {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            keys: (0..shared.labels.rows()).map(|_| OnceLock::new()).collect(),
            shared,
            opened: AtomicU64::new(0),
            active: AtomicI64::new(0),
            in_flight: AtomicI64::new(0),
            acks: [const { AtomicU64::new(0) }; ACKS.len()],
            opaque: [const { AtomicU64::new(0) }; OpaqueReason::ALL.len()],
        }
    }

    /// The row of an API key, by its number on the wire.
    pub fn row(&self, api_key: i16) -> KeyRow {
        self.shared.labels.row(api_key)
    }

    /// A client connection has been accepted.
    pub fn connection_opened(&self) {
        self.opened.fetch_add(1, Relaxed);
        self.active.fetch_add(1, Relaxed);
    }

    /// A client connection is gone; [`Metrics::connection_closed`](crate::Metrics::connection_closed)
    /// tells why.
    pub fn connection_closed(&self) {
        self.active.fetch_sub(1, Relaxed);
    }

    /// So many more requests (fewer, where negative) wait for their response.
    pub fn in_flight(&self, more: i64) {
        self.in_flight.fetch_add(more, Relaxed);
    }

    /// A request of `bytes` has been received.
    pub fn request(&self, row: KeyRow, version: i16, bytes: u64) {
        let key = self.key(row);
        key.requests[self.shared.labels.version_slot(row, version)].fetch_add(1, Relaxed);
        key.request_bytes.fetch_add(bytes, Relaxed);
    }

    /// A Produce request asks for so many acknowledgements.
    pub fn acks(&self, acks: i16) {
        self.acks[acks_slot(acks)].fetch_add(1, Relaxed);
    }

    /// A response's first byte came after `took`; the request asked the broker to wait up to `wait`.
    pub fn answered_after(&self, row: KeyRow, took: Duration, wait: Option<Duration>) {
        let key = self.key(row);
        key.durations.observe(took);
        if let Some(wait) = wait {
            key.excess
                .get_or_init(Box::default)
                .observe(took.saturating_sub(wait));
        }
    }

    /// A response carried an error code `count` times. Returns whether the code has a name.
    pub fn error_code(&self, row: KeyRow, code: i16, count: u32) -> bool {
        match self.shared.labels.error_slot(code) {
            Some(slot) => {
                self.key(row).errors[slot].fetch_add(count.into(), Relaxed);
                true
            }
            None => {
                self.shared.unnamed.add(row, code, count.into());
                false
            }
        }
    }

    /// The broker asks a client to stay quiet for `time`.
    pub fn throttled(&self, row: KeyRow, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.key(row).throttle_nanos.fetch_add(nanos, Relaxed);
    }

    /// A response of `bytes` has been passed on.
    pub fn response(&self, row: KeyRow, outcome: Outcome, bytes: u64) {
        let key = self.key(row);
        key.outcomes[outcome as usize].fetch_add(1, Relaxed);
        key.response_bytes.fetch_add(bytes, Relaxed);
    }

    /// A frame has passed without being understood.
    pub fn opaque(&self, reason: OpaqueReason) {
        self.opaque[reason as usize].fetch_add(1, Relaxed);
    }

    /// The counters of a key that has been seen on this thread.
    pub(crate) fn seen(&self, row: KeyRow) -> Option<&KeyCounters> {
        self.keys.get(row.index())?.get().map(Box::as_ref)
    }

    fn key(&self, row: KeyRow) -> &KeyCounters {
        let error_codes = self.shared.labels.errors().len();
        self.keys[row.index()].get_or_init(|| Box::new(KeyCounters::new(error_codes)))
    }
}
