//! Frames of real messages, by `kafka-protocol`'s encoders: an authority of its own on the wire format.

use super::raw::framed;
use kafka_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, BrokerId, FetchRequest, FetchResponse,
    MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse, RequestHeader,
    ResponseHeader, SaslHandshakeRequest, SaslHandshakeResponse, TopicName, TransactionalId,
};
use kafka_protocol::protocol::{Encodable, HeaderVersion, Request, StrBytes};

/// Rows (key, min, max) of a broker that is ahead of `kafka-protocol`, has keys without a schema, and
/// one row where nothing overlaps; not sorted.
pub const OFFERED: &[(i16, i16, i16)] = &[
    (18, 0, 5),
    (88, 0, 1),
    (0, 0, 14),
    (1, 4, 19),
    (19, 200, 201),
    (3, 0, 13),
    (10_000, 0, 2),
];

/// The same rows as a client may see them when nobody is to speak what `kafka-protocol` cannot encode.
pub const CLAMPED: &[(i16, i16, i16)] = &[(18, 0, 4), (0, 0, 13), (1, 4, 18), (3, 0, 13)];

/// A request's frame.
pub fn request<R: Request>(
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    body: &R,
) -> Vec<u8> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(client_id.map(text));
    encoded(&header, R::header_version(version), body, version)
}

/// A response's frame.
pub fn response<R: Request>(version: i16, correlation_id: i32, body: &R::Response) -> Vec<u8> {
    let header = ResponseHeader::default().with_correlation_id(correlation_id);
    encoded(&header, R::Response::header_version(version), body, version)
}

/// A string of the encoders'.
pub fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

/// ApiVersions v0 to v4: the request.
pub fn api_versions(version: i16, correlation_id: i32) -> Vec<u8> {
    let mut body = ApiVersionsRequest::default();
    if version >= 3 {
        body = body
            .with_client_software_name(text("tests"))
            .with_client_software_version(text("1.0"));
    }
    request(version, correlation_id, Some("c"), &body)
}

/// ApiVersions v0 to v5 (whose answer has the fields of v4): a response with these rows (key, min, max),
/// and in v3+ with features and a tagged field that nobody knows.
pub fn versions_told(
    version: i16,
    correlation_id: i32,
    error: i16,
    rows: &[(i16, i16, i16)],
) -> Vec<u8> {
    let rows = rows
        .iter()
        .map(|(key, min, max)| {
            ApiVersion::default()
                .with_api_key(*key)
                .with_min_version(*min)
                .with_max_version(*max)
        })
        .collect();
    let mut body = ApiVersionsResponse::default()
        .with_error_code(error)
        .with_api_keys(rows);
    if version >= 1 {
        body = body.with_throttle_time_ms(250);
    }
    if version >= 3 {
        body = body
            .with_supported_features(vec![
                SupportedFeatureKey::default()
                    .with_name(text("metadata.version"))
                    .with_min_version(1)
                    .with_max_version(29),
            ])
            .with_finalized_features_epoch(77)
            .with_finalized_features(vec![
                FinalizedFeatureKey::default()
                    .with_name(text("metadata.version"))
                    .with_max_version_level(29)
                    .with_min_version_level(29),
            ])
            .with_unknown_tagged_fields([(9, b"unheard of".as_slice().into())].into());
    }
    response::<ApiVersionsRequest>(version.min(4), correlation_id, &body)
}

/// Metadata: a request for all topics.
pub fn metadata(version: i16, correlation_id: i32) -> Vec<u8> {
    let topics = (version == 0).then(Vec::new);
    request(
        version,
        correlation_id,
        Some("c"),
        &MetadataRequest::default().with_topics(topics),
    )
}

/// Metadata: one broker; a topic for each list of partition errors.
pub fn metadata_told(version: i16, correlation_id: i32, topics: &[&[i16]]) -> Vec<u8> {
    let brokers = vec![
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(1))
            .with_host(text("broker-1.example.com"))
            .with_port(9092),
    ];
    let topics = topics
        .iter()
        .enumerate()
        .map(|(n, errors)| {
            let partitions = errors
                .iter()
                .zip(0..)
                .map(|(error, index)| {
                    MetadataResponsePartition::default()
                        .with_error_code(*error)
                        .with_partition_index(index)
                        .with_leader_id(BrokerId(1))
                        .with_replica_nodes(vec![BrokerId(1)])
                        .with_isr_nodes(vec![BrokerId(1)])
                })
                .collect();
            MetadataResponseTopic::default()
                .with_name(Some(topic(&format!("t{n}"))))
                .with_partitions(partitions)
        })
        .collect();
    let body = MetadataResponse::default()
        .with_brokers(brokers)
        .with_topics(topics);
    response::<MetadataRequest>(version, correlation_id, &body)
}

/// Fetch v4 to v18: a request that waits for at most `max_wait_ms`.
pub fn fetch(version: i16, correlation_id: i32, max_wait_ms: i32) -> Vec<u8> {
    let mut of = FetchTopic::default().with_partitions(vec![
        FetchPartition::default().with_partition_max_bytes(1 << 20),
    ]);
    if version < 13 {
        of = of.with_topic(topic("t"));
    }
    let body = FetchRequest::default()
        .with_max_wait_ms(max_wait_ms)
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_topics(vec![of]);
    request(version, correlation_id, Some("c"), &body)
}

/// Fetch v4 to v18: a request without topics, by a broker that replicates.
pub fn replica_fetch(version: i16, correlation_id: i32, replica_id: i32) -> Vec<u8> {
    let replica = BrokerId(replica_id);
    let body = match version {
        0..=14 => FetchRequest::default().with_replica_id(replica),
        _ => FetchRequest::default()
            .with_replica_state(ReplicaState::default().with_replica_id(replica)),
    };
    request(version, correlation_id, Some("c"), &body)
}

/// Fetch v4 to v18: an answer of one topic; for each partition its error and a record set of so many bytes.
pub fn fetched(version: i16, correlation_id: i32, partitions: &[(i16, usize)]) -> Vec<u8> {
    let partitions = partitions
        .iter()
        .zip(0..)
        .map(|((error, bytes), index)| {
            PartitionData::default()
                .with_partition_index(index)
                .with_error_code(*error)
                .with_high_watermark(42)
                .with_records(Some(records(*bytes).into()))
        })
        .collect();
    let mut of = FetchableTopicResponse::default().with_partitions(partitions);
    if version < 13 {
        of = of.with_topic(topic("t"));
    }
    let body = FetchResponse::default()
        .with_throttle_time_ms(3)
        .with_responses(vec![of]);
    response::<FetchRequest>(version, correlation_id, &body)
}

/// A Produce request, v3 to v13.
#[derive(Clone, Debug)]
pub struct Produce<'a> {
    pub version: i16,
    pub correlation_id: i32,
    pub transactional_id: Option<&'a str>,
    pub acks: i16,
    pub topics: &'a [&'a str],
    pub bytes: usize,
}

impl Produce<'_> {
    /// A plain one.
    pub fn plain(version: i16, correlation_id: i32, acks: i16) -> Self {
        Self {
            version,
            correlation_id,
            transactional_id: None,
            acks,
            topics: &["t"],
            bytes: 40,
        }
    }

    /// Its frame.
    pub fn frame(&self) -> Vec<u8> {
        let topics = self
            .topics
            .iter()
            .map(|name| {
                let of = TopicProduceData::default().with_partition_data(vec![
                    PartitionProduceData::default()
                        .with_index(0)
                        .with_records(Some(records(self.bytes).into())),
                ]);
                if self.version < 13 {
                    of.with_name(topic(name))
                } else {
                    of
                }
            })
            .collect();
        let body = ProduceRequest::default()
            .with_transactional_id(self.transactional_id.map(|id| TransactionalId(text(id))))
            .with_acks(self.acks)
            .with_timeout_ms(1500)
            .with_topic_data(topics);
        request(self.version, self.correlation_id, Some("producer"), &body)
    }
}

/// Produce v3 to v13: an answer of one topic with these errors, one a partition.
pub fn produced(version: i16, correlation_id: i32, errors: &[i16]) -> Vec<u8> {
    let partitions = errors
        .iter()
        .zip(0..)
        .map(|(error, index)| {
            PartitionProduceResponse::default()
                .with_index(index)
                .with_error_code(*error)
        })
        .collect();
    let mut of = TopicProduceResponse::default().with_partition_responses(partitions);
    if version < 13 {
        of = of.with_name(topic("t"));
    }
    response::<ProduceRequest>(
        version,
        correlation_id,
        &ProduceResponse::default().with_responses(vec![of]),
    )
}

/// The (error code, count) pairs in [`fetched`]'s answer, sorted: from v7 one more stands at the top.
pub fn fetched_errors(version: i16, partitions: &[(i16, usize)]) -> Vec<(i16, u32)> {
    let top: &[i16] = if version >= 7 { &[0] } else { &[] };
    tally(partitions.iter().map(|(error, _)| error).chain(top))
}

/// The (error code, count) pairs in [`metadata_told`]'s answer, sorted: one a topic, one a partition, and
/// from v13 one more at the top.
pub fn metadata_errors(version: i16, topics: &[&[i16]]) -> Vec<(i16, u32)> {
    let top: &[i16] = if version >= 13 { &[0] } else { &[] };
    tally(
        topics
            .iter()
            .flat_map(|errors| errors.iter().chain(&[0]))
            .chain(top),
    )
}

/// How often each code stands there, ascending by code.
pub fn tally<'a>(codes: impl Iterator<Item = &'a i16>) -> Vec<(i16, u32)> {
    let mut counts = std::collections::BTreeMap::new();
    for code in codes {
        *counts.entry(*code).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// SaslHandshake v0 or v1: the request.
pub fn handshake(version: i16, correlation_id: i32, mechanism: &str) -> Vec<u8> {
    let body = SaslHandshakeRequest::default().with_mechanism(text(mechanism));
    request(version, correlation_id, Some("c"), &body)
}

/// SaslHandshake v0 or v1: the response.
pub fn shaken(version: i16, correlation_id: i32, error: i16, mechanisms: &[&str]) -> Vec<u8> {
    let body = SaslHandshakeResponse::default()
        .with_error_code(error)
        .with_mechanisms(mechanisms.iter().map(|name| text(name)).collect());
    response::<SaslHandshakeRequest>(version, correlation_id, &body)
}

/// Bytes that stand where records do; their content must not matter, so it looks like lengths and tags.
pub fn records(len: usize) -> Vec<u8> {
    (0..len)
        .map(|n| [0, 0, 0, 35, 0xff, 0x7f, 18, 0][n % 8])
        .collect()
}

fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

fn encoded(
    header: &impl Encodable,
    header_version: i16,
    body: &impl Encodable,
    version: i16,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    header
        .encode(&mut bytes, header_version)
        .expect("a header encodes");
    body.encode(&mut bytes, version)
        .unwrap_or_else(|error| panic!("version {version}: {error}"));
    framed(&bytes)
}
