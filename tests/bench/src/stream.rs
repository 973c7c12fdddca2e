//! Both ends of a connection, non-blocking: frames come in and are only counted and checked, frames go
//! out of templates.
//!
//! The trap: source and sink share the machine with the proxy. What they do per frame must cost less
//! than what is measured, so bodies are neither kept nor looked at, and small frames that are due
//! together are written together.

use crate::frames::{Frames, Kind};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;

/// As much as one read takes.
pub const READ: usize = 256 << 10;

/// Frames up to this size are copied together; of larger ones only the head is.
const SMALL: usize = 16 << 10;

/// As much of small frames as is gathered for one write.
const GATHERED: usize = 64 << 10;

/// The frames that come in, cut out of the stream. `HEAD` bytes of each are kept, the length included.
#[derive(Debug)]
pub struct Incoming<const HEAD: usize> {
    head: [u8; HEAD],
    have: usize,
    /// Bytes of the frame behind its head that are still to come.
    rest: usize,
}

impl<const HEAD: usize> Default for Incoming<HEAD> {
    fn default() -> Self {
        Self {
            head: [0; HEAD],
            have: 0,
            rest: 0,
        }
    }
}

impl<const HEAD: usize> Incoming<HEAD> {
    /// Takes the next bytes, and tells of each frame that is whole now: its head, and its size with
    /// the length in front.
    ///
    /// # Errors
    /// If a frame is smaller than its head, and what `whole` says.
    pub fn take(
        &mut self,
        mut bytes: &[u8],
        mut whole: impl FnMut(&[u8; HEAD], usize) -> io::Result<()>,
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.have < HEAD {
                let count = bytes.len().min(HEAD - self.have);
                self.head[self.have..self.have + count].copy_from_slice(&bytes[..count]);
                self.have += count;
                bytes = &bytes[count..];
                if self.have < HEAD {
                    return Ok(());
                }
                self.rest = size(&self.head)
                    .checked_sub(HEAD)
                    .ok_or_else(|| io::Error::other("a frame that is smaller than its head"))?;
            }
            let count = bytes.len().min(self.rest);
            self.rest -= count;
            bytes = &bytes[count..];
            if self.rest == 0 {
                self.have = 0;
                whole(&self.head, size(&self.head))?;
            }
        }
        Ok(())
    }
}

/// The size of the frame that starts so, the length included.
fn size(head: &[u8]) -> usize {
    number(head, 0) as usize + 4
}

/// The four bytes there as a number.
pub fn number(head: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

/// The frames that are to go out.
#[derive(Debug)]
pub struct Outgoing {
    /// Where the correlation id stands in a frame.
    id_at: usize,
    due: VecDeque<(Kind, u32)>,
    gathered: Vec<u8>,
    sent: usize,
    /// The large frame whose head is the end of what is gathered, and where its rest begins.
    tail: Option<(Kind, usize)>,
}

impl Outgoing {
    /// For requests.
    pub fn requests() -> Self {
        Self::new(8)
    }

    /// For answers.
    pub fn answers() -> Self {
        Self::new(4)
    }

    fn new(id_at: usize) -> Self {
        Self {
            id_at,
            due: VecDeque::new(),
            gathered: Vec::new(),
            sent: 0,
            tail: None,
        }
    }

    /// A frame that is to go out behind all others.
    pub fn push(&mut self, kind: Kind, correlation_id: u32) {
        self.due.push_back((kind, correlation_id));
    }

    /// Writes as much as the socket takes.
    ///
    /// # Errors
    /// The socket's, other than that it takes no more now.
    pub fn flush(&mut self, frames: &Frames, mut socket: &TcpStream) -> io::Result<()> {
        loop {
            self.gather(frames);
            let head = &self.gathered[self.sent..];
            let tail = self
                .tail
                .map_or(&[][..], |(kind, at)| &frames.of(kind)[at..]);
            if head.is_empty() && tail.is_empty() {
                return Ok(());
            }
            let written = if tail.is_empty() {
                socket.write(head)
            } else {
                socket.write_vectored(&[IoSlice::new(head), IoSlice::new(tail)])
            };
            match written {
                Ok(count) => {
                    let of_head = count.min(head.len());
                    let whole = count - of_head == tail.len();
                    self.sent += of_head;
                    self.tail = self
                        .tail
                        .filter(|_| !whole)
                        .map(|(kind, at)| (kind, at + count - of_head));
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }

    fn gather(&mut self, frames: &Frames) {
        if self.tail.is_some() || self.sent < self.gathered.len() {
            return;
        }
        self.gathered.clear();
        self.sent = 0;
        while self.gathered.len() < GATHERED {
            let Some((kind, id)) = self.due.pop_front() else {
                return;
            };
            let frame = frames.of(kind);
            let small = frame.len() <= SMALL;
            let copied = if small { frame.len() } else { 64 };
            let start = self.gathered.len();
            self.gathered.extend_from_slice(&frame[..copied]);
            self.gathered[start + self.id_at..][..4].copy_from_slice(&id.to_be_bytes());
            if !small {
                self.tail = Some((kind, copied));
                return;
            }
        }
    }
}

/// Reads what is there. `None`: nothing more for now; 0: the end.
///
/// # Errors
/// The socket's.
pub fn read(mut socket: &TcpStream, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match socket.read(buffer) {
        Ok(count) => Ok(Some(count)),
        Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether it is the peer's way to say that it is gone.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::CONNRESET | Errno::PIPE)
    )
}
