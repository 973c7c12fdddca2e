//! The broker's table, for people (aligned columns and a summary) and for scripts (JSON).

use super::ask::Answer;
use crate::table::{self, TableRow};
use klamp_codec::versions::{BrokenPromise, VersionTable};
use serde::Serialize;
use std::fmt::Write;

/// For people: columns, and beneath them what they come to.
pub(super) fn text(broker: &str, kafka_schema: &str, answer: &Answer) -> String {
    let table = &answer.table;
    let unknown = table.entries().iter().filter(|row| row.ours.is_none());
    let unknown = unknown.count();
    let mut text = table::text(&table::rows(table));
    let mut line = |line: String| writeln!(text, "{line}").expect("a String takes any text");
    line(format!(
        "\n{broker} offers {} keys: {} with versions ahead of klamp's, {unknown} unknown to klamp; \
         {} keys of klamp's are not offered",
        table.entries().len(),
        table.broker_ahead().count() - unknown,
        table.not_offered().count(),
    ));
    for feature in features(table) {
        line(format!(
            "finalized: {} at level {}",
            feature.name, feature.level
        ));
    }
    for BrokenPromise { api_key, finalized } in table.broken_promises() {
        line(format!(
            "trouble: with {} at level {} clients rely on {api_key}, which `--clamp encode` hides",
            finalized.feature, finalized.level
        ));
    }
    line(format!(
        "klamp {}, with the schemas of Kafka {kafka_schema}",
        env!("CARGO_PKG_VERSION")
    ));
    text
}

/// For scripts: one object, over several lines. Fields are added to it, not changed.
pub(super) fn json(broker: &str, kafka_schema: &str, answer: &Answer) -> String {
    let table = &answer.table;
    let promise = |BrokenPromise { api_key, finalized }| Promise {
        api_key: api_key.0,
        feature: finalized.feature.name(),
        level: finalized.level,
    };
    let told = Told {
        broker,
        answered_in_version: answer.version,
        klamp_version: env!("CARGO_PKG_VERSION"),
        kafka_schema,
        finalized_features: features(table),
        broken_promises: table.broken_promises().map(promise).collect(),
        rows: table::rows(table),
    };
    let json = serde_json::to_string_pretty(&told);
    json.expect("numbers and text are always JSON") + "\n"
}

#[derive(Serialize)]
struct Told<'a> {
    broker: &'a str,
    /// The version of ApiVersions that the broker answered in.
    answered_in_version: i16,
    klamp_version: &'static str,
    kafka_schema: &'a str,
    /// Those that decide how clients use the rows.
    finalized_features: Vec<FeatureLevel>,
    /// Keys that such a feature tells clients to use, and that `--clamp encode` hides.
    broken_promises: Vec<Promise>,
    rows: Vec<TableRow>,
}

#[derive(Serialize)]
struct FeatureLevel {
    name: &'static str,
    level: i16,
}

#[derive(Serialize)]
struct Promise {
    api_key: i16,
    feature: &'static str,
    level: i16,
}

fn features(table: &VersionTable) -> Vec<FeatureLevel> {
    let finalized = table.finalized().iter();
    let level = finalized.map(|finalized| FeatureLevel {
        name: finalized.feature.name(),
        level: finalized.level,
    });
    level.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use klamp_codec::ApiKey;
    use klamp_codec::session::Clamp;
    use klamp_codec::versions::{Feature, FinalizedFeatures, Offer};

    /// A broker with streams.version 1, so that clients rely on keys 88 and 89.
    fn answer() -> Answer {
        let offers = [(0, 0, 99), (3, 0, 5), (88, 0, 1), (10_000, 0, 1)];
        let offers = offers.map(|(key, min, max)| (ApiKey(key), Offer { min, max }));
        let mut finalized = FinalizedFeatures::default();
        finalized.note(Feature::StreamsVersion, 1);
        Answer {
            version: 4,
            table: VersionTable::new(offers, finalized, Clamp::Encode),
            trouble: None,
        }
    }

    #[test]
    fn people_get_a_line_for_each_key_and_what_it_comes_to() {
        let text = text("broker:9092", "4.1", &answer());
        let vendor = text.lines().find(|line| line.starts_with("10000"));
        assert!(vendor.unwrap().contains("0..=1"), "{text}");
        for line in [
            "broker:9092 offers 4 keys: 1 with versions ahead of klamp's, 2 unknown to klamp;",
            "finalized: streams.version at level 1",
            "trouble: with streams.version at level 1 clients rely on StreamsGroupHeartbeat, which",
            "schemas of Kafka 4.1",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }

    #[test]
    fn scripts_get_the_same_as_numbers() {
        let json = json("broker:9092", "4.1", &answer());
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["broker"], "broker:9092");
        assert_eq!(json["answered_in_version"], 4);
        assert_eq!(json["finalized_features"][0]["level"], 1);
        assert_eq!(json["broken_promises"][0]["api_key"], 88);
        let mut rows = json["rows"].as_array().unwrap().iter();
        let vendor = rows.find(|row| row["api_key"] == 10_000).unwrap();
        assert_eq!(vendor["broker"]["max"], 1);
        assert!(vendor["negotiated"].is_null());
    }
}
