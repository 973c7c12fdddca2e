//! Bytes that nobody looks at, from socket to socket through a pipe, without a copy.
//!
//! The traps: a splice from a socket says 'would block' for an empty socket and for a full pipe alike,
//! so a pipe is emptied before it is filled, and then it means the socket; a splice that moved less
//! than asked for says nothing about the socket, which may have more; behind an urgent byte (TCP's, which
//! no Kafka client sends) a splice never comes to more, nor to a true end, though a read does; and a pipe that comes out small
//! (the kernel limits the pages of a user's pipes) costs more than it saves.

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};
use tokio::io::{Interest, ReadBuf};
use tokio::net::TcpStream;

/// From so many bytes on that are to come, and that nobody wants to see, a pipe is worth its calls. More
/// than a look shows and a recorder keeps of a frame: what has been looked at is to come as well, and may
/// be small frames with the head of one behind them that is kept as a whole.
pub(super) const SPLICE_BYTES: u64 = 16 * 1024 + PEEK_BYTES as u64;

/// Bytes that one pipe carries at most: what a peer that takes nothing costs. Each packet takes a page's
/// place in it, so a smaller one would need more calls where packets come from a wire (four times as
/// many at 256 KiB).
pub(super) const PIPE_BYTES: usize = 1024 * 1024;

/// Bytes of a next head that are looked at before they are read.
pub(super) const PEEK_BYTES: usize = 512;

/// Pipes that one thread lends at most. One is in use at a time unless peers are slow; without
/// CAP_SYS_RESOURCE a user has 64 of this size (`fs.pipe-user-pages-soft`), in all processes.
pub(crate) const MAX_PIPES: usize = 12;

/// Pipes kept for the next loan, per thread.
pub(super) const SPARES: usize = 4;

/// How many loans are refused without a try after the kernel has given no pipe of this size: a try
/// costs about as much as a pipe saves.
const REFUSED: u32 = 1_000;

/// A pipe, and how many bytes are in it.
pub(super) struct Pipe {
    read_end: OwnedFd,
    write_end: OwnedFd,
    held: u32,
}

impl Pipe {
    /// `None` where the kernel gives none that is large enough.
    fn new() -> Option<Self> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        let bytes = fcntl_setpipe_size(&write_end, PIPE_BYTES).ok()?;
        (bytes >= PIPE_BYTES).then_some(Self {
            read_end,
            write_end,
            held: 0,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Takes up to `most` bytes from `from`, once. The pipe is empty. 0 seems to be the end of the stream:
    /// whether it is, a read tells.
    pub(super) fn fill(
        &mut self,
        from: &TcpStream,
        cx: &mut Context<'_>,
        most: u64,
    ) -> Poll<Result<usize, ErrorKind>> {
        debug_assert!(self.is_empty());
        let most = usize::try_from(most).map_or(PIPE_BYTES, |most| most.min(PIPE_BYTES));
        loop {
            ready!(from.poll_read_ready(cx)).map_err(|e| e.kind())?;
            match from.try_io(Interest::READABLE, || transfer(from, &self.write_end, most)) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Poll::Ready(Err(e.kind())),
                Ok(n) => {
                    self.held = n as u32;
                    return Poll::Ready(Ok(n));
                }
            }
        }
    }

    /// Whether there is something in it, and room for about as much again.
    pub(super) fn has_more_room(&self) -> bool {
        !self.is_empty() && self.held as usize <= PIPE_BYTES / 2
    }

    /// Takes up to `most` bytes more from `from`, once. `None` where nothing came: the pipe is full, or
    /// the socket has nothing, or ended, or failed.
    pub(super) fn add(&mut self, from: &TcpStream, most: u64) -> Option<usize> {
        let room = PIPE_BYTES - self.held as usize;
        let most = usize::try_from(most).map_or(room, |most| most.min(room));
        // (not by `try_io`: 'would block' says nothing of the socket here)
        let n = transfer(from, &self.write_end, most)
            .ok()
            .filter(|&n| n > 0)?;
        self.held += n as u32;
        Some(n)
    }

    /// Gives `to` some of what is in the pipe, once; never 0 bytes. The pipe is not empty.
    pub(super) fn drain(
        &mut self,
        to: &TcpStream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, ErrorKind>> {
        loop {
            ready!(to.poll_write_ready(cx)).map_err(|e| e.kind())?;
            let held = self.held as usize;
            match to.try_io(Interest::WRITABLE, || transfer(&self.read_end, to, held)) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Poll::Ready(Err(e.kind())),
                Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero)),
                Ok(n) => {
                    self.held -= n as u32;
                    return Poll::Ready(Ok(n));
                }
            }
        }
    }
}

/// One splice. Without `MORE`: with a sender that stalls inside a frame it would hold back what has come.
fn transfer(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    Ok(splice(from, None, to, None, most, flags)?)
}

/// Whether an error of [`Pipe::fill`] says that there is no splicing here (a sandbox), and nothing of
/// the socket.
pub(super) fn is_refusal(kind: ErrorKind) -> bool {
    use ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(kind, InvalidInput | PermissionDenied | Unsupported)
}

/// Looks at what comes next, and leaves it in the socket. 0 is the end of the stream.
pub(super) fn peek(
    from: &TcpStream,
    cx: &mut Context<'_>,
    into: &mut [u8],
) -> Poll<Result<usize, ErrorKind>> {
    let into = &mut ReadBuf::new(into);
    from.poll_peek(cx, into).map_err(|e| e.kind())
}

/// All that `from` had is taken, as a look showed since the runtime last told of it: the next look waits
/// for more, instead of finding out by a call. What stands behind an urgent byte waits then too, until
/// more or the end comes, as it does behind a read of the runtime's that came short.
pub(super) fn has_no_more(from: &TcpStream) {
    // An error that means nothing but this.
    let _ = from.try_io(Interest::READABLE, || {
        Err::<(), _>(ErrorKind::WouldBlock.into())
    });
}

/// Lends pipes to the lanes of one thread.
#[derive(Default)]
pub(super) struct Pipes {
    spares: Cell<Vec<Pipe>>,
    lent: Cell<usize>,
    /// So many loans more are refused without a try.
    refused: Cell<u32>,
    #[cfg(test)]
    loans: Cell<usize>,
}

impl Pipes {
    /// An empty pipe. `None`: so many are lent already, or there is none to be had.
    pub(super) fn lend(&self) -> Option<Pipe> {
        if self.lent.get() >= MAX_PIPES {
            return None;
        }
        let mut spares = self.spares.take();
        let pipe = spares.pop();
        self.spares.set(spares);
        let pipe = pipe.or_else(|| self.make())?;
        self.lent.set(self.lent.get() + 1);
        #[cfg(test)]
        self.loans.set(self.loans.get() + 1);
        Some(pipe)
    }

    fn make(&self) -> Option<Pipe> {
        if let Some(left) = self.refused.get().checked_sub(1) {
            self.refused.set(left);
            return None;
        }
        let pipe = Pipe::new();
        if pipe.is_none() {
            self.refuse();
        }
        pipe
    }

    /// For a while there are no new pipes: they are not to be had, or of no use.
    pub(super) fn refuse(&self) {
        self.refused.set(REFUSED);
        self.spares.take();
    }

    /// Takes back what was lent. Whatever is in it is lost.
    pub(super) fn take_back(&self, pipe: Pipe) {
        self.lent.set(self.lent.get() - 1);
        let mut spares = self.spares.take();
        if pipe.is_empty() && spares.len() < SPARES {
            spares.push(pipe);
        }
        self.spares.set(spares);
    }

    /// How many pipes are on loan.
    #[cfg(test)]
    pub(super) fn lent(&self) -> usize {
        self.lent.get()
    }

    /// How many pipes have been lent so far.
    #[cfg(test)]
    pub(super) fn loans(&self) -> usize {
        self.loans.get()
    }

    /// How many pipes are kept for later loans.
    #[cfg(test)]
    pub(super) fn spares(&self) -> usize {
        let spares = self.spares.take();
        let n = spares.len();
        self.spares.set(spares);
        n
    }

    /// The next pipe on loan is none, as if the kernel did not splice.
    #[cfg(test)]
    pub(super) fn spoil(&self) {
        let (read_end, write_end) = std::os::unix::net::UnixStream::pair().unwrap();
        self.spares.set(vec![Pipe {
            read_end: read_end.into(),
            write_end: write_end.into(),
            held: 0,
        }]);
    }
}
