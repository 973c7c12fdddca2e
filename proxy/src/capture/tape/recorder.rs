//! A connection's part in the recorder: nothing, or a tape once its first byte is there.

use super::{Arena, Tape};
use klamp_codec::observation::Observation;
use klamp_codec::session::{Input, Step};
use klamp_codec::{Direction, ErrorCode};
use std::rc::Rc;

/// Whether a connection is recorded, and where.
#[derive(Debug, Default)]
pub(crate) enum Recorder {
    /// It is not.
    #[default]
    Off,
    /// It will be from its first byte on: many connections never say anything.
    Blank(Rc<Arena>),
    /// It is.
    On(Rc<Tape>),
}

impl Recorder {
    /// `None`: nothing is recorded.
    pub(crate) fn new(arena: Option<&Rc<Arena>>) -> Self {
        arena.map_or(Self::Off, |arena| Self::Blank(arena.clone()))
    }

    /// The tape, where there is one.
    pub(crate) fn tape(&self) -> Option<&Rc<Tape>> {
        match self {
            Self::On(tape) => Some(tape),
            Self::Off | Self::Blank(_) => None,
        }
    }

    /// The session is about to be asked about `input`.
    #[inline]
    pub(crate) fn asked(&mut self, input: &Input<'_>) {
        match self {
            Self::On(tape) => tape.asked(input.now),
            Self::Blank(arena) if !input.shown.is_empty() => {
                *self = Self::On(Tape::begin(arena, input.now));
            }
            Self::Off | Self::Blank(_) => {}
        }
    }

    /// The session observes something in what it is shown.
    #[inline(always)]
    pub(crate) fn observe(&self, direction: Direction, at: u64, what: &Observation<'_>) {
        if let Self::On(tape) = self {
            tape.observe(direction, at, what);
        }
    }

    /// Up to which offset of the stream it wants to hear of holes.
    #[inline(always)]
    pub(crate) fn holes_upto(&self, direction: Direction) -> u64 {
        match self {
            Self::On(tape) => tape.holes_upto(direction),
            Self::Off | Self::Blank(_) => 0,
        }
    }

    /// So often this code stands in the latest response.
    pub(crate) fn error(&self, code: ErrorCode, count: u32) {
        if let Self::On(tape) = self {
            tape.error(code, count);
        }
    }

    /// Bytes come that were passed before they were there: the first of `owed` that had not.
    #[inline]
    pub(crate) fn came(&self, direction: Direction, owed: u64, bytes: &[u8]) {
        if let Self::On(tape) = self {
            tape.came(direction, owed, bytes);
        }
    }

    /// The session has answered.
    #[inline]
    pub(crate) fn settled(&self, direction: Direction, input: &Input<'_>, step: &Step) {
        if let Self::On(tape) = self {
            tape.settled(direction, input, step);
        }
    }
}
