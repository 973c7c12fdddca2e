//! Versions that `kafka-protocol` does not write: bodies written by Kafka's own Java classes, of
//! kafka-clients 3.9.2 for the versions that 4.0 removed, of 4.4.0 for ApiVersions 5.

use crate::samples::Sample;
use crate::tree::Struct;
use crate::walk::{End, Fact, check_offsets};
use klamp_codec::layout::Role;
use klamp_codec::{ApiKey, Direction};

fn check(direction: Direction, api_key: ApiKey, api_version: i16, hex: &str, facts: &[Fact]) {
    let digits = hex.as_bytes().chunks(2);
    let bytes = digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    let sample = Sample {
        direction,
        api_key,
        api_version,
        flexible: api_version == 5,
        bytes: bytes.collect(),
        said: Struct::default(),
    };
    let walked = sample.walk();
    let told = walked.told.iter().map(|told| told.fact.clone());
    let told = told.collect::<Vec<_>>();
    let is_hot = |fact: &&Fact| match fact {
        Fact::Null(role) => *role != Role::Records,
        Fact::Skipped(..) => false,
        _ => true,
    };
    let wanted = facts.iter().filter(is_hot).cloned().collect::<Vec<_>>();
    assert_eq!(told, wanted, "{api_key:?} {api_version}");
    assert_eq!(walked.end, End::Done(sample.bytes.len()));
    check_offsets(&walked, &sample.bytes, sample.flexible);
}

fn text(role: Role, text: &str) -> Fact {
    Fact::Text(role, text.as_bytes().to_vec())
}

#[test]
fn produce_before_version_3_is_read() {
    let request = "ffff000005dc0000000100066f72646572730000000200000003000000050102030405000000\
                   04ffffffff";
    let topic = "0000000100066f7264657273000000010000000300060000011f71fb04cb";
    let responses = [
        topic.to_owned(),
        format!("{topic}0000004d"),
        format!("{topic}00000000000000630000004d"),
    ];
    for (version, response) in (0..).zip(responses) {
        check(
            Direction::Request,
            ApiKey::PRODUCE,
            version,
            request,
            &[
                Fact::Int(Role::Acks, -1),
                Fact::Int(Role::Wait, 1500),
                text(Role::TopicName, "orders"),
                Fact::Skipped(Role::Records, 5),
                Fact::Null(Role::Records),
            ],
        );
        let mut facts = vec![Fact::Int(Role::ErrorCode, 6)];
        if version >= 1 {
            facts.push(Fact::Int(Role::ThrottleTime, 77));
        }
        check(
            Direction::Response,
            ApiKey::PRODUCE,
            version,
            &response,
            &facts,
        );
    }
}

#[test]
fn fetch_before_version_4_is_read() {
    let topic = "0000000100066f72646572730000000100000003000000000000002a00100000";
    let answer = "0000000100066f726465727300000002000000030001000000000000002b00000005010203040500\
                  00000400fa000000000000002cffffffff";
    for version in 0..=3 {
        let max_bytes = if version == 3 { "000f4240" } else { "" };
        check(
            Direction::Request,
            ApiKey::FETCH,
            version,
            &format!("00000002000001f400000001{max_bytes}{topic}"),
            &[Fact::Int(Role::ReplicaId, 2), Fact::Int(Role::Wait, 500)],
        );
        let throttle = if version >= 1 { "0000004d" } else { "" };
        let mut facts = vec![
            Fact::Int(Role::ErrorCode, 1),
            Fact::Skipped(Role::Records, 5),
            Fact::Int(Role::ErrorCode, 250),
            Fact::Null(Role::Records),
        ];
        if version >= 1 {
            facts.insert(0, Fact::Int(Role::ThrottleTime, 77));
        }
        let hex = format!("{throttle}{answer}");
        check(Direction::Response, ApiKey::FETCH, version, &hex, &facts);
    }
}

#[test]
fn api_versions_5_is_read_with_a_cluster_id_and_without() {
    let names = "126170616368652d6b61666b612d6a61766106342e342e30";
    for cluster_id in ["08636c7573746572", "00"] {
        check(
            Direction::Request,
            ApiKey::API_VERSIONS,
            5,
            &format!("00{names}{cluster_id}0000000700"),
            &[
                text(Role::SoftwareName, "apache-kafka-java"),
                text(Role::SoftwareVersion, "4.4.0"),
            ],
        );
    }
}
