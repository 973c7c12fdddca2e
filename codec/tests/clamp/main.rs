//! The clamp: what a broker's ApiVersions answer becomes on its way to the client.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod answer;
mod captured;
mod hostile;

use answer::{Row, VERSIONS, answer, finalized_tag, flexible, frame};
use klamp_codec::clamp::{Clamped, clamp};
use klamp_codec::session::Clamp;
use klamp_codec::versions::{Fate, Feature, Hidden, Offer, VersionTable};
use klamp_codec::{ApiKey, ErrorCode, ours};
use std::collections::BTreeMap;

const FEATURES: [(&str, i16); 3] = [
    ("metadata.version", 29),
    ("streams.version", 1),
    ("transaction.version", 2),
];

/// A broker newer than us: in no order, rows ahead, rows that nobody knows, rows that make no sense.
fn newer_broker() -> Vec<Row> {
    let mut rows: Vec<Row> = ApiKey::named()
        .filter_map(|key| Some((key.0, 0, ours(key)?.max() + key.0 % 3)))
        .collect();
    rows.extend([
        (88, 0, 1),
        (89, 0, 1),
        (10_000, 3, 7),
        (-5, 0, 0),
        (i16::MAX, -1, i16::MAX),
    ]);
    rows.extend([(4, 0, 7), (2, 9, 1)]); // ListOffsets a second time
    let half = rows.len() / 2;
    rows.rotate_left(half);
    rows[..half].reverse();
    rows
}

/// The rule, said again in few words.
fn clamped(rows: &[Row]) -> Vec<Row> {
    let shown = |&(key, min, max): &Row| {
        let ours = ours(ApiKey(key))?;
        let lowered = max.min(ours.max());
        (min <= max && min <= ours.max() && max >= ours.min()).then_some((key, min, lowered))
    };
    rows.iter().filter_map(shown).collect()
}

fn rows_of(table: &VersionTable) -> Vec<Row> {
    let row = |row: &klamp_codec::versions::Row| (row.api_key.0, row.broker.min, row.broker.max);
    table.entries().iter().map(row).collect()
}

#[test]
fn in_every_version_only_rows_change_and_all_else_stays() {
    let rows = newer_broker();
    let expected = clamped(&rows);
    assert_ne!(rows, expected);
    for version in VERSIONS {
        let Clamped {
            table,
            error,
            frame,
        } = clamp(&answer(version, &rows, &FEATURES), version, Clamp::Encode).unwrap();
        assert_eq!(error, ErrorCode::NONE);
        assert_eq!(
            frame,
            Some(answer(version, &expected, &FEATURES)),
            "version {version}"
        );

        let table = table.unwrap();
        let told: BTreeMap<i16, Row> = rows.iter().map(|&row| (row.0, row)).collect();
        assert_eq!(rows_of(&table), told.into_values().collect::<Vec<_>>());
        let finalized: Vec<_> = table
            .finalized()
            .iter()
            .map(|it| it.feature.name())
            .collect();
        if version >= 3 {
            assert_eq!(finalized, ["transaction.version", "streams.version"]);
        } else {
            assert!(finalized.is_empty());
        }
    }
}

#[test]
fn an_answer_that_needs_no_change_passes_as_it_is() {
    let rows = [(18, 0, 4), (0, 0, 9), (1, 4, 11)];
    for version in VERSIONS {
        let answer = answer(version, &rows, &FEATURES);
        let clamped = clamp(&answer, version, Clamp::Encode).unwrap();
        assert_eq!(clamped.frame, None);
        let table = clamped.table.unwrap();
        assert!(table.entries().iter().all(|row| row.fate == Fate::Kept));
        assert_eq!(table.entries().len(), rows.len());
    }
}

#[test]
fn with_the_clamp_off_the_answer_passes_and_the_table_is_learned() {
    let rows = newer_broker();
    for version in VERSIONS {
        let answer = answer(version, &rows, &FEATURES);
        let Clamped { table, frame, .. } = clamp(&answer, version, Clamp::Off).unwrap();
        assert_eq!(frame, None);
        let table = table.unwrap();
        assert!(table.entries().iter().all(|row| row.fate == Fate::Kept));
        assert!(
            table
                .broker_ahead()
                .any(|row| row.api_key == ApiKey(10_000))
        );
    }
}

#[test]
fn the_table_of_an_old_broker_passes_and_what_it_lacks_is_told() {
    // What 0.10.0 offered, in shape: few rows, low maxima.
    let rows: Vec<Row> = (0..=18)
        .filter(|key| !(4..=7).contains(key))
        .map(|key| (key, 0, ours(ApiKey(key)).unwrap().min().max(1)))
        .collect();
    let clamped = clamp(&answer(0, &rows, &[]), 0, Clamp::Encode).unwrap();
    assert_eq!(clamped.frame, None);
    let table = clamped.table.unwrap();
    assert!(table.not_offered().any(|(key, _)| key == ApiKey(22)));
    assert_eq!(table.broker_ahead().count(), 0);
}

#[test]
fn a_minimum_is_never_raised() {
    let rows = [(0, 0, 13), (1, 0, 99), (8, 0, 99)];
    let expected = [(0, 0, 13), (1, 0, 18), (8, 0, 9)];
    let clamped = clamp(&answer(4, &rows, &[]), 4, Clamp::Encode).unwrap();
    assert_eq!(clamped.frame, Some(answer(4, &expected, &[])));
}

#[test]
fn an_answer_with_an_error_passes_and_leaves_no_table() {
    for (version, code) in [
        (0, 35),
        (3, 35),
        (5, 129),
        (4, 250),
        (127, 35),
        (-1, 35),
        (3, -1),
    ] {
        for rest in [
            &b""[..],
            b"\0\0\0\x01\0\x12\0\0\0\x05",
            b"\x01\0\0\0\0\0",
            b"\xff\xff\xff\xff",
        ] {
            let mut body = i16::to_be_bytes(code).to_vec();
            body.extend(rest);
            for policy in [Clamp::Encode, Clamp::Off] {
                assert_eq!(
                    clamp(&frame(&body), version, policy),
                    Ok(Clamped {
                        table: None,
                        error: ErrorCode(code),
                        frame: None
                    }),
                );
            }
        }
    }
}

#[test]
fn each_row_of_a_key_listed_twice_is_clamped_by_itself() {
    let rows = [(1, 0, 99), (88, 0, 0), (1, 4, 5), (1, 50, 60)];
    let clamped = clamp(&answer(3, &rows, &[]), 3, Clamp::Encode).unwrap();
    assert_eq!(
        clamped.frame,
        Some(answer(3, &[(1, 0, 18), (1, 4, 5)], &[]))
    );
    let table = clamped.table.unwrap();
    let fetch = table.row(ApiKey::FETCH).unwrap();
    assert_eq!(fetch.broker, Offer { min: 50, max: 60 });
    assert_eq!(fetch.fate, Fate::Hidden(Hidden::NoOverlap));
}

#[test]
fn a_count_that_shrinks_may_take_fewer_bytes() {
    for (unknown, known) in [(130, 0), (130, 1), (2, 126), (16_500, 1)] {
        let mut rows: Vec<Row> = (0..unknown).map(|key| (1000 + key, 0, 1)).collect();
        rows.extend((0..known).map(|_| (1, 4, 5)));
        let clamped = clamp(&answer(4, &rows, &FEATURES), 4, Clamp::Encode).unwrap();
        let left = &rows[usize::try_from(unknown).unwrap()..];
        assert_eq!(clamped.frame, Some(answer(4, left, &FEATURES)));
    }
}

#[test]
fn tagged_fields_stay_in_whatever_order_and_form_they_come() {
    let feature = finalized_tag(&[("transaction.version", 2), ("unheard.of", 1)]);
    let mut tags = vec![4];
    tags.extend([9, 3, b'n', b'e', b'w']); // unknown, before the known ones
    tags.extend(&feature);
    tags.extend([1, 8, 0, 0, 0, 0, 0, 0, 0, 5]); // the epoch, after the features: out of order
    tags.extend([0x80 | 44, 0x82, 0x80, 0, 1, b'x']); // tag 300 as a varint longer than need be
    let kept: &[u8] = &[1, 7, 2, b'h', b'i'];
    let rows: [(Row, &[u8]); 4] = [
        ((88, 0, 1), &[1, 7, 2, b'n', b'o']),
        ((22, 0, 6), kept),
        ((1, 4, 18), kept),
        ((89, 0, 1), &[0]),
    ];
    let expected: [(Row, &[u8]); 2] = [((22, 0, 5), kept), ((1, 4, 18), kept)];
    let clamped = clamp(&flexible(&rows, &tags), 3, Clamp::Encode).unwrap();
    assert_eq!(clamped.frame, Some(flexible(&expected, &tags)));
    let table = clamped.table.unwrap();
    let finalized: Vec<_> = table
        .finalized()
        .iter()
        .map(|it| (it.feature, it.level))
        .collect();
    assert_eq!(finalized, [(Feature::TransactionVersion, 2)]);
}

#[test]
fn bytes_behind_the_message_stay() {
    let rows = [(88, 0, 1), (1, 4, 18)];
    for version in VERSIONS {
        let with_trailing_bytes = |rows| {
            let mut body = answer(version, rows, &FEATURES)[8..].to_vec();
            body.extend(b"trailing");
            frame(&body)
        };
        let clamped = clamp(&with_trailing_bytes(&rows), version, Clamp::Encode).unwrap();
        assert_eq!(
            clamped.frame,
            Some(with_trailing_bytes(&rows[1..])),
            "version {version}"
        );
    }
}

#[test]
fn an_answer_without_rows_is_a_table_without_rows() {
    for version in VERSIONS {
        let clamped = clamp(&answer(version, &[], &[]), version, Clamp::Encode).unwrap();
        assert_eq!(clamped.frame, None);
        assert_eq!(clamped.table.unwrap().entries(), []);
    }
}

#[test]
fn all_rows_may_be_hidden() {
    for version in VERSIONS {
        let clamped = clamp(
            &answer(version, &[(88, 0, 1), (99, 0, 1)], &[]),
            version,
            Clamp::Encode,
        );
        assert_eq!(clamped.unwrap().frame, Some(answer(version, &[], &[])));
    }
}
