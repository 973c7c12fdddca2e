//! What the body of the request under way tells: gathered piece by piece from the walk, in memory
//! that is bounded whatever a peer sends.

use super::pending::{Answer, Entry};
use super::sasl::{Exchanges, Mechanism};
use super::shared::Shared;
use crate::layout::{Event, Role, Value};
use crate::observation::{Observation, Observer};
use crate::types::Direction;

/// Longest software name or version that is told, in bytes; more of it is cut.
const MOST_SOFTWARE: usize = 255;

/// Of one request at a time.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Whether it waits for an answer: then it is the youngest in the queue, unless it has left already.
    is_queued: bool,
    acks0: bool,
    in_topic: bool,
    rare: Option<Box<Rare>>,
}

/// What few requests tell.
// (freed with the next one and not kept: most connections tell it once)
#[derive(Debug, Default)]
struct Rare {
    mechanism: Mechanism,
    software_name: Vec<u8>,
    software_version: Vec<u8>,
}

impl Facts {
    /// A request has begun, and is the youngest in the queue.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.is_queued = true;
        self.acks0 = false;
        self.in_topic = false;
        if self.rare.is_some() {
            self.rare = None;
        }
    }

    /// Whether the request is a Produce with acks=0.
    pub(super) fn acks0(&self) -> bool {
        self.acks0
    }

    /// How many tokens the mechanism of a SaslHandshake request takes.
    pub(super) fn exchanges(&self) -> Exchanges {
        self.rare.as_ref()?.mechanism.exchanges()
    }

    /// The request's entry, while it waits for its answer.
    #[inline]
    pub(super) fn entry<'a>(&self, cx: &'a mut Shared) -> Option<&'a mut Entry> {
        cx.queue.youngest().filter(|_| self.is_queued)
    }

    /// Takes in one field, which stands at `at` in the stream.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        event: Event<'_>,
        at: u64,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) {
        match (event.role, event.value) {
            (Role::TopicName | Role::TopicId, _) if !self.acks0 => {}
            // A consumer.
            (Role::ReplicaId, Value::Int(..0)) => {}
            (Role::ReplicaId, Value::Int(id)) => Self::take_replica(id, at, to),
            (Role::Acks, Value::Int(acks)) => self.take_acks(acks, at, cx, to),
            (Role::Wait, Value::Int(ms)) => {
                if let (Some(entry), Ok(ms)) = (self.entry(cx), i32::try_from(ms)) {
                    entry.wait_ms = ms;
                }
            }
            _ => self.take_known(event, at, cx, to),
        }
    }

    /// The same, but for what comes with most messages.
    // (those have ways of their own, so that no event is put into memory to be looked at there)
    #[inline(never)]
    fn take_known(&mut self, event: Event<'_>, at: u64, cx: &mut Shared, to: &mut impl Observer) {
        match (event.role, event.value) {
            (Role::TopicName | Role::TopicId, Value::Piece(piece, rest)) if self.acks0 => {
                if !self.in_topic {
                    cx.topics.begin();
                }
                cx.topics.piece(piece, event.role == Role::TopicId);
                self.in_topic = rest > 0;
            }
            (Role::Mechanism, Value::Piece(piece, _)) => self.rare().mechanism.piece(piece),
            (Role::SoftwareName, Value::Piece(piece, _)) => {
                gather(&mut self.rare().software_name, piece);
            }
            (Role::SoftwareVersion, Value::Piece(piece, rest)) => {
                let rare = self.rare();
                gather(&mut rare.software_version, piece);
                if rest == 0 {
                    let software = Observation::Software {
                        name: &rare.software_name,
                        version: &rare.software_version,
                    };
                    to.observe(Direction::Request, at, software);
                }
            }
            _ => {}
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// A broker asks.
    #[inline(never)]
    fn take_replica(id: i64, at: u64, to: &mut impl Observer) {
        let replica_id = i32::try_from(id).unwrap_or(i32::MAX);
        let fetch = Observation::ReplicaFetch { replica_id };
        to.observe(Direction::Request, at, fetch);
    }

    /// Acks say whether a Produce is answered at all.
    #[inline(never)]
    fn take_acks(&mut self, acks: i64, at: u64, cx: &mut Shared, to: &mut impl Observer) {
        let acks = i16::try_from(acks).unwrap_or_default();
        to.observe(Direction::Request, at, Observation::Acks(acks));
        cx.sends_acks0 = acks == 0;
        if acks != 0 {
            if let Some(entry) = self.entry(cx) {
                entry.answer = Answer::Expected;
            }
            return;
        }
        self.acks0 = true;
        cx.topics.clear();
        if self.entry(cx).is_some() {
            cx.queue.withdraw();
            self.is_queued = false;
            to.observe(Direction::Request, at, cx.in_flight());
        }
    }
}

fn gather(into: &mut Vec<u8>, piece: &[u8]) {
    let room = MOST_SOFTWARE.saturating_sub(into.len());
    into.extend_from_slice(piece.get(..room).unwrap_or(piece));
}
