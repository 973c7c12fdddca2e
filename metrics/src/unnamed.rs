//! Error codes that nobody names. They are rare, so a lock does; and they come from peers, so the
//! number of pairs of API key and code is bounded.

use crate::labels::KeyRow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Pairs of API key and code that are told apart; what is beyond is counted per key.
const PAIRS: usize = 200;

/// Counts of unnamed codes by key and code; `None` is `other`.
#[derive(Debug, Default)]
pub(crate) struct UnnamedCodes {
    counts: Mutex<BTreeMap<(KeyRow, Option<i16>), u64>>,
}

impl UnnamedCodes {
    #[cold]
    pub(crate) fn add(&self, row: KeyRow, code: i16, count: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let room = counts.len() < PAIRS || counts.contains_key(&(row, Some(code)));
        *counts.entry((row, room.then_some(code))).or_default() += count;
    }

    pub(crate) fn for_each(&self, mut then: impl FnMut(KeyRow, Option<i16>, u64)) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (&(row, code), &count) in counts.iter() {
            then(row, code, count);
        }
    }
}
