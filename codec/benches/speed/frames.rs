//! The messages that are measured, written by `kafka-protocol`: what follows the header, in whose
//! place stands an empty set of tagged fields where the version has one.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiVersionsResponse, BrokerId, FetchRequest, FetchResponse, MetadataResponse, ProduceRequest,
    ProduceResponse, TopicName,
};
use kafka_protocol::protocol::{Encodable, StrBytes};
use klamp_codec::layout::Root;
use klamp_codec::{ApiKey, Direction};

/// A message without its header's fixed part.
#[derive(Clone)]
pub struct Frame {
    pub name: &'static str,
    pub direction: Direction,
    pub api_key: ApiKey,
    pub api_version: i16,
    /// Bytes of the header before the body: its tagged fields.
    pub head: usize,
    pub bytes: Bytes,
}

impl Frame {
    fn new(
        name: &'static str,
        direction: Direction,
        api_key: ApiKey,
        api_version: i16,
        message: &impl Encodable,
    ) -> Self {
        let head = usize::from(api_key != ApiKey::API_VERSIONS && flexible(api_key, api_version));
        let mut bytes = BytesMut::new();
        bytes.put_bytes(0, head);
        message.encode(&mut bytes, api_version).unwrap();
        Self {
            name,
            direction,
            api_key,
            api_version,
            head,
            bytes: bytes.freeze(),
        }
    }

    pub fn root(&self) -> Root {
        Root::find(self.direction, self.api_key, self.api_version).unwrap()
    }
}

fn flexible(api_key: ApiKey, api_version: i16) -> bool {
    match api_key {
        ApiKey::FETCH => api_version >= 12,
        _ => api_version >= 9,
    }
}

/// All of them, each with how many times faster a walk is wanted to be than a decode.
pub fn all() -> Vec<(Frame, f64)> {
    use Direction::{Request, Response};
    vec![
        (
            Frame::new(
                "Fetch v12 response, 1,000 partitions x 100 B",
                Response,
                ApiKey::FETCH,
                12,
                &fetch_response(1, 1000, 100),
            ),
            6.0,
        ),
        (
            Frame::new(
                "Fetch v11 response, 1,000 partitions x 100 B",
                Response,
                ApiKey::FETCH,
                11,
                &fetch_response(1, 1000, 100),
            ),
            1.0,
        ),
        (
            Frame::new(
                "Fetch v12 response, 1 MiB of records",
                Response,
                ApiKey::FETCH,
                12,
                &fetch_response(1, 1, 1 << 20),
            ),
            4.0,
        ),
        (
            Frame::new(
                "Fetch v12 response, empty",
                Response,
                ApiKey::FETCH,
                12,
                &fetch_response(0, 0, 0),
            ),
            1.0,
        ),
        (
            Frame::new(
                "Fetch v12 request, 100 partitions",
                Request,
                ApiKey::FETCH,
                12,
                &fetch_request(1, 100),
            ),
            1.0,
        ),
        (
            Frame::new(
                "Produce v9 request, 64 KiB of records",
                Request,
                ApiKey::PRODUCE,
                9,
                &produce_request(1, 1, 64 << 10),
            ),
            4.0,
        ),
        (
            Frame::new(
                "Produce v9 request, 200 B of records",
                Request,
                ApiKey::PRODUCE,
                9,
                &produce_request(1, 1, 200),
            ),
            1.0,
        ),
        (
            Frame::new(
                "Produce v9 request, 10 topics x 10 partitions x 1 KiB",
                Request,
                ApiKey::PRODUCE,
                9,
                &produce_request(10, 10, 1 << 10),
            ),
            1.0,
        ),
        (
            Frame::new(
                "Produce v9 response, 1 partition",
                Response,
                ApiKey::PRODUCE,
                9,
                &produce_response(1, 1),
            ),
            1.0,
        ),
        (
            Frame::new(
                "Produce v9 response, 10 topics x 10 partitions",
                Response,
                ApiKey::PRODUCE,
                9,
                &produce_response(10, 10),
            ),
            1.0,
        ),
        (
            Frame::new(
                "ApiVersions v3 response, 75 rows",
                Response,
                ApiKey::API_VERSIONS,
                3,
                &api_versions_response(),
            ),
            1.0,
        ),
        (
            Frame::new(
                "Metadata v12 response, 3 brokers, 10 topics x 10 partitions",
                Response,
                ApiKey::METADATA,
                12,
                &metadata_response(3, 10, 10),
            ),
            1.0,
        ),
        (metadata(), 1.0),
    ]
}

/// A Metadata answer of a large cluster.
pub fn metadata() -> Frame {
    Frame::new(
        "Metadata v12 response, 100 brokers, 2,000 topics x 10 partitions",
        Direction::Response,
        ApiKey::METADATA,
        12,
        &metadata_response(100, 2000, 10),
    )
}

fn text(text: impl Into<String>) -> StrBytes {
    StrBytes::from_string(text.into())
}

fn topic_name(index: usize) -> TopicName {
    TopicName(text(format!("a-topic-of-usual-length-{index}")))
}

pub fn fetch_response(topics: usize, partitions: i32, records: usize) -> FetchResponse {
    let partition = |index| {
        PartitionData::default()
            .with_partition_index(index)
            .with_high_watermark(1 << 40)
            .with_last_stable_offset(1 << 40)
            .with_records(Some(Bytes::from(vec![7; records])))
    };
    let topic = |index| {
        FetchableTopicResponse::default()
            .with_topic(topic_name(index))
            .with_partitions((0..partitions).map(partition).collect())
    };
    FetchResponse::default().with_responses((0..topics).map(topic).collect())
}

pub fn fetch_request(topics: usize, partitions: i32) -> FetchRequest {
    let partition = |index| FetchPartition::default().with_partition(index);
    let topic = |index| {
        FetchTopic::default()
            .with_topic(topic_name(index))
            .with_partitions((0..partitions).map(partition).collect())
    };
    FetchRequest::default().with_topics((0..topics).map(topic).collect())
}

pub fn produce_request(topics: usize, partitions: i32, records: usize) -> ProduceRequest {
    let partition = |index| {
        PartitionProduceData::default()
            .with_index(index)
            .with_records(Some(Bytes::from(vec![7; records])))
    };
    let topic = |index| {
        TopicProduceData::default()
            .with_name(topic_name(index))
            .with_partition_data((0..partitions).map(partition).collect())
    };
    ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(30_000)
        .with_topic_data((0..topics).map(topic).collect())
}

pub fn produce_response(topics: usize, partitions: i32) -> ProduceResponse {
    let partition = |index| PartitionProduceResponse::default().with_index(index);
    let topic = |index| {
        TopicProduceResponse::default()
            .with_name(topic_name(index))
            .with_partition_responses((0..partitions).map(partition).collect())
    };
    ProduceResponse::default().with_responses((0..topics).map(topic).collect())
}

pub fn api_versions_response() -> ApiVersionsResponse {
    let row = |api_key| {
        ApiVersion::default()
            .with_api_key(api_key)
            .with_min_version(0)
            .with_max_version(9)
    };
    let feature = FinalizedFeatureKey::default()
        .with_name(text("metadata.version"))
        .with_max_version_level(25)
        .with_min_version_level(25);
    ApiVersionsResponse::default()
        .with_api_keys((0..75).map(row).collect())
        .with_finalized_features(vec![feature])
}

fn metadata_response(brokers: i32, topics: usize, partitions: i32) -> MetadataResponse {
    let broker = |id: i32| {
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(id))
            .with_host(text(format!("broker-{id}.kafka.example.com")))
            .with_port(9092)
            .with_rack(Some(text("eu-central-1a")))
    };
    let partition = |index: i32| {
        let nodes: Vec<_> = (index..index + 3).map(BrokerId).collect();
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(BrokerId(index))
            .with_leader_epoch(5)
            .with_replica_nodes(nodes.clone())
            .with_isr_nodes(nodes)
    };
    let topic = |index| {
        MetadataResponseTopic::default()
            .with_name(Some(topic_name(index)))
            .with_topic_id(uuid::Uuid::from_u128(index as u128 + 1))
            .with_partitions((0..partitions).map(partition).collect())
    };
    MetadataResponse::default()
        .with_brokers((0..brokers).map(broker).collect())
        .with_cluster_id(Some(text("a-cluster-of-22-chars.")))
        .with_topics((0..topics).map(topic).collect())
}
