//! The chunks of one tape: one that is written to, and full ones behind it.

use super::entry::{self, Entry, PIECE, Piece, RUN, Run, Start};
use super::shared::Shared;
use klamp_codec::Direction;
use std::collections::VecDeque;

/// Bytes of a chunk. The first one of a tape grows to that: most connections never say so much. (Twice as much
/// costs a few instructions less and, of memory that allocators hold for chunks that are gone, a fifth more.)
pub(super) const CHUNK: usize = 8 * 1024;
/// Chunks of a tape: a connection keeps its last 128 KiB, so that one that says much does not take the
/// history of those that say little.
pub(super) const CHUNKS: usize = 16;
/// What the first chunk begins with, and grows by at least.
pub(super) const STEP: usize = 256;

/// A piece of a tape.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) bytes: Box<[u8]>,
    pub(super) used: u32,
    /// When it began, in chunks of its thread.
    pub(super) began: u64,
}

impl Chunk {
    /// `shared`: what stands in the arena.
    pub(super) fn entries<'a>(&'a self, shared: &'a Shared) -> Entries<'a> {
        Entries {
            shared,
            rest: self.bytes.get(..self.used as usize).unwrap_or_default(),
            start: None,
            done: 0,
        }
    }

    /// Wipes out what stands here of a direction from offset `from` of its stream on. (What is shared has
    /// been understood.)
    pub(super) fn wipe(&mut self, of: Direction, from: u64, shared: &Shared) {
        let here = self.bytes.as_ptr_range();
        let mut wiped = Vec::new();
        for entry in self.entries(shared) {
            if let Entry::Run(run) = entry
                && run.direction == of
                && run.end() > from
                && here.contains(&run.bytes.as_ptr())
            {
                let kept = from.saturating_sub(run.at) as usize;
                let start = run.bytes.as_ptr() as usize - here.start as usize;
                wiped.push(start + kept..start + run.bytes.len());
            }
        }
        for range in wiped {
            self.bytes[range].fill(0);
        }
    }
}

/// What stands in a chunk: behind the start of a run its pieces.
pub(super) struct Entries<'a> {
    shared: &'a Shared,
    rest: &'a [u8],
    /// The run whose pieces come next, so many as it says.
    start: Option<Start>,
    /// So much of the stream lies behind where it began.
    done: u64,
}

impl<'a> Entries<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn piece(&mut self, start: Start) -> Option<Run<'a>> {
        let piece = Piece::read(*self.take(PIECE)?.first_chunk()?);
        let bytes = self.take(piece.bytes as usize)?;
        let run = self.run_of(start, bytes);
        self.done += u64::from(piece.bytes) + u64::from(piece.left_out);
        self.start = Some(Start {
            first: None,
            pieces: start.pieces - 1,
            ..start
        });
        Some(run)
    }

    /// `bytes` stand where the run has come to that has begun so.
    fn run_of(&self, start: Start, bytes: &'a [u8]) -> Run<'a> {
        Run {
            direction: start.direction,
            at: start.at + self.done,
            nanos: start.nanos,
            first: start.first,
            bytes,
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(start) = self.start.filter(|start| start.pieces > 0) {
            return self.piece(start).map(Entry::Run);
        }
        let (entry, size) = entry::read(self.rest)?;
        self.take(size)?;
        match entry {
            Entry::Start(start) => (self.start, self.done) = (Some(start), 0),
            Entry::Known(number) => {
                let known = self.shared.get(number)?;
                return Some(Entry::Run(self.run_of(self.start?, known)));
            }
            _ => {}
        }
        Some(entry)
    }
}

/// The chunks of one tape.
#[derive(Default)]
pub(super) struct Reel {
    /// The oldest first. (Most connections have none.)
    #[expect(
        clippy::box_collection,
        reason = "it is most often none, which is to take little"
    )]
    pub(super) full: Option<Box<VecDeque<Chunk>>>,
    /// Without memory before the first entry, and where it was given up.
    pub(super) current: Chunk,
}

impl Reel {
    /// How many bytes of entries still go into the current chunk.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.current.bytes.len() - self.current.used as usize
    }

    /// Appends words, `BYTES` altogether; `false` where there is no room for them.
    #[inline(always)]
    pub(super) fn put<const BYTES: usize, const WORDS: usize>(
        &mut self,
        words: [u64; WORDS],
    ) -> bool {
        let Chunk { bytes, used, .. } = &mut self.current;
        let room = bytes.get_mut(*used as usize..).unwrap_or_default();
        let Some(place) = room.first_chunk_mut::<BYTES>() else {
            return false;
        };
        entry::put(words, place);
        *used += BYTES as u32;
        true
    }

    /// Appends a run of one piece; `false` where there is no room for it.
    #[inline(always)]
    pub(super) fn put_run(&mut self, start: [u64; RUN / 8], bytes: &[u8]) -> bool {
        let Chunk {
            bytes: chunk, used, ..
        } = &mut self.current;
        let (place, size) = (*used as usize, RUN + PIECE + bytes.len());
        let Some(room) = chunk.get_mut(place..place + size) else {
            return false;
        };
        if let Some((head, room)) = room.split_first_chunk_mut::<{ RUN + PIECE }>() {
            let [a, b, c] = start;
            let piece = Piece::new(bytes.len(), 0);
            entry::put([a, b, c, piece.word()], head);
            entry::copy(bytes, room);
        }
        *used += size as u32;
        true
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        let full = self.full.iter().flat_map(|full| full.iter());
        full.chain([&self.current])
    }

    pub(super) fn chunks_mut(&mut self) -> impl Iterator<Item = &mut Chunk> {
        let full = self.full.iter_mut().flat_map(|full| full.iter_mut());
        full.chain([&mut self.current])
    }

    /// How many bytes all chunks take.
    pub(super) fn size(&self) -> usize {
        self.chunks().map(|chunk| chunk.bytes.len()).sum()
    }

    /// When the oldest chunk that has memory began.
    pub(super) fn oldest(&self) -> Option<u64> {
        let first = self.full.as_ref().and_then(|full| full.front());
        let oldest = first.unwrap_or(&self.current);
        (!oldest.bytes.is_empty()).then_some(oldest.began)
    }

    /// Gives that chunk up; tells how many bytes that frees.
    pub(super) fn give_up_oldest(&mut self) -> usize {
        let first = self.full.as_mut().and_then(|full| full.pop_front());
        let gone = first.map_or_else(
            || {
                self.current.used = 0;
                std::mem::take(&mut self.current.bytes)
            },
            |chunk| chunk.bytes,
        );
        gone.len()
    }
}
