//! What the session was shown, and lets pass, gets into the tape, but for what is left out.

use super::left::{self, Left, What};
use super::write::{Pieces, Shown};
use super::{FRAME, HOLE, Note, Tape, frames};
use klamp_codec::Direction;
use klamp_codec::render::batch_bytes;
use klamp_codec::session::{Input, Step};
use std::ops::Range;
use std::rc::Rc;

/// Bytes of a batch before its records (RecordBatch v2).
const BATCH_HEAD: u64 = 61;

impl Tape {
    /// The session has answered: what it lets pass of what it was shown is kept now.
    #[inline]
    pub(crate) fn settled(self: &Rc<Self>, direction: Direction, input: &Input<'_>, step: &Step) {
        let settled = match step {
            Step::Pass(n) => *n,
            Step::Replace { drop, with } => {
                if *drop > 0 {
                    self.changed(direction, with.len() as u64);
                }
                *drop as u64
            }
            // What it closes upon goes nowhere.
            Step::Close(_) => input.shown.len() as u64,
            Step::Need(_) | Step::Wait | Step::Finish => 0,
        };
        let side = self.side(direction);
        let at = side.at.get();
        let upto = at.saturating_add(settled);
        let is_here = settled <= input.shown.len() as u64 && input.unpaid == 0;
        side.is_owed.set(!is_here);
        if settled == 0 && self.arena.left.borrow().is_empty() {
            return;
        }
        let shown = Shown {
            at,
            bytes: input.shown,
        };
        self.keep(direction, upto, shown);
        side.at.set(upto);
    }

    /// Bytes come that were passed before they were there: the first of `owed` that had not.
    #[inline]
    pub(crate) fn came(self: &Rc<Self>, direction: Direction, owed: u64, bytes: &[u8]) {
        let at = self.side(direction).at.get().saturating_sub(owed);
        self.keep(direction, u64::MAX, Shown { at, bytes });
    }

    /// Keeps what is shown up to `upto` and may be kept. What lies before something that is left out is
    /// kept in any case: it may not be shown again.
    #[inline]
    fn keep(self: &Rc<Self>, direction: Direction, upto: u64, shown: Shown<'_>) {
        let side = self.side(direction);
        let upto = upto
            .min(side.end.get())
            .min(shown.at + shown.bytes.len() as u64);
        let mut from = side.copied.get().max(shown.at);
        let mut left = self.arena.left.borrow_mut();
        if from >= upto && left.is_empty() {
            return;
        }
        if side.cut.upto.get() > from && side.cut.from.get() < upto {
            self.apply(direction, shown, &mut left);
        }
        let keeps_records = self.arena.settings.records;
        let mut pieces = Pieces::new(direction);
        for it in left.iter() {
            let mut start = it.start;
            if it.what == What::Records {
                if keeps_records {
                    continue;
                }
                match is_batch(it, shown) {
                    true => start += BATCH_HEAD,
                    false => start = self.batches(&mut pieces, &mut from, it, shown),
                }
            } else if it.what != What::Field {
                start = self.no_field(&mut pieces, &mut from, it, shown);
            }
            self.piece(&mut pieces, from..start, shown);
            from = from.max(it.end());
        }
        left.clear();
        drop(left);
        if self.common.get() > 0 {
            from = self.keep_shared(&mut pieces, from..upto, shown);
        }
        self.piece(&mut pieces, from..upto, shown);
        from = from.max(upto);
        side.copied.set(from);
        // (nothing of a frame is here that is held back)
        let is_begun = from > side.frame.get();
        let next = if is_begun { &side.end } else { &side.frame };
        side.first.set(next.get());
    }

    /// What the latest cut leaves out comes among the rest that is left out.
    #[cold]
    #[inline(never)]
    fn apply(&self, direction: Direction, shown: Shown<'_>, all: &mut Vec<Left>) {
        let cut = &self.side(direction).cut;
        // (known for good, since its header will not be shown again)
        if cut.spares_header.replace(false) {
            let from = cut.from.get();
            cut.from.set(from + header(direction, from, shown));
        }
        if let Some(cut) = cut.left() {
            left::insert(all, cut);
        }
    }

    /// What is left out is a raw SASL token, or all but heads: where it begins.
    #[cold]
    #[inline(never)]
    fn no_field(
        self: &Rc<Self>,
        pieces: &mut Pieces,
        from: &mut u64,
        it: &Left,
        shown: Shown<'_>,
    ) -> u64 {
        let direction = pieces.direction;
        match it.what {
            What::Opaque => return it.start + header(direction, it.start, shown),
            What::Heads => return self.batches(pieces, from, it, shown),
            What::Field | What::Records | What::Token => {}
        }
        self.piece(pieces, *from..it.start, shown);
        self.note(direction, it.start, Note::Token(it.bytes.into()));
        self.side(direction).first.set(it.end());
        *pieces = Pieces::new(direction);
        *from = it.end();
        it.start
    }

    /// An answer that many connections get alike stands in the arena, once; where what does not begins.
    #[cold]
    #[inline(never)]
    fn keep_shared(self: &Rc<Self>, pieces: &mut Pieces, of: Range<u64>, shown: Shown<'_>) -> u64 {
        let (side, end) = (self.side(Direction::Response), self.common.replace(0));
        if of != (side.frame.get()..end) {
            return of.start;
        }
        let body = of.start + frames::ANSWER_HEADER..of.end;
        let known = shown.between(body.clone());
        let known = known.and_then(|bytes| self.arena.shared.borrow_mut().know(bytes));
        let Some(known) = known else {
            return of.start;
        };
        self.piece(pieces, of.start..body.start, shown);
        match self.known_piece(pieces, body.start, known) {
            true => of.end,
            false => body.start,
        }
    }

    /// Records that are not just one batch: where what is left out of them begins behind the last head
    /// that is kept.
    #[cold]
    #[inline(never)]
    fn batches(
        self: &Rc<Self>,
        pieces: &mut Pieces,
        from: &mut u64,
        records: &Left,
        shown: Shown<'_>,
    ) -> u64 {
        let mut start = records.start;
        let mut next = start;
        for _ in 0..FRAME / HOLE {
            let head = shown
                .chunk(next)
                .filter(|_| next + BATCH_HEAD <= records.end());
            let Some(batch) = head.and_then(batch_bytes) else {
                break;
            };
            if next > start {
                self.piece(pieces, *from..start, shown);
                *from = next;
            }
            start = next + BATCH_HEAD;
            next = next.saturating_add(batch);
        }
        start
    }
}

/// Whether these records are one batch of magic 2, as they are as a rule.
#[inline(always)]
fn is_batch(records: &Left, shown: Shown<'_>) -> bool {
    let Some(head) = shown.chunk::<{ BATCH_HEAD as usize }>(records.start) else {
        return false;
    };
    let [_, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _, magic, ..] = head;
    let bytes = u32::from_be_bytes([*a, *b, *c, *d]).wrapping_add(12);
    bytes == records.bytes && *magic == 2
}

/// Bytes of the header of the frame that begins at `at`.
#[cold]
fn header(direction: Direction, at: u64, shown: Shown<'_>) -> u64 {
    match direction {
        Direction::Request => frames::request_header(shown.chunk(at)),
        Direction::Response => frames::ANSWER_HEADER,
    }
}
