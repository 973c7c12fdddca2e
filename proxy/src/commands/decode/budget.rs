//! How much is held of a file at once, whatever its lengths promise.

use std::cell::Cell;
use std::rc::Rc;

/// Bytes that are held of all connections together: segments that came early, and messages that wait
/// for their answer.
const MOST: usize = 256 << 20;

/// What is held by all.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Rc<Cell<usize>>);

impl Budget {
    /// A part of it, empty.
    pub(super) fn held(&self) -> Held {
        Held {
            all: self.clone(),
            bytes: 0,
        }
    }

    /// Whether all together is too much.
    pub(super) fn is_spent(&self) -> bool {
        self.0.get() > MOST
    }
}

/// What is held in one place, and given back when that is gone.
#[derive(Debug)]
pub(super) struct Held {
    all: Budget,
    bytes: usize,
}

impl Held {
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.all.0.set(self.all.0.get() + bytes);
    }

    pub(super) fn remove(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.all.0.set(self.all.0.get() - bytes);
    }

    /// In this place.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether all together is too much.
    pub(super) fn is_too_much(&self) -> bool {
        self.all.is_spent()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.remove(self.bytes);
    }
}
