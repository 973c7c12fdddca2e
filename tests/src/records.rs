//! Produce and Fetch requests for one partition, for scripted clients.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{BrokerId, FetchRequest, FetchResponse, ProduceRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};

/// The version of Produce in which [`produce`]'s requests are sent: the first flexible one.
pub const PRODUCE: i16 = 9;
/// The version of Fetch in which [`fetch`]'s requests are sent: the last that names topics by name.
pub const FETCH: i16 = 12;

/// A Produce request with one record for partition 0 of `topic`.
pub fn produce(topic: &str, acks: i16, value: &[u8]) -> ProduceRequest {
    let record = Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset: 0,
        sequence: -1,
        timestamp: 1_700_000_000_000,
        key: None,
        value: Some(Bytes::copy_from_slice(value)),
        headers: Default::default(),
    };
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    let mut records = BytesMut::new();
    RecordBatchEncoder::encode(&mut records, [&record], &options).expect("a batch can be encoded");
    let partition = PartitionProduceData::default().with_records(Some(records.freeze()));
    let topic = TopicProduceData::default()
        .with_name(topic_name(topic))
        .with_partition_data(vec![partition]);
    ProduceRequest::default()
        .with_acks(acks)
        .with_timeout_ms(30_000)
        .with_topic_data(vec![topic])
}

/// A Fetch request for partition 0 of `topic` from its start, which waits for a second at most.
pub fn fetch(topic: &str) -> FetchRequest {
    let partition = FetchPartition::default().with_partition_max_bytes(100_000_000);
    let topic = FetchTopic::default()
        .with_topic(topic_name(topic))
        .with_partitions(vec![partition]);
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(1_000)
        .with_min_bytes(1)
        .with_max_bytes(100_000_000)
        .with_topics(vec![topic])
}

/// The values of the records in the answer to a [`fetch`].
///
/// # Panics
/// If the answer has an error or its records cannot be read.
#[track_caller]
pub fn fetched(answer: &FetchResponse) -> Vec<Vec<u8>> {
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, 0, "{answer:?}");
    let mut records = partition.records.clone().unwrap_or_default();
    let batches = RecordBatchDecoder::decode_all(&mut records).expect("records can be read");
    let records = batches.into_iter().flat_map(|batch| batch.records);
    records
        .map(|record| record.value.unwrap_or_default().to_vec())
        .collect()
}

/// A topic's name as `kafka-protocol` wants it.
pub fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
