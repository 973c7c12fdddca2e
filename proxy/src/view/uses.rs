//! Which API versions one connection has used, and how often: a short list that only grows, so that
//! the connection's own thread can write it without a lock while others read it.

use klamp_codec::ApiKey;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Pairs of key and version in one link of the list. Most connections use no more.
const LINK: usize = 6;
/// Links of the list. No client of Kafka's uses as many pairs on one connection; what a hostile one
/// uses beyond is not told.
const LINKS: usize = 12;

/// Pairs of key and version, each with the number of requests.
#[derive(Debug, Default)]
pub(super) struct Uses {
    first: Link,
}

#[derive(Debug, Default)]
struct Link {
    /// The key in the upper half, the version in the lower.
    pairs: [AtomicU32; LINK],
    /// 0 where the pair is not taken; from there on nothing is.
    counts: [AtomicU64; LINK],
    next: OnceLock<Box<Link>>,
}

impl Uses {
    /// Counts one request. To be called by one thread only.
    pub(super) fn add(&self, api_key: ApiKey, version: i16) {
        let wanted = pack(api_key, version);
        let mut link = &self.first;
        for _ in 0..LINKS {
            for (pair, count) in link.pairs.iter().zip(&link.counts) {
                let counted = count.load(Ordering::Relaxed);
                if counted == 0 {
                    pair.store(wanted, Ordering::Relaxed);
                }
                if counted == 0 || pair.load(Ordering::Relaxed) == wanted {
                    // Release: whoever reads the count finds its pair.
                    count.store(counted + 1, Ordering::Release);
                    return;
                }
            }
            link = link.next.get_or_init(Box::default);
        }
    }

    /// Forgets all. To be called by the thread that adds.
    pub(super) fn clear(&self) {
        let mut link = Some(&self.first);
        while let Some(some) = link {
            some.counts
                .iter()
                .for_each(|count| count.store(0, Ordering::Relaxed));
            link = some.next.get().map(Box::as_ref);
        }
    }

    pub(super) fn for_each(&self, mut then: impl FnMut(ApiKey, i16, u64)) {
        let mut link = Some(&self.first);
        while let Some(some) = link {
            for (pair, count) in some.pairs.iter().zip(&some.counts) {
                let counted = count.load(Ordering::Acquire);
                if counted == 0 {
                    return;
                }
                let (api_key, version) = unpack(pair.load(Ordering::Relaxed));
                then(api_key, version, counted);
            }
            link = some.next.get().map(Box::as_ref);
        }
    }
}

fn pack(ApiKey(key): ApiKey, version: i16) -> u32 {
    u32::from(key.cast_unsigned()) << 16 | u32::from(version.cast_unsigned())
}

fn unpack(pair: u32) -> (ApiKey, i16) {
    (ApiKey((pair >> 16) as i16), pair as i16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(uses: &Uses) -> Vec<(i16, i16, u64)> {
        let mut all = Vec::new();
        uses.for_each(|key, version, count| all.push((key.0, version, count)));
        all
    }

    #[test]
    fn every_pair_is_counted_on_its_own() {
        let uses = Uses::default();
        for (key, version) in [(0, 9), (-1, -1), (0, 9), (i16::MIN, i16::MAX), (0, 10)] {
            uses.add(ApiKey(key), version);
        }
        let expected = [(0, 9, 2), (-1, -1, 1), (i16::MIN, i16::MAX, 1), (0, 10, 1)];
        assert_eq!(all(&uses), expected);
        uses.clear();
        assert!(all(&uses).is_empty());
        uses.add(ApiKey(3), 1);
        assert_eq!(all(&uses), [(3, 1, 1)]);
    }

    #[test]
    fn a_client_that_uses_every_key_costs_a_bounded_amount() {
        let uses = Uses::default();
        for key in i16::MIN..=i16::MAX {
            uses.add(ApiKey(key), 0);
        }
        assert_eq!(all(&uses).len(), LINK * LINKS);
    }
}
