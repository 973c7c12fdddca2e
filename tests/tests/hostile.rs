//! What no well-behaved peer sends: each gives the outcome, the metric and the log line that an
//! operator is promised, and klamp lives on as small as before.

use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use klamp_tests::kafka::{Kafka, V4_3_1};
use klamp_tests::klamp::{Klamp, with_fields};
use klamp_tests::peer::{Client, Upstream};
use klamp_tests::records::{self, PRODUCE};
use klamp_tests::scrape::Scrape;
use klamp_tests::wire;
use std::net::SocketAddr;

const METADATA: i16 = 3;
const API_VERSIONS: i16 = 18;

/// The first bytes of a TLS ClientHello.
const TLS_HELLO: &[u8] = &[
    0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, 0x2a,
];
const HTTP_REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: kafka\r\n\r\n";

/// What a client sends, and what becomes of it.
struct Case {
    bytes: Vec<u8>,
    /// The reason for which it is rejected; `None` where it is passed on and the broker closes.
    rejected: Option<&'static str>,
    /// The reason for which it passes without being understood.
    opaque: Option<&'static str>,
    /// The reason for which the connection is closed.
    closed: &'static str,
}

impl Case {
    fn rejected(bytes: &[u8], reason: &'static str) -> Self {
        let bytes = bytes.to_vec();
        Self {
            bytes,
            rejected: Some(reason),
            opaque: None,
            closed: "rejected_request",
        }
    }

    fn passed(bytes: Vec<u8>, opaque: Option<&'static str>, closed: &'static str) -> Self {
        Self {
            bytes,
            rejected: None,
            opaque,
            closed,
        }
    }
}

fn cases() -> Vec<Case> {
    let length = |length: i32| length.to_be_bytes();
    let request = |key, version, body: &[u8]| wire::bare_request(key, version, 7, "hostile", body);
    // Key, version and correlation id of a Produce, and one byte of the client id's length.
    let short_header = wire::frame(&[0, 0, 0, 9, 0, 0, 0, 7, 0]);
    // A client id of 300 bytes in a frame that ends after two of them.
    let long_client_id = wire::frame(&[0, 0, 0, 9, 0, 0, 0, 7, 1, 44, b'h', b'o']);
    // acks, timeout, and the number of topics: 2^31 - 1, then 2^31 as a compact count (plus one).
    let count = [0xff, 0xff, 0, 0, 0x75, 0x30, 0x7f, 0xff, 0xff, 0xff];
    let compact = [
        0, 0, 0xff, 0xff, 0, 0, 0x75, 0x30, 0x81, 0x80, 0x80, 0x80, 0x08,
    ];
    let no_transaction = [0xff, 0xff];
    vec![
        Case::rejected(&length(-1), "negative_length"),
        Case::rejected(&length(0), "too_short"),
        Case::rejected(&length(3), "too_short"),
        Case::rejected(&length(0x7fff_ffff), "too_large"),
        Case::rejected(HTTP_REQUEST, "http"),
        Case::rejected(TLS_HELLO, "tls"),
        Case::rejected(&short_header, "too_short"),
        Case::passed(long_client_id, Some("malformed"), "broker_after_opaque"),
        // Four bytes for which kafka-protocol would ask for gigabytes.
        Case::passed(
            request(METADATA, 1, &length(0x7fff_ffff)),
            Some("malformed"),
            "broker_after_opaque",
        ),
        Case::passed(
            request(0, 3, &[&no_transaction[..], &count].concat()),
            Some("malformed"),
            "broker_after_opaque",
        ),
        Case::passed(
            request(0, 9, &compact),
            Some("malformed"),
            "broker_after_opaque",
        ),
        Case::passed(
            request(9_999, 0, b""),
            Some("unknown_key"),
            "broker_after_opaque",
        ),
        Case::passed(
            request(0, 99, b"\0"),
            Some("unknown_version"),
            "broker_after_opaque",
        ),
        Case::passed(
            wire::request(
                PRODUCE,
                7,
                "hostile",
                &records::produce("missing", 0, b"lost"),
            ),
            None,
            "broker_after_acks0",
        ),
    ]
}

/// Sends it as the whole life of a connection, and returns when that has ended.
fn live(address: SocketAddr, case: &Case) {
    let mut client = Client::connect(address);
    client.try_send_bytes(&case.bytes);
    let (answer, _) = client.read_to_end();
    assert_eq!(answer, b"", "an answer to {:02x?}", case.bytes);
}

#[test]
fn each_thing_gives_its_outcome_and_its_metric() {
    let broker = Kafka::shared(V4_3_1).broker();
    for case in cases() {
        let mut klamp = Klamp::start(broker.upstream);
        live(klamp.address(), &case);
        let what = format!("{:02x?} ends as {}", case.bytes, case.closed);
        let scrape = klamp.scrape_until(&what, |scrape| {
            scrape.get("klamp_connections_closed_total", &[("reason", case.closed)]) == Some(1.0)
        });
        assert_only(&scrape, "klamp_frames_rejected_total", case.rejected);
        assert_only(&scrape, "klamp_opaque_frames_total", case.opaque);
        assert_eq!(scrape.sum("klamp_in_flight_requests", &[]), 0.0, "{what}");
        assert_eq!(
            scrape.sum("klamp_correlation_mismatches_total", &[]),
            0.0,
            "{what}"
        );
        if let Some(reason) = case.rejected {
            let labels = [("direction", "request"), ("reason", reason)];
            assert_eq!(
                scrape.sum("klamp_frames_rejected_total", &labels),
                1.0,
                "{what}"
            );
            let lines = klamp.logged(&[("level", "WARN"), ("direction", "request")]);
            assert_eq!(lines.len(), 1, "{what}: {lines:?}");
            assert!(lines[0]["cause"].is_string(), "{what}: {lines:?}");
        }
        klamp.check_alive();
        klamp.stop();
    }
}

#[test]
fn the_brokers_verdict_is_told_of_client_key_and_version() {
    let broker = Kafka::shared(V4_3_1).broker();
    let klamp = Klamp::start(broker.upstream);
    for (key, version, api_key) in [(9_999, 0, "9999"), (0, 99, "Produce")] {
        let mut client = Client::connect(klamp.address());
        client.send_bytes(&wire::bare_request(key, version, 7, "newcomer", b"\0"));
        client.read_to_end();
        let version = version.to_string();
        let fields = [
            ("level", "WARN"),
            ("client_id", "newcomer"),
            ("api_key", api_key),
            ("api_version", &version),
        ];
        let lines = klamp.logged(&fields);
        let told = lines[0]["message"].as_str().unwrap_or_default();
        assert!(told.contains("the broker closed"), "{lines:?}");
    }
    let scrape = klamp.scrape();
    assert_eq!(
        scrape.sum("klamp_unknown_api_keys_total", &[("api_key", "other")]),
        1.0
    );
    let produce = [("api_key", "Produce"), ("api_version", "other")];
    assert_eq!(scrape.sum("klamp_requests_total", &produce), 1.0);

    let mut client = Client::connect(klamp.address()).named("careless");
    client.send(PRODUCE, &records::produce("missing", 0, b"lost"));
    client.read_to_end();
    let fields = [
        ("client_id", "careless"),
        ("api_key", "Produce"),
        ("topics", "missing"),
    ];
    klamp.logged(&fields);
    klamp.stop();
}

#[test]
fn what_is_too_large_is_told_with_the_flag_that_allows_it() {
    let broker = Kafka::shared(V4_3_1).broker();
    let klamp = Klamp::start_with(broker.upstream, &["--max-request-bytes", "1000"]);
    let mut client = Client::connect(klamp.address());
    client.call(4, &MetadataRequest::default());
    client.try_send_bytes(&wire::request(
        PRODUCE,
        2,
        "bulky",
        &records::produce("any", 1, &[7; 1_000]),
    ));
    client.read_to_end();
    let rejected = &klamp.logged(&[("direction", "request")])[0];
    let cause = rejected["cause"].as_str().unwrap_or_default();
    assert!(cause.contains("--max-request-bytes"), "{rejected}");
    klamp.stop();
}

#[test]
fn other_protocols_pass_unseen_where_they_may() {
    let upstream = Upstream::start(|stream| {
        let mut peer = Client::over(stream);
        let request = peer.read_bytes(HTTP_REQUEST.len());
        assert_eq!(request, HTTP_REQUEST);
        peer.try_send_bytes(b"HTTP/1.1 204 No Content\r\n\r\n");
    });
    let klamp = Klamp::start_with(upstream.address(), &["--non-kafka", "pass"]);
    for _ in 0..3 {
        let mut client = Client::connect(klamp.address());
        client.send_bytes(HTTP_REQUEST);
        assert_eq!(client.read_to_end().0, b"HTTP/1.1 204 No Content\r\n\r\n");
    }
    klamp.scrape_until("all of them are counted", |scrape| {
        scrape.sum("klamp_opaque_frames_total", &[("reason", "non_kafka")]) == 3.0
    });
    let address = upstream.address().to_string();
    let lines = with_fields(klamp.stop(), &[("level", "WARN"), ("upstream", &address)]);
    assert_eq!(lines.len(), 1, "once for each upstream: {lines:?}");
}

#[test]
fn a_broker_whose_answer_is_no_frame_is_named_and_let_go() {
    for (answer, reason) in [
        (&(-1_i32).to_be_bytes()[..], "negative_length"),
        (&3_i32.to_be_bytes(), "too_short"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "http"),
        (&[0x15, 3, 3, 0, 2, 2, 80], "tls"),
    ] {
        let upstream = answering(answer);
        let klamp = Klamp::start(upstream.address());
        assert_eq!(ask(&klamp, METADATA, 1, &[0; 4]), b"");
        let scrape = ended_as(&klamp, "rejected_response");
        let labels = [("direction", "response"), ("reason", reason)];
        assert_eq!(
            scrape.sum("klamp_frames_rejected_total", &labels),
            1.0,
            "{answer:02x?}"
        );
        let line = &klamp.logged(&[("level", "WARN"), ("direction", "response")])[0];
        assert!(line["cause"].is_string(), "{line}");
        klamp.stop();
    }
}

#[test]
fn an_answer_that_does_not_fit_its_layout_passes_where_nothing_must_be_rewritten() {
    // For a body of these four bytes kafka-protocol would ask for gigabytes.
    let answer = wire::frame(&[0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff]);
    let upstream = answering(&answer);
    let klamp = Klamp::start(upstream.address());
    assert_eq!(ask(&klamp, METADATA, 1, &[0; 4]), answer);
    let scrape = ended_as(&klamp, "broker");
    assert_only(&scrape, "klamp_opaque_frames_total", Some("malformed"));
    klamp.stop();
}

#[test]
fn an_answer_that_does_not_fit_its_layout_is_the_end_where_it_must_be_rewritten() {
    let answer = wire::frame(&[0, 0, 0, 1, 0, 0, 0x7f, 0xff, 0xff, 0xff]);
    let upstream = answering(&answer);
    let klamp = Klamp::start(upstream.address());
    assert_eq!(ask(&klamp, API_VERSIONS, 0, b""), b"");
    let scrape = ended_as(&klamp, "malformed");
    assert_only(&scrape, "klamp_opaque_frames_total", Some("malformed"));
    klamp.stop();

    let klamp = Klamp::start_with(upstream.address(), &["--clamp", "off"]);
    assert_eq!(ask(&klamp, API_VERSIONS, 0, b""), answer);
    klamp.stop();
}

#[test]
fn an_answer_to_no_request_is_counted_and_told_with_both_ids() {
    let answer = wire::frame(&[0, 0, 0, 42, 1, 2, 3, 4]);
    let upstream = answering(&answer);
    for (clamp, closed, got) in [
        ("encode", "mismatch", &b""[..]),
        ("off", "broker_in_flight", &answer),
    ] {
        let klamp = Klamp::start_with(upstream.address(), &["--clamp", clamp]);
        assert_eq!(ask(&klamp, METADATA, 1, &[0; 4]), got, "{clamp}");
        let scrape = ended_as(&klamp, closed);
        assert_eq!(scrape.sum("klamp_correlation_mismatches_total", &[]), 1.0);
        klamp.logged(&[("expected", "1"), ("got", "42")]);
        klamp.stop();
    }
}

/// A broker that gives this answer to the first request of a connection, then says no more.
fn answering(answer: &[u8]) -> Upstream {
    let answer = answer.to_vec();
    Upstream::start(move |stream| {
        let mut peer = Client::over(stream);
        peer.read_frame();
        peer.try_send_bytes(&answer);
        peer.finish();
        peer.read_to_end();
    })
}

/// Sends a request as the only one of a connection, and returns all that comes back.
#[track_caller]
fn ask(klamp: &Klamp, key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut client = Client::connect(klamp.address());
    client.send_bytes(&wire::bare_request(key, version, 1, "client", body));
    client.read_to_end().0
}

/// The only connection so far has ended for that reason.
#[track_caller]
fn ended_as(klamp: &Klamp, reason: &str) -> Scrape {
    klamp.scrape_until(&format!("a connection ends as {reason}"), |scrape| {
        scrape.get("klamp_connections_closed_total", &[("reason", reason)]) == Some(1.0)
    })
}

#[test]
fn ten_thousand_such_connections_leave_memory_flat() {
    const WARM_UP: usize = 2_000;
    const MORE: usize = 10_000;
    const GROWTH: u64 = 4 << 20;
    let broker = Kafka::shared(V4_3_1).broker();
    let mut klamp = Klamp::start(broker.upstream);
    let spread = |connections: usize| {
        let address = klamp.address();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                scope.spawn(move || {
                    let cases = cases();
                    for number in (thread..connections).step_by(8) {
                        live(address, &cases[number / 8 % cases.len()]);
                    }
                });
            }
        });
    };
    spread(WARM_UP);
    let before = klamp.process().resident_bytes();
    spread(MORE);
    let after = klamp.process().resident_bytes();
    eprintln!("{before} bytes before, {after} after");
    assert!(
        after < before + GROWTH,
        "memory grew from {before} to {after} bytes"
    );
    let scrape = klamp.scrape_until("every connection has ended", |scrape| {
        scrape.get("klamp_connections_active", &[]) == Some(0.0)
    });
    let all = (WARM_UP + MORE) as f64;
    assert_eq!(scrape.sum("klamp_connections_closed_total", &[]), all);
    klamp.check_alive();
    // It still works.
    let mut client = Client::connect(klamp.address());
    client.call(2, &ApiVersionsRequest::default());
    drop(client);
    // Log lines are limited in rate, so that nobody fills the disk.
    let lines = klamp.stop().len();
    assert!(lines < 5_000, "{lines} lines in the log");
}

/// The family has one sample above 0, with this reason; or none at all.
#[track_caller]
fn assert_only(scrape: &Scrape, family: &str, reason: Option<&str>) {
    let samples = scrape
        .samples(family, &[])
        .filter(|(_, count)| *count > 0.0);
    let reasons: Vec<_> = samples
        .map(|(labels, _)| labels["reason"].as_str())
        .collect();
    assert_eq!(reasons, Vec::from_iter(reason), "{family}");
}
