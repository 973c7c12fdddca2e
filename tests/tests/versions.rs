//! What a client learns of a real broker's versions through klamp: what `kafka-protocol` can encode
//! of what the broker offers, and everything else as the broker told it.
//!
//! Answers are compared as bytes, around the rows; the trap is to compare what a library decodes, as
//! it drops what it does not know. The expected rows come from `kafka-protocol`'s message types.

use kafka_protocol::messages::{self, ApiKey, ApiVersionsRequest};
use kafka_protocol::protocol::{Message, Request, StrBytes, VersionRange};
use klamp_tests::kafka::{CLUSTER_ID, Kafka, V4_3_1, V4_4_0};
use klamp_tests::klamp::{self, Klamp};
use klamp_tests::peer::Client;
use klamp_tests::{place, wire};
use serde_json::Value;
use std::net::SocketAddr;

const API_VERSIONS: i16 = 18;
/// Not in `kafka-protocol` 0.18: StreamsGroupHeartbeat and StreamsGroupDescribe.
const WITHOUT_SCHEMA: [i16; 2] = [88, 89];

#[test]
fn each_row_ends_where_the_broker_or_our_schema_ends() {
    let broker = Kafka::shared(V4_3_1).broker();
    let klamp = Klamp::start(broker.upstream);
    for version in [0, 3, 4] {
        let (direct, through) = both(broker.upstream, klamp.address(), &asking(version));
        let (direct, through) = (
            Answer::read(version, &direct),
            Answer::read(version, &through),
        );
        assert_clamped(version, &direct, &through);
    }
    klamp.stop();
}

#[test]
fn version_5_is_answered_by_the_broker_and_clamped_like_the_others() {
    let broker = Kafka::shared(V4_4_0).broker();
    let klamp = Klamp::start(broker.upstream);
    for (cluster_id, node_id) in [(None, -1), (Some(CLUSTER_ID), broker.node_id)] {
        let asking = asking_5(cluster_id, node_id);
        let (direct, through) = both(broker.upstream, klamp.address(), &asking);
        let (direct, through) = (Answer::read(5, &direct), Answer::read(5, &through));
        assert_clamped(5, &direct, &through);
    }
    klamp.stop();
}

#[test]
fn a_wrong_cluster_id_gets_the_brokers_error_129_as_it_is() {
    let broker = Kafka::shared(V4_4_0).broker();
    let klamp = Klamp::start(broker.upstream);
    let asking = asking_5(Some("another-cluster-altogether"), broker.node_id);
    let (direct, through) = both(broker.upstream, klamp.address(), &asking);
    assert_eq!(Answer::read(5, &direct).error, 129);
    assert_eq!(through, direct);
    klamp.scrape_until("error 129 is counted by its name", |scrape| {
        let labels = [
            ("api_key", "ApiVersions"),
            ("error", "REBOOTSTRAP_REQUIRED"),
        ];
        scrape.sum("klamp_response_error_codes_total", &labels) == 1.0
    });
    klamp.stop();
}

#[test]
fn versions_that_nobody_knows_get_version_0_error_35_and_one_row() {
    let broker = Kafka::shared(V4_4_0).broker();
    let klamp = Klamp::start(broker.upstream);
    for version in [127, -1] {
        let mut client = Client::connect(klamp.address());
        // Whatever follows the header belongs to a version that is not known.
        client.send_bytes(&wire::flexible_request(
            API_VERSIONS,
            version,
            77,
            "new",
            b"anything",
        ));
        let payload = client.read_frame();
        assert_eq!(wire::response_correlation_id(&payload), 77);
        let answer = Answer::read(0, &payload);
        assert_eq!(answer.error, 35);
        // The versions that klamp passes on: one more than kafka-protocol has.
        assert_eq!(answer.rows, [(API_VERSIONS, 0, 5)]);
        assert!(answer.tail.is_empty());
        // The client asks again on the same connection, and is answered by the broker (KIP-511).
        client.send_bytes(&asking(3));
        let answer = Answer::read(3, &client.read_frame());
        assert_eq!(answer.error, 0);
        assert!(answer.rows.len() > 20);
    }
    klamp.stop();
}

#[test]
fn nothing_is_touched_where_the_clamp_is_off() {
    let broker = Kafka::shared(V4_4_0).broker();
    let klamp = Klamp::start_with(broker.upstream, &["--clamp", "off"]);
    let mut requests = vec![
        asking_5(None, -1),
        asking_5(Some("another-cluster-altogether"), 7),
        wire::flexible_request(API_VERSIONS, 127, 1, "new", b"anything"),
    ];
    requests.extend([0, 1, 2, 3, 4].map(asking));
    for asking in requests {
        let (direct, through) = both(broker.upstream, klamp.address(), &asking);
        assert_eq!(through, direct);
    }
    klamp.stop();
}

#[test]
fn nothing_that_the_newest_broker_has_is_hidden_where_klamp_only_inspects() {
    let broker = Kafka::shared(V4_4_0).broker();
    let klamp = Klamp::start_with(broker.upstream, &["--clamp", "inspect"]);
    for asking in [0, 3, 4]
        .map(asking)
        .into_iter()
        .chain([asking_5(None, -1)])
    {
        let (direct, through) = both(broker.upstream, klamp.address(), &asking);
        assert_eq!(through, direct);
    }
    let mut client = Client::connect(klamp.address());
    client.send_bytes(&asking(3));
    client.read_frame();
    let scrape = klamp.scrape_until("the table is learned", |scrape| {
        scrape.sum("klamp_version_tables", &[]) == 1.0
    });
    for family in ["klamp_hidden_api_keys", "klamp_broker_ahead_versions"] {
        assert_eq!(scrape.sum(family, &[]), 0.0, "{family}");
    }
    klamp.stop();
}

#[test]
fn what_the_broker_is_ahead_by_is_told_on_the_command_line_and_in_metrics() {
    let broker = Kafka::shared(V4_3_1).broker();
    let (code, out, err) = klamp::run(&["versions", &broker.direct.to_string(), "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let told: Value = serde_json::from_str(&out).expect("--json prints JSON");
    let rows = told["rows"].as_array().expect("rows are an array");
    let mut client = Client::connect(broker.direct);
    let offered = Answer::read(3, &{
        client.send_bytes(&asking(3));
        client.read_frame()
    });
    for (key, min, max) in &offered.rows {
        let row = rows.iter().find(|row| row["api_key"] == *key);
        let row = row.unwrap_or_else(|| panic!("key {key} is not told:\n{out}"));
        assert_eq!(
            (&row["broker"]["min"], &row["broker"]["max"]),
            (&(*min).into(), &(*max).into())
        );
        let own = ours(*key);
        assert_eq!(
            row["ours"]["max"].as_i64(),
            own.map(|own| own.max.into()),
            "{row}"
        );
    }
    let ahead: Vec<&Value> = rows
        .iter()
        .filter(|row| row["ahead"].as_u64() > Some(0))
        .collect();
    assert!(!ahead.is_empty(), "{out}");
    for key in WITHOUT_SCHEMA {
        assert!(
            ahead.iter().any(|row| row["api_key"] == key),
            "{key}:\n{out}"
        );
    }

    let klamp = Klamp::start(broker.upstream);
    let mut client = Client::connect(klamp.address());
    client.send_bytes(&asking(3));
    client.read_frame();
    let scrape = klamp.scrape_until("the table is learned", |scrape| {
        scrape.sum("klamp_version_tables", &[]) == 1.0
    });
    for row in ahead {
        let label = row["name"]
            .as_str()
            .map_or_else(|| row["api_key"].to_string(), str::to_owned);
        let ahead = scrape.get("klamp_broker_ahead_versions", &[("api_key", &label)]);
        assert_eq!(ahead, row["ahead"].as_f64(), "{label}");
    }
    for key in WITHOUT_SCHEMA {
        let row = rows
            .iter()
            .find(|row| row["api_key"] == key)
            .expect("asserted above");
        let label = row["name"]
            .as_str()
            .map_or_else(|| key.to_string(), str::to_owned);
        let hidden = scrape.get("klamp_hidden_api_keys", &[("api_key", &label)]);
        assert_eq!(hidden, Some(1.0), "{label}");
    }
    let pages = klamp.debug_page("/versions");
    assert!(pages.to_string().contains("no schema"), "{pages}");
    klamp.stop();
}

#[test]
fn the_table_is_printed_for_people_too() {
    let broker = Kafka::shared(V4_3_1).broker();
    let (code, out, err) = klamp::run(&["versions", &broker.direct.to_string()]);
    assert_eq!(code, Some(0), "{err}");
    let row = out
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some("Metadata"));
    let row = row.unwrap_or_else(|| panic!("no row for Metadata:\n{out}"));
    assert_eq!(row.split_whitespace().next(), Some("3"));
}

#[test]
fn asking_what_is_not_there_or_not_kafka_fails_with_1_and_a_cause() {
    let nobody = place::free_address().to_string();
    let (code, out, err) = klamp::run(&["versions", &nobody]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains(&nobody) && err.contains("refused"), "{err}");

    let http = klamp_tests::peer::Upstream::start(|stream| {
        let mut client = Client::over(stream);
        client.try_send_bytes(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        client.read_to_end();
    });
    let (code, out, err) = klamp::run(&["versions", &http.address().to_string()]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.to_lowercase().contains("http"), "{err}");
}

/// An ApiVersions answer, taken apart by hand.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    error: i16,
    /// Key, min and max, in the order in which they came.
    rows: Vec<(i16, i16, i16)>,
    /// What follows the rows: throttle time and tagged fields.
    tail: Vec<u8>,
}

impl Answer {
    #[track_caller]
    fn read(version: i16, payload: &[u8]) -> Self {
        let int16 = |at: usize| i16::from_be_bytes([payload[at], payload[at + 1]]);
        // The correlation id; the header of this response never has tagged fields.
        let error = int16(4);
        let (count, mut at, row_bytes) = if version < 3 {
            let count = i32::from_be_bytes(payload[6..10].try_into().expect("four bytes"));
            (usize::try_from(count).expect("no null rows"), 10, 6)
        } else {
            // A compact array's count is one more; brokers have fewer than 127 keys.
            assert!(payload[6] > 0 && payload[6] < 0x80, "a count in one byte");
            (usize::from(payload[6]) - 1, 7, 7)
        };
        let mut rows = Vec::new();
        for _ in 0..count {
            rows.push((int16(at), int16(at + 2), int16(at + 4)));
            assert!(
                version < 3 || payload[at + 6] == 0,
                "rows have no tagged fields"
            );
            at += row_bytes;
        }
        Self {
            error,
            rows,
            tail: payload[at..].to_vec(),
        }
    }
}

#[track_caller]
fn assert_clamped(version: i16, direct: &Answer, through: &Answer) {
    assert_eq!((direct.error, through.error), (0, 0));
    let expected: Vec<_> = direct.rows.iter().filter_map(|row| clamped(*row)).collect();
    assert_eq!(through.rows, expected, "rows in version {version}");
    assert_eq!(
        through.tail, direct.tail,
        "throttle time and tags in version {version}"
    );
    assert!(
        direct.rows.len() > expected.len(),
        "the broker has no key without a schema any more"
    );
    for key in WITHOUT_SCHEMA {
        assert!(
            direct.rows.iter().any(|row| row.0 == key),
            "the broker has no key {key} any more"
        );
        assert!(
            through.rows.iter().all(|row| row.0 != key),
            "key {key} is still there"
        );
    }
}

/// What becomes of a broker's row.
fn clamped((key, min, max): (i16, i16, i16)) -> Option<(i16, i16, i16)> {
    /// With transaction.version 2, which both releases finalize, clients send no lower version.
    const NEEDED: [(i16, i16); 3] = [(0, 12), (26, 5), (28, 5)];
    let own = ours(key)?;
    let lowered = max.min(own.max);
    if NEEDED
        .iter()
        .any(|(needed, least)| *needed == key && lowered < *least)
    {
        return Some((key, min, max));
    }
    (min.max(own.min) <= lowered).then_some((key, min, lowered))
}

/// An ApiVersions request of a version that `kafka-protocol` has.
fn asking(version: i16) -> Vec<u8> {
    let mut request = ApiVersionsRequest::default();
    if version >= 3 {
        request.client_software_name = StrBytes::from_static_str("klamp-tests");
        request.client_software_version = StrBytes::from_static_str("1");
    }
    wire::request(version, 1, "versions", &request)
}

/// An ApiVersions request of version 5 (KIP-1242).
fn asking_5(cluster_id: Option<&str>, node_id: i32) -> Vec<u8> {
    let mut body = Vec::new();
    for text in [Some("klamp-tests"), Some("1"), cluster_id] {
        let text = text.map(|text| (u8::try_from(text.len() + 1).expect("short"), text));
        let (length, text) = text.unwrap_or((0, ""));
        body.push(length);
        body.extend(text.as_bytes());
    }
    body.extend(node_id.to_be_bytes());
    body.push(0);
    wire::flexible_request(API_VERSIONS, 5, 1, "versions", &body)
}

/// The answers to `request` straight from the broker and through klamp. A broker's own answer
/// changes when its cluster changes, so it is asked before and after.
#[track_caller]
fn both(direct: SocketAddr, through: SocketAddr, request: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let ask = |address| {
        let mut client = Client::connect(address);
        client.send_bytes(request);
        client.read_frame()
    };
    for _ in 0..20 {
        let (before, between, after) = (ask(direct), ask(through), ask(direct));
        if before == after {
            return (before, between);
        }
    }
    panic!("the broker does not answer the same twice");
}

/// The versions of a key that `kafka-protocol` has both messages for.
fn ours(key: i16) -> Option<VersionRange> {
    KEYS.iter()
        .find(|(own, _)| *own == key)
        .map(|(_, range)| *range)
}

const fn in_common<R: Request>() -> (i16, VersionRange) {
    let (request, response) = (R::VERSIONS, <R::Response as Message>::VERSIONS);
    let min = if request.min > response.min {
        request.min
    } else {
        response.min
    };
    let max = if request.max < response.max {
        request.max
    } else {
        response.max
    };
    (R::KEY, VersionRange { min, max })
}

macro_rules! keys {
    ($($request:ident)*) => { &[$(in_common::<messages::$request>()),*] };
}

const KEYS: &[(i16, VersionRange)] = keys! {
    ProduceRequest FetchRequest ListOffsetsRequest MetadataRequest OffsetCommitRequest
    OffsetFetchRequest FindCoordinatorRequest JoinGroupRequest HeartbeatRequest LeaveGroupRequest
    SyncGroupRequest DescribeGroupsRequest ListGroupsRequest SaslHandshakeRequest ApiVersionsRequest
    CreateTopicsRequest DeleteTopicsRequest DeleteRecordsRequest InitProducerIdRequest
    OffsetForLeaderEpochRequest AddPartitionsToTxnRequest AddOffsetsToTxnRequest EndTxnRequest
    WriteTxnMarkersRequest TxnOffsetCommitRequest DescribeAclsRequest CreateAclsRequest
    DeleteAclsRequest DescribeConfigsRequest AlterConfigsRequest AlterReplicaLogDirsRequest
    DescribeLogDirsRequest SaslAuthenticateRequest CreatePartitionsRequest
    CreateDelegationTokenRequest RenewDelegationTokenRequest ExpireDelegationTokenRequest
    DescribeDelegationTokenRequest DeleteGroupsRequest ElectLeadersRequest
    IncrementalAlterConfigsRequest AlterPartitionReassignmentsRequest
    ListPartitionReassignmentsRequest OffsetDeleteRequest DescribeClientQuotasRequest
    AlterClientQuotasRequest DescribeUserScramCredentialsRequest AlterUserScramCredentialsRequest
    VoteRequest BeginQuorumEpochRequest EndQuorumEpochRequest DescribeQuorumRequest
    AlterPartitionRequest UpdateFeaturesRequest EnvelopeRequest FetchSnapshotRequest
    DescribeClusterRequest DescribeProducersRequest BrokerRegistrationRequest BrokerHeartbeatRequest
    UnregisterBrokerRequest DescribeTransactionsRequest ListTransactionsRequest
    AllocateProducerIdsRequest ConsumerGroupHeartbeatRequest ConsumerGroupDescribeRequest
    ControllerRegistrationRequest GetTelemetrySubscriptionsRequest PushTelemetryRequest
    AssignReplicasToDirsRequest ListConfigResourcesRequest DescribeTopicPartitionsRequest
    ShareGroupHeartbeatRequest ShareGroupDescribeRequest ShareFetchRequest ShareAcknowledgeRequest
    AddRaftVoterRequest RemoveRaftVoterRequest UpdateRaftVoterRequest
    InitializeShareGroupStateRequest ReadShareGroupStateRequest WriteShareGroupStateRequest
    DeleteShareGroupStateRequest ReadShareGroupStateSummaryRequest DescribeShareGroupOffsetsRequest
    AlterShareGroupOffsetsRequest DeleteShareGroupOffsetsRequest
};

#[test]
fn the_expectation_covers_every_key_of_kafka_protocol() {
    for key in ApiKey::iter() {
        assert!(ours(key as i16).is_some(), "{key:?}");
    }
    assert_eq!(KEYS.len(), ApiKey::iter().count());
}
