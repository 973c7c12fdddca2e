//! The memory that the tapes of one thread share, under a budget.
//!
//! The trap: the oldest chunk may be anybody's, the one that its connection still writes to included.
//! So nobody takes from here while it has its own reel borrowed, and whoever has lost its chunk finds
//! one without room, which is nothing new to it.

use super::Tape;
use super::cuts::{LISTED, List};
use super::shared::Shared;

use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;
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
    /// Chunks that have begun.
    chunks: Cell<u64>,
    ages: RefCell<Ages>,
    /// Of use while a session is asked.
    pub(super) list: List,
    /// How many records of frames that are kept to their end are listed: none where they are kept.
    pub(super) listed: u8,
    pub(super) shared: RefCell<Shared>,
}

/// So many tapes that are gone are thought of at least before that is mended.
const SLACK: usize = 8;

/// Whose chunks are older than whose.
#[derive(Debug, Default)]
struct Ages {
    /// Tapes that have chunks, that with the oldest one on top: as old as it was when it was last looked at. It
    /// can only have become younger, so that nothing need be done here when a chunk begins.
    order: BinaryHeap<Aged>,
    /// Tapes among them that have ended. (Each holds the memory of its tape until it is forgotten.)
    gone: usize,
}

/// A tape, and when its oldest chunk began.
#[derive(Debug)]
struct Aged {
    began: u64,
    tape: Weak<Tape>,
}

impl Ord for Aged {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.began.cmp(&self.began)
    }
}

impl PartialOrd for Aged {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Aged {
    fn eq(&self, other: &Self) -> bool {
        self.began == other.began
    }
}

impl Eq for Aged {}

impl Arena {
    /// The arena of one of `threads` threads, or none where nothing is to be recorded.
    pub(crate) fn new(settings: Settings, threads: usize, usage: Arc<Usage>) -> Option<Rc<Self>> {
        let arena = Self {
            settings,
            share: settings.memory / threads.max(1),
            used: Cell::new(0),
            usage,
            chunks: Cell::new(0),
            ages: RefCell::default(),
            list: std::array::from_fn(|_| Cell::default()),
            listed: if settings.records { 0 } else { LISTED },
            shared: RefCell::default(),
        };
        (settings.memory > 0).then(|| Rc::new(arena))
    }

    /// A tape begins.
    pub(super) fn join(&self) {
        self.take(size_of::<Tape>());
    }

    /// A tape that had chunks of so many bytes together has ended.
    pub(super) fn leave(&self, bytes: usize, is_aged: bool) {
        self.release(size_of::<Tape>() + bytes);
        if is_aged {
            let mut ages = self.ages.borrow_mut();
            ages.gone += 1;
            if 2 * ages.gone > ages.order.len() + SLACK {
                ages.order.retain(|aged| aged.tape.strong_count() > 0);
                ages.order.shrink_to_fit();
                ages.gone = 0;
            }
        }
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

    /// A chunk begins, which is the youngest then: when that is.
    pub(super) fn begins(&self) -> u64 {
        self.chunks.set(self.chunks.get() + 1);
        self.chunks.get()
    }

    /// The tape has chunks from now on, the oldest of which began then.
    #[cold]
    pub(super) fn age(&self, tape: Weak<Tape>, began: u64) {
        self.ages.borrow_mut().order.push(Aged { began, tape });
    }

    /// `false`: there is none.
    fn give_up_oldest(&self) -> bool {
        loop {
            let Some(aged) = self.ages.borrow_mut().order.pop() else {
                return false;
            };
            let Some(tape) = aged.tape.upgrade() else {
                let mut ages = self.ages.borrow_mut();
                ages.gone = ages.gone.saturating_sub(1);
                continue;
            };
            let mut reel = tape.reel.borrow_mut();
            let freed = match reel.oldest() {
                Some(began) if began == aged.began => reel.give_up_oldest(),
                _ => 0,
            };
            match reel.oldest() {
                Some(began) => self.age(aged.tape, began),
                None => tape.is_aged.set(false),
            }
            if freed > 0 {
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

    /// Tapes that are thought of, whether they are still there or not.
    #[cfg(test)]
    pub(super) fn ages(&self) -> usize {
        self.ages.borrow().order.len()
    }
}
