//! The counters of one thread.

/// The counters of one thread.
#[derive(Debug, Default)]
pub struct Shard {}
