//! The message that a capture was taken for, and which of its frames that is.
//!
//! The trap: no message has a name. A client may give all its requests the same correlation id, and behind
//! the answer that triggers others like it may stand before the capture is taken. So what triggers is known
//! by its place in the stream.

use klamp_codec::Direction;
use klamp_codec::kept::{Kept, Reading};
use klamp_codec::observation::{Exchange, OpaqueReason};

/// The message that a capture was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// Whether it is a request or an answer.
    pub(crate) direction: Direction,
    /// Which request it is, or answers.
    pub(crate) exchange: Exchange,
    pub(crate) place: Place,
}

/// Where a message stands: offsets in the stream of its direction, as what is observed has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It begins there.
    At(u64),
    /// It begins before that, and ends there or behind.
    Around(u64),
    /// It is malformed, and begins there or its body does: which may be where it ends, and another begins.
    Malformed(u64),
    /// Of a request upon which the broker closed: it is the latest of its exchange that was whole.
    Latest,
}

impl Cause {
    /// Which of these frames it is, which are in order of time; `None` where it is not kept.
    pub(crate) fn among(&self, frames: &[&Kept]) -> Option<usize> {
        let is = |kept: &&Kept| self.is(kept);
        match self.place {
            Place::Latest => frames.iter().rposition(is),
            _ => frames.iter().position(is),
        }
    }

    fn is(&self, kept: &Kept) -> bool {
        let end = kept.at.saturating_add(kept.bytes);
        let is_there = match self.place {
            Place::At(at) => kept.at == at,
            Place::Around(at) => kept.at < at && at <= end,
            Place::Malformed(at) => {
                let is_malformed = kept.reading == Reading::Opaque(OpaqueReason::Malformed);
                is_malformed && (kept.at..=end).contains(&at)
            }
            Place::Latest => kept.reading != Reading::Unfinished,
        };
        is_there && kept.direction == self.direction && kept.exchange == Some(self.exchange)
    }
}
