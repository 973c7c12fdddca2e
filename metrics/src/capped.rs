//! Label values that peers or addresses bring along: taken in while there is room, `other` after.
//!
//! A value that was taken in stays for good. Giving places back would bound what a scrape shows, but
//! not what a peer with ever new names could make Prometheus store.

use crate::labels::OTHER;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// A bounded set of label values.
#[derive(Debug)]
pub(crate) struct Capped {
    limit: usize,
    taken: Mutex<HashSet<String>>,
}

impl Capped {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            taken: Mutex::default(),
        }
    }

    /// Whether `value` may stand as it is.
    pub(crate) fn admits(&self, value: &str) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.contains(value) || (taken.len() < self.limit && taken.insert(value.to_owned()))
    }

    /// `value`, or `other`.
    pub(crate) fn label<'a>(&self, value: &'a str) -> &'a str {
        if self.admits(value) { value } else { OTHER }
    }
}
