//! A client that is answered with an error code that no library names.
//!
//! The trap: `rdkafka` turns C's numbers into an enum, for which an unknown one is undefined
//! behaviour. So this client is no librdkafka, and it is the only one that produces meanwhile.

use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ProduceRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Record,
    RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use klamp_tests::mock::MockKafka;
use klamp_tests::peer::Client;
use std::net::SocketAddr;

/// What it calls itself.
pub(crate) const CLIENT_ID: &str = "demo-payments";

/// Where it produces to.
pub(crate) const TOPIC: &str = "demo-payments";

/// Kafka's own codes end at 136; this one may be a vendor's, or of a Kafka to come.
const CODE: i16 = 250;

/// The last version that all parties here speak and whose partitions are told by the topic's name.
const PRODUCE_VERSION: i16 = 9;

/// Produces a record by way of `klamp`, and returns the error code that it is answered with.
///
/// # Panics
/// If it is another one than the broker was told to give.
pub(crate) fn provoke(broker: &MockKafka, klamp: SocketAddr) -> i16 {
    broker.fail_produce_with(CODE);
    let answer = Client::connect(klamp)
        .named(CLIENT_ID)
        .call(PRODUCE_VERSION, &one_record());
    broker.fail_produce_with(0);
    let code = answer.responses[0].partition_responses[0].error_code;
    assert_eq!(code, CODE, "the error code that came through klamp");
    code
}

fn one_record() -> ProduceRequest {
    let record = Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
        producer_id: NO_PRODUCER_ID,
        producer_epoch: NO_PRODUCER_EPOCH,
        timestamp_type: TimestampType::Creation,
        offset: 0,
        sequence: NO_SEQUENCE,
        timestamp: 0,
        key: None,
        value: Some(Bytes::from_static(b"one payment")),
        headers: IndexMap::default(),
    };
    let mut records = BytesMut::new();
    let plain = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    RecordBatchEncoder::encode(&mut records, [&record], &plain).expect("a record can be encoded");
    let partition = PartitionProduceData::default()
        .with_index(0)
        .with_records(Some(records.freeze()));
    let topic = TopicProduceData::default()
        .with_name(TopicName(StrBytes::from_static_str(TOPIC)))
        .with_partition_data(vec![partition]);
    ProduceRequest::default()
        .with_acks(-1)
        .with_timeout_ms(5_000)
        .with_topic_data(vec![topic])
}
