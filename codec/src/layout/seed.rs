//! The layouts of the first few messages, entered by hand from Kafka's message definitions: those of
//! 4.4.0, and of 3.9.2 for the versions that 4.0 removed. The comments have the fields' names there.
//!
//! Tagged fields without a role inside are left out: they pass like unknown ones.

mod compile;

use super::Role::{
    Acks, ErrorCode, FinalizedFeature, FinalizedLevel, Host, Mechanism, NodeId, Port, ReplicaId,
    RowKey, RowMax, RowMin, SoftwareName, SoftwareVersion, ThrottleTime, TopicId, TopicName,
    VersionRows, Wait,
};
use super::table::Table;
use crate::types::{ApiKey, Direction};
use compile::{
    Field, Message, Versions, array, bool, int8, int16, int32, int64, list, records, string,
    structure, uuid,
};
use std::sync::LazyLock;

/// The table.
pub(super) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| compile::compile(MESSAGES));
    &TABLE
}

const fn from(min: i16) -> Versions {
    (min, i16::MAX)
}

const MESSAGES: &[Message] = &[
    Message {
        api_key: ApiKey::PRODUCE,
        direction: Direction::Request,
        versions: (0, 13),
        flexible: Some(9),
        fields: PRODUCE_REQUEST,
    },
    Message {
        api_key: ApiKey::PRODUCE,
        direction: Direction::Response,
        versions: (0, 13),
        flexible: Some(9),
        fields: PRODUCE_RESPONSE,
    },
    Message {
        api_key: ApiKey::FETCH,
        direction: Direction::Request,
        versions: (0, 18),
        flexible: Some(12),
        fields: FETCH_REQUEST,
    },
    Message {
        api_key: ApiKey::FETCH,
        direction: Direction::Response,
        versions: (0, 18),
        flexible: Some(12),
        fields: FETCH_RESPONSE,
    },
    Message {
        api_key: ApiKey::METADATA,
        direction: Direction::Request,
        versions: (0, 13),
        flexible: Some(9),
        fields: METADATA_REQUEST,
    },
    Message {
        api_key: ApiKey::METADATA,
        direction: Direction::Response,
        versions: (0, 13),
        flexible: Some(9),
        fields: METADATA_RESPONSE,
    },
    Message {
        api_key: ApiKey::SASL_HANDSHAKE,
        direction: Direction::Request,
        versions: (0, 1),
        flexible: None,
        fields: SASL_HANDSHAKE_REQUEST,
    },
    Message {
        api_key: ApiKey::SASL_HANDSHAKE,
        direction: Direction::Response,
        versions: (0, 1),
        flexible: None,
        fields: SASL_HANDSHAKE_RESPONSE,
    },
    Message {
        api_key: ApiKey::API_VERSIONS,
        direction: Direction::Request,
        versions: (0, 5),
        flexible: Some(3),
        fields: API_VERSIONS_REQUEST,
    },
    Message {
        api_key: ApiKey::API_VERSIONS,
        direction: Direction::Response,
        versions: (0, 5),
        flexible: Some(3),
        fields: API_VERSIONS_RESPONSE,
    },
];

const PRODUCE_REQUEST: &[Field] = &[
    string(from(3)).nullable(from(3)), // TransactionalId
    int16(from(0)).role(Acks),         // Acks
    int32(from(0)).role(Wait),         // TimeoutMs
    // TopicData
    array(
        from(0),
        &[
            string((0, 12)).role(TopicName), // Name
            uuid(from(13)).role(TopicId),    // TopicId
            // PartitionData
            array(
                from(0),
                &[
                    int32(from(0)),                     // Index
                    records(from(0)).nullable(from(0)), // Records
                ],
            ),
        ],
    ),
];

const PRODUCE_RESPONSE: &[Field] = &[
    // Responses
    array(
        from(0),
        &[
            string((0, 12)), // Name
            uuid(from(13)),  // TopicId
            // PartitionResponses
            array(
                from(0),
                &[
                    int32(from(0)),                 // Index
                    int16(from(0)).role(ErrorCode), // ErrorCode
                    int64(from(0)),                 // BaseOffset
                    int64(from(2)),                 // LogAppendTimeMs
                    int64(from(5)),                 // LogStartOffset
                    // RecordErrors
                    array(
                        from(8),
                        &[
                            int32(from(8)),                    // BatchIndex
                            string(from(8)).nullable(from(8)), // BatchIndexErrorMessage
                        ],
                    ),
                    string(from(8)).nullable(from(8)), // ErrorMessage
                ],
            ),
        ],
    ),
    int32(from(1)).role(ThrottleTime),     // ThrottleTimeMs
    array(from(10), NODE_ENDPOINT).tag(0), // NodeEndpoints
];

const FETCH_REQUEST: &[Field] = &[
    int32((0, 14)).role(ReplicaId), // ReplicaId
    // ReplicaState
    structure(
        from(15),
        &[
            int32(from(15)).role(ReplicaId), // ReplicaId
            int64(from(15)),                 // ReplicaEpoch
        ],
    )
    .tag(1),
    int32(from(0)).role(Wait), // MaxWaitMs
    int32(from(0)),            // MinBytes
    int32(from(3)),            // MaxBytes
    int8(from(4)),             // IsolationLevel
    int32(from(7)),            // SessionId
    int32(from(7)),            // SessionEpoch
    // Topics
    array(
        from(0),
        &[
            string((0, 12)), // Topic
            uuid(from(13)),  // TopicId
            // Partitions
            array(
                from(0),
                &[
                    int32(from(0)),  // Partition
                    int32(from(9)),  // CurrentLeaderEpoch
                    int64(from(0)),  // FetchOffset
                    int32(from(12)), // LastFetchedEpoch
                    int64(from(5)),  // LogStartOffset
                    int32(from(0)),  // PartitionMaxBytes
                ],
            ),
        ],
    ),
    // ForgottenTopicsData
    array(
        from(7),
        &[
            string((7, 12)),                // Topic
            uuid(from(13)),                 // TopicId
            list(from(7), &int32(from(7))), // Partitions
        ],
    ),
    string(from(11)), // RackId
];

const FETCH_RESPONSE: &[Field] = &[
    int32(from(1)).role(ThrottleTime), // ThrottleTimeMs
    int16(from(7)).role(ErrorCode),    // ErrorCode
    int32(from(7)),                    // SessionId
    // Responses
    array(
        from(0),
        &[
            string((0, 12)), // Topic
            uuid(from(13)),  // TopicId
            // Partitions
            array(
                from(0),
                &[
                    int32(from(0)),                 // PartitionIndex
                    int16(from(0)).role(ErrorCode), // ErrorCode
                    int64(from(0)),                 // HighWatermark
                    int64(from(4)),                 // LastStableOffset
                    int64(from(5)),                 // LogStartOffset
                    // AbortedTransactions
                    array(
                        from(4),
                        &[
                            int64(from(4)), // ProducerId
                            int64(from(4)), // FirstOffset
                        ],
                    )
                    .nullable(from(4)),
                    int32(from(11)),                    // PreferredReadReplica
                    records(from(0)).nullable(from(0)), // Records
                ],
            ),
        ],
    ),
    array(from(16), NODE_ENDPOINT).tag(0), // NodeEndpoints
];

/// A broker that a client is sent to after a change of leaders (KIP-951).
const NODE_ENDPOINT: &[Field] = &[
    int32(from(0)).role(NodeId),       // NodeId
    string(from(0)).role(Host),        // Host
    int32(from(0)).role(Port),         // Port
    string(from(0)).nullable(from(0)), // Rack
];

const METADATA_REQUEST: &[Field] = &[
    // Topics
    array(
        from(0),
        &[
            uuid(from(10)).role(TopicId),                       // TopicId
            string(from(0)).nullable(from(10)).role(TopicName), // Name
        ],
    )
    .nullable(from(1)),
    bool(from(4)), // AllowAutoTopicCreation
    bool((8, 10)), // IncludeClusterAuthorizedOperations
    bool(from(8)), // IncludeTopicAuthorizedOperations
];

const METADATA_RESPONSE: &[Field] = &[
    int32(from(3)).role(ThrottleTime), // ThrottleTimeMs
    // Brokers
    array(
        from(0),
        &[
            int32(from(0)).role(NodeId),       // NodeId
            string(from(0)).role(Host),        // Host
            int32(from(0)).role(Port),         // Port
            string(from(1)).nullable(from(1)), // Rack
        ],
    ),
    string(from(2)).nullable(from(2)), // ClusterId
    int32(from(1)),                    // ControllerId
    // Topics
    array(
        from(0),
        &[
            int16(from(0)).role(ErrorCode),     // ErrorCode
            string(from(0)).nullable(from(12)), // Name
            uuid(from(10)),                     // TopicId
            bool(from(1)),                      // IsInternal
            // Partitions
            array(
                from(0),
                &[
                    int16(from(0)).role(ErrorCode), // ErrorCode
                    int32(from(0)),                 // PartitionIndex
                    int32(from(0)),                 // LeaderId
                    int32(from(7)),                 // LeaderEpoch
                    list(from(0), &int32(from(0))), // ReplicaNodes
                    list(from(0), &int32(from(0))), // IsrNodes
                    list(from(5), &int32(from(5))), // OfflineReplicas
                ],
            ),
            int32(from(8)), // TopicAuthorizedOperations
        ],
    ),
    int32((8, 10)),                  // ClusterAuthorizedOperations
    int16(from(13)).role(ErrorCode), // ErrorCode
];

const SASL_HANDSHAKE_REQUEST: &[Field] = &[
    string(from(0)).role(Mechanism), // Mechanism
];

const SASL_HANDSHAKE_RESPONSE: &[Field] = &[
    int16(from(0)).role(ErrorCode),  // ErrorCode
    list(from(0), &string(from(0))), // Mechanisms
];

const API_VERSIONS_REQUEST: &[Field] = &[
    string(from(3)).role(SoftwareName),    // ClientSoftwareName
    string(from(3)).role(SoftwareVersion), // ClientSoftwareVersion
    string(from(5)).nullable(from(5)),     // ClusterId
    int32(from(5)),                        // NodeId
];

const API_VERSIONS_RESPONSE: &[Field] = &[
    int16(from(0)).role(ErrorCode), // ErrorCode
    // ApiKeys
    array(
        from(0),
        &[
            int16(from(0)).role(RowKey), // ApiKey
            int16(from(0)).role(RowMin), // MinVersion
            int16(from(0)).role(RowMax), // MaxVersion
        ],
    )
    .role(VersionRows),
    int32(from(1)).role(ThrottleTime), // ThrottleTimeMs
    // FinalizedFeatures
    array(
        from(3),
        &[
            string(from(3)).role(FinalizedFeature), // Name
            int16(from(3)).role(FinalizedLevel),    // MaxVersionLevel
            int16(from(3)),                         // MinVersionLevel
        ],
    )
    .tag(2),
];
