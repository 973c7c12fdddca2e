//! What Wireshark sees in captures of a client that speaks only versions it knows: librdkafka 2.0.2 against
//! real brokers, every message field by field.
//!
//! The trap: Wireshark says `malformed` of what it cannot read, and nothing at all of what it does not try
//! to read. So each message must show fields of its body, with the values that were sent.

use klamp_tests::kafka::{Kafka, V4_3_1, V4_4_0, Version};
use klamp_tests::klamp::Klamp;
use klamp_tests::process::Process;
use klamp_tests::tshark::{self, Packet};
use klamp_tests::{place, wait};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(90);
const TOPIC: &str = "of-old";
const RECORDS: usize = 20;

const PRODUCE: i64 = 0;
const FETCH: i64 = 1;
const METADATA: i64 = 3;

/// The client, once it has written and read all records; its connections stay open.
fn client(bootstrap: &str, hold: &Path) -> Process {
    let mut python = Command::new("python3");
    python
        .arg(place::python_source("librdkafka.py"))
        .arg(place::old_librdkafka());
    python.args([bootstrap, TOPIC, &RECORDS.to_string()]);
    python.arg(hold);
    let room = place::room("librdkafka");
    let mut process = Process::spawn("librdkafka", python, Stdio::null(), &room, None);
    wait::until_holds(PATIENCE, "all records have been read", || {
        if let Some(status) = process.ended() {
            panic!("it ended: {status}:\n{}", process.last_words());
        }
        process.out().contains("ready")
    });
    let said = process.out();
    assert!(said.starts_with("2.0.2\nrecord 0\n"), "{said}");
    process
}

/// Captures by hand, one of each connection of the client.
fn captures(version: Version) -> Vec<PathBuf> {
    let kafka = Kafka::shared(version);
    let broker = kafka.broker();
    kafka.create_topic(TOPIC, 1);
    let klamp = Klamp::between(&[(broker.klamp, broker.upstream)], &[]);
    let hold = place::room("hold").join("go");
    let mut client = client(&klamp.address().to_string(), &hold);
    let page = klamp.debug_page("/connections");
    for connection in page["connections"].as_array().expect("it is a list") {
        let peer = connection["peer"].as_str().expect("it has a peer");
        klamp.capture_by_hand(peer.parse().expect("an address"));
    }
    let captures = klamp.captures();
    let files = captures.iter().map(|it| klamp.download(it)).collect();
    std::fs::write(&hold, "").expect("a room can be written to");
    let status = client.wait(PATIENCE);
    assert!(status.success(), "{status}:\n{}", client.last_words());
    klamp.stop();
    files
}

fn wireshark_reads_every_message_of_an_old_client(version: Version) {
    // Versions that Wireshark reads, of what this client asks for most.
    const MOST: [(i64, &str, i64); 3] = [
        (PRODUCE, "Produce", 8),
        (FETCH, "Fetch", 11),
        (METADATA, "Metadata", 9),
    ];
    let mut seen = BTreeSet::new();
    for file in captures(version) {
        let odd = "_ws.malformed || _ws.expert.severity == error || kafka.pdu_length_mismatch \
                   || tcp.analysis.flags";
        let odd = tshark::packets(&file, odd, &["frame.number", "frame.comment"]);
        assert!(odd.is_empty(), "{odd:?}");
        let fields = [
            "_ws.col.Info",
            "frame.comment",
            "kafka.api_key",
            "kafka.api_version",
            "kafka.client_id",
            "kafka.correlation_id",
            "kafka.error",
            "kafka.topic_name",
            "kafka.partition_id",
            "kafka.required_acks",
            "kafka.timeout",
            "kafka.offset",
            "kafka.min_bytes",
            "kafka.host",
            "tcp.dstport",
        ];
        for message in tshark::packets(&file, "kafka", &fields) {
            let key = message.number("kafka.api_key");
            let Some((_, name, most)) = MOST.iter().find(|(of, ..)| *of == key) else {
                continue;
            };
            let is_request = message.number("tcp.dstport") == 9092;
            let direction = if is_request { "Request" } else { "Response" };
            // (a field for the version is in requests only)
            let info = message.first("_ws.col.Info").unwrap_or_default();
            let is_this = |version: &i64| info == format!("Kafka {name} v{version} {direction}");
            let version = (0..=*most).find(is_this);
            let version = version.unwrap_or_else(|| panic!("{info}"));
            if is_request {
                assert_eq!(message.number("kafka.api_version"), version);
                assert_eq!(message.first("kafka.client_id"), Some("an-old-client"));
            }
            let comment = message.first("frame.comment").unwrap_or_default();
            let id = message.number("kafka.correlation_id");
            let direction = direction.to_lowercase();
            let head = format!("{name} ({key}) v{version} {direction}, correlation id {id}");
            assert!(comment.starts_with(&head), "{comment}");
            assert_shows_its_body(&message, key, is_request);
            seen.insert((key, is_request));
        }
    }
    let all = MOST
        .iter()
        .flat_map(|(key, ..)| [(*key, false), (*key, true)]);
    assert_eq!(seen, all.collect(), "of each there are both messages");
}

/// Fields of the body, with the values that were sent.
#[track_caller]
fn assert_shows_its_body(message: &Packet, key: i64, is_request: bool) {
    let has = |field, value: &str| {
        let all = message.all(field);
        assert!(all.contains(&value), "{field} {value}: {message:?}");
    };
    match (key, is_request) {
        (PRODUCE, true) => {
            has("kafka.required_acks", "-1");
            has("kafka.timeout", "30000");
            has("kafka.topic_name", TOPIC);
            has("kafka.partition_id", "0");
        }
        (PRODUCE, false) => {
            has("kafka.topic_name", TOPIC);
            has("kafka.partition_id", "0");
            has("kafka.error", "0");
            let offset = usize::try_from(message.number("kafka.offset"));
            assert!(offset.is_ok_and(|it| it < RECORDS), "{message:?}");
        }
        (FETCH, true) => {
            has("kafka.min_bytes", "1");
            has("kafka.topic_name", TOPIC);
            has("kafka.partition_id", "0");
        }
        (FETCH, false) => {
            has("kafka.topic_name", TOPIC);
            has("kafka.error", "0");
        }
        (METADATA, false) => {
            has("kafka.host", "127.0.0.1");
            has("kafka.topic_name", TOPIC);
            has("kafka.partition_id", "0");
            has("kafka.error", "0");
        }
        _ => has("kafka.topic_name", TOPIC),
    }
}

#[test]
fn wireshark_reads_every_message_of_an_old_client_of_4_3_1() {
    wireshark_reads_every_message_of_an_old_client(V4_3_1);
}

#[test]
fn wireshark_reads_every_message_of_an_old_client_of_4_4_0() {
    wireshark_reads_every_message_of_an_old_client(V4_4_0);
}
