//! The only translator from what a session sees to metrics, views and log lines.

use crate::relay::{Ended, Meter};
use crate::view::Views;
use klamp_codec::Direction;
use klamp_codec::observation::{Observation, Observer};
use klamp_metrics::{Catalog, Metrics, Shard};
use std::net::SocketAddr;
use std::sync::Arc;

/// What the records of all connections share.
pub(crate) struct Watch {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) views: Views,
}

impl Watch {
    /// `own_addresses`: every `host:port` that klamp listens on or advertises. A Metadata answer that
    /// names any other address sends clients past klamp.
    pub(crate) fn new(metrics: Arc<Metrics>, own_addresses: Vec<(String, u16)>) -> Arc<Self> {
        let _ = own_addresses;
        Arc::new(Self {
            metrics,
            views: Views::default(),
        })
    }
}

/// What the labels of the metrics are made of.
pub(crate) fn catalog() -> Catalog {
    Catalog::default()
}

/// The record of one connection, from accept to close. Dropping it accounts the close, so no exit
/// path can forget it.
pub(crate) struct Record {}

impl Record {
    /// A connection has been accepted from `peer` and goes to `upstream` (`host:port`).
    pub(crate) fn new(
        watch: Arc<Watch>,
        shard: Arc<Shard>,
        peer: SocketAddr,
        upstream: Arc<str>,
    ) -> Self {
        let _ = (watch, shard, peer, upstream);
        Self {}
    }

    /// The connection ends. Without this call, dropping accounts it as `aborted`.
    pub(crate) fn ended(&mut self, ended: Ended) {
        let _ = ended;
    }
}

impl Observer for Record {
    fn observe(&mut self, direction: Direction, at: u64, what: Observation<'_>) {
        let _ = (direction, at, what);
    }
}

impl Meter for Record {
    fn moved(&mut self, direction: Direction, bytes: u64) {
        let _ = (direction, bytes);
    }
}
