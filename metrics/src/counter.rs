//! A counter with one writer. Others may read it at any time.
//!
//! The trap: a second thread that adds loses counts. In exchange an add is a load and a store; a locked
//! one takes longer than all else that is done for a count.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts up; as a gauge it is read as signed.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// To be called by one thread only.
    #[inline]
    pub(crate) fn add(&self, by: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(by), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
