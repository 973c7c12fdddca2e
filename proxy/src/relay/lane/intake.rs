//! How bytes come into a lane: into its buffer, where the session sees them, or into a pipe, where
//! they are many and it does not want to.
//!
//! The trap: the session may be shown bytes that are still in the socket, and what it says of them is
//! a debt like any other. They are not in the buffer then, so whatever it answers, they come in once
//! more, by the pipe or by a read, and are counted there.

use super::super::ended::Ended;
use super::super::pool::{BUFFER_BYTES, Pool};
use super::super::splice::{self, PEEK_BYTES, Pipe, SPLICE_BYTES};
use super::super::timer::Clock;
use super::super::wire::{self, Wire};
use super::{Fault, Io, Judge, Lane, Stance};
use klamp_codec::session::{Input, Step};
use std::io::ErrorKind;
use std::task::Poll;
use tokio::net::TcpStream;

/// How often the next bytes are looked at, after some were spliced, in the hope of another large frame:
/// behind a large region the frame may have a few bytes more.
const LOOKS: u8 = 2;

/// A read of so many bytes may be a part of large frames that happen to fit the buffer: the next ones
/// are worth a look.
const LARGE_READ: usize = BUFFER_BYTES / 2;

/// So many large reads go by without a look after one was in vain: small frames in great number.
const DOUBT: u8 = 16;

const HOLD_BUDGET: Fault = Fault::End(Ended::HoldBudget);

impl Lane {
    /// Behind bytes that were spliced: shows the session the next ones while they are still in the
    /// socket, so that another large frame is spliced from its first byte on. `None`: they are to be
    /// read; else tells whether anything happened.
    pub(super) fn look(
        &mut self,
        from: &impl Wire,
        io: &mut Io<'_, '_>,
        judge: &mut impl Judge,
    ) -> Result<Poll<Option<bool>>, Fault> {
        let (1.., Stance::Need(need), Some(from)) = (self.looks, self.stance, from.tcp()) else {
            return Ok(Poll::Ready(None));
        };
        if !self.buffer.shown().is_empty() {
            return Ok(Poll::Ready(None));
        }
        let room = &mut self.room(0, io.pool)?[..PEEK_BYTES];
        let peeked = splice::peek(from, io.cx, room);
        let Poll::Ready(n) = self.arrived(peeked, io.clock)? else {
            return Ok(Poll::Pending);
        };
        if n < need {
            self.looks = 0;
            return Ok(Poll::Ready(None));
        }
        self.looks -= 1;
        let step = judge.ask(Input {
            shown: self.buffer.preview(n),
            eof: false,
            unpaid: 0,
            now: io.clock.elapsed(),
        });
        let news = match step {
            Step::Pass(owed @ 1..) => {
                self.stance = Stance::Owe(owed);
                // The last bytes of the frame, and nothing more is there yet: by the pipe too, so that
                // the next frame can be looked at from its start.
                let is_all = owed == n as u64 && n < PEEK_BYTES;
                if self.is_many(owed) {
                    self.doubt = 0;
                } else if !is_all {
                    (self.looks, self.doubt) = (0, DOUBT);
                    self.put_pipe_away(io.pool);
                }
                true
            }
            Step::Need(need) if need > n => {
                self.stance = Stance::Need(need);
                self.looks = 0;
                false
            }
            Step::Pass(_) | Step::Need(_) => return Err(Fault::End(Ended::Broken)),
            step => {
                if matches!(step, Step::Replace { .. }) {
                    self.read_again(n, from, io.pool)?;
                }
                self.take(step).map_err(Fault::End)?
            }
        };
        Ok(Poll::Ready(Some(news)))
    }

    /// Takes one more large frame behind what is in the pipe, or the last bytes of one, so that they leave
    /// together: sent on their own, a few last bytes cost the next peer as much as the whole frame. Tells
    /// whether some of it has come; what stands in the way shows when the pipe is empty.
    pub(super) fn gather(&mut self, from: &impl Wire, io: &mut Io<'_, '_>) -> Result<bool, Fault> {
        let (Stance::Owe(owed), Some(from)) = (self.stance, from.tcp()) else {
            return Ok(false);
        };
        let is_large = owed > SPLICE_BYTES;
        let is_last = self.looks > 0 && owed < PEEK_BYTES as u64;
        let pipe = self.pipe.as_mut().filter(|_| is_large || is_last);
        let Some(n) = pipe.and_then(|pipe| pipe.add(from, owed)) else {
            return Ok(false);
        };
        if is_large {
            self.looks = LOOKS;
        } else if n as u64 == owed {
            // The look that this follows saw them, and nothing behind them.
            splice::has_no_more(from);
        }
        self.stance = self.paid(owed, n);
        Ok(self.arrived(Poll::Ready(Ok(n)), io.clock)?.is_ready())
    }

    /// Whether there are bytes in the pipe, and room for more.
    pub(super) fn gathers(&self) -> bool {
        let pipe = self.pipe.as_ref();
        self.looks > 0 && pipe.is_some_and(Pipe::has_more_room) && self.buffer.is_empty()
    }

    /// Reads at least those `n` bytes that have been looked at.
    fn read_again(&mut self, n: usize, from: &TcpStream, pool: &Pool) -> Result<(), Fault> {
        let read = from.try_read(self.room(0, pool)?);
        match read.map_err(|e| Fault::Read(e.kind()))? {
            less if less < n => Err(Fault::Read(ErrorKind::UnexpectedEof)),
            read => {
                self.received(read);
                Ok(())
            }
        }
    }

    /// Takes something in, once: into the pipe where much is owed, else into the buffer.
    pub(super) fn take_in(
        &mut self,
        from: &mut impl Wire,
        to: &impl Wire,
        io: &mut Io<'_, '_>,
        judge: &mut impl Judge,
    ) -> Result<Poll<()>, Fault> {
        if let Stance::Owe(owed) = self.stance
            && let (Some(from), Some(_)) = (from.tcp(), to.tcp())
            && let Some(pipe) = self.pipe_for(owed, io.pool)
        {
            let filled = pipe.fill(from, io.cx, owed);
            match filled {
                // An urgent byte ends a splice too: a read tells.
                Poll::Ready(Ok(0)) => {}
                Poll::Ready(Err(kind)) if splice::is_refusal(kind) => {
                    self.put_pipe_away(io.pool);
                    io.pool.pipes.refuse();
                }
                _ => {
                    if self.is_many(owed) {
                        self.looks = LOOKS;
                    }
                    self.brims &= filled.is_ready();
                    let filled = self.arrived(filled, io.clock)?;
                    return Ok(filled.map(|n| self.stance = self.paid(owed, n)));
                }
            }
        }
        self.read(from, io, judge)
    }

    /// A pipe, empty, where it is worth while for the `owed` bytes and to be had. One at hand is used
    /// to the last byte, so that the next frame can be spliced from its first.
    fn pipe_for(&mut self, owed: u64, pool: &Pool) -> Option<&mut Pipe> {
        match self.is_many(owed) {
            true if self.pipe.is_none() => self.pipe = pool.pipes.lend(),
            false if self.looks == 0 => self.put_pipe_away(pool),
            _ => {}
        }
        self.pipe.as_mut()
    }

    /// Whether that many bytes are worth a pipe. Without an end (nobody looks any more) they may as well
    /// be few.
    fn is_many(&self, owed: u64) -> bool {
        owed > SPLICE_BYTES && (owed <= u64::from(u32::MAX) || self.brims)
    }

    pub(super) fn put_pipe_away(&mut self, pool: &Pool) {
        if let Some(pipe) = self.pipe.take_if(|pipe| pipe.is_empty()) {
            pool.pipes.take_back(pipe);
        }
    }

    /// Reads once.
    fn read(
        &mut self,
        from: &mut impl Wire,
        io: &mut Io<'_, '_>,
        judge: &mut impl Judge,
    ) -> Result<Poll<()>, Fault> {
        let need = match self.stance {
            Stance::Need(n) => n,
            _ => 0,
        };
        let mut room = self.buffer.room(need, io.pool).ok_or(HOLD_BUDGET)?;
        if let (Stance::Owe(owed), 1.., true) = (self.stance, self.looks, from.tcp().is_some()) {
            // No further than to the next frame's start, which is to be looked at.
            let most = usize::try_from(owed).map_or(room.len(), |owed| owed.min(room.len()));
            room = &mut room[..most];
        }
        let read = wire::read(from, io.cx, room);
        self.brims = matches!(read, Poll::Ready(Ok(n)) if n == room.len());
        let read = self.arrived(read, io.clock)?;
        Ok(read.map(|n| {
            if let Stance::Owe(owed) = self.stance {
                let paid = usize::try_from(owed).map_or(n, |owed| owed.min(n));
                judge.came(owed, self.buffer.preview(paid));
            }
            self.received(n);
        }))
    }

    fn room(&mut self, need: usize, pool: &Pool) -> Result<&mut [u8], Fault> {
        self.buffer.room(need, pool).ok_or(HOLD_BUDGET)
    }

    /// Keeps account of the time that the sender takes.
    fn arrived(
        &mut self,
        arrived: Poll<Result<usize, ErrorKind>>,
        clock: &mut Clock,
    ) -> Result<Poll<usize>, Fault> {
        match arrived {
            Poll::Pending => {
                self.waits(clock);
                Ok(Poll::Pending)
            }
            Poll::Ready(arrived) => {
                let n = arrived.map_err(Fault::Read)?;
                clock.restart();
                self.waiting_since = None;
                Ok(Poll::Ready(n))
            }
        }
    }

    /// There is room, and nothing comes.
    pub(super) fn waits(&mut self, clock: &mut Clock) {
        self.waiting_since.get_or_insert_with(|| clock.recent());
    }

    /// `n` bytes, or the end, have come into the buffer.
    fn received(&mut self, n: usize) {
        self.buffer.filled(n);
        self.eof = n == 0;
        if n >= LARGE_READ && self.looks == 0 {
            match self.doubt.checked_sub(1) {
                Some(less) => self.doubt = less,
                None => self.looks = 1,
            }
        }
        self.stance = match self.stance {
            Stance::Owe(owed) => {
                let at_hand = usize::try_from(owed).map_or(n, |owed| owed.min(n));
                self.buffer.pass(at_hand);
                self.paid(owed, at_hand)
            }
            Stance::Need(n) if n > self.buffer.shown().len() && !self.eof => Stance::Need(n),
            _ => Stance::Ask { unpaid: 0 },
        };
    }

    /// Of `owed` bytes `n` have come now.
    fn paid(&self, owed: u64, n: usize) -> Stance {
        match owed - n as u64 {
            unpaid if self.eof => Stance::Ask { unpaid },
            0 => Stance::Ask { unpaid: 0 },
            owed => Stance::Owe(owed),
        }
    }
}
