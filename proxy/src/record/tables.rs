//! What an operator must know of a version table. Its rows are told once and the promises that it
//! breaks are told once: one broker tells its features in some versions of its answer and not in
//! others, so the same rows come with several sets of promises.

use crate::log::Admitted;
use crate::table;
use klamp_codec::ApiKey;
use klamp_codec::versions::{Fate, Finalized, Row, VersionTable};
use tracing::{debug, info, warn};

/// Rows of one table that are told; `/versions` shows all.
const ROWS: usize = 100;

/// Logs what clients do not see as the broker wrote it: one line that names the rows, and for whoever
/// looks closer a line for each.
pub(super) fn note_rows(table: &VersionTable, upstream: &str, Admitted { suppressed }: Admitted) {
    let lowered = Named::of(table, |row| match row.fate {
        Fate::Lowered { to } => Some(format!("{} {}->{to}", row.api_key, row.broker.max)),
        _ => None,
    });
    let hidden = Named::of(table, |row| match row.fate {
        Fate::Hidden(_) => Some(row.api_key.to_string()),
        _ => None,
    });
    let spared = Named::of(table, |row| match row.fate {
        Fate::Spared(_) => Some(row.api_key.to_string()),
        _ => None,
    });
    info!(
        suppressed,
        upstream = %upstream,
        rows = table.entries().len(),
        broker_ahead = table.broker_ahead().count(),
        lowered = lowered.count,
        hidden = hidden.count,
        spared = spared.count,
        lowered_versions = lowered.names,
        hidden_api_keys = hidden.names,
        "a broker told a version table that was not seen before: clients see it but for what is lowered or \
         hidden (/versions on --debug tells why)"
    );
    if spared.count > 0 {
        warn!(
            upstream = %upstream,
            api_keys = spared.names,
            "clients see rows as the broker has them, though klamp has no schema for all of it: the \
             cluster has finalized a feature that needs them"
        );
    }
    let changed = |row: &&Row| row.fate != Fate::Kept;
    for row in table.entries().iter().filter(changed).take(ROWS) {
        note_row(row, upstream);
    }
}

/// Some rows of a table: how many there are, and the first of them.
struct Named {
    count: usize,
    /// Absent where there are none, and so is the field in the line.
    names: Option<String>,
}

impl Named {
    fn of(table: &VersionTable, name: impl Fn(&Row) -> Option<String>) -> Self {
        let names = || table.entries().iter().filter_map(&name);
        let count = names().count();
        let mut told: Vec<_> = names().take(ROWS).collect();
        if count > told.len() {
            told.push(format!("{} more", count - told.len()));
        }
        Self {
            count,
            names: (count > 0).then(|| told.join(", ")),
        }
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
    debug!(
        upstream = %upstream,
        api_key = %row.api_key,
        broker = %row.broker,
        ours = row.ours.map(display),
        shown = row.shown().map(display),
        why = table::why(row).unwrap_or_default(),
        "a row of which clients see less, or klamp has less, than the broker offers"
    );
}
