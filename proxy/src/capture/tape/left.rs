//! What is left out of what one session is being shown.

use super::Cut;

/// A piece of a stream that is not kept, or not all of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// Offset in the stream.
    pub(super) start: u64,
    pub(super) bytes: u32,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Field,
    /// The heads of whose batches are kept, or all where that is asked for.
    Records,
    /// Records of a frame that is kept in part: the heads in any case.
    Heads,
    /// A frame of which the header is kept.
    Opaque,
    /// A raw SASL token.
    Token,
}

impl Left {
    #[inline(always)]
    pub(super) fn new(start: u64, bytes: u32, what: What) -> Self {
        Self { start, bytes, what }
    }

    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }
}

impl Cut {
    /// What it leaves out, if anything.
    pub(super) fn left(&self) -> Option<Left> {
        let (from, upto) = (self.from.get(), self.upto.get());
        let bytes = u32::try_from(upto.saturating_sub(from)).unwrap_or(u32::MAX);
        let what = match self.spares_header.get() {
            true => What::Opaque,
            false => What::Field,
        };
        (bytes > 0).then_some(Left::new(from, bytes, what))
    }
}

/// Adds to what is sorted by place.
pub(super) fn insert(all: &mut Vec<Left>, left: Left) {
    let place = all.partition_point(|it| it.start < left.start);
    all.insert(place, left);
}
