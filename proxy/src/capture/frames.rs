//! The frames of a capture, to which others are added while it is being read.
//!
//! The trap: a capture goes on while somebody downloads it, and the connection whose frames are added waits
//! for that. So what there is does not change any more and is shared: what comes is a piece of its own that
//! knows the one before it, and whoever reads sorts out what stands in it twice.

use klamp_codec::kept::{Kept, Part};
use std::sync::Arc;

/// Frames in order of time. A clone shares them, and does not see what is added to the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    last: Option<Arc<Piece>>,
    pieces: usize,
    len: usize,
    bytes: usize,
    /// Where the latest frame of each direction begins.
    latest: [Option<u64>; 2],
}

#[derive(Debug)]
struct Piece {
    before: Option<Arc<Piece>>,
    frames: Vec<Kept>,
}

impl Frames {
    /// Adds frames. The latest of a direction may come again, if it had not come to its end: as a rule there
    /// was no more of it than the header.
    pub(crate) fn add(&mut self, frames: Vec<Kept>) {
        if frames.is_empty() {
            return;
        }
        for frame in &frames {
            let latest = &mut self.latest[frame.direction as usize];
            if latest.replace(frame.at) != Some(frame.at) {
                self.len += 1;
            }
        }
        self.bytes += size_of_piece(&frames);
        self.pieces += 1;
        self.last = Some(Arc::new(Piece {
            before: self.last.take(),
            frames,
        }));
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How often some were added: more than before where there is anything new.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces
    }

    /// Of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those that were there from the beginning, as they were then.
    pub(crate) fn first(&self) -> &[Kept] {
        self.pieces_back().last().map_or(&[], |piece| &piece.frames)
    }

    /// The newest piece first.
    fn pieces_back(&self) -> impl Iterator<Item = &Piece> {
        std::iter::successors(self.last.as_deref(), |piece| piece.before.as_deref())
    }

    /// All of them, each once.
    pub(crate) fn all(&self) -> Vec<&Kept> {
        let pieces: Vec<_> = self.pieces_back().collect();
        let mut all: Vec<&Kept> = Vec::with_capacity(self.len);
        let mut latest = [None; 2];
        for frame in pieces.iter().rev().flat_map(|piece| &piece.frames) {
            let latest = &mut latest[frame.direction as usize];
            let same = latest.and_then(|index: usize| all.get_mut(index));
            if let Some(same) = same.filter(|same| same.at == frame.at) {
                *same = frame;
            } else {
                *latest = Some(all.len());
                all.push(frame);
            }
        }
        all
    }
}

impl From<Vec<Kept>> for Frames {
    fn from(frames: Vec<Kept>) -> Self {
        let mut all = Self::default();
        all.add(frames);
        all
    }
}

impl Drop for Piece {
    /// One after the other: thousands would not fit on the stack.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut piece) = before.and_then(Arc::into_inner) {
            before = piece.before.take();
        }
    }
}

/// Bytes of memory that these take.
pub(super) fn size_of_piece(frames: &[Kept]) -> usize {
    let part = |part: &Part| match part {
        Part::Bytes(bytes) => size_of::<Part>() + bytes.capacity(),
        Part::Hole(_) => size_of::<Part>(),
    };
    let frame = |frame: &Kept| {
        let errors = size_of_val(frame.errors.as_slice());
        size_of::<Kept>() + errors + frame.parts.iter().map(part).sum::<usize>()
    };
    size_of::<Piece>() + frames.iter().map(frame).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::super::tests::frame;
    use super::*;
    use klamp_codec::Direction;
    use klamp_codec::kept::Reading;

    fn unfinished(bytes: u64) -> Kept {
        Kept {
            reading: Reading::Unfinished,
            ..frame(bytes)
        }
    }

    /// How long each frame is said to be, in order.
    fn bytes(frames: &Frames) -> Vec<u64> {
        frames.all().iter().map(|frame| frame.bytes).collect()
    }

    #[test]
    fn whoever_reads_goes_on_with_what_there_was_and_nothing_is_copied() {
        let mut frames = Frames::from(vec![frame(1), frame(2)]);
        let before = frames.clone();
        frames.add(vec![frame(3)]);
        frames.add(Vec::new());
        frames.add(vec![frame(4), frame(5)]);
        assert_eq!(bytes(&before), [1, 2]);
        assert_eq!(bytes(&frames), [1, 2, 3, 4, 5]);
        assert_eq!((before.len(), frames.len()), (2, 5));
        assert_eq!((before.pieces(), frames.pieces()), (1, 3));
        assert_eq!(frames.first().len(), 2);
        assert!(Frames::default().first().is_empty());
        let same = before.all().into_iter().zip(frames.all());
        assert!(
            same.into_iter()
                .all(|(one, other)| std::ptr::eq(one, other))
        );
    }

    #[test]
    fn a_frame_that_has_come_to_its_end_meanwhile_is_there_once() {
        let [request, mut response] = [unfinished(20), unfinished(30)];
        response.direction = Direction::Response;
        let mut frames = Frames::from(vec![frame(1), request.clone(), response.clone()]);
        let before = frames.clone();
        // Still not at its end, and then it is.
        frames.add(vec![request.clone()]);
        let whole = Kept {
            reading: Reading::Whole,
            bytes: 21,
            ..request.clone()
        };
        frames.add(vec![whole, frame(40)]);
        response.reading = Reading::Whole;
        response.bytes = 31;
        frames.add(vec![response]);
        assert_eq!((bytes(&frames), frames.len()), (vec![1, 21, 31, 40], 4));
        assert_eq!((bytes(&before), before.len()), (vec![1, 20, 30], 3));
        assert_eq!(frames.pieces(), 4);
        // Another one that begins there is another one.
        frames.add(vec![request]);
        assert_eq!((bytes(&frames), frames.len()), (vec![1, 21, 31, 40, 20], 5));
    }

    #[test]
    fn as_many_pieces_as_there_may_be_are_given_up_without_a_deep_stack() {
        let mut frames = Frames::default();
        for _ in 0..300_000 {
            frames.add(vec![frame(1)]);
        }
        let before = frames.clone();
        frames.add(vec![frame(1)]);
        assert_eq!(frames.all().len(), frames.len());
        let size = size_of_piece(&[frame(1)]);
        assert_eq!(frames.bytes(), 300_001 * size);
        drop(before);
        drop(frames);
    }
}
