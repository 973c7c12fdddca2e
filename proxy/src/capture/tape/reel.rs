//! The chunks of one tape: one that is written to, and full ones behind it.

use super::entry::{self, Entry, RUN};
use klamp_codec::Direction;
use std::collections::VecDeque;

/// Bytes of a chunk. The first one of a tape grows to that: most connections never say so much.
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
    pub(super) used: usize,
    /// Which of its tape's it is.
    pub(super) number: u64,
    /// How many frames began before its own first one.
    pub(super) frames_before: u64,
}

impl Chunk {
    pub(super) fn entries(&self) -> Entries<'_> {
        Entries(self.bytes.get(..self.used).unwrap_or_default())
    }

    /// Wipes out what stands here of a direction from offset `from` of its stream on.
    pub(super) fn wipe(&mut self, of: Direction, from: u64) {
        let mut place = 0;
        while let Some((entry, size)) = self.bytes[..self.used].get(place..).and_then(entry::read) {
            if let Entry::Run {
                direction,
                at,
                bytes,
                ..
            } = entry
                && direction == of
            {
                let kept = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX);
                let (kept, all) = (kept.min(bytes.len()), bytes.len());
                self.bytes[place + RUN..][..all][kept..].fill(0);
            }
            place += size;
        }
    }
}

/// What stands in a chunk.
pub(super) struct Entries<'a>(&'a [u8]);

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, bytes) = entry::read(self.0)?;
        self.0 = self.0.get(bytes..).unwrap_or_default();
        Some(entry)
    }
}

/// The chunks of one tape.
#[derive(Default)]
pub(super) struct Reel {
    /// The oldest first.
    pub(super) full: VecDeque<Chunk>,
    /// Without memory before the first entry, and where it was given up.
    pub(super) current: Chunk,
    /// How many chunks have begun since the start.
    pub(super) begun: u64,
}

impl Reel {
    /// How many bytes of entries still go into the current chunk.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.current.bytes.len() - self.current.used
    }

    /// Appends words, `BYTES` altogether; `false` where there is no room for them.
    #[inline(always)]
    pub(super) fn put<const BYTES: usize, const WORDS: usize>(
        &mut self,
        words: [u64; WORDS],
    ) -> bool {
        let Chunk { bytes, used, .. } = &mut self.current;
        let place = bytes.get_mut(*used..).and_then(<[u8]>::first_chunk_mut);
        place.is_some_and(|place| {
            entry::put::<BYTES, WORDS>(words, place);
            *used += BYTES;
            true
        })
    }

    /// Appends a run; `false` where there is no room for it.
    #[inline(always)]
    pub(super) fn put_run(
        &mut self,
        direction: Direction,
        at: u64,
        nanos: u64,
        bytes: &[u8],
    ) -> bool {
        let Chunk {
            bytes: chunk, used, ..
        } = &mut self.current;
        let place = chunk.get_mut(*used..).and_then(|room| {
            let (head, room) = room.split_first_chunk_mut::<RUN>()?;
            Some((head, room.get_mut(..bytes.len())?))
        });
        place.is_some_and(|(head, place)| {
            entry::put(entry::run(direction, at, nanos, bytes.len() as u32), head);
            entry::copy(bytes, place);
            *used += RUN + bytes.len().next_multiple_of(8);
            true
        })
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.full.iter().chain([&self.current])
    }

    pub(super) fn chunks_mut(&mut self) -> impl Iterator<Item = &mut Chunk> {
        self.full.iter_mut().chain([&mut self.current])
    }

    /// How many chunks have memory, and how many bytes that is.
    pub(super) fn size(&self) -> (usize, usize) {
        let sizes = self.chunks().map(|chunk| chunk.bytes.len());
        sizes
            .filter(|bytes| *bytes > 0)
            .fold((0, 0), |(chunks, all), bytes| (chunks + 1, all + bytes))
    }

    pub(super) fn has(&self, number: u64) -> bool {
        let mut with_memory = self.chunks().filter(|chunk| !chunk.bytes.is_empty());
        with_memory.any(|chunk| chunk.number == number)
    }

    /// Gives the chunk up, if it is still there; tells how many bytes that frees.
    pub(super) fn give_up(&mut self, number: u64) -> Option<usize> {
        let gone = match self.full.front() {
            Some(oldest) if oldest.number == number => self.full.pop_front()?,
            None if self.current.number == number => std::mem::take(&mut self.current),
            _ => return None,
        };
        Some(gone.bytes.len()).filter(|bytes| *bytes > 0)
    }
}
