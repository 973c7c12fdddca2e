//! The tape of a connection: its latest frames as they were received, minus holes.
//!
//! It hears what the session observes in what it is shown, which costs a few instructions each time, and
//! copies when the session has answered, while the bytes are still in the lane's buffer: all that may be
//! kept, for the end of each frame and the start of the next follow each other in the stream as well as
//! here. Kept is what is known to be allowed: bytes that were shown and passed, of a frame whose head was
//! told, up to where it turned out not to be understood, and none that a hole covers. All else is missing
//! here, and so a hole when the tape is read.
//!
//! The trap: a frame may turn out to be malformed when its first bytes stand here already. They are
//! wiped out then, and whoever reads cuts such a frame back to its header, as one that has not ended.
//!
//! How to read it: [`Tape::snapshot`] gives all of it, [`Tape::snapshot_since`] what came later.
//! In the middle of a poll the bytes of that poll are not here yet: whoever wants them waits for
//! [`Tape::settled`]. [`Usage`] tells what all tapes of the process take.

mod arena;
mod entry;
mod frames;
mod keep;
mod left;
mod recorder;
mod reel;
mod shared;
mod snapshot;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use arena::{Arena, Settings, Usage};
pub(crate) use recorder::Recorder;
pub(crate) use snapshot::Mark;

use self::entry::{Note, Told};
use self::left::{Left, What};
use self::reel::{CHUNK, CHUNKS, Reel};
use klamp_codec::layout;
use klamp_codec::observation::{Exchange, Observation, OpaqueReason};
use klamp_codec::{Direction, ErrorCode};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Bytes that are kept of a frame, holes not counted: an eighth of what is kept of its connection.
const FRAME: u64 = (CHUNK * CHUNKS / 8) as u64;
/// What a hole counts for in a longer frame: of very many the first ones are told, or they would cost more
/// than the bytes.
const HOLE: u64 = 512;
/// Error codes that are noted of such a frame.
const ERRORS: u8 = 16;

/// The latest frames of a connection.
pub(crate) struct Tape {
    arena: Rc<Arena>,
    sides: [Side; 2],
    /// When what is being looked at was read.
    now: Cell<Instant>,
    /// Frames that have begun.
    frames: Cell<u64>,
    /// What was told last of an answer.
    told: Cell<Option<Told>>,
    /// The end of an answer that many connections get alike; 0: none is being shown.
    common: Cell<u64>,
    reel: RefCell<Reel>,
}

/// How far the tape has come with one direction; offsets in its stream.
#[derive(Default)]
struct Side {
    /// Of the next byte that is not settled: the first of those shown.
    at: Cell<u64>,
    /// Up to here all is kept that may be.
    copied: Cell<u64>,
    /// The first frame that begins there or behind it.
    first: Cell<u64>,
    /// Where the latest frame begins, and ends.
    frame: Cell<u64>,
    end: Cell<u64>,
    /// Of the latest frame that is not kept to its end: what is left out of it.
    cut: Cut,
    /// Whether the latest frame has passed before all of it was there.
    is_owed: Cell<bool>,
    /// The last bits of the end of the frame that was noted last as changed: one that is taken away piece
    /// by piece is noted once.
    changed: Cell<u32>,
}

/// What is left out of a frame up to its end.
#[derive(Default)]
struct Cut {
    from: Cell<u64>,
    upto: Cell<u64>,
    /// Whether it begins behind the header of the frame at `from`, rather than there.
    spares_header: Cell<bool>,
    /// How many of its error codes are noted.
    errors: Cell<u8>,
}

impl Tape {
    /// The tape of a connection whose first byte is there.
    pub(crate) fn begin(arena: &Rc<Arena>, now: Instant) -> Rc<Self> {
        let tape = Rc::new(Self {
            arena: arena.clone(),
            sides: Default::default(),
            now: Cell::new(now),
            frames: Cell::new(0),
            told: Cell::default(),
            common: Cell::default(),
            reel: RefCell::default(),
        });
        arena.join();
        tape
    }

    /// The session is about to be asked.
    #[inline]
    pub(crate) fn asked(&self, now: Instant) {
        self.now.set(now);
    }

    /// The same in nanoseconds since the arena's start.
    #[inline]
    fn nanos(&self) -> u64 {
        self.arena.nanos(self.now.get())
    }

    /// Hears an observation that the session makes.
    #[inline(always)]
    pub(crate) fn observe(self: &Rc<Self>, direction: Direction, at: u64, what: &Observation<'_>) {
        match what {
            Observation::RequestHead { frame_bytes, .. } => {
                self.frame(direction, at, *frame_bytes);
            }
            Observation::ResponseHead {
                exchange,
                frame_bytes,
                latency,
                has_layout,
                ..
            } => {
                self.frame(direction, at, *frame_bytes);
                self.answers(at, *exchange, *latency);
                if !has_layout {
                    self.opaque(direction, unreadable(*exchange));
                }
            }
            Observation::Hole { bytes, records } => {
                let what = if *records { What::Records } else { What::Field };
                self.hole(direction, Left::new(at, *bytes, what));
            }
            Observation::Opaque { reason, .. } => self.opaque(direction, *reason),
            Observation::Trailing { bytes, .. } => {
                let starts = at.saturating_sub(u64::from(*bytes));
                self.hole(direction, Left::new(starts, *bytes, What::Field));
            }
            Observation::Learned(_) => self.common.set(self.side(direction).end.get()),
            Observation::Token { frame_bytes } => self.token(direction, at, *frame_bytes),
            _ => {}
        }
    }

    #[inline]
    fn side(&self, direction: Direction) -> &Side {
        &self.sides[direction as usize]
    }

    /// A frame begins at `at`.
    #[inline(always)]
    fn frame(&self, direction: Direction, at: u64, bytes: u64) {
        let side = self.side(direction);
        let before = side.end.replace(at + bytes);
        if before != at {
            self.gap(before, at);
        }
        side.frame.set(at);
        if bytes > FRAME {
            self.cut(direction, at + FRAME, false);
        }
        self.frames.set(self.frames.get() + 1);
    }

    /// Between frames something has passed of which nothing was told.
    #[cold]
    fn gap(&self, from: u64, upto: u64) {
        let bytes = u32::try_from(upto.saturating_sub(from)).unwrap_or(u32::MAX);
        (self.arena.left.borrow_mut()).push(Left::new(from, bytes, What::Field));
    }

    /// The frame that begins at `at` is the answer to this request: told where that differs from what was
    /// told of the one before.
    #[inline(always)]
    fn answers(self: &Rc<Self>, at: u64, exchange: Exchange, latency: Option<Duration>) {
        let told = Told::new(exchange, latency);
        if self.told.get() != Some(told) {
            self.put_answer(at, told);
        }
    }

    /// Leaves something out of the latest frame.
    #[inline(always)]
    fn hole(&self, direction: Direction, hole: Left) {
        let cut = &self.side(direction).cut;
        if hole.start >= cut.upto.get() {
            self.arena.left.borrow_mut().push(hole);
        } else if hole.start < cut.from.get() {
            self.hole_in_part(cut, hole);
        }
    }

    /// Behind that, nothing is kept of the latest frame, so that holes there are not worth hearing of: a
    /// very large frame has thousands.
    #[inline(always)]
    pub(crate) fn holes_upto(&self, direction: Direction) -> u64 {
        let side = self.side(direction);
        match side.cut.upto.get() == side.end.get() {
            true => side.cut.from.get(),
            false => u64::MAX,
        }
    }

    /// The same in a frame that is kept in part. What is left out does not count.
    #[inline(never)]
    fn hole_in_part(&self, cut: &Cut, hole: Left) {
        let what = match hole.what {
            What::Records if self.arena.settings.records => What::Heads,
            what => what,
        };
        let bytes = u64::from(hole.bytes);
        let from = (cut.from.get() + bytes).saturating_sub(HOLE);
        cut.from
            .set(from.max(hole.start + bytes).min(cut.upto.get()));
        (self.arena.left.borrow_mut()).push(Left { what, ..hole });
    }

    /// The latest frame is left out from there on.
    #[cold]
    #[inline(never)]
    fn cut(&self, direction: Direction, from: u64, spares_header: bool) {
        let side = self.side(direction);
        if side.cut.upto.get() <= side.frame.get()
            && let Some(cut) = side.cut.left()
        {
            // (that of a frame before, which may not be copied yet)
            left::insert(&mut self.arena.left.borrow_mut(), cut);
        }
        side.cut.from.set(from);
        side.cut.upto.set(side.end.get());
        side.cut.spares_header.set(spares_header);
        side.cut.errors.set(0);
    }

    /// The latest frame is not understood: no more of it than its header is kept.
    #[cold]
    #[inline(never)]
    fn opaque(self: &Rc<Self>, direction: Direction, reason: OpaqueReason) {
        let (side, frame) = (self.side(direction), self.side(direction).frame.get());
        self.note(direction, frame, Note::Opaque(reason));
        if self.arena.settings.opaque && side.end.get() - frame <= FRAME {
            return;
        }
        self.arena
            .left
            .borrow_mut()
            .retain(|left| left.start < frame);
        let is_here = side.copied.get() > frame;
        if !is_here {
            return self.cut(direction, frame, true);
        }
        let header = match direction {
            Direction::Request => {
                let (reel, shared) = (self.reel.borrow(), self.arena.shared.borrow());
                frames::header_of(reel.chunks(), &shared, frame)
            }
            Direction::Response => frames::ANSWER_HEADER,
        };
        self.cut(direction, frame + header, false);
        self.wipe(direction, frame + header);
    }

    /// So often this code stands in the latest response: told of one that is not kept to its end.
    pub(crate) fn error(self: &Rc<Self>, code: ErrorCode, count: u32) {
        let side = self.side(Direction::Response);
        let is_cut = side.cut.upto.get() == side.end.get() && side.cut.from.get() < side.end.get();
        let errors = side.cut.errors.get();
        if is_cut && errors < ERRORS {
            side.cut.errors.set(errors + 1);
            self.note(
                Direction::Response,
                side.frame.get(),
                Note::Error(code, count),
            );
        }
    }

    /// A raw SASL token takes the place of a frame.
    #[cold]
    fn token(&self, direction: Direction, at: u64, bytes: u64) {
        let side = self.side(direction);
        side.frame.set(at);
        side.end.set(at.saturating_add(bytes));
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        (self.arena.left.borrow_mut()).push(Left::new(at, bytes, What::Token));
        self.frames.set(self.frames.get() + 1);
    }

    /// Another frame, of so many bytes, goes on in place of the latest one: none for a request that is
    /// answered here, since nobody here reads its version.
    #[cold]
    #[inline(never)]
    fn changed(self: &Rc<Self>, direction: Direction, bytes: u64) {
        let side = self.side(direction);
        let end = side.end.get() as u32;
        if side.changed.replace(end) == end {
            return;
        }
        match direction {
            Direction::Request => {
                self.opaque(direction, OpaqueReason::UnknownVersion);
                self.note(direction, side.frame.get(), Note::AnsweredHere);
            }
            Direction::Response => {
                self.note(direction, side.frame.get(), Note::Rewritten(bytes));
            }
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        let (chunks, bytes) = self.reel.get_mut().size();
        self.arena.leave(chunks, bytes);
    }
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tape({} frames)", self.frames.get())
    }
}

/// Why nobody here reads the answer to a request.
#[cold]
fn unreadable(exchange: Exchange) -> OpaqueReason {
    match layout::versions(exchange.api_key) {
        None if exchange.api_key.name().is_none() => OpaqueReason::UnknownKey,
        Some(known) if known.contains(exchange.api_version) => OpaqueReason::NoLayout,
        _ => OpaqueReason::UnknownVersion,
    }
}
