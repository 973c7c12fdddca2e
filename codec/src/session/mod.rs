//! One client connection and its broker connection, as a state machine without I/O.
//!
//! Shown the bytes at hand for a direction, [`Session::poll`] answers with one [`Step`]. A step is a
//! debt: whoever moves the bytes settles it in full before polling that direction again, and then
//! polls at once, even when no new bytes have come.

mod body;
mod cursor;
mod facts;
mod findings;
mod frame;
pub(crate) mod header;
mod hold;
#[cfg(test)]
pub(crate) mod holes;
mod own;
mod pending;
mod reject;
mod request;
mod response;
mod sasl;
mod shared;
mod token;

pub use hold::MAX_HELD;
pub use pending::MAX_IN_FLIGHT;

use self::request::RequestLane;
use self::response::ResponseLane;
use self::sasl::Sasl;
use self::shared::Shared;
use crate::observation::{CloseReason, Observer};
use crate::types::Direction;
use crate::versions::TableStore;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a process does, the same for all of its connections.
#[derive(Debug)]
pub struct Policy {
    /// How ApiVersions answers are rewritten.
    pub clamp: Clamp,
    /// Largest request accepted, in bytes after the length field (the broker's
    /// `socket.request.max.bytes`).
    pub max_request_bytes: u32,
    /// What happens to connections that do not speak Kafka.
    pub non_kafka: NonKafka,
    /// How long a request may stop arriving in its middle.
    pub request_progress: Option<Duration>,
    /// How long a response may stop arriving in its middle.
    pub response_progress: Option<Duration>,
    /// Where equal version tables become one.
    pub tables: TableStore,
}

/// How ApiVersions answers are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clamp {
    /// Nobody speaks a version that `kafka-protocol` cannot encode.
    Encode,
    /// Nobody speaks a version that klamp itself cannot read.
    Inspect,
    /// The answer passes as it is.
    Off,
}

/// What happens to a connection that opens with TLS or HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonKafka {
    /// Relay it unseen.
    Pass,
    /// Close it.
    Close,
}

/// What to do next with the bytes of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Forward the next n bytes as they are. n may exceed what was shown (those bytes need never be
    /// shown) and may span frames. `u64::MAX` means all that ever comes.
    Pass(u64),
    /// Take `drop` shown bytes away and write `with` instead: an edit, a swallowed request (`with`
    /// empty), or an answer of our own (`drop` 0).
    Replace {
        /// How many of the shown bytes go.
        drop: usize,
        /// What is written in their place.
        with: Vec<u8>,
    },
    /// Keep what was shown and show at least n contiguous bytes, or the end. When the other direction
    /// has moved, less is shown again: an answer of our own may be due, or a drain.
    Need(usize),
    /// Until the other direction moves.
    Wait,
    /// Nothing more will be written in this direction: shut down that half.
    Finish,
    /// End both directions at once.
    Close(CloseReason),
}

/// What the mover of bytes has at hand for one direction.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Contiguous bytes not yet passed.
    pub shown: &'a [u8],
    /// Nothing comes after `shown`.
    pub eof: bool,
    /// With `eof`: how many bytes of the last `Pass` never came (0 otherwise).
    pub unpaid: u64,
    /// When `shown` was read: since a moment that is the same for all of a session, and never less than
    /// before.
    pub now: Duration,
}

/// The state of one connection.
#[derive(Debug)]
pub struct Session {
    shared: Shared,
    request: RequestLane,
    response: ResponseLane,
}

impl Session {
    /// A connection at its start.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            shared: Shared::new(policy),
            request: RequestLane::default(),
            response: ResponseLane::default(),
        }
    }

    /// Looks at what is at hand for `direction`, tells `to` what it saw and answers what to do.
    pub fn poll(&mut self, direction: Direction, input: Input<'_>, to: &mut impl Observer) -> Step {
        match direction {
            Direction::Request => self.request.poll(input, &mut self.shared, to),
            Direction::Response => self.response.poll(input, &mut self.shared, to),
        }
    }

    /// Whether it is known what `direction` answers next, until it is shown more and whatever the other
    /// direction does, so that nobody need poll: where it has answered `Need`, the same again; where it has
    /// answered a `Pass` of exactly what it was shown, `Need(1)`. `false` where that cannot be told at a
    /// glance.
    #[inline]
    pub fn awaits_bytes(&self, direction: Direction) -> bool {
        let is_ordinary = !self.shared.unseen && !self.shared.draining;
        is_ordinary
            && match direction {
                Direction::Request => !matches!(self.shared.sasl, Sasl::Asked(_)),
                Direction::Response => self.response.awaits_bytes(&self.shared),
            }
    }

    /// Whether `direction` stands in a frame of which more is to come, and would answer `Need(1)` until it is
    /// shown any of it.
    #[inline]
    pub fn is_amid_frame(&self, direction: Direction) -> bool {
        !self.shared.unseen
            && match direction {
                Direction::Request => self.request.wants_more(),
                Direction::Response => self.response.wants_more(),
            }
    }

    /// Stops at the next request head; once nothing is in flight the session closes. Poll both
    /// directions then, the request's first: the other one closes once this one has stopped.
    ///
    /// Where the client sends with acks=0 the response direction finishes instead, and requests pass
    /// until the client has closed too; whoever moves the bytes decides how long it may take.
    pub fn drain(&mut self) {
        self.shared.draining = true;
    }

    /// When a connection closes if the peer that sends `direction` stays silent, given that nothing
    /// has come from it since `waiting_since` though there was room. `None`: it may stay silent.
    #[inline]
    pub fn deadline(&self, direction: Direction, waiting_since: Instant) -> Option<Instant> {
        let policy = &self.shared.policy;
        let (amid_frame, progress) = match direction {
            Direction::Request => (self.request.is_amid_frame(), policy.request_progress),
            Direction::Response => (self.response.is_amid_frame(), policy.response_progress),
        };
        if !amid_frame || self.shared.unseen {
            return None;
        }
        waiting_since.checked_add(progress?)
    }

    /// Why the connection ended, once both directions have answered `Finish`: as the one that did so
    /// first saw it.
    pub fn ending(&self) -> CloseReason {
        self.shared.ending.unwrap_or(CloseReason::Client)
    }

    /// The peer that sends `direction` was lost without an end (reset, timed out). Tells `to` the
    /// verdict, if there is one, and answers with the reason that it gives the close.
    pub fn lost(
        &mut self,
        direction: Direction,
        now: Duration,
        to: &mut impl Observer,
    ) -> Option<CloseReason> {
        match direction {
            Direction::Request => None,
            Direction::Response => self.shared.verdict(self.response.at(), now, to),
        }
    }

    /// How many requests wait for their answer.
    pub fn in_flight(&self) -> usize {
        self.shared.queue.len()
    }
}
