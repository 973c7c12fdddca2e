//! What a broker offers, what we speak, and what is left: the version table of a connection.
//!
//! A table is learned from one ApiVersions answer and holds for the connection that it came on, never
//! for a cluster: brokers disagree during a rolling upgrade. The trap: a row that nobody here
//! understands (no schema, a minimum above its maximum, a key listed twice) is still what the broker
//! said, so it is kept as a value and told as such.

mod features;
mod row;
mod store;

pub use features::{BrokenPromise, Feature, Finalized, FinalizedFeatures, Need};
pub use row::{Fate, Hidden, Offer, Row};
pub use store::TableStore;

use crate::ours::ours;
use crate::session::Clamp;
use crate::types::{ApiKey, VersionRange};
use std::fmt;

/// The version table of a broker, as told by its ApiVersions answer. Tables are equal when they say
/// the same, in whatever order the broker wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VersionTable {
    /// One row per wire code, ascending by it.
    rows: Box<[Row]>,
    finalized: FinalizedFeatures,
    policy: Clamp,
}

impl VersionTable {
    /// A table of what a broker offers and has finalized, and what `policy` makes of it. Of a key
    /// listed more than once the last row counts, as it does in Kafka's own client.
    pub fn new(
        offers: impl IntoIterator<Item = (ApiKey, Offer)>,
        finalized: FinalizedFeatures,
        policy: Clamp,
    ) -> Self {
        let mut rows: Vec<Row> = offers
            .into_iter()
            .map(|(api_key, broker)| {
                let ours = policy.ours(api_key);
                Row {
                    api_key,
                    broker,
                    ours,
                    fate: Fate::under(policy, api_key, broker, ours, &finalized),
                }
            })
            .collect();
        rows.sort_by_key(|row| row.api_key); // stable: rows of one key stay in the broker's order
        rows.dedup_by(|later, earlier| {
            let twins = later.api_key == earlier.api_key;
            if twins {
                *earlier = *later;
            }
            twins
        });
        Self {
            rows: rows.into(),
            finalized,
            policy,
        }
    }

    /// All rows, ascending by wire code.
    pub fn entries(&self) -> &[Row] {
        &self.rows
    }

    /// The row of a key; `None` where the broker does not offer it.
    pub fn row(&self, api_key: ApiKey) -> Option<&Row> {
        let index = self
            .rows
            .binary_search_by_key(&api_key, |row| row.api_key)
            .ok()?;
        self.rows.get(index)
    }

    /// Whether the broker offers this version and we have its schema.
    pub fn supports(&self, api_key: ApiKey, version: i16) -> bool {
        self.common(api_key, ours(api_key))
            .is_some_and(|range| range.contains(version))
    }

    /// The highest version of `api_key` that the broker offers and we have a schema for.
    pub fn negotiate(&self, api_key: ApiKey) -> Result<i16, NoUsableVersion> {
        self.highest(api_key, ours(api_key))
    }

    /// The same for a request type and a response type with ranges of their own.
    pub fn negotiate_with(
        &self,
        api_key: ApiKey,
        request: VersionRange,
        response: VersionRange,
    ) -> Result<i16, NoUsableVersion> {
        self.highest(api_key, request.intersect(response))
    }

    fn highest(&self, api_key: ApiKey, ours: Option<VersionRange>) -> Result<i16, NoUsableVersion> {
        self.common(api_key, ours)
            .map(VersionRange::max)
            .ok_or(NoUsableVersion {
                api_key,
                broker: self.broker(api_key),
                ours,
            })
    }

    fn common(&self, api_key: ApiKey, ours: Option<VersionRange>) -> Option<VersionRange> {
        self.broker(api_key)?.intersect(ours?)
    }

    fn broker(&self, api_key: ApiKey) -> Option<VersionRange> {
        self.row(api_key)?.broker.range()
    }

    /// Rows with versions above ours, or of keys that we know nothing of.
    pub fn broker_ahead(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.versions_ahead() > 0)
    }

    /// Keys that we speak and the broker does not offer, with our range.
    pub fn not_offered(&self) -> impl Iterator<Item = (ApiKey, VersionRange)> {
        ApiKey::named()
            .filter(|&api_key| self.row(api_key).is_none())
            .filter_map(|api_key| Some((api_key, self.policy.ours(api_key)?)))
    }

    /// The finalized features that decide how clients use the rows.
    pub fn finalized(&self) -> &FinalizedFeatures {
        &self.finalized
    }

    /// Keys that a finalized feature tells clients to use and that the policy hides: such clients fail.
    pub fn broken_promises(&self) -> impl Iterator<Item = BrokenPromise> {
        features::promises(&self.finalized).filter(|promise| {
            self.row(promise.api_key)
                .is_some_and(|row| matches!(row.fate, Fate::Hidden(_)))
        })
    }
}

/// Broker and we have no version of an API in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoUsableVersion {
    /// Which API.
    pub api_key: ApiKey,
    /// What the broker offers; `None` where nothing, or a range without a version in it.
    pub broker: Option<VersionRange>,
    /// What we speak; `None` where nothing.
    pub ours: Option<VersionRange>,
}

impl std::error::Error for NoUsableVersion {}

impl fmt::Display for NoUsableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |range: Option<VersionRange>| match range {
            Some(range) => format!("Some({range})"),
            None => "None".to_owned(),
        };
        write!(
            f,
            "no usable version of {}: broker offers {}, we speak {}",
            self.api_key,
            told(self.broker),
            told(self.ours)
        )
    }
}
