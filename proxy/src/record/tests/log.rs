//! What the log says of made-up observations: once, at a limited rate, and with all that names the
//! thing.

use super::*;
use klamp_codec::layout::{Root, WalkError, Walker};
use klamp_codec::observation::{OpaqueReason as Why, VerdictCause};
use klamp_codec::session::Clamp;
use klamp_codec::versions::{Feature, FinalizedFeatures, Offer};
use std::io;
use std::sync::Mutex;

/// What is logged while `act` runs.
fn logged(act: impl FnOnce()) -> String {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer({
            let lines = lines.clone();
            move || Lines(lines.clone())
        })
        .finish();
    tracing::subscriber::with_default(subscriber, act);
    String::from_utf8(lines.lock().unwrap().clone()).unwrap()
}

struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn line<'a>(log: &'a str, with: &str) -> &'a str {
    let mut found = log.lines().filter(|line| line.contains(with));
    let line = found
        .next()
        .unwrap_or_else(|| panic!("no line with {with:?} in:\n{log}"));
    assert_eq!(found.next(), None, "twice: {with:?}");
    line
}

#[test]
fn an_unnamed_error_code_is_logged_once_for_each_connection_with_all_that_names_it() {
    let rig = Rig::new();
    let log = logged(|| {
        let mut record = rig.record();
        let software = Observation::Software {
            name: b"librdkafka",
            version: b"2.5.0",
        };
        record.sees(Request, software);
        record.request(PRODUCE_9, Some(b"my app\n"));
        record.response(PRODUCE_9, 250);
        record.request(PRODUCE_9, Some(b"my app\n"));
        record.response(PRODUCE_9, 250);
    });
    let line = line(&log, "error code that no library names");
    for told in [
        r"client_id=my app\n",
        "software=librdkafka 2.5.0",
        "api_key=Produce",
        "api_version=9",
        "error_code=250",
        r#"upstream=broker:9092"#,
    ] {
        assert!(line.contains(told), "{told} is not in {line}");
    }
    let error = r#"klamp_response_error_codes_total{api_key="Produce",error="UNNAMED_250"}"#;
    assert_eq!(rig.metric(error), 4.0);
}

/// The fault of a Metadata answer that ends in the middle of its throttle time.
fn short() -> WalkError {
    let root = Root::find(Response, ApiKey::METADATA, 12).unwrap();
    Walker::new(root, 3).feed(&[0; 3], &mut |_| {}).unwrap_err()
}

#[test]
fn bytes_behind_a_message_are_logged_once_for_its_key_and_version() {
    let rig = Rig::new();
    let log = logged(|| {
        let mut record = rig.record();
        for exchange in [exchange(3, 12), exchange(3, 12), exchange(3, 9)] {
            record.sees(
                Response,
                Observation::Trailing {
                    exchange,
                    bytes: 23,
                },
            );
        }
    });
    let lines = log.lines().filter(|line| line.contains("has ended"));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 2, "{log}");
    for told in [
        "INFO",
        "direction=\"response\"",
        "api_key=Metadata",
        "api_version=12",
        "bytes=23",
    ] {
        assert!(lines[0].contains(told), "{told} is not in {}", lines[0]);
    }
}

#[test]
fn an_opaque_frame_is_counted_each_time_and_logged_once_for_its_key_and_version() {
    let rig = Rig::new();
    let log = logged(|| {
        for _ in 0..3 {
            let mut record = rig.record();
            for (exchange, reason) in [
                (exchange(9999, 0), Why::UnknownKey),
                (exchange(0, 99), Why::UnknownVersion),
                (exchange(3, 12), Why::Malformed),
                (exchange(12, 4), Why::NoLayout),
            ] {
                let fault = Some(short()).filter(|_| reason == Why::Malformed);
                let opaque = Observation::Opaque {
                    exchange,
                    reason,
                    fault,
                };
                record.sees(Request, opaque);
            }
        }
    });
    let layout = line(&log, "does not fit its layout");
    assert!(
        layout.contains("WARN")
            && layout.contains("api_key=Metadata")
            && layout.contains("offset=1"),
        "{layout}"
    );
    assert!(line(&log, "api_key=9999").contains("INFO"));
    assert!(line(&log, "api_version=99").contains("api_key=Produce"));
    assert!(line(&log, "no layout").contains("DEBUG"));
    for reason in ["unknown_key", "unknown_version", "malformed", "no_layout"] {
        let series = format!(r#"klamp_opaque_frames_total{{reason="{reason}"}}"#);
        assert_eq!(rig.metric(&series), 3.0, "{reason}");
    }
}

#[test]
fn bytes_that_are_no_frame_are_counted_and_their_likely_cause_is_named() {
    let rig = Rig::new();
    for (direction, reason, label, hint) in [
        (Request, RejectReason::Tls, "tls", "security.protocol"),
        (Request, RejectReason::Http, "http", "HTTP request"),
        (
            Request,
            RejectReason::TooLarge,
            "too_large",
            "--max-request-bytes",
        ),
        (Request, RejectReason::TooShort, "too_short", "first bytes"),
        (
            Response,
            RejectReason::NegativeLength,
            "negative_length",
            "--upstream",
        ),
    ] {
        let log = logged(|| {
            let mut record = rig.record();
            record.sees(direction, Observation::Rejected { reason, length: -2 });
            record.ended(Ended::Session(CloseReason::Rejected(direction, reason)));
        });
        let line = line(&log, "no Kafka frame");
        assert!(line.contains(hint) && line.contains("length=-2"), "{line}");
        assert!(line.contains("peer=10.0.0.1:4000"), "{line}");
        let labels = format!(r#"direction="{}",reason="{label}""#, direction.name());
        assert_eq!(
            rig.metric(&format!("klamp_frames_rejected_total{{{labels}}}")),
            1.0
        );
    }
    let closed = r#"klamp_connections_closed_total{reason="rejected_request"}"#;
    assert_eq!(rig.metric(closed), 4.0);
}

#[test]
fn a_connection_that_passes_unseen_is_warned_of_once_for_each_upstream() {
    let rig = Rig::new();
    let log = logged(|| {
        for _ in 0..3 {
            let mut record = rig.record();
            let (reason, length) = (RejectReason::Tls, 0x1603_0100);
            record.sees(Request, Observation::Rejected { reason, length });
            record.sees(Request, Observation::Unseen(Why::NonKafka));
            record.ended(Ended::Session(CloseReason::Client));
        }
    });
    assert!(line(&log, "is relayed unseen").contains("WARN"));
    assert_eq!(
        rig.metric(r#"klamp_opaque_frames_total{reason="non_kafka"}"#),
        3.0
    );
}

#[test]
fn a_mismatch_tells_both_ids() {
    let rig = Rig::new();
    let log = logged(|| {
        let (expected, got) = (Some(CorrelationId(41)), CorrelationId(-42));
        rig.record()
            .sees(Response, Observation::Mismatch { expected, got });
    });
    let line = line(&log, "correlation id");
    assert!(
        line.contains("expected=41") && line.contains("got=-42"),
        "{line}"
    );
    assert_eq!(rig.metric("klamp_correlation_mismatches_total"), 1.0);
}

#[test]
fn a_verdict_names_client_request_and_topics() {
    let rig = Rig::new();
    let log = logged(|| {
        let mut record = rig.record();
        record.request(PRODUCE_9, Some(b"app"));
        let (cause, topics) = (VerdictCause::Acks0, "orders, payments");
        record.sees(
            Response,
            Observation::Verdict {
                exchange: PRODUCE_9,
                cause,
                topics,
            },
        );
        let (exchange, cause, topics) = (exchange(0, 99), VerdictCause::Opaque, "");
        record.sees(
            Response,
            Observation::Verdict {
                exchange,
                cause,
                topics,
            },
        );
    });
    let acks0 = line(&log, "acks=0");
    assert!(
        acks0.contains("client_id=app") && acks0.contains("orders, payments"),
        "{acks0}"
    );
    let opaque = line(&log, "upon a request that klamp does not read");
    assert!(
        opaque.contains("api_version=99") && opaque.contains("api_key=Produce"),
        "{opaque}"
    );
}

#[test]
fn a_version_table_is_told_once_with_every_row_that_clients_do_not_see_as_it_is() {
    let rig = Rig::new();
    let mut finalized = FinalizedFeatures::default();
    finalized.note(Feature::TransactionVersion, 2);
    finalized.note(Feature::StreamsVersion, 1);
    let offers = [
        (1, 0, 99),
        (26, 90, 99),
        (88, 0, 0),
        (89, 0, 0),
        (188, 0, 0),
    ];
    let offers = offers.map(|(key, min, max)| (ApiKey(key), Offer { min, max }));
    let table = || Arc::new(VersionTable::new(offers, finalized, Clamp::Encode));
    let log = logged(|| {
        for _ in 0..3 {
            rig.record().sees(Response, Observation::Learned(&table()));
        }
    });
    let told = line(&log, "version table");
    for part in [
        "INFO",
        "upstream=broker:9092 rows=5 broker_ahead=5 lowered=1 hidden=3 spared=1",
        "lowered_versions=\"Fetch 99->18\"",
        "hidden_api_keys=\"StreamsGroupHeartbeat, StreamsGroupDescribe, 188\"",
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let spared = line(&log, "api_keys=\"EndTxn\"");
    assert!(spared.contains("WARN"), "{spared}");
    let loud = log.lines().filter(|line| !line.contains("DEBUG"));
    assert_eq!(loud.count(), 3, "the two above, and what is broken: {log}");
    assert!(line(&log, "api_key=Fetch").contains("lowered"));
    assert!(line(&log, "api_key=StreamsGroupHeartbeat").contains("no schema"));
    assert!(line(&log, "api_key=188").contains("no schema"));
    assert!(line(&log, "api_key=EndTxn").contains("spared"));
    let broken = line(&log, "--clamp inspect");
    assert!(
        broken.contains("WARN") && broken.contains("StreamsGroupHeartbeat, StreamsGroupDescribe"),
        "{broken}"
    );
    assert!(
        broken.contains("feature=streams.version level=1"),
        "{broken}"
    );
    let mut record = rig.record();
    record.request(exchange(188, 0), None);
    assert_eq!(
        rig.metric(r#"klamp_unknown_api_keys_total{api_key="188"}"#),
        1.0
    );
}

#[test]
fn of_a_table_that_never_ends_a_line_tells_the_first_rows_and_how_many_more_there_are() {
    let rig = Rig::new();
    let offers = (1000..1300).map(|key| (ApiKey(key), Offer { min: 0, max: 0 }));
    let table = VersionTable::new(offers, FinalizedFeatures::default(), Clamp::Encode);
    let log = logged(|| {
        rig.record()
            .sees(Response, Observation::Learned(&Arc::new(table)));
    });
    let told = line(&log, "version table");
    assert!(
        told.contains(" hidden=300 ") && told.contains("1098, 1099, 200 more"),
        "{told}"
    );
    assert!(!told.contains("lowered_versions"), "{told}");
    assert_eq!(log.lines().count(), 101, "{log}");
}

#[test]
fn a_broker_that_replicates_through_klamp_is_named_once() {
    let rig = Rig::new();
    let log = logged(|| {
        let mut record = rig.record();
        for replica_id in [3, 3, 3] {
            record.sees(Request, Observation::ReplicaFetch { replica_id });
        }
    });
    assert!(line(&log, "replicates through klamp").contains("replica_id=3"));
}

#[test]
fn addresses_that_lead_past_klamp_are_counted_each_time_and_logged_once() {
    let rig = Rig::new();
    assert!(
        rig.watch
            .metrics
            .render()
            .unwrap()
            .contains("klamp_foreign_addresses_total 0")
    );
    let log = logged(|| {
        let mut record = rig.record();
        for (host, port) in [("kafka-1", 9092), ("kafka-1", 9092), ("127.0.0.1", 9192)] {
            let host = host.as_bytes();
            record.sees(
                Response,
                Observation::BrokerAddress {
                    node_id: 1,
                    host,
                    port,
                },
            );
        }
    });
    assert!(line(&log, "past klamp").contains("address=kafka-1:9092"));
    assert_eq!(rig.metric("klamp_foreign_addresses_total"), 2.0);
}

#[test]
fn a_flood_of_rejected_connections_does_not_flood_the_log() {
    let rig = Rig::new();
    let log = logged(|| {
        for number in 0..1000 {
            let mut record = rig.record();
            record.sees(
                Response,
                Observation::Mismatch {
                    expected: None,
                    got: CorrelationId(number),
                },
            );
            record.ended(Ended::Session(CloseReason::Mismatch));
        }
    });
    let warnings = log.lines().filter(|line| line.contains("WARN")).count();
    assert!((1..=20).contains(&warnings), "{warnings} warnings");
    assert_eq!(rig.metric("klamp_correlation_mismatches_total"), 1000.0);
}
