//! The tape of a connection: its latest frames as they were received, minus holes.
//!
//! It hears what the session observes while the bytes are still in the lane's buffer, and copies from
//! there: of a poll all that may be kept by one copy, for the end of each frame and the start of the next
//! follow each other in the stream as well as here. Kept is what is known to be allowed: bytes that were
//! shown and passed, of a frame whose head was told, up to where it turned out not to be understood, and
//! none that a hole covers. All else is missing here, and so a hole when the tape is read.
//!
//! The trap: a frame may turn out to be malformed when its first bytes stand here already. They are
//! wiped out then, and whoever reads cuts such a frame back to its header, as one that has not ended.
//!
//! How to read it: [`Tape::snapshot`] gives all of it, [`Tape::snapshot_since`] what came later.
//! In the middle of a poll the bytes of that poll are not here yet: whoever wants them waits for
//! [`Tape::settled`]. [`Usage`] tells what all tapes of the process take.

mod arena;
mod entry;
mod recorder;
mod reel;
mod snapshot;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use arena::{Arena, Settings, Usage};
pub(crate) use recorder::Recorder;
pub(crate) use snapshot::Mark;

use self::entry::{Head, Note, RUN};
use self::reel::{CHUNK, CHUNKS, Reel};
use klamp_codec::layout;
use klamp_codec::observation::{Exchange, Observation, OpaqueReason};
use klamp_codec::render::batch_bytes;
use klamp_codec::session::{Input, Step};
use klamp_codec::{ApiKey, Direction};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

/// Bytes that are kept of a frame, holes not counted: an eighth of what is kept of its connection.
const FRAME: u64 = (CHUNK * CHUNKS / 8) as u64;
/// Bytes of a batch before its records (RecordBatch v2).
const BATCH_HEAD: u64 = 61;
/// What such a head takes here.
const HEAD_COSTS: u64 = BATCH_HEAD + RUN as u64;

/// The latest frames of a connection.
pub(crate) struct Tape {
    arena: Rc<Arena>,
    sides: [Side; 2],
    /// When what is being looked at was read.
    now: Cell<Instant>,
    /// The same in nanoseconds since the arena's start.
    nanos: Cell<u64>,
    /// Frames that have begun.
    frames: Cell<u64>,
    reel: RefCell<Reel>,
}

/// How far the tape has come with one direction; offsets in its stream.
#[derive(Default)]
struct Side {
    /// Of the next byte that is not settled: the first of those shown.
    at: Cell<u64>,
    /// Up to here all is kept that may be.
    copied: Cell<u64>,
    /// Up to here bytes of the latest frame may be kept, as far as is known; may lie behind its end.
    limit: Cell<u64>,
    /// Where the latest frame begins, and ends.
    frame: Cell<u64>,
    end: Cell<u64>,
    /// Bytes of its header.
    header: Cell<u16>,
    /// Up to here frames have ended.
    ended: Cell<u64>,
    /// The frame that the latest step changed: one that is taken away piece by piece is noted once.
    changed: Cell<Option<u64>>,
}

impl Tape {
    /// The tape of a connection whose first byte is there.
    pub(crate) fn begin(arena: &Rc<Arena>, now: Instant) -> Rc<Self> {
        let tape = Rc::new(Self {
            arena: arena.clone(),
            sides: Default::default(),
            now: Cell::new(now),
            nanos: Cell::new(arena.nanos(now)),
            frames: Cell::new(0),
            reel: RefCell::default(),
        });
        arena.join();
        tape
    }

    /// The session is about to be asked.
    #[inline]
    pub(crate) fn asked(&self, now: Instant) {
        if now != self.now.get() {
            self.now.set(now);
            self.nanos.set(self.arena.nanos(now));
        }
    }

    /// Hears an observation that the session makes of `shown`.
    #[inline(always)]
    pub(crate) fn observe(
        self: &Rc<Self>,
        direction: Direction,
        at: u64,
        what: &Observation<'_>,
        shown: &[u8],
    ) {
        match what {
            Observation::RequestHead {
                exchange,
                client_id,
                frame_bytes,
            } => {
                let header = request_header(*exchange, *client_id);
                let head = Head::new(direction, *exchange, at, *frame_bytes, header);
                self.head(&head, shown);
            }
            Observation::ResponseHead {
                exchange,
                frame_bytes,
                latency,
                has_layout,
                ..
            } => {
                let mut head = Head::new(direction, *exchange, at, *frame_bytes, 8);
                head.latency = *latency;
                self.head(&head, shown);
                if !has_layout {
                    self.opaque(direction, unreadable(*exchange));
                }
            }
            // (most holes of a large answer are where nothing is kept any more)
            Observation::Hole { bytes, records } if at < self.side(direction).kept_to() => {
                self.hole(direction, at, *bytes, *records, shown);
            }
            Observation::RequestEnd { .. } | Observation::ResponseEnd { .. } => {
                self.side(direction).ended.set(at);
            }
            Observation::Opaque { reason, .. } => self.opaque(direction, *reason),
            Observation::Trailing { bytes, .. } => {
                let starts = at.saturating_sub(u64::from(*bytes));
                if starts < self.side(direction).kept_to() {
                    self.hole(direction, starts, *bytes, false, shown);
                }
            }
            Observation::Token { frame_bytes } => {
                self.note(direction, at, Note::Token(*frame_bytes));
                self.frames.set(self.frames.get() + 1);
            }
            _ => {}
        }
    }

    /// The session has answered: what it lets pass of what it was shown is kept now.
    #[inline]
    pub(crate) fn settled(self: &Rc<Self>, direction: Direction, input: &Input<'_>, step: &Step) {
        let side = self.side(direction);
        let settled = match step {
            Step::Pass(n) => *n,
            Step::Replace { drop, with } => {
                if *drop > 0 {
                    self.changed(direction, with.len() as u64);
                }
                *drop as u64
            }
            // What it closes upon goes nowhere.
            Step::Close(_) => input.shown.len() as u64,
            Step::Need(_) | Step::Wait | Step::Finish => return,
        };
        let at = side.at.get().saturating_add(settled);
        self.copy(direction, at, input.shown);
        side.at.set(at);
    }

    /// Bytes come that were passed before they were there: the first of `owed` that had not.
    #[inline]
    pub(crate) fn came(self: &Rc<Self>, direction: Direction, owed: u64, bytes: &[u8]) {
        let at = self.side(direction).at.get().saturating_sub(owed);
        self.copy_from(at, direction, u64::MAX, bytes);
    }

    #[inline]
    fn side(&self, direction: Direction) -> &Side {
        &self.sides[direction as usize]
    }

    #[inline(always)]
    fn head(self: &Rc<Self>, head: &Head, shown: &[u8]) {
        let at = head.at;
        let side = self.side(head.direction);
        // As a rule the one before has been kept to its end, or will be by the same copy as this one.
        if side.end.get() != at || side.limit.get() < at || side.copied.get() > at {
            self.skip(head.direction, side.kept_to(), at, shown);
        }
        side.frame.set(at);
        side.end.set(at + u64::from(head.bytes));
        side.limit.set(at + FRAME);
        side.header.set(head.header);
        self.put_head(head);
    }

    /// Leaves out `bytes` from `at` on, but for the heads of batches in records.
    #[inline(never)]
    fn hole(
        self: &Rc<Self>,
        direction: Direction,
        at: u64,
        bytes: u32,
        records: bool,
        shown: &[u8],
    ) {
        let side = self.side(direction);
        let limit = side.limit.get();
        if records && self.arena.settings.records {
            return;
        }
        let end = (at + u64::from(bytes)).min(side.end.get());
        // What is left out does not count; the heads of batches do, each with what it costs here.
        let beyond = limit + u64::from(bytes);
        side.limit.set(beyond);
        let (mut kept, mut heads) = (at, 0);
        if records && let Some(batch) = batch(side, at, end, shown) {
            (kept, heads) = (at + BATCH_HEAD, HEAD_COSTS);
            let next = at + batch;
            if next + BATCH_HEAD <= end {
                (kept, heads) = self.more_batches(direction, at, next, end, limit, shown);
            }
        }
        self.copy(direction, kept, shown);
        side.copied.set(end);
        side.limit.set(beyond.saturating_sub(heads));
    }

    /// Behind a batch at `at` there may be another at `next`: where the head of the last one ends that is
    /// kept, and what all of them cost.
    #[cold]
    #[inline(never)]
    fn more_batches(
        self: &Rc<Self>,
        direction: Direction,
        at: u64,
        mut next: u64,
        end: u64,
        limit: u64,
        shown: &[u8],
    ) -> (u64, u64) {
        let (mut kept, mut heads) = (at + BATCH_HEAD, HEAD_COSTS);
        while let Some(batch) = batch(self.side(direction), next, end, shown)
            && at + heads < limit
        {
            self.skip(direction, kept, next, shown);
            kept = next + BATCH_HEAD;
            heads += HEAD_COSTS;
            next = next.saturating_add(batch);
        }
        (kept, heads)
    }

    /// Keeps what is shown up to `upto`, and goes on at `next`.
    #[cold]
    #[inline(never)]
    fn skip(self: &Rc<Self>, direction: Direction, upto: u64, next: u64, shown: &[u8]) {
        self.copy(direction, upto, shown);
        self.side(direction).copied.set(next);
    }

    /// Keeps what is shown from where it has come to, up to `upto`.
    #[inline(always)]
    fn copy(self: &Rc<Self>, direction: Direction, upto: u64, shown: &[u8]) {
        self.copy_from(self.side(direction).at.get(), direction, upto, shown);
    }

    /// The same where `bytes` begin at `at`.
    #[inline(always)]
    fn copy_from(self: &Rc<Self>, at: u64, direction: Direction, upto: u64, bytes: &[u8]) {
        let side = self.side(direction);
        let from = side.copied.get().max(at);
        let upto = upto
            .min(side.kept_to())
            .min(at.saturating_add(bytes.len() as u64));
        if from < upto
            && let Some(bytes) = bytes.get((from - at) as usize..(upto - at) as usize)
        {
            side.copied.set(upto);
            self.run(direction, from, bytes);
        }
    }

    /// The latest frame is not understood: no more of it than its header is kept.
    #[cold]
    #[inline(never)]
    fn opaque(self: &Rc<Self>, direction: Direction, reason: OpaqueReason) {
        let side = self.side(direction);
        self.note(direction, side.frame.get(), Note::Opaque(reason));
        if !self.arena.settings.opaque {
            let header = side.frame.get() + u64::from(side.header.get());
            side.limit.set(side.limit.get().min(header));
            self.wipe(direction, side.kept_to());
        }
    }

    /// Another frame, of so many bytes, goes on in place of the latest one: none for a request that is
    /// answered here, since nobody here reads its version.
    #[cold]
    #[inline(never)]
    fn changed(self: &Rc<Self>, direction: Direction, bytes: u64) {
        let side = self.side(direction);
        let frame = side.frame.get();
        if side.changed.replace(Some(frame)) == Some(frame) {
            return;
        }
        match direction {
            Direction::Request => {
                self.opaque(direction, OpaqueReason::UnknownVersion);
                self.note(direction, frame, Note::AnsweredHere);
            }
            Direction::Response => self.note(direction, frame, Note::Rewritten(bytes)),
        }
    }
}

impl Side {
    /// Up to here all is or will be kept that may be.
    #[inline]
    fn kept_to(&self) -> u64 {
        self.limit.get().min(self.end.get())
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

/// Bytes of a request's header, up to the client id's end.
#[inline]
fn request_header(exchange: Exchange, client_id: Option<&[u8]>) -> u16 {
    match client_id {
        Some(client_id) => 14 + client_id.len() as u16,
        None if exchange.api_key == ApiKey::CONTROLLED_SHUTDOWN && exchange.api_version == 0 => 12,
        None => 14,
    }
}

/// How long the batch is that begins at `at` of the stream, if it is one, and its head is shown, within
/// a record set that goes to `end`.
#[inline]
fn batch(side: &Side, at: u64, end: u64, shown: &[u8]) -> Option<u64> {
    let start = at.checked_sub(side.at.get())?;
    if at + BATCH_HEAD > end {
        return None;
    }
    let head = shown.get(usize::try_from(start).ok()?..)?.first_chunk()?;
    batch_bytes(head)
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
