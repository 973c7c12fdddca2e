//! What both directions of a connection share: the queue, the table, the SASL phase, how it ends.

use super::pending::{Answer, Pending};
use super::sasl::Sasl;
use super::{Clamp, Policy};
use crate::layout;
use crate::observation::{CloseReason, Exchange, Observation, Observer, VerdictCause};
use crate::types::{ApiKey, Direction, VersionRange};
use crate::versions::VersionTable;
use std::sync::Arc;
use std::time::Duration;

/// A broker that closes later than this after an acks=0 had some other reason.
const VERDICT_WINDOW: Duration = Duration::from_secs(10);

/// The part of a session that is not of one direction.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) policy: Arc<Policy>,
    pub(super) queue: Pending,
    pub(super) table: Option<Arc<VersionTable>>,
    pub(super) sasl: Sasl,
    /// Both directions pass unseen from now on.
    pub(super) unseen: bool,
    pub(super) draining: bool,
    /// The request lane stands at a head and takes no more.
    pub(super) stopped: bool,
    /// The client has been told the end, so that it sends no more; what it sent before still goes.
    pub(super) parted: bool,
    /// The Produce before had acks=0: what such a client has sent, nobody will send again.
    pub(super) sends_acks0: bool,
    /// An answer has begun and has not passed to its end.
    pub(super) answering: bool,
    /// A frame in either direction will never be whole.
    pub(super) truncated: bool,
    /// Decided by the direction that ended first.
    pub(super) ending: Option<CloseReason>,
    /// The request that the broker was sent last, and when, if it was a Produce with acks=0.
    pub(super) last_acks0: Option<(Exchange, Duration)>,
    /// Its topics, for its verdict.
    pub(super) topics: Topics,
}

impl Shared {
    pub(super) fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            queue: Pending::default(),
            table: None,
            sasl: Sasl::None,
            unseen: false,
            draining: false,
            stopped: false,
            parted: false,
            sends_acks0: false,
            answering: false,
            truncated: false,
            ending: None,
            last_acks0: None,
            topics: Topics::default(),
        }
    }

    /// Whether anything on this connection must be rewritten, so that it cannot go on unread.
    pub(super) fn rewrites(&self) -> bool {
        self.policy.clamp != Clamp::Off
    }

    /// Whether `version` of `api_key` is one that we can read or this connection's broker speaks.
    pub(super) fn knows(&self, api_key: ApiKey, version: i16) -> bool {
        let within = |range: VersionRange| range.contains(version);
        layout::versions(api_key).is_some_and(within)
            || (self.table.as_ref())
                .and_then(|table| table.row(api_key))
                .and_then(|row| row.broker.range())
                .is_some_and(within)
    }

    #[inline]
    pub(super) fn in_flight(&self) -> Observation<'static> {
        Observation::InFlight(self.queue.len() as u32)
    }

    /// Whether an answer is still to come that must come, or to come to its end.
    pub(super) fn awaits_answer(&self) -> bool {
        self.answering || self.queue.expected().is_some()
    }

    /// A direction has ended: the first one to do so says why the connection did.
    pub(super) fn ended(&mut self, reason: CloseReason) {
        self.ending.get_or_insert(reason);
    }

    /// The broker has closed: tells which request it closed upon, if it looks like one.
    pub(super) fn verdict(
        &mut self,
        at: u64,
        now: Duration,
        to: &mut impl Observer,
    ) -> Option<CloseReason> {
        if self.ending.is_some() {
            return None; // the client has left: no wonder that the broker closes
        }
        let (exchange, cause, topics, reason) = if let Some(entry) =
            self.queue.front().filter(|entry| entry.opaque)
        {
            let reason = CloseReason::BrokerAfterOpaque;
            (entry.exchange, VerdictCause::Opaque, "", reason)
        } else {
            let (exchange, _) = self.last_acks0.filter(|(_, ended)| {
                !self.queue.holds(Answer::Expected) && now.saturating_sub(*ended) <= VERDICT_WINDOW
            })?;
            let reason = CloseReason::BrokerAfterAcks0;
            (exchange, VerdictCause::Acks0, self.topics.text(), reason)
        };
        let verdict = Observation::Verdict {
            exchange,
            cause,
            topics,
        };
        to.observe(Direction::Response, at, verdict);
        Some(reason)
    }
}

/// Names of a few topics, bounded in number and length.
#[derive(Debug, Default)]
pub(super) struct Topics {
    text: String,
    count: u32,
}

impl Topics {
    const MOST: u32 = 8;
    const MOST_BYTES: usize = 512;

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.count = 0;
    }

    /// Begins the name of one more topic.
    pub(super) fn begin(&mut self) {
        self.count = self.count.saturating_add(1);
        if self.count > 1 && self.count <= Self::MOST {
            self.text.push_str(", ");
        }
    }

    /// A piece of the topic's name, or of its id in hex digits.
    pub(super) fn piece(&mut self, piece: &[u8], is_id: bool) {
        if self.count > Self::MOST {
            return;
        }
        for byte in piece {
            if self.text.len() >= Self::MOST_BYTES {
                return;
            }
            match byte {
                _ if is_id => {
                    for digit in [byte >> 4, byte & 15] {
                        let digit = char::from_digit(u32::from(digit), 16);
                        self.text.push(digit.unwrap_or('?'));
                    }
                }
                0x21..=0x7e => self.text.push(char::from(*byte)),
                _ => self.text.push('?'),
            }
        }
    }

    fn text(&self) -> &str {
        &self.text
    }
}
