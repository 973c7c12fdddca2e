//! How entries get into the chunks of a tape.
//!
//! The trap: memory for more may be that of this tape's own chunks. So the reel is not borrowed while the
//! arena is asked, and afterwards it is looked at anew.

use super::Tape;
use super::entry::{self, ANSWER, KNOWN, MORE, NOTE, Note, RUN, Told};
use super::reel::{CHUNK, CHUNKS, Chunk, Reel, STEP};
use super::take::Take;
use klamp_codec::Direction;
use std::cell::RefMut;
use std::rc::Rc;

/// A run is not continued in what is left of a chunk where that is less.
const PIECE: usize = 128;

impl Take<'_> {
    /// Of the response that begins at `at`; `false` where there is no memory to be had.
    pub(super) fn put_answer(&mut self, at: u64, told: Told) -> bool {
        self.put::<ANSWER, _>(entry::answer(at, told))
    }

    /// Of the frame that begins at `at`.
    #[cold]
    #[inline(never)]
    pub(super) fn note(&mut self, at: u64, note: Note) {
        self.put::<NOTE, _>(entry::note(self.direction, at, self.tape.now.get(), note));
    }

    /// Appends an entry; `false` where there is no memory to be had.
    #[inline(always)]
    fn put<const BYTES: usize, const WORDS: usize>(&mut self, words: [u64; WORDS]) -> bool {
        let has_room = self.tape.reel.borrow_mut().put::<BYTES, _>(words);
        has_room || self.put_with_room::<BYTES, _>(words)
    }

    #[cold]
    #[inline(never)]
    fn put_with_room<const BYTES: usize, const WORDS: usize>(
        &mut self,
        words: [u64; WORDS],
    ) -> bool {
        // (a run goes on in its chunk only)
        self.is_open = false;
        let mut reel = self.tape.make_room(self.tape.reel.borrow_mut(), BYTES);
        reel.put::<BYTES, _>(words)
    }

    /// Appends what is shown next to what is of this look already; `false` where there is nothing, or no
    /// room.
    #[inline(always)]
    pub(super) fn goes_on_with(&self, bytes: &[u8]) -> bool {
        self.is_open && self.tape.reel.borrow_mut().put_more(self.at, bytes)
    }

    /// Appends what is shown next.
    #[inline(always)]
    pub(super) fn piece(&mut self, bytes: &[u8]) {
        if !self.is_open {
            self.open();
        }
        if !self.goes_on_with(bytes) {
            self.in_pieces(bytes);
        }
    }

    /// Appends the start of a run.
    #[inline(never)]
    pub(super) fn open(&mut self) {
        let words = self.start_of_run(self.at, self.tape.now.get());
        self.is_open = self.tape.reel.borrow_mut().put::<RUN, _>(words);
    }

    #[inline(always)]
    fn start_of_run(&self, at: u64, nanos: u64) -> [u64; RUN / 8] {
        entry::run(self.direction, at, nanos, self.side.first.get())
    }

    /// The same with what is known by this number.
    pub(super) fn goes_on_with_known(&mut self, known: u16) -> bool {
        let words = entry::known(self.at, known);
        self.is_open = self.is_open && self.tape.reel.borrow_mut().put::<KNOWN, _>(words);
        self.is_open
    }

    /// Appends what is shown next to this chunk and to others, as far as there is memory to be had.
    #[cold]
    #[inline(never)]
    fn in_pieces(&mut self, mut bytes: &[u8]) {
        let (mut at, nanos) = (self.at, self.tape.now.get());
        self.is_open = true;
        while !bytes.is_empty() {
            let words = self.start_of_run(at, nanos);
            let wanted = RUN + MORE + bytes.len();
            let mut reel = self.tape.make_room(self.tape.reel.borrow_mut(), wanted);
            let room = reel.room().saturating_sub(RUN + MORE);
            let (piece, rest) = bytes.split_at(room.min(bytes.len()));
            self.is_open =
                !piece.is_empty() && reel.put::<RUN, _>(words) && reel.put_more(at, piece);
            if !self.is_open {
                return;
            }
            at += piece.len() as u64;
            bytes = rest;
        }
    }
}

impl Tape {
    /// Room in the current chunk for so many bytes, or at least for a piece of them; none where there is
    /// no memory to be had.
    #[cold]
    #[inline(never)]
    fn make_room<'a>(self: &'a Rc<Self>, reel: RefMut<'a, Reel>, bytes: usize) -> RefMut<'a, Reel> {
        let (size, used) = (reel.current.bytes.len(), reel.current.used as usize);
        drop(reel);
        if size > 0 && size < CHUNK {
            self.grow((used + bytes).max(2 * size).next_multiple_of(STEP));
        }
        if self.reel.borrow().room() < bytes.min(PIECE) {
            self.begin_chunk(bytes.next_multiple_of(STEP));
        }
        self.reel.borrow_mut()
    }

    /// Makes the current chunk larger, unless it is given up for that.
    fn grow(&self, wanted: usize) {
        let size = self.reel.borrow().current.bytes.len();
        let more = wanted.min(CHUNK) - size;
        self.arena.take(more);
        let current = &mut self.reel.borrow_mut().current;
        if current.bytes.len() < size {
            return self.arena.release(more);
        }
        let mut larger = vec![0; size + more].into_boxed_slice();
        larger[..size].copy_from_slice(&current.bytes);
        current.bytes = larger;
    }

    /// The current chunk is full. The next one has the memory of the oldest, where there are many.
    fn begin_chunk(self: &Rc<Self>, first: usize) {
        let mut reel = self.reel.borrow_mut();
        let number = reel.current.number.wrapping_add(1);
        let last = std::mem::take(&mut reel.current);
        // (from here on it is known which one is the current, should memory be looked for here)
        reel.current.number = number;
        let full = reel.full.get_or_insert_default();
        if !last.bytes.is_empty() {
            full.push_back(last);
        }
        let is_first = full.is_empty();
        let oldest = match full.len() {
            CHUNKS => full.pop_front(),
            _ => None,
        };
        drop(reel);
        let is_more = oldest.is_none();
        let memory = oldest.map_or_else(
            || {
                let size = if is_first { first.min(CHUNK) } else { CHUNK };
                self.arena.take(size);
                vec![0; size].into_boxed_slice()
            },
            |chunk| chunk.bytes,
        );
        self.sides
            .iter()
            .for_each(|side| side.told.set(Told::NOTHING));
        self.arena.age(Rc::downgrade(self), number, is_more);
        self.reel.borrow_mut().current = Chunk {
            bytes: memory,
            used: 0,
            number,
        };
    }

    /// Wipes out what is kept of a direction from `at` on.
    pub(super) fn wipe(&self, direction: Direction, at: u64) {
        let shared = self.arena.shared.borrow();
        for chunk in self.reel.borrow_mut().chunks_mut() {
            chunk.wipe(direction, at, &shared);
        }
    }
}
