//! The buffers and pipes of one thread, and the process's limit on bytes held beyond them.
//!
//! A buffer is on loan only while bytes are in it, so what klamp needs follows what is under way and
//! not how many connections there are. The trap is the promised length: nothing here is sized by
//! what a peer says will come, only by what has come.

use super::splice::Pipes;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a pooled buffer: how much one read takes at most.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;

/// Buffers kept for the next loan, per thread. Two are in use at a time unless peers are slow.
const SPARES: usize = 16;

/// How many bytes all connections of the process may hold together beyond their pooled buffers,
/// while their sessions need more of a frame at once.
#[derive(Debug)]
pub(crate) struct HoldBudget {
    left: AtomicUsize,
}

impl HoldBudget {
    /// `bytes` in all.
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(bytes),
        })
    }

    fn charge(&self, bytes: usize) -> Option<()> {
        let charge = |left: usize| left.checked_sub(bytes);
        let order = Ordering::Relaxed;
        self.left.fetch_update(order, order, charge).ok().map(drop)
    }

    fn refund(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}

/// Lends buffers and pipes to the lanes of one thread.
pub(super) struct Pool {
    pub(super) pipes: Pipes,
    /// The buffer that was given back last, which is in the processor's cache: for most loans the only
    /// one there need be.
    last: Cell<Option<Box<[u8]>>>,
    spares: Cell<Vec<Box<[u8]>>>,
    budget: Arc<HoldBudget>,
    #[cfg(test)]
    lent: Cell<usize>,
}

impl Pool {
    pub(super) fn new(budget: Arc<HoldBudget>) -> Self {
        Self {
            pipes: Pipes::default(),
            last: Cell::default(),
            spares: Cell::default(),
            budget,
            #[cfg(test)]
            lent: Cell::new(0),
        }
    }

    /// A buffer of [`BUFFER_BYTES`]; what is in it is left over from others.
    #[inline]
    pub(super) fn lend(&self) -> Box<[u8]> {
        #[cfg(test)]
        self.lent.set(self.lent.get() + 1);
        self.last.take().unwrap_or_else(|| self.lend_spare())
    }

    #[cold]
    fn lend_spare(&self) -> Box<[u8]> {
        let mut spares = self.spares.take();
        let buffer = spares.pop();
        self.spares.set(spares);
        buffer.unwrap_or_else(|| fresh(BUFFER_BYTES))
    }

    /// A buffer of `bytes`, more than [`BUFFER_BYTES`], where the budget allows it.
    pub(super) fn lend_large(&self, bytes: usize) -> Option<Box<[u8]>> {
        self.budget.charge(bytes)?;
        #[cfg(test)]
        self.lent.set(self.lent.get() + 1);
        Some(fresh(bytes))
    }

    /// Takes back what was lent. Anything smaller was never lent, and is dropped.
    #[inline]
    pub(super) fn take_back(&self, buffer: Box<[u8]>) {
        if buffer.len() < BUFFER_BYTES {
            return;
        }
        #[cfg(test)]
        self.lent.set(self.lent.get() - 1);
        if buffer.len() > BUFFER_BYTES {
            self.budget.refund(buffer.len());
        } else if let Some(other) = self.last.replace(Some(buffer)) {
            self.keep(other);
        }
    }

    #[cold]
    fn keep(&self, buffer: Box<[u8]>) {
        let mut spares = self.spares.take();
        if spares.len() < SPARES {
            spares.push(buffer);
        }
        self.spares.set(spares);
    }

    /// How many buffers and pipes are on loan.
    #[cfg(test)]
    pub(super) fn lent(&self) -> usize {
        self.lent.get() + self.pipes.lent()
    }
}

fn fresh(bytes: usize) -> Box<[u8]> {
    vec![0; bytes].into_boxed_slice()
}
