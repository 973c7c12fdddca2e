//! The version table: what broker and klamp have in common, key by key, and what is told of the rest.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use kafka_protocol::messages::ApiKey as Schema;
use klamp_codec::session::Clamp;
use klamp_codec::versions::{
    Fate, Feature, FinalizedFeatures, Hidden, NoUsableVersion, Offer, TableStore, VersionTable,
};
use klamp_codec::{ApiKey, ErrorCode, VersionRange, ours};
use std::sync::Arc;

const INIT_PRODUCER_ID: ApiKey = ApiKey(22);
const STREAMS_GROUP_HEARTBEAT: ApiKey = ApiKey(88);

fn range(min: i16, max: i16) -> VersionRange {
    VersionRange::new(min, max).unwrap()
}

fn table_with(
    rows: &[(i16, i16, i16)],
    finalized: FinalizedFeatures,
    clamp: Clamp,
) -> VersionTable {
    let offers = rows
        .iter()
        .map(|&(key, min, max)| (ApiKey(key), Offer { min, max }));
    VersionTable::new(offers, finalized, clamp)
}

fn table(rows: &[(i16, i16, i16)]) -> VersionTable {
    table_with(rows, FinalizedFeatures::default(), Clamp::Encode)
}

fn finalized(features: &[(&str, i16)]) -> FinalizedFeatures {
    let mut finalized = FinalizedFeatures::default();
    for &(name, level) in features {
        finalized.note(Feature::named(name.as_bytes()).unwrap(), level);
    }
    finalized
}

#[test]
fn ours_covers_every_key_that_kafka_protocol_has() {
    let keys: Vec<i16> = Schema::iter().map(|key| key as i16).collect();
    assert!(keys.len() > 80, "{keys:?}");
    for key in i16::MIN..=i16::MAX {
        assert_eq!(ours(ApiKey(key)).is_some(), keys.contains(&key), "{key}");
    }
}

#[test]
fn ours_is_what_request_and_response_have_in_common() {
    // Of these three the response has a version more than the request.
    assert_eq!(ours(ApiKey(8)), Some(range(2, 9)));
    assert_eq!(ours(ApiKey(9)), Some(range(1, 9)));
    assert_eq!(ours(INIT_PRODUCER_ID), Some(range(0, 5)));
    assert_eq!(ours(ApiKey::PRODUCE), Some(range(3, 13)));
    for key in Schema::iter() {
        let ours = ours(ApiKey(key as i16)).unwrap();
        let widest = key.valid_versions();
        assert!(
            widest.min <= ours.min() && ours.max() <= widest.max,
            "{key:?}"
        );
    }
}

#[test]
fn names_are_spelled_as_kafka_spells_them() {
    let codes = [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (0, "NONE"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (17, "INVALID_TOPIC_EXCEPTION"),
        (33, "UNSUPPORTED_SASL_MECHANISM"),
        (35, "UNSUPPORTED_VERSION"),
        (49, "INVALID_PRODUCER_ID_MAPPING"),
        (53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        (56, "KAFKA_STORAGE_ERROR"),
        (69, "GROUP_ID_NOT_FOUND"),
        (100, "UNKNOWN_TOPIC_ID"),
        (129, "REBOOTSTRAP_REQUIRED"),
        (133, "SHARE_SESSION_LIMIT_REACHED"),
    ];
    for (code, name) in codes {
        assert_eq!(ErrorCode(code).name(), Some(name));
        assert_eq!(ErrorCode(code).to_string(), name);
    }
    assert_eq!(ApiKey(18).to_string(), "ApiVersions");
    assert_eq!(ApiKey(23).name(), Some("OffsetForLeaderEpoch"));
    assert_eq!(
        format!("{:>8}|{:<6}|", ApiKey(1), ApiKey(188)),
        "   Fetch|188   |"
    );
}

#[test]
fn what_has_no_name_keeps_its_number() {
    for code in [i16::MIN, -2, 250, 137, i16::MAX] {
        assert_eq!(ErrorCode(code).name(), None);
        assert_eq!(ErrorCode(code).to_string(), format!("UNNAMED_{code}"));
    }
    for key in [i16::MIN, -1, 10_000, i16::MAX] {
        assert_eq!(ApiKey(key).name(), None);
        assert_eq!(ApiKey(key).to_string(), key.to_string());
    }
}

#[test]
fn what_is_newer_than_all_layouts_is_lowered_and_hidden_where_klamp_inspects() {
    let rows = [(1, 4, 99), (88, 0, 9), (200, 0, 1), (4, 0, 7)];
    let offers = rows.map(|(key, min, max)| (ApiKey(key), Offer { min, max }));
    let none = FinalizedFeatures::default();
    let table = VersionTable::new(offers, none, Clamp::Inspect);
    let fate = |key| table.row(ApiKey(key)).unwrap().fate;
    assert_eq!(fate(1), Fate::Lowered { to: 18 });
    assert_eq!(fate(88), Fate::Lowered { to: 1 });
    assert_eq!(fate(200), Fate::Hidden(Hidden::NoSchema));
    assert_eq!(fate(4), Fate::Kept);
    // What klamp itself would send still takes a schema.
    assert!(!table.supports(ApiKey(88), 0) && table.supports(ApiKey(1), 18));
    assert!(table.negotiate(ApiKey(88)).is_err());
    let missing = table.not_offered().find(|(key, _)| *key == ApiKey(89));
    assert_eq!(missing, Some((ApiKey(89), range(0, 1))));
}

#[test]
fn all_that_has_a_name_can_be_listed() {
    let listed: Vec<i16> = ErrorCode::named().map(|code| code.0).collect();
    let named: Vec<i16> = (i16::MIN..=i16::MAX)
        .filter(|&code| ErrorCode(code).name().is_some())
        .collect();
    assert_eq!(listed, named);
    assert!(
        listed.len() >= 135 && listed.starts_with(&[-1, 0, 1]),
        "{listed:?}"
    );

    let listed: Vec<i16> = ApiKey::named().map(|key| key.0).collect();
    let named: Vec<i16> = (i16::MIN..=i16::MAX)
        .filter(|&key| ApiKey(key).name().is_some())
        .collect();
    assert_eq!(listed, named);
}

#[test]
fn negotiation_takes_the_highest_version_that_both_have() {
    let table = table(&[(1, 4, 18), (22, 0, 6), (3, 0, 2)]);
    assert_eq!(table.negotiate(ApiKey::FETCH), Ok(18));
    assert_eq!(table.negotiate(ApiKey::METADATA), Ok(2));
    assert_eq!(table.negotiate(INIT_PRODUCER_ID), Ok(5));
    assert!(table.supports(INIT_PRODUCER_ID, 5));
    assert!(
        !table.supports(INIT_PRODUCER_ID, 6),
        "our request has no version 6"
    );
    assert!(!table.supports(ApiKey::FETCH, 3));
    assert!(!table.supports(ApiKey::PRODUCE, 3), "not offered");
}

#[test]
fn negotiation_for_given_types_takes_what_all_three_have() {
    let table = table(&[(1, 4, 18), (88, 0, 1)]);
    let fetch = |request, response| table.negotiate_with(ApiKey::FETCH, request, response);
    assert_eq!(fetch(range(0, 12), range(4, 20)), Ok(12));
    assert_eq!(fetch(range(0, 20), range(0, 20)), Ok(18));
    assert_eq!(fetch(range(0, 5), range(6, 7)).unwrap_err().ours, None);
    assert_eq!(
        fetch(range(0, 3), range(0, 3)).unwrap_err().to_string(),
        "no usable version of Fetch: broker offers Some(4..=18), we speak Some(0..=3)",
    );
    let streams = table.negotiate_with(STREAMS_GROUP_HEARTBEAT, range(0, 0), range(0, 0));
    assert_eq!(streams, Ok(0));
}

#[test]
fn where_no_version_is_usable_the_error_tells_both_ranges() {
    let table = table(&[(9999, 0, 1), (1, 20, 30), (3, 5, 2)]);
    let told = |key| table.negotiate(ApiKey(key)).unwrap_err().to_string();
    assert_eq!(
        told(9999),
        "no usable version of 9999: broker offers Some(0..=1), we speak None"
    );
    assert_eq!(
        told(1),
        "no usable version of Fetch: broker offers Some(20..=30), we speak Some(4..=18)",
    );
    assert_eq!(
        told(0),
        "no usable version of Produce: broker offers None, we speak Some(3..=13)"
    );
    assert_eq!(
        told(3),
        "no usable version of Metadata: broker offers None, we speak Some(0..=13)"
    );
    assert_eq!(
        told(9998),
        "no usable version of 9998: broker offers None, we speak None"
    );
    assert_eq!(
        table.negotiate(ApiKey(9999)),
        Err(NoUsableVersion {
            api_key: ApiKey(9999),
            broker: Some(range(0, 1)),
            ours: None,
        }),
    );
}

#[test]
fn rows_that_make_no_sense_are_kept_as_the_broker_wrote_them() {
    let table = table(&[
        (3, 5, 2),
        (-7, i16::MAX, i16::MIN),
        (i16::MAX, i16::MIN, i16::MAX),
        (0, -5, -1),
    ]);
    let told: Vec<String> = table
        .entries()
        .iter()
        .map(|row| format!("{} {}", row.api_key, row.broker))
        .collect();
    assert_eq!(
        told,
        [
            "-7 32767..=-32768",
            "Produce -5..=-1",
            "Metadata 5..=2",
            "32767 -32768..=32767"
        ],
    );
    for row in table.entries() {
        assert_eq!(row.negotiated(), None);
        assert_eq!(row.shown(), None);
        assert!(!table.supports(row.api_key, row.broker.max));
    }
}

#[test]
fn of_a_key_listed_twice_the_last_row_counts() {
    let table = table(&[(1, 0, 3), (3, 0, 2), (1, 4, 11)]);
    assert_eq!(table.entries().len(), 2);
    assert_eq!(
        table.row(ApiKey::FETCH).unwrap().broker,
        Offer { min: 4, max: 11 }
    );
}

#[test]
fn a_broker_is_ahead_where_its_maximum_is_above_ours_or_we_have_no_schema() {
    let table = table(&[
        (88, 0, 1),
        (22, 0, 6),
        (1, 4, 18),
        (3, 0, 2),
        (10_000, 3, 3),
        (2, 9, 1),
    ]);
    let ahead: Vec<(i16, u16)> = table
        .broker_ahead()
        .map(|row| (row.api_key.0, row.versions_ahead()))
        .collect();
    assert_eq!(ahead, [(22, 1), (88, 2), (10_000, 1)]);
}

#[test]
fn keys_of_ours_that_the_broker_lacks_are_told_with_our_range() {
    let everything: Vec<(i16, i16, i16)> = ApiKey::named()
        .filter(|key| *key != ApiKey::FETCH)
        .map(|key| (key.0, 0, 99))
        .collect();
    let missing: Vec<_> = table(&everything).not_offered().collect();
    assert_eq!(missing, [(ApiKey::FETCH, range(4, 18))]);
    assert_eq!(table(&[]).not_offered().count(), Schema::iter().count());
}

#[test]
fn a_row_is_hidden_for_want_of_a_schema_or_of_a_common_version() {
    let table = table(&[(88, 0, 1), (1, 20, 30), (22, 0, 6), (3, 0, 2)]);
    let fate = |key| table.row(ApiKey(key)).unwrap().fate;
    assert_eq!(fate(88), Fate::Hidden(Hidden::NoSchema));
    assert_eq!(fate(1), Fate::Hidden(Hidden::NoOverlap));
    assert_eq!(fate(22), Fate::Lowered { to: 5 });
    assert_eq!(fate(3), Fate::Kept);
    let shown = table.row(INIT_PRODUCER_ID).unwrap().shown();
    assert_eq!(shown, Some(Offer { min: 0, max: 5 }));
}

#[test]
fn a_hidden_key_that_a_finalized_feature_promises_is_a_broken_promise() {
    let rows = [
        (0, 0, 13),
        (76, 1, 1),
        (77, 1, 1),
        (78, 1, 2),
        (79, 1, 2),
        (88, 0, 0),
        (89, 0, 0),
    ];
    let unusable = [(76, 5, 5), (77, 5, 5), (78, 5, 5), (79, 5, 5)];
    // what the broker offers, what it has finalized, the policy, the keys that clients miss
    type Case<'a> = (
        &'a [(i16, i16, i16)],
        &'a [(&'a str, i16)],
        Clamp,
        &'a [i16],
    );
    let cases: [Case; 9] = [
        (&rows, &[], Clamp::Encode, &[]),
        (&rows, &[("streams.version", 1)], Clamp::Encode, &[88, 89]),
        (&rows, &[("streams.version", 1)], Clamp::Off, &[]),
        (&rows, &[("streams.version", 0)], Clamp::Encode, &[]),
        (
            &rows,
            &[("streams.version", 7), ("share.version", 1)],
            Clamp::Encode,
            &[88, 89],
        ),
        (
            &unusable,
            &[("share.version", 1)],
            Clamp::Encode,
            &[76, 77, 78, 79],
        ),
        (&unusable, &[("share.version", 0)], Clamp::Encode, &[]),
        // What the broker does not offer, klamp does not hide.
        (
            &rows[..1],
            &[("streams.version", 1), ("share.version", 1)],
            Clamp::Encode,
            &[],
        ),
        (&rows, &[("transaction.version", 2)], Clamp::Encode, &[]),
    ];
    for (rows, features, clamp, expected) in cases {
        let table = table_with(rows, finalized(features), clamp);
        let broken: Vec<i16> = table.broken_promises().map(|it| it.api_key.0).collect();
        assert_eq!(broken, expected, "{features:?} under {clamp:?}");
        for promise in table.broken_promises() {
            let name = promise.finalized.feature.name();
            assert!(features.contains(&(name, promise.finalized.level)));
        }
    }
}

#[test]
fn the_highest_level_of_a_feature_told_twice_counts() {
    let mut features = finalized(&[("streams.version", 1), ("streams.version", 0)]);
    features.note(Feature::TransactionVersion, -1);
    let told: Vec<_> = features
        .iter()
        .map(|it| (it.feature.name(), it.level))
        .collect();
    assert_eq!(told, [("transaction.version", -1), ("streams.version", 1)]);
    assert_eq!(Feature::named(b"metadata.version"), None);
    assert_eq!(Feature::named(b"share.versions"), None);
}

#[test]
fn tables_that_say_the_same_in_another_order_are_equal() {
    let features = finalized(&[("transaction.version", 2)]);
    let rows = [(0, 0, 13), (1, 4, 18), (88, 0, 1)];
    let mut reversed = rows;
    reversed.reverse();
    let first = table_with(&rows, features, Clamp::Encode);
    assert_eq!(first, table_with(&reversed, features, Clamp::Encode));
    assert_ne!(first, table(&rows), "other features");
    assert_ne!(
        first,
        table_with(&rows, features, Clamp::Off),
        "other fates"
    );
    assert_ne!(
        first,
        table_with(&rows[1..], features, Clamp::Encode),
        "other rows"
    );
}

#[test]
fn equal_tables_are_stored_once_and_forgotten_with_their_last_user() {
    let store = TableStore::default();
    let one = store.intern(table(&[(1, 0, 3)])).unwrap();
    let same = store.intern(table(&[(1, 0, 3)])).unwrap();
    let other = store.intern(table(&[(1, 0, 4)])).unwrap();
    assert!(Arc::ptr_eq(&one, &same));
    assert!(!Arc::ptr_eq(&one, &other));
    assert_eq!(store.in_use().len(), 2);
    drop(one);
    assert_eq!(
        store.in_use().len(),
        2,
        "still in use by the other connection"
    );
    drop(same);
    assert_eq!(store.in_use(), std::slice::from_ref(&other));
    drop(other);
    let again = store.intern(table(&[(1, 0, 3)])).unwrap();
    assert_eq!(store.in_use(), [again]);
}

#[test]
fn a_store_shared_by_threads_keeps_one_of_each_table() {
    let store = TableStore::default();
    let kept: Vec<Arc<VersionTable>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let tables =
                        (0..200_i16).map(|max| store.intern(table(&[(1, 0, max)])).unwrap());
                    tables.collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    assert_eq!(kept.len(), 800);
    assert_eq!(store.in_use().len(), 200);
}
