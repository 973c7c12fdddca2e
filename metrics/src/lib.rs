//! klamp's metric families: their names, their bounded labels, the counters behind them, and the text
//! that Prometheus reads.
//!
//! The hot path counts into a [`Shard`] of its own thread; a scrape sums the shards. What happens
//! rarely (a dial, a close, a rejected frame) goes through [`Metrics`] into ordinary vecs. The crate
//! knows no wire formats: names come with the [`Catalog`].

mod capped;
mod catalog;
mod collector;
mod counter;
mod families;
mod histogram;
mod labels;
mod metrics;
mod shard;
mod unnamed;
mod versions;

pub use catalog::{Catalog, KnownKey};
pub use labels::{
    CaptureDropped, CaptureReason, DialResult, Direction, KeyRow, OpaqueReason, Outcome,
    RejectReason,
};
pub use metrics::{ClientConnection, Metrics};
pub use shard::Shard;
pub use versions::{Range, VersionRow};
