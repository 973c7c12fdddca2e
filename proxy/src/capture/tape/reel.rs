//! The chunks of one tape: one that is written to, and full ones behind it.

use super::entry::{self, Entry, MORE, Run};
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
    /// Which of its tape's it is: the next one has the next number.
    pub(super) number: u32,
}

impl Chunk {
    /// `shared`: what stands in the arena.
    pub(super) fn entries<'a>(&'a self, shared: &'a Shared) -> Entries<'a> {
        Entries {
            shared,
            rest: self.bytes.get(..self.used as usize).unwrap_or_default(),
            run: None,
            first: None,
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

/// What stands in a chunk: what goes on with a run is told as one.
pub(super) struct Entries<'a> {
    shared: &'a Shared,
    rest: &'a [u8],
    /// The latest.
    run: Option<Run<'a>>,
    /// How far behind its start a frame begins, where nothing of it has been told yet.
    first: Option<u16>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, size) = entry::read(self.rest)?;
        self.rest = self.rest.get(size..).unwrap_or_default();
        let (low, bytes) = match entry {
            Entry::More(low, bytes) => (low, bytes),
            Entry::Known(low, number) => (low, self.shared.get(number)?),
            Entry::Start(start) => {
                self.first = start.first;
                self.run = Some(Run {
                    direction: start.direction,
                    at: u64::from(start.high) << 32,
                    nanos: start.nanos,
                    first: None,
                    bytes: &[],
                });
                return Some(entry);
            }
            _ => return Some(entry),
        };
        let run = self.run?;
        let at = run.end() + u64::from(low.wrapping_sub(run.end() as u32));
        let run = Run {
            at,
            first: self.first.take().map(|first| at + u64::from(first)),
            bytes,
            ..run
        };
        self.run = Some(run);
        Some(Entry::Run(run))
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
        self.put_with::<BYTES, WORDS>(words, &[])
    }

    /// Goes on at `at` with the run that is the latest entry; `false` where there is no room for that.
    #[inline(always)]
    pub(super) fn put_more(&mut self, at: u64, bytes: &[u8]) -> bool {
        self.put_with::<MORE, _>(entry::more(at, bytes.len() as u16), bytes)
    }

    /// Words, `HEAD` bytes altogether, and bytes behind them.
    #[inline(always)]
    fn put_with<const HEAD: usize, const WORDS: usize>(
        &mut self,
        words: [u64; WORDS],
        bytes: &[u8],
    ) -> bool {
        let Chunk {
            bytes: chunk, used, ..
        } = &mut self.current;
        let place = *used as usize;
        let size = HEAD + bytes.len();
        let Some(room) = chunk.get_mut(place..place + size) else {
            return false;
        };
        if let Some((head, room)) = room.split_first_chunk_mut() {
            entry::put::<HEAD, WORDS>(words, head);
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

    /// How many chunks have memory, and how many bytes that is.
    pub(super) fn size(&self) -> (usize, usize) {
        let sizes = self.chunks().map(|chunk| chunk.bytes.len());
        sizes
            .filter(|bytes| *bytes > 0)
            .fold((0, 0), |(chunks, all), bytes| (chunks + 1, all + bytes))
    }

    /// Whether the chunk is still there.
    #[inline]
    pub(super) fn has(&self, number: u32) -> bool {
        match self.oldest() {
            Some(oldest) => number.wrapping_sub(oldest) <= self.current.number.wrapping_sub(oldest),
            None => number == self.current.number && !self.current.bytes.is_empty(),
        }
    }

    /// The number of the oldest full one.
    fn oldest(&self) -> Option<u32> {
        Some(self.full.as_ref()?.front()?.number)
    }

    /// Gives the chunk up, if it is still there; tells how many bytes that frees.
    pub(super) fn give_up(&mut self, number: u32) -> Option<usize> {
        let gone = match self.oldest() {
            Some(oldest) if oldest == number => self.full.as_mut()?.pop_front()?.bytes,
            None if self.current.number == number => {
                self.current.used = 0;
                std::mem::take(&mut self.current.bytes)
            }
            _ => return None,
        };
        Some(gone.len()).filter(|bytes| *bytes > 0)
    }
}
