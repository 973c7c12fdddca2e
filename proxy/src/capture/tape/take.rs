//! What one look of the session gets into the tape.
//!
//! It hears what the session observes in what it is shown, and copies meanwhile: up to a field that is to
//! be left out when that is told, and the rest when the session has answered, as far as it passes. (What
//! lies before such a field is kept in any case: it may not be shown again.)

use super::entry::{self, Note, Told};
use super::frames;
use super::records::List;
use super::{FRAME, HOLE, Side, Tape, WHOLE};
use klamp_codec::layout;
use klamp_codec::observation::{Exchange, Observation, OpaqueReason};
use klamp_codec::session::{Input, Step};
use klamp_codec::{Direction, ErrorCode};
use std::rc::Rc;
use std::time::Duration;

/// Error codes that are noted of a frame that is not kept to its end.
const ERRORS: u8 = 16;

/// One look at what a direction shows.
pub(crate) struct Take<'t> {
    pub(super) tape: &'t Rc<Tape>,
    pub(super) side: &'t Side,
    pub(super) direction: Direction,
    /// What is shown and neither kept yet nor left out.
    pub(super) rest: &'t [u8],
    /// Offset in the stream of that.
    pub(super) at: u64,
    /// Records in it that are to be left out.
    pub(super) list: &'t List,
    pub(super) listed: usize,
    /// Whether records come on that list: the latest frame is kept to its end, but for them.
    pub(super) is_common: bool,
    /// Whether the latest entry is a run of bytes of this look, with which others may go on.
    pub(super) is_open: bool,
}

impl<'t> Take<'t> {
    /// The session is about to be asked about `input`.
    #[inline]
    pub(crate) fn new(tape: &'t Rc<Tape>, direction: Direction, input: &Input<'t>) -> Self {
        tape.now.set(entry::nanos(input.now));
        Self::at(tape, direction, tape.side(direction).at.get(), input.shown)
    }

    /// What is `shown` stands at `at` of the stream.
    #[inline]
    fn at(tape: &'t Rc<Tape>, direction: Direction, at: u64, shown: &'t [u8]) -> Self {
        let side = tape.side(direction);
        let copied = side.copied.get();
        let mut take = Self {
            tape,
            side,
            direction,
            rest: shown,
            at,
            list: &tape.arena.list,
            listed: 0,
            is_common: side.limit.get() == WHOLE && !tape.arena.settings.records,
            is_open: false,
        };
        if copied > at {
            take.pass(copied);
        }
        take
    }

    /// Bytes come that were passed before they were there: the first of `owed` that had not.
    pub(crate) fn came(tape: &'t Rc<Tape>, direction: Direction, owed: u64, bytes: &'t [u8]) {
        let at = tape.side(direction).at.get().saturating_sub(owed);
        Self::at(tape, direction, at, bytes).keep(u64::MAX);
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
                self.leave_out(at.saturating_sub(u64::from(*bytes)), *bytes, false);
            }
            Observation::Learned(_) => {
                self.tape.common.set(self.side.end.get());
                self.is_common = false;
            }
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
        self.side.limit.get()
    }

    /// A frame begins at `at`.
    #[inline(always)]
    fn frame(&mut self, at: u64, bytes: u64) {
        let side = self.side;
        if bytes > side.ordinary.get().into() {
            return self.no_ordinary_frame(at, bytes);
        }
        self.begin_frame(at, bytes);
    }

    #[inline(always)]
    fn begin_frame(&self, at: u64, bytes: u64) {
        let side = self.side;
        debug_assert_eq!(side.end.get(), at, "what lies between frames is told of");
        side.frame.set(at);
        side.end.set(at + bytes);
        side.frames.set(side.frames.get() + 1);
    }

    /// It is long, or the one before is not kept to its end.
    #[cold]
    #[inline(never)]
    fn no_ordinary_frame(&mut self, at: u64, bytes: u64) {
        self.end_frame(at);
        self.begin_frame(at, bytes);
        if bytes > FRAME {
            self.limit(at + FRAME);
        }
    }

    /// The latest frame has ended: another one begins at `at`.
    fn end_frame(&mut self, at: u64) {
        self.flush();
        let side = self.side;
        let limit = side.limit.replace(WHOLE);
        side.ordinary.set(FRAME as u32);
        self.is_common = !self.tape.arena.settings.records;
        if limit != WHOLE {
            self.keep_upto(limit.min(at));
            self.pass(at);
        }
    }

    /// The latest frame is kept up to there.
    fn limit(&mut self, upto: u64) {
        let side = self.side;
        self.is_common = false;
        side.limit.set(upto);
        side.ordinary.set(0);
        side.errors.set(0);
    }

    /// The frame that begins at `at` is the answer to this request: told where that differs from what was
    /// told of the one before.
    #[inline(always)]
    fn answers(&mut self, at: u64, exchange: Exchange, latency: Option<Duration>) {
        let told = Told::new(exchange, latency);
        // (without a latency, which is rare, it is told each time: that spares looking for one here)
        if latency.is_none() || self.side.told.get() != told {
            self.tell_answer(at, told);
        }
    }

    /// Where there is no memory for it, nothing of the answer is kept.
    #[inline(never)]
    fn tell_answer(&mut self, at: u64, told: Told) {
        match self.put_answer(at, told) {
            true => self.side.told.set(told),
            false => {
                self.side.told.set(Told::NOTHING);
                self.flush();
                self.limit(at);
            }
        }
    }

    /// Leaves a field out of the latest frame.
    #[inline(never)]
    pub(super) fn leave_out(&mut self, at: u64, bytes: u32, records: bool) {
        self.flush();
        let (side, end) = (self.side, at + u64::from(bytes));
        let limit = side.limit.get();
        if limit != WHOLE {
            // (what is left out of a frame that is kept in part does not count)
            if at >= limit {
                return;
            }
            let further = (limit + u64::from(bytes)).saturating_sub(HOLE);
            side.limit.set(further.max(end));
        } else if records && self.tape.arena.settings.records {
            return;
        }
        match records {
            true => self.keep_heads(at, bytes),
            false => self.keep_upto(at),
        }
        self.pass(end);
    }

    /// The latest frame is not understood: no more of it than its header is kept.
    #[cold]
    #[inline(never)]
    fn opaque(&mut self, reason: OpaqueReason) {
        self.flush();
        let side = self.side;
        let frame = side.frame.get();
        self.note(frame, Note::Opaque(reason));
        if self.tape.arena.settings.opaque && side.end.get() - frame <= FRAME {
            return;
        }
        let has_begun = self.at > frame;
        let header = match self.direction {
            Direction::Response => frames::ANSWER_HEADER,
            Direction::Request if has_begun => {
                let (reel, shared) = (self.tape.reel.borrow(), self.tape.arena.shared.borrow());
                frames::header_of(reel.chunks(), &shared, frame)
            }
            Direction::Request => {
                let from = self.rest.get((frame - self.at) as usize..);
                frames::request_header(from.and_then(<[u8]>::first_chunk))
            }
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
        let (side, errors) = (self.side, self.side.errors.get());
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
        self.keep_upto(at);
        self.note(at, Note::Token(bytes));
        let end = at.saturating_add(bytes);
        self.begin_frame(at, end - at);
        self.side.first.set(end);
        self.pass(end);
        self.is_open = false;
    }

    /// Another frame, of so many bytes, goes on in place of the latest one: none for a request that is
    /// answered here, since nobody here reads its version.
    #[cold]
    #[inline(never)]
    fn changed(&mut self, bytes: u64) {
        let side = self.side;
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

    /// The session has answered: what it lets pass of `input` is kept now.
    #[inline]
    pub(crate) fn settle(&mut self, input: &Input<'_>, step: &Step) {
        let shown = input.shown.len() as u64;
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
        let side = self.side;
        let upto = side.at.get().saturating_add(settled);
        side.is_owed.set(settled > shown || input.unpaid > 0);
        side.at.set(upto);
        self.keep(upto);
    }

    /// Keeps what is shown up to `upto` and may be kept.
    #[inline]
    fn keep(&mut self, upto: u64) {
        self.flush();
        let side = self.side;
        let upto = upto.min(side.end.get());
        if !self.is_common && (side.limit.get() < upto || self.tape.common.get() > 0) {
            self.keep_in_part(upto);
        }
        self.keep_upto(upto);
        side.copied.set(self.at);
        // (nothing of a frame is here that is held back)
        let is_begun = self.at > side.frame.get();
        let next = if is_begun { &side.end } else { &side.frame };
        side.first.set(next.get());
    }

    /// The same where the latest frame is kept in part, or is an answer that many connections get alike.
    #[inline(never)]
    fn keep_in_part(&mut self, upto: u64) {
        if self.tape.common.get() > 0 {
            self.keep_shared(upto);
        }
        let limit = self.side.limit.get();
        self.keep_upto(limit.min(upto));
        if self.at >= limit {
            self.pass(self.side.end.get());
        }
    }

    /// An answer that many connections get alike stands in the arena, once.
    #[cold]
    fn keep_shared(&mut self, upto: u64) {
        let end = self.tape.common.replace(0);
        let body = self.side.frame.get() + frames::ANSWER_HEADER;
        if end != upto || self.at != self.side.frame.get() {
            return;
        }
        self.keep_upto(body);
        let bytes = self.before(upto);
        let known = bytes.and_then(|bytes| self.tape.arena.shared.borrow_mut().know(bytes));
        if known.is_some_and(|known| self.goes_on_with_known(known)) {
            self.pass(upto);
        }
    }

    /// Keeps what is shown before an offset of the stream.
    #[inline(always)]
    pub(super) fn keep_upto(&mut self, upto: u64) {
        if upto > self.at && !self.rest.is_empty() {
            self.keep_more(upto);
        }
    }

    #[inline(never)]
    fn keep_more(&mut self, upto: u64) {
        let most = upto.saturating_sub(self.at).min(self.rest.len() as u64);
        let (piece, rest) = self.rest.split_at(most as usize);
        self.piece(piece);
        self.rest = rest;
        self.at += most;
    }

    /// What comes next, up to an offset of the stream, if all of it is shown.
    #[inline(always)]
    pub(super) fn before(&self, upto: u64) -> Option<&'t [u8]> {
        self.rest.get(..upto.checked_sub(self.at)? as usize)
    }

    /// Keeps nothing before an offset of the stream.
    #[inline(always)]
    pub(super) fn pass(&mut self, upto: u64) {
        let n = upto.saturating_sub(self.at);
        self.rest = self.rest.split_at(self.rest.len().min(n as usize)).1;
        self.at += n;
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
