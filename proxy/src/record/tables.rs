//! What an operator must know of a version table. Its rows are told once and the promises that it
//! breaks are told once: one broker tells its features in some versions of its answer and not in
//! others, so the same rows come with several sets of promises.

use crate::log::Admitted;
use crate::table;
use klamp_codec::ApiKey;
use klamp_codec::versions::{Fate, Finalized, Row, VersionTable};
use tracing::field::display;
use tracing::{info, warn};

/// Rows of one table that are logged; `/versions` shows all.
const ROWS: usize = 100;

/// Logs every row that clients do not see as the broker wrote it.
pub(super) fn note_rows(table: &VersionTable, upstream: &str, Admitted { suppressed }: Admitted) {
    let of_fate =
        |fate: fn(&Fate) -> bool| table.entries().iter().filter(|row| fate(&row.fate)).count();
    info!(
        suppressed,
        upstream = %upstream,
        rows = table.entries().len(),
        lowered = of_fate(|fate| matches!(fate, Fate::Lowered { .. })),
        hidden = of_fate(|fate| matches!(fate, Fate::Hidden(_))),
        spared = of_fate(|fate| matches!(fate, Fate::Spared(_))),
        broker_ahead = table.broker_ahead().count(),
        "a broker told a version table that was not seen before"
    );
    let changed = |row: &&Row| row.fate != Fate::Kept;
    for row in table.entries().iter().filter(changed).take(ROWS) {
        note_row(row, upstream);
    }
}

/// Logs the promise that `finalized` makes and that hiding these keys breaks.
pub(super) fn note_broken_promise(
    finalized: Finalized,
    api_keys: &[ApiKey],
    upstream: &str,
    Admitted { suppressed }: Admitted,
) {
    let api_keys: Vec<_> = api_keys.iter().map(ToString::to_string).collect();
    warn!(
        suppressed,
        upstream = %upstream,
        api_keys = api_keys.join(", "),
        feature = %finalized.feature,
        level = finalized.level,
        "clients that use this feature will fail: the cluster has finalized it, and klamp hides keys \
         of it that it has no schema for; run with --clamp inspect to let them pass"
    );
}

fn note_row(row: &Row, upstream: &str) {
    let why = table::why(row).unwrap_or_default();
    let ours = row.ours.map(display);
    let shown = row.shown().map(display);
    match row.fate {
        Fate::Spared(_) => warn!(
            upstream = %upstream,
            api_key = %row.api_key,
            broker = %row.broker,
            ours,
            why,
            "clients see a row as the broker has it, though klamp has no schema for all of it"
        ),
        _ => info!(
            upstream = %upstream,
            api_key = %row.api_key,
            broker = %row.broker,
            ours,
            shown,
            why,
            "clients see less than the broker offers"
        ),
    }
}
