//! Names: all that `kafka-protocol` knows are spelled as Kafka does, and some more are known.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiKey as Schema;
use klamp_codec::{ApiKey, ErrorCode};

/// `NotLeaderOrFollower` to `NOT_LEADER_OR_FOLLOWER`.
fn kafka_spelling(variant: &str) -> String {
    let mut name = String::new();
    for letter in variant.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[test]
fn every_code_of_kafka_protocols_has_the_same_name_here() {
    let mut compared = 0;
    for code in i16::MIN..=i16::MAX {
        let known = match ResponseError::try_from_code(code) {
            None => "NONE".to_owned(),
            Some(ResponseError::Unknown(_)) => continue,
            Some(error) => kafka_spelling(&format!("{error:?}")),
        };
        assert_eq!(ErrorCode(code).name(), Some(known.as_str()));
        assert!(!ErrorCode(code).is_beyond_kafka_protocol());
        compared += 1;
    }
    assert_eq!(compared, 135);
}

#[test]
fn a_code_is_found_by_its_name_or_one_that_it_had_before() {
    for code in ErrorCode::named() {
        let name = code.to_string();
        assert_eq!(ErrorCode::of_name(&name), Some(code));
        assert_eq!(ErrorCode::of_name(&name.to_lowercase()), Some(code));
    }
    for (name, code) in [
        ("UNKNOWN", -1),
        ("NOT_LEADER_FOR_PARTITION", 6),
        ("GROUP_LOAD_IN_PROGRESS", 14),
        ("GROUP_COORDINATOR_NOT_AVAILABLE", 15),
        ("not_coordinator_for_group", 16),
    ] {
        assert_eq!(ErrorCode::of_name(name), Some(ErrorCode(code)));
    }
    for name in ["", "UNNAMED_250", "6", "NOT_LEADER"] {
        assert_eq!(ErrorCode::of_name(name), None);
    }
}

#[test]
fn every_key_of_kafka_protocols_has_the_same_name_here() {
    for key in Schema::iter() {
        let here = ApiKey(key as i16);
        assert_eq!(here.name(), Some(format!("{key:?}").as_str()));
        assert!(!here.is_beyond_kafka_protocol());
    }
}

#[test]
fn what_is_newer_than_kafka_protocol_or_gone_from_it_has_its_name_and_is_marked() {
    let codes = [
        (134, "GROUP_DELETION_FAILED"),
        (135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"),
        (136, "CONTROLLER_ID_NOT_REGISTERED"),
    ];
    for (code, name) in codes {
        assert_eq!(ErrorCode(code).to_string(), name);
        assert!(ErrorCode(code).is_beyond_kafka_protocol());
    }
    let keys = [
        (4, "LeaderAndIsr"),
        (5, "StopReplica"),
        (6, "UpdateMetadata"),
        (7, "ControlledShutdown"),
        (88, "StreamsGroupHeartbeat"),
        (89, "StreamsGroupDescribe"),
        (93, "StreamsGroupTopologyDescriptionUpdate"),
        (94, "UnregisterController"),
    ];
    for (key, name) in keys {
        assert_eq!(ApiKey(key).to_string(), name);
        assert!(ApiKey(key).is_beyond_kafka_protocol());
    }
    assert_eq!(ApiKey::named().count(), Schema::iter().count() + keys.len());
}

#[test]
fn what_nobody_names_is_beyond_kafka_protocol_too() {
    assert!(ErrorCode(250).is_beyond_kafka_protocol());
    assert!(ApiKey(9999).is_beyond_kafka_protocol());
}
