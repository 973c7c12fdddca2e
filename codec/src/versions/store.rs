//! Where equal tables become one: many connections, few tables.
//!
//! The trap: the store must not keep a table alive. It holds weak entries, so that the tables in use
//! are those of connections that are there, and sweeps dead entries before it grows. And a broker that
//! tells each connection another huge table must not fill the memory: rows are limited in all.

use super::VersionTable;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Rows of all tables in use. A table of Kafka's has fewer than 100, and few differ, in a rolling
/// upgrade too; one with every key there can be has 65,536.
const MOST_ROWS: usize = 1 << 18;

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
    /// Rows of all tables that were in use at the last sweep or have come since.
    rows: usize,
    /// Entries at which dead ones are swept out: twice those alive after the last sweep, so that
    /// sweeping costs little per entry.
    sweep_at: usize,
}

impl TableStore {
    /// The one table that equals `table`. `None` where the tables in use leave no room for it, which
    /// only happens where brokers are broken or hostile.
    pub fn intern(&self, table: VersionTable) -> Option<Arc<VersionTable>> {
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

    fn intern(&mut self, table: VersionTable) -> Option<Arc<VersionTable>> {
        let hash = self.hasher.hash_one(&table);
        let equal = self
            .by_hash
            .get(&hash)
            .into_iter()
            .flatten()
            .filter_map(Weak::upgrade)
            .find(|stored| **stored == table);
        if equal.is_some() {
            return equal;
        }
        let rows = table.entries().len();
        let is_full = |shelf: &Self| shelf.rows.saturating_add(rows) > MOST_ROWS;
        if self.len >= self.sweep_at.max(Self::SMALL) || is_full(self) {
            self.sweep();
        }
        if is_full(self) {
            return None;
        }
        let table = Arc::new(table);
        let entries = self.by_hash.entry(hash).or_default();
        entries.push(Arc::downgrade(&table));
        self.len = self.len.saturating_add(1);
        self.rows = self.rows.saturating_add(rows);
        Some(table)
    }

    fn sweep(&mut self) {
        let mut rows = 0_usize;
        self.by_hash.retain(|_, entries| {
            entries.retain(|entry| {
                let table = entry.upgrade();
                let its_rows = table.as_ref().map_or(0, |table| table.entries().len());
                rows = rows.saturating_add(its_rows);
                table.is_some()
            });
            !entries.is_empty()
        });
        self.rows = rows;
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
        let kept: Vec<_> = (0..8).filter_map(|max| store.intern(table(max))).collect();
        assert_eq!(kept.len(), 8);
        for max in 100..10_000 {
            assert!(store.intern(table(max)).is_some());
            let entries = store.lock().len;
            assert!(entries <= 2 * Shelf::SMALL, "{entries} entries");
        }
        assert_eq!(store.in_use().len(), kept.len());
        for (max, kept) in (0..8).zip(&kept) {
            let again = store.intern(table(max));
            assert!(again.is_some_and(|again| Arc::ptr_eq(kept, &again)));
        }
    }

    #[test]
    fn tables_in_use_have_a_bounded_number_of_rows_in_all() {
        let store = TableStore::default();
        let huge = |max| {
            let offers = (i16::MIN..=i16::MAX).map(|key| (ApiKey(key), Offer { min: 0, max }));
            VersionTable::new(offers, FinalizedFeatures::default(), Clamp::Off)
        };
        let mut kept: Vec<_> = (0..10).map_while(|max| store.intern(huge(max))).collect();
        assert_eq!(kept.len(), 4);
        assert!(store.intern(huge(9)).is_none());
        assert!(store.intern(huge(0)).is_some(), "it is in use already");
        kept.pop();
        assert!(store.intern(huge(9)).is_some(), "one has made room");
        assert!(store.intern(table(1)).is_some());
    }
}
