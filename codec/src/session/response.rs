//! The direction from broker to client: finds the request that each response answers, walks the body
//! for its error codes, holds the ApiVersions answer until it is whole, and sends klamp's own
//! answers when their turn comes.

use super::body::Body;
use super::cursor::Cursor;
use super::findings::Findings;
use super::frame::{Frame, Walked};
use super::header;
use super::pending::{Answer, Entry};
use super::reject::{self, MAX_RESPONSE, MAX_TOKEN, MIN_RESPONSE};
use super::sasl::Sasl;
use super::shared::Shared;
use super::{Input, Step};
use crate::layout::{Event, Listener, Root, Value, Walker};
use crate::observation::{
    CloseReason, Exchange, Observation, Observer, OpaqueReason, Outcome, RejectReason,
};
use crate::types::{ApiKey, CorrelationId, Direction};
use std::time::Duration;

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
    Held(Head),
}

/// A response of which nothing has been consumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) exchange: Exchange,
    pub(super) frame_bytes: u64,
}

/// What the responses of one look answer: many of them requests that one read brought, so that key, version and
/// latency are the same.
struct Answered {
    now: Duration,
    /// Key and version of the last one's request, and when that was received; 0: unlike any other, or without
    /// a layout.
    request: u64,
    received: Duration,
    latency: Duration,
}

impl Answered {
    fn new(now: Duration) -> Self {
        Self {
            now,
            request: 0,
            received: now,
            latency: Duration::ZERO,
        }
    }

    /// How long ago the request was received, and whether all is as with the last one.
    #[inline(always)]
    fn of(&mut self, entry: &Entry) -> (Option<Duration>, bool) {
        let Some(received) = entry.received else {
            self.request = 0;
            return (None, false);
        };
        let (key, version) = (entry.exchange.api_key.0, entry.exchange.api_version);
        let request = 1 << 32 | u64::from(key as u16) | u64::from(version as u16) << 16;
        let is_like_last = received == self.received && request == self.request;
        if !is_like_last {
            self.request = request;
            self.received = received;
            self.latency = self.now.saturating_sub(received);
        }
        (Some(self.latency), is_like_last)
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

    /// Whether bytes are missing of the frame that is under way.
    #[inline]
    pub(super) fn wants_more(&self) -> bool {
        matches!(&self.state, State::Response(frame) if frame.left() > 0)
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
        let mut answered = Answered::new(input.now);
        loop {
            if cx.unseen {
                return cursor.unseen(input.eof);
            }
            if let Some(owed) = cursor.spent() {
                return owed;
            }
            let step = match self.state {
                State::Head => self.head(&mut cursor, &input, &mut answered, cx, to),
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
        answered: &mut Answered,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        self.partial = false;
        let shown = cursor.rest();
        let length = match (cx.queue.front(), header::read_response(shown)) {
            (Some(front), Some((length, id)))
                if front.answers(id)
                    && reject::fits(length, MIN_RESPONSE, MAX_RESPONSE)
                    && self.at > 0 =>
            {
                length
            }
            _ => match self.head_unlike(cursor, input, cx, to) {
                Unlike::Ordinary(length) => length,
                Unlike::Begun => return None,
                Unlike::Step(step) => return Some(step),
            },
        };
        let frame_bytes = header::frame_bytes(length);
        let entry = cx.queue.pop()?;
        let exchange = entry.exchange;
        let is_held = exchange.api_key == ApiKey::API_VERSIONS;
        let root = Root::find(RESPONSE, exchange.api_key, exchange.api_version);
        let (latency, is_like_last) = answered.of(&entry);
        let has_layout = is_held || root.is_some();
        let told = Observation::ResponseHead {
            exchange,
            frame_bytes,
            latency,
            is_like_last,
            wait: entry.wait(),
            has_layout,
        };
        to.observe(RESPONSE, self.at, told);
        to.observe(RESPONSE, self.at, cx.in_flight());
        cx.answering = true;
        self.findings.begin();
        let head = Head {
            exchange,
            frame_bytes,
        };
        if is_held {
            self.state = State::Held(head);
            return None;
        }
        let end = usize::try_from(frame_bytes).unwrap_or(usize::MAX);
        let whole = shown.split_at_checked(end);
        let whole = whole.and_then(|(frame, rest)| Some((frame.get(HEADER..)?, rest)));
        let (Some(root), Some((body, rest))) = (root, whole) else {
            if root.is_none() {
                answered.request = 0; // (what is like it has no layout either)
                if !entry.opaque {
                    let opaque = Observation::Opaque {
                        exchange,
                        reason: OpaqueReason::NoLayout,
                        fault: None,
                    };
                    to.observe(RESPONSE, self.at, opaque);
                }
            }
            return self.enter(head, root, cursor, input, cx, to);
        };
        // (a response that is all there is never stored, nor is what it takes to go on in it)
        let hearing = &mut Hearing {
            findings: &mut self.findings,
            body: Body::new(RESPONSE, self.at.wrapping_add(HEADER as u64)),
            exchange,
            to: &mut *to,
        };
        let begun = (self.walker).enter_response(root, body.len() as u32, body, hearing);
        if !begun.has_read_all() {
            let walked = self.walker.follow(begun, body, hearing);
            let frame = self.pass_header(head, true, cursor);
            return self.advance(frame, Some(walked), cursor, input, cx, to);
        }
        cursor.pass_to(rest);
        self.at = self.at.wrapping_add(frame_bytes);
        self.end_response(exchange, frame_bytes, true, cx, to);
        None
    }

    /// Stands between frames where the next may be no answer to the oldest request. That is in the queue
    /// still.
    #[cold]
    fn head_unlike(
        &mut self,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Unlike {
        if let Some(step) = self.answer(cursor, cx, to) {
            return Unlike::Step(step);
        }
        let shown = cursor.rest();
        if shown.is_empty() {
            return Unlike::Step(Self::dry(cursor, input, cx));
        }
        let Some(field) = header::length_field(shown) else {
            return Unlike::Step(self.need(4, cursor, input, cx));
        };
        let is_token = match self.is_token(field, cursor, input, cx) {
            Ok(is_token) => is_token,
            Err(n) => return Unlike::Step(self.need(n, cursor, input, cx)),
        };
        let (min, max) = match is_token {
            true => (0, MAX_TOKEN),
            false => (MIN_RESPONSE, MAX_RESPONSE),
        };
        let length = match reject::check(field, self.at == 0, min, max) {
            Ok(length) => length,
            Err(reason) => return Unlike::Step(self.reject(reason, field, cursor, to)),
        };
        if is_token {
            let step = self.token(header::frame_bytes(length), cursor, cx, to);
            return step.map_or(Unlike::Begun, Unlike::Step);
        }
        let Some((_, id)) = header::read_response(shown) else {
            return Unlike::Step(self.need(HEADER, cursor, input, cx));
        };
        if !cx.queue.gives_way(id) {
            return Unlike::Step(self.mismatch(id, cursor, cx, to));
        }
        match cx.queue.front() {
            Some(front) if front.answers(id) => Unlike::Ordinary(length),
            _ => Unlike::Begun, // with an answer of our own
        }
    }

    /// Nothing is shown.
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
    fn pass_header(&mut self, head: Head, is_read: bool, cursor: &mut Cursor<'_>) -> Frame {
        let frame = Frame::new(head.exchange, head.frame_bytes, self.at, HEADER, is_read);
        cursor.pass(HEADER);
        self.at = frame.body_at;
        frame
    }

    /// Reads what is there of a response; this is the root of its body, if that is to be read. `None` where
    /// it is over.
    #[inline(never)]
    pub(super) fn enter(
        &mut self,
        head: Head,
        root: Option<Root>,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let frame = self.pass_header(head, root.is_some(), cursor);
        let mine = frame.mine(cursor.rest());
        let walked = root.map(|root| {
            let hearing = &mut Hearing {
                findings: &mut self.findings,
                body: Body::new(RESPONSE, frame.body_at),
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
            State::Held(head) => return self.held(head, cursor, input, cx, to),
            State::Head | State::Token => {
                self.state = State::Head;
                return None;
            }
        };
        if frame.left() > 0 && cursor.rest().is_empty() && !input.eof {
            return Some(Step::Need(1)); // as the walker would say
        }
        let walked = frame.is_walked().then(|| {
            let hearing = &mut Hearing {
                findings: &mut self.findings,
                body: Body::new(RESPONSE, frame.body_at),
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
        let (walker, at) = (&mut self.walker, &mut self.at);
        let unseen = frame.advance(walker, walked, cursor, at, RESPONSE, to);
        if unseen == 0 && frame.is_over() {
            self.state = State::Head;
            self.end_response(frame.exchange, frame.bytes, frame.understood(), cx, to);
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
    fn finish(&self, now: Duration, cx: &mut Shared, to: &mut impl Observer) {
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

/// What comes next where that may be no answer to the oldest request.
enum Unlike {
    /// It is one, of so many bytes after the length field.
    Ordinary(u32),
    /// The queue or the state has changed.
    Begun,
    /// Something must be done first.
    Step(Step),
}

/// Hears what the body of a response tells.
struct Hearing<'s, O> {
    findings: &'s mut Findings,
    body: Body,
    exchange: Exchange,
    to: &'s mut O,
}

impl<O: Observer> Listener for Hearing<'_, O> {
    #[inline(always)]
    fn hear(&mut self, event: Event<'_>) {
        if let Value::Skipped(bytes) = event.value {
            return self.body.hole(event.role, event.at, bytes, self.to);
        }
        let at = self.body.place(event.at);
        self.findings.take(event, at, self.exchange, self.to);
    }
}
