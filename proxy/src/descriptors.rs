//! File descriptors: as many as the process may have.
//!
//! Guards against the soft limit of 1,024 that many hosts and container runtimes set for the sake of
//! old programs: it would end new connections long before `--max-connections` does.

use crate::relay::MAX_PIPES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::num::NonZeroU32;
use tracing::warn;

/// A connection's two sockets.
const PER_CONNECTION: u64 = 2;

/// Listeners, event loops, pages, log, look-ups.
const BESIDE: u64 = 256;

/// The two ends of each pipe that a thread may have.
const PER_THREAD: u64 = MAX_PIPES as u64 * 2;

/// Connections where nobody asks for a number and the limit of descriptors allows as many.
const USUAL: u32 = 10_000;

/// Raises the soft limit to the hard one. Gives how many connections there may be: as many as were
/// asked for, with a warning where the limit is too low for them, else as many as is usual and fits.
pub(crate) fn provide(asked: Option<NonZeroU32>, threads: usize) -> NonZeroU32 {
    let beside = BESIDE + threads as u64 * PER_THREAD;
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
    let room = room(limit.current, beside);
    let Some(asked) = asked else {
        return NonZeroU32::MIN.saturating_add(room.min(USUAL) - 1);
    };
    if asked.get() > room {
        warn!(
            descriptors = limit.current,
            needed = u64::from(asked.get()) * PER_CONNECTION + beside,
            max_connections = asked,
            "the limit of file descriptors is lower than --max-connections needs: raise the hard \
             limit (ulimit -Hn), or lower --max-connections"
        );
    }
    asked
}

/// Connections for which so many descriptors are enough, `beside` others, one at least; `None` is no
/// limit.
fn room(descriptors: Option<u64>, beside: u64) -> u32 {
    let connections = descriptors.map_or(u64::MAX, |n| n.saturating_sub(beside) / PER_CONNECTION);
    u32::try_from(connections).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_what_the_descriptors_allow_and_for_one_at_least() {
        assert_eq!(room(Some(20_000), BESIDE), 9_872);
        assert_eq!(room(Some(64), BESIDE), 1);
        assert_eq!(room(None, BESIDE), u32::MAX);
    }
}
