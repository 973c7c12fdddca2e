//! All metrics of the process: the door for what happens rarely, and for the scrape.

use crate::capped::Capped;
use crate::catalog::Catalog;
use crate::collector::{Sums, SumsCollector};
use crate::families::{self, Family};
use crate::histogram::{DURATION_BOUNDS, bounds_seconds};
use crate::labels::{
    CaptureDropped, CaptureReason, DialResult, Direction, Labels, OTHER, RejectReason,
};
use crate::shard::{Shard, Shared};
use crate::unnamed::UnnamedCodes;
use crate::versions::{VersionRow, Versions};
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Brokers that have a label value of their own.
const UPSTREAMS: usize = 200;
/// Pairs of client software name and version that have label values of their own.
const SOFTWARE: usize = 200;
/// Bytes of a client software name or version that a label shows.
const SOFTWARE_BYTES: usize = 64;

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    sums: Arc<Sums>,
    connections_limit: IntGauge,
    connections_closed: IntCounterVec,
    dials: IntCounterVec,
    dial_duration: Histogram,
    upstream_up: IntGaugeVec,
    upstreams: Capped,
    // (those of fixed labels exist from the start: `increase()` does not see the first event of a series that
    // begins with it)
    frames_rejected: [[IntCounter; RejectReason::ALL.len()]; Direction::ALL.len()],
    correlation_mismatches: IntCounter,
    foreign_addresses: OnceLock<IntCounter>,
    client_connections: IntGaugeVec,
    software: Capped,
    captures: [IntCounter; CaptureReason::ALL.len()],
    /// By [`CaptureDropped`], so that counting takes no lock: one of them may come with each message.
    captures_dropped: [IntCounter; CaptureDropped::ALL.len()],
    captures_bytes: IntGauge,
}

impl Metrics {
    /// Registers every family.
    ///
    /// # Panics
    /// Where two families have the same name: a mistake in this crate, found by its tests.
    pub fn new(catalog: Catalog) -> Arc<Self> {
        Self::registered(&catalog)
            .expect("families are described once each")
            .into()
    }

    /// The counters of one more thread.
    pub fn shard(&self) -> Arc<Shard> {
        let shard = Arc::new(Shard::new(Arc::clone(&self.sums.shared)));
        let mut shards = self
            .sums
            .shards
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        shards.push(Arc::clone(&shard));
        shard
    }

    /// A broker advertises `api_key`: requests with it are counted by number from now on, even where
    /// it has no name. A bounded number of keys can be told apart.
    pub fn advertised(&self, api_key: i16) {
        self.sums.shared.labels.advertise(api_key);
    }

    /// How many connections are let in (`--max-connections`).
    pub fn limit_connections(&self, limit: u64) {
        self.connections_limit
            .set(i64::try_from(limit).unwrap_or(i64::MAX));
    }

    /// A client connection has ended. `reason` is one of a fixed set.
    pub fn connection_closed(&self, reason: &'static str) {
        self.connections_closed.with_label_values(&[reason]).inc();
    }

    /// An attempt to connect to `upstream` (`host:port`) took `took`, look-up included.
    pub fn dialled(&self, upstream: &str, result: DialResult, took: Duration) {
        let upstream = self.upstreams.label(upstream);
        self.dials
            .with_label_values(&[result.label(), upstream])
            .inc();
        self.dial_duration.observe(took.as_secs_f64());
        self.upstream_up
            .with_label_values(&[upstream])
            .set(i64::from(result == DialResult::Ok));
    }

    /// Bytes that are no frame came.
    pub fn frame_rejected(&self, direction: Direction, reason: RejectReason) {
        self.frames_rejected[direction as usize][reason as usize].inc();
    }

    /// A response answered no request.
    pub fn correlation_mismatch(&self) {
        self.correlation_mismatches.inc();
    }

    /// `klamp_foreign_addresses_total`, which exists from the first call on: whether it can be told
    /// depends on the mode.
    pub fn foreign_addresses(&self) -> &IntCounter {
        self.foreign_addresses.get_or_init(|| {
            let counter = IntCounter::with_opts(opts(&families::FOREIGN_ADDRESSES))
                .expect("the family is described well");
            self.registry
                .register(Box::new(counter.clone()))
                .expect("registered once");
            counter
        })
    }

    /// An open connection has told its software; it counts until the guard is dropped.
    pub fn client_connection(&self, name: &[u8], version: &[u8]) -> ClientConnection {
        let (name, version) = (software_label(name), software_label(version));
        // A space occurs in neither.
        let labels = match self.software.admits(&format!("{name} {version}")) {
            true => [name.as_str(), version.as_str()],
            false => [OTHER, OTHER],
        };
        let gauge = self.client_connections.with_label_values(&labels);
        gauge.inc();
        ClientConnection { gauge }
    }

    /// A capture was taken.
    pub fn captured(&self, reason: CaptureReason) {
        self.captures[reason as usize].inc();
    }

    /// There is no capture, or no file of it.
    pub fn capture_dropped(&self, why: CaptureDropped) {
        self.captures_dropped[why as usize].inc();
    }

    /// Captures take so much memory.
    pub fn set_captures_bytes(&self, bytes: usize) {
        self.captures_bytes
            .set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Tells the rows of each distinct version table in use, for the next [`Metrics::render`].
    pub fn set_version_tables(&self, tables: &[Vec<VersionRow>]) {
        let folded = Versions::fold(&self.sums.shared.labels, tables);
        *self
            .sums
            .versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = folded;
    }

    /// Tells what the recorder takes now, and how many chunks it has given up since the start, for the next
    /// [`Metrics::render`].
    pub fn set_recorder(&self, bytes: usize, given_up: u64) {
        for (told, value) in self.sums.recorder.iter().zip([bytes as u64, given_up]) {
            told.store(value, Relaxed);
        }
    }

    /// Everything, in Prometheus' text format ([`Metrics::CONTENT_TYPE`]).
    ///
    /// # Errors
    /// Where the encoder refuses a family; its words say which.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    /// What [`Metrics::render`] gives, for `Content-Type`.
    pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

    fn registered(catalog: &Catalog) -> prometheus::Result<Self> {
        let registry = Registry::new();
        let sums = Arc::new(Sums {
            shared: Arc::new(Shared {
                labels: Labels::new(catalog),
                unnamed: UnnamedCodes::default(),
            }),
            shards: Mutex::default(),
            versions: Mutex::default(),
            recorder: Default::default(),
        });
        registry.register(Box::new(SumsCollector::new(Arc::clone(&sums))?))?;
        registry.register(Box::new(ProcessCollector::for_self()))?;
        let build_info = gauge_vec(&registry, &families::BUILD_INFO)?;
        build_info
            .with_label_values(&[catalog.kafka_schema, catalog.version])
            .set(1);
        let duration = HistogramOpts::from(opts(&families::DIAL_DURATION))
            .buckets(bounds_seconds(DURATION_BOUNDS).collect());
        let frames_rejected = counter_vec(&registry, &families::FRAMES_REJECTED)?;
        let captures = counter_vec(&registry, &families::CAPTURES)?;
        let captures_dropped = counter_vec(&registry, &families::CAPTURES_DROPPED)?;
        let metrics = Self {
            sums,
            connections_limit: IntGauge::with_opts(opts(&families::CONNECTIONS_LIMIT))?,
            connections_closed: counter_vec(&registry, &families::CONNECTIONS_CLOSED)?,
            dials: counter_vec(&registry, &families::DIALS)?,
            dial_duration: Histogram::with_opts(duration)?,
            upstream_up: gauge_vec(&registry, &families::UPSTREAM_UP)?,
            upstreams: Capped::new(UPSTREAMS),
            frames_rejected: Direction::ALL.map(|direction| {
                let of = |why: RejectReason| [direction.label(), why.label()];
                RejectReason::ALL.map(|why| frames_rejected.with_label_values(&of(why)))
            }),
            correlation_mismatches: IntCounter::with_opts(opts(&families::CORRELATION_MISMATCHES))?,
            foreign_addresses: OnceLock::new(),
            client_connections: gauge_vec(&registry, &families::CLIENT_CONNECTIONS)?,
            software: Capped::new(SOFTWARE),
            captures: CaptureReason::ALL.map(|why| captures.with_label_values(&[why.label()])),
            captures_dropped: CaptureDropped::ALL
                .map(|why| captures_dropped.with_label_values(&[why.label()])),
            captures_bytes: IntGauge::with_opts(opts(&families::CAPTURES_BYTES))?,
            registry,
        };
        metrics
            .registry
            .register(Box::new(metrics.captures_bytes.clone()))?;
        metrics
            .registry
            .register(Box::new(metrics.connections_limit.clone()))?;
        metrics
            .registry
            .register(Box::new(metrics.dial_duration.clone()))?;
        metrics
            .registry
            .register(Box::new(metrics.correlation_mismatches.clone()))?;
        Ok(metrics)
    }
}

/// An open connection whose software is known. Dropping it counts the connection out.
#[derive(Debug)]
pub struct ClientConnection {
    gauge: IntGauge,
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

/// What KIP-511 allows in a software name or version, other bytes as `_`, cut to a length.
fn software_label(told: &[u8]) -> String {
    let allowed = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' => char::from(*byte),
        _ => '_',
    };
    match told {
        [] => "unknown".to_owned(),
        _ => told.iter().take(SOFTWARE_BYTES).map(allowed).collect(),
    }
}

fn opts(family: &Family) -> Opts {
    Opts::new(family.name, family.help)
}

fn counter_vec(registry: &Registry, family: &Family) -> prometheus::Result<IntCounterVec> {
    let vec = IntCounterVec::new(opts(family), family.labels)?;
    registry.register(Box::new(vec.clone()))?;
    Ok(vec)
}

fn gauge_vec(registry: &Registry, family: &Family) -> prometheus::Result<IntGaugeVec> {
    let vec = IntGaugeVec::new(opts(family), family.labels)?;
    registry.register(Box::new(vec.clone()))?;
    Ok(vec)
}
