//! What triggers a capture, when it is taken, and when it is over.

use super::*;
use crate::capture::Found;
use crate::relay::Ended;
use klamp_codec::observation::OpaqueReason as Why;

impl Rig {
    fn on(list: &str) -> Self {
        let rig = Self::new();
        rig.watch.captures.set_on(list.parse().unwrap());
        rig
    }

    fn reasons(&self) -> Vec<String> {
        let all = self.watch.captures.all();
        all.iter()
            .map(|found| found.capture.reason.clone())
            .collect()
    }

    fn is_recording(&self) -> bool {
        self.watch.captures.all().iter().any(Found::is_recording)
    }
}

#[test]
fn a_code_that_triggers_is_captured_with_who_it_happened_to() {
    let rig = Rig::on("UNNAMED");
    let mut record = rig.record();
    let broker = "10.0.0.9:9092".parse().unwrap();
    record.reached(broker);
    let (name, version) = (b"librdkafka".as_slice(), b"2.5.0".as_slice());
    record.sees(Request, Observation::Software { name, version });
    record.request(PRODUCE_9, Some(b"app"));
    record.response(PRODUCE_9, 250);
    let all = rig.watch.captures.all();
    let capture = &all[0].capture;
    assert_eq!(all.len(), 1);
    assert_eq!(
        (capture.reason.as_str(), capture.kind.label()),
        ("UNNAMED_250 in Produce", "unnamed")
    );
    assert_eq!(capture.client, record.view.peer);
    assert_eq!(
        (capture.broker, &*capture.upstream),
        (Some(broker), "broker:9092")
    );
    assert_eq!(capture.client_id.as_deref(), Some("app"));
    assert_eq!(
        capture.software,
        Some(("librdkafka".to_owned(), "2.5.0".to_owned()))
    );
    assert!(capture.opened <= capture.taken);
    assert_eq!(rig.metric(r#"klamp_captures_total{reason="unnamed"}"#), 1.0);
}

#[test]
fn codes_that_do_not_trigger_are_not_captured() {
    let rig = Rig::on("BEYOND,Produce:10");
    let mut record = rig.record();
    for (exchange, code) in [
        (PRODUCE_9, 0),
        (PRODUCE_9, 6),
        (FETCH_16, 10),
        (FETCH_16, -1),
    ] {
        record.request(exchange, None);
        record.response(exchange, code);
    }
    assert!(rig.reasons().is_empty(), "{:?}", rig.reasons());
    record.request(PRODUCE_9, None);
    record.response(PRODUCE_9, 10);
    assert_eq!(rig.reasons(), ["MESSAGE_TOO_LARGE (10) in Produce"]);
}

#[test]
fn a_capture_is_taken_when_the_frame_that_triggers_has_ended_and_goes_on_for_so_many_frames() {
    let rig = Rig::on("UNNAMED");
    let mut record = rig.record();
    let (frame_bytes, code) = (100, ErrorCode(250));
    record.request(FETCH_16, None);
    record.sees(
        Response,
        Observation::Errors {
            exchange: FETCH_16,
            code,
            count: 1,
        },
    );
    record.request(PRODUCE_9, None);
    assert!(
        rig.reasons().is_empty(),
        "another frame has ended, of the other direction"
    );
    let outcome = Went::Error;
    record.sees(
        Response,
        Observation::ResponseEnd {
            exchange: FETCH_16,
            frame_bytes,
            outcome,
        },
    );
    assert_eq!(rig.reasons(), ["UNNAMED_250 in Fetch"]);
    record.response(PRODUCE_9, 0);
    record.request(PRODUCE_9, None);
    assert!(rig.is_recording(), "two of three");
    record.response(PRODUCE_9, 250);
    assert!(!rig.is_recording());
    assert_eq!(rig.reasons().len(), 1, "what happens meanwhile is in it");
    record.request(PRODUCE_9, None);
    record.response(PRODUCE_9, 250);
    assert_eq!(rig.reasons()[1], "UNNAMED_250 in Produce");
}

#[test]
fn a_trouble_that_goes_on_is_captured_a_few_times_a_minute_and_the_rest_counted() {
    let rig = Rig::on("UNNAMED");
    for _ in 0..100 {
        let mut record = rig.record();
        record.request(PRODUCE_9, None);
        record.response(PRODUCE_9, 250);
    }
    let mut record = rig.record();
    record.request(PRODUCE_9, None);
    record.response(PRODUCE_9, 251);
    let (taken, reasons) = (rig.reasons().len() as f64, rig.reasons());
    // (a minute may have begun meanwhile)
    assert!((7.0..=13.0).contains(&taken), "{reasons:?}");
    assert_eq!(
        reasons.last().unwrap(),
        "UNNAMED_251 in Produce",
        "another trouble has its own limit"
    );
    let limited = rig.metric(r#"klamp_captures_dropped_total{reason="rate_limited"}"#);
    assert_eq!(taken + limited, 101.0);
}

#[test]
fn a_connection_that_has_the_same_trouble_with_every_message_is_captured_once_for_a_while() {
    let rig = Rig::on("UNNAMED");
    let mut record = rig.record();
    for code in [250, 250, 250, 250, 250, 251] {
        for exchange in [PRODUCE_9, FETCH_16] {
            record.request(exchange, None);
            record.response(exchange, if exchange == PRODUCE_9 { code } else { 0 });
        }
    }
    let expected = ["UNNAMED_250 in Produce", "UNNAMED_251 in Produce"];
    assert_eq!(rig.reasons(), expected, "two captures of three frames each");
    let limited = rig.metric(r#"klamp_captures_dropped_total{reason="rate_limited"}"#);
    assert!((2.0..=4.0).contains(&limited), "{limited}");
}

#[test]
fn an_answer_is_late_by_what_lies_beyond_the_wait_that_was_asked_for() {
    let rig = Rig::on("slow=2s");
    let mut record = rig.record();
    let mut answered = |exchange, latency, wait| {
        let (latency, wait) = (
            Some(Duration::from_millis(latency)),
            Some(Duration::from_millis(wait)),
        );
        let frame_bytes = 100;
        record.request(exchange, None);
        record.sees(
            Response,
            Observation::ResponseHead {
                exchange,
                frame_bytes,
                is_like_last: false,
                latency,
                wait,
                has_layout: true,
            },
        );
        let outcome = Went::Ok;
        record.sees(
            Response,
            Observation::ResponseEnd {
                exchange,
                frame_bytes,
                outcome,
            },
        );
        rig.reasons()
    };
    assert!(answered(PRODUCE_9, 2_000, 0).is_empty());
    assert!(answered(FETCH_16, 60_000, 58_500).is_empty());
    let late = answered(FETCH_16, 60_000, 57_766);
    assert_eq!(late, ["slow Fetch: 2.23s late"]);
}

#[test]
fn a_malformed_message_and_a_mismatch_are_captured_where_that_is_asked_for() {
    for (list, expected) in [
        (
            "malformed,mismatch",
            &[
                "malformed Produce request of version 9",
                "mismatch: correlation id 1, expected no answer",
                "mismatch: correlation id 1, expected 7",
            ][..],
        ),
        ("BEYOND", &[]),
    ] {
        let rig = Rig::on(list);
        let mut one = rig.record();
        let opaque = |reason| Observation::Opaque {
            exchange: PRODUCE_9,
            reason,
            fault: None,
        };
        one.sees(Request, opaque(Why::UnknownVersion));
        one.request(PRODUCE_9, None);
        one.sees(Request, opaque(Why::Malformed));
        one.request(PRODUCE_9, None);
        for expected in [None, Some(CorrelationId(7))] {
            let got = CorrelationId(1);
            let mismatch = Observation::Mismatch { expected, got };
            rig.record().sees(Response, mismatch);
        }
        assert_eq!(rig.reasons(), expected);
    }
}

#[test]
fn a_close_that_leaves_something_undone_is_captured_where_that_is_asked_for() {
    use CloseReason::{Broker, BrokerAfterAcks0, BrokerInFlight, Client, ClientInFlight, Drained};
    let rig = Rig::on("close");
    for why in [
        Client,
        Broker,
        Drained,
        ClientInFlight,
        BrokerInFlight,
        BrokerAfterAcks0,
    ] {
        rig.record().ended(Ended::Session(why));
    }
    let expected = [
        "close: the client closed with requests in flight",
        "close: the broker closed with requests in flight",
        "close: the broker closed after a Produce with acks=0",
    ];
    assert_eq!(rig.reasons(), expected);
    assert!(!rig.is_recording());
}

#[test]
fn a_connection_that_ends_before_the_frame_does_is_captured_all_the_same() {
    for tell in [true, false] {
        let rig = Rig::on("UNNAMED");
        let mut record = rig.record();
        record.request(FETCH_16, None);
        let code = ErrorCode(250);
        record.sees(
            Response,
            Observation::Errors {
                exchange: FETCH_16,
                code,
                count: 1,
            },
        );
        if tell {
            record.ended(Ended::Session(CloseReason::BrokerInFlight));
        }
        drop(record);
        assert_eq!(rig.reasons(), ["UNNAMED_250 in Fetch"]);
        assert!(!rig.is_recording());
    }
}
