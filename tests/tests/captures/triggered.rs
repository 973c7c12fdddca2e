//! An error code that `kafka-protocol` does not know comes back: a second later there is a capture, which
//! Wireshark reads as a connection and `klamp decode` field by field.

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{ApiVersionsRequest, FetchRequest, MetadataRequest, ProduceRequest};
use kafka_protocol::protocol::Request;
use klamp_tests::captures::{decoded, exchanges};
use klamp_tests::klamp::Klamp;
use klamp_tests::mock::MockKafka;
use klamp_tests::peer::Client;
use klamp_tests::records::{self, FETCH, PRODUCE, topic_name};
use klamp_tests::{place, tshark};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How soon an operator finds what has just gone wrong.
const SOON: Duration = Duration::from_secs(1);

/// What a client asks for, as key and version, in order: what it does first, and the Produce that fails.
struct Asked(Vec<(i16, i16)>);

/// In which the client asks.
const METADATA: i16 = 9;

/// A client that asks the mock cluster for this and that, in the end for a Produce that fails with this
/// code; and the capture of that.
fn capture_of(code: i16) -> (Asked, Value, PathBuf) {
    let address = place::free_address();
    let mock = MockKafka::start(address);
    mock.create_topic("orders", 1);
    let klamp = Klamp::between(&[(address, mock.address())], &[]);
    let mut client = Client::connect(klamp.address()).named("order-service");
    let topic = MetadataRequestTopic::default().with_name(Some(topic_name("orders")));
    client.call(2, &ApiVersionsRequest::default());
    client.call(
        METADATA,
        &MetadataRequest::default().with_topics(Some(vec![topic])),
    );
    let answer = client.call(PRODUCE, &records::produce("orders", -1, b"good"));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    let answer = client.call(FETCH, &records::fetch("orders"));
    assert_eq!(records::fetched(&answer), [b"good"]);
    assert!(klamp.captures().is_empty(), "nothing has gone wrong yet");

    mock.fail_produce_with(code);
    let answer = client.call(PRODUCE, &records::produce("orders", -1, b"bad"));
    let came = Instant::now();
    assert_eq!(answer.responses[0].partition_responses[0].error_code, code);
    let capture = klamp.captured(SOON, "of the code", |_| true);
    let file = klamp.download(&capture);
    assert!(came.elapsed() < SOON, "after {:?}", came.elapsed());
    let local = client.stream().local_addr().expect("it is connected");
    assert_eq!(capture["client"], local.to_string());
    assert_eq!(capture["client_id"], "order-service");
    let asked = vec![
        (ApiVersionsRequest::KEY, 2),
        (MetadataRequest::KEY, METADATA),
        (ProduceRequest::KEY, PRODUCE),
        (FetchRequest::KEY, FETCH),
        (ProduceRequest::KEY, PRODUCE),
    ];
    klamp.stop();
    (Asked(asked), capture, file)
}

/// A TCP connection as there might have been one, of which nothing is missing, and each request in it
/// under the key and version it was sent with.
#[track_caller]
fn assert_wireshark_follows(file: &Path, asked: &Asked) -> Vec<tshark::Packet> {
    let odd = "tcp.analysis.flags || _ws.malformed && !kafka || tcp.checksum.status == 0";
    let odd = tshark::packets(file, odd, &["frame.number", "frame.comment"]);
    assert!(odd.is_empty(), "{odd:?}");
    let fields = [
        "tcp.flags.syn",
        "tcp.flags.ack",
        "tcp.srcport",
        "tcp.dstport",
        "tcp.seq",
        "tcp.len",
        "frame.time_epoch",
    ];
    let packets = tshark::packets(file, "", &fields);
    let handshake: Vec<_> = packets[..3]
        .iter()
        .map(|packet| {
            let flag = |name| matches!(packet.first(name), Some("1" | "True"));
            (flag("tcp.flags.syn"), flag("tcp.flags.ack"))
        })
        .collect();
    assert_eq!(handshake, [(true, false), (true, true), (false, true)]);
    // Each direction goes on where it was, and no packet is before the one above it.
    let mut next = [1, 1];
    for packet in &packets[3..] {
        let from_broker = usize::from(packet.number("tcp.srcport") == 9092);
        assert_eq!(packet.number("tcp.seq"), next[from_broker], "{packet:?}");
        next[from_broker] += packet.number("tcp.len");
    }
    let times = packets.iter().map(|packet| {
        let time = packet.first("frame.time_epoch").expect("each has a time");
        time.to_owned()
    });
    assert!(times.is_sorted(), "packets are in order of time");

    let fields = [
        "kafka.api_key",
        "kafka.api_version",
        "kafka.correlation_id",
        "kafka.client_id",
        "frame.comment",
        "tcp.dstport",
    ];
    let messages = tshark::packets(file, "kafka", &fields);
    assert_eq!(messages.len(), 2 * asked.0.len(), "{messages:?}");
    for (pair, (key, version)) in messages.chunks(2).zip(&asked.0) {
        let [request, response] = pair else {
            panic!("no pair");
        };
        assert_eq!(request.number("tcp.dstport"), 9092);
        assert_eq!(request.number("kafka.api_key"), i64::from(*key));
        assert_eq!(request.number("kafka.api_version"), i64::from(*version));
        assert_eq!(request.first("kafka.client_id"), Some("order-service"));
        let id = request.number("kafka.correlation_id");
        assert_eq!(response.number("kafka.correlation_id"), id);
        for message in pair {
            let comment = message.first("frame.comment").unwrap_or_default();
            let head = format!("({key}) v{version} ");
            assert!(comment.contains(&head), "{comment}");
            assert!(comment.contains(&format!("correlation id {id}")));
        }
    }
    messages
}

#[track_caller]
fn assert_a_capture_tells_all_of(code: i16, name: &str) {
    let (asked, capture, file) = capture_of(code);
    let reason = capture["reason"].as_str().expect("it has one");
    assert!(reason.contains(name), "{reason}");
    let messages = assert_wireshark_follows(&file, &asked);
    let comment = messages[9].first("frame.comment").unwrap_or_default();
    let errors = format!("errors: {name} ({code})");
    assert!(comment.contains(&errors), "{comment}");
    assert!(
        comment.contains(&format!("\ntrigger: {reason}")),
        "{comment}"
    );
    let others = messages[..9].iter();
    let mut others = others.filter_map(|message| message.first("frame.comment"));
    assert!(others.all(|comment| !comment.contains("trigger: ")));
    let trigger = &capture["trigger"];
    assert_eq!(trigger["direction"], "response");
    assert_eq!(trigger["name"], "Produce");
    assert_eq!(trigger["api_version"], PRODUCE);
    assert_eq!(trigger["correlation_id"], 5);

    let line = decoded(&file, &[]);
    let head = "\n# trigger: Produce (0) v9 response, correlation id 5\n";
    assert!(line.contains(head), "{line}");
    let last = line.lines().last().expect("it prints lines");
    for part in ["Produce v9", "\"order-service\"", "topic \"orders\""] {
        assert!(last.contains(part), "{last}");
    }
    assert!(last.ends_with(&format!("{name} ({code})")), "{last}");
    assert_eq!(
        line.lines().filter(|line| !line.starts_with('#')).count(),
        5
    );

    let text = decoded(&file, &["-v"]);
    let (_, last) = text.rsplit_once(" Produce v9, ").expect("it is the last");
    let told = format!("ErrorCode: {name} ({code})");
    for field in [
        "TransactionalId: null",
        "Acks: -1",
        "TimeoutMs: 30000",
        "TopicData: 1",
        "Name: \"orders\"",
        "PartitionData: 1",
        "Records: 7",
        "1 records",
        "producer id -1",
        "Responses: 1",
        "PartitionResponses: 1",
        "Index: 0",
        &told,
        "BaseOffset: ",
        "LogAppendTimeMs: ",
        "LogStartOffset: ",
        "RecordErrors: []",
        "ErrorMessage: null",
        "ThrottleTimeMs: 0",
    ] {
        assert!(last.contains(field), "no {field} in {last}");
    }

    let all = exchanges(&file, &[]);
    assert_eq!(all.len(), 5);
    let last = &all[4];
    let header = &last["requestHeader"];
    assert_eq!(header["requestApiKey"], 0);
    assert_eq!(header["requestApiVersion"], 9);
    assert_eq!(header["clientId"], "order-service");
    let asked = &last["request"];
    assert_eq!(asked["acks"], -1);
    assert_eq!(asked["topicData"][0]["name"], "orders");
    let partition = &last["response"]["responses"][0]["partitionResponses"][0];
    assert_eq!(partition["errorCode"], code);
    let names: Vec<_> = partition.as_object().expect("fields").keys().collect();
    assert!(
        names.iter().any(|name| *name == "logStartOffset"),
        "{names:?}"
    );
    assert!(last["totalTimeMs"].as_f64().is_some_and(|ms| ms > 0.0));
}

#[test]
fn a_code_that_nobody_names_is_captured_with_all_that_was_said() {
    assert_a_capture_tells_all_of(250, "UNNAMED_250");
}

#[test]
fn a_code_that_the_library_lacks_is_captured_under_its_name() {
    assert_a_capture_tells_all_of(135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED");
}
