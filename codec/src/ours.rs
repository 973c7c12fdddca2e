//! The versions that we speak: what `kafka-protocol` has a schema for, or where klamp only has to
//! look on, what the layout table reads.
//!
//! The trap: a version is only ours when request and response both have it, and the two ranges of
//! one key can differ (OffsetCommit, OffsetFetch, InitProducerId). `ApiKey::valid_versions` is wider
//! than either, so it is never asked.

use crate::layout;
use crate::session::Clamp;
use crate::types::{ApiKey, VersionRange};
use kafka_protocol::messages::{self, ApiKey as Schema};
use kafka_protocol::protocol::Message;

/// The versions of `api_key` that both its request and its response have a schema for; `None` where
/// there is no schema at all.
pub fn ours(api_key: ApiKey) -> Option<VersionRange> {
    common(Schema::try_from(api_key.0).ok()?)
}

impl Clamp {
    /// The versions of `api_key` that the clamp lets through: where it is off, those that it would.
    pub fn ours(self, api_key: ApiKey) -> Option<VersionRange> {
        match self {
            Self::Encode | Self::Off => ours(api_key),
            Self::Inspect => layout::versions(api_key),
        }
    }
}

/// What the two ranges of one message have in common.
fn intersection<Request: Message, Response: Message>() -> Option<VersionRange> {
    let [request, response] = [Request::VERSIONS, Response::VERSIONS];
    VersionRange::new(request.min, request.max)?
        .intersect(VersionRange::new(response.min, response.max)?)
}

/// Pairs each key with its two messages, whose names follow the key's.
macro_rules! schemas {
    ($($key:ident: $request:ident, $response:ident;)*) => {
        fn common(key: Schema) -> Option<VersionRange> {
            match key {
                $(Schema::$key => intersection::<messages::$request, messages::$response>(),)*
            }
        }
    };
}

schemas! {
    Produce: ProduceRequest, ProduceResponse;
    Fetch: FetchRequest, FetchResponse;
    ListOffsets: ListOffsetsRequest, ListOffsetsResponse;
    Metadata: MetadataRequest, MetadataResponse;
    OffsetCommit: OffsetCommitRequest, OffsetCommitResponse;
    OffsetFetch: OffsetFetchRequest, OffsetFetchResponse;
    FindCoordinator: FindCoordinatorRequest, FindCoordinatorResponse;
    JoinGroup: JoinGroupRequest, JoinGroupResponse;
    Heartbeat: HeartbeatRequest, HeartbeatResponse;
    LeaveGroup: LeaveGroupRequest, LeaveGroupResponse;
    SyncGroup: SyncGroupRequest, SyncGroupResponse;
    DescribeGroups: DescribeGroupsRequest, DescribeGroupsResponse;
    ListGroups: ListGroupsRequest, ListGroupsResponse;
    SaslHandshake: SaslHandshakeRequest, SaslHandshakeResponse;
    ApiVersions: ApiVersionsRequest, ApiVersionsResponse;
    CreateTopics: CreateTopicsRequest, CreateTopicsResponse;
    DeleteTopics: DeleteTopicsRequest, DeleteTopicsResponse;
    DeleteRecords: DeleteRecordsRequest, DeleteRecordsResponse;
    InitProducerId: InitProducerIdRequest, InitProducerIdResponse;
    OffsetForLeaderEpoch: OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
    AddPartitionsToTxn: AddPartitionsToTxnRequest, AddPartitionsToTxnResponse;
    AddOffsetsToTxn: AddOffsetsToTxnRequest, AddOffsetsToTxnResponse;
    EndTxn: EndTxnRequest, EndTxnResponse;
    WriteTxnMarkers: WriteTxnMarkersRequest, WriteTxnMarkersResponse;
    TxnOffsetCommit: TxnOffsetCommitRequest, TxnOffsetCommitResponse;
    DescribeAcls: DescribeAclsRequest, DescribeAclsResponse;
    CreateAcls: CreateAclsRequest, CreateAclsResponse;
    DeleteAcls: DeleteAclsRequest, DeleteAclsResponse;
    DescribeConfigs: DescribeConfigsRequest, DescribeConfigsResponse;
    AlterConfigs: AlterConfigsRequest, AlterConfigsResponse;
    AlterReplicaLogDirs: AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse;
    DescribeLogDirs: DescribeLogDirsRequest, DescribeLogDirsResponse;
    SaslAuthenticate: SaslAuthenticateRequest, SaslAuthenticateResponse;
    CreatePartitions: CreatePartitionsRequest, CreatePartitionsResponse;
    CreateDelegationToken: CreateDelegationTokenRequest, CreateDelegationTokenResponse;
    RenewDelegationToken: RenewDelegationTokenRequest, RenewDelegationTokenResponse;
    ExpireDelegationToken: ExpireDelegationTokenRequest, ExpireDelegationTokenResponse;
    DescribeDelegationToken: DescribeDelegationTokenRequest, DescribeDelegationTokenResponse;
    DeleteGroups: DeleteGroupsRequest, DeleteGroupsResponse;
    ElectLeaders: ElectLeadersRequest, ElectLeadersResponse;
    IncrementalAlterConfigs: IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
    AlterPartitionReassignments: AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse;
    ListPartitionReassignments: ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse;
    OffsetDelete: OffsetDeleteRequest, OffsetDeleteResponse;
    DescribeClientQuotas: DescribeClientQuotasRequest, DescribeClientQuotasResponse;
    AlterClientQuotas: AlterClientQuotasRequest, AlterClientQuotasResponse;
    DescribeUserScramCredentials: DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse;
    AlterUserScramCredentials: AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse;
    Vote: VoteRequest, VoteResponse;
    BeginQuorumEpoch: BeginQuorumEpochRequest, BeginQuorumEpochResponse;
    EndQuorumEpoch: EndQuorumEpochRequest, EndQuorumEpochResponse;
    DescribeQuorum: DescribeQuorumRequest, DescribeQuorumResponse;
    AlterPartition: AlterPartitionRequest, AlterPartitionResponse;
    UpdateFeatures: UpdateFeaturesRequest, UpdateFeaturesResponse;
    Envelope: EnvelopeRequest, EnvelopeResponse;
    FetchSnapshot: FetchSnapshotRequest, FetchSnapshotResponse;
    DescribeCluster: DescribeClusterRequest, DescribeClusterResponse;
    DescribeProducers: DescribeProducersRequest, DescribeProducersResponse;
    BrokerRegistration: BrokerRegistrationRequest, BrokerRegistrationResponse;
    BrokerHeartbeat: BrokerHeartbeatRequest, BrokerHeartbeatResponse;
    UnregisterBroker: UnregisterBrokerRequest, UnregisterBrokerResponse;
    DescribeTransactions: DescribeTransactionsRequest, DescribeTransactionsResponse;
    ListTransactions: ListTransactionsRequest, ListTransactionsResponse;
    AllocateProducerIds: AllocateProducerIdsRequest, AllocateProducerIdsResponse;
    ConsumerGroupHeartbeat: ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse;
    ConsumerGroupDescribe: ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse;
    ControllerRegistration: ControllerRegistrationRequest, ControllerRegistrationResponse;
    GetTelemetrySubscriptions: GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse;
    PushTelemetry: PushTelemetryRequest, PushTelemetryResponse;
    AssignReplicasToDirs: AssignReplicasToDirsRequest, AssignReplicasToDirsResponse;
    ListConfigResources: ListConfigResourcesRequest, ListConfigResourcesResponse;
    DescribeTopicPartitions: DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse;
    ShareGroupHeartbeat: ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse;
    ShareGroupDescribe: ShareGroupDescribeRequest, ShareGroupDescribeResponse;
    ShareFetch: ShareFetchRequest, ShareFetchResponse;
    ShareAcknowledge: ShareAcknowledgeRequest, ShareAcknowledgeResponse;
    AddRaftVoter: AddRaftVoterRequest, AddRaftVoterResponse;
    RemoveRaftVoter: RemoveRaftVoterRequest, RemoveRaftVoterResponse;
    UpdateRaftVoter: UpdateRaftVoterRequest, UpdateRaftVoterResponse;
    InitializeShareGroupState: InitializeShareGroupStateRequest, InitializeShareGroupStateResponse;
    ReadShareGroupState: ReadShareGroupStateRequest, ReadShareGroupStateResponse;
    WriteShareGroupState: WriteShareGroupStateRequest, WriteShareGroupStateResponse;
    DeleteShareGroupState: DeleteShareGroupStateRequest, DeleteShareGroupStateResponse;
    ReadShareGroupStateSummary: ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse;
    DescribeShareGroupOffsets: DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse;
    AlterShareGroupOffsets: AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse;
    DeleteShareGroupOffsets: DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse;
}
