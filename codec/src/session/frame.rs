//! A frame on its way through: how much of it is left, and the walk through its body. It never holds
//! the frame; what is of no interest may be moved without being shown.

use crate::layout::{Progress, WalkError, Walker};
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

/// What a walker says of the bytes that it was shown.
pub(super) type Walked = Result<(usize, Progress), WalkError>;

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
    /// A frame of `bytes` that begins at the offset `at` of the stream, of which the header's fixed part of
    /// `header` bytes has been consumed. `is_read`: whether its body is to be.
    #[inline(always)]
    pub(super) fn new(
        exchange: Exchange,
        bytes: u64,
        at: u64,
        header: usize,
        is_read: bool,
    ) -> Self {
        let left = bytes.saturating_sub(header as u64);
        Self {
            exchange,
            bytes,
            body_at: at.wrapping_add(header as u64),
            left: u32::try_from(left).unwrap_or(u32::MAX),
            walked: is_read,
            understood: is_read,
        }
    }

    /// Bytes of it that are not consumed yet.
    #[inline]
    pub(super) fn left(&self) -> u32 {
        self.left
    }

    /// Whether all of the frame has been consumed.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0 && !self.walked
    }

    /// Whether the body has been read to its end, or can still be.
    pub(super) fn understood(&self) -> bool {
        self.understood
    }

    /// What belongs to the frame at the start of `shown`.
    #[inline]
    pub(super) fn mine<'a>(&self, shown: &'a [u8]) -> &'a [u8] {
        shown.get(..self.left as usize).unwrap_or(shown)
    }

    /// Whether the lane's walker is to be shown bytes of it.
    pub(super) fn is_walked(&self) -> bool {
        self.walked
    }

    /// Consumes what is [`mine`](Self::mine), of which the lane's walker has said `walked`; `None` where it
    /// was not asked.
    pub(super) fn advance(
        &mut self,
        walker: &mut Walker,
        walked: Option<Walked>,
        mine: &[u8],
    ) -> Advance {
        let mut advance = Advance {
            seen: 0,
            unseen: 0,
            trailing: 0,
            fault: None,
        };
        if let Some(walked) = walked {
            match walked {
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
