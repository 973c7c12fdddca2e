//! What the version tables in use have in common, as gauges: over several tables the lowest maximum
//! and the highest minimum, that is what a client can count on with every broker.

use crate::families::{self, Filled};
use crate::labels::{KeyRow, Labels};
use prometheus::proto;
use std::collections::BTreeMap;

/// Lowest and highest version, both included.
pub type Range = (i16, i16);

/// One row of a version table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionRow {
    /// The number on the wire.
    pub api_key: i16,
    /// What the broker offers.
    pub broker: Option<Range>,
    /// What klamp speaks.
    pub ours: Option<Range>,
    /// What both have in common.
    pub negotiated: Option<Range>,
    /// How many versions the broker is ahead of klamp.
    pub ahead: u16,
    /// The client sees a lower maximum than the broker's.
    pub is_lowered: bool,
    /// The client does not see the row.
    pub is_hidden: bool,
}

/// All tables in use, folded by key.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    tables: usize,
    keys: BTreeMap<KeyRow, Folded>,
}

#[derive(Debug, Default)]
struct Folded {
    broker: Option<Range>,
    ours: Option<Range>,
    negotiated: Option<Range>,
    ahead: u16,
    hidden_in: u32,
    /// In one table at least the row is lowered, hidden or ahead.
    remarkable: bool,
}

impl Versions {
    pub(crate) fn fold(labels: &Labels, tables: &[Vec<VersionRow>]) -> Self {
        let mut keys = BTreeMap::<KeyRow, Folded>::new();
        for row in tables.iter().flatten() {
            let key = keys.entry(labels.row(row.api_key)).or_default();
            key.broker = narrowed(key.broker, row.broker);
            key.ours = narrowed(key.ours, row.ours);
            key.negotiated = narrowed(key.negotiated, row.negotiated);
            key.ahead = key.ahead.max(row.ahead);
            key.hidden_in += u32::from(row.is_hidden);
            key.remarkable |= row.is_hidden || row.is_lowered || row.ahead > 0;
        }
        keys.retain(|_, key| key.remarkable);
        Self {
            tables: tables.len(),
            keys,
        }
    }

    pub(crate) fn collect(&self, labels: &Labels) -> Vec<proto::MetricFamily> {
        let mut tables = Filled::new(families::VERSION_TABLES);
        let mut min = Filled::new(families::API_VERSION_MIN);
        let mut max = Filled::new(families::API_VERSION_MAX);
        let mut ahead = Filled::new(families::BROKER_AHEAD);
        let mut hidden = Filled::new(families::HIDDEN_API_KEYS);
        tables.value(&[], self.tables as f64);
        for (&row, key) in &self.keys {
            let Some(name) = labels.key(row) else {
                continue;
            };
            let sides = [
                ("broker", key.broker),
                ("ours", key.ours),
                ("negotiated", key.negotiated),
            ];
            for (side, range) in sides {
                if let Some((lowest, highest)) = range {
                    min.value(&[name, side], lowest.into());
                    max.value(&[name, side], highest.into());
                }
            }
            if key.ahead > 0 {
                ahead.value(&[name], key.ahead.into());
            }
            if key.hidden_in > 0 {
                hidden.value(&[name], key.hidden_in.into());
            }
        }
        [tables, min, max, ahead, hidden].map(Filled::done).into()
    }
}

/// Highest minimum and lowest maximum; they may cross.
fn narrowed(a: Option<Range>, b: Option<Range>) -> Option<Range> {
    match (a, b) {
        (Some((a_min, a_max)), Some((b_min, b_max))) => Some((a_min.max(b_min), a_max.min(b_max))),
        (one, None) | (None, one) => one,
    }
}
