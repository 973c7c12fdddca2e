//! The counters of one thread: dense arrays by row, which that thread alone writes and whoever scrapes
//! reads. The trap is a shard that two threads write: it loses counts, and only debug builds see it.
//!
//! A key's counters lie together and are made when the key is first seen, so that only what is used
//! takes memory and only what is used is exported.

use crate::counter::Counter;
use crate::histogram::Histogram;
use crate::labels::{ACKS, KeyRow, Labels, OpaqueReason, Outcome, VERSIONS, acks_slot};
use crate::unnamed::UnnamedCodes;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// What all shards and the collector share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) labels: Labels,
    pub(crate) unnamed: UnnamedCodes,
}

/// The counters of one thread: whoever counts first is the only one that may.
#[derive(Debug)]
#[repr(align(64))]
pub struct Shard {
    shared: Arc<Shared>,
    /// By [`KeyRow`].
    keys: Box<[OnceLock<Box<KeyCounters>>]>,
    writer: OnceLock<ThreadId>,
    pub(crate) opened: Counter,
    pub(crate) active: Counter,
    pub(crate) in_flight: Counter,
    pub(crate) acks: [Counter; ACKS.len()],
    pub(crate) opaque: [Counter; OpaqueReason::ALL.len()],
}

/// The counters of one API key.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct KeyCounters {
    /// By version; the last is `other`.
    pub(crate) requests: [Counter; VERSIONS + 1],
    pub(crate) request_bytes: Counter,
    pub(crate) outcomes: [Counter; Outcome::ALL.len()],
    pub(crate) response_bytes: Counter,
    pub(crate) throttle_nanos: Counter,
    pub(crate) durations: Histogram,
    pub(crate) excess: OnceLock<Box<Histogram>>,
    /// By error slot.
    pub(crate) errors: Box<[Counter]>,
}

impl KeyCounters {
    fn new(error_codes: usize) -> Self {
        Self {
            requests: [const { Counter::new() }; VERSIONS + 1],
            request_bytes: Counter::new(),
            outcomes: [const { Counter::new() }; Outcome::ALL.len()],
            response_bytes: Counter::new(),
            throttle_nanos: Counter::new(),
            durations: Histogram::default(),
            excess: OnceLock::new(),
            errors: (0..error_codes).map(|_| Counter::new()).collect(),
        }
    }
}

impl Shard {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            keys: (0..shared.labels.rows()).map(|_| OnceLock::new()).collect(),
            shared,
            writer: OnceLock::new(),
            opened: Counter::new(),
            active: Counter::new(),
            in_flight: Counter::new(),
            acks: [const { Counter::new() }; ACKS.len()],
            opaque: [const { Counter::new() }; OpaqueReason::ALL.len()],
        }
    }

    /// The row of an API key, by its number on the wire.
    #[inline]
    pub fn row(&self, api_key: i16) -> KeyRow {
        self.shared.labels.row(api_key)
    }

    /// A client connection has been accepted.
    pub fn connection_opened(&self) {
        self.check_writer();
        self.opened.add(1);
        self.active.add(1);
    }

    /// A client connection is gone; [`Metrics::connection_closed`](crate::Metrics::connection_closed)
    /// tells why.
    pub fn connection_closed(&self) {
        self.check_writer();
        self.active.add((-1_i64).cast_unsigned());
    }

    /// So many more requests (fewer, where negative) wait for their response.
    #[inline]
    pub fn in_flight(&self, more: i64) {
        self.check_writer();
        self.in_flight.add(more.cast_unsigned());
    }

    /// A request of `bytes` has been received.
    #[inline(always)]
    pub fn request(&self, row: KeyRow, version: i16, bytes: u64) {
        let key = self.key(row);
        key.requests[self.shared.labels.version_slot(row, version)].add(1);
        key.request_bytes.add(bytes);
    }

    /// A Produce request asks for so many acknowledgements.
    #[inline]
    pub fn acks(&self, acks: i16) {
        self.check_writer();
        self.acks[acks_slot(acks)].add(1);
    }

    /// A response's first byte came after `took`; the request asked the broker to wait up to `wait`.
    #[inline(always)]
    pub fn answered_after(&self, row: KeyRow, took: Duration, wait: Option<Duration>) {
        let key = self.key(row);
        let took = nanos(took);
        key.durations.observe(took);
        if let Some(wait) = wait {
            let excess = took.saturating_sub(nanos(wait));
            key.excess.get_or_init(Box::default).observe(excess);
        }
    }

    /// A response carried an error code `count` times. Returns whether the code has a name.
    #[inline(always)]
    pub fn error_code(&self, row: KeyRow, code: i16, count: u32) -> bool {
        match self.shared.labels.error_slot(code) {
            Some(slot) => {
                self.key(row).errors[slot].add(count.into());
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
        self.key(row).throttle_nanos.add(nanos(time));
    }

    /// A response of `bytes` has been passed on.
    #[inline(always)]
    pub fn response(&self, row: KeyRow, outcome: Outcome, bytes: u64) {
        let key = self.key(row);
        key.outcomes[outcome as usize].add(1);
        key.response_bytes.add(bytes);
    }

    /// A frame has passed without being understood.
    pub fn opaque(&self, reason: OpaqueReason) {
        self.check_writer();
        self.opaque[reason as usize].add(1);
    }

    /// The counters of a key that has been seen on this thread.
    pub(crate) fn seen(&self, row: KeyRow) -> Option<&KeyCounters> {
        self.keys.get(row.index())?.get().map(Box::as_ref)
    }

    /// To write.
    #[inline(always)]
    fn key(&self, row: KeyRow) -> &KeyCounters {
        self.check_writer();
        let key = &self.keys[row.index()];
        match key.get() {
            Some(key) => key,
            None => self.new_key(key),
        }
    }

    #[cold]
    fn new_key<'a>(&self, key: &'a OnceLock<Box<KeyCounters>>) -> &'a KeyCounters {
        let error_codes = self.shared.labels.errors().len();
        key.get_or_init(|| Box::new(KeyCounters::new(error_codes)))
    }

    #[inline]
    fn check_writer(&self) {
        if cfg!(debug_assertions) {
            let current = thread::current().id();
            let writer = self.writer.get_or_init(|| current);
            assert_eq!(*writer, current, "a shard has one writer");
        }
    }
}

/// Up to 584 years, without arithmetic of 128 bits.
#[inline]
fn nanos(time: Duration) -> u64 {
    let whole = time.as_secs().saturating_mul(1_000_000_000);
    whole.saturating_add(time.subsec_nanos().into())
}
