//! Frames as a recorder kept them: the bytes as they were received, minus holes.
//!
//! The trap: what is kept is not always a message. A frame may have been of no layout, or may not have
//! come to its end, and then nobody can say where in it the secrets are: of such a frame no more than
//! the header is kept.

use crate::observation::{Exchange, OpaqueReason};
use crate::types::{Direction, ErrorCode};
use std::time::{Duration, SystemTime};

/// A frame, or the part of it that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Who sent it: the client a request, the broker a response.
    pub direction: Direction,
    /// Which request it is, or answers. `None` for a raw SASL token.
    pub exchange: Option<Exchange>,
    /// Offset in the stream of its direction of its first byte, the length field's; a frame that does
    /// not begin where the one before it ends comes after others that were not kept.
    pub at: u64,
    /// Bytes of the whole frame as received, its length field included.
    pub bytes: u64,
    /// When its first byte was seen.
    pub received: SystemTime,
    /// Of a response: from the request fully received to the first byte.
    pub latency: Option<Duration>,
    /// How far it was understood.
    pub reading: Reading,
    /// What was done to it on its way.
    pub change: Option<Change>,
    /// Error codes of a response, and how often each came, where not all of it is kept.
    pub errors: Vec<(ErrorCode, u32)>,
    /// From the first byte on, the length field's. They make up `bytes`, but for a frame that is not
    /// [`Reading::Whole`]: its rest was not kept.
    pub parts: Vec<Part>,
}

/// How far a frame was understood, and so what may be kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Read to its end by its layout: all that may be seen is kept.
    Whole,
    /// Not understood: kept up to the end of its header, or whole where that was asked for.
    Opaque(OpaqueReason),
    /// Has not come to its end: kept like one that was not understood.
    Unfinished,
    /// A raw SASL token, of which only the length is kept.
    Token,
}

/// What was done to a frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another frame, of so many bytes, went on in its place.
    Rewritten(u64),
    /// A request that was answered here, and that the broker never got.
    AnsweredHere,
}

/// A piece of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes as received.
    Bytes(Vec<u8>),
    /// So many bytes were not kept.
    Hole(u32),
}
