//! A frame on its way through: how much of it is left, and the walk through its body. It never holds
//! the frame; what is of no interest may be moved without being shown.

use crate::layout::{Progress, Root, WalkError, Walker};
use crate::observation::Exchange;

/// A frame whose header has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) exchange: Exchange,
    /// Bytes of the whole frame, its length field included.
    pub(super) bytes: u64,
    /// Offset in the stream of the first byte that the walker reads.
    pub(super) body_at: u64,
    /// Bytes not consumed yet.
    left: u32,
    /// Whether the lane's walker is at work on it.
    walked: bool,
    understood: bool,
}

/// The walker of one direction: a new one for each message would be most of what a short one costs.
#[derive(Debug, Default)]
pub(super) struct Reader(Option<Walker>);

/// What became of the bytes shown to a frame.
pub(super) struct Advance {
    /// Bytes of what was shown that belong to the frame and are done with.
    pub(super) seen: usize,
    /// Bytes after those that need never be shown. Not 0 only where all that was shown is seen.
    pub(super) unseen: u32,
    /// How many bytes of the frame follow its message, where that is now known to have ended: they are
    /// all among the seen and the unseen.
    pub(super) trailing: u32,
    /// The body turned out not to fit its layout: from here on the frame is not read.
    pub(super) fault: Option<WalkError>,
}

impl Frame {
    /// `left`: bytes of the frame behind its header's fixed part. `is_read`: whether the body is.
    #[inline]
    pub(super) fn new(
        exchange: Exchange,
        bytes: u64,
        body_at: u64,
        left: u32,
        is_read: bool,
    ) -> Self {
        Self {
            exchange,
            bytes,
            body_at,
            left,
            walked: is_read,
            understood: is_read,
        }
    }

    /// Whether all of the frame has been consumed.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0 && !self.walked
    }

    /// Whether the body has been read to its end, or can still be.
    pub(super) fn understood(&self) -> bool {
        self.understood
    }

    /// Consumes what belongs to the frame at the start of `shown`. With the root of its body for the first
    /// time; `reader` is the lane's, and `feed` shows it bytes, or begins with a body of so many.
    #[inline(always)]
    pub(super) fn advance(
        &mut self,
        reader: &mut Reader,
        begins: Option<Root>,
        shown: &[u8],
        feed: impl FnOnce(
            &mut Walker,
            Option<(Root, u32)>,
            &[u8],
        ) -> Result<(usize, Progress), WalkError>,
    ) -> Advance {
        let mine = shown.get(..self.left as usize).unwrap_or(shown);
        let mut advance = Advance {
            seen: 0,
            unseen: 0,
            trailing: 0,
            fault: None,
        };
        let begins = begins.map(|root| (root, self.left));
        if let (Some((root, len)), None) = (begins, &reader.0) {
            reader.0 = Some(Walker::new(root, len));
        }
        if self.walked
            && let Some(walker) = &mut reader.0
        {
            match feed(walker, begins, mine) {
                Ok((n, Progress::Done)) => {
                    advance.seen = n.min(mine.len());
                    advance.trailing = self.left.saturating_sub(advance.seen as u32);
                    self.walked = false;
                }
                Ok((_, Progress::Skippable(n))) => {
                    advance.seen = mine.len();
                    advance.unseen = n;
                    advance.fault = walker.skip(n).err();
                }
                Ok((_, Progress::NeedBytes)) => advance.seen = mine.len(),
                Err(error) => advance.fault = Some(error),
            }
            let consumed = advance.unseen.saturating_add(advance.seen as u32);
            self.left = self.left.saturating_sub(consumed);
            if advance.fault.is_some() {
                self.walked = false;
                self.understood = false;
            }
        }
        if !self.walked {
            let behind = mine.len().saturating_sub(advance.seen);
            self.left = self.left.saturating_sub(behind as u32);
            advance.seen = mine.len();
            advance.unseen = advance.unseen.saturating_add(self.left);
            self.left = 0;
        }
        advance
    }
}
