//! Keeps peers from filling the log.
//!
//! The trap: whatever a peer can make klamp say, it can make klamp say a million times.

use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lets a call site log at most so many lines an interval, and counts what it kept back.
///
/// ```ignore
/// static LIMIT: RateLimit = RateLimit::new(10, Duration::from_secs(10));
/// if let Some(Admitted { suppressed }) = LIMIT.admit() {
///     tracing::warn!(suppressed, "the peer did it again");
/// }
/// ```
///
/// Without a lock. The number kept back is told with the next line that passes, so the count of a
/// flood's last moments waits for the next event; metrics count every one.
#[derive(Debug)]
pub(crate) struct RateLimit {
    most: u32,
    interval: Duration,
    /// The number of the interval (upper half) and how many lines it has let through (lower half).
    window: AtomicU64,
    suppressed: AtomicU64,
}

/// A line may be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Admitted {
    /// How many lines have been kept back since the last one that passed; `None` where there were
    /// none, so that the field is then absent from the line.
    pub(crate) suppressed: Option<NonZeroU64>,
}

impl RateLimit {
    /// At most `most` lines in each `interval`, which is at least a millisecond.
    pub(crate) const fn new(most: u32, interval: Duration) -> Self {
        assert!(interval.as_millis() > 0);
        Self {
            most,
            interval,
            window: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
        }
    }

    /// `None` where the line is to be kept back.
    pub(crate) fn admit(&self) -> Option<Admitted> {
        static START: OnceLock<Instant> = OnceLock::new();
        self.admit_at(START.get_or_init(Instant::now).elapsed())
    }

    fn admit_at(&self, since_start: Duration) -> Option<Admitted> {
        let window = (since_start.as_millis() / self.interval.as_millis()) as u32;
        let counted = self
            .window
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                let (current, passed) = ((state >> 32) as u32, state as u32);
                match passed {
                    _ if current != window => Some(u64::from(window) << 32 | 1),
                    passed if passed < self.most => Some(state + 1),
                    _ => None,
                }
            });
        if counted.is_err() {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let suppressed = match self.suppressed.load(Ordering::Relaxed) {
            0 => None,
            _ => NonZeroU64::new(self.suppressed.swap(0, Ordering::Relaxed)),
        };
        Some(Admitted { suppressed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn suppressed(n: u64) -> Option<Admitted> {
        Some(Admitted {
            suppressed: NonZeroU64::new(n),
        })
    }

    #[test]
    fn so_many_lines_pass_in_an_interval_and_no_more() {
        let limit = RateLimit::new(3, SECOND);
        let passed = (0..1000).filter(|_| limit.admit_at(SECOND * 5).is_some());
        assert_eq!(passed.count(), 3);
    }

    #[test]
    fn the_next_interval_tells_how_many_were_kept_back_and_only_once() {
        let limit = RateLimit::new(1, SECOND);
        assert_eq!(limit.admit_at(Duration::ZERO), suppressed(0));
        for _ in 0..41 {
            assert_eq!(limit.admit_at(SECOND / 2), None);
        }
        assert_eq!(limit.admit_at(SECOND), suppressed(41));
        assert_eq!(limit.admit_at(SECOND * 2), suppressed(0));
    }

    #[test]
    fn threads_share_one_limit() {
        static LIMIT: RateLimit = RateLimit::new(100, Duration::from_secs(3600));
        let flood = || (0..1000).filter(|_| LIMIT.admit().is_some()).count();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(flood)).collect();
        let passed: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
        assert_eq!(passed, 100);
        assert_eq!(LIMIT.suppressed.load(Ordering::Relaxed), 3900);
    }
}
