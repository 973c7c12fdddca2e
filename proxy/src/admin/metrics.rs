//! `/metrics`: what is counted, and the version tables in use at the time of the scrape.

use super::AdminState;
use klamp_codec::VersionRange;
use klamp_codec::versions::{Fate, Row};
use klamp_metrics::{Range, VersionRow};
use std::collections::HashSet;

/// Everything, in Prometheus' text format.
///
/// # Errors
/// The encoder's own words.
pub(super) fn render(state: &AdminState) -> Result<String, impl std::fmt::Display + use<>> {
    let tables = state.policy.tables.in_use();
    // By rows: one broker tells its features in some versions of its answer and not in others.
    let tables: HashSet<&[Row]> = tables.iter().map(|table| table.entries()).collect();
    let rows = |table: &[Row]| table.iter().map(version_row).collect();
    let tables: Vec<Vec<_>> = tables.into_iter().map(rows).collect();
    state.watch.metrics.set_version_tables(&tables);
    let tapes = &state.watch.captures.tapes;
    state
        .watch
        .metrics
        .set_recorder(tapes.bytes(), tapes.given_up());
    state.watch.metrics.render()
}

fn version_row(row: &Row) -> VersionRow {
    VersionRow {
        api_key: row.api_key.0,
        broker: Some((row.broker.min, row.broker.max)),
        ours: row.ours.map(range),
        negotiated: row.negotiated().map(range),
        ahead: row.versions_ahead(),
        is_lowered: matches!(row.fate, Fate::Lowered { .. }),
        is_hidden: matches!(row.fate, Fate::Hidden(_)),
    }
}

fn range(range: VersionRange) -> Range {
    (range.min(), range.max())
}
