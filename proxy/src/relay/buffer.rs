//! The bytes of one lane: those that may go on, then those that the session has yet to judge.
//!
//! The memory behind them is lent by the pool. A few bytes that stay (half a head, a short answer
//! that its reader does not take) move into an allocation of their own size, so that a crowd of
//! silent peers cannot tie up a whole buffer each.

use super::pool::{BUFFER_BYTES, Pool};

/// Up to so many bytes are moved out of a lent buffer when a lane rests; copying more than that at
/// every trickle would cost more than the buffer does.
const PARKED_BYTES: usize = 4 * 1024;

/// `start <= ready <= end <= bytes.len()`. Without memory while it is empty and at rest.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    ready: usize,
    end: usize,
}

impl Buffer {
    /// What the session has passed and is not written yet.
    #[inline]
    pub(super) fn passed(&self) -> &[u8] {
        &self.bytes[self.start..self.ready]
    }

    /// What the session has not judged yet.
    #[inline]
    pub(super) fn shown(&self) -> &[u8] {
        &self.bytes[self.ready..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The first `n` shown bytes may go on.
    #[inline]
    pub(super) fn pass(&mut self, n: usize) {
        self.ready += n;
        debug_assert!(self.ready <= self.end);
    }

    /// The first `n` passed bytes have been written.
    #[inline]
    pub(super) fn written(&mut self, n: usize) {
        self.start += n;
        debug_assert!(self.start <= self.ready);
    }

    /// The first `n` shown bytes are taken away; whatever was passed has been written.
    pub(super) fn cut(&mut self, n: usize) {
        debug_assert!(self.passed().is_empty());
        self.pass(n);
        self.written(n);
    }

    /// Memory for more bytes behind the shown ones, given that everything passed has been written,
    /// and that the session wants to see `need` bytes at once, which is more than there are.
    /// `None` where the process holds too much already.
    ///
    /// Grows by doubling as bytes come, and shrinks when they are gone.
    #[inline]
    pub(super) fn room(&mut self, need: usize, pool: &Pool) -> Option<&mut [u8]> {
        debug_assert!(self.passed().is_empty());
        let held = self.end - self.start;
        if self.bytes.is_empty() {
            self.bytes = pool.lend();
        } else if held > 0 || self.bytes.len() != BUFFER_BYTES {
            self.make_room(need, pool)?;
        }
        (self.start, self.ready, self.end) = (0, 0, held);
        Some(&mut self.bytes[held..])
    }

    /// What is held stands at the start of enough memory then.
    fn make_room(&mut self, need: usize, pool: &Pool) -> Option<()> {
        let (held, size) = (self.shown().len(), self.bytes.len());
        let wanted = if need <= BUFFER_BYTES || size < BUFFER_BYTES {
            BUFFER_BYTES
        } else if held < size {
            size
        } else {
            size.saturating_mul(2).min(need)
        };
        if size != wanted {
            let mut larger = match wanted {
                BUFFER_BYTES => pool.lend(),
                large => pool.lend_large(large)?,
            };
            larger[..held].copy_from_slice(self.shown());
            pool.take_back(std::mem::replace(&mut self.bytes, larger));
        } else if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
        }
        Some(())
    }

    /// The first `n` bytes of the [`room`](Self::room), which have not come yet.
    pub(super) fn preview(&self, n: usize) -> &[u8] {
        &self.bytes[self.end..self.end + n]
    }

    /// `n` bytes have come into the [`room`](Self::room).
    #[inline]
    pub(super) fn filled(&mut self, n: usize) {
        self.end += n;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Gives the memory back if nothing is held.
    #[inline]
    pub(super) fn put_away(&mut self, pool: &Pool) {
        if self.start == self.end {
            self.release(pool);
        }
    }

    /// Nothing will happen for a while: gives back memory that is not needed for what is held.
    #[inline]
    pub(super) fn rest(&mut self, pool: &Pool) {
        if self.bytes.len() >= BUFFER_BYTES {
            self.shrink(pool);
        }
    }

    fn shrink(&mut self, pool: &Pool) {
        let held = &self.bytes[self.start..self.end];
        if held.len() > PARKED_BYTES {
            return;
        }
        let parked = Box::from(held);
        pool.take_back(std::mem::replace(&mut self.bytes, parked));
        self.end -= self.start;
        self.ready -= self.start;
        self.start = 0;
    }

    /// Forgets what is held and gives its memory back.
    #[inline]
    pub(super) fn release(&mut self, pool: &Pool) {
        pool.take_back(std::mem::take(self).bytes);
    }
}
