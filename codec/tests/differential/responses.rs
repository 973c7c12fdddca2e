//! The responses, filled field by field in the order of their definitions. What has a role is noted where
//! it stands on the wire; tagged fields come last.

use crate::samples::{Fact, Fill};
use kafka_protocol::messages::{
    ApiVersionsResponse, BrokerId, FetchResponse, MetadataResponse, ProduceResponse, ProducerId,
    SaslHandshakeResponse, TopicName, api_versions_response, fetch_response, metadata_response,
    produce_response,
};
use kafka_protocol::protocol::StrBytes;
use klamp_codec::layout::Role;

pub fn produce_response(fill: &mut Fill<'_>) -> ProduceResponse {
    let mut message = ProduceResponse::default();
    message.responses = fill.array(|fill| {
        let mut topic = produce_response::TopicProduceResponse::default();
        if fill.version <= 12 {
            topic.name = TopicName(fill.string());
        } else {
            topic.topic_id = fill.uuid();
        }
        topic.partition_responses = fill.array(produced_partition);
        topic.unknown_tagged_fields = fill.tags();
        topic
    });
    message.throttle_time_ms = fill.i32();
    fill.int(Role::ThrottleTime, message.throttle_time_ms);
    if fill.version >= 10 {
        message.node_endpoints = fill.array(|fill| {
            let mut node = produce_response::NodeEndpoint::default();
            node.node_id = BrokerId(fill.i32());
            node.host = fill.string();
            node.port = fill.i32();
            node.rack = fill.nullable(Fill::string);
            node.unknown_tagged_fields = fill.tags();
            broker(fill, node.node_id, &node.host, node.port);
            node
        });
    }
    message.unknown_tagged_fields = fill.tags();
    message
}

fn produced_partition(fill: &mut Fill<'_>) -> produce_response::PartitionProduceResponse {
    let mut partition = produce_response::PartitionProduceResponse::default();
    partition.index = fill.i32();
    partition.error_code = fill.i16();
    fill.int(Role::ErrorCode, partition.error_code);
    partition.base_offset = fill.i64();
    partition.log_append_time_ms = fill.i64();
    if fill.version >= 5 {
        partition.log_start_offset = fill.i64();
    }
    if fill.version >= 8 {
        partition.record_errors = fill.array(|fill| {
            let mut record = produce_response::BatchIndexAndErrorMessage::default();
            record.batch_index = fill.i32();
            record.batch_index_error_message = fill.nullable(Fill::string);
            record.unknown_tagged_fields = fill.tags();
            record
        });
        partition.error_message = fill.nullable(Fill::string);
    }
    if fill.version >= 10 && fill.bool() {
        partition.current_leader.leader_id = BrokerId(fill.i32());
        partition.current_leader.unknown_tagged_fields = fill.tags();
    }
    partition.unknown_tagged_fields = fill.tags();
    partition
}

pub fn fetch_response(fill: &mut Fill<'_>) -> FetchResponse {
    let mut message = FetchResponse::default();
    message.throttle_time_ms = fill.i32();
    fill.int(Role::ThrottleTime, message.throttle_time_ms);
    if fill.version >= 7 {
        message.error_code = fill.i16();
        fill.int(Role::ErrorCode, message.error_code);
        message.session_id = fill.i32();
    }
    message.responses = fill.array(|fill| {
        let mut topic = fetch_response::FetchableTopicResponse::default();
        if fill.version <= 12 {
            topic.topic = TopicName(fill.string());
        } else {
            topic.topic_id = fill.uuid();
        }
        topic.partitions = fill.array(partition_data);
        topic.unknown_tagged_fields = fill.tags();
        topic
    });
    if fill.version >= 16 {
        message.node_endpoints = fill.array(|fill| {
            let mut node = fetch_response::NodeEndpoint::default();
            node.node_id = BrokerId(fill.i32());
            node.host = fill.string();
            node.port = fill.i32();
            node.rack = fill.nullable(Fill::string);
            node.unknown_tagged_fields = fill.tags();
            broker(fill, node.node_id, &node.host, node.port);
            node
        });
    }
    message.unknown_tagged_fields = fill.tags();
    message
}

fn partition_data(fill: &mut Fill<'_>) -> fetch_response::PartitionData {
    let mut partition = fetch_response::PartitionData::default();
    partition.partition_index = fill.i32();
    partition.error_code = fill.i16();
    fill.int(Role::ErrorCode, partition.error_code);
    partition.high_watermark = fill.i64();
    partition.last_stable_offset = fill.i64();
    if fill.version >= 5 {
        partition.log_start_offset = fill.i64();
    }
    partition.aborted_transactions = fill.nullable(|fill| {
        fill.array(|fill| {
            let mut transaction = fetch_response::AbortedTransaction::default();
            transaction.producer_id = ProducerId(fill.i64());
            transaction.first_offset = fill.i64();
            transaction.unknown_tagged_fields = fill.tags();
            transaction
        })
    });
    if fill.version >= 11 {
        partition.preferred_read_replica = BrokerId(fill.i32());
    }
    partition.records = fill.records();
    if fill.version >= 12 && fill.bool() {
        partition.diverging_epoch.end_offset = fill.i64();
        partition.current_leader.leader_id = BrokerId(fill.i32());
        partition.snapshot_id.epoch = fill.i32();
        partition.snapshot_id.unknown_tagged_fields = fill.tags();
    }
    partition.unknown_tagged_fields = fill.tags();
    partition
}

pub fn metadata_response(fill: &mut Fill<'_>) -> MetadataResponse {
    let mut message = MetadataResponse::default();
    if fill.version >= 3 {
        message.throttle_time_ms = fill.i32();
        fill.int(Role::ThrottleTime, message.throttle_time_ms);
    }
    message.brokers = fill.array(|fill| {
        let mut node = metadata_response::MetadataResponseBroker::default();
        node.node_id = BrokerId(fill.i32());
        node.host = fill.string();
        node.port = fill.i32();
        if fill.version >= 1 {
            node.rack = fill.nullable(Fill::string);
        }
        node.unknown_tagged_fields = fill.tags();
        broker(fill, node.node_id, &node.host, node.port);
        node
    });
    if fill.version >= 2 {
        message.cluster_id = fill.nullable(Fill::string);
    }
    if fill.version >= 1 {
        message.controller_id = BrokerId(fill.i32());
    }
    message.topics = fill.array(|fill| {
        let mut topic = metadata_response::MetadataResponseTopic::default();
        topic.error_code = fill.i16();
        fill.int(Role::ErrorCode, topic.error_code);
        topic.name = match fill.version {
            ..12 => Some(TopicName(fill.string())),
            _ => fill.nullable(|fill| TopicName(fill.string())),
        };
        if fill.version >= 10 {
            topic.topic_id = fill.uuid();
        }
        if fill.version >= 1 {
            topic.is_internal = fill.bool();
        }
        topic.partitions = fill.array(metadata_partition);
        if fill.version >= 8 {
            topic.topic_authorized_operations = fill.i32();
        }
        topic.unknown_tagged_fields = fill.tags();
        topic
    });
    if (8..=10).contains(&fill.version) {
        message.cluster_authorized_operations = fill.i32();
    }
    if fill.version >= 13 {
        message.error_code = fill.i16();
        fill.int(Role::ErrorCode, message.error_code);
    }
    message.unknown_tagged_fields = fill.tags();
    message
}

fn metadata_partition(fill: &mut Fill<'_>) -> metadata_response::MetadataResponsePartition {
    let mut partition = metadata_response::MetadataResponsePartition::default();
    partition.error_code = fill.i16();
    fill.int(Role::ErrorCode, partition.error_code);
    partition.partition_index = fill.i32();
    partition.leader_id = BrokerId(fill.i32());
    if fill.version >= 7 {
        partition.leader_epoch = fill.i32();
    }
    partition.replica_nodes = fill.array(|fill| BrokerId(fill.i32()));
    partition.isr_nodes = fill.array(|fill| BrokerId(fill.i32()));
    if fill.version >= 5 {
        partition.offline_replicas = fill.array(|fill| BrokerId(fill.i32()));
    }
    partition.unknown_tagged_fields = fill.tags();
    partition
}

pub fn sasl_handshake_response(fill: &mut Fill<'_>) -> SaslHandshakeResponse {
    let code = fill.i16();
    SaslHandshakeResponse::default()
        .with_error_code(fill.int(Role::ErrorCode, code))
        .with_mechanisms(fill.array(Fill::string))
}

pub fn api_versions_response(fill: &mut Fill<'_>) -> ApiVersionsResponse {
    let mut message = ApiVersionsResponse::default();
    message.error_code = fill.i16();
    fill.int(Role::ErrorCode, message.error_code);
    let count = fill.len();
    fill.facts.push(Fact::Count(Role::VersionRows, count));
    for _ in 0..count {
        fill.facts.push(Fact::Element(Role::VersionRows));
        let mut row = api_versions_response::ApiVersion::default();
        row.api_key = fill.i16();
        row.min_version = fill.i16();
        row.max_version = fill.i16();
        row.unknown_tagged_fields = fill.tags();
        fill.int(Role::RowKey, row.api_key);
        fill.int(Role::RowMin, row.min_version);
        fill.int(Role::RowMax, row.max_version);
        message.api_keys.push(row);
    }
    fill.facts.push(Fact::End(Role::VersionRows));
    if fill.version >= 1 {
        message.throttle_time_ms = fill.i32();
        fill.int(Role::ThrottleTime, message.throttle_time_ms);
    }
    if fill.version >= 3 {
        message.supported_features = fill.array(|fill| {
            let mut feature = api_versions_response::SupportedFeatureKey::default();
            feature.name = fill.string();
            feature.max_version = fill.i16();
            feature.unknown_tagged_fields = fill.tags();
            feature
        });
        message.finalized_features_epoch = fill.i64();
        message.finalized_features = fill.array(|fill| {
            let mut feature = api_versions_response::FinalizedFeatureKey::default();
            let name = fill.string();
            feature.name = fill.text(Role::FinalizedFeature, name);
            feature.max_version_level = fill.i16();
            fill.int(Role::FinalizedLevel, feature.max_version_level);
            feature.min_version_level = fill.i16();
            feature.unknown_tagged_fields = fill.tags();
            feature
        });
        message.zk_migration_ready = fill.bool();
        message.unknown_tagged_fields = fill.tags();
    }
    message
}

fn broker(fill: &mut Fill<'_>, node_id: BrokerId, host: &StrBytes, port: i32) {
    fill.int(Role::NodeId, node_id.0);
    fill.text(Role::Host, host.clone());
    fill.int(Role::Port, port);
}
