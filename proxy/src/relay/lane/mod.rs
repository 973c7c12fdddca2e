//! One direction of a connection: what was read and not yet written, and what the session asked to
//! be done with it.
//!
//! A step is a debt. Whatever of it is at hand counts as settled as soon as nothing but itself can go
//! out next, so the session is asked about everything that one read brought and the answers leave
//! together, in one write; bytes that are owed and not here yet are moved without asking, by a pipe
//! where they are many and both wires are sockets. A lane that owes never reads beyond its buffer or its
//! pipe: a peer that takes nothing costs that much and no more.

mod intake;

use super::buffer::Buffer;
use super::ended::Ended;
use super::pool::Pool;
use super::splice::Pipe;
use super::timer::Clock;
use super::wire::{self, Wire};
use klamp_codec::session::{Input, Step};
use std::io::ErrorKind;
use std::task::{Context, Poll, ready};
use std::time::Instant;

/// One direction of a connection.
#[derive(Default)]
pub(super) struct Lane {
    buffer: Buffer,
    /// On loan while there is something in it; that goes out first.
    pipe: Option<Pipe>,
    stance: Stance,
    /// Goes out after what was passed, in place of bytes that were shown.
    substitute: Option<Box<Substitute>>,
    /// Nothing comes after what is in the buffer.
    eof: bool,
    /// So often the next bytes will be looked at before they are read.
    looks: u8,
    /// So many large reads will go by without such a look, since the last one was in vain.
    doubt: u8,
    /// The last read took as much as it could: more is there at once.
    brims: bool,
    pace: Pace,
    /// The wire may keep written bytes in buffers of its own.
    unflushed: bool,
    /// Since when there is room and nothing comes.
    waiting_since: Option<Instant>,
    /// Bytes written since last told.
    moved: u64,
}

/// What a lane does next, once what was passed is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stance {
    /// Asks the session. So many bytes of the last step never came.
    Ask { unpaid: u64 },
    /// Moves so many bytes that are not here yet.
    Owe(u64),
    /// Reads until so many bytes are shown.
    Need(usize),
    /// Pauses until the other direction moves.
    Wait,
    /// Shuts its output down.
    Finish,
    /// Nothing: its output is shut down.
    Shut,
    /// Nothing: one of its wires has failed, or the connection is being closed.
    Stopped,
}

impl Default for Stance {
    fn default() -> Self {
        Self::Ask { unpaid: 0 }
    }
}

/// Whether another turn is of any use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pace {
    /// It may be.
    #[default]
    Awake,
    /// It is: the last one ended with bytes read, and perhaps more to read.
    Busy,
    /// Not until a wire wakes the task or the session says something else.
    Parked,
}

struct Substitute {
    drop: usize,
    with: Vec<u8>,
    written: usize,
}

/// Why a lane cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The wire that it reads failed.
    Read(ErrorKind),
    /// The wire that it writes to failed.
    Write(ErrorKind),
    /// The whole connection ends.
    End(Ended),
}

/// The session, as one lane sees it.
pub(super) trait Judge {
    /// What is to be done.
    fn ask(&mut self, input: Input<'_>) -> Step;

    /// Whether the answer that comes next, until there are more bytes, is known: the last `Need` again, and
    /// `Need(1)` behind a `Pass` of all that was shown.
    fn awaits_bytes(&self) -> bool;

    /// Whether it would only ask for more of the frame that is under way, if nothing is shown.
    #[inline]
    fn is_amid_frame(&self) -> bool {
        false
    }

    /// Bytes have been read that were passed before they were there: the first of `owed`.
    #[inline]
    fn came(&mut self, _owed: u64, _bytes: &[u8]) {}
}

/// What a turn needs of its surroundings.
pub(super) struct Io<'a, 'w> {
    pub(super) cx: &'a mut Context<'w>,
    pub(super) pool: &'a Pool,
    pub(super) clock: &'a mut Clock,
}

impl Lane {
    /// Goes as far as one read allows. Where that seems to have taken all there was it reads on, which as
    /// a rule only leaves the task's waker with the wire: then the lane is parked. Tells whether anything
    /// happened that the other lane may be waiting for, or that makes another turn worth while.
    pub(super) fn turn(
        &mut self,
        from: &mut impl Wire,
        to: &mut impl Wire,
        io: &mut Io<'_, '_>,
        mut judge: impl Judge,
    ) -> Result<bool, Fault> {
        let may_read_on = self.pace != Pace::Busy;
        let (mut reads, mut moved) = (0, false);
        self.pace = Pace::Awake;
        loop {
            if let Stance::Ask { unpaid } = self.stance
                && self.substitute.is_none()
            {
                let shown = self.buffer.shown();
                let all = shown.len() as u64;
                if shown.is_empty() && unpaid == 0 && !self.eof && judge.is_amid_frame() {
                    self.stance = Stance::Need(1);
                    continue;
                }
                let step = judge.ask(Input {
                    shown,
                    eof: self.eof,
                    unpaid,
                    now: io.clock.elapsed(),
                });
                let passes_all = matches!(step, Step::Pass(n) if n == all) && !self.eof;
                moved |= self.take(step).map_err(Fault::End)?;
                if !(passes_all && judge.awaits_bytes()) {
                    continue;
                }
                self.stance = Stance::Need(1);
            }
            if self.gathers()
                && let Poll::Ready(Some(news)) = self.look(from, io, &mut judge)?
            {
                moved |= news;
                if self.gather(from, io)? {
                    continue;
                }
            }
            if self.has_to_write() {
                match self.write(to, io.cx) {
                    Poll::Pending => break,
                    Poll::Ready(substituted) => moved |= substituted.map_err(Fault::Write)?,
                }
            }
            match self.stance {
                Stance::Ask { .. } => {}
                Stance::Wait | Stance::Shut | Stance::Stopped => break,
                Stance::Finish => {
                    // A failure means that the peer is gone, which the other lane finds out.
                    if wire::shutdown(to, io.cx).is_pending() {
                        break;
                    }
                    self.stance = Stance::Shut;
                    moved = true;
                    break;
                }
                Stance::Owe(_) | Stance::Need(_) => {
                    let has_taken_all = may_read_on && !self.brims && self.pipe.is_none();
                    if reads > u8::from(has_taken_all) {
                        self.pace = Pace::Busy;
                        return Ok(moved);
                    }
                    if reads > 0 && has_nothing(from, io.cx) {
                        self.waits(io.clock);
                        break;
                    }
                    match self.look(from, io, &mut judge)? {
                        Poll::Pending => break,
                        Poll::Ready(Some(news)) => moved |= news,
                        Poll::Ready(None) => {
                            if self.take_in(from, to, io, &mut judge)?.is_pending() {
                                break;
                            }
                            reads += 1;
                            moved = true;
                        }
                    }
                }
            }
        }
        self.pace = Pace::Parked;
        self.buffer.put_away(io.pool);
        Ok(moved)
    }

    /// Whether another turn is of no use until a wire wakes the task or the lane is to reconsider.
    pub(super) fn is_parked(&self) -> bool {
        self.pace == Pace::Parked
    }

    /// The task has been woken, perhaps for this lane. One that waits for nothing but bytes looks whether
    /// its socket has any, which costs less than a turn, and leaves the waker there as well.
    pub(super) fn wake(&mut self, from: &impl Wire, cx: &mut Context<'_>) {
        let only_reads = self.waiting_since.is_some() && !self.has_to_write();
        if !(only_reads && has_nothing(from, cx)) {
            self.unpark();
        }
    }

    fn unpark(&mut self) {
        if self.is_parked() {
            self.pace = Pace::Awake;
        }
    }

    /// Makes `step` what this lane owes. Tells whether it is more than waiting.
    #[inline]
    fn take(&mut self, step: Step) -> Result<bool, Ended> {
        let shown = self.buffer.shown().len();
        self.stance = match step {
            Step::Pass(0) => return Err(Ended::Broken),
            Step::Pass(n) => {
                let at_hand = usize::try_from(n).map_or(shown, |n| n.min(shown));
                self.buffer.pass(at_hand);
                match n - at_hand as u64 {
                    0 => Stance::Ask { unpaid: 0 },
                    owed if !self.eof => Stance::Owe(owed),
                    unpaid if at_hand > 0 => Stance::Ask { unpaid },
                    _ => return Err(Ended::Broken),
                }
            }
            Step::Replace { drop, with } => {
                if drop > shown || (drop == 0 && with.is_empty()) {
                    return Err(Ended::Broken);
                }
                self.substitute = Some(Box::new(Substitute {
                    drop,
                    with,
                    written: 0,
                }));
                Stance::Ask { unpaid: 0 }
            }
            Step::Need(n) if self.eof || n <= shown => return Err(Ended::Broken),
            Step::Need(n) => Stance::Need(n),
            Step::Wait => Stance::Wait,
            Step::Finish => Stance::Finish,
            Step::Close(reason) => return Err(Ended::Session(reason)),
        };
        if self.stance == Stance::Wait {
            self.waiting_since = None;
        }
        Ok(!matches!(self.stance, Stance::Need(_) | Stance::Wait))
    }

    /// Writes what was passed, then what was substituted. Tells whether the latter is out now.
    pub(super) fn write(
        &mut self,
        to: &mut impl Wire,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, ErrorKind>> {
        let written = self.write_all(to, cx);
        if written.is_pending() {
            self.waiting_since = None;
        }
        written
    }

    fn has_to_write(&self) -> bool {
        self.unflushed
            || self.pipe.is_some()
            || self.substitute.is_some()
            || !self.buffer.passed().is_empty()
    }

    fn write_all(
        &mut self,
        to: &mut impl Wire,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, ErrorKind>> {
        // Nothing gets into a pipe unless this wire has a socket.
        if let (Some(pipe), Some(to)) = (&mut self.pipe, to.tcp()) {
            while !pipe.is_empty() {
                self.moved += ready!(pipe.drain(to, cx))? as u64;
            }
        }
        while !self.buffer.passed().is_empty() {
            let n = ready!(wire::write(to, cx, self.buffer.passed()))?;
            self.buffer.written(n);
            self.moved += n as u64;
            self.unflushed = true;
        }
        let mut substituted = false;
        if let Some(substitute) = &mut self.substitute {
            while let rest @ [_, ..] = &substitute.with[substitute.written..] {
                let n = ready!(wire::write(to, cx, rest))?;
                substitute.written += n;
                self.moved += n as u64;
                self.unflushed = true;
            }
            self.buffer.cut(substitute.drop);
            self.substitute = None;
            substituted = true;
        }
        if self.unflushed {
            ready!(wire::flush(to, cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(substituted))
    }

    /// The session may have changed its mind (the other direction moved, or a drain began): a lane
    /// that waits for anything but its own debts asks again, or for bytes alone: `awaits_bytes`.
    pub(super) fn reconsider(&mut self, awaits_bytes: bool) {
        let may_change = match self.stance {
            Stance::Need(_) => !awaits_bytes,
            stance => stance == Stance::Wait,
        };
        if may_change {
            self.stance = Stance::Ask { unpaid: 0 };
            self.unpark();
        }
    }

    /// Reads nothing any more. What was passed may still be written.
    pub(super) fn stop(&mut self) {
        if !self.is_shut() {
            self.stance = Stance::Stopped;
        }
        self.unpark();
        self.waiting_since = None;
    }

    /// Nothing will happen for a while: holds no more memory than its bytes need.
    #[inline]
    pub(super) fn rest(&mut self, pool: &Pool) {
        self.buffer.rest(pool);
        if self.pipe.is_some() {
            self.put_pipe_away(pool);
        }
    }

    /// Gives all memory back, and with it up what is not written.
    pub(super) fn release(&mut self, pool: &Pool) {
        self.buffer.release(pool);
        if let Some(pipe) = self.pipe.take() {
            pool.pipes.take_back(pipe);
        }
        self.substitute = None;
    }

    /// Since when this lane has had room and its peer has sent nothing; `None` while it does
    /// anything but wait for that peer.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since
    }

    /// Whether all that has come is written, and nothing more is there or wanted right now.
    pub(super) fn is_dry(&self) -> bool {
        let paused = self.is_done() || self.stance == Stance::Wait;
        let has_written = self.buffer.passed().is_empty()
            && (self.pipe.as_ref()).is_none_or(|pipe| pipe.is_empty());
        self.waiting_since.is_some() || paused && has_written
    }

    /// Whether this lane will move nothing any more.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.stance, Stance::Shut | Stance::Stopped)
    }

    pub(super) fn is_shut(&self) -> bool {
        self.stance == Stance::Shut
    }

    pub(super) fn at_eof(&self) -> bool {
        self.eof
    }

    /// Bytes written since the last call.
    pub(super) fn moved(&mut self) -> u64 {
        std::mem::take(&mut self.moved)
    }
}

/// Whether a socket has no bytes, which costs less to ask than to read; leaves the task's waker there then.
fn has_nothing(from: &impl Wire, cx: &mut Context<'_>) -> bool {
    (from.tcp()).is_some_and(|from| from.poll_read_ready(cx).is_pending())
}
