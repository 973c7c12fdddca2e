//! What is measured, and handed to the report.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One run of one load through one contender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// The contender's name; `direct` is no proxy at all.
    pub contender: String,
    /// The load's name.
    pub load: String,
    /// The round, from 0.
    pub run: u32,
    /// CPU time of the proxy's processes during the load, user and system, by the finest clock that
    /// the kernel has for it.
    pub cpu: Duration,
    /// The user part, by the clock tick (10 ms).
    pub user: Duration,
    /// The system part, by the clock tick (10 ms).
    pub system: Duration,
    /// Bytes moved, both directions together.
    pub bytes: u64,
    /// Requests answered.
    pub requests: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Median round trip, where requests go one at a time; the report subtracts that of `direct`.
    pub p50: Option<Duration>,
    /// 99th percentile of the round trip, likewise.
    pub p99: Option<Duration>,
    /// The most resident memory that the proxy's processes had, in bytes.
    pub peak_rss: u64,
    /// Resident memory that one idle connection adds, in bytes.
    pub idle_rss_per_connection: Option<f64>,
    /// Resident memory after all connections have closed, as a multiple of that before the load.
    pub rss_after: Option<f64>,
    /// Connections that the load opens.
    pub connections: u32,
    /// Share of the machine's CPU time (0 to 1) that other processes took than this benchmark's, the
    /// proxy's and the broker's: what makes a sample doubtful.
    pub others_cpu: f64,
}

/// What one exchange of a small load costs a contender, counted and not timed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Count {
    /// The contender's name.
    pub contender: String,
    /// The load's name.
    pub load: String,
    /// System calls per exchange, by name, the most frequent first.
    pub system_calls: Vec<(String, f64)>,
    /// User-mode instructions per exchange, where valgrind can run the contender.
    pub instructions: Option<f64>,
}

/// What a reader must know of how it was measured: pairs of a label and its value, in order.
pub type Facts = Vec<(String, String)>;
