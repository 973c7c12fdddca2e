//! A frame on its way through: how much of it is left, and the walk through its body. It never holds
//! the frame; what is of no interest may be moved without being shown.

use super::cursor::Cursor;
use crate::layout::{Progress, WalkError, Walker};
use crate::observation::{Exchange, Observation, Observer, OpaqueReason};
use crate::types::Direction;

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

    /// Consumes what is [`mine`](Self::mine) of what `cursor` shows, of which the lane's walker has said
    /// `walked`; `None` where it was not asked. `at` is the lane's offset. Tells `to` where the message ends
    /// before its frame does, and where it turns out not to fit its layout; from there on it is not read.
    /// Returns how many bytes after those that are shown need never be.
    pub(super) fn advance(
        &mut self,
        walker: &mut Walker,
        walked: Option<Walked>,
        cursor: &mut Cursor<'_>,
        at: &mut u64,
        direction: Direction,
        to: &mut impl Observer,
    ) -> u64 {
        let (exchange, mine) = (self.exchange, self.mine(cursor.rest()).len());
        let (mut seen, mut unseen, mut trailing, mut fault) = (0, 0, 0, None);
        if let Some(walked) = walked {
            match walked {
                Ok((n, Progress::Done)) => {
                    seen = n.min(mine);
                    trailing = self.left.saturating_sub(seen as u32);
                    self.walked = false;
                }
                Ok((_, Progress::Skippable(n))) => {
                    seen = mine;
                    unseen = n;
                    fault = walker.skip(n).err();
                }
                Ok((_, Progress::NeedBytes)) => seen = mine,
                Err(error) => fault = Some(error),
            }
            let consumed = unseen.saturating_add(seen as u32);
            self.left = self.left.saturating_sub(consumed);
            if fault.is_some() {
                self.walked = false;
                self.understood = false;
            }
        }
        if !self.walked {
            let behind = mine.saturating_sub(seen);
            self.left = self.left.saturating_sub(behind as u32);
            seen = mine;
            unseen = unseen.saturating_add(self.left);
            self.left = 0;
        }
        cursor.pass(seen);
        let unseen = u64::from(unseen);
        *at = at.saturating_add(unseen).saturating_add(seen as u64);
        if trailing > 0 {
            let bytes = trailing;
            to.observe(direction, *at, Observation::Trailing { exchange, bytes });
        }
        if fault.is_some() {
            let opaque = Observation::Opaque {
                exchange,
                reason: OpaqueReason::Malformed,
                fault,
            };
            to.observe(direction, self.body_at, opaque);
        }
        unseen
    }
}
