//! Cuts one direction of a connection into frames, each behind its length.
//!
//! The trap: a capture that begins amid a connection, or has lost a part of it, does not say where a
//! frame begins. Then what looks like the head of one is looked for, and it is said what was skipped.

use super::stream::{Piece, Stamp};
use klamp_codec::Direction;

/// No frame is longer: no broker sends and no client takes more.
const LONGEST: u32 = 1 << 30;

/// Bytes that are looked through at once.
const AT_ONCE: usize = 16 << 10;

/// Whoever wants frames.
pub(super) trait Frames {
    /// Whether a frame could begin so: as many bytes as [`needed`] says, or more.
    fn is_plausible(&self, direction: Direction, bytes: &[u8]) -> bool;
    /// A frame of this length begins with these bytes, the length field not included: as many as say
    /// what it is. They come again.
    fn begin(&mut self, direction: Direction, length: u32, head: &[u8], stamp: &Stamp);
    /// The next bytes of the frame.
    fn bytes(&mut self, direction: Direction, bytes: &[u8]);
    /// The next bytes of the frame are missing.
    fn hole(&mut self, direction: Direction, n: u32);
    /// The frame ends: with its last byte, or where there is no more of it.
    fn end(&mut self, direction: Direction, stamp: &Stamp);
    /// What is no frame begins here: a length that none has, or half of one.
    fn broken(&mut self, direction: Direction, why: String, stamp: &Stamp);
    /// So many bytes lie between where one frame ends, or the capture begins, and what looks like the
    /// head of another, or the end.
    fn skipped(&mut self, direction: Direction, bytes: u64, stamp: &Stamp);
    /// So many bytes are not in the capture.
    fn missing(&mut self, direction: Direction, bytes: u64, stamp: &Stamp);
}

/// Bytes of a frame that it takes to tell whether it is one: a request up to the length of its client
/// id, a response's correlation id.
pub(super) fn needed(direction: Direction) -> usize {
    match direction {
        Direction::Request => 14,
        Direction::Response => 8,
    }
}

/// One direction.
#[derive(Debug)]
pub(super) struct Cutter {
    direction: Direction,
    state: State,
    /// Of the frame that begins, or may.
    head: Vec<u8>,
    /// Of the first byte in `head`, or of the latest piece.
    stamp: Stamp,
}

#[derive(Debug)]
enum State {
    /// A frame begins.
    Boundary,
    /// So many bytes of a frame follow.
    Frame(u32),
    /// Nobody knows where the next one begins; so many bytes have been skipped.
    Lost(u64),
}

impl Cutter {
    /// A direction from its first byte on, or from anywhere.
    pub(super) fn new(direction: Direction, is_first: bool) -> Self {
        Self {
            direction,
            state: match is_first {
                true => State::Boundary,
                false => State::Lost(0),
            },
            head: Vec::new(),
            stamp: Stamp::default(),
        }
    }

    /// Takes what comes next.
    pub(super) fn take(&mut self, piece: Piece<'_>, to: &mut dyn Frames) {
        match piece {
            Piece::Bytes(bytes, stamp) => {
                for bytes in bytes.chunks(AT_ONCE) {
                    self.bytes(bytes, stamp, to);
                }
            }
            Piece::Missing(n) => self.missing(n, to),
        }
    }

    /// Nothing follows.
    pub(super) fn finish(&mut self, to: &mut dyn Frames) {
        match self.state {
            State::Frame(_) => to.end(self.direction, &self.stamp),
            State::Boundary if self.head.is_empty() => {}
            State::Boundary => {
                let why = format!(
                    "it ends in the head of a frame, after {} bytes",
                    self.head.len()
                );
                to.broken(self.direction, why, &self.stamp);
            }
            State::Lost(skipped) => {
                let skipped = skipped + self.head.len() as u64;
                if skipped > 0 {
                    to.skipped(self.direction, skipped, &self.stamp);
                }
            }
        }
        self.head.clear();
        self.state = State::Boundary;
    }

    fn bytes(&mut self, bytes: &[u8], stamp: &Stamp, to: &mut dyn Frames) {
        let mut found: Vec<u8>;
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.state {
                State::Boundary => rest = self.head(rest, stamp, to),
                State::Frame(left) => {
                    let (mine, behind) =
                        rest.split_at_checked(left as usize).unwrap_or((rest, &[]));
                    self.stamp = stamp.clone();
                    to.bytes(self.direction, mine);
                    self.pass(mine.len() as u32, to);
                    rest = behind;
                }
                State::Lost(skipped) => {
                    self.stamp = stamp.clone();
                    self.head.extend_from_slice(rest);
                    found = self.search(skipped, to);
                    rest = &found;
                }
            }
        }
    }

    /// Looks for a frame in what has been kept, and gives what stands there.
    fn search(&mut self, skipped: u64, to: &mut dyn Frames) -> Vec<u8> {
        let needed = needed(self.direction);
        let mut windows = self.head.windows(needed);
        if let Some(at) = windows.position(|at| to.is_plausible(self.direction, at)) {
            let found = self.head.split_off(at);
            self.head.clear();
            let skipped = skipped + at as u64;
            if skipped > 0 {
                to.skipped(self.direction, skipped, &self.stamp);
            }
            self.state = State::Boundary;
            return found;
        }
        let dropped = self.head.len().saturating_sub(needed - 1);
        self.head.drain(..dropped);
        self.state = State::Lost(skipped + dropped as u64);
        Vec::new()
    }

    /// Takes what lacks of the head of a frame, and gives the rest back.
    fn head<'a>(&mut self, bytes: &'a [u8], stamp: &Stamp, to: &mut dyn Frames) -> &'a [u8] {
        if self.head.is_empty() {
            self.stamp = stamp.clone();
        }
        let length = self.head.first_chunk().copied().map(i32::from_be_bytes);
        let wanted = match length {
            None => 4,
            Some(length) => match u32::try_from(length) {
                Ok(length) if length <= LONGEST => {
                    let known = needed(self.direction) - 4;
                    4 + known.min(length as usize)
                }
                _ => {
                    let why = format!("no frame has the length {length}");
                    to.broken(self.direction, why, stamp);
                    self.state = State::Lost(0);
                    return bytes;
                }
            },
        };
        let missing = wanted - self.head.len();
        let (mine, rest) = bytes.split_at_checked(missing).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(mine);
        if self.head.len() < wanted || length.is_none() && self.head != [0; 4] {
            return rest;
        }
        let head = std::mem::take(&mut self.head);
        let head = head.get(4..).unwrap_or_default();
        let length = length.unwrap_or(0) as u32;
        to.begin(self.direction, length, head, &self.stamp);
        self.stamp = stamp.clone();
        self.state = State::Frame(length);
        to.bytes(self.direction, head);
        self.pass(head.len() as u32, to);
        rest
    }

    /// So many bytes of the frame have come, or never will.
    fn pass(&mut self, n: u32, to: &mut dyn Frames) {
        if let State::Frame(left) = &mut self.state {
            *left -= n;
            if *left == 0 {
                to.end(self.direction, &self.stamp);
                self.state = State::Boundary;
            }
        }
    }

    fn missing(&mut self, n: u64, to: &mut dyn Frames) {
        to.missing(self.direction, n, &self.stamp);
        match self.state {
            State::Frame(left) => {
                let mine = u32::try_from(n).unwrap_or(u32::MAX).min(left);
                to.hole(self.direction, mine);
                self.pass(mine, to);
                if n > u64::from(mine) {
                    self.state = State::Lost(0);
                }
            }
            State::Boundary => {
                // The head that has begun goes with it.
                self.state = State::Lost(std::mem::take(&mut self.head).len() as u64);
            }
            State::Lost(skipped) => {
                let skipped = skipped + std::mem::take(&mut self.head).len() as u64;
                self.state = State::Lost(skipped);
            }
        }
    }
}
