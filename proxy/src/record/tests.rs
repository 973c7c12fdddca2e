//! Drives records with made-up observations, and looks at what metrics, views and log say of them.

use super::*;
use crate::relay::Ended;
use klamp_codec::observation::{CloseReason, OpaqueReason as Why, Outcome as Went, VerdictCause};
use klamp_codec::session::Clamp;
use klamp_codec::versions::{Feature, FinalizedFeatures, Offer};
use klamp_codec::{CorrelationId, Direction::Request, Direction::Response};
use std::io;
use std::sync::Mutex;
use std::time::Duration;

const PRODUCE_9: Exchange = exchange(0, 9);
const FETCH_16: Exchange = exchange(1, 16);
const API_VERSIONS_3: Exchange = exchange(18, 3);

const fn exchange(key: i16, version: i16) -> Exchange {
    Exchange {
        api_key: ApiKey(key),
        api_version: version,
        correlation_id: CorrelationId(7),
    }
}

struct Rig {
    watch: Arc<Watch>,
    shard: Arc<Shard>,
}

impl Rig {
    fn new() -> Self {
        let metrics = Metrics::new(catalog());
        let shard = metrics.shard();
        let watch = Watch::new(metrics, vec![("127.0.0.1".to_owned(), 9192)]);
        Self { watch, shard }
    }

    fn record(&self) -> Record {
        let peer = "10.0.0.1:4000".parse().unwrap();
        Record::new(
            self.watch.clone(),
            self.shard.clone(),
            peer,
            "broker:9092".into(),
        )
    }

    /// The value of a series; 0 where there is none.
    fn metric(&self, series: &str) -> f64 {
        let text = self.watch.metrics.render().unwrap();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }
}

impl Record {
    fn sees(&mut self, direction: Direction, what: Observation<'_>) {
        self.observe(direction, 0, what);
    }

    fn request(&mut self, exchange: Exchange, client_id: Option<&[u8]>) {
        let frame_bytes = 100;
        self.sees(
            Request,
            Observation::RequestHead {
                exchange,
                client_id,
                frame_bytes,
            },
        );
        self.sees(Request, Observation::InFlight(self.view.in_flight() + 1));
        self.sees(
            Request,
            Observation::RequestEnd {
                exchange,
                frame_bytes,
            },
        );
    }

    fn response(&mut self, exchange: Exchange, code: i16) {
        let (frame_bytes, code) = (1000, ErrorCode(code));
        let latency = Some(Duration::from_millis(3));
        let wait = (exchange.api_key == ApiKey::FETCH).then_some(Duration::from_millis(500));
        let outcome = if code == ErrorCode::NONE {
            Went::Ok
        } else {
            Went::Error
        };
        let head = Observation::ResponseHead {
            exchange,
            frame_bytes,
            latency,
            wait,
        };
        self.sees(Response, head);
        self.sees(Response, Observation::InFlight(self.view.in_flight() - 1));
        self.sees(
            Response,
            Observation::Errors {
                exchange,
                code,
                count: 2,
            },
        );
        self.sees(
            Response,
            Observation::ResponseEnd {
                exchange,
                frame_bytes,
                outcome,
            },
        );
    }
}

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
fn an_exchange_is_counted_by_its_key_version_and_error() {
    let rig = Rig::new();
    let mut record = rig.record();
    record.request(PRODUCE_9, Some(b"app"));
    record.sees(Request, Observation::Acks(-1));
    record.request(FETCH_16, Some(b"app"));
    let throttle = Duration::from_millis(1500);
    record.response(PRODUCE_9, 6);
    record.sees(
        Response,
        Observation::Throttle {
            api_key: ApiKey::PRODUCE,
            time: throttle,
        },
    );
    record.response(FETCH_16, 0);

    let produce = r#"api_key="Produce""#;
    let metric = |series: String| rig.metric(&series);
    assert_eq!(
        metric(format!(
            r#"klamp_requests_total{{{produce},api_version="9"}}"#
        )),
        1.0
    );
    assert_eq!(
        metric(format!("klamp_request_bytes_total{{{produce}}}")),
        100.0
    );
    assert_eq!(
        metric(format!("klamp_response_bytes_total{{{produce}}}")),
        1000.0
    );
    assert_eq!(
        metric(format!(
            r#"klamp_responses_total{{{produce},outcome="error"}}"#
        )),
        1.0
    );
    let error = r#"error="NOT_LEADER_OR_FOLLOWER""#;
    assert_eq!(
        metric(format!(
            "klamp_response_error_codes_total{{{produce},{error}}}"
        )),
        2.0
    );
    assert_eq!(
        metric(format!("klamp_throttle_seconds_total{{{produce}}}")),
        1.5
    );
    assert_eq!(
        rig.metric(r#"klamp_produce_requests_total{acks="-1"}"#),
        1.0
    );
    assert_eq!(
        rig.metric(r#"klamp_responses_total{api_key="Fetch",outcome="ok"}"#),
        1.0
    );
    assert_eq!(
        rig.metric(r#"klamp_request_duration_seconds_count{api_key="Fetch"}"#),
        1.0
    );
    assert_eq!(
        rig.metric(r#"klamp_request_excess_seconds_sum{api_key="Fetch"}"#),
        0.0
    );
    assert_eq!(
        rig.metric(r#"klamp_request_excess_seconds_count{api_key="Fetch"}"#),
        1.0
    );
    assert_eq!(
        rig.metric(r#"klamp_request_excess_seconds_count{api_key="Produce"}"#),
        0.0
    );
}

#[test]
fn a_response_without_a_latency_is_counted_but_not_timed() {
    let rig = Rig::new();
    let mut record = rig.record();
    let (exchange, frame_bytes) = (PRODUCE_9, 50);
    let head = Observation::ResponseHead {
        exchange,
        frame_bytes,
        latency: None,
        wait: None,
    };
    record.sees(Response, head);
    let outcome = Went::Opaque;
    record.sees(
        Response,
        Observation::ResponseEnd {
            exchange,
            frame_bytes,
            outcome,
        },
    );
    assert_eq!(
        rig.metric(r#"klamp_request_duration_seconds_count{api_key="Produce"}"#),
        0.0
    );
    assert_eq!(
        rig.metric(r#"klamp_responses_total{api_key="Produce",outcome="opaque"}"#),
        1.0
    );
}

#[test]
fn an_answer_of_our_own_is_a_response_with_error_35() {
    let rig = Rig::new();
    rig.record().sees(
        Response,
        Observation::Answered {
            exchange: exchange(18, 127),
        },
    );
    let responses = r#"klamp_responses_total{api_key="ApiVersions",outcome="error"}"#;
    assert_eq!(rig.metric(responses), 1.0);
    let error = r#"{api_key="ApiVersions",error="UNSUPPORTED_VERSION"}"#;
    assert_eq!(
        rig.metric(&format!("klamp_response_error_codes_total{error}")),
        1.0
    );
}

#[test]
fn gauges_return_to_zero_however_a_connection_ends() {
    let rig = Rig::new();
    let endings = [
        Some(Ended::Session(CloseReason::ClientInFlight)),
        Some(Ended::DrainTimeout),
        Some(Ended::Broken),
        None,
    ];
    for ending in endings {
        let mut record = rig.record();
        record.request(API_VERSIONS_3, Some(b"app"));
        let software = Observation::Software {
            name: b"librdkafka",
            version: b"2.5.0",
        };
        record.sees(Request, software);
        record.request(FETCH_16, Some(b"app"));
        let open =
            r#"klamp_client_connections{software_name="librdkafka",software_version="2.5.0"}"#;
        assert_eq!(rig.metric("klamp_in_flight_requests"), 2.0);
        assert_eq!(rig.metric("klamp_connections_active"), 1.0);
        assert_eq!(rig.metric(open), 1.0);
        assert_eq!(rig.watch.views.connections().len(), 1);
        if let Some(ended) = ending {
            record.ended(ended);
        }
        drop(record);
        assert_eq!(rig.metric("klamp_in_flight_requests"), 0.0);
        assert_eq!(rig.metric("klamp_connections_active"), 0.0);
        assert_eq!(rig.metric(open), 0.0);
        assert!(rig.watch.views.connections().is_empty());
    }
    let closed = |reason| {
        rig.metric(&format!(
            r#"klamp_connections_closed_total{{reason="{reason}"}}"#
        ))
    };
    assert_eq!(closed("client_in_flight"), 1.0);
    assert_eq!(closed("drain_timeout"), 1.0);
    assert_eq!(closed("internal"), 1.0);
    assert_eq!(closed("aborted"), 1.0);
    assert_eq!(rig.metric("klamp_connections_opened_total"), 4.0);
}

#[test]
fn a_view_follows_its_connection() {
    let rig = Rig::new();
    let mut record = rig.record();
    let view = rig.watch.views.connections().remove(0);
    assert!(view.client().is_none());
    record.request(FETCH_16, Some(b"app"));
    record.moved(Request, 100);
    record.moved(Response, 1 << 40);
    assert_eq!((view.requests(), view.in_flight()), (1, 1));
    assert_eq!((view.moved(Request), view.moved(Response)), (100, 1 << 40));
    assert_eq!(
        view.client().unwrap().name.client_id.as_deref(),
        Some(b"app".as_slice())
    );
    assert!(view.table().is_none());
}

#[test]
fn software_counts_with_the_request_that_tells_it_and_once_for_each_connection() {
    let rig = Rig::new();
    let mut record = rig.record();
    let (exchange, frame_bytes) = (API_VERSIONS_3, 60);
    for version in [b"4.3.1", b"4.3.1", b"4.4.0"] {
        let client_id = Some(b"app".as_slice());
        record.sees(
            Request,
            Observation::RequestHead {
                exchange,
                client_id,
                frame_bytes,
            },
        );
        let name = b"apache-kafka-java".as_slice();
        record.sees(Request, Observation::Software { name, version });
        record.sees(
            Request,
            Observation::RequestEnd {
                exchange,
                frame_bytes,
            },
        );
    }
    let open = |version| {
        let name = r#"software_name="apache-kafka-java""#;
        rig.metric(&format!(
            r#"klamp_client_connections{{{name},software_version="{version}"}}"#
        ))
    };
    assert_eq!((open("4.3.1"), open("4.4.0")), (0.0, 1.0));
    let reports = rig.watch.views.clients();
    let used: Vec<_> = reports
        .iter()
        .map(|report| report.used[0].versions[0].1)
        .collect();
    assert_eq!(
        used,
        [2, 1],
        "no request counts for a client that had not told its software"
    );
}

#[test]
fn a_client_with_ever_new_names_is_not_followed_for_ever() {
    let rig = Rig::new();
    let mut record = rig.record();
    for number in 0..1000 {
        record.request(FETCH_16, Some(format!("app-{number}").as_bytes()));
    }
    assert_eq!(rig.watch.views.clients().len(), usize::from(NAMES));
    assert_eq!(
        rig.metric(r#"klamp_requests_total{api_key="Fetch",api_version="16"}"#),
        1000.0
    );
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
                record.sees(Request, Observation::Opaque { exchange, reason });
            }
        }
    });
    let layout = line(&log, "does not fit its layout");
    assert!(
        layout.contains("WARN") && layout.contains("api_key=Metadata"),
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
        let labels = format!(
            r#"direction="{}",reason="{label}""#,
            direction_label(direction)
        );
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
    let opaque = line(&log, "does not know this API key or version");
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
    let offers = [(1, 0, 99), (26, 90, 99), (88, 0, 0), (89, 0, 0), (18, 0, 4)];
    let offers = offers.map(|(key, min, max)| (ApiKey(key), Offer { min, max }));
    let table = || Arc::new(VersionTable::new(offers, finalized, Clamp::Encode));
    let log = logged(|| {
        for _ in 0..3 {
            rig.record().sees(Response, Observation::Learned(&table()));
        }
    });
    assert!(line(&log, "version table").contains("upstream=\"broker:9092\""));
    assert!(line(&log, "api_key=Fetch").contains("lowered"));
    assert!(line(&log, "api_key=88").contains("no schema"));
    assert!(line(&log, "api_key=EndTxn").contains("spared"));
    let broken = line(&log, "--clamp inspect");
    assert!(
        broken.contains("WARN") && broken.contains("88, 89"),
        "{broken}"
    );
    assert!(
        broken.contains("feature=streams.version level=1"),
        "{broken}"
    );
    let mut record = rig.record();
    record.request(exchange(88, 0), None);
    assert_eq!(
        rig.metric(r#"klamp_unknown_api_keys_total{api_key="88"}"#),
        1.0
    );
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

#[test]
fn a_record_is_small() {
    assert!(size_of::<Record>() <= 128, "{}", size_of::<Record>());
}
