//! The requests, filled field by field in the order of their definitions. What has a role is noted where
//! it stands on the wire; tagged fields come last.

use crate::samples::{Fact, Fill};
use kafka_protocol::messages::{
    ApiVersionsRequest, BrokerId, FetchRequest, MetadataRequest, ProduceRequest,
    SaslHandshakeRequest, TopicName, TransactionalId, fetch_request, metadata_request,
    produce_request,
};
use klamp_codec::layout::Role;

pub fn produce_request(fill: &mut Fill<'_>) -> ProduceRequest {
    let mut message = ProduceRequest::default();
    message.transactional_id = fill.nullable(|fill| TransactionalId(fill.string()));
    message.acks = fill.i16();
    fill.int(Role::Acks, message.acks);
    message.timeout_ms = fill.i32();
    fill.int(Role::Wait, message.timeout_ms);
    message.topic_data = fill.array(|fill| {
        let mut topic = produce_request::TopicProduceData::default();
        if fill.version <= 12 {
            let name = fill.string();
            topic.name = TopicName(fill.text(Role::TopicName, name));
        } else {
            let id = fill.uuid();
            topic.topic_id = fill.id(Role::TopicId, id);
        }
        topic.partition_data = fill.array(|fill| {
            let mut partition = produce_request::PartitionProduceData::default();
            partition.index = fill.i32();
            partition.records = fill.records();
            partition.unknown_tagged_fields = fill.tags();
            partition
        });
        topic.unknown_tagged_fields = fill.tags();
        topic
    });
    message.unknown_tagged_fields = fill.tags();
    message
}

pub fn fetch_request(fill: &mut Fill<'_>) -> FetchRequest {
    let mut message = FetchRequest::default();
    if fill.version <= 14 {
        message.replica_id = BrokerId(fill.i32());
        fill.int(Role::ReplicaId, message.replica_id.0);
    }
    message.max_wait_ms = fill.i32();
    fill.int(Role::Wait, message.max_wait_ms);
    message.min_bytes = fill.i32();
    message.max_bytes = fill.i32();
    message.isolation_level = fill.bool().into();
    if fill.version >= 7 {
        message.session_id = fill.i32();
        message.session_epoch = fill.i32();
    }
    message.topics = fill.array(|fill| {
        let mut topic = fetch_request::FetchTopic::default();
        if fill.version <= 12 {
            topic.topic = TopicName(fill.string());
        } else {
            topic.topic_id = fill.uuid();
        }
        topic.partitions = fill.array(fetched_partition);
        topic.unknown_tagged_fields = fill.tags();
        topic
    });
    if fill.version >= 7 {
        message.forgotten_topics_data = fill.array(|fill| {
            let mut topic = fetch_request::ForgottenTopic::default();
            if fill.version <= 12 {
                topic.topic = TopicName(fill.string());
            } else {
                topic.topic_id = fill.uuid();
            }
            topic.partitions = fill.array(Fill::i32);
            topic.unknown_tagged_fields = fill.tags();
            topic
        });
    }
    if fill.version >= 11 {
        message.rack_id = fill.string();
    }
    if fill.version >= 12 {
        message.cluster_id = fill.nullable(Fill::string);
    }
    if fill.version >= 15 && fill.bool() {
        message.replica_state.replica_id = BrokerId(fill.i32());
        message.replica_state.replica_epoch = fill.i64();
        message.replica_state.unknown_tagged_fields = fill.tags();
        fill.int(Role::ReplicaId, message.replica_state.replica_id.0);
    }
    message.unknown_tagged_fields = fill.tags();
    message
}

fn fetched_partition(fill: &mut Fill<'_>) -> fetch_request::FetchPartition {
    let mut partition = fetch_request::FetchPartition::default();
    partition.partition = fill.i32();
    if fill.version >= 9 {
        partition.current_leader_epoch = fill.i32();
    }
    partition.fetch_offset = fill.i64();
    if fill.version >= 12 {
        partition.last_fetched_epoch = fill.i32();
    }
    if fill.version >= 5 {
        partition.log_start_offset = fill.i64();
    }
    partition.partition_max_bytes = fill.i32();
    if fill.version >= 17 && fill.bool() {
        partition.replica_directory_id = fill.uuid();
    }
    if fill.version >= 18 && fill.bool() {
        partition.high_watermark = fill.i64();
    }
    partition.unknown_tagged_fields = fill.tags();
    partition
}

pub fn metadata_request(fill: &mut Fill<'_>) -> MetadataRequest {
    let mut message = MetadataRequest::default();
    let topics = |fill: &mut Fill<'_>| {
        fill.array(|fill| {
            let mut topic = metadata_request::MetadataRequestTopic::default();
            if fill.version >= 10 {
                let id = fill.uuid();
                topic.topic_id = fill.id(Role::TopicId, id);
            }
            let name = match fill.version {
                ..10 => Some(fill.string()),
                _ => fill.nullable(Fill::string),
            };
            topic.name = match name {
                Some(name) => Some(TopicName(fill.text(Role::TopicName, name))),
                None => {
                    fill.facts.push(Fact::Null(Role::TopicName));
                    None
                }
            };
            topic.unknown_tagged_fields = fill.tags();
            topic
        })
    };
    message.topics = match fill.version {
        0 => Some(topics(fill)),
        _ => fill.nullable(topics),
    };
    if fill.version >= 4 {
        message.allow_auto_topic_creation = fill.bool();
    }
    if fill.version >= 8 {
        message.include_topic_authorized_operations = fill.bool();
    }
    message.unknown_tagged_fields = fill.tags();
    message
}

pub fn sasl_handshake_request(fill: &mut Fill<'_>) -> SaslHandshakeRequest {
    let mechanism = fill.string();
    SaslHandshakeRequest::default().with_mechanism(fill.text(Role::Mechanism, mechanism))
}

pub fn api_versions_request(fill: &mut Fill<'_>) -> ApiVersionsRequest {
    let mut message = ApiVersionsRequest::default();
    if fill.version >= 3 {
        let (name, version) = (fill.string(), fill.string());
        message.client_software_name = fill.text(Role::SoftwareName, name);
        message.client_software_version = fill.text(Role::SoftwareVersion, version);
        message.unknown_tagged_fields = fill.tags();
    }
    message
}
