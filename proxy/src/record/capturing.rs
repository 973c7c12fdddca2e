//! From what triggers to a capture, on the connection's own thread.
//!
//! The traps: a code is told before its frame has come to its end, and of a frame that has not, the
//! recorder gives the header only; and while the session is asked, the tape lacks what is being shown to
//! it. So what triggers is noted, and the capture taken once a frame of that direction has ended and the
//! session has answered.

use super::{EndCause, Record};
use crate::capture::tape::{Mark, Recorder};
use crate::capture::{Capture, Cause, Place, Reason};
use crate::relay::Ended;
use klamp_codec::observation::{CloseReason, Exchange, OpaqueReason};
use klamp_codec::{CorrelationId, Direction, ErrorCode};
use std::time::{Duration, Instant, SystemTime};

const REQUEST: Direction = Direction::Request;
const RESPONSE: Direction = Direction::Response;

/// How long a connection that goes on with the same trouble is left alone.
const PAUSE: Duration = Duration::from_secs(10);

/// A capture that is under way on a connection.
#[derive(Debug)]
pub(super) enum Capturing {
    /// To be taken once a frame of this direction has ended.
    Due(Why, Direction),
    /// To be taken as soon as the tape is whole.
    Ripe(Why),
    /// Taken, and goes on.
    Open(Open),
}

/// Why a capture is taken, and for which message if that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Why {
    reason: Reason,
    cause: Option<Cause>,
}

impl Why {
    fn message(reason: Reason, direction: Direction, exchange: Exchange, place: Place) -> Self {
        let cause = Some(Cause {
            direction,
            exchange,
            place,
        });
        Self { reason, cause }
    }

    fn unknown(reason: Reason) -> Self {
        Self {
            reason,
            cause: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Open {
    id: u64,
    /// Frames that it still goes on for.
    left: u32,
    until: Instant,
    /// Whether a frame has ended since the tape was read.
    has_more: bool,
    /// What the tape has told; `None` where there was none.
    mark: Option<Mark>,
}

impl Record {
    #[cold]
    pub(super) fn capture_on_code(&mut self, exchange: Exchange, at: u64, code: ErrorCode) {
        if self.watch.captures.on().on_code(exchange.api_key, code) {
            let reason = Reason::Code(exchange.api_key, code);
            let why = Why::message(reason, RESPONSE, exchange, Place::Around(at));
            self.capture_soon(why, RESPONSE);
        }
    }

    #[cold]
    pub(super) fn capture_on_slow(
        &mut self,
        exchange: Exchange,
        at: u64,
        latency: Duration,
        wait: Option<Duration>,
    ) {
        let beyond = latency.saturating_sub(wait.unwrap_or_default());
        if self.watch.captures.is_slow(beyond) {
            let reason = Reason::Slow(exchange.api_key, beyond);
            let why = Why::message(reason, RESPONSE, exchange, Place::At(at));
            self.capture_soon(why, RESPONSE);
        }
    }

    pub(super) fn capture_on_opaque(
        &mut self,
        direction: Direction,
        exchange: Exchange,
        at: u64,
        opaque: OpaqueReason,
    ) {
        if opaque == OpaqueReason::Malformed && self.watch.captures.on().on_malformed() {
            let reason = Reason::Malformed(direction, exchange.api_key, exchange.api_version);
            let why = Why::message(reason, direction, exchange, Place::Malformed(at));
            self.capture_soon(why, direction);
        }
    }

    /// (What comes after it has no end, and of it itself no more is known: it is no frame of the capture.)
    pub(super) fn capture_on_mismatch(
        &mut self,
        expected: Option<CorrelationId>,
        got: CorrelationId,
    ) {
        if self.watch.captures.on().on_mismatch() {
            let why = Why::unknown(Reason::Mismatch(got, expected));
            self.capture_soon(why, RESPONSE);
            self.capture_sees_end(RESPONSE);
        }
    }

    /// The connection ends.
    pub(super) fn capture_on_end(&mut self, ended: Ended) {
        let is_undone = match ended {
            Ended::Session(
                CloseReason::ClientInFlight
                | CloseReason::BrokerInFlight
                | CloseReason::BrokerAfterAcks0
                | CloseReason::BrokerAfterOpaque
                | CloseReason::Stalled(_),
            ) => true,
            Ended::Lost(..) => self.view.in_flight() > 0,
            _ => false,
        };
        if is_undone && self.watch.captures.on().on_close() {
            let reason = Reason::Close(ended.label());
            let why = match (ended, self.end_cause.as_deref()) {
                (
                    Ended::Session(CloseReason::BrokerAfterAcks0 | CloseReason::BrokerAfterOpaque),
                    Some(EndCause::Request(exchange)),
                ) => Why::message(reason, REQUEST, *exchange, Place::Latest),
                _ => Why::unknown(reason),
            };
            self.capture_soon(why, RESPONSE);
        }
        self.capture_last();
    }

    /// The connection is over: takes the capture that was to be taken, and completes the one that goes on.
    #[inline]
    pub(super) fn capture_last(&mut self) {
        if self.capturing.is_some() {
            self.capture_what_there_is();
        }
    }

    /// Takes the capture that was to be taken, and completes it or the one that goes on.
    #[cold]
    fn capture_what_there_is(&mut self) {
        match self.capturing.take().map(|capturing| *capturing) {
            Some(Capturing::Due(why, _) | Capturing::Ripe(why)) => {
                self.capture_now(self.watch.captures.next_id(), why);
            }
            Some(Capturing::Open(open)) => {
                let _ = self.capture_more(open);
            }
            None => {}
        }
        self.capture_done();
    }

    /// Somebody may have asked for a capture.
    #[inline]
    pub(super) fn capture_wanted(&mut self) {
        if let Some(id) = self.view.take_wanted() {
            self.capture_by_hand(id);
        }
    }

    #[cold]
    fn capture_by_hand(&mut self, id: u64) {
        self.capture_last();
        self.capture_now(id, Why::unknown(Reason::ByHand));
    }

    /// A frame of this direction has ended, while a capture is under way.
    #[cold]
    pub(super) fn capture_sees_end(&mut self, ended: Direction) {
        match self.capturing.as_deref_mut() {
            Some(capturing @ Capturing::Due(..)) => {
                if let Capturing::Due(why, direction) = *capturing
                    && direction == ended
                {
                    *capturing = Capturing::Ripe(why);
                }
            }
            Some(Capturing::Open(open)) => {
                open.left = open.left.saturating_sub(1);
                open.has_more = true;
            }
            Some(Capturing::Ripe(_)) | None => {}
        }
    }

    /// The tape is whole.
    #[inline]
    pub(super) fn capture_settled(&mut self) {
        if self.capturing.is_some() {
            self.capture_goes_on();
        }
    }

    #[cold]
    fn capture_goes_on(&mut self) {
        match self.capturing.take().map(|capturing| *capturing) {
            Some(Capturing::Ripe(why)) => {
                self.capture_now(self.watch.captures.next_id(), why);
            }
            Some(Capturing::Open(open)) if open.has_more => {
                let is_over = open.left == 0 || Instant::now() >= open.until;
                let goes_on = self.capture_more(open);
                if is_over || !goes_on {
                    self.capture_done();
                }
            }
            under_way => self.capturing = under_way.map(Box::new),
        }
    }

    /// One at a time, since what happens while a capture goes on is in it; and the same trouble not at once
    /// again, or a connection that has it with every message would use up what may be captured of it.
    fn capture_soon(&mut self, why: Why, direction: Direction) {
        if let Some(Capturing::Open(open)) = self.capturing.as_deref()
            && Instant::now() >= open.until
        {
            self.capture_done();
        }
        if !self.is_recorded() || self.capturing.is_some() {
            return;
        }
        let (trouble, now) = (why.reason.trouble(), Instant::now());
        let has_been = |captured: &(u64, Instant)| {
            captured.0 == trouble && now.saturating_duration_since(captured.1) < PAUSE
        };
        if self.captured.as_deref().is_some_and(has_been) {
            self.watch.captures.refuse();
        } else if self.watch.captures.admit(why.reason) {
            self.capturing = Some(Box::new(Capturing::Due(why, direction)));
            self.captured = Some(Box::new((trouble, now)));
        }
    }

    fn capture_now(&mut self, id: u64, why: Why) {
        if !self.is_recorded() {
            return;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let name = self.name();
        let software = name.and_then(|name| name.software.as_ref());
        let client_id = name.and_then(|name| name.client_id.as_deref().map(text));
        let software = software.map(|told| (text(&told.name), text(&told.version)));
        let now = SystemTime::now();
        let snapshot = self.recorder.tape().map(|tape| tape.snapshot());
        let mark = snapshot.as_ref().map(|snapshot| snapshot.mark);
        let capture = Capture {
            id,
            reason: why.reason.to_string(),
            kind: why.reason.kind(),
            cause: why.cause,
            taken: now,
            client: self.view.peer,
            broker: self.view.broker(),
            upstream: self.view.upstream.clone(),
            client_id,
            software,
            opened: now.checked_sub(self.view.opened.elapsed()).unwrap_or(now),
            lost_frames: snapshot.as_ref().map_or(0, |snapshot| snapshot.lost_frames),
            frames: snapshot.map(|it| it.frames.into()).unwrap_or_default(),
            table: self.view.table(),
        };
        let (left, until) = self.watch.captures.terms();
        if self.watch.captures.take(capture, self.view.id, until) {
            self.capturing = Some(Box::new(Capturing::Open(Open {
                id,
                left,
                until,
                has_more: false,
                mark,
            })));
        }
    }

    /// Adds what came since; `false` where the capture does not go on any more.
    fn capture_more(&mut self, mut open: Open) -> bool {
        let snapshot = self.recorder.tape().map(|tape| match &open.mark {
            Some(mark) => tape.snapshot_since(mark),
            None => tape.snapshot(),
        });
        open.has_more = false;
        let mut goes_on = true;
        if let Some(snapshot) = snapshot {
            open.mark = Some(snapshot.mark);
            goes_on = self.watch.captures.append(open.id, snapshot.frames);
        }
        self.capturing = Some(Box::new(Capturing::Open(open)));
        goes_on
    }

    /// Completes the capture that goes on.
    fn capture_done(&mut self) {
        if let Some(Capturing::Open(open)) = self.capturing.take().as_deref() {
            self.watch.captures.complete(open.id);
        }
    }

    fn is_recorded(&self) -> bool {
        !matches!(self.recorder, Recorder::Off)
    }
}
