//! Answers that real brokers gave (Kafka 4.3.1 and 4.4.0, one KRaft node each, default features).

use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::protocol::Decodable;
use klamp_codec::clamp::{Clamped, clamp};
use klamp_codec::session::Clamp;
use klamp_codec::versions::{Fate, Feature};
use klamp_codec::{ApiKey, ErrorCode};

macro_rules! captured {
    ($name:literal) => {
        include_bytes!(concat!("captured/", $name, ".bin")).as_slice()
    };
}

const ANSWERS: [(i16, &[u8]); 7] = [
    (0, captured!("4.3.1-v0")),
    (3, captured!("4.3.1-v3")),
    (4, captured!("4.3.1-v4")),
    (0, captured!("4.4.0-v0")),
    (3, captured!("4.4.0-v3")),
    (4, captured!("4.4.0-v4")),
    (5, captured!("4.4.0-v5")),
];

/// Version 5 has the fields of version 4, which is the newest that kafka-protocol reads.
fn decoded(frame: &[u8], version: i16) -> ApiVersionsResponse {
    let mut body = &frame[8..];
    let decoded = ApiVersionsResponse::decode(&mut body, version.min(4)).unwrap();
    assert!(body.is_empty());
    decoded
}

#[test]
fn a_real_answer_shows_what_both_sides_have_and_keeps_its_features() {
    for (version, answer) in ANSWERS {
        let Clamped {
            table,
            error,
            frame,
        } = clamp(answer, version, Clamp::Encode).unwrap();
        assert_eq!(error, ErrorCode::NONE);
        let table = table.unwrap();
        let frame = frame.unwrap();
        let (before, after) = (decoded(answer, version), decoded(&frame, version));

        let mut expected = before.clone();
        expected.api_keys.retain_mut(|row| {
            let Ok(key) = kafka_protocol::messages::ApiKey::try_from(row.api_key) else {
                return false;
            };
            let ours = klamp_codec::ours(ApiKey(key as i16)).unwrap();
            row.max_version = row.max_version.min(ours.max());
            true
        });
        assert_eq!(after, expected);
        assert!(
            after
                .api_keys
                .iter()
                .all(|row| ![88, 89].contains(&row.api_key))
        );

        // What follows the rows is the same to the byte: tagged fields and the throttle time.
        let tail = |frame: &[u8], rows: usize| {
            let (count, row) = if version >= 3 { (1, 7) } else { (4, 6) };
            frame[10 + count + row * rows..].to_vec()
        };
        assert_eq!(
            tail(&frame, after.api_keys.len()),
            tail(answer, before.api_keys.len()),
        );
        assert_eq!(table.entries().len(), before.api_keys.len());
        assert!(table.broker_ahead().any(|row| row.api_key == ApiKey(88)));
        let produce = table.row(ApiKey::PRODUCE).unwrap();
        assert_eq!((produce.broker.min, produce.fate), (0, Fate::Kept));
    }
}

#[test]
fn a_real_broker_promises_streams_groups_that_the_clamp_hides() {
    for (version, answer) in ANSWERS {
        let table = clamp(answer, version, Clamp::Encode)
            .unwrap()
            .table
            .unwrap();
        let broken: Vec<_> = table
            .broken_promises()
            .map(|it| (it.api_key.0, it.finalized.feature))
            .collect();
        if version >= 3 {
            let streams = Feature::StreamsVersion;
            assert_eq!(broken, [(88, streams), (89, streams)]);
            let transactions = table
                .finalized()
                .iter()
                .find(|it| it.feature == Feature::TransactionVersion);
            assert_eq!(transactions.unwrap().level, 2);
        } else {
            assert_eq!(broken, [], "version {version} tells of no features");
        }
    }
}

#[test]
fn all_that_a_real_broker_has_passes_where_klamp_only_inspects() {
    for (version, answer) in ANSWERS {
        let clamped = clamp(answer, version, Clamp::Inspect).unwrap();
        assert_eq!(clamped.frame, None);
        let table = clamped.table.unwrap();
        assert!(table.entries().iter().all(|row| row.fate == Fate::Kept));
        assert_eq!(table.broker_ahead().count(), 0);
        assert_eq!(table.broken_promises().count(), 0);
    }
}

#[test]
fn a_real_answer_passes_with_the_clamp_off() {
    for (version, answer) in ANSWERS {
        assert_eq!(clamp(answer, version, Clamp::Off).unwrap().frame, None);
    }
}

#[test]
fn real_answers_with_an_error_pass() {
    let unsupported = captured!("4.4.0-v6-unsupported");
    let wrong_cluster = captured!("4.4.0-v5-wrong-cluster");
    for (version, answer, error) in [(6, unsupported, 35), (5, wrong_cluster, 129)] {
        let error = ErrorCode(error);
        assert_eq!(
            clamp(answer, version, Clamp::Encode),
            Ok(Clamped {
                table: None,
                error,
                frame: None
            }),
        );
    }
}
