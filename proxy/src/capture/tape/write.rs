//! How entries get into the chunks of a tape.
//!
//! The trap: memory for more may be that of this tape's own chunks. So the reel is not borrowed while the
//! arena is asked, and afterwards it is looked at anew.

use super::Tape;
use super::entry::{self, ANSWER, KNOWN, NOTE, Note, PIECE, RUN};
use super::reel::{CHUNK, CHUNKS, Chunk, Reel, STEP};
use super::take::Take;
use klamp_codec::Direction;
use klamp_codec::observation::Exchange;
use std::cell::RefMut;
use std::rc::Rc;
use std::time::Duration;

/// No run begins in what is left of a chunk where that is less.
const LEAST: usize = 512;

impl Take<'_> {
    /// Of the response that begins at `at`; `false` where there is no memory to be had.
    #[inline(always)]
    pub(super) fn put_answer(
        &mut self,
        at: u64,
        exchange: Exchange,
        latency: Option<Duration>,
    ) -> bool {
        self.put::<ANSWER, _>(entry::answer(at, exchange, latency))
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
        let mut reel = self.tape.make_room(self.tape.reel.borrow_mut(), BYTES);
        reel.put::<BYTES, _>(words)
    }

    /// The start of a run of so many pieces, the first of which stands at `at` of the stream.
    #[inline(always)]
    pub(super) fn start_of_run(&self, at: u64, pieces: u32) -> [u64; RUN / 8] {
        let (nanos, first) = (self.tape.now.get(), self.side.first.get());
        entry::run(self.direction, at, nanos, first, pieces)
    }

    /// Appends what is shown next, which is known by this number, to the run before; `false` where its chunk
    /// has no room for that.
    pub(super) fn put_known(&self, known: u16) -> bool {
        let mut reel = self.tape.reel.borrow_mut();
        reel.put::<KNOWN, _>(entry::known(known))
    }

    /// Appends what stands at `at` of the stream; `false` where this chunk has no room for all of it.
    #[inline(always)]
    pub(super) fn put_run(&self, at: u64, bytes: &[u8]) -> bool {
        let start = self.start_of_run(at, 1);
        self.tape.reel.borrow_mut().put_run(start, bytes)
    }

    /// Appends what stands at `at` of the stream to this chunk and to others, as far as there is memory to be
    /// had.
    #[cold]
    #[inline(never)]
    pub(super) fn put_bytes(&self, mut at: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let wanted = RUN + PIECE + bytes.len();
            let mut reel = self.tape.reel.borrow_mut();
            if reel.room() < wanted.min(LEAST) {
                reel = self.tape.make_room(reel, wanted);
            }
            let most = reel.room().saturating_sub(RUN + PIECE);
            let (piece, rest) = bytes.split_at(most.min(bytes.len()));
            if piece.is_empty() || !reel.put_run(self.start_of_run(at, 1), piece) {
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
    pub(super) fn make_room<'a>(
        self: &'a Rc<Self>,
        reel: RefMut<'a, Reel>,
        bytes: usize,
    ) -> RefMut<'a, Reel> {
        let (size, used) = (reel.current.bytes.len(), reel.current.used as usize);
        drop(reel);
        if size > 0 && size < CHUNK {
            self.grow((used + bytes).max(2 * size).next_multiple_of(STEP));
        }
        if self.reel.borrow().room() < bytes.min(LEAST) {
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
        let began = self.arena.begins();
        let next = Chunk {
            bytes: Box::default(),
            used: 0,
            began,
        };
        // (so that none but the current one is without memory, should memory be looked for here)
        let last = std::mem::replace(&mut reel.current, next);
        let full = reel.full.as_mut().filter(|full| full.len() + 1 == CHUNKS);
        let oldest = full.and_then(|full| full.pop_front());
        if !last.bytes.is_empty() {
            reel.full.get_or_insert_default().push_back(last);
        }
        let is_first = reel.full.is_none();
        drop(reel);
        let memory = oldest.map_or_else(
            || {
                let size = if is_first { first.min(CHUNK) } else { CHUNK };
                self.arena.take(size);
                vec![0; size].into_boxed_slice()
            },
            |chunk| chunk.bytes,
        );
        // (so that it is told here too what the next response answers)
        self.side(Direction::Response).ordinary.set(0);
        self.reel.borrow_mut().current.bytes = memory;
        if !self.is_aged.replace(true) {
            self.arena.age(Rc::downgrade(self), began);
        }
    }

    /// Wipes out what is kept of a direction from `at` on.
    pub(super) fn wipe(&self, direction: Direction, at: u64) {
        let shared = self.arena.shared.borrow();
        for chunk in self.reel.borrow_mut().chunks_mut() {
            chunk.wipe(direction, at, &shared);
        }
    }
}
