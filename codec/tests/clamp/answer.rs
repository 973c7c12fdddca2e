//! ApiVersions answers to feed to the clamp: built by kafka-protocol's encoder where it can, by hand
//! where the wire allows more than that encoder writes.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::protocol::{Encodable, StrBytes};

/// A row: API key, MinVersion, MaxVersion.
pub type Row = (i16, i16, i16);

/// All versions of ApiVersions that klamp reads.
pub const VERSIONS: std::ops::RangeInclusive<i16> = 0..=5;

/// A whole frame around a body: length, correlation id 7, no tagged fields in the header.
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32 + 4).to_be_bytes().to_vec();
    frame.extend(7_i32.to_be_bytes());
    frame.extend(body);
    frame
}

/// An answer that says all that a version can say: rows, throttle time, every known tagged field and
/// two unknown ones.
pub fn answer(version: i16, rows: &[Row], features: &[(&str, i16)]) -> Vec<u8> {
    let mut response = ApiVersionsResponse::default()
        .with_api_keys(rows.iter().map(|&row| api_version(row)).collect());
    if version >= 1 {
        response.throttle_time_ms = 1234;
    }
    if version >= 3 {
        response.supported_features = features
            .iter()
            .map(|&(name, level)| {
                SupportedFeatureKey::default()
                    .with_name(StrBytes::from_string(name.to_owned()))
                    .with_min_version(1)
                    .with_max_version(level)
            })
            .collect();
        response.finalized_features_epoch = 42;
        response.finalized_features = features
            .iter()
            .map(|&(name, level)| {
                FinalizedFeatureKey::default()
                    .with_name(StrBytes::from_string(name.to_owned()))
                    .with_min_version_level(1)
                    .with_max_version_level(level)
            })
            .collect();
        response.zk_migration_ready = true;
        response = response
            .with_unknown_tagged_field(4, Bytes::from_static(b"of the future"))
            .with_unknown_tagged_field(300, Bytes::new());
    }
    let mut body = BytesMut::new();
    // Version 5 has the fields of version 4 (KIP-1242).
    response.encode(&mut body, version.min(4)).unwrap();
    frame(&body)
}

fn api_version((key, min, max): Row) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(key)
        .with_min_version(min)
        .with_max_version(max)
}

/// A version 3 body by hand: rows with the given tagged fields, throttle time, and `tags` (their
/// number and content) at the end.
pub fn flexible(rows: &[(Row, &[u8])], tags: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0];
    body.extend(varint(rows.len() as u32 + 1));
    for ((key, min, max), tags) in rows {
        for field in [key, min, max] {
            body.extend(field.to_be_bytes());
        }
        body.extend(*tags);
    }
    body.extend([0, 0, 0, 9]);
    body.extend(tags);
    frame(&body)
}

/// A finalized feature list as the content of tag 2.
pub fn finalized_tag(features: &[(&str, i16)]) -> Vec<u8> {
    let mut content = varint(features.len() as u32 + 1);
    for (name, level) in features {
        content.extend(varint(name.len() as u32 + 1));
        content.extend(name.as_bytes());
        content.extend(level.to_be_bytes());
        content.extend([0, 0, 0]);
    }
    let mut tag = vec![2];
    tag.extend(varint(content.len() as u32));
    tag.extend(content);
    tag
}

fn varint(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
