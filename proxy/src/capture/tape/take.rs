//! What one look of the session gets into the tape.
//!
//! It hears what the session observes in what it is shown, and copies it when the session has answered, as far
//! as that passes. (What lies before a field that is left out is kept in any case: it may not be shown again.)

use super::cuts::List;
use super::entry::{self, Note};
use super::frames;
use super::{FRAME, Side, Tape, WHOLE};
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
    pub(super) shown: &'t [u8],
    /// Offset in the stream of that.
    pub(super) from: u64,
    /// Offset of what is neither kept nor left out yet.
    pub(super) at: u64,
    /// Records that are to be left out.
    pub(super) list: &'t List,
    pub(super) listed: u8,
    /// So many are listed where the latest frame is kept to its end; none where that takes more thought.
    pub(super) most: u8,
}

impl<'t> Take<'t> {
    /// The session is about to be asked about `input`.
    #[inline]
    pub(crate) fn new(tape: &'t Rc<Tape>, direction: Direction, input: &Input<'t>) -> Self {
        tape.now.set(entry::nanos(input.now));
        Self::at(tape, direction, tape.side(direction).at.get(), input.shown)
    }

    /// What is `shown` stands at `from` of the stream.
    #[inline(always)]
    fn at(tape: &'t Rc<Tape>, direction: Direction, from: u64, shown: &'t [u8]) -> Self {
        let side = tape.side(direction);
        let is_whole = side.limit.get() == WHOLE;
        Self {
            tape,
            side,
            direction,
            shown,
            from,
            at: side.copied.get().max(from),
            list: &tape.arena.list,
            listed: 0,
            most: if is_whole { tape.arena.listed } else { 0 },
        }
    }

    /// Bytes come that were passed before they were there: the first of `owed` that had not.
    #[inline(never)]
    pub(crate) fn came(tape: &'t Rc<Tape>, direction: Direction, owed: u64, bytes: &'t [u8]) {
        let from = tape.side(direction).at.get().saturating_sub(owed);
        Self::at(tape, direction, from, bytes).settle_upto(u64::MAX);
    }

    /// Hears an observation that the session makes.
    #[inline(always)]
    pub(crate) fn observe(&mut self, at: u64, what: &Observation<'_>) {
        match what {
            Observation::RequestHead { frame_bytes, .. } => {
                if self.is_ordinary(*frame_bytes) {
                    self.begin_frame(at, *frame_bytes);
                } else {
                    self.no_ordinary_frame(at, *frame_bytes);
                }
            }
            Observation::ResponseHead {
                exchange,
                frame_bytes,
                latency,
                is_like_last,
                has_layout,
                ..
            } => {
                if *is_like_last && self.is_ordinary(*frame_bytes) {
                    self.begin_frame(at, *frame_bytes);
                } else {
                    self.answer(at, *frame_bytes, *exchange, *latency);
                    if !has_layout {
                        self.opaque(unreadable(*exchange));
                    }
                }
            }
            Observation::Hole { bytes, records } => self.hole(at, *bytes, *records),
            Observation::Opaque { reason, .. } => self.opaque(*reason),
            Observation::Trailing { bytes, .. } => {
                self.leave_out(at.saturating_sub(u64::from(*bytes)), *bytes, false);
            }
            Observation::Learned(_) => {
                self.tape.common.set(self.side.end());
                self.most = 0;
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

    #[inline(always)]
    fn is_ordinary(&self, bytes: u64) -> bool {
        bytes <= self.side.ordinary.get()
    }

    /// A frame begins at `at`.
    #[inline(always)]
    fn begin_frame(&self, at: u64, bytes: u64) {
        let side = self.side;
        debug_assert_eq!(side.end(), at, "what lies between frames is told of");
        side.frame.set(at);
        side.bytes.set(bytes);
        side.frames.set(side.frames.get() + 1);
    }

    /// It is long, or the one before is not kept to its end.
    #[cold]
    #[inline(never)]
    fn no_ordinary_frame(&mut self, at: u64, bytes: u64) {
        self.any_frame(at, bytes);
    }

    /// A frame begins at `at`, of whatever length, behind whatever frame.
    #[inline(always)]
    fn any_frame(&mut self, at: u64, bytes: u64) {
        self.end_frame(at);
        self.begin_frame(at, bytes);
        match bytes > FRAME {
            true => self.limit(at + FRAME),
            false => self.keep_whole(),
        }
    }

    /// The latest frame has ended: another one begins at `at`.
    #[inline(always)]
    fn end_frame(&mut self, at: u64) {
        let limit = self.side.limit.get();
        if limit < at {
            self.write(limit.max(self.at));
            self.pass(at);
        }
    }

    /// The latest frame is kept up to its end.
    #[inline(always)]
    fn keep_whole(&mut self) {
        let side = self.side;
        self.most = self.tape.arena.listed;
        side.limit.set(WHOLE);
        side.ordinary.set(FRAME);
    }

    /// The latest frame is kept up to there.
    #[inline(always)]
    fn limit(&mut self, upto: u64) {
        let side = self.side;
        self.most = 0;
        side.limit.set(upto);
        side.ordinary.set(0);
        side.errors.set(0);
    }

    /// A frame begins at `at` that is the answer to this request, which is not told of those that are like the one
    /// before. Where there is no memory for it, nothing of the answer is kept.
    #[inline(never)]
    fn answer(&mut self, at: u64, bytes: u64, exchange: Exchange, latency: Option<Duration>) {
        let is_told = self.put_answer(at, exchange, latency);
        self.any_frame(at, bytes);
        if !is_told {
            self.write(0);
            self.limit(at);
        }
    }

    /// The latest frame is not understood: no more of it than its header is kept.
    #[cold]
    #[inline(never)]
    fn opaque(&mut self, reason: OpaqueReason) {
        self.write(0);
        let side = self.side;
        let frame = side.frame.get();
        self.note(frame, Note::Opaque(reason));
        if self.tape.arena.settings.opaque && side.end() - frame <= FRAME {
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
                let from = self.shown.get((frame - self.from) as usize..);
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
        if side.limit.get() < side.end() && errors < ERRORS {
            side.errors.set(errors + 1);
            self.note(side.frame.get(), Note::Error(code, count));
        }
    }

    /// A raw SASL token takes the place of a frame.
    #[cold]
    #[inline(never)]
    fn token(&mut self, at: u64, bytes: u64) {
        self.end_frame(at);
        self.keep_whole();
        self.keep_upto(at);
        self.note(at, Note::Token(bytes));
        let end = at.saturating_add(bytes);
        self.begin_frame(at, end - at);
        self.side.first.set(end);
        self.pass(end);
    }

    /// Another frame, of so many bytes, goes on in place of the latest one: none for a request that is
    /// answered here, since nobody here reads its version.
    #[cold]
    #[inline(never)]
    fn changed(&mut self, bytes: u64) {
        let side = self.side;
        let end = side.end() as u32;
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
    #[inline(always)]
    pub(crate) fn settle(&mut self, input: &Input<'_>, step: &Step) {
        let shown = input.shown.len() as u64;
        let settled = match step {
            Step::Pass(n) => *n,
            _ => self.settled_by(input, step),
        };
        let side = self.side;
        let upto = side.at.get().saturating_add(settled);
        side.is_owed.set(settled > shown || input.unpaid > 0);
        side.at.set(upto);
        self.settle_upto(upto);
    }

    /// How many bytes of `input` are settled by a step that lets none pass.
    #[inline(never)]
    fn settled_by(&mut self, input: &Input<'_>, step: &Step) -> u64 {
        match step {
            Step::Pass(n) => *n,
            Step::Replace { drop: 0, .. } => 0,
            Step::Replace { drop, with } => {
                self.changed(with.len() as u64);
                *drop as u64
            }
            // What it closes upon goes nowhere.
            Step::Close(_) => input.shown.len() as u64,
            Step::Need(_) | Step::Wait | Step::Finish => 0,
        }
    }

    /// Keeps what is shown up to `upto` and may be kept.
    #[inline(always)]
    fn settle_upto(&mut self, upto: u64) {
        let side = self.side;
        let upto = upto.min(side.end());
        if self.most == 0 && (side.limit.get() < upto || self.tape.common.get() > 0) {
            self.keep_in_part(upto);
        }
        self.keep_upto(upto);
        side.copied.set(self.at);
        // (nothing of a frame is here that is held back)
        let is_begun = self.at > side.frame.get();
        let next = if is_begun { side.bytes.get() } else { 0 };
        side.first.set(side.frame.get() + next);
    }

    /// The same where the latest frame is kept in part, or is an answer that many connections get alike.
    #[inline(never)]
    fn keep_in_part(&mut self, upto: u64) {
        self.write(0);
        if self.tape.common.get() > 0 {
            self.keep_shared(upto);
        }
        let limit = self.side.limit.get();
        self.keep_upto(limit.min(upto));
        if self.at >= limit {
            self.pass(self.side.end());
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
        let known = self.tape.arena.shared.borrow_mut().know(bytes);
        if self.from + self.shown.len() as u64 >= upto
            && known.is_some_and(|known| self.put_known(known))
        {
            self.pass(upto);
        }
    }

    /// What comes next, up to an offset of the stream, as far as it is shown.
    #[inline(always)]
    pub(super) fn before(&self, upto: u64) -> &'t [u8] {
        let end = (upto.saturating_sub(self.from) as usize).min(self.shown.len());
        let bytes = self.shown.get((self.at - self.from) as usize..end);
        bytes.unwrap_or_default()
    }

    /// Keeps nothing before an offset of the stream.
    #[inline(always)]
    pub(super) fn pass(&mut self, upto: u64) {
        self.at = self.at.max(upto);
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
