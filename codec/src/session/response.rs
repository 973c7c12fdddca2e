//! The direction from broker to client: finds the request that each response answers, walks the body
//! for its error codes, holds the ApiVersions answer until it is whole, and sends klamp's own
//! answers when their turn comes.

use super::cursor::Cursor;
use super::findings::Findings;
use super::frame::{Frame, Walked};
use super::header;
use super::pending::{Answer, Entry, Match};
use super::reject::{self, MAX_TOKEN, MIN_RESPONSE};
use super::sasl::Sasl;
use super::shared::Shared;
use super::{Input, Step};
use crate::layout::{Event, Listener, Progress, Root, Walker};
use crate::local;
use crate::observation::{
    CloseReason, Exchange, Observation, Observer, OpaqueReason, Outcome, RejectReason,
};
use crate::types::{ApiKey, CorrelationId, Direction};
use std::time::{Duration, Instant};

const RESPONSE: Direction = Direction::Response;

/// Bytes of a response's header before its tagged fields, the length field included.
pub(super) const HEADER: usize = 8;

/// The state of this direction.
#[derive(Debug, Default)]
pub(super) struct ResponseLane {
    pub(super) state: State,
    /// Offset in the stream of the next byte that is not consumed.
    pub(super) at: u64,
    /// Whether a part of the next frame's head is held.
    partial: bool,
    walker: Walker,
    findings: Findings,
}

#[derive(Debug, Default)]
pub(super) enum State {
    /// Between frames.
    #[default]
    Head,
    /// In a response.
    Response(Frame),
    /// In a raw SASL token, all of which has been passed.
    Token,
    /// An ApiVersions answer, until all of it is there.
    Held(Begun),
}

/// A response of which nothing has been consumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) exchange: Exchange,
    pub(super) frame_bytes: u64,
}

/// How long ago things were at one time. Many were at the same: what one read brings is received at
/// once.
struct Since {
    now: Instant,
    then: Instant,
    took: Duration,
}

impl Since {
    fn new(now: Instant) -> Self {
        Self {
            now,
            then: now,
            took: Duration::ZERO,
        }
    }

    #[inline]
    fn then(&mut self, then: Instant) -> Duration {
        if then != self.then {
            self.then = then;
            self.took = self.now.saturating_duration_since(then);
        }
        self.took
    }
}

impl ResponseLane {
    /// Whether a frame has begun and is not whole yet.
    #[inline]
    pub(super) fn is_amid_frame(&self) -> bool {
        self.partial || !matches!(self.state, State::Head)
    }

    /// How many bytes have come in this direction, as far as they are consumed.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Whether only bytes can change what it answers: within a frame, and between frames unless an answer of
    /// our own comes next. With a part of a head, what that is depends on the queue.
    #[inline]
    pub(super) fn awaits_bytes(&self, cx: &Shared) -> bool {
        match self.state {
            State::Head => {
                !self.partial && (cx.queue.front()).is_none_or(|e| e.answer != Answer::Local)
            }
            State::Response(_) | State::Held(_) => true,
            State::Token => false,
        }
    }

    // (not inlined, nor is what is rare, so that each direction has the registers to itself)
    #[inline(never)]
    pub(super) fn poll(
        &mut self,
        input: Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Step {
        cx.truncated |= input.unpaid > 0 && !cx.unseen;
        let step = match input.unpaid {
            0 => self.turn(input, cx, to),
            _ => Step::Finish,
        };
        if step == Step::Finish && !cx.parted {
            self.finish(input.now, cx, to);
        }
        step
    }

    fn turn(&mut self, input: Input<'_>, cx: &mut Shared, to: &mut impl Observer) -> Step {
        let mut cursor = Cursor::new(input.shown);
        let mut since = Since::new(input.now);
        loop {
            if cx.unseen {
                return cursor.unseen(input.eof);
            }
            let step = match self.state {
                State::Head => self.head(&mut cursor, &input, &mut since, cx, to),
                _ => self.go_on(&mut cursor, &input, cx, to),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Stands between frames. `None`: go on.
    #[inline(always)]
    fn head(
        &mut self,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        since: &mut Since,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        self.partial = false;
        let is_ordinary = cx.queue.front().is_none_or(Entry::has_ordinary_answer);
        if !is_ordinary && let Some(step) = self.answer(cursor, cx, to) {
            return Some(step);
        }
        let shown = cursor.rest();
        if shown.is_empty() {
            return Some(Self::dry(cursor, input, cx));
        }
        let Some(field) = header::length_field(shown) else {
            return Some(self.need(4, cursor, input, cx));
        };
        let mut is_token = false;
        if !is_ordinary {
            is_token = match self.is_token(field, cursor, input, cx) {
                Ok(is_token) => is_token,
                Err(n) => return Some(self.need(n, cursor, input, cx)),
            };
        }
        let (min, max) = match is_token {
            true => (0, MAX_TOKEN),
            false => (MIN_RESPONSE, i32::MAX.unsigned_abs()),
        };
        let length = match reject::check(field, self.at == 0, min, max) {
            Ok(length) => length,
            Err(reason) => return Some(self.reject(reason, field, cursor, to)),
        };
        let frame_bytes = header::frame_bytes(length);
        if is_token {
            return self.token(frame_bytes, cursor, cx, to);
        }
        let Some(id) = header::response_correlation_id(shown) else {
            return Some(self.need(8, cursor, input, cx));
        };
        let entry = match cx.queue.matching(id) {
            Some(Match::Entry(entry)) => entry,
            Some(Match::OursFirst) => return None,
            None => return Some(self.mismatch(id, cursor, cx, to)),
        };
        let exchange = entry.exchange;
        let is_held = exchange.api_key == ApiKey::API_VERSIONS;
        let root = Root::find(RESPONSE, exchange.api_key, exchange.api_version);
        let head = Observation::ResponseHead {
            exchange,
            frame_bytes,
            latency: (entry.received).map(|received| since.then(received)),
            wait: entry.wait(),
            has_layout: is_held || root.is_some(),
        };
        to.observe(RESPONSE, self.at, head);
        to.observe(RESPONSE, self.at, cx.in_flight());
        cx.answering = true;
        self.findings.begin();
        let begun = Begun {
            exchange,
            frame_bytes,
        };
        if is_held {
            self.state = State::Held(begun);
            return None;
        }
        let end = usize::try_from(frame_bytes).unwrap_or(usize::MAX);
        let (Some(root), Some(body)) = (root, shown.get(HEADER..end)) else {
            if root.is_none() && !entry.opaque {
                let opaque = Observation::Opaque {
                    exchange,
                    reason: OpaqueReason::NoLayout,
                    fault: None,
                };
                to.observe(RESPONSE, self.at, opaque);
            }
            return self.enter(begun, root, cursor, input, cx, to);
        };
        // (a response that is all there is never stored, nor is what it takes to go on in it)
        let hearing = &mut Hearing {
            findings: &mut self.findings,
            body_at: self.at.wrapping_add(HEADER as u64),
            exchange,
            to: &mut *to,
        };
        let left = body.len() as u32;
        let walked = self.walker.begin_response(root, left, body, hearing);
        if !matches!(walked, Ok((n, Progress::Done)) if n == body.len()) {
            let frame = self.pass_header(begun, true, cursor);
            return self.advance(frame, Some(walked), cursor, input, cx, to);
        }
        cursor.pass(end);
        self.at = self.at.wrapping_add(frame_bytes);
        self.end_response(exchange, frame_bytes, true, cx, to);
        None
    }

    /// Nothing is shown.
    #[cold]
    fn dry(cursor: &Cursor<'_>, input: &Input<'_>, cx: &mut Shared) -> Step {
        if let Some(owed) = cursor.owed() {
            return owed;
        }
        if cx.draining && (cx.stopped || cx.ending.is_some()) && !cx.awaits_answer() {
            return Self::drained(cx);
        }
        match input.eof {
            true => Step::Finish,
            false => Step::Need(1),
        }
    }

    /// A drain has come to its end here: nothing is in flight, and no request begins.
    ///
    /// The trap: a client that sends with acks=0 may have sent more, and takes it for delivered. So it
    /// is told the end first, and the connection closes once it has left in its turn.
    fn drained(cx: &mut Shared) -> Step {
        if cx.ending.is_some() || !cx.sends_acks0 {
            return Step::Close(CloseReason::Drained);
        }
        cx.parted = true;
        cx.ended(CloseReason::Drained);
        Step::Finish
    }

    /// Asks for `n` bytes from the frame's start; without more to come, what is there passes.
    #[cold]
    pub(super) fn need(
        &mut self,
        n: usize,
        cursor: &Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
    ) -> Step {
        if input.eof {
            cx.truncated = true;
            self.state = State::Head;
            return cursor.everything();
        }
        self.partial = true;
        cursor.owed().unwrap_or(Step::Need(n))
    }

    /// Sends an answer of our own, if its turn has come, and once what is before it has passed.
    #[cold]
    fn answer(
        &mut self,
        cursor: &Cursor<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let entry = *cx.queue.front().filter(|e| e.answer == Answer::Local)?;
        if let Some(owed) = cursor.owed() {
            return Some(owed);
        }
        entry.received?;
        let exchange = entry.exchange;
        cx.queue.pop();
        to.observe(RESPONSE, self.at, Observation::Answered { exchange });
        to.observe(RESPONSE, self.at, cx.in_flight());
        Some(Step::Replace {
            drop: 0,
            with: local::unsupported_api_versions(exchange.correlation_id),
        })
    }

    #[cold]
    fn reject(
        &mut self,
        reason: RejectReason,
        field: [u8; 4],
        cursor: &Cursor<'_>,
        to: &mut impl Observer,
    ) -> Step {
        if let Some(owed) = cursor.owed() {
            return owed;
        }
        let length = i32::from_be_bytes(field);
        to.observe(RESPONSE, self.at, Observation::Rejected { reason, length });
        Step::Close(CloseReason::Rejected(RESPONSE, reason))
    }

    /// Whether the next frame answers a raw SASL token. `Err`: so many bytes must be shown to tell.
    #[cold]
    fn is_token(
        &self,
        field: [u8; 4],
        cursor: &Cursor<'_>,
        input: &Input<'_>,
        cx: &Shared,
    ) -> Result<bool, usize> {
        let Some(front) = cx.queue.front().filter(|entry| entry.token) else {
            return Ok(false);
        };
        let only_token = front.answer == Answer::Expected || cx.queue.len() == 1;
        if only_token || i32::from_be_bytes(field) < MIN_RESPONSE {
            return Ok(true);
        }
        match header::response_correlation_id(cursor.rest()) {
            Some(id) => Ok(cx.queue.later(id).is_none()),
            None if input.eof => Ok(true),
            None => Err(8),
        }
    }

    #[cold]
    fn token(
        &mut self,
        frame_bytes: u64,
        cursor: &mut Cursor<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        cx.queue.pop();
        to.observe(RESPONSE, self.at, Observation::Token { frame_bytes });
        to.observe(RESPONSE, self.at, cx.in_flight());
        self.at = self.at.saturating_add(frame_bytes);
        self.state = State::Token;
        match cursor.pass_frame(frame_bytes) {
            0 => None,
            unseen => Some(cursor.owe_and(unseen)),
        }
    }

    /// A response that answers no request: where klamp rewrites, going on would mean to pass what it
    /// should have rewritten.
    #[cold]
    fn mismatch(
        &mut self,
        got: CorrelationId,
        cursor: &Cursor<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Step {
        if let Some(owed) = cursor.owed() {
            return owed;
        }
        let expected = cx.queue.expected().map(|e| e.exchange.correlation_id);
        to.observe(RESPONSE, self.at, Observation::Mismatch { expected, got });
        if cx.rewrites() {
            return Step::Close(CloseReason::Mismatch);
        }
        let unseen = Observation::Unseen(OpaqueReason::Mismatch);
        to.observe(RESPONSE, self.at, unseen);
        cx.unseen = true;
        Step::Pass(u64::MAX)
    }

    /// Passes a response's header. `is_read`: whether its body is to be.
    #[inline]
    fn pass_header(&mut self, begun: Begun, is_read: bool, cursor: &mut Cursor<'_>) -> Frame {
        let frame = Frame::new(begun.exchange, begun.frame_bytes, self.at, HEADER, is_read);
        cursor.pass(HEADER);
        self.at = frame.body_at;
        frame
    }

    /// Reads what is there of a response; this is the root of its body, if that is to be read. `None` where
    /// it is over.
    #[inline(never)]
    pub(super) fn enter(
        &mut self,
        begun: Begun,
        root: Option<Root>,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let frame = self.pass_header(begun, root.is_some(), cursor);
        let mine = frame.mine(cursor.rest());
        let walked = root.map(|root| {
            let hearing = &mut Hearing {
                findings: &mut self.findings,
                body_at: frame.body_at,
                exchange: frame.exchange,
                to: &mut *to,
            };
            (self.walker).begin_response(root, frame.left(), mine, hearing)
        });
        self.advance(frame, walked, cursor, input, cx, to)
    }

    /// Goes on in a frame. `None` where it is over.
    #[inline(never)]
    fn go_on(
        &mut self,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let frame = match self.state {
            State::Response(frame) => frame,
            State::Held(begun) => return self.held(begun, cursor, input, cx, to),
            State::Head | State::Token => {
                self.state = State::Head;
                return None;
            }
        };
        let walked = frame.is_walked().then(|| {
            let hearing = &mut Hearing {
                findings: &mut self.findings,
                body_at: frame.body_at,
                exchange: frame.exchange,
                to: &mut *to,
            };
            self.walker.go_on(frame.mine(cursor.rest()), hearing)
        });
        self.advance(frame, walked, cursor, input, cx, to)
    }

    /// Consumes what is there of a body, of which the walker has said `walked`. `None` where the response is
    /// over.
    #[inline(never)]
    fn advance(
        &mut self,
        mut frame: Frame,
        walked: Option<Walked>,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let (exchange, mine) = (frame.exchange, frame.mine(cursor.rest()));
        let advance = frame.advance(&mut self.walker, walked, mine);
        cursor.pass(advance.seen);
        let unseen = u64::from(advance.unseen);
        let consumed = unseen.saturating_add(advance.seen as u64);
        self.at = self.at.saturating_add(consumed);
        if advance.trailing > 0 {
            let bytes = advance.trailing;
            to.observe(RESPONSE, self.at, Observation::Trailing { exchange, bytes });
        }
        if let Some(fault) = advance.fault {
            let opaque = Observation::Opaque {
                exchange,
                reason: OpaqueReason::Malformed,
                fault: Some(fault),
            };
            to.observe(RESPONSE, frame.body_at, opaque);
        }
        if unseen == 0 && frame.is_over() {
            self.state = State::Head;
            self.end_response(exchange, frame.bytes, frame.understood(), cx, to);
            return None;
        }
        self.state = State::Response(frame);
        Some(cursor.amid_body(unseen, input.eof, &mut cx.truncated))
    }

    /// A response has passed to its last byte.
    #[inline(always)]
    fn end_response(
        &mut self,
        exchange: Exchange,
        frame_bytes: u64,
        understood: bool,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) {
        cx.answering = false;
        let outcome = match understood {
            true => self.findings.outcome(),
            false => Outcome::Opaque,
        };
        self.findings.emit(exchange, self.at, to);
        let answers_handshake =
            exchange.api_key == ApiKey::SASL_HANDSHAKE && exchange.api_version == 0;
        if let Sasl::Asked(exchanges) = cx.sasl
            && answers_handshake
        {
            cx.sasl = match outcome {
                Outcome::Ok => Sasl::Tokens(exchanges),
                Outcome::Error | Outcome::Opaque => Sasl::None,
            };
            if outcome == Outcome::Ok {
                let begins = Observation::RawTokens { begins: true };
                to.observe(RESPONSE, self.at, begins);
            }
        }
        let end = Observation::ResponseEnd {
            exchange,
            frame_bytes,
            outcome,
        };
        to.observe(RESPONSE, self.at, end);
    }

    /// The broker has ended. Whatever the client still sends passes unseen: nobody will answer it.
    #[cold]
    fn finish(&self, now: Instant, cx: &mut Shared, to: &mut impl Observer) {
        let verdict = cx.verdict(self.at, now, to);
        let in_flight = cx.awaits_answer() || cx.truncated;
        cx.ended(match verdict {
            Some(reason) => reason,
            None if in_flight => CloseReason::BrokerInFlight,
            None => CloseReason::Broker,
        });
        cx.unseen = true;
    }
}

/// Hears what the body of a response tells.
struct Hearing<'s, O> {
    findings: &'s mut Findings,
    body_at: u64,
    exchange: Exchange,
    to: &'s mut O,
}

impl<O: Observer> Listener for Hearing<'_, O> {
    #[inline(always)]
    fn hear(&mut self, event: Event<'_>) {
        let at = self.body_at.saturating_add(u64::from(event.at));
        self.findings.take(event, at, self.exchange, self.to);
    }
}
