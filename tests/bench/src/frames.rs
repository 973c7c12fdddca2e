//! The frames of a load, encoded once; while it runs only correlation ids are patched in.

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::metadata_response::MetadataResponseBroker;
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, FetchRequest, FetchResponse, MetadataRequest, MetadataResponse,
    ProduceRequest, ProduceResponse,
};
use kafka_protocol::protocol::StrBytes;
use klamp_tests::{records, wire};
use std::net::SocketAddr;

/// The client id that the source gives.
const CLIENT: &str = "klamp-bench";
const TOPIC: &str = "orders";
const API_VERSIONS: i16 = 4;
const METADATA: i16 = 12;

/// What a real broker (Kafka 4.3.1) answered to ApiVersions version 4.
const API_VERSIONS_ANSWER: &[u8] =
    include_bytes!("../../../codec/tests/clamp/captured/4.3.1-v4.bin");

/// Which frame of a [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What every connection opens with.
    ApiVersions,
    /// What every connection goes on with.
    Metadata,
    /// What the load is made of.
    Load,
}

/// One direction's frames, with the length in front.
#[derive(Clone, Debug)]
pub struct Frames {
    api_versions: Vec<u8>,
    metadata: Vec<u8>,
    load: Vec<u8>,
}

impl Frames {
    /// That frame.
    pub fn of(&self, kind: Kind) -> &[u8] {
        match kind {
            Kind::ApiVersions => &self.api_versions,
            Kind::Metadata => &self.metadata,
            Kind::Load => &self.load,
        }
    }
}

/// Both directions' frames.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// What the source sends.
    pub requests: Frames,
    /// What the sink answers.
    pub answers: Frames,
}

impl Conversation {
    fn with(request: Vec<u8>, answer: Vec<u8>) -> Self {
        Self {
            requests: Frames {
                api_versions: wire::request(
                    API_VERSIONS,
                    0,
                    CLIENT,
                    &ApiVersionsRequest::default()
                        .with_client_software_name(StrBytes::from_static_str(CLIENT))
                        .with_client_software_version(StrBytes::from_static_str("1.0")),
                ),
                metadata: wire::request(METADATA, 0, CLIENT, &MetadataRequest::default()),
                load: request,
            },
            answers: Frames {
                api_versions: API_VERSIONS_ANSWER.to_vec(),
                metadata: Vec::new(),
                load: answer,
            },
        }
    }

    /// The same, of a broker that says it is at `advertised`.
    #[must_use]
    pub fn advertised(mut self, advertised: SocketAddr) -> Self {
        let broker = MetadataResponseBroker::default()
            .with_node_id(BrokerId(1))
            .with_host(StrBytes::from_string(advertised.ip().to_string()))
            .with_port(advertised.port().into());
        let body = MetadataResponse::default().with_brokers(vec![broker]);
        self.answers.metadata = wire::response::<MetadataRequest>(METADATA, 0, &body);
        self
    }

    /// Produce requests of `size` bytes with one record, and their answers.
    pub fn produce(size: usize) -> Self {
        let request = |value: usize| {
            let body = records::produce(TOPIC, 1, &vec![b'k'; value]);
            wire::request::<ProduceRequest>(records::PRODUCE, 0, CLIENT, &body)
        };
        let partition = PartitionProduceResponse::default().with_base_offset(1_000_000);
        let topic = TopicProduceResponse::default()
            .with_name(records::topic_name(TOPIC))
            .with_partition_responses(vec![partition]);
        let answer = ProduceResponse::default().with_responses(vec![topic]);
        let answer = wire::response::<ProduceRequest>(records::PRODUCE, 0, &answer);
        Self::with(sized(size, request), answer)
    }

    /// Fetch requests for `partitions` partitions, and answers of `size` bytes with one record in one
    /// of them.
    pub fn fetch(partitions: i32, size: usize) -> Self {
        let answer = |value: usize| fetch_answer(1, value);
        Self::with(fetch_request(partitions), sized(size, answer))
    }

    /// Fetch requests of an incremental session, which name one partition, and answers with
    /// `partitions` partitions that have a batch with a record of `value` bytes each.
    pub fn fetch_partitions(partitions: i32, value: usize) -> Self {
        Self::with(fetch_request(1), fetch_answer(partitions, value))
    }
}

fn fetch_request(partitions: i32) -> Vec<u8> {
    let partition = |index| {
        FetchPartition::default()
            .with_partition(index)
            .with_fetch_offset(1_000_000)
            .with_partition_max_bytes(1 << 20)
    };
    let topic = FetchTopic::default()
        .with_topic(records::topic_name(TOPIC))
        .with_partitions((0..partitions).map(partition).collect());
    let body = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(500)
        .with_min_bytes(1)
        .with_max_bytes(50 << 20)
        .with_session_id(1_234_567)
        .with_session_epoch(7)
        .with_topics(vec![topic]);
    wire::request(records::FETCH, 0, CLIENT, &body)
}

fn fetch_answer(partitions: i32, value: usize) -> Vec<u8> {
    // The batch of a Produce request is the batch of a Fetch answer.
    let produced = records::produce(TOPIC, 1, &vec![b'k'; value]);
    let batch = produced.topic_data[0].partition_data[0].records.clone();
    let partition = |index| {
        PartitionData::default()
            .with_partition_index(index)
            .with_high_watermark(1_000_001)
            .with_last_stable_offset(1_000_001)
            .with_log_start_offset(0)
            .with_aborted_transactions(None)
            .with_records(batch.clone())
    };
    let topic = FetchableTopicResponse::default()
        .with_topic(records::topic_name(TOPIC))
        .with_partitions((0..partitions).map(partition).collect());
    let body = FetchResponse::default()
        .with_session_id(1_234_567)
        .with_responses(vec![topic]);
    wire::response::<FetchRequest>(records::FETCH, 0, &body)
}

/// The frame of `size` bytes, or of few more where lengths of lengths do not come out: `make` gives
/// that for a record's value of so many bytes.
fn sized(size: usize, make: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut value = size;
    for _ in 0..4 {
        value = (value + size).saturating_sub(make(value).len());
    }
    make(value)
}
