//! Keeps peers from filling the log.
//!
//! The trap: whatever a peer can make klamp say, it can make klamp say a million times.

use super::kept_back::FLOOD;
use crate::timers;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Lets a call site log at most so many lines an interval, and counts what it kept back. Those that
/// [`super::limit`] makes tell that count when the flood is over.
///
/// ```ignore
/// let limit = log::limit(Level::WARN, "the peer does it again and again", 10);
/// if let Some(Admitted { suppressed }) = limit.admit() {
///     tracing::warn!(suppressed, "the peer did it again");
/// }
/// ```
///
/// Without a lock.
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
        self.admit_at(timers::epoch().elapsed())
    }

    /// How many lines were kept back in an interval that is over, if no line has told so since.
    pub(super) fn kept_back(&self) -> Option<NonZeroU64> {
        self.kept_back_at(timers::epoch().elapsed())
    }

    /// How many lines were kept back since that was last told.
    pub(super) fn take(&self) -> Option<NonZeroU64> {
        match self.is_keeping_back() {
            true => NonZeroU64::new(self.suppressed.swap(0, Ordering::Relaxed)),
            false => None,
        }
    }

    /// Whether there is something that was not told.
    pub(super) fn is_keeping_back(&self) -> bool {
        self.suppressed.load(Ordering::Relaxed) > 0
    }

    fn kept_back_at(&self, since_start: Duration) -> Option<NonZeroU64> {
        let current = (self.window.load(Ordering::Relaxed) >> 32) as u32;
        (current != self.window_of(since_start))
            .then(|| self.take())
            .flatten()
    }

    fn window_of(&self, since_start: Duration) -> u32 {
        (since_start.as_millis() / self.interval.as_millis()) as u32
    }

    fn admit_at(&self, since_start: Duration) -> Option<Admitted> {
        let window = self.window_of(since_start);
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
            if self.suppressed.fetch_add(1, Ordering::Relaxed) == 0 {
                FLOOD.notify_one();
            }
            return None;
        }
        Some(Admitted {
            suppressed: self.take(),
        })
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
    fn a_flood_that_is_over_tells_what_it_kept_back_though_no_line_comes_any_more() {
        let limit = RateLimit::new(1, SECOND);
        let flood = |at| (0..42).filter(|_| limit.admit_at(at).is_some()).count();
        assert_eq!(limit.kept_back_at(SECOND), None, "nothing has happened");
        assert_eq!(flood(SECOND / 2), 1);
        let goes_on = limit.kept_back_at(SECOND * 3 / 4);
        assert_eq!((goes_on, limit.is_keeping_back()), (None, true));
        assert_eq!(limit.kept_back_at(SECOND), NonZeroU64::new(41));
        assert!(!limit.is_keeping_back());
        assert_eq!(
            limit.admit_at(SECOND * 3),
            suppressed(0),
            "it has been told"
        );
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
