//! The broker's versions beside ours, for people (aligned columns) and for scripts (JSON).

use super::ask::Answer;
use klamp_codec::versions::{Fate, Row};
use klamp_codec::{ApiKey, VersionRange};
use serde::Serialize;
use std::fmt;

/// One broker's versions beside ours. Its JSON form is for scripts: fields are added, not changed.
#[derive(Debug, Serialize)]
pub(super) struct Comparison<'a> {
    broker: &'a str,
    /// The version of ApiVersions that the broker answered in.
    asked_version: i16,
    klamp_version: &'static str,
    kafka_schema: &'a str,
    /// Those that decide how clients use the rows.
    finalized_features: Vec<FeatureLevel>,
    /// Ascending by key.
    apis: Vec<Api>,
}

#[derive(Debug, Serialize)]
struct FeatureLevel {
    name: &'static str,
    level: i16,
}

#[derive(Debug, Serialize)]
struct Api {
    api_key: i16,
    name: Option<&'static str>,
    broker: Option<Range>,
    ours: Option<Range>,
    negotiated: Option<Range>,
    /// What clients get to see behind `--clamp encode`.
    shown: Option<Range>,
    note: Option<Note>,
    /// Versions that the broker offers beyond our highest.
    versions_ahead: u16,
    /// The finalized feature that tells clients to use what they cannot use through klamp, or for
    /// whose sake the row is left as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    feature: Option<&'static str>,
}

/// As the broker wrote it: `min` may exceed `max`.
#[derive(Clone, Copy, Debug, Serialize)]
struct Range {
    min: i16,
    max: i16,
}

/// What is worth a second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    BrokerAhead,
    UnknownToUs,
    NoOverlap,
    NotOffered,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(broker: &'a str, kafka_schema: &'a str, answer: &Answer) -> Self {
        let table = &answer.table;
        let promised = |key| {
            let broken = table.broken_promises().find(|it| it.api_key == key)?;
            Some(broken.finalized.feature.name())
        };
        let offered = table.entries().iter().map(|row| Api {
            feature: spared_for(row).or_else(|| promised(row.api_key)),
            ..Api::offered(row)
        });
        let missing = table
            .not_offered()
            .map(|(key, ours)| Api::missing(key, ours));
        let mut apis: Vec<_> = offered.chain(missing).collect();
        apis.sort_by_key(|api| api.api_key);
        let levels = table.finalized().iter().map(|finalized| FeatureLevel {
            name: finalized.feature.name(),
            level: finalized.level,
        });
        Self {
            broker,
            asked_version: answer.version,
            klamp_version: env!("CARGO_PKG_VERSION"),
            kafka_schema,
            finalized_features: levels.collect(),
            apis,
        }
    }

    /// One object, over several lines.
    pub(super) fn json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        json.expect("numbers and text are always JSON") + "\n"
    }

    fn count(&self, note: Note) -> usize {
        let noted = self.apis.iter().filter(|api| api.note == Some(note));
        noted.count()
    }
}

fn spared_for(row: &Row) -> Option<&'static str> {
    match row.fate {
        Fate::Spared(need) => Some(need.from.feature.name()),
        Fate::Kept | Fate::Lowered { .. } | Fate::Hidden(_) => None,
    }
}

impl Api {
    fn offered(row: &Row) -> Self {
        let range = |range: VersionRange| Range {
            min: range.min(),
            max: range.max(),
        };
        let versions_ahead = row.versions_ahead();
        Self {
            api_key: row.api_key.0,
            name: row.api_key.name(),
            broker: Some(Range {
                min: row.broker.min,
                max: row.broker.max,
            }),
            ours: row.ours.map(range),
            negotiated: row.negotiated().map(range),
            shown: row.shown().map(|shown| Range {
                min: shown.min,
                max: shown.max,
            }),
            note: match (row.ours, row.negotiated()) {
                (None, _) => Some(Note::UnknownToUs),
                (Some(_), None) => Some(Note::NoOverlap),
                (Some(_), Some(_)) if versions_ahead > 0 => Some(Note::BrokerAhead),
                (Some(_), Some(_)) => None,
            },
            versions_ahead,
            feature: None,
        }
    }

    fn missing(key: ApiKey, ours: VersionRange) -> Self {
        Self {
            api_key: key.0,
            name: key.name(),
            broker: None,
            ours: Some(Range {
                min: ours.min(),
                max: ours.max(),
            }),
            negotiated: None,
            shown: None,
            note: Some(Note::NotOffered),
            versions_ahead: 0,
            feature: None,
        }
    }

    fn columns(&self) -> [String; 6] {
        let range = |range: Option<Range>| match range {
            Some(Range { min, max }) => format!("{min}..={max}"),
            None => "-".to_owned(),
        };
        [
            self.api_key.to_string(),
            self.name.unwrap_or("-").to_owned(),
            range(self.broker),
            range(self.ours),
            range(self.negotiated),
            self.remark(),
        ]
    }

    fn remark(&self) -> String {
        let note = match self.note {
            None => String::new(),
            Some(Note::BrokerAhead) => format!("broker ahead by {}", self.versions_ahead),
            Some(Note::UnknownToUs) => "unknown to us".to_owned(),
            Some(Note::NoOverlap) => "no overlap".to_owned(),
            Some(Note::NotOffered) => "not offered by the broker".to_owned(),
        };
        match (self.feature, self.shown) {
            (None, _) => note,
            (Some(feature), None) => format!("{note}; clients need it: {feature} is finalized"),
            (Some(feature), Some(_)) => {
                format!("{note}; shown all the same: {feature} is finalized")
            }
        }
    }
}

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = ["KEY", "NAME", "BROKER", "OURS", "NEGOTIATED", "NOTE"].map(str::to_owned);
        let rows: Vec<_> = self.apis.iter().map(Api::columns).collect();
        let widths: [usize; 6] = std::array::from_fn(|column| {
            let cells = rows.iter().chain([&title]).map(|row| row[column].len());
            cells.max().unwrap_or(0)
        });
        for [key, name, broker, ours, negotiated, note] in [&title].into_iter().chain(&rows) {
            let [w_key, w_name, w_broker, w_ours, w_negotiated, _] = widths;
            let line = format!(
                "{key:>w_key$}  {name:w_name$}  {broker:w_broker$}  {ours:w_ours$}  \
                 {negotiated:w_negotiated$}  {note}"
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(
            f,
            "\n{} offers {} keys: {} ahead of us, {} unknown to us, {} without overlap; {} of ours \
             are not offered",
            self.broker,
            rows.len() - self.count(Note::NotOffered),
            self.count(Note::BrokerAhead),
            self.count(Note::UnknownToUs),
            self.count(Note::NoOverlap),
            self.count(Note::NotOffered),
        )?;
        for FeatureLevel { name, level } in &self.finalized_features {
            writeln!(f, "finalized: {name} {level}")?;
        }
        writeln!(
            f,
            "ours: klamp {}, Kafka's definitions as of {}",
            self.klamp_version, self.kafka_schema
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klamp_codec::session::Clamp;
    use klamp_codec::versions::{Feature, FinalizedFeatures, Offer, VersionTable};

    fn answer(offers: &[(i16, i16, i16)], finalized: &[(Feature, i16)]) -> Answer {
        let offers = offers
            .iter()
            .map(|&(key, min, max)| (ApiKey(key), Offer { min, max }));
        let mut features = FinalizedFeatures::default();
        for &(feature, level) in finalized {
            features.note(feature, level);
        }
        Answer {
            version: 4,
            table: VersionTable::new(offers, features, Clamp::Encode),
            trouble: None,
        }
    }

    fn api<'a>(comparison: &'a Comparison<'_>, key: i16) -> &'a Api {
        let mut apis = comparison.apis.iter();
        apis.find(|api| api.api_key == key).unwrap()
    }

    #[test]
    fn each_kind_of_row_gets_its_note() {
        let answer = answer(&[(0, 0, 99), (3, 0, 5), (18, 90, 99), (10_000, 0, 1)], &[]);
        let comparison = Comparison::new("broker:9092", "4.1", &answer);
        assert_eq!(api(&comparison, 0).note, Some(Note::BrokerAhead));
        assert_eq!(api(&comparison, 3).note, None);
        assert_eq!(api(&comparison, 18).note, Some(Note::NoOverlap));
        assert_eq!(api(&comparison, 10_000).note, Some(Note::UnknownToUs));
        assert_eq!(api(&comparison, 1).note, Some(Note::NotOffered));
    }

    #[test]
    fn the_text_is_aligned_and_ends_with_a_summary() {
        let answer = answer(&[(0, 0, 99), (10_000, 0, 1)], &[]);
        let text = Comparison::new("broker:9092", "4.1", &answer).to_string();
        let lines: Vec<_> = text.lines().collect();
        let at = lines[0].find("BROKER").unwrap();
        let vendor = lines.iter().find(|line| line.starts_with("10000")).unwrap();
        assert_eq!(&vendor[at..at + 5], "0..=1");
        assert!(vendor.ends_with("unknown to us"), "{vendor}");
        assert!(lines[1].starts_with("    0  Produce"), "{}", lines[1]);
        assert!(lines[1].contains("broker ahead by "), "{}", lines[1]);
        assert!(
            text.contains("broker:9092 offers 2 keys: 1 ahead of us, 1 unknown to us"),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.trim_end() == *line));
    }

    #[test]
    fn features_that_rows_do_not_honour_are_named() {
        let finalized = [(Feature::StreamsVersion, 1)];
        let answer = answer(&[(88, 0, 1), (89, 0, 1)], &finalized);
        let comparison = Comparison::new("broker:9092", "4.1", &answer);
        let text = comparison.to_string();
        if api(&comparison, 88).ours.is_none() {
            assert_eq!(api(&comparison, 88).feature, Some("streams.version"));
            assert!(text.contains("clients need it: streams.version"), "{text}");
        }
        assert!(text.contains("finalized: streams.version 1"), "{text}");
    }

    #[test]
    fn scripts_get_numbers_and_nulls() {
        let answer = answer(&[(3, 0, 5), (10_000, 0, 1)], &[]);
        let json = Comparison::new("broker:9092", "4.1", &answer).json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["broker"], "broker:9092");
        assert_eq!(json["asked_version"], 4);
        let apis = json["apis"].as_array().unwrap();
        let api = |key| apis.iter().find(|api| api["api_key"] == key).unwrap();
        assert_eq!(api(3)["name"], "Metadata");
        assert_eq!(api(3)["broker"]["max"], 5);
        assert_eq!(api(3)["negotiated"]["max"], 5);
        assert!(api(10_000)["name"].is_null());
        assert!(api(10_000)["negotiated"].is_null());
        assert_eq!(api(10_000)["note"], "unknown_to_us");
        assert_eq!(api(0)["note"], "not_offered");
    }
}
