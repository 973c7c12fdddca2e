//! The memory that the tapes of one thread share, under a budget.
//!
//! The trap: the oldest chunk may be anybody's, the one that its connection still writes to included.
//! So nobody takes from here while it has its own reel borrowed, and whoever has lost its chunk finds
//! one without room, which is nothing new to it.

use super::Tape;
use super::records::List;
use super::shared::Shared;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What the recorder is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes that all tapes of the process may take together; 0: nothing is recorded.
    pub(crate) memory: usize,
    /// Whether the content of records is kept.
    pub(crate) records: bool,
    /// Whether frames that were not understood are kept whole.
    pub(crate) opaque: bool,
}

/// What the tapes of the process take, for whoever shows it.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    bytes: AtomicUsize,
    given_up: AtomicU64,
}

impl Usage {
    /// Bytes that all tapes take now.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Chunks of history that were given up for lack of memory, since the start. (One that a connection
    /// gives up for newer exchanges of its own is not among them.)
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Relaxed)
    }
}

/// The tapes of one thread.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(super) settings: Settings,
    /// What this thread may take of the budget.
    share: usize,
    used: Cell<usize>,
    usage: Arc<Usage>,
    ages: RefCell<Ages>,
    /// Of use while a session is asked.
    pub(super) list: List,
    pub(super) shared: RefCell<Shared>,
}

/// So many chunks that are gone are thought of at least before that is mended.
const SLACK: usize = 8;

/// Which chunk is older than which.
#[derive(Debug, Default)]
struct Ages {
    /// The oldest first. Chunks that are gone by other ways stay here until many are.
    order: VecDeque<(Weak<Tape>, u32)>,
    /// How many of them there are still.
    chunks: usize,
}

impl Ages {
    /// Forgets what is gone, where that is more than what is there: until then each chunk that is thought
    /// of holds the memory of its tape, even of one that has ended.
    fn forget(&mut self) {
        if self.order.len() > 2 * self.chunks + SLACK {
            let is_there = |tape: &Weak<Tape>, chunk| {
                tape.upgrade()
                    .is_some_and(|tape| tape.reel.borrow().has(chunk))
            };
            self.order.retain(|(tape, chunk)| is_there(tape, *chunk));
            self.order.shrink_to_fit();
        }
    }
}

impl Arena {
    /// The arena of one of `threads` threads, or none where nothing is to be recorded.
    pub(crate) fn new(settings: Settings, threads: usize, usage: Arc<Usage>) -> Option<Rc<Self>> {
        let arena = Self {
            settings,
            share: settings.memory / threads.max(1),
            used: Cell::new(0),
            usage,
            ages: RefCell::default(),
            list: [const { Cell::new(0) }; _],
            shared: RefCell::default(),
        };
        (settings.memory > 0).then(|| Rc::new(arena))
    }

    /// A tape begins.
    pub(super) fn join(&self) {
        self.take(size_of::<Tape>());
    }

    /// A tape that had so many chunks, of so many bytes together, has ended.
    pub(super) fn leave(&self, chunks: usize, bytes: usize) {
        self.release(size_of::<Tape>() + bytes);
        let mut ages = self.ages.borrow_mut();
        ages.chunks -= chunks;
        ages.forget();
    }

    /// Takes `bytes`, and what is needed for that from the oldest chunks. The caller has no reel
    /// borrowed, and may have lost chunks of its own.
    pub(super) fn take(&self, bytes: usize) {
        while self.used.get() + bytes > self.share && self.give_up_oldest() {}
        self.used.set(self.used.get() + bytes);
        self.usage.bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn release(&self, bytes: usize) {
        self.used.set(self.used.get() - bytes);
        self.usage.bytes.fetch_sub(bytes, Relaxed);
    }

    /// A chunk begins, which is the youngest then. The caller has no reel borrowed.
    pub(super) fn age(&self, tape: Weak<Tape>, chunk: u32, is_more: bool) {
        let mut ages = self.ages.borrow_mut();
        ages.chunks += usize::from(is_more);
        ages.forget();
        ages.order.push_back((tape, chunk));
    }

    /// `false`: there is none.
    fn give_up_oldest(&self) -> bool {
        loop {
            let Some((tape, chunk)) = self.ages.borrow_mut().order.pop_front() else {
                return false;
            };
            let freed = tape
                .upgrade()
                .and_then(|tape| tape.reel.borrow_mut().give_up(chunk));
            if let Some(freed) = freed {
                self.ages.borrow_mut().chunks -= 1;
                self.release(freed);
                self.usage.given_up.fetch_add(1, Relaxed);
                return true;
            }
        }
    }

    /// Bytes that this thread's tapes take now.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used.get()
    }

    /// Chunks that are thought of, whether they are still there or not.
    #[cfg(test)]
    pub(super) fn ages(&self) -> usize {
        self.ages.borrow().order.len()
    }
}
