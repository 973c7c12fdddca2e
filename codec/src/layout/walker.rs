//! Reads bytes by the layout table: resumable at any byte, in constant memory, without the heap.

use super::Role;
use crate::types::{ApiKey, Direction};

/// Where a walk begins: what follows a request's client id or a response's correlation id, the
/// header's tagged fields included.
#[derive(Clone, Copy, Debug)]
pub struct Root {}

impl Root {
    /// `None` where the table does not read this message.
    pub fn find(direction: Direction, api_key: ApiKey, api_version: i16) -> Option<Self> {
        let _ = (direction, api_key, api_version);
        None
    }
}

/// A field with a role, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// What the field means.
    pub role: Role,
    /// Offset of the value's first byte (after a length or count, which is `width` bytes before it),
    /// from where the walk began.
    pub at: u32,
    /// Bytes of the length or count prefix for strings, bytes and arrays; of the value else.
    pub width: u32,
    /// The value.
    pub value: Value<'a>,
}

/// The value of a field, or a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Any integer or bool.
    Int(i64),
    /// A null string, bytes, array or struct.
    Null,
    /// The next piece of a string, bytes or uuid, and how many bytes of it are still to come. An
    /// empty string is one empty piece.
    Piece(&'a [u8], u32),
    /// So many unseen or skipped bytes (records).
    Skipped(u32),
    /// The number of elements of an array.
    Count(u32),
    /// An element of the array begins at `at` (its end is where the next begins or the array ends).
    Element,
    /// The array ends at `at`.
    End,
}

/// How far a walk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All that was fed is consumed or kept; feed more.
    NeedBytes,
    /// The next n bytes hold nothing of interest: feed them, or `skip` up to n of them.
    Skippable(u32),
    /// The message has been read to its end; bytes that follow in the frame are trailing bytes.
    Done,
}

/// Why bytes do not fit their layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// The body ends before the message does.
    #[error("the body ends inside a field at offset {at}")]
    Short {
        /// Offset from where the walk began.
        at: u32,
    },
}

/// A walk in progress.
#[derive(Clone, Debug)]
pub struct Walker {}

impl Walker {
    /// Starts at `root`, with `len` bytes of the frame left.
    pub fn new(root: Root, len: u32) -> Self {
        let _ = (root, len);
        Self {}
    }

    /// Reads on. Returns how many bytes of `bytes` are consumed and why it stopped. It consumes all
    /// it is fed unless the message is done (or failed): a value cut in two is kept inside.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(usize, Progress), WalkError> {
        let _ = (bytes, on);
        Ok((0, Progress::Done))
    }

    /// Goes `n` bytes forward, at most what `Skippable` said.
    pub fn skip(&mut self, n: u32) -> Result<(), WalkError> {
        let _ = n;
        Ok(())
    }
}
