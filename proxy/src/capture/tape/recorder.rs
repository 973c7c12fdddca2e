//! A connection's part in the recorder: nothing, or a tape once its first byte is there.

use super::{Arena, Take, Tape};
use klamp_codec::Direction;
use klamp_codec::session::Input;
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

    /// The session is about to be asked about `input`: the tape, where there is one from now on.
    #[inline]
    pub(crate) fn asked(&mut self, input: &Input<'_>) -> Option<Rc<Tape>> {
        match self {
            Self::On(tape) => Some(tape.clone()),
            Self::Blank(arena) if !input.shown.is_empty() => {
                let tape = Tape::begin(arena);
                *self = Self::On(tape.clone());
                Some(tape)
            }
            Self::Off | Self::Blank(_) => None,
        }
    }

    /// Bytes come that were passed before they were there: the first of `owed` that had not.
    #[inline]
    pub(crate) fn came(&self, direction: Direction, owed: u64, bytes: &[u8]) {
        if let Self::On(tape) = self {
            Take::came(tape, direction, owed, bytes);
        }
    }
}
