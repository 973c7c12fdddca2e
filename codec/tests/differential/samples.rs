//! Messages filled at random and written by `kafka-protocol`, each with what it prints of them.

use crate::dictation::dictate;
use crate::printed;
use crate::tree::Struct;
use crate::walk::{Move, Walked, walk};
use fastrand::Rng;
use kafka_protocol::messages::{self, ApiKey as Schema};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Message, Request};
use klamp_codec::layout::Root;
use klamp_codec::{ApiKey, Direction};
use std::fmt;
use std::ops::RangeInclusive;

/// A message without its header's fixed part, and what is in it.
#[derive(Clone)]
pub struct Sample {
    pub direction: Direction,
    pub api_key: ApiKey,
    pub api_version: i16,
    pub flexible: bool,
    /// What follows the client id or correlation id.
    pub bytes: Vec<u8>,
    /// All fields that the struct has, in this version or not.
    pub said: Struct,
}

impl Sample {
    pub fn root(&self) -> Root {
        Root::find(self.direction, self.api_key, self.api_version).unwrap()
    }

    /// Of the table that tells of every field.
    pub fn full_root(&self) -> Root {
        Root::find_full(self.direction, self.api_key, self.api_version).unwrap()
    }

    /// Walks all bytes at once.
    pub fn walk(&self) -> Walked {
        self.walk_from(self.root())
    }

    pub fn walk_from(&self, root: Root) -> Walked {
        walk(root, &self.bytes, self.bytes.len(), |_, _| {
            Move::Feed(usize::MAX)
        })
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (direction, key, version) = (self.direction, self.api_key.0, self.api_version);
        write!(
            f,
            "{direction:?} {key} v{version}, {} bytes",
            self.bytes.len()
        )?;
        let start = &self.bytes[..self.bytes.len().min(500)];
        write!(f, ": {start:02x?}")
    }
}

/// Every message in every version that `kafka-protocol` writes.
pub fn one_of_each(rng: &mut Rng) -> Vec<Sample> {
    one_of(|_| true, rng)
}

/// All requests that `kafka-protocol` has; their responses follow from them.
macro_rules! requests {
    ($($request:ident;)*) => {
        /// The messages of some APIs in every version that `kafka-protocol` writes.
        pub fn one_of(is_wanted: impl Fn(ApiKey) -> bool, rng: &mut Rng) -> Vec<Sample> {
            let mut all = Vec::new();
            $(if is_wanted(ApiKey(messages::$request::KEY)) {
                add::<messages::$request>(&mut all, rng);
            })*
            all
        }
    };
}

requests! {
    ProduceRequest; FetchRequest; ListOffsetsRequest; MetadataRequest; OffsetCommitRequest;
    OffsetFetchRequest; FindCoordinatorRequest; JoinGroupRequest; HeartbeatRequest;
    LeaveGroupRequest; SyncGroupRequest; DescribeGroupsRequest; ListGroupsRequest;
    SaslHandshakeRequest; ApiVersionsRequest; CreateTopicsRequest; DeleteTopicsRequest;
    DeleteRecordsRequest; InitProducerIdRequest; OffsetForLeaderEpochRequest;
    AddPartitionsToTxnRequest; AddOffsetsToTxnRequest; EndTxnRequest; WriteTxnMarkersRequest;
    TxnOffsetCommitRequest; DescribeAclsRequest; CreateAclsRequest; DeleteAclsRequest;
    DescribeConfigsRequest; AlterConfigsRequest; AlterReplicaLogDirsRequest; DescribeLogDirsRequest;
    SaslAuthenticateRequest; CreatePartitionsRequest; CreateDelegationTokenRequest;
    RenewDelegationTokenRequest; ExpireDelegationTokenRequest; DescribeDelegationTokenRequest;
    DeleteGroupsRequest; ElectLeadersRequest; IncrementalAlterConfigsRequest;
    AlterPartitionReassignmentsRequest; ListPartitionReassignmentsRequest; OffsetDeleteRequest;
    DescribeClientQuotasRequest; AlterClientQuotasRequest; DescribeUserScramCredentialsRequest;
    AlterUserScramCredentialsRequest; VoteRequest; BeginQuorumEpochRequest; EndQuorumEpochRequest;
    DescribeQuorumRequest; AlterPartitionRequest; UpdateFeaturesRequest; EnvelopeRequest;
    FetchSnapshotRequest; DescribeClusterRequest; DescribeProducersRequest;
    BrokerRegistrationRequest; BrokerHeartbeatRequest; UnregisterBrokerRequest;
    DescribeTransactionsRequest; ListTransactionsRequest; AllocateProducerIdsRequest;
    ConsumerGroupHeartbeatRequest; ConsumerGroupDescribeRequest; ControllerRegistrationRequest;
    GetTelemetrySubscriptionsRequest; PushTelemetryRequest; AssignReplicasToDirsRequest;
    ListConfigResourcesRequest; DescribeTopicPartitionsRequest; ShareGroupHeartbeatRequest;
    ShareGroupDescribeRequest; ShareFetchRequest; ShareAcknowledgeRequest; AddRaftVoterRequest;
    RemoveRaftVoterRequest; UpdateRaftVoterRequest; InitializeShareGroupStateRequest;
    ReadShareGroupStateRequest; WriteShareGroupStateRequest; DeleteShareGroupStateRequest;
    ReadShareGroupStateSummaryRequest; DescribeShareGroupOffsetsRequest;
    AlterShareGroupOffsetsRequest; DeleteShareGroupOffsetsRequest;
}

fn add<M: Request + fmt::Debug>(all: &mut Vec<Sample>, rng: &mut Rng)
where
    M::Response: fmt::Debug,
{
    let key = ApiKey(M::KEY);
    for version in M::VERSIONS.min..=M::VERSIONS.max {
        all.push(sample::<M>(Direction::Request, key, version, rng));
    }
    let versions = M::Response::VERSIONS;
    for version in versions.min..=versions.max {
        all.push(sample::<M::Response>(
            Direction::Response,
            key,
            version,
            rng,
        ));
    }
}

/// Whether a version of `api_key` has compact lengths and tagged fields.
pub fn is_flexible(api_key: ApiKey, api_version: i16) -> bool {
    let schema = Schema::try_from(api_key.0).unwrap();
    schema.request_header_version(api_version) == 2
}

fn sample<M: Encodable + Decodable + HeaderVersion + fmt::Debug>(
    direction: Direction,
    api_key: ApiKey,
    api_version: i16,
    rng: &mut Rng,
) -> Sample {
    let flexible = is_flexible(api_key, api_version);
    let (message, mut said) = loop {
        let message = dictate::<M>(api_version, flexible, rng);
        let said = printed::message(&format!("{message:?}"));
        let no_null = NO_NULL.iter().filter(|(asked, key, versions, _)| {
            (*asked, *key) == (direction, api_key.0) && versions.contains(&api_version)
        });
        if no_null.clone().all(|(.., name)| !said.has_null(name)) {
            break (message, said);
        }
    };
    let mut bytes = Vec::new();
    // Of an ApiVersions response the header has none.
    let has_tags = flexible && M::header_version(api_version) > 0;
    if has_tags && rng.u8(..) < 50 {
        // Tag 0 is known in bodies, but not in headers; then one with long varints.
        bytes.extend(*b"\x02\0\x02ab\x80\x80\x80\0\x81\x80\x80\x80\0c");
        let unknown = [(0, b"ab".to_vec()), (0, b"c".to_vec())];
        said.unknown.splice(0..0, unknown);
    } else if has_tags {
        bytes.push(0);
    }
    message.encode(&mut bytes, api_version).unwrap();
    Sample {
        direction,
        api_key,
        api_version,
        flexible,
        bytes,
        said,
    }
}

/// What may be null in some versions: `kafka-protocol` reads and writes a null in these too, where
/// Kafka's own classes refuse it.
const NO_NULL: [(Direction, i16, RangeInclusive<i16>, &str); 7] = [
    (Direction::Request, 3, 0..=0, "topics"),
    (Direction::Request, 3, 0..=9, "name"),
    (Direction::Response, 3, 0..=11, "name"),
    (Direction::Request, 9, 0..=1, "topics"),
    (Direction::Response, 11, 0..=6, "protocolname"),
    (Direction::Response, 20, 0..=5, "name"),
    (Direction::Response, 78, 1..=1, "records"),
];
