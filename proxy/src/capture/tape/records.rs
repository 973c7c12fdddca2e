//! Records: the heads of batches are kept, what they hold is not.
//!
//! As a rule records are one batch, of a few bytes, among others like it. Those are listed while the session
//! looks, and what stands between them is copied in one loop.

use super::entry::{self, MORE};
use super::reel::Chunk;
use super::take::Take;
use super::{FRAME, HOLE};
use klamp_codec::render::{BATCH_HEAD, batch_bytes};
use std::cell::Cell;

/// Places of records in what is shown: offset from what is neither kept nor left out, and how many bytes they
/// are in the upper half.
pub(super) type List = [Cell<u64>; 256];

impl Take<'_> {
    /// Leaves a field out of the latest frame.
    #[inline(always)]
    pub(super) fn hole(&mut self, at: u64, bytes: u32, records: bool) {
        if records
            && self.is_common
            && let Some(place) = self.list.get(self.listed)
        {
            debug_assert!(at >= self.at, "what is left out has not been kept");
            place.set(at.wrapping_sub(self.at) | u64::from(bytes) << 32);
            self.listed += 1;
        } else {
            self.leave_out(at, bytes, records);
        }
    }

    /// Keeps what stands before the records that are listed, and their heads.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        if self.listed > 0 {
            self.flush_listed();
        }
    }

    #[inline(never)]
    fn flush_listed(&mut self) {
        let (from, shown, list) = (self.at, self.rest, self.list);
        let mut rest = list.get(..self.listed).unwrap_or_default();
        self.listed = 0;
        while let [_, ..] = rest {
            let kept = self.keep_batches(from, shown, rest);
            rest = rest.get(kept..).unwrap_or_default();
            if let [records, others @ ..] = rest {
                let (offset, bytes) = place_of(records);
                self.leave_out(from + u64::from(offset), bytes, true);
                rest = others;
            }
        }
    }

    /// Appends what is shown before each of these records up to its head's end, and leaves them out; how many
    /// are done, for this is for what is common: single batches, short pieces, a chunk that has room. They
    /// are `listed` from `at` on, where `shown` stands.
    #[inline(always)]
    fn keep_batches(&mut self, at: u64, shown: &[u8], listed: &[Cell<u64>]) -> usize {
        if !self.is_open {
            self.open();
        }
        let mut reel = self.tape.reel.borrow_mut();
        let Chunk { bytes, used, .. } = &mut reel.current;
        let Some(mut room) = bytes.get_mut(*used as usize..) else {
            return 0;
        };
        let (mut written, mut number) = (0, 0);
        let mut done = (self.at - at) as usize;
        for records in listed {
            let (start, bytes) = place_of(records);
            let start = start as usize;
            let Some(piece) = shown.get(done..start + BATCH_HEAD) else {
                break;
            };
            if piece.len().wrapping_sub(BATCH_HEAD) >= entry::MANY - BATCH_HEAD
                || !is_batch(piece, bytes)
                || !self.is_open
            {
                break;
            }
            let size = MORE + piece.len();
            let Some((place, more)) = room.split_at_mut_checked(size) else {
                break;
            };
            if let Some((head, place)) = place.split_first_chunk_mut::<MORE>() {
                entry::put(entry::more(at + done as u64, piece.len() as u16), head);
                entry::copy(piece, place);
            }
            room = more;
            written += size as u32;
            done = start + bytes as usize;
            number += 1;
        }
        *used += written;
        drop(reel);
        self.pass(at + done as u64);
        number
    }

    /// Keeps what is shown before records, and all heads in them.
    #[inline(always)]
    pub(super) fn keep_heads(&mut self, at: u64, bytes: u32) {
        let head = at + BATCH_HEAD as u64;
        match self.before(head) {
            Some(before) if is_batch(before, bytes) => self.keep_upto(head),
            _ => self.keep_several_heads(at, at + u64::from(bytes)),
        }
    }

    /// The same where they are not just one batch.
    #[cold]
    #[inline(never)]
    fn keep_several_heads(&mut self, at: u64, end: u64) {
        let mut next = at;
        self.keep_upto(at);
        for _ in 0..FRAME / HOLE {
            let behind = next.saturating_add(BATCH_HEAD as u64);
            if behind > end {
                break; // (the head before told of more than there is)
            }
            self.pass(next);
            let head = self.rest.first_chunk::<BATCH_HEAD>();
            let Some(batch) = head.and_then(batch_bytes) else {
                break;
            };
            self.keep_upto(behind);
            next = next.saturating_add(batch);
        }
    }
}

/// The offset of listed records, and how many bytes they are.
#[inline(always)]
fn place_of(records: &Cell<u64>) -> (u32, u32) {
    (records.get() as u32, (records.get() >> 32) as u32)
}

/// Whether `before` ends in the head of a batch of magic 2 (RecordBatch v2) that takes all `bytes` of its
/// records, as it is as a rule.
#[inline(always)]
fn is_batch(before: &[u8], bytes: u32) -> bool {
    let Some(head) = before.last_chunk::<BATCH_HEAD>() else {
        return false;
    };
    let [_, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _, magic, ..] = head;
    u32::from_be_bytes([*a, *b, *c, *d]).wrapping_add(12) == bytes && *magic == 2
}
