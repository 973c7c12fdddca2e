//! A version table as people and scripts read it: each key with what the broker offers, what klamp
//! speaks, what a client gets to see, and why that is less.

use crate::columns::Columns;
use klamp_codec::ApiKey;
use klamp_codec::VersionRange;
use klamp_codec::versions::{Fate, Hidden, Offer, Row, VersionTable};
use serde::Serialize;

/// What the columns of [`text`] mean, and what stands under `why`.
pub(crate) const LEGEND: &str = "\
Columns (- stands for none):
  broker      versions that the broker offers
  klamp       versions that klamp speaks (`klamp run --clamp`)
  negotiated  versions that both have
  client      versions that clients are told of. The minimum is always the broker's: raising it makes
              old clients fail (KAFKA-18659)
  why         empty    clients are told what the broker offers, and klamp speaks it all
              lowered  klamp lacks the newest of the broker's versions: clients are not told of those
              hidden   klamp speaks none of the broker's versions: clients are not told of the API
              spared   klamp lacks the newest, and clients are told of them all the same, since they
                       rely on them: the cluster has finalized a feature that needs them
              kept     klamp lacks the newest, and clients are told of them (--clamp off)
";

/// Versions from `min` to `max`; a broker may have written a minimum above the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Span {
    min: i16,
    max: i16,
}

impl From<VersionRange> for Span {
    fn from(range: VersionRange) -> Self {
        Self {
            min: range.min(),
            max: range.max(),
        }
    }
}

impl From<Offer> for Span {
    fn from(Offer { min, max }: Offer) -> Self {
        Self { min, max }
    }
}

/// What is to be told of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TableRow {
    /// The number on the wire.
    api_key: i16,
    /// Absent where nobody here knows the key.
    name: Option<&'static str>,
    /// Absent where the broker does not offer the key.
    broker: Option<Span>,
    /// Absent where klamp has no schema for the key.
    ours: Option<Span>,
    /// What both have in common.
    negotiated: Option<Span>,
    /// What a client gets to see.
    shown: Option<Span>,
    /// How many versions the broker is ahead of klamp.
    ahead: u16,
    /// What becomes of the row: `kept`, `lowered`, `hidden`, `spared` or `not_offered`.
    fate: &'static str,
    /// Why the row is not simply kept.
    why: Option<String>,
}

/// Every key that the broker offers, ascending, then those that it does not offer and klamp speaks.
pub(crate) fn rows(table: &VersionTable) -> Vec<TableRow> {
    let offered = table.entries().iter().map(offered);
    let not_offered = table
        .not_offered()
        .map(|(key, ours)| not_offered(key, ours));
    offered.chain(not_offered).collect()
}

/// The rows in aligned columns.
pub(crate) fn text(rows: &[TableRow]) -> String {
    let mut columns = Columns::new([
        "key",
        "api",
        "broker",
        "klamp",
        "negotiated",
        "client",
        "why",
    ]);
    for row in rows {
        columns.row([
            row.api_key.to_string(),
            row.name.unwrap_or("-").to_owned(),
            span(row.broker),
            span(row.ours),
            span(row.negotiated),
            span(row.shown),
            row.why.clone().unwrap_or_default(),
        ]);
    }
    columns.text()
}

fn span(span: Option<Span>) -> String {
    match span {
        Some(Span { min, max }) => format!("{min}..={max}"),
        None => "-".to_owned(),
    }
}

fn offered(row: &Row) -> TableRow {
    TableRow {
        api_key: row.api_key.0,
        name: row.api_key.name(),
        broker: Some(row.broker.into()),
        ours: row.ours.map(Into::into),
        negotiated: row.negotiated().map(Into::into),
        shown: row.shown().map(Into::into),
        ahead: row.versions_ahead(),
        fate: match row.fate {
            Fate::Kept => "kept",
            Fate::Lowered { .. } => "lowered",
            Fate::Hidden(_) => "hidden",
            Fate::Spared(_) => "spared",
        },
        why: why(row),
    }
}

fn not_offered(api_key: ApiKey, ours: VersionRange) -> TableRow {
    TableRow {
        api_key: api_key.0,
        name: api_key.name(),
        broker: None,
        ours: Some(ours.into()),
        negotiated: None,
        shown: None,
        ahead: 0,
        fate: "not_offered",
        why: Some("the broker does not offer it".to_owned()),
    }
}

/// Why a row is not simply kept; for a row that is kept, whether the broker is ahead.
pub(crate) fn why(row: &Row) -> Option<String> {
    match row.fate {
        Fate::Kept if row.versions_ahead() == 0 => None,
        Fate::Kept => Some(format!(
            "kept: the broker is {} ahead",
            row.versions_ahead()
        )),
        Fate::Lowered { .. } => Some(format!(
            "lowered: the broker is {} ahead",
            row.versions_ahead()
        )),
        Fate::Hidden(Hidden::NoSchema) => Some("hidden: no schema here".to_owned()),
        Fate::Hidden(Hidden::NoOverlap) => Some("hidden: no version in common".to_owned()),
        Fate::Spared(need) => Some(format!(
            "spared: with {} at level {} clients rely on version {}",
            need.from.feature, need.from.level, need.version
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klamp_codec::session::Clamp;
    use klamp_codec::versions::{Feature, FinalizedFeatures};

    fn table(offers: &[(i16, i16, i16)], finalized: FinalizedFeatures) -> VersionTable {
        let offers = offers
            .iter()
            .map(|&(key, min, max)| (ApiKey(key), Offer { min, max }));
        VersionTable::new(offers, finalized, Clamp::Encode)
    }

    #[test]
    fn each_reason_for_which_a_client_sees_less_is_told() {
        let mut finalized = FinalizedFeatures::default();
        finalized.note(Feature::TransactionVersion, 2);
        let offers = [(1, 0, 99), (3, 90, 99), (26, 90, 99), (10_000, 0, 0)];
        let rows = rows(&table(&offers, finalized));
        let told = |key| {
            let row = rows.iter().find(|row| row.api_key == key).unwrap();
            (row.fate, row.why.clone().unwrap_or_default())
        };
        assert_eq!(told(1).0, "lowered");
        assert!(
            told(1).1.starts_with("lowered: the broker is "),
            "{}",
            told(1).1
        );
        assert_eq!(
            told(3),
            ("hidden", "hidden: no version in common".to_owned())
        );
        assert_eq!(
            told(10_000),
            ("hidden", "hidden: no schema here".to_owned())
        );
        let spared = "spared: with transaction.version at level 2 clients rely on version 5";
        assert_eq!(told(26), ("spared", spared.to_owned()));
        assert_eq!(told(0).0, "not_offered");
    }

    #[test]
    fn the_text_has_one_line_for_each_row_and_the_json_the_same_facts() {
        let rows = rows(&table(
            &[(0, 0, 9), (10_000, 3, 4)],
            FinalizedFeatures::default(),
        ));
        let text = text(&rows);
        assert_eq!(text.lines().count(), rows.len() + 1);
        let unknown = text.lines().nth(2).unwrap();
        let words: Vec<_> = unknown.split_whitespace().take(6).collect();
        assert_eq!(words, ["10000", "-", "3..=4", "-", "-", "-"]);
        let json = serde_json::to_value(&rows[1]).unwrap();
        assert_eq!(json["api_key"], 10_000);
        assert_eq!(json["broker"], serde_json::json!({ "min": 3, "max": 4 }));
        assert_eq!(json["ours"], serde_json::Value::Null);
        assert_eq!(json["ahead"], 2);
    }
}
