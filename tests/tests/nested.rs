//! What is deep inside of answers is counted under its name: errors that Kafka's own client provokes
//! in most of the APIs that it has, the groups that came with Kafka 4 (streams and share), and codes
//! that `kafka-protocol` does not know.
//!
//! The trap: an error read from the wrong place is a number too, and most numbers below 140 have a
//! name. So a pair that nobody provoked fails the test as a missing one does.

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{ApiVersionsRequest, DeleteGroupsRequest, DeleteGroupsResponse};
use kafka_protocol::protocol::StrBytes;
use klamp_tests::kafka::{Kafka, V4_4_0};
use klamp_tests::klamp::Klamp;
use klamp_tests::peer::{Client, Upstream};
use klamp_tests::scrape::Scrape;
use klamp_tests::{java, place, wait, wire};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

/// An API and an error in its answers.
type Pair = (&'static str, &'static str);

/// What `NestedErrors.java` provokes, in the order in which its client tells it; each once.
#[rustfmt::skip]
const TOLD: [Pair; 60] = [
    ("CreateTopics", "TOPIC_ALREADY_EXISTS"),
    ("CreateTopics", "INVALID_PARTITIONS"),
    ("CreateTopics", "INVALID_REPLICATION_FACTOR"),
    ("CreateTopics", "INVALID_REPLICA_ASSIGNMENT"),
    ("CreateTopics", "INVALID_TOPIC_EXCEPTION"),
    ("CreateTopics", "INVALID_CONFIG"),
    ("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("DeleteTopics", "UNKNOWN_TOPIC_ID"),
    ("CreatePartitions", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("CreatePartitions", "INVALID_PARTITIONS"),
    ("DescribeTopicPartitions", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("Metadata", "UNKNOWN_TOPIC_ID"),
    ("ElectLeaders", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("ElectLeaders", "ELECTION_NOT_NEEDED"),
    ("AlterPartitionReassignments", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("AlterPartitionReassignments", "INVALID_REPLICA_ASSIGNMENT"),
    ("AlterPartitionReassignments", "NO_REASSIGNMENT_IN_PROGRESS"),
    ("DeleteRecords", "OFFSET_OUT_OF_RANGE"),
    ("DescribeConfigs", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("IncrementalAlterConfigs", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("IncrementalAlterConfigs", "INVALID_CONFIG"),
    ("DescribeUserScramCredentials", "RESOURCE_NOT_FOUND"),
    ("AlterUserScramCredentials", "RESOURCE_NOT_FOUND"),
    ("AlterUserScramCredentials", "UNACCEPTABLE_CREDENTIAL"),
    ("AlterClientQuotas", "INVALID_REQUEST"),
    ("CreateDelegationToken", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
    ("RenewDelegationToken", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
    ("ExpireDelegationToken", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
    ("DescribeDelegationToken", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
    ("CreateAcls", "SECURITY_DISABLED"),
    ("DescribeAcls", "SECURITY_DISABLED"),
    ("DeleteAcls", "SECURITY_DISABLED"),
    ("UpdateFeatures", "INVALID_UPDATE_VERSION"),
    ("UnregisterBroker", "BROKER_ID_NOT_REGISTERED"),
    ("UnregisterController", "CONTROLLER_ID_NOT_REGISTERED"),
    ("AlterReplicaLogDirs", "LOG_DIR_NOT_FOUND"),
    ("AddRaftVoter", "UNSUPPORTED_VERSION"),
    ("RemoveRaftVoter", "UNSUPPORTED_VERSION"),
    ("ConsumerGroupDescribe", "GROUP_ID_NOT_FOUND"),
    ("ShareGroupDescribe", "GROUP_ID_NOT_FOUND"),
    ("StreamsGroupDescribe", "GROUP_ID_NOT_FOUND"),
    ("DeleteGroups", "GROUP_ID_NOT_FOUND"),
    ("OffsetDelete", "GROUP_ID_NOT_FOUND"),
    ("DeleteShareGroupOffsets", "GROUP_ID_NOT_FOUND"),
    ("AlterShareGroupOffsets", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("DeleteGroups", "NON_EMPTY_GROUP"),
    ("OffsetDelete", "GROUP_SUBSCRIBED_TO_TOPIC"),
    ("OffsetCommit", "UNKNOWN_MEMBER_ID"),
    ("LeaveGroup", "UNKNOWN_MEMBER_ID"),
    ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL"),
    ("JoinGroup", "INVALID_SESSION_TIMEOUT"),
    ("ConsumerGroupHeartbeat", "UNSUPPORTED_ASSIGNOR"),
    ("Produce", "MESSAGE_TOO_LARGE"),
    ("Produce", "INVALID_RECORD"),
    ("Produce", "INVALID_TIMESTAMP"),
    ("DescribeTransactions", "TRANSACTIONAL_ID_NOT_FOUND"),
    ("EndTxn", "PRODUCER_FENCED"),
    ("WriteTxnMarkers", "INVALID_PRODUCER_EPOCH"),
    ("Produce", "UNKNOWN_TOPIC_ID"),
];

/// What the client provokes as well and keeps to itself: it tries again, asks otherwise, or makes
/// something of its own of it.
#[rustfmt::skip]
const KEPT: [Pair; 12] = [
    ("DeleteRecords", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("DescribeGroups", "GROUP_ID_NOT_FOUND"),
    ("DescribeProducers", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("Fetch", "OFFSET_OUT_OF_RANGE"),
    ("Fetch", "UNKNOWN_TOPIC_ID"),
    ("Fetch", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("InitProducerId", "INVALID_TRANSACTION_TIMEOUT"),
    ("JoinGroup", "MEMBER_ID_REQUIRED"),
    ("ListOffsets", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("Metadata", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("OffsetForLeaderEpoch", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("TxnOffsetCommit", "UNKNOWN_MEMBER_ID"),
];

/// What a broker says while it is not ready yet, to whatever it is asked.
const PASSING: [&str; 8] = [
    "CONCURRENT_TRANSACTIONS",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "FETCH_SESSION_TOPIC_ID_ERROR",
    "LEADER_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "NOT_LEADER_OR_FOLLOWER",
    "REBALANCE_IN_PROGRESS",
];

/// A broker of the newest release and a klamp that only looks on, for clients of both tests.
struct Front {
    _kafka: Kafka,
    klamp: Klamp,
}

impl Front {
    fn shared() -> &'static Self {
        static FRONT: OnceLock<Front> = OnceLock::new();
        FRONT.get_or_init(|| {
            let quick = [
                ("group.streams.initial.rebalance.delay.ms", "0"),
                ("group.streams.min.heartbeat.interval.ms", "200"),
                ("group.streams.heartbeat.interval.ms", "200"),
                ("group.share.min.heartbeat.interval.ms", "200"),
                ("group.share.heartbeat.interval.ms", "200"),
                // With it the broker asks for descriptions of topologies, else nobody sends them.
                (
                    "group.streams.topology.description.plugin.class",
                    "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin",
                ),
            ];
            let kafka = Kafka::start_with(V4_4_0, 1, &quick);
            let broker = kafka.broker();
            let route = [(broker.klamp, broker.upstream)];
            let klamp = Klamp::between(&route, &["--clamp", "inspect"]);
            Self {
                _kafka: kafka,
                klamp,
            }
        })
    }

    #[track_caller]
    fn program(&self, file: &str, arguments: &[&str]) -> String {
        let bootstrap = self.klamp.address().to_string();
        java::program(V4_4_0, file, &[&[&*bootstrap], arguments].concat())
    }

    /// Whatever klamp has seen it has understood, and found nothing to warn of.
    #[track_caller]
    fn has_understood(&self, scrape: &Scrape) {
        for name in [
            "klamp_opaque_frames_total",
            "klamp_frames_rejected_total",
            "klamp_correlation_mismatches_total",
            "klamp_unknown_api_keys_total",
            "klamp_unnamed_error_codes_total",
            "klamp_foreign_addresses_total",
            "klamp_hidden_api_keys",
            "klamp_broker_ahead_versions",
        ] {
            assert_eq!(scrape.sum(name, &[]), 0.0, "{name}");
        }
        let unread = [("outcome", "opaque")];
        assert_eq!(scrape.sum("klamp_responses_total", &unread), 0.0);
        for (labels, _) in scrape.samples("klamp_requests_total", &[]) {
            let name = &labels["api_key"];
            let is_name = name.starts_with(|first: char| first.is_ascii_uppercase());
            assert!(is_name, "{name} is no name");
        }
        for line in self.klamp.log() {
            assert_eq!(line["level"], "INFO", "{line:#}");
        }
    }
}

#[test]
fn errors_at_any_depth_are_counted_under_the_names_that_clients_tell() {
    let front = Front::shared();
    let told = front.program("NestedErrors.java", &[]);
    let told: Vec<_> = told
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    assert_eq!(told, TOLD);

    let count = |scrape: &Scrape, (api_key, error): Pair| {
        let labels = [("api_key", api_key), ("error", error)];
        scrape.sum("klamp_response_error_codes_total", &labels)
    };
    let scrape = front.klamp.scrape_until("all are counted", |scrape| {
        TOLD.iter()
            .chain(&KEPT)
            .all(|pair| count(scrape, *pair) > 0.0)
    });
    for pair in TOLD {
        assert_eq!(count(&scrape, pair), 1.0, "{pair:?}");
    }
    let provoked: BTreeSet<Pair> = TOLD.into_iter().chain(KEPT).collect();
    for (labels, count) in scrape.samples("klamp_response_error_codes_total", &[]) {
        let (api_key, error) = (&*labels["api_key"], &*labels["error"]);
        assert!(
            error == "NONE"
                || PASSING.contains(&error)
                || count == 0.0
                || provoked.contains(&(api_key, error)),
            "nobody provoked {error} in {api_key}, counted {count} times"
        );
    }
    front.has_understood(&scrape);
}

#[test]
fn streams_groups_and_share_groups_work_and_are_named() {
    let front = Front::shared();
    let state = place::room("streams-state");
    let state = state.to_str().expect("cargo's folders are UTF-8");
    let found = front.program("NewGroups.java", &[state]);
    assert_eq!(
        found,
        "streams [be=1, not=1, be=2]
streams Stable, members 1, subtopologies 2
streams offset 3
streams offset 1
share [be, not, be]
share Stable, members 1
share lag 0
share lag 2
"
    );
    let expected = [
        "StreamsGroupHeartbeat",
        "StreamsGroupDescribe",
        "StreamsGroupTopologyDescriptionUpdate",
        "OffsetCommit",
        "OffsetFetch",
        "OffsetDelete",
        "DeleteGroups",
        "ShareGroupHeartbeat",
        "ShareGroupDescribe",
        "ShareFetch",
        "ShareAcknowledge",
        "DescribeShareGroupOffsets",
        "AlterShareGroupOffsets",
        "DeleteShareGroupOffsets",
    ];
    let scrape = front.klamp.scrape_until("all are answered", |scrape| {
        expected.iter().all(|api_key| {
            let labels = [("api_key", *api_key), ("outcome", "ok")];
            scrape.sum("klamp_responses_total", &labels) > 0.0
        })
    });
    front.has_understood(&scrape);
    shows_all_that_the_broker_has(front);
}

/// `/versions` hides nothing, and no promise of a feature is broken.
#[track_caller]
fn shows_all_that_the_broker_has(front: &Front) {
    let mut client = Client::connect(front.klamp.address());
    // From version 3 on the broker refuses clients without a name, and tells its features.
    let named = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("klamp-tests"))
        .with_client_software_version(StrBytes::from_static_str("1"));
    assert_eq!(client.call(4, &named).error_code, 0);
    let told = || {
        let page = front.klamp.debug_page("/versions");
        page["tables"]
            .as_array()
            .and_then(|all| all.first().cloned())
    };
    let table = wait::until(Duration::from_secs(30), "a table is told", told);
    for feature in ["streams.version", "share.version"] {
        let mut finalized = table["finalized_features"].as_array().into_iter().flatten();
        assert!(finalized.any(|it| it["name"] == feature), "{table:#}");
    }
    assert_eq!(table["broken_promises"], serde_json::json!([]));
    let rows = table["rows"].as_array().expect("an array");
    let offered: Vec<_> = rows.iter().filter(|row| !row["broker"].is_null()).collect();
    for key in [88, 89, 93, 94] {
        assert!(offered.iter().any(|row| row["api_key"] == key), "{key}");
    }
    for row in offered {
        assert_eq!(row["fate"], "kept", "{row}");
        assert_eq!(row["shown"], row["broker"], "{row}");
    }
}

#[test]
fn codes_that_kafka_protocol_does_not_know_have_kafkas_names() {
    const DELETE_GROUPS: i16 = 2;
    let newer = [
        (134, "GROUP_DELETION_FAILED"),
        (135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"),
        (136, "CONTROLLER_ID_NOT_REGISTERED"),
    ];
    let nameless = (250, "UNNAMED_250");
    let codes = [134, 135, 136, 250];
    let upstream = Upstream::start(move |stream| {
        let mut broker = Client::over(stream);
        let asked = broker.read_frame();
        let results = codes.map(|code| DeletableGroupResult::default().with_error_code(code));
        let answer = DeleteGroupsResponse::default().with_results(results.to_vec());
        let id = wire::request_correlation_id(&asked);
        let answer = wire::response::<DeleteGroupsRequest>(DELETE_GROUPS, id, &answer);
        broker.send_bytes(&answer);
        broker.read_to_end();
    });
    let klamp = Klamp::start_with(upstream.address(), &["--clamp", "inspect"]);
    let mut client = Client::connect(klamp.address());
    let answer = client.call(DELETE_GROUPS, &DeleteGroupsRequest::default());
    assert_eq!(answer.results[3].error_code, 250);

    let scrape = klamp.scrape_until("the answer is counted", |scrape| {
        scrape.sum("klamp_responses_total", &[("api_key", "DeleteGroups")]) == 1.0
    });
    for (code, name) in newer.into_iter().chain([nameless]) {
        let labels = [("api_key", "DeleteGroups"), ("error", name)];
        let counted = scrape.get("klamp_response_error_codes_total", &labels);
        assert_eq!(counted, Some(1.0), "{code}");
    }
    let unnamed = scrape.samples("klamp_unnamed_error_codes_total", &[]);
    let unnamed: Vec<_> = unnamed.map(|(labels, _)| &*labels["code"]).collect();
    assert_eq!(unnamed, ["250"], "the others have names");
    drop(client);
    let told: Vec<_> = klamp
        .stop()
        .into_iter()
        .filter_map(|line| line["error_code"].as_i64())
        .collect();
    assert_eq!(told, [250], "a code with a name is not worth a line");
}
