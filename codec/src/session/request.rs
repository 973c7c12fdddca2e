//! The direction from client to broker: reads each header, fills the queue, walks the body for what
//! it tells (acks, waits, software), and takes out the one request that klamp answers itself.

use super::body::Body;
use super::cursor::Cursor;
use super::facts::Facts;
use super::frame::{Frame, Walked};
use super::header::{self, ReadHeader, RequestHeader};
use super::pending::{Answer, Entry};
use super::reject::{self, MIN_REQUEST};
use super::sasl::Sasl;
use super::shared::Shared;
use super::{Clamp, Input, NonKafka, Step};
use crate::layout::{Event, Listener, Root, Value, Walker};
use crate::observation::{
    CloseReason, Exchange, Observation, Observer, OpaqueReason, RejectReason,
};
use crate::types::{ApiKey, Direction};
use std::time::Duration;

const REQUEST: Direction = Direction::Request;

/// The state of this direction.
#[derive(Debug, Default)]
pub(super) struct RequestLane {
    pub(super) state: State,
    /// Offset in the stream of the next byte that is not consumed.
    pub(super) at: u64,
    /// Whether a part of the next frame's head is held.
    partial: bool,
    walker: Walker,
    pub(super) facts: Facts,
}

#[derive(Debug, Default)]
pub(super) enum State {
    /// Between frames.
    #[default]
    Head,
    /// In a request.
    Request(Frame),
    /// In a raw SASL token, all of which has been passed.
    Token,
    /// In a request that klamp answers itself.
    Swallow(Swallow),
}

#[derive(Debug)]
pub(super) struct Swallow {
    pub(super) exchange: Exchange,
    pub(super) frame_bytes: u64,
    pub(super) left: u64,
}

impl RequestLane {
    /// Whether a frame has begun and is not whole yet.
    #[inline]
    pub(super) fn is_amid_frame(&self) -> bool {
        self.partial || !matches!(self.state, State::Head)
    }

    /// Whether bytes are missing of the frame that is under way.
    #[inline]
    pub(super) fn wants_more(&self) -> bool {
        matches!(&self.state, State::Request(frame) if frame.left() > 0)
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
        if step == Step::Finish {
            cx.ended(match cx.awaits_answer() || cx.truncated {
                true => CloseReason::ClientInFlight,
                false => CloseReason::Client,
            });
        }
        step
    }

    fn turn(&mut self, input: Input<'_>, cx: &mut Shared, to: &mut impl Observer) -> Step {
        let mut cursor = Cursor::new(input.shown);
        loop {
            if cx.unseen {
                return cursor.unseen(input.eof);
            }
            if let Some(owed) = cursor.spent() {
                return owed;
            }
            let step = match self.state {
                State::Head => self.head(&mut cursor, &input, cx, to),
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
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let shown = cursor.rest();
        self.partial = false;
        let field = match header::length_field(shown) {
            Some(field) if !cx.draining && cx.sasl == Sasl::None => field,
            _ => match self.head_unlike(cursor, input, cx, to) {
                Unlike::Ordinary(field) => field,
                Unlike::Begun => return None,
                Unlike::Step(step) => return Some(step),
            },
        };
        let max = cx.policy.max_request_bytes;
        let read = reject::check(field, self.at == 0, MIN_REQUEST, max)
            .map_or_else(ReadHeader::Rejected, |length| {
                header::read_request(shown, length)
            });
        let header = match read {
            ReadHeader::Whole(header) => header,
            ReadHeader::Need(n) => return Some(self.need(n, cursor, input, cx)),
            ReadHeader::Rejected(reason) => {
                return Some(self.reject(reason, field, cursor, cx, to));
            }
        };
        if !cx.queue.has_room() {
            return Some(cursor.owed().unwrap_or(Step::Wait));
        }
        if matches!(cx.sasl, Sasl::Tokens(_)) {
            cx.sasl = Sasl::None;
            to.observe(REQUEST, self.at, Observation::RawTokens { begins: false });
        }
        let exchange = header.exchange;
        let root = Root::find(REQUEST, exchange.api_key, exchange.api_version);
        let (Some(root), Ok(client_id)) = (root, header.client_id) else {
            return self.begin_unread(header, root.is_some(), cursor, input, cx, to);
        };
        let frame_bytes = header::frame_bytes(header.length);
        let end = usize::try_from(frame_bytes).unwrap_or(usize::MAX);
        let whole = shown.split_at_checked(end);
        let whole = whole.and_then(|(frame, rest)| Some((frame.get(header.read..)?, rest)));
        let mut entry = Entry::of(exchange);
        entry.received = whole.map(|_| input.now);
        self.begin(entry, client_id, frame_bytes, cx, to);
        let Some((body, rest)) = whole else {
            return self.enter(header, root, cursor, input, cx, to);
        };
        // (a request that is all there is never stored, nor is what it takes to go on in it)
        let left = body.len() as u32;
        let hearing = &mut Hearing {
            facts: &mut self.facts,
            body: Body::new(REQUEST, self.at.wrapping_add(header.read as u64)),
            cx: &mut *cx,
            to: &mut *to,
        };
        let begun = self.walker.enter_request(root, left, body, hearing);
        if !begun.has_read_all() {
            let walked = self.walker.follow(begun, body, hearing);
            let frame = self.pass_header(header, true, cursor);
            return self.advance(frame, Some(walked), cursor, input, cx, to);
        }
        cursor.pass_to(rest);
        self.at = self.at.wrapping_add(frame_bytes);
        self.end_request(exchange, frame_bytes, input.now, cx, to);
        None
    }

    /// Stands between frames where the next may be no ordinary request.
    #[cold]
    fn head_unlike(
        &mut self,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Unlike {
        let shown = cursor.rest();
        if shown.is_empty() && input.eof {
            return Unlike::Step(cursor.owed_or_finish());
        }
        if cx.parted && !cx.sends_acks0 {
            return Unlike::Step(cursor.owed().unwrap_or(Step::Close(CloseReason::Drained)));
        }
        if (cx.draining && !cx.parted) || matches!(cx.sasl, Sasl::Asked(_)) {
            cx.stopped = cx.draining;
            return Unlike::Step(cursor.owed().unwrap_or(Step::Wait));
        }
        let Some(field) = header::length_field(shown) else {
            return Unlike::Step(self.need(4, cursor, input, cx));
        };
        match cx.sasl {
            Sasl::Tokens(left) => self.token(field, left, cursor, input, cx, to),
            Sasl::None | Sasl::Asked(_) => Unlike::Ordinary(field),
        }
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
        self.partial = !cursor.rest().is_empty();
        // between frames any byte is news: from then on the client is held to go on
        let n = if self.partial { n } else { 1 };
        cursor.owed().unwrap_or(Step::Need(n))
    }

    #[cold]
    pub(super) fn reject(
        &mut self,
        reason: RejectReason,
        field: [u8; 4],
        cursor: &Cursor<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Step {
        if let Some(owed) = cursor.owed() {
            return owed;
        }
        let length = i32::from_be_bytes(field);
        to.observe(REQUEST, self.at, Observation::Rejected { reason, length });
        let other_protocol = matches!(reason, RejectReason::Tls | RejectReason::Http);
        if other_protocol && self.at == 0 && cx.policy.non_kafka == NonKafka::Pass {
            to.observe(
                REQUEST,
                self.at,
                Observation::Unseen(OpaqueReason::NonKafka),
            );
            cx.unseen = true;
            return Step::Pass(u64::MAX);
        }
        Step::Close(CloseReason::Rejected(REQUEST, reason))
    }

    /// A request has begun: tells its head and puts it into the queue.
    #[inline(always)]
    fn begin(
        &mut self,
        entry: Entry,
        client_id: Option<&[u8]>,
        frame_bytes: u64,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) {
        let head = Observation::RequestHead {
            exchange: entry.exchange,
            client_id,
            frame_bytes,
        };
        to.observe(REQUEST, self.at, head);
        cx.queue.push(entry);
        to.observe(REQUEST, self.at, cx.in_flight());
        self.facts.begin();
    }

    /// Begins a request whose body is not read, though there is a layout for it perhaps. `None`: go on.
    #[inline(never)]
    fn begin_unread(
        &mut self,
        header: RequestHeader<'_>,
        has_layout: bool,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let exchange = header.exchange;
        let is_ours_to_answer = exchange.api_key == ApiKey::API_VERSIONS
            && !has_layout
            && cx.policy.clamp != Clamp::Off;
        if is_ours_to_answer && let Some(owed) = cursor.owed() {
            return Some(owed);
        }
        let reason = if header.client_id.is_err() {
            OpaqueReason::Malformed
        } else if exchange.api_key.name().is_none() {
            OpaqueReason::UnknownKey
        } else if !cx.knows(exchange.api_key, exchange.api_version) {
            OpaqueReason::UnknownVersion
        } else {
            OpaqueReason::NoLayout
        };
        let mut entry = Entry::of(exchange);
        entry.opaque = reason != OpaqueReason::NoLayout;
        if is_ours_to_answer {
            entry.answer = Answer::Local;
        }
        let frame_bytes = header::frame_bytes(header.length);
        self.begin(entry, header.client_id.unwrap_or(None), frame_bytes, cx, to);
        if is_ours_to_answer {
            self.state = State::Swallow(Swallow {
                exchange,
                frame_bytes,
                left: frame_bytes,
            });
            return None;
        }
        let opaque = Observation::Opaque {
            exchange,
            reason,
            fault: None,
        };
        to.observe(REQUEST, self.at, opaque);
        let frame = self.pass_header(header, false, cursor);
        self.advance(frame, None, cursor, input, cx, to)
    }

    /// Passes a request's header. `is_read`: whether its body is to be.
    #[inline]
    fn pass_header(
        &mut self,
        header: RequestHeader<'_>,
        is_read: bool,
        cursor: &mut Cursor<'_>,
    ) -> Frame {
        let frame_bytes = header::frame_bytes(header.length);
        let frame = Frame::new(header.exchange, frame_bytes, self.at, header.read, is_read);
        cursor.pass(header.read);
        self.at = frame.body_at;
        frame
    }

    /// Reads what is there of a request, the root of whose body this is.
    #[inline(never)]
    fn enter(
        &mut self,
        header: RequestHeader<'_>,
        root: Root,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let frame = self.pass_header(header, true, cursor);
        let hearing = &mut Hearing {
            facts: &mut self.facts,
            body: Body::new(REQUEST, frame.body_at),
            cx: &mut *cx,
            to: &mut *to,
        };
        let mine = frame.mine(cursor.rest());
        let walked = (self.walker).begin_request(root, frame.left(), mine, hearing);
        self.advance(frame, Some(walked), cursor, input, cx, to)
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
            State::Request(frame) => frame,
            State::Swallow(_) => return self.swallow(cursor, input, cx, to),
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
                facts: &mut self.facts,
                body: Body::new(REQUEST, frame.body_at),
                cx: &mut *cx,
                to: &mut *to,
            };
            self.walker.go_on(frame.mine(cursor.rest()), hearing)
        });
        self.advance(frame, walked, cursor, input, cx, to)
    }

    /// Consumes what is there of a body, of which the walker has said `walked`. `None` where the request is
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
        let was_understood = frame.understood();
        let (walker, at) = (&mut self.walker, &mut self.at);
        let unseen = frame.advance(walker, walked, cursor, at, REQUEST, to);
        if was_understood
            && !frame.understood()
            && let Some(entry) = self.facts.entry(cx)
        {
            entry.opaque = true;
        }
        if unseen == 0 && frame.is_over() {
            self.state = State::Head;
            if let Some(entry) = self.facts.entry(cx) {
                entry.received = Some(input.now);
            }
            self.end_request(frame.exchange, frame.bytes, input.now, cx, to);
            return None;
        }
        self.state = State::Request(frame);
        Some(cursor.amid_body(unseen, input.eof, &mut cx.truncated))
    }

    /// A request has been received to its last byte.
    #[inline(always)]
    fn end_request(
        &mut self,
        exchange: Exchange,
        frame_bytes: u64,
        now: Duration,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) {
        if exchange.api_key == ApiKey::SASL_HANDSHAKE && exchange.api_version == 0 {
            cx.sasl = Sasl::Asked(self.facts.exchanges());
        }
        if self.facts.acks0() || cx.last_acks0.is_some() {
            cx.last_acks0 = self.facts.acks0().then_some((exchange, now));
        }
        let end = Observation::RequestEnd {
            exchange,
            frame_bytes,
        };
        to.observe(REQUEST, self.at, end);
    }
}

/// Hears what the body of a request tells.
struct Hearing<'s, O> {
    facts: &'s mut Facts,
    body: Body,
    cx: &'s mut Shared,
    to: &'s mut O,
}

impl<O: Observer> Listener for Hearing<'_, O> {
    #[inline(always)]
    fn hear(&mut self, event: Event<'_>) {
        if let Value::Skipped(bytes) = event.value {
            return self.body.hole(event.role, event.at, bytes, self.to);
        }
        let at = self.body.place(event.at);
        self.facts.take(event, at, self.cx, self.to);
    }
}

/// What comes next where that may be no ordinary request.
pub(super) enum Unlike {
    /// An ordinary request with this length field.
    Ordinary([u8; 4]),
    /// A token, which has been passed.
    Begun,
    /// Something must be done first.
    Step(Step),
}
