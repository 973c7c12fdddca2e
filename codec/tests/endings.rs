//! How connections end and who gets the blame: half-closes pass on, and a broker that closes upon a
//! request it could not answer is told with that request, the only sign that it failed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod sim;

use klamp_codec::Direction;
use klamp_codec::observation::{CloseReason, VerdictCause};
use sim::frames::Produce;
use sim::raw::Raw;
use sim::{End, Script, Seen, Trace, frames, raw};
use std::time::Duration;

const RESPONSE: Direction = Direction::Response;

fn run(script: &Script) -> Trace {
    sim::same_under_any_cut(&sim::shared(sim::policy()), script)
}

/// The verdicts told: correlation id, cause, topics.
fn verdicts(trace: &Trace) -> Vec<(i32, VerdictCause, String)> {
    trace
        .response
        .what()
        .chain(trace.request.what())
        .filter_map(|it| match it {
            Seen::Verdict {
                exchange,
                cause,
                topics,
            } => Some((exchange.correlation_id.0, *cause, topics.clone())),
            _ => None,
        })
        .collect()
}

fn talked() -> Script {
    Script::new()
        .client(&frames::metadata(1, 1))
        .broker(&frames::metadata_told(1, 1, &[]))
}

#[test]
fn whoever_closes_first_is_the_reason() {
    let asking = || talked().client(&frames::metadata(1, 2));
    let half_asked = || talked().client(&frames::metadata(1, 2)[..17]);
    let half_a_produce = || {
        let produce = Produce {
            bytes: 500,
            ..Produce::plain(9, 2, 0)
        };
        talked().client(&produce.frame()[..300])
    };
    let half_a_header = || talked().client(&frames::metadata(1, 2)[..9]);
    let half_answered = || asking().broker(&frames::metadata_told(1, 2, &[])[..9]);
    let cases = [
        (Script::new().client_eof().broker_eof(), CloseReason::Client),
        (Script::new().broker_eof().client_eof(), CloseReason::Broker),
        (talked().client_eof().broker_eof(), CloseReason::Client),
        (talked().broker_eof().client_eof(), CloseReason::Broker),
        (
            asking().client_eof().broker_eof(),
            CloseReason::ClientInFlight,
        ),
        (
            asking().broker_eof().client_eof(),
            CloseReason::BrokerInFlight,
        ),
        (
            half_a_produce().client_eof().broker_eof(),
            CloseReason::ClientInFlight,
        ),
        (
            half_a_header().client_eof().broker_eof(),
            CloseReason::ClientInFlight,
        ),
        (
            half_asked().client_eof().broker_eof(),
            CloseReason::ClientInFlight,
        ),
        (
            half_asked().broker_eof().client_eof(),
            CloseReason::BrokerInFlight,
        ),
        (
            half_answered().client_eof().broker_eof(),
            CloseReason::ClientInFlight,
        ),
        (
            half_answered().broker_eof().client_eof(),
            CloseReason::BrokerInFlight,
        ),
    ];
    for (script, reason) in cases {
        let trace = run(&script);
        assert_eq!(trace.end, End::Finished(reason), "{script:?}");
        assert!(verdicts(&trace).is_empty(), "{script:?}");
    }
}

#[test]
fn a_client_that_closes_its_half_still_gets_its_answers() {
    let script = Script::new()
        .client(&frames::metadata(1, 1))
        .client(&frames::metadata(1, 2))
        .client(&raw::api_versions_beyond(127, 3))
        .client_eof()
        .broker(&frames::metadata_told(1, 1, &[]))
        .broker(&frames::metadata_told(1, 2, &[]))
        .broker_eof();
    let trace = run(&script);
    assert_eq!(
        trace.response.output,
        [script.stream(RESPONSE), sim::own_answer(3)].concat()
    );
    assert_eq!(trace.response.heads(), [1, 2]);
    assert_eq!(trace.in_flight, 0);
    assert!(trace.request.finished && trace.response.finished);
}

#[test]
fn a_broker_that_closes_its_half_still_gets_what_the_client_sends() {
    let last_words = [frames::metadata(1, 2), b"\x00\x00".to_vec()].concat();
    let script = talked().broker_eof().client(&last_words).client_eof();
    let trace = run(&script);
    assert_eq!(trace.request.output, script.stream(Direction::Request));
    assert_eq!(trace.end, End::Finished(CloseReason::Broker));
}

#[test]
fn a_broker_that_closes_right_after_acks_0_gives_its_verdict_on_that_produce() {
    for version in 0..=13 {
        let produce = match version {
            0..=2 => raw::old_produce(version, 7, 0, "t-one", b"records"),
            _ => Produce {
                topics: &["t-one", "t-two"],
                ..Produce::plain(version, 7, 0)
            }
            .frame(),
        };
        for script in [
            talked().client(&produce).broker_eof().client_eof(),
            talked().client(&produce).broker_lost(),
        ] {
            let trace = run(&script);
            assert_eq!(trace.reason(), CloseReason::BrokerAfterAcks0, "v{version}");
            let verdicts = verdicts(&trace);
            assert_eq!(verdicts.len(), 1, "v{version}");
            let (id, cause, topics) = &verdicts[0];
            assert_eq!((*id, *cause), (7, VerdictCause::Acks0));
            assert_eq!(
                topics.contains("t-one"),
                version < 13,
                "v{version}: {topics:?}"
            );
            assert_eq!(
                topics.contains("t-two"),
                (3..13).contains(&version),
                "v{version}: {topics:?}"
            );
        }
    }
}

#[test]
fn topics_in_a_verdict_are_those_of_the_last_produce_and_bounded() {
    let names: Vec<String> = (0..5000)
        .map(|n| format!("{n}-{}", "x".repeat(200)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let script = Script::new()
        .client(
            &Produce {
                topics: &["earlier"],
                ..Produce::plain(9, 1, 0)
            }
            .frame(),
        )
        .client(
            &Produce {
                topics: &names,
                bytes: 1,
                ..Produce::plain(9, 2, 0)
            }
            .frame(),
        )
        .broker_eof()
        .client_eof();
    let trace = sim::same_under_some_cuts(&sim::shared(sim::policy()), &script);
    let verdicts = verdicts(&trace);
    let (id, _, topics) = &verdicts[0];
    assert_eq!(*id, 2);
    assert!(
        topics.starts_with("0-x") && !topics.contains("earlier"),
        "{topics}"
    );
    assert!(topics.len() < 4096, "{} bytes of topics", topics.len());

    let odd = Raw::request(0, 3, 1, None)
        .string(None)
        .i16(0)
        .i32(1)
        .i32(1)
        .i16(4)
        .bytes(b"\xff\n\x1b[")
        .i32(0)
        .frame();
    let trace = run(&Script::new().client(&odd).broker_eof().client_eof());
    let topics = &self::verdicts(&trace)[0].2;
    assert!(
        topics.chars().all(|c| !c.is_control()),
        "a log line stays one: {topics:?}"
    );
}

#[test]
fn no_verdict_on_a_produce_that_was_not_the_last_word() {
    let acks0 = Produce::plain(9, 7, 0).frame();
    let much_later = Duration::from_secs(3600);
    let cases = [
        (
            talked().client(&acks0).client_eof().broker_eof(),
            CloseReason::Client,
        ),
        (
            talked()
                .client(&acks0)
                .client(&frames::metadata(1, 8))
                .broker_eof()
                .client_eof(),
            CloseReason::BrokerInFlight,
        ),
        (
            talked()
                .client(&acks0)
                .client(&frames::metadata(1, 8))
                .broker(&frames::metadata_told(1, 8, &[]))
                .broker_eof()
                .client_eof(),
            CloseReason::Broker,
        ),
        (
            talked()
                .client(&acks0)
                .after(much_later)
                .broker_eof()
                .client_eof(),
            CloseReason::Broker,
        ),
        (
            talked()
                .client(&Produce::plain(9, 7, -1).frame())
                .broker_eof()
                .client_eof(),
            CloseReason::BrokerInFlight,
        ),
    ];
    for (script, reason) in cases {
        let trace = run(&script);
        assert_eq!(trace.reason(), reason, "{script:?}");
        assert!(verdicts(&trace).is_empty(), "{script:?}");
    }
}

#[test]
fn a_broker_that_closes_upon_what_nobody_reads_gives_its_verdict_on_it() {
    for (key, version) in [(9999, 0), (0, 99), (1, 99), (3, 99), (-7, -7), (17, 5)] {
        let odd = Raw::request(key, version, 7, Some("c"))
            .bytes(&[0; 24])
            .frame();
        for script in [
            talked().client(&odd).broker_eof().client_eof(),
            talked()
                .client(&odd)
                .client(&frames::metadata(1, 8))
                .broker_eof()
                .client_eof(),
            talked().client(&odd).broker_lost(),
        ] {
            let trace = run(&script);
            assert_eq!(
                trace.reason(),
                CloseReason::BrokerAfterOpaque,
                "key {key} v{version}"
            );
            assert_eq!(verdicts(&trace), [(7, VerdictCause::Opaque, String::new())]);
        }
    }
}

#[test]
fn a_broker_that_closes_upon_what_does_not_fit_its_layout_gives_its_verdict_on_it() {
    let odd = Raw::request(0, 9, 7, Some("c"))
        .no_tags()
        .bytes(&[0xff; 9])
        .frame();
    let trace = run(&talked().client(&odd).broker_eof().client_eof());
    assert_eq!(trace.reason(), CloseReason::BrokerAfterOpaque);
    assert_eq!(verdicts(&trace), [(7, VerdictCause::Opaque, String::new())]);
}

#[test]
fn no_verdict_on_what_was_answered_after_all() {
    let odd = Raw::request(9999, 0, 7, Some("c")).bytes(&[0; 24]).frame();
    let answer = Raw::response(7).bytes(b"fine").frame();
    let trace = run(&talked()
        .client(&odd)
        .broker(&answer)
        .broker_eof()
        .client_eof());
    assert_eq!(trace.reason(), CloseReason::Broker);
    assert!(verdicts(&trace).is_empty());
    let trace = run(&talked().client(&odd).client_eof().broker_eof());
    assert_eq!(
        trace.reason(),
        CloseReason::ClientInFlight,
        "the client left first"
    );
    assert!(verdicts(&trace).is_empty());
}

#[test]
fn a_lost_broker_without_a_cause_leaves_the_reason_to_the_caller() {
    for script in [
        talked().broker_lost(),
        talked().client(&frames::metadata(1, 2)).broker_lost(),
    ] {
        let trace = run(&script);
        assert_eq!(trace.end, End::Lost(RESPONSE));
        assert!(verdicts(&trace).is_empty());
    }
}
