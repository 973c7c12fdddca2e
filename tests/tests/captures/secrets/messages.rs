//! Messages that have something to hide, in every version that `kafka-protocol` encodes.

use super::broker::{Ending, Exchange, Script};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialUpsertion;
use kafka_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::describe_delegation_token_response::DescribedDelegationToken;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::fetch_snapshot_response::{PartitionSnapshot, TopicSnapshot};
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    self, ApiVersionsRequest, SaslHandshakeRequest, SaslHandshakeResponse,
};
use kafka_protocol::protocol::{
    Encodable, HeaderVersion, Message, Request, StrBytes, encode_request_header_into_buffer,
};
use kafka_protocol::records::{
    Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use klamp_tests::needle::Needle;
use klamp_tests::records::topic_name;
use klamp_tests::wire;

/// Adds the exchange in each version in which both messages can be encoded, and where a version has
/// tagged fields once more with one that nobody knows.
fn add<R: Request>(
    all: &mut Vec<Exchange>,
    name: &'static str,
    needle: &Needle,
    request: &R,
    response: &R::Response,
) {
    let before = all.len();
    let answers = <R::Response as Message>::VERSIONS;
    for version in R::VERSIONS.min.max(answers.min)..=R::VERSIONS.max.min(answers.max) {
        let header = messages::RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_client_id(Some(StrBytes::from_static_str("app")));
        let (mut asked, mut answered) = (BytesMut::new(), BytesMut::new());
        encode_request_header_into_buffer(&mut asked, &header).expect("a header can be encoded");
        let answers_header = R::Response::header_version(version);
        let whole = request.encode(&mut asked, version).is_ok()
            && messages::ResponseHeader::default()
                .encode(&mut answered, answers_header)
                .is_ok()
            && response.encode(&mut answered, version).is_ok();
        if !whole {
            continue;
        }
        let exchange = |asked: &[u8], answered: &[u8]| Exchange {
            name,
            request: wire::frame(asked),
            response: wire::frame(answered),
            is_token: false,
        };
        all.push(exchange(&asked, &answered));
        if R::header_version(version) >= 2 {
            let tagged = |message: &[u8]| {
                let (end, rest) = message.split_last().expect("it is not empty");
                assert_eq!(*end, 0, "it ends with no tagged fields");
                let secret = needle.at("tag");
                let size = u8::try_from(secret.len()).expect("it is short");
                [rest, &[1, 100, size], secret.as_bytes()].concat()
            };
            all.push(exchange(&tagged(&asked), &tagged(&answered)));
        }
    }
    assert!(all.len() > before, "no version of {name} can be encoded");
}

fn text(needle: &Needle, place: &str) -> StrBytes {
    StrBytes::from_string(needle.at(place))
}

/// Record sets of every magic, what is none, and more than one.
fn record_sets(needle: &Needle) -> Vec<Bytes> {
    let record = Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: 7,
        producer_epoch: 1,
        timestamp_type: TimestampType::Creation,
        offset: 0,
        sequence: 5,
        timestamp: 1_700_000_000_000,
        key: Some(needle.bytes_at("key")),
        value: Some(needle.bytes_at("value")),
        headers: [(
            text(needle, "header"),
            Some(needle.bytes_at("header-value")),
        )]
        .into_iter()
        .collect(),
    };
    let mut set = BytesMut::new();
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    RecordBatchEncoder::encode(&mut set, [&record], &options).expect("a batch can be encoded");
    let batch = set.freeze();
    let old = |magic: u8| {
        let mut message = vec![0, 0, 0, 0, magic, 0];
        if magic == 1 {
            message.put_i64(1_700_000_000_000);
        }
        for part in ["key", "value"] {
            let part = needle.at(part);
            message.put_u32(u32::try_from(part.len()).expect("it is short"));
            message.put_slice(part.as_bytes());
        }
        let mut set = 0_i64.to_be_bytes().to_vec();
        set.put_slice(&wire::frame(&message));
        Bytes::from(set)
    };
    let several = [&batch[..], &batch, &old(1), &batch[..70]].concat();
    let longer = [&batch[..], needle.at("behind").repeat(5).as_bytes()].concat();
    let mut lies = batch.to_vec();
    // A batch that says to be as short as its head, or longer than the set.
    lies[8..12].copy_from_slice(&49_i32.to_be_bytes());
    let mut lies_too = batch.to_vec();
    lies_too[8..12].copy_from_slice(&0x7fff_ffff_i32.to_be_bytes());
    // What is no batch, and has the kind, the length and the attributes of one.
    let mut like = needle.at("like a batch").repeat(5).into_bytes();
    let length = u32::try_from(like.len() - 12).expect("it is short");
    like[8..12].copy_from_slice(&length.to_be_bytes());
    like[16] = 2;
    like[21..23].fill(0);
    vec![
        like.into(),
        batch,
        old(0),
        old(1),
        several.into(),
        longer.into(),
        lies.into(),
        lies_too.into(),
        needle.at("no records").repeat(20).into_bytes().into(),
    ]
}

/// Produce and Fetch, and what else carries records.
pub(super) fn with_records(needle: &Needle) -> Vec<Exchange> {
    let mut all = Vec::new();
    // (what is in a tagged field of these is not told of either, but is no record)
    let tag = Needle::new("a-tag-of-no-secret");
    for set in record_sets(needle) {
        let partition = PartitionProduceData::default().with_records(Some(set.clone()));
        let request = messages::ProduceRequest::default()
            .with_acks(-1)
            .with_topic_data(vec![
                TopicProduceData::default()
                    .with_name(topic_name("orders"))
                    .with_partition_data(vec![partition]),
            ]);
        add(&mut all, "Produce", &tag, &request, &Default::default());
        let partition = PartitionData::default().with_records(Some(set.clone()));
        let response = messages::FetchResponse::default().with_responses(vec![
            FetchableTopicResponse::default()
                .with_topic(topic_name("orders"))
                .with_partitions(vec![partition]),
        ]);
        let request = messages::FetchRequest::default();
        add(&mut all, "Fetch", &tag, &request, &response);
        let partition = messages::share_fetch_response::PartitionData::default()
            .with_records(Some(set.clone()));
        let topic = messages::share_fetch_response::ShareFetchableTopicResponse::default()
            .with_partitions(vec![partition]);
        let response = messages::ShareFetchResponse::default().with_responses(vec![topic]);
        let request = messages::ShareFetchRequest::default();
        add(&mut all, "ShareFetch", &tag, &request, &response);
        let partition = PartitionSnapshot::default().with_unaligned_records(set);
        let topic = TopicSnapshot::default().with_partitions(vec![partition]);
        let response = messages::FetchSnapshotResponse::default().with_topics(vec![topic]);
        let request = messages::FetchSnapshotRequest::default();
        add(&mut all, "FetchSnapshot", &tag, &request, &response);
    }
    all.sort_by_key(|exchange| exchange.name);
    all
}

/// All others.
pub(super) fn with_secrets(needle: &Needle) -> Vec<Exchange> {
    let mut all = Vec::new();
    let bytes = |place: &str| needle.bytes_at(place);
    let string = |place: &str| text(needle, place);
    macro_rules! add {
        ($name:literal, $request:expr, $response:expr) => {
            add(&mut all, $name, needle, &$request, &$response)
        };
    }
    sasl_and_tokens(&mut all, needle);
    let value = Some(string("value"));
    let configs =
        vec![messages::alter_configs_request::AlterableConfig::default().with_value(value.clone())];
    let resource =
        messages::alter_configs_request::AlterConfigsResource::default().with_configs(configs);
    add!(
        "AlterConfigs",
        messages::AlterConfigsRequest::default().with_resources(vec![resource]),
        messages::AlterConfigsResponse::default()
    );
    let configs = vec![
        messages::incremental_alter_configs_request::AlterableConfig::default()
            .with_value(value.clone()),
    ];
    let resource = messages::incremental_alter_configs_request::AlterConfigsResource::default()
        .with_configs(configs);
    add!(
        "IncrementalAlterConfigs",
        messages::IncrementalAlterConfigsRequest::default().with_resources(vec![resource]),
        messages::IncrementalAlterConfigsResponse::default()
    );
    let config =
        messages::create_topics_request::CreatableTopicConfig::default().with_value(value.clone());
    let topic = messages::create_topics_request::CreatableTopic::default()
        .with_name(topic_name("orders"))
        .with_configs(vec![config]);
    let answer = CreatableTopicResult::default()
        .with_name(topic_name("orders"))
        .with_configs(Some(vec![
            CreatableTopicConfigs::default().with_value(Some(string("told"))),
        ]));
    for answers in [vec![answer], Vec::new()] {
        add!(
            "CreateTopics",
            messages::CreateTopicsRequest::default().with_topics(vec![topic.clone()]),
            messages::CreateTopicsResponse::default().with_topics(answers)
        );
    }
    let synonym = DescribeConfigsSynonym::default().with_value(Some(string("synonym")));
    for synonyms in [vec![synonym], Vec::new()] {
        let config = DescribeConfigsResourceResult::default()
            .with_value(value.clone())
            .with_synonyms(synonyms);
        let result = DescribeConfigsResult::default().with_configs(vec![config]);
        add!(
            "DescribeConfigs",
            messages::DescribeConfigsRequest::default(),
            messages::DescribeConfigsResponse::default().with_results(vec![result])
        );
    }
    groups(&mut all, needle);
    add!(
        "PushTelemetry",
        messages::PushTelemetryRequest::default().with_metrics(bytes("metrics")),
        messages::PushTelemetryResponse::default()
    );
    add!(
        "Envelope",
        messages::EnvelopeRequest::default()
            .with_request_data(bytes("request"))
            .with_request_principal(Some(bytes("principal"))),
        messages::EnvelopeResponse::default().with_response_data(Some(bytes("response")))
    );
    all
}

fn sasl_and_tokens(all: &mut Vec<Exchange>, needle: &Needle) {
    let bytes = |place: &str| needle.bytes_at(place);
    macro_rules! add {
        ($name:literal, $request:expr, $response:expr) => {
            add(all, $name, needle, &$request, &$response)
        };
    }
    for (token, answer) in exchanges_of_sasl(needle) {
        add!(
            "SaslAuthenticate",
            messages::SaslAuthenticateRequest::default().with_auth_bytes(token.into()),
            messages::SaslAuthenticateResponse::default().with_auth_bytes(answer.into())
        );
    }
    add!(
        "CreateDelegationToken",
        messages::CreateDelegationTokenRequest::default(),
        messages::CreateDelegationTokenResponse::default().with_hmac(bytes("hmac"))
    );
    add!(
        "RenewDelegationToken",
        messages::RenewDelegationTokenRequest::default().with_hmac(bytes("hmac")),
        messages::RenewDelegationTokenResponse::default()
    );
    add!(
        "ExpireDelegationToken",
        messages::ExpireDelegationTokenRequest::default().with_hmac(bytes("hmac")),
        messages::ExpireDelegationTokenResponse::default()
    );
    let token = DescribedDelegationToken::default().with_hmac(bytes("hmac"));
    add!(
        "DescribeDelegationToken",
        messages::DescribeDelegationTokenRequest::default(),
        messages::DescribeDelegationTokenResponse::default().with_tokens(vec![token])
    );
    let upsertion = ScramCredentialUpsertion::default()
        .with_salt(bytes("salt"))
        .with_salted_password(bytes("password"));
    add!(
        "AlterUserScramCredentials",
        messages::AlterUserScramCredentialsRequest::default().with_upsertions(vec![upsertion]),
        messages::AlterUserScramCredentialsResponse::default()
    );
}

fn groups(all: &mut Vec<Exchange>, needle: &Needle) {
    let bytes = |place: &str| needle.bytes_at(place);
    let metadata = Some(text(needle, "metadata"));
    macro_rules! add {
        ($name:literal, $request:expr, $response:expr) => {
            add(all, $name, needle, &$request, &$response)
        };
    }
    let protocol = JoinGroupRequestProtocol::default().with_metadata(bytes("metadata"));
    let member = JoinGroupResponseMember::default().with_metadata(bytes("metadata"));
    add!(
        "JoinGroup",
        messages::JoinGroupRequest::default().with_protocols(vec![protocol]),
        messages::JoinGroupResponse::default()
            .with_protocol_name(Some("range".into()))
            .with_members(vec![member])
    );
    let assignment = SyncGroupRequestAssignment::default().with_assignment(bytes("assignment"));
    add!(
        "SyncGroup",
        messages::SyncGroupRequest::default().with_assignments(vec![assignment]),
        messages::SyncGroupResponse::default().with_assignment(bytes("assignment"))
    );
    let partition = messages::offset_commit_request::OffsetCommitRequestPartition::default()
        .with_committed_metadata(metadata.clone());
    let topic = messages::offset_commit_request::OffsetCommitRequestTopic::default()
        .with_partitions(vec![partition]);
    add!(
        "OffsetCommit",
        messages::OffsetCommitRequest::default().with_topics(vec![topic]),
        messages::OffsetCommitResponse::default()
    );
    let partition = messages::txn_offset_commit_request::TxnOffsetCommitRequestPartition::default()
        .with_committed_metadata(metadata.clone());
    let topic = messages::txn_offset_commit_request::TxnOffsetCommitRequestTopic::default()
        .with_partitions(vec![partition]);
    add!(
        "TxnOffsetCommit",
        messages::TxnOffsetCommitRequest::default().with_topics(vec![topic]),
        messages::TxnOffsetCommitResponse::default()
    );
    let partition = messages::offset_fetch_response::OffsetFetchResponsePartition::default()
        .with_metadata(metadata.clone());
    let topic = messages::offset_fetch_response::OffsetFetchResponseTopic::default()
        .with_partitions(vec![partition]);
    add!(
        "OffsetFetch",
        messages::OffsetFetchRequest::default(),
        messages::OffsetFetchResponse::default().with_topics(vec![topic])
    );
    let partition = messages::offset_fetch_response::OffsetFetchResponsePartitions::default()
        .with_metadata(metadata);
    let topic = messages::offset_fetch_response::OffsetFetchResponseTopics::default()
        .with_partitions(vec![partition]);
    let group = messages::offset_fetch_response::OffsetFetchResponseGroup::default()
        .with_topics(vec![topic]);
    add!(
        "OffsetFetch",
        messages::OffsetFetchRequest::default().with_groups(vec![Default::default()]),
        messages::OffsetFetchResponse::default().with_groups(vec![group])
    );
    let member = DescribedGroupMember::default()
        .with_member_metadata(bytes("metadata"))
        .with_member_assignment(bytes("assignment"));
    let group = DescribedGroup::default().with_members(vec![member]);
    add!(
        "DescribeGroups",
        messages::DescribeGroupsRequest::default(),
        messages::DescribeGroupsResponse::default().with_groups(vec![group])
    );
}

/// What client and broker tell each other, of PLAIN, SCRAM and OAUTHBEARER.
fn exchanges_of_sasl(needle: &Needle) -> Vec<(String, String)> {
    let secret = |place: &str| needle.at(place);
    vec![
        (format!("\0alice\0{}", secret("password")), String::new()),
        (
            format!("n,,n=alice,r={}", secret("nonce")),
            format!("r={},s={},i=4096", secret("nonce"), secret("salt")),
        ),
        (
            format!("c=biws,r={},p={}", secret("nonce"), secret("proof")),
            format!("v={}", secret("verifier")),
        ),
        (
            format!("n,,\x01auth=Bearer {}\x01\x01", secret("bearer")),
            format!("{{\"status\":\"{}\"}}", secret("status")),
        ),
    ]
}

/// Raw tokens after SaslHandshake v0.
pub(super) fn tokens(needle: &Needle) -> Vec<Script> {
    let all = exchanges_of_sasl(needle);
    let of = |name, mechanism: &'static str, tokens: &[(String, String)]| {
        let mechanism = StrBytes::from_static_str(mechanism);
        let request = SaslHandshakeRequest::default().with_mechanism(mechanism);
        let mut exchanges = Vec::new();
        let handshake = Exchange {
            name,
            request: wire::request(0, 0, "app", &request),
            response: wire::response::<SaslHandshakeRequest>(
                0,
                0,
                &SaslHandshakeResponse::default(),
            ),
            is_token: false,
        };
        exchanges.push(handshake);
        let raw = tokens.iter();
        exchanges.extend(
            raw.map(|(token, answer)| Exchange::token(name, token.as_bytes(), answer.as_bytes())),
        );
        Script::of(name, exchanges)
    };
    vec![
        of("raw PLAIN", "PLAIN", &all[..1]),
        of("raw SCRAM-SHA-256", "SCRAM-SHA-256", &all[1..3]),
        of("raw SCRAM-SHA-512", "SCRAM-SHA-512", &all[1..3]),
        of("raw OAUTHBEARER", "OAUTHBEARER", &all[3..]),
    ]
}

/// Connections that end with what cannot be read, or is not there as a whole.
pub(super) fn cut(needle: &Needle) -> Vec<Script> {
    let whole = with_secrets(needle);
    let last = whole.last().expect("there are some").clone();
    let is_of = |name: &str| {
        let of = whole.iter().find(|it| it.name == name);
        of.expect("it is there").clone()
    };
    let of = |name, ending| Script {
        name,
        exchanges: vec![last.clone()],
        ending,
    };
    let handshake = tokens(needle).swap_remove(1);
    let token = handshake.exchanges[1].clone();
    // An answer to nobody, with a secret in it; and what is no answer at all.
    let mut stray = is_of("SaslAuthenticate").response;
    stray.extend(needle.at("stray").into_bytes());
    let length = u32::try_from(stray.len() - 4).expect("it is short");
    stray[..4].copy_from_slice(&length.to_be_bytes());
    stray[4..8].copy_from_slice(&77_777_i32.to_be_bytes());
    // Of a version that klamp answers itself.
    let mut ahead = wire::request(0, 9, "app", &ApiVersionsRequest::default());
    ahead[6..8].copy_from_slice(&99_i16.to_be_bytes());
    ahead.extend(needle.at("ahead").into_bytes());
    let length = u32::try_from(ahead.len() - 4).expect("it is short");
    ahead[..4].copy_from_slice(&length.to_be_bytes());
    vec![
        of(
            "a cut AlterConfigs",
            Ending::Cut(is_of("AlterConfigs").request),
        ),
        of(
            "a cut PushTelemetry",
            Ending::Cut(is_of("PushTelemetry").request),
        ),
        of(
            "a cut SaslAuthenticate",
            Ending::Cut(is_of("SaslAuthenticate").request),
        ),
        Script {
            name: "a cut token",
            exchanges: handshake.exchanges[..1].to_vec(),
            ending: Ending::Cut(token.request),
        },
        of("an answer to nobody", Ending::Mismatch(stray)),
        of(
            "an AlterConfigs without an answer",
            Ending::Close(is_of("AlterConfigs").request),
        ),
        of(
            "an ApiVersions that klamp answers",
            Ending::AnsweredHere(ahead),
        ),
    ]
}
