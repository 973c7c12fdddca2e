//! The queue of requests that wait for their answers. Brokers answer in the order of the requests,
//! so a response belongs to the oldest entry; the trap is the entry that may never be answered.

use crate::observation::Exchange;
use crate::types::{ApiKey, CorrelationId};
use std::collections::VecDeque;
use std::time::Duration;

/// How many requests of one connection may wait for their answers before no more are read. A broker
/// works on one request of a connection at a time, so more would only wait elsewhere.
pub const MAX_IN_FLIGHT: usize = 1024;

/// Whether a request gets an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The broker answers it.
    Expected,
    /// The broker may answer it or not: a Produce whose acks nobody here reads (yet), a SASL token.
    Unknown,
    /// klamp answers it.
    Local,
}

/// One request in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) exchange: Exchange,
    pub(super) answer: Answer,
    /// A raw SASL token: neither it nor its answer has a header.
    pub(super) token: bool,
    /// Nobody here reads the request: what the broker does next is its verdict on it.
    pub(super) opaque: bool,
    /// How long the request asks the broker to wait, in milliseconds; negative: not at all.
    pub(super) wait_ms: i32,
    /// When its last byte had been received.
    pub(super) received: Option<Duration>,
}

impl Entry {
    /// Of a request that has begun.
    #[inline(always)]
    pub(super) fn of(exchange: Exchange) -> Self {
        Self {
            exchange,
            answer: match exchange.api_key {
                ApiKey::PRODUCE => Answer::Unknown, // until its acks are read
                _ => Answer::Expected,
            },
            token: false,
            opaque: false,
            wait_ms: -1,
            received: None,
        }
    }

    /// Whether a response with this id is the answer of a broker's to it.
    #[inline]
    pub(super) fn answers(&self, id: CorrelationId) -> bool {
        !self.token && self.answer != Answer::Local && self.exchange.correlation_id == id
    }

    pub(super) fn wait(&self) -> Option<Duration> {
        u64::try_from(self.wait_ms).ok().map(Duration::from_millis)
    }
}

/// First in, first out; bounded by [`MAX_IN_FLIGHT`].
#[derive(Debug, Default)]
pub(super) struct Pending {
    queue: VecDeque<Entry>,
}

impl Pending {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&Entry> {
        self.queue.front()
    }

    /// The oldest request whose answer must come.
    pub(super) fn expected(&self) -> Option<&Entry> {
        self.queue.iter().find(|e| e.answer != Answer::Unknown)
    }

    pub(super) fn holds(&self, answer: Answer) -> bool {
        self.queue.iter().any(|e| e.answer == answer)
    }

    /// Whether one more request may enter. Entries that may never be answered do not hold the
    /// others up: the oldest gives way.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        if self.queue.len() < MAX_IN_FLIGHT {
            return true;
        }
        let giving_way = self.front().is_some_and(|e| e.answer == Answer::Unknown);
        if giving_way {
            self.pop();
        }
        giving_way
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.queue.push_back(entry);
    }

    #[inline]
    pub(super) fn youngest(&mut self) -> Option<&mut Entry> {
        self.queue.back_mut()
    }

    /// The youngest expects no answer after all.
    pub(super) fn withdraw(&mut self) {
        self.queue.pop_back();
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.queue.pop_front()?;
        if self.queue.is_empty() && self.queue.capacity() > 64 {
            self.queue = VecDeque::new(); // an idle connection holds little memory
        }
        Some(entry)
    }

    /// Whether a response with this id answers the oldest entry, or a later one with only unknown ones before
    /// it: these leave without an answer then, up to an answer of our own.
    pub(super) fn gives_way(&mut self, id: CorrelationId) -> bool {
        let Some(index) = self.later(id) else {
            return false;
        };
        for _ in 0..index {
            if self.front().is_some_and(|e| e.answer == Answer::Local) {
                break;
            }
            self.pop();
        }
        true
    }

    /// Whether a request with a header and this id comes next, but for those before it that the broker
    /// need not answer.
    pub(super) fn later(&self, id: CorrelationId) -> Option<usize> {
        for (index, entry) in self.queue.iter().enumerate() {
            if entry.answers(id) {
                return Some(index);
            }
            if entry.answer == Answer::Expected {
                return None;
            }
        }
        None
    }
}
