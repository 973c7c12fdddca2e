//! Frames that klamp composes itself, read by kafka-protocol.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, RequestHeader};
use kafka_protocol::protocol::Decodable;
use klamp_codec::clamp::clamp;
use klamp_codec::local::{ask_api_versions, unsupported_api_versions};
use klamp_codec::session::Clamp;
use klamp_codec::versions::{FinalizedFeatures, Offer, VersionTable};
use klamp_codec::{ApiKey, CorrelationId, ErrorCode};

fn table(key: i16, min: i16, max: i16) -> VersionTable {
    let row = (ApiKey(key), Offer { min, max });
    VersionTable::new([row], FinalizedFeatures::default(), Clamp::Off)
}

#[test]
fn the_answer_to_an_unknown_version_tells_error_35_and_which_versions_are_read() {
    for id in [0, 7, -1, i32::MIN] {
        let frame = unsupported_api_versions(CorrelationId(id));
        assert_eq!(frame[..4], (frame.len() as u32 - 4).to_be_bytes());
        assert_eq!(frame[4..8], id.to_be_bytes());
        let mut body = &frame[8..];
        let answer = ApiVersionsResponse::decode(&mut body, 0).unwrap();
        assert!(body.is_empty());
        assert_eq!(answer.error_code, 35);
        let rows: Vec<_> = answer
            .api_keys
            .iter()
            .map(|row| (row.api_key, row.min_version, row.max_version))
            .collect();
        assert_eq!(rows, [(18, 0, 5)]);
        let clamped = clamp(&frame, 127, Clamp::Encode).unwrap();
        assert_eq!(clamped.error, ErrorCode::UNSUPPORTED_VERSION);
    }
}

#[test]
fn a_broker_is_asked_with_version_0_first_and_then_with_the_highest_of_both() {
    let newest = table(18, 0, 99);
    let questions = [
        (None, 0),
        (Some(table(18, 0, 2)), 2),
        (Some(table(18, 0, 3)), 3),
        (Some(newest), 4),
    ];
    for (table, version) in questions {
        let question = ask_api_versions(table.as_ref(), CorrelationId(7)).unwrap();
        assert_eq!(question.version, version);
        let frame = question.frame;
        assert_eq!(frame[..4], (frame.len() as u32 - 4).to_be_bytes());

        let mut rest = &frame[4..];
        let header = if version >= 3 { 2 } else { 1 };
        let header = RequestHeader::decode(&mut rest, header).unwrap();
        assert_eq!(header.request_api_key, 18);
        assert_eq!(header.request_api_version, version);
        assert_eq!(header.correlation_id, 7);
        assert_eq!(header.client_id.as_deref(), Some("klamp"));
        let request = ApiVersionsRequest::decode(&mut rest, version).unwrap();
        assert!(rest.is_empty());
        if version >= 3 {
            assert_eq!(&*request.client_software_name, "klamp");
            assert_eq!(&*request.client_software_version, env!("CARGO_PKG_VERSION"));
        }
    }
}

#[test]
fn a_broker_with_which_no_version_is_shared_is_not_asked_again() {
    let told = |table| {
        ask_api_versions(Some(&table), CorrelationId(7))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        told(table(18, 9, 12)),
        "no usable version of ApiVersions: broker offers Some(9..=12), we speak Some(0..=4)",
    );
    assert_eq!(
        told(table(1, 4, 18)),
        "no usable version of ApiVersions: broker offers None, we speak Some(0..=4)",
    );
}
