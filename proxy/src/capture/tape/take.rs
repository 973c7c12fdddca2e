//! What one look of the session gets into the tape.
//!
//! It hears what the session observes in what it is shown, and copies meanwhile: up to a field that is to
//! be left out when that is told, and the rest when the session has answered, as far as it passes. (What
//! lies before such a field is kept in any case: it may not be shown again.)

use super::entry::{Note, Told};
use super::frames;
use super::{FRAME, HOLE, Side, Tape, WHOLE};
use klamp_codec::layout;
use klamp_codec::observation::{Exchange, Observation, OpaqueReason};
use klamp_codec::render::batch_bytes;
use klamp_codec::session::Step;
use klamp_codec::{Direction, ErrorCode};
use std::rc::Rc;
use std::time::Duration;

/// Bytes of a batch before its records (RecordBatch v2).
const BATCH_HEAD: usize = 61;
/// Error codes that are noted of a frame that is not kept to its end.
const ERRORS: u8 = 16;

/// One look at what a direction shows.
pub(crate) struct Take<'t> {
    pub(super) tape: &'t Rc<Tape>,
    pub(super) direction: Direction,
    /// Offset in the stream of the first byte shown.
    pub(super) at: u64,
    pub(super) shown: &'t [u8],
    /// So many of them are kept, as far as they may be; more where a field goes on behind them.
    pub(super) done: usize,
    /// Whether the latest entry is a run of bytes of this look, with which others may go on.
    pub(super) is_open: bool,
}

impl<'t> Take<'t> {
    /// The session is about to be asked about what is `shown`.
    #[inline]
    pub(crate) fn new(tape: &'t Rc<Tape>, direction: Direction, shown: &'t [u8]) -> Self {
        Self::at(tape, direction, tape.side(direction).at.get(), shown)
    }

    /// What is `shown` stands at `at` of the stream.
    #[inline]
    fn at(tape: &'t Rc<Tape>, direction: Direction, at: u64, shown: &'t [u8]) -> Self {
        let copied = tape.side(direction).copied.get();
        Self {
            tape,
            direction,
            at,
            shown,
            done: copied.saturating_sub(at) as usize,
            is_open: false,
        }
    }

    /// Bytes come that were passed before they were there: the first of `owed` that had not.
    pub(crate) fn came(tape: &'t Rc<Tape>, direction: Direction, owed: u64, bytes: &'t [u8]) {
        let at = tape.side(direction).at.get().saturating_sub(owed);
        Self::at(tape, direction, at, bytes).keep(u64::MAX);
    }

    #[inline(always)]
    pub(super) fn side(&self) -> &'t Side {
        self.tape.side(self.direction)
    }

    /// Hears an observation that the session makes.
    #[inline(always)]
    pub(crate) fn observe(&mut self, at: u64, what: &Observation<'_>) {
        match what {
            Observation::RequestHead { frame_bytes, .. } => self.frame(at, *frame_bytes),
            Observation::ResponseHead {
                exchange,
                frame_bytes,
                latency,
                has_layout,
                ..
            } => {
                self.frame(at, *frame_bytes);
                self.answers(at, *exchange, *latency);
                if !has_layout {
                    self.opaque(unreadable(*exchange));
                }
            }
            Observation::Hole { bytes, records } => self.hole(at, *bytes, *records),
            Observation::Opaque { reason, .. } => self.opaque(*reason),
            Observation::Trailing { bytes, .. } => {
                self.hole(at.saturating_sub(u64::from(*bytes)), *bytes, false);
            }
            Observation::Learned(_) => self.tape.common.set(self.side().end.get()),
            Observation::Token { frame_bytes } => self.token(at, *frame_bytes),
            Observation::Errors { code, count, .. } if *code != ErrorCode::NONE => {
                self.error(*code, *count);
            }
            _ => {}
        }
    }

    /// Behind that, nothing is kept of the latest frame, so that holes there are not worth hearing of: a
    /// very large frame has thousands.
    #[inline(always)]
    pub(crate) fn holes_upto(&self) -> u64 {
        self.side().limit.get()
    }

    /// A frame begins at `at`.
    #[inline(always)]
    fn frame(&mut self, at: u64, bytes: u64) {
        let side = self.side();
        if bytes > side.ordinary.get().into() {
            return self.no_ordinary_frame(at, bytes);
        }
        debug_assert_eq!(side.end.get(), at, "what lies between frames is told of");
        side.frame.set(at);
        side.end.set(at + bytes);
        self.tape.frames.set(self.tape.frames.get() + 1);
    }

    /// It is long, or the one before is not kept to its end.
    #[cold]
    #[inline(never)]
    fn no_ordinary_frame(&mut self, at: u64, bytes: u64) {
        self.end_frame(at);
        self.frame(at, bytes.min(FRAME));
        if bytes > FRAME {
            self.side().end.set(at + bytes);
            self.limit(at + FRAME);
        }
    }

    /// The latest frame has ended: another one begins at `at`.
    fn end_frame(&mut self, at: u64) {
        let side = self.side();
        let limit = side.limit.replace(WHOLE);
        side.ordinary.set(FRAME as u32);
        if limit != WHOLE {
            self.piece_upto(limit);
            self.pass(at);
        }
    }

    /// The latest frame is kept up to there.
    fn limit(&self, upto: u64) {
        let side = self.side();
        side.limit.set(upto);
        side.ordinary.set(0);
        side.errors.set(0);
    }

    /// The frame that begins at `at` is the answer to this request: told where that differs from what was
    /// told of the one before.
    #[inline(always)]
    fn answers(&mut self, at: u64, exchange: Exchange, latency: Option<Duration>) {
        let told = Told::new(exchange, latency);
        if told != self.tape.told.get() {
            self.tell_answer(at, told);
        }
    }

    /// Where there is no memory for it, nothing of the answer is kept.
    #[inline(never)]
    fn tell_answer(&mut self, at: u64, told: Told) {
        match self.put_answer(at, told) {
            true => self.tape.told.set(told),
            false => self.limit(at),
        }
    }

    /// Leaves a field out of the latest frame.
    // (not inlined: it is called from the midst of what reads messages, which has the registers to itself)
    #[inline(never)]
    fn hole(&mut self, at: u64, bytes: u32, records: bool) {
        if self.side().limit.get() != WHOLE {
            return self.hole_in_part(at, bytes, records);
        }
        let start = at.wrapping_sub(self.at) as usize;
        let mut kept = start;
        if records {
            if self.tape.arena.settings.records {
                return;
            }
            if !self.is_batch(start, bytes) {
                return self.batches(at, bytes);
            }
            kept = start + BATCH_HEAD;
        }
        let Some(piece) = self.shown.get(self.done..kept) else {
            return self.leave_out(at, bytes);
        };
        self.piece(piece);
        self.done = self.done.max(start + bytes as usize);
    }

    /// The same where it begins before what is kept already, or before what is shown.
    #[cold]
    #[inline(never)]
    fn leave_out(&mut self, at: u64, bytes: u32) {
        self.piece_upto(at);
        self.pass(at + u64::from(bytes));
    }

    /// The same in a frame that is kept in part. What is left out does not count.
    #[cold]
    #[inline(never)]
    fn hole_in_part(&mut self, at: u64, bytes: u32, records: bool) {
        let (side, end) = (self.side(), at + u64::from(bytes));
        let limit = side.limit.get();
        if at >= limit {
            return;
        }
        let further = (limit + u64::from(bytes)).saturating_sub(HOLE);
        side.limit.set(further.max(end).min(side.end.get()));
        match records {
            // (the heads in any case)
            true => self.batches(at, bytes),
            false => self.leave_out(at, bytes),
        }
    }

    /// Whether these records are one batch of magic 2 that is shown from its head on, as they are as a rule.
    #[inline(always)]
    fn is_batch(&self, start: usize, bytes: u32) -> bool {
        let head = self.shown.get(start..);
        let Some(head) = head.and_then(|from| from.first_chunk::<BATCH_HEAD>()) else {
            return false;
        };
        let [_, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _, magic, ..] = head;
        u32::from_be_bytes([*a, *b, *c, *d]).wrapping_add(12) == bytes && *magic == 2
    }

    /// Leaves records out that are not just one batch: all but the heads, as far as they are shown.
    #[cold]
    #[inline(never)]
    fn batches(&mut self, at: u64, bytes: u32) {
        let end = at + u64::from(bytes);
        let mut next = at;
        self.piece_upto(at);
        for _ in 0..FRAME / HOLE {
            let head = self.chunk(next);
            let behind = next + BATCH_HEAD as u64;
            let Some(batch) = head.filter(|_| behind <= end).and_then(batch_bytes) else {
                break;
            };
            self.pass(next);
            self.piece_upto(behind);
            next = next.saturating_add(batch);
        }
        self.pass(end);
    }

    /// So many bytes from an offset of the stream on, if they are shown.
    fn chunk<const N: usize>(&self, at: u64) -> Option<&'t [u8; N]> {
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.shown.get(from..)?.first_chunk()
    }

    /// The latest frame is not understood: no more of it than its header is kept.
    #[cold]
    #[inline(never)]
    fn opaque(&mut self, reason: OpaqueReason) {
        let side = self.side();
        let frame = side.frame.get();
        self.note(frame, Note::Opaque(reason));
        if self.tape.arena.settings.opaque && side.end.get() - frame <= FRAME {
            return;
        }
        let has_begun = self.at + self.done as u64 > frame;
        let header = match self.direction {
            Direction::Response => frames::ANSWER_HEADER,
            Direction::Request if has_begun => {
                let (reel, shared) = (self.tape.reel.borrow(), self.tape.arena.shared.borrow());
                frames::header_of(reel.chunks(), &shared, frame)
            }
            Direction::Request => frames::request_header(self.chunk(frame)),
        };
        self.limit(frame + header);
        if has_begun {
            self.tape.wipe(self.direction, frame + header);
        }
    }

    /// So often this code stands in the latest response: told of one that is not kept to its end.
    #[cold]
    #[inline(never)]
    fn error(&mut self, code: ErrorCode, count: u32) {
        let (side, errors) = (self.side(), self.side().errors.get());
        if side.limit.get() < side.end.get() && errors < ERRORS {
            side.errors.set(errors + 1);
            self.note(side.frame.get(), Note::Error(code, count));
        }
    }

    /// A raw SASL token takes the place of a frame.
    #[cold]
    #[inline(never)]
    fn token(&mut self, at: u64, bytes: u64) {
        self.end_frame(at);
        self.piece_upto(at);
        self.note(at, Note::Token(bytes));
        let (side, end) = (self.side(), at.saturating_add(bytes));
        side.frame.set(at);
        side.end.set(end);
        side.first.set(end);
        self.tape.frames.set(self.tape.frames.get() + 1);
        self.pass(end);
        self.is_open = false;
    }

    /// Another frame, of so many bytes, goes on in place of the latest one: none for a request that is
    /// answered here, since nobody here reads its version.
    #[cold]
    #[inline(never)]
    fn changed(&mut self, bytes: u64) {
        let side = self.side();
        let end = side.end.get() as u32;
        if side.changed.replace(end) == end {
            return;
        }
        match self.direction {
            Direction::Request => {
                self.opaque(OpaqueReason::UnknownVersion);
                self.note(side.frame.get(), Note::AnsweredHere);
            }
            Direction::Response => self.note(side.frame.get(), Note::Rewritten(bytes)),
        }
    }

    /// The session has answered: what it lets pass of what it was shown is kept now. `unpaid`: so many
    /// bytes that were passed before never came.
    #[inline]
    pub(crate) fn settle(mut self, step: &Step, unpaid: u64) {
        let shown = self.shown.len() as u64;
        let settled = match step {
            Step::Pass(n) => *n,
            Step::Replace { drop, with } => {
                if *drop > 0 {
                    self.changed(with.len() as u64);
                }
                *drop as u64
            }
            // What it closes upon goes nowhere.
            Step::Close(_) => shown,
            Step::Need(_) | Step::Wait | Step::Finish => 0,
        };
        let (side, upto) = (self.side(), self.at.saturating_add(settled));
        side.is_owed.set(settled > shown || unpaid > 0);
        side.at.set(upto);
        self.keep(upto);
    }

    /// Keeps what is shown up to `upto` and may be kept.
    #[inline]
    fn keep(mut self, upto: u64) {
        let side = self.side();
        let upto = upto.min(side.end.get());
        let most = upto.saturating_sub(self.at).min(self.shown.len() as u64) as usize;
        if side.limit.get() < self.at + most as u64 {
            self.end_part();
        }
        if self.tape.common.get() > 0 {
            self.keep_shared(most);
        }
        if let Some(piece) = self.shown.get(self.done..most) {
            self.piece(piece);
            self.done = most;
        }
        let copied = self.at + self.done as u64;
        side.copied.set(copied);
        // (nothing of a frame is here that is held back)
        let is_begun = copied > side.frame.get();
        let next = if is_begun { &side.end } else { &side.frame };
        side.first.set(next.get());
    }

    /// The latest frame is kept in part, and what is shown goes further.
    #[cold]
    #[inline(never)]
    fn end_part(&mut self) {
        self.piece_upto(self.side().limit.get());
        self.pass(self.side().end.get());
    }

    /// An answer that many connections get alike stands in the arena, once.
    #[cold]
    #[inline(never)]
    fn keep_shared(&mut self, most: usize) {
        let (side, end) = (self.side(), self.tape.common.replace(0));
        let is_all = self.at + self.done as u64 == side.frame.get() && self.at + most as u64 == end;
        let body = self.done + frames::ANSWER_HEADER as usize;
        let Some(bytes) = self.shown.get(body..most).filter(|_| is_all) else {
            return;
        };
        let known = self.tape.arena.shared.borrow_mut().know(bytes);
        if let Some(known) = known {
            self.piece_upto(self.at + body as u64);
            if self.known_piece(self.at + body as u64, known) {
                self.done = most;
            }
        }
    }

    /// Keeps what is shown before an offset of the stream.
    #[cold]
    #[inline(never)]
    fn piece_upto(&mut self, upto: u64) {
        let upto = upto.saturating_sub(self.at).min(self.shown.len() as u64) as usize;
        if let Some(piece) = self.shown.get(self.done..upto) {
            self.piece(piece);
            self.done = upto;
        }
    }

    /// Keeps nothing before an offset of the stream.
    fn pass(&mut self, upto: u64) {
        let upto = usize::try_from(upto.saturating_sub(self.at)).unwrap_or(usize::MAX);
        self.done = self.done.max(upto);
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
