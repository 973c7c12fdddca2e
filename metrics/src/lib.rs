//! klamp's metric families, their bounded labels, and the exporter.

mod shard;

pub use shard::Shard;

use std::sync::Arc;
use std::time::Duration;

/// What the labels are made of: the crate itself knows no wire formats.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// klamp's own version, for `klamp_build_info`.
    pub version: &'static str,
    /// Which release of Kafka the message definitions come from, for `klamp_build_info`.
    pub kafka_schema: &'static str,
    /// API keys that have a name.
    pub api_keys: Vec<KnownKey>,
    /// Error codes that have a name.
    pub error_codes: Vec<(i16, &'static str)>,
}

/// An API key that has a name.
#[derive(Clone, Copy, Debug)]
pub struct KnownKey {
    /// The wire code.
    pub code: i16,
    /// The name, as Kafka spells it.
    pub name: &'static str,
    /// The highest version known here; what is beyond counts as `other`.
    pub max_version: i16,
}

/// How an attempt to connect to a broker went: the label `result` of `klamp_dials_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialResult {
    /// Connected.
    Ok,
    /// The host answered that nobody listens.
    Refused,
    /// No answer in time.
    TimedOut,
    /// No route to the host or its network.
    Unreachable,
    /// The name could not be looked up.
    NameNotFound,
    /// It would have been klamp itself.
    Loop,
    /// Any other failure.
    Failed,
}

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {}

impl Metrics {
    /// Registers every family.
    pub fn new(catalog: Catalog) -> Arc<Self> {
        let _ = catalog;
        Arc::new(Self {})
    }

    /// The counters of one more thread.
    pub fn shard(&self) -> Arc<Shard> {
        Arc::new(Shard::default())
    }

    /// Tells how many connections are let in (`--max-connections`).
    pub fn limit_connections(&self, limit: u64) {
        let _ = limit;
    }

    /// Accounts an attempt to connect to `upstream` (`host:port`) that took `took`, look-up included.
    pub fn dialled(&self, upstream: &str, result: DialResult, took: Duration) {
        let _ = (upstream, result, took);
    }

    /// Everything, in the text format of Prometheus.
    pub fn render(&self) -> String {
        String::new()
    }
}
