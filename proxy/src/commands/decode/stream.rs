//! One direction of a TCP connection, put together from its segments.
//!
//! The trap: what comes early is held until what lies before it comes, and that may never be, since a
//! capture can lose a segment that the connection did not. There is a most to what is held; then the
//! missing bytes are said to be missing.

use super::budget::Held;
use super::segment::Segment;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Bytes that are held of one direction.
const MOST: usize = 4 << 20;
/// Bytes that a held segment is counted as, beside its own.
const OVERHEAD: usize = 128;
/// What comes further ahead is not of this connection.
const FARTHEST: u32 = 1 << 30;

/// When and with what words bytes came.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamp {
    pub(super) time: Duration,
    pub(super) comment: Option<Rc<str>>,
}

/// The next of a stream.
pub(super) enum Piece<'a> {
    Bytes(&'a [u8], &'a Stamp),
    /// So many bytes are not in the capture.
    Missing(u64),
}

/// One direction.
#[derive(Debug)]
pub(super) struct Stream {
    /// Sequence number of the next byte; `None` before the first.
    next: Option<u32>,
    /// Where that is, counted without end.
    position: u64,
    /// What came early, by where it belongs.
    early: BTreeMap<u64, Early>,
    held: Held,
}

#[derive(Debug)]
struct Early {
    bytes: Vec<u8>,
    missing: u32,
    stamp: Stamp,
}

impl Stream {
    pub(super) fn new(held: Held) -> Self {
        Self {
            next: None,
            position: 0,
            early: BTreeMap::new(),
            held,
        }
    }

    /// The first byte has this number.
    pub(super) fn begin(&mut self, sequence: u32) {
        self.next.get_or_insert(sequence);
    }

    /// Takes a segment.
    pub(super) fn take(
        &mut self,
        segment: &Segment<'_>,
        stamp: &Stamp,
        on: &mut dyn FnMut(Piece<'_>),
    ) {
        if segment.bytes.is_empty() && segment.missing == 0 {
            return;
        }
        let next = *self.next.get_or_insert(segment.sequence);
        let ahead = segment.sequence.wrapping_sub(next);
        let behind = next.wrapping_sub(segment.sequence);
        if ahead == 0 || behind < FARTHEST {
            self.pass(behind as usize, segment.bytes, segment.missing, stamp, on);
            self.pass_early(on);
        } else if ahead < FARTHEST {
            let at = self.position + u64::from(ahead);
            let (held, bytes) = (self.early.get(&at), segment.bytes);
            if held.is_none_or(|held| held.bytes.len() < bytes.len()) {
                self.held.add(bytes.len() + OVERHEAD);
                let early = Early {
                    bytes: bytes.to_vec(),
                    missing: segment.missing,
                    stamp: stamp.clone(),
                };
                if let Some(shorter) = self.early.insert(at, early) {
                    self.held.remove(shorter.bytes.len() + OVERHEAD);
                }
            }
            while self.held.bytes() > MOST || self.held.is_too_much() && !self.early.is_empty() {
                self.give_up_waiting(on);
            }
        }
    }

    /// Nothing follows: what was held comes behind what is missing.
    pub(super) fn finish(&mut self, on: &mut dyn FnMut(Piece<'_>)) {
        while !self.early.is_empty() {
            self.give_up_waiting(on);
        }
    }

    fn give_up_waiting(&mut self, on: &mut dyn FnMut(Piece<'_>)) {
        if let Some((&at, _)) = self.early.first_key_value() {
            let gap = at.saturating_sub(self.position);
            if gap > 0 {
                on(Piece::Missing(gap));
                self.advance(gap);
            }
            self.pass_early(on);
        }
    }

    /// Passes on what is next, and was held.
    fn pass_early(&mut self, on: &mut dyn FnMut(Piece<'_>)) {
        while let Some(first) = self.early.first_entry() {
            let Some(old) = self.position.checked_sub(*first.key()) else {
                break;
            };
            let early = first.remove();
            self.held.remove(early.bytes.len() + OVERHEAD);
            let old = usize::try_from(old).unwrap_or(usize::MAX);
            self.pass(old, &early.bytes, early.missing, &early.stamp, on);
        }
    }

    /// Passes on a segment, the first `old` bytes of which have been already.
    fn pass(
        &mut self,
        old: usize,
        bytes: &[u8],
        missing: u32,
        stamp: &Stamp,
        on: &mut dyn FnMut(Piece<'_>),
    ) {
        let fresh = bytes.get(old..).unwrap_or_default();
        if !fresh.is_empty() {
            on(Piece::Bytes(fresh, stamp));
            self.advance(fresh.len() as u64);
        }
        let old = old.saturating_sub(bytes.len()) as u64;
        let missing = u64::from(missing).saturating_sub(old);
        if missing > 0 {
            on(Piece::Missing(missing));
            self.advance(missing);
        }
    }

    fn advance(&mut self, n: u64) {
        self.position += n;
        self.next = self.next.map(|next| next.wrapping_add(n as u32));
    }
}
