//! Both directions of one connection: who gets a turn, and when it is time to stop.
//!
//! The trap is a lane that waits for something of which no waker will tell it. So whatever one lane
//! does makes the other ask its session again, but where the session says that only bytes can change
//! its mind; which of the wires has woken the task nobody knows, so each lane gets a turn then; and a
//! task that stops in the middle of its work wakes itself.

use super::Meter;
use super::ended::{Ended, Loss, Side};
use super::farewell::Farewell;
use super::lane::{Fault, Io, Judge, Lane};
use super::local::{Local, Member};
use super::timer::{Clock, Timer};
use super::wire::Wire;
use klamp_codec::Direction;
use klamp_codec::observation::CloseReason;
use klamp_codec::session::{Input, Session, Step};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::task::coop;

/// How often both lanes may take turns before other connections get theirs.
const ROUNDS: usize = 16;

/// How many bytes they may move before that: a pipe takes more in a turn than a buffer.
const ROUNDS_BYTES: u64 = 2 * 1024 * 1024;

/// How long a drain lets a client go on that sends without a pause. Well below the time that the process
/// leaves for the last connections: being told the end, a client takes a while to leave.
const DRAIN_GRACE: Duration = Duration::from_millis(250);

/// How long a client may be silent, in a drain, that has been told the end and does not close.
const DRAIN_SILENCE: Duration = Duration::from_secs(1);

/// A connection's two wires and lanes, and the session that judges what they carry.
pub(super) struct Conversation<C, U> {
    client: C,
    upstream: U,
    request: Lane,
    response: Lane,
    session: Session,
    member: Member,
    drain: Drain,
    timer: Timer,
    /// The first wire that failed.
    lost: Option<(Side, Loss)>,
    farewell: Option<Box<Farewell>>,
}

/// The session, asked about one direction.
struct Asked<'a, O> {
    session: &'a mut Session,
    observer: &'a mut O,
    direction: Direction,
}

impl<O: Meter> Judge for Asked<'_, O> {
    #[inline]
    fn ask(&mut self, input: Input<'_>) -> Step {
        self.observer.ask(self.session, self.direction, input)
    }

    #[inline]
    fn awaits_bytes(&self) -> bool {
        self.session.awaits_bytes(self.direction)
    }

    #[inline]
    fn is_amid_frame(&self) -> bool {
        self.session.is_amid_frame(self.direction)
    }

    #[inline]
    fn came(&mut self, owed: u64, bytes: &[u8]) {
        self.observer.came(self.direction, owed, bytes);
    }
}

/// How far a drain has come here.
#[derive(Clone, Copy)]
enum Drain {
    /// There is none.
    Unaware,
    /// The client may go on until it pauses, at the latest until then.
    Until(Instant),
    /// The session has been told.
    Told,
    /// Since then the client has been told too; what it sent before still goes.
    Parted(Instant),
}

/// What a deadline is for.
#[derive(Clone, Copy)]
enum Due {
    /// The client has gone on for long enough.
    Drain,
    /// The client has been told the end and has nothing more to send.
    Parted,
    /// Whoever sends this direction has stopped in the middle of a frame.
    Stalled(Direction),
}

impl<C: Wire, U: Wire> Conversation<C, U> {
    pub(super) fn new(client: C, upstream: U, session: Session, shared: Rc<Local>) -> Self {
        Self {
            client,
            upstream,
            request: Lane::default(),
            response: Lane::default(),
            session,
            member: Member::new(shared),
            drain: Drain::Unaware,
            timer: Timer::default(),
            lost: None,
            farewell: None,
        }
    }

    /// Moves bytes until the connection has ended and both its wires are closed as they should be.
    pub(super) fn poll(&mut self, observer: &mut impl Meter, cx: &mut Context<'_>) -> Poll<Ended> {
        if self.member.is_expired() {
            let ended = self.farewell.as_ref().map(|farewell| farewell.ended());
            return Poll::Ready(ended.unwrap_or(Ended::DrainTimeout));
        }
        let clock = &mut Clock::default();
        self.member.join(cx);
        if self.member.is_drained() && matches!(self.drain, Drain::Unaware) {
            self.drain = Drain::Until(clock.now() + DRAIN_GRACE);
        }
        if self.farewell.is_none()
            && let Poll::Ready(ended) = self.converse(observer, clock, cx)
        {
            self.request.stop();
            self.response.stop();
            let lost = self.lost.map(|(side, _)| side);
            self.farewell = Some(Farewell::new(ended, lost, clock.now()));
        }
        let ended = self.part(observer, clock, cx);
        self.request.rest(self.member.pool());
        self.response.rest(self.member.pool());
        ended
    }

    /// Moves bytes until the connection has to end, and says why it has.
    fn converse(
        &mut self,
        observer: &mut impl Meter,
        clock: &mut Clock,
        cx: &mut Context<'_>,
    ) -> Poll<Ended> {
        self.request.wake(&self.client, cx);
        self.response.wake(&self.upstream, cx);
        loop {
            let busy = match self.rounds(observer, clock, cx) {
                Ok(busy) => busy,
                Err(ended) => return Poll::Ready(ended),
            };
            if matches!(self.drain, Drain::Told) && self.response.is_shut() {
                self.drain = Drain::Parted(clock.now());
            }
            // Without budget left a wire only seems to have nothing.
            if !busy && coop::has_budget_remaining() {
                if let Some((side, loss)) = self.lost {
                    return Poll::Ready(self.after_loss(side, loss, observer, clock));
                }
                if self.request.is_done() && self.response.is_done() {
                    return Poll::Ready(Ended::Session(self.session.ending()));
                }
                if matches!(self.drain, Drain::Until(_)) && self.request.is_dry() {
                    self.tell_drain();
                    continue;
                }
            }
            match self.next_due() {
                Some((deadline, due))
                    if (self.timer)
                        .poll(deadline, self.member.timers(), cx)
                        .is_ready() =>
                {
                    match due {
                        Due::Drain => self.tell_drain(),
                        Due::Parted => {
                            return Poll::Ready(Ended::Session(self.session.ending()));
                        }
                        Due::Stalled(direction) => {
                            return Poll::Ready(Ended::Session(CloseReason::Stalled(direction)));
                        }
                    }
                }
                _ => {
                    if busy {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Lets the lanes take turns until both are parked; `true` where they go on, but other connections
    /// are due.
    fn rounds(
        &mut self,
        observer: &mut impl Meter,
        clock: &mut Clock,
        cx: &mut Context<'_>,
    ) -> Result<bool, Ended> {
        let mut bytes = 0;
        for _ in 0..ROUNDS {
            if !self.request.is_parked()
                && let Some(moved) = self.turn(Direction::Request, observer, clock, cx)?
            {
                bytes += moved;
                (self.response).reconsider(self.session.awaits_bytes(Direction::Response));
            }
            if !self.response.is_parked()
                && let Some(moved) = self.turn(Direction::Response, observer, clock, cx)?
            {
                bytes += moved;
                (self.request).reconsider(self.session.awaits_bytes(Direction::Request));
            }
            if self.request.is_parked() && self.response.is_parked() {
                return Ok(false);
            }
            if bytes >= ROUNDS_BYTES {
                break;
            }
        }
        Ok(true)
    }

    /// A turn of the lane that carries `direction`: how many bytes were written, where anything
    /// happened at all.
    fn turn(
        &mut self,
        direction: Direction,
        observer: &mut impl Meter,
        clock: &mut Clock,
        cx: &mut Context<'_>,
    ) -> Result<Option<u64>, Ended> {
        let Self {
            client,
            upstream,
            request,
            response,
            session,
            member,
            ..
        } = self;
        let pool = member.pool();
        let io = &mut Io { cx, pool, clock };
        let judge = Asked {
            session,
            observer,
            direction,
        };
        let (lane, turned, from, to) = match direction {
            Direction::Request => {
                let turned = request.turn(client, upstream, io, judge);
                (request, turned, Side::Client, Side::Broker)
            }
            Direction::Response => {
                let turned = response.turn(upstream, client, io, judge);
                (response, turned, Side::Broker, Side::Client)
            }
        };
        let bytes = tell_moved(lane, direction, observer);
        let (side, kind) = match turned {
            Ok(moved) => return Ok(moved.then_some(bytes)),
            Err(Fault::End(ended)) => return Err(ended),
            Err(Fault::Read(kind)) => (from, kind),
            Err(Fault::Write(kind)) => {
                lane.release(pool);
                (to, kind)
            }
        };
        // The other lane goes on while there is anything to read: the broker's last answers, or
        // requests that expect none.
        lane.stop();
        self.lost.get_or_insert((side, Loss::from(kind)));
        Ok(Some(bytes))
    }

    /// All has been read that still could be: why the connection ends, now that `side` is lost.
    fn after_loss(
        &mut self,
        side: Side,
        loss: Loss,
        observer: &mut impl Meter,
        clock: &mut Clock,
    ) -> Ended {
        let verdict = self.session.lost(side.sends(), clock.elapsed(), observer);
        match (verdict, self.session.ending()) {
            (Some(verdict), _) => Ended::Session(verdict),
            // The verdict has been told before, at the end of what could still be read.
            (None, ending @ (CloseReason::BrokerAfterAcks0 | CloseReason::BrokerAfterOpaque)) => {
                Ended::Session(ending)
            }
            _ => Ended::Lost(side, loss),
        }
    }

    fn tell_drain(&mut self) {
        self.drain = Drain::Told;
        self.session.drain();
        self.request.reconsider(false);
        self.response.reconsider(false);
    }

    /// What happens if nothing else does, and when.
    fn next_due(&self) -> Option<(Instant, Due)> {
        let drain = match self.drain {
            Drain::Until(deadline) => Some((deadline, Due::Drain)),
            Drain::Parted(parted) => (self.request.waiting_since())
                .map(|since| (since.max(parted) + DRAIN_SILENCE, Due::Parted)),
            Drain::Unaware | Drain::Told => None,
        };
        let request = self.stalled(&self.request, Direction::Request);
        let response = self.stalled(&self.response, Direction::Response);
        earlier(earlier(drain, request), response)
    }

    #[inline]
    fn stalled(&self, lane: &Lane, direction: Direction) -> Option<(Instant, Due)> {
        let deadline = self.session.deadline(direction, lane.waiting_since()?)?;
        Some((deadline, Due::Stalled(direction)))
    }

    /// Closes both wires, once it is time for that. Ready at once where a close can do no harm.
    fn part(
        &mut self,
        observer: &mut impl Meter,
        clock: &mut Clock,
        cx: &mut Context<'_>,
    ) -> Poll<Ended> {
        let Self {
            client,
            upstream,
            request,
            response,
            member,
            timer,
            farewell,
            ..
        } = self;
        let Some(farewell) = farewell else {
            return Poll::Pending;
        };
        let pool = member.pool();
        let io = &mut Io { cx, pool, clock };
        let parted = farewell.poll((client, &mut *response), (upstream, &mut *request), io);
        tell_moved(request, Direction::Request, observer);
        tell_moved(response, Direction::Response, observer);
        match farewell.until() {
            _ if parted.is_ready() => {}
            Some(until) if timer.poll(until, member.timers(), cx).is_ready() => {}
            _ => return Poll::Pending,
        }
        Poll::Ready(farewell.ended())
    }
}

#[inline]
fn earlier(one: Option<(Instant, Due)>, two: Option<(Instant, Due)>) -> Option<(Instant, Due)> {
    match (one, two) {
        (Some(one), Some(two)) if two.0 < one.0 => Some(two),
        (None, two) => two,
        (one, _) => one,
    }
}

/// Tells how many bytes were written, and returns it.
fn tell_moved(lane: &mut Lane, direction: Direction, observer: &mut impl Meter) -> u64 {
    let bytes = lane.moved();
    if bytes > 0 {
        observer.moved(direction, bytes);
    }
    bytes
}

impl<C, U> Drop for Conversation<C, U> {
    fn drop(&mut self) {
        self.request.release(self.member.pool());
        self.response.release(self.member.pool());
    }
}
