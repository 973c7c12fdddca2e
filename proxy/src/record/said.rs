//! Remembers what has been said, so that it is said once, however often it happens and on however
//! many connections.

use crate::log::{Admitted, RateLimit};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Things that are remembered.
const PLACES: usize = 1024;
/// Places looked at for one thing.
const PROBES: usize = 16;

/// A bounded set without a lock: asking costs a few loads, so it may stand beside the hot path.
#[derive(Debug)]
pub(super) struct Said {
    /// Hashes; 0 where free.
    places: Box<[AtomicU64]>,
}

impl Default for Said {
    fn default() -> Self {
        Self {
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Said {
    /// Lets `what` be said where it has not been said before and `limit` allows. What the limit keeps
    /// back may be said another time; where the set is full, the limit alone decides.
    pub(super) fn admit(&self, what: impl Hash, limit: &RateLimit) -> Option<Admitted> {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let hash = hasher.finish().max(1);
        let probes = (0..PROBES).map(|probe| (hash as usize).wrapping_add(probe) % PLACES);
        let mut free = None;
        for place in probes.map(|index| &self.places[index]) {
            match place.load(Relaxed) {
                0 => {
                    free = Some(place);
                    break;
                }
                taken if taken == hash => return None,
                _ => {}
            }
        }
        let admitted = limit.admit()?;
        // Another thread may take the place first: at worst a thing is said twice.
        if let Some(place) = free {
            place.store(hash, Relaxed);
        }
        Some(admitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_thing_is_said_once() {
        let (said, limit) = (Said::default(), RateLimit::new(u32::MAX, HOUR));
        let new = || {
            (0..300_u32)
                .filter(|n| said.admit(("thing", n), &limit).is_some())
                .count()
        };
        assert_eq!((new(), new()), (300, 0));
    }

    #[test]
    fn what_the_limit_keeps_back_may_be_said_later() {
        let (said, now, later) = (
            Said::default(),
            RateLimit::new(1, HOUR),
            RateLimit::new(1, HOUR),
        );
        assert!(said.admit("first", &now).is_some());
        assert!(said.admit("second", &now).is_none());
        assert!(said.admit("second", &later).is_some());
    }

    #[test]
    fn what_is_remembered_stays_so_when_the_set_is_flooded() {
        let (said, limit) = (Said::default(), RateLimit::new(u32::MAX, HOUR));
        assert!(said.admit("early", &limit).is_some());
        (0..100_000_u32).for_each(|thing| {
            said.admit(thing, &limit);
        });
        assert!(said.admit("early", &limit).is_none());
    }
}
