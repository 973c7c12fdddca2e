//! What is left out of what is shown, and how all else gets into the tape.
//!
//! Records are listed while the session looks. When it has answered, what stands between them is copied in one
//! loop. As a rule that is short, and records are one batch, whose head is copied with what stands before it;
//! all else takes the long way.

use super::entry::{self, PIECE, Piece, RUN};
use super::reel::Chunk;
use super::take::Take;
use super::{FRAME, HOLE, WHOLE};
use klamp_codec::render::{BATCH_HEAD, batch_bytes};
use std::cell::Cell;

/// How many records are listed before what stands between them is copied.
pub(super) const LISTED: u8 = 255;

/// What stands before records is long if it is that or more.
const LONG: u32 = (entry::MANY - BATCH_HEAD) as u32;

/// Records in what is shown.
pub(super) type List = [Cell<Records>; LISTED as usize + 1];

/// Where records begin in what is shown, and how long they are. (What is shown is no more than some MiB, and a
/// frame no more than 2 GiB.)
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Records {
    place: u32,
    bytes: u32,
}

impl Take<'_> {
    /// Leaves a field out of the latest frame.
    #[inline(always)]
    pub(super) fn hole(&mut self, at: u64, bytes: u32, records: bool) {
        if records && self.listed < self.most {
            self.list(at, bytes);
        } else {
            self.leave_out(at, bytes, records);
        }
    }

    /// (There is room.)
    #[inline(always)]
    fn list(&mut self, at: u64, bytes: u32) {
        let place = at.wrapping_sub(self.from) as u32;
        if let Some(records) = self.list.get(usize::from(self.listed)) {
            records.set(Records { place, bytes });
            self.listed += 1;
        }
    }

    /// The same where that frame is kept in part, the field is not records, or the list is full.
    #[inline(never)]
    pub(super) fn leave_out(&mut self, at: u64, bytes: u32, records: bool) {
        let (side, end) = (self.side, at + u64::from(bytes));
        let limit = side.limit.get();
        if limit != WHOLE {
            // (what is left out of a frame that is kept in part does not count)
            if at >= limit {
                return;
            }
            let further = (limit + u64::from(bytes)).saturating_sub(HOLE);
            side.limit.set(further.max(end));
        } else if records && self.tape.arena.settings.records {
            return;
        }
        if !records {
            self.keep_upto(at);
            self.pass(end);
        } else if self.listed == 0 && end >= self.from + self.shown.len() as u64 {
            // (nothing else of this look is kept)
            let start = at.wrapping_sub(self.from) as usize;
            let piece = (self.shown).get((self.at - self.from) as usize..start + BATCH_HEAD);
            match piece.filter(|piece| left_out_of(piece, bytes).is_some()) {
                Some(piece) => self.keep(piece),
                None => self.write_long(at, bytes),
            }
            self.at = end;
        } else {
            if self.listed == LISTED {
                self.write(0);
            }
            self.list(at, bytes);
        }
    }

    /// Keeps what is shown before an offset of the stream, but for what is listed.
    #[inline(always)]
    pub(super) fn keep_upto(&mut self, upto: u64) {
        match self.listed {
            0 => self.keep_piece(upto),
            _ => self.write(upto),
        }
    }

    #[inline(always)]
    fn keep_piece(&mut self, upto: u64) {
        let piece = self.before(upto);
        if !piece.is_empty() {
            self.keep(piece);
        }
    }

    /// Keeps what comes next.
    #[inline(always)]
    fn keep(&mut self, piece: &[u8]) {
        if !self.put_run(self.at, piece) {
            self.put_bytes(self.at, piece);
        }
        self.at += piece.len() as u64;
    }

    /// Keeps what stands before the records that are listed and their heads, and then what is shown before an
    /// offset of the stream.
    #[inline(never)]
    pub(super) fn write(&mut self, upto: u64) {
        let listed = self.list.get(..usize::from(self.listed));
        let mut listed = listed.unwrap_or_default();
        self.listed = 0;
        while let [_, ..] = listed {
            let number = self.write_short(listed, upto);
            listed = listed.get(number..).unwrap_or_default();
            if let [records, others @ ..] = listed
                && !self.makes_room(records.get())
            {
                let Records { place, bytes } = records.get();
                self.write_long(self.from + u64::from(place), bytes);
                listed = others;
            }
        }
        self.keep_piece(upto);
    }

    /// The same as long as that is short, records are one batch, and the chunk has room: of how many records.
    #[inline(always)]
    fn write_short(&mut self, listed: &[Cell<Records>], upto: u64) -> usize {
        let (shown, mut done) = (self.shown, (self.at - self.from) as u32);
        let mut reel = self.tape.reel.borrow_mut();
        let Chunk { bytes, used, .. } = &mut reel.current;
        let Some(room) = bytes.get_mut(*used as usize..) else {
            return 0;
        };
        let all = room.len();
        let Some((start, room)) = room.split_first_chunk_mut::<RUN>() else {
            return 0;
        };
        let (number, mut room) = put_pieces(shown, &mut done, listed, room);
        let mut pieces = number as u32;
        let at = self.at;
        self.at = self.from + u64::from(done);
        if number == listed.len() {
            let tail = self.before(upto);
            if matches!(tail.len(), 1..entry::MANY) && put_piece(&mut room, tail, 0) {
                pieces += 1;
                self.at += tail.len() as u64;
            }
        }
        if pieces > 0 {
            entry::put(self.start_of_run(at, pieces), start);
            *used += (all - room.len()) as u32;
        }
        number
    }

    /// Whether the chunk lacked room for the short piece before these records, and has it now.
    #[inline(always)]
    fn makes_room(&self, records: Records) -> bool {
        let before = records.place.wrapping_sub((self.at - self.from) as u32);
        let wanted = RUN + PIECE + before as usize + BATCH_HEAD;
        let reel = self.tape.reel.borrow_mut();
        before < LONG && wanted > reel.room() && self.tape.make_room(reel, wanted).room() >= wanted
    }

    /// Keeps what stands before records, however much that is, and the heads of the batches that they consist of.
    #[cold]
    #[inline(never)]
    fn write_long(&mut self, at: u64, bytes: u32) {
        self.keep_piece(at);
        let (mut next, end) = (at, at + u64::from(bytes));
        for _ in 0..FRAME / HOLE {
            let behind = next.saturating_add(BATCH_HEAD as u64);
            if behind > end {
                break; // (the head before told of more than there is)
            }
            self.pass(next);
            let head = self.before(behind).first_chunk::<BATCH_HEAD>();
            let Some(batch) = head.and_then(batch_bytes) else {
                break;
            };
            self.keep_piece(behind);
            next = next.saturating_add(batch);
        }
        self.pass(end);
    }
}

/// Copies to `room` what stands before these records from `done` on, with their heads: of how many records, and
/// what is left of the room. `done` is where the last of them ends then.
// (on its own, so that the loop has the registers to itself)
#[inline(never)]
fn put_pieces<'r>(
    shown: &[u8],
    done: &mut u32,
    listed: &[Cell<Records>],
    mut room: &'r mut [u8],
) -> (usize, &'r mut [u8]) {
    let mut number = 0;
    let mut at = *done;
    while let Some(records) = listed.get(number) {
        let Records { place, bytes } = records.get();
        let before = place.wrapping_sub(at);
        if before >= LONG {
            break;
        }
        let (from, kept) = (at as usize, before as usize + BATCH_HEAD);
        let Some(piece) = shown.get(from..from + kept) else {
            break;
        };
        let Some(left_out) = left_out_of(piece, bytes) else {
            break;
        };
        if !put_piece(&mut room, piece, left_out) {
            break;
        }
        at = place.wrapping_add(bytes);
        number += 1;
    }
    *done = at;
    (number, room)
}

/// Takes its place from the start of `room`; `false` where that is too little.
#[inline(always)]
fn put_piece(room: &mut &mut [u8], bytes: &[u8], left_out: u32) -> bool {
    let size = PIECE + bytes.len();
    if size > room.len() {
        return false;
    }
    let (place, free) = std::mem::take(room).split_at_mut(size);
    if let Some((word, place)) = place.split_first_chunk_mut() {
        Piece::new(bytes.len(), left_out).put(word);
        entry::copy(bytes, place);
    }
    *room = free;
    true
}

/// How much is left out of records of so many bytes, if `before` ends in the head of a batch of magic 2
/// (RecordBatch v2) that takes all of them, as it does as a rule.
#[inline(always)]
fn left_out_of(before: &[u8], bytes: u32) -> Option<u32> {
    let head = before.last_chunk::<BATCH_HEAD>()?;
    let [_, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _, magic, ..] = head;
    let told = u32::from_be_bytes([*a, *b, *c, *d]).wrapping_add(12);
    if told != bytes || *magic != 2 {
        return None;
    }
    bytes.checked_sub(BATCH_HEAD as u32)
}
