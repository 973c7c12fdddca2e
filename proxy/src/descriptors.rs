//! File descriptors: as many as the process may have.
//!
//! Guards against the soft limit of 1,024 that many hosts and container runtimes set for the sake of
//! old programs: it would end new connections long before `--max-connections` does.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::num::NonZeroU32;
use tracing::warn;

/// A connection's two sockets.
const PER_CONNECTION: u64 = 2;

/// Listeners, event loops, pages, log, look-ups.
const BESIDE: u64 = 256;

/// Raises the soft limit to the hard one, and warns where that is not enough for so many connections.
pub(crate) fn provide(max_connections: NonZeroU32) {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = raised,
            Err(error) => warn!(%error, "cannot raise the limit of file descriptors"),
        }
    }
    let needed = u64::from(max_connections.get()) * PER_CONNECTION + BESIDE;
    // `None` is no limit.
    if let Some(descriptors) = limit.current.filter(|&descriptors| descriptors < needed) {
        warn!(
            descriptors,
            needed,
            max_connections,
            "the limit of file descriptors is lower than --max-connections needs: raise the hard \
             limit (ulimit -Hn), or lower --max-connections"
        );
    }
}
