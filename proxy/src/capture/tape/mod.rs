//! The tape of a connection: its latest frames as they were received, minus holes.
//!
//! While the session looks at what it is shown, a [`Take`] hears what it observes, and then copies all that may
//! be kept: the end of each frame and the start of the next follow each other in the stream as well as
//! here. Kept is what is known to be allowed: bytes that were shown and passed, of a frame whose head was
//! told, up to where it turned out not to be understood, and none that is a hole. All else is missing
//! here, and so a hole when the tape is read.
//!
//! The trap: a frame may turn out to be malformed when its first bytes stand here already. They are
//! wiped out then, and whoever reads cuts such a frame back to its header, as one that has not ended.
//!
//! How to read it: [`Tape::snapshot`] gives all of it, [`Tape::snapshot_since`] what came later.
//! While the session is asked not all of what it is shown is here yet: whoever wants that waits for
//! [`Take::settle`]. [`Usage`] tells what all tapes of the process take.

mod arena;
mod cuts;
mod entry;
mod frames;
mod recorder;
mod reel;
mod shared;
mod snapshot;
mod take;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use arena::{Arena, Settings, Usage};
pub(crate) use recorder::Recorder;
pub(crate) use snapshot::Mark;
pub(crate) use take::Take;

use self::reel::{CHUNK, CHUNKS, Reel};
use klamp_codec::Direction;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes that are kept of a frame, holes not counted: an eighth of what is kept of its connection.
const FRAME: u64 = (CHUNK * CHUNKS / 8) as u64;
/// What a hole counts for in a longer frame: of very many the first ones are told, or they would cost more
/// than the bytes.
const HOLE: u64 = 512;
/// A frame is kept up to its end.
const WHOLE: u64 = u64::MAX;

/// The latest frames of a connection.
pub(crate) struct Tape {
    arena: Rc<Arena>,
    sides: [Side; 2],
    /// When what is being looked at was read, in nanoseconds since the process began to count.
    now: Cell<u64>,
    /// The end of an answer that many connections get alike; 0: none is being shown.
    common: Cell<u64>,
    /// Whether the arena knows that it has chunks.
    is_aged: Cell<bool>,
    reel: RefCell<Reel>,
}

/// How far the tape has come with one direction; offsets in its stream.
struct Side {
    /// Of the next byte that is not settled: the first of those shown.
    at: Cell<u64>,
    /// Up to here all is kept that may be.
    copied: Cell<u64>,
    /// The first frame that begins there or behind it.
    first: Cell<u64>,
    /// Where the latest frame begins, and how long it is.
    frame: Cell<u64>,
    bytes: Cell<u64>,
    /// Up to where the latest frame is kept; [`WHOLE`]: up to its end.
    limit: Cell<u64>,
    /// A frame with more bytes than that takes more than to note where it begins and how long it is.
    ordinary: Cell<u64>,
    /// Frames that have begun.
    frames: Cell<u64>,
    /// The last bits of the end of the frame that was noted last as changed: one that is taken away piece
    /// by piece is noted once.
    changed: Cell<u32>,
    /// Whether the latest frame has passed before all of it was there.
    is_owed: Cell<bool>,
    /// How many error codes are noted of the latest frame.
    errors: Cell<u8>,
}

impl Default for Side {
    fn default() -> Self {
        Self {
            at: Cell::default(),
            copied: Cell::default(),
            first: Cell::default(),
            frame: Cell::default(),
            bytes: Cell::default(),
            limit: Cell::new(WHOLE),
            ordinary: Cell::new(FRAME),
            frames: Cell::default(),
            changed: Cell::default(),
            is_owed: Cell::default(),
            errors: Cell::default(),
        }
    }
}

impl Side {
    /// Where the latest frame ends.
    #[inline(always)]
    fn end(&self) -> u64 {
        self.frame.get() + self.bytes.get()
    }
}

impl Tape {
    /// The tape of a connection whose first byte is there.
    pub(crate) fn begin(arena: &Rc<Arena>) -> Rc<Self> {
        let tape = Rc::new(Self {
            arena: arena.clone(),
            sides: Default::default(),
            now: Cell::default(),
            common: Cell::default(),
            is_aged: Cell::default(),
            reel: RefCell::default(),
        });
        arena.join();
        tape
    }

    /// Frames that have begun.
    fn frames(&self) -> u64 {
        self.sides.iter().map(|side| side.frames.get()).sum()
    }

    #[inline(always)]
    fn side(&self, direction: Direction) -> &Side {
        &self.sides[direction as usize]
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        let bytes = self.reel.get_mut().size();
        self.arena.leave(bytes, self.is_aged.get());
    }
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tape({} frames)", self.frames())
    }
}
