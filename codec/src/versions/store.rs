//! Where equal tables become one: many connections, few tables.
//!
//! The trap: the store must not keep a table alive. It holds weak entries, so that the tables in use
//! are those of connections that are there, and sweeps dead entries before it grows.

use super::VersionTable;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Where equal tables become one. Shared by all connections of a process; locked once per ApiVersions
/// answer, not on the path of other messages.
#[derive(Debug, Default)]
pub struct TableStore {
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// By hash; tables that share one stand side by side.
    by_hash: HashMap<u64, Vec<Weak<VersionTable>>>,
    hasher: RandomState,
    /// Entries, the dead ones included.
    len: usize,
    /// Entries at which dead ones are swept out: twice those alive after the last sweep, so that
    /// sweeping costs little per entry.
    sweep_at: usize,
}

impl TableStore {
    /// The one table that equals `table`.
    pub fn intern(&self, table: VersionTable) -> Arc<VersionTable> {
        self.lock().intern(table)
    }

    /// All tables in use, each once, in no particular order.
    pub fn in_use(&self) -> Vec<Arc<VersionTable>> {
        let shelf = self.lock();
        let entries = shelf.by_hash.values().flatten();
        entries.filter_map(Weak::upgrade).collect()
    }

    /// A thread that panicked while it held the lock left at worst a table stored twice.
    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    /// Below this many entries nothing is swept.
    const SMALL: usize = 16;

    fn intern(&mut self, table: VersionTable) -> Arc<VersionTable> {
        let hash = self.hasher.hash_one(&table);
        let equal = self
            .by_hash
            .get(&hash)
            .into_iter()
            .flatten()
            .filter_map(Weak::upgrade)
            .find(|stored| **stored == table);
        if let Some(stored) = equal {
            return stored;
        }
        if self.len >= self.sweep_at.max(Self::SMALL) {
            self.sweep();
        }
        let table = Arc::new(table);
        let entries = self.by_hash.entry(hash).or_default();
        entries.push(Arc::downgrade(&table));
        self.len = self.len.saturating_add(1);
        table
    }

    fn sweep(&mut self) {
        self.by_hash.retain(|_, entries| {
            entries.retain(|entry| entry.strong_count() > 0);
            !entries.is_empty()
        });
        self.len = self.by_hash.values().map(Vec::len).sum();
        self.sweep_at = self.len.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FinalizedFeatures, Offer};
    use super::*;
    use crate::session::Clamp;
    use crate::types::ApiKey;

    fn table(max: i16) -> VersionTable {
        let offer = Offer { min: 0, max };
        let none = FinalizedFeatures::default();
        VersionTable::new([(ApiKey::FETCH, offer)], none, Clamp::Off)
    }

    #[test]
    fn tables_that_nobody_uses_any_more_leave_no_trace() {
        let store = TableStore::default();
        let kept: Vec<_> = (0..8).map(|max| store.intern(table(max))).collect();
        for max in 100..10_000 {
            store.intern(table(max));
            let entries = store.lock().len;
            assert!(entries <= 2 * Shelf::SMALL, "{entries} entries");
        }
        assert_eq!(store.in_use().len(), kept.len());
        for (max, kept) in (0..8).zip(&kept) {
            assert!(Arc::ptr_eq(kept, &store.intern(table(max))));
        }
    }
}
