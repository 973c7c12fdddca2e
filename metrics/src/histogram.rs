//! A histogram of durations that one thread fills without a lock.
//!
//! Buckets hold counts of their own, not cumulative ones: an observation touches one bucket and the
//! sum. The scrape accumulates.

use crate::counter::Counter;
use prometheus::proto;

/// Upper bounds in milliseconds. Fetch waits 500 ms unless told otherwise and JoinGroup up to five
/// minutes, so there is a bound at or close to each.
const BOUNDS_MS: [f64; 16] = [
    1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 10e3, 30e3, 60e3, 300e3,
    600e3,
];

const BOUNDS_NANOS: [u64; 16] = {
    let mut nanos = [0; 16];
    let mut i = 0;
    while i < 16 {
        nanos[i] = (BOUNDS_MS[i] * 1e6) as u64;
        i += 1;
    }
    nanos
};

/// All bounds: 1 ms to 600 s.
pub(crate) const DURATION_BOUNDS: usize = 16;
/// The bounds to 60 s.
pub(crate) const EXCESS_BOUNDS: usize = 14;

/// The bounds in seconds, as the exporter and ordinary histograms want them.
pub(crate) fn bounds_seconds(bounds: usize) -> impl Iterator<Item = f64> {
    BOUNDS_MS.iter().take(bounds).map(|ms| ms / 1e3)
}

/// Counts of durations up to each of the first `bounds` bounds, and beyond.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// The last is what lies beyond the last bound in use.
    buckets: [Counter; DURATION_BOUNDS + 1],
    sum_nanos: Counter,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [const { Counter::new() }; DURATION_BOUNDS + 1],
            sum_nanos: Counter::new(),
        }
    }
}

impl Histogram {
    /// Counts one duration; a bound belongs to the bucket below it.
    #[inline]
    pub(crate) fn observe(&self, nanos: u64) {
        // (most are in the first bucket, nearly all of what is counted beyond a wait)
        let bucket = match nanos <= BOUNDS_NANOS[0] {
            true => 0,
            false => BOUNDS_NANOS.partition_point(|&bound| bound < nanos),
        };
        self.buckets[bucket].add(1);
        self.sum_nanos.add(nanos);
    }
}

/// The sum of several histograms.
#[derive(Debug, Default)]
pub(crate) struct HistogramSum {
    buckets: [u64; DURATION_BOUNDS + 1],
    sum_nanos: u64,
}

impl HistogramSum {
    pub(crate) fn add(&mut self, one: &Histogram) {
        for (sum, bucket) in self.buckets.iter_mut().zip(&one.buckets) {
            *sum = sum.wrapping_add(bucket.get());
        }
        self.sum_nanos = self.sum_nanos.wrapping_add(one.sum_nanos.get());
    }

    /// `None` where nothing was observed.
    pub(crate) fn export(&self, bounds: usize) -> Option<proto::Histogram> {
        let count: u64 = self.buckets.iter().sum();
        if count == 0 {
            return None;
        }
        let mut cumulative = 0;
        let mut buckets = Vec::with_capacity(bounds);
        for (bound, counted) in bounds_seconds(bounds).zip(&self.buckets) {
            cumulative += counted;
            let mut bucket = proto::Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(cumulative);
            buckets.push(bucket);
        }
        let mut histogram = proto::Histogram::default();
        histogram.set_sample_count(count);
        histogram.set_sample_sum(self.sum_nanos as f64 / 1e9);
        histogram.set_bucket(buckets);
        Some(histogram)
    }
}
