//! Requests and responses are matched in order, klamp's own answers among them; the trap is the request
//! that gets no answer, or may get none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod sim;

use klamp_codec::observation::{CloseReason, Exchange, OpaqueReason, Outcome};
use klamp_codec::{ApiKey, CorrelationId, Direction};
use sim::frames::Produce;
use sim::{Conversation, End, Relay, Script, Seen, Style, frames, raw};

/// A request that no version of Kafka has, and an answer to it that nobody reads.
fn nameless(api_key: i16, api_version: i16, id: i32) -> (Vec<u8>, Vec<u8>) {
    (
        raw::Raw::request(api_key, api_version, id, Some("odd"))
            .bytes(b"\x00what only they know")
            .frame(),
        raw::Raw::response(id).bytes(b"whatever it means").frame(),
    )
}

fn metadata(id: i32) -> (Vec<u8>, Vec<u8>) {
    (frames::metadata(1, id), frames::metadata_told(1, id, &[]))
}

fn exchange(api_key: i16, api_version: i16, id: i32) -> Exchange {
    Exchange {
        api_key: ApiKey(api_key),
        api_version,
        correlation_id: CorrelationId(id),
    }
}

#[test]
fn an_api_versions_request_that_nobody_reads_is_answered_here_and_swallowed() {
    for version in [6, 127, i16::MAX, -1, i16::MIN] {
        let script = Script::new()
            .client(&raw::api_versions_beyond(version, 77))
            .client_eof()
            .broker_eof();
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(
            trace.request.output, b"",
            "v{version}: the broker never sees it"
        );
        assert_eq!(trace.response.output, sim::own_answer(77), "v{version}");
        assert!(trace.response.saw(&Seen::Answered {
            exchange: exchange(18, version, 77)
        }));
        assert_eq!(trace.in_flight, 0);
        assert_eq!(trace.end, End::Finished(CloseReason::Client));
    }
}

#[test]
fn own_answers_wait_for_the_answers_before_them_and_hold_back_none_after() {
    let (one, four) = (metadata(1), metadata(4));
    let talk = Conversation::new()
        .tell(&raw::api_versions_beyond(127, 0))
        .ask(&one.0, &one.1)
        .tell(&raw::api_versions_beyond(127, 2))
        .tell(&raw::api_versions_beyond(-1, 3))
        .ask(&four.0, &four.1)
        .tell(&raw::api_versions_beyond(6, 5))
        .tell(&Produce::plain(9, 6, 0).frame())
        .tell(&raw::api_versions_beyond(7, 7))
        .end();
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
    let to_client = [
        sim::own_answer(0),
        one.1,
        sim::own_answer(2),
        sim::own_answer(3),
        four.1,
        sim::own_answer(5),
        sim::own_answer(7),
    ];
    assert_eq!(trace.response.output, to_client.concat());
    assert_eq!(
        trace.request.output,
        [one.0, four.0, Produce::plain(9, 6, 0).frame()].concat()
    );
    assert_eq!(trace.in_flight, 0);
}

#[test]
fn an_own_answer_never_splits_the_response_before_it() {
    let (one, answer) = metadata(1);
    for cut in 0..answer.len() {
        let mut relay = Relay::new(sim::shared(sim::policy()), Style::default());
        relay.arrive(Direction::Request, &one);
        relay.arrive(Direction::Response, &answer[..cut]);
        relay.arrive(Direction::Request, &raw::api_versions_beyond(127, 2));
        let early = relay.trace().response.output;
        assert!(answer.starts_with(&early), "after {cut} bytes: {early:?}");
        relay.arrive(Direction::Response, &answer[cut..]);
        assert_eq!(
            relay.trace().response.output,
            [answer.clone(), sim::own_answer(2)].concat()
        );
    }
}

#[test]
fn an_own_answer_waits_for_the_last_byte_of_its_request() {
    let ask = raw::api_versions_beyond(127, 1);
    let mut relay = Relay::new(sim::shared(sim::policy()), Style::default());
    for byte in &ask[..ask.len() - 1] {
        relay.arrive(Direction::Request, &[*byte]);
        assert_eq!(relay.trace().response.output, b"");
    }
    relay.arrive(Direction::Request, &ask[ask.len() - 1..]);
    assert_eq!(relay.trace().response.output, sim::own_answer(1));
}

#[test]
fn after_an_own_answer_the_client_asks_again_and_is_clamped() {
    let talk = Conversation::new()
        .tell(&raw::api_versions_beyond(127, 1))
        .ask(
            &frames::api_versions(4, 2),
            &frames::versions_told(4, 2, 0, frames::OFFERED),
        );
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
    let clamped = frames::versions_told(4, 2, 0, frames::CLAMPED);
    assert_eq!(
        trace.response.output,
        [sim::own_answer(1), clamped].concat()
    );
}

#[test]
fn with_the_clamp_off_the_broker_answers_every_api_versions_request() {
    for version in [6, 127, -1] {
        let talk = Conversation::new()
            .ask(
                &raw::api_versions_beyond(version, 1),
                &raw::unsupported_version(1, 0, 5),
            )
            .ask(
                &frames::api_versions(0, 2),
                &frames::versions_told(0, 2, 0, frames::OFFERED),
            );
        let trace = sim::same_under_any_interleaving(&sim::shared(sim::watching()), &talk);
        assert_eq!(trace.request.output, talk.asked(), "v{version}");
        assert_eq!(trace.response.output, talk.answered(), "v{version}");
        assert_eq!(
            trace.response.errors(),
            [(1, 35, 1), (2, 0, 1)],
            "v{version}"
        );
        assert_eq!(
            trace.response.responses(),
            [(1, Outcome::Error), (2, Outcome::Ok)]
        );
    }
}

#[test]
fn keys_and_versions_that_nobody_reads_pass_and_are_told_as_such() {
    let cases = [
        (9999, 0, OpaqueReason::UnknownKey),
        (-1, 3, OpaqueReason::UnknownKey),
        (i16::MIN, i16::MIN, OpaqueReason::UnknownKey),
        (10_000, 1, OpaqueReason::UnknownKey),
        (1, 99, OpaqueReason::UnknownVersion),
        (3, -1, OpaqueReason::UnknownVersion),
        (3, 99, OpaqueReason::UnknownVersion),
        (0, 99, OpaqueReason::UnknownVersion),
        (17, 9, OpaqueReason::UnknownVersion),
    ];
    for (key, version, reason) in cases {
        for policy in [sim::policy(), sim::watching()] {
            let (ask, answer) = nameless(key, version, 1);
            let after = metadata(2);
            let talk = Conversation::new()
                .ask(&ask, &answer)
                .ask(&after.0, &after.1)
                .end();
            let trace = sim::same_under_any_interleaving(&sim::shared(policy), &talk);
            assert_eq!(trace.request.output, talk.asked());
            assert_eq!(trace.response.output, talk.answered());
            assert!(
                trace.request.opaque().contains(&(1, reason)),
                "key {key} v{version}: {:?}",
                trace.request.opaque()
            );
            assert_eq!(
                trace.response.responses(),
                [(1, Outcome::Opaque), (2, Outcome::Ok)]
            );
            assert_eq!(trace.in_flight, 0);
        }
    }
}

#[test]
fn controlled_shutdown_v0_has_a_header_without_client_id() {
    let ask = raw::Raw::new().i16(7).i16(0).i32(5).i32(1).frame();
    let answer = raw::Raw::response(5).i16(0).i32(0).frame();
    let after = metadata(6);
    let talk = Conversation::new()
        .ask(&ask, &answer)
        .ask(&after.0, &after.1);
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
    let told = trace.request.what().find_map(|it| match it {
        Seen::RequestHead {
            exchange,
            client_id,
            ..
        } => Some((*exchange, client_id.clone())),
        _ => None,
    });
    assert_eq!(told, Some((exchange(7, 0, 5), None)));
    assert_eq!(trace.request.output, talk.asked());
    assert_eq!(trace.response.heads(), [5, 6]);
}

#[test]
fn a_produce_that_nobody_reads_may_be_answered_or_not() {
    let (odd, its_answer) = nameless(0, 99, 1);
    let after = metadata(2);
    for policy in [sim::policy(), sim::watching()] {
        let policy = sim::shared(policy);
        let silent = Script::new().client(&odd).client(&after.0).broker(&after.1);
        let trace = sim::same_under_any_cut(&policy, &silent);
        assert_eq!(trace.response.output, after.1);
        assert_eq!(trace.response.responses(), [(2, Outcome::Ok)]);
        assert_eq!(
            trace.in_flight, 0,
            "what was left without an answer is dropped"
        );
        assert_eq!(trace.end, End::Open);

        let answered = silent_but(&odd, &after.0)
            .broker(&its_answer)
            .broker(&after.1);
        let trace = sim::same_under_any_cut(&policy, &answered);
        assert_eq!(
            trace.response.responses(),
            [(1, Outcome::Opaque), (2, Outcome::Ok)]
        );
        assert_eq!(trace.in_flight, 0);
    }
}

fn silent_but(one: &[u8], two: &[u8]) -> Script {
    Script::new().client(one).client(two)
}

#[test]
fn only_unknown_expectations_are_dropped_in_silence() {
    let policy = sim::shared(sim::policy());
    let odd = |id| nameless(0, 99, id);
    let (two, four) = (metadata(2), metadata(4));
    let asked = [odd(0).0, odd(1).0, two.0, odd(3).0, four.0].concat();

    let second_of_two = Script::new()
        .client(&asked)
        .broker(&odd(1).1)
        .broker(&two.1)
        .broker(&four.1);
    let trace = sim::same_under_any_cut(&policy, &second_of_two);
    assert_eq!(trace.response.heads(), [1, 2, 4]);
    assert_eq!(trace.in_flight, 0);

    let past_an_expected_one = Script::new().client(&asked).broker(&four.1);
    let trace = sim::same_under_any_cut(&policy, &past_an_expected_one);
    assert_eq!(trace.end, End::Closed(CloseReason::Mismatch));
    let mismatch = Seen::Mismatch {
        expected: Some(CorrelationId(2)),
        got: CorrelationId(4),
    };
    assert!(trace.response.saw(&mismatch), "{:?}", trace.response.seen);
}

#[test]
fn an_own_answer_behind_a_request_that_may_stay_unanswered_still_leaves() {
    // The client of a Produce with acks=0 in a version that nobody reads gets its ApiVersions answer
    // late, when the next response shows that the Produce stays unanswered; never too early.
    let odd = nameless(0, 99, 1);
    let after = metadata(3);
    let script = Script::new()
        .client(&odd.0)
        .client(&raw::api_versions_beyond(127, 2))
        .client(&after.0)
        .broker(&after.1);
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(
        trace.response.output,
        [sim::own_answer(2), after.1].concat()
    );
    assert_eq!(trace.in_flight, 0);
}

#[test]
fn a_response_out_of_order_closes_where_klamp_rewrites_and_passes_where_it_watches() {
    let (one, two) = (metadata(1), metadata(2));
    let script = Script::new()
        .client(&one.0)
        .client(&two.0)
        .broker(&two.1)
        .broker(&one.1);
    let mismatch = Seen::Mismatch {
        expected: Some(CorrelationId(1)),
        got: CorrelationId(2),
    };

    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.end, End::Closed(CloseReason::Mismatch));
    assert!(trace.response.saw(&mismatch));
    assert_eq!(trace.response.output, b"");

    let goes_on = script
        .client(b"\xff\xff\xff\xff anything")
        .broker(b"anything")
        .client_eof()
        .broker_eof();
    let trace = sim::same_under_any_cut(&sim::shared(sim::watching()), &goes_on);
    assert!(trace.response.saw(&mismatch));
    assert!(
        trace
            .response
            .what()
            .chain(trace.request.what())
            .any(|it| *it == Seen::Unseen(OpaqueReason::Mismatch))
    );
    assert_eq!(trace.request.output, goes_on.stream(Direction::Request));
    assert_eq!(trace.response.output, goes_on.stream(Direction::Response));
    assert!(matches!(trace.end, End::Finished(_)), "{:?}", trace.end);
}

#[test]
fn a_response_that_nobody_asked_for_is_a_mismatch() {
    let after_all = metadata(1);
    let extra = frames::metadata_told(1, 9, &[]);
    let unasked = [
        (Script::new().broker(&extra), Vec::new()),
        (
            Script::new()
                .client(&after_all.0)
                .broker(&after_all.1)
                .broker(&extra),
            after_all.1,
        ),
        (
            Script::new()
                .client(&Produce::plain(9, 9, 0).frame())
                .broker(&extra),
            Vec::new(),
        ),
        (
            Script::new()
                .client(&raw::api_versions_beyond(127, 9))
                .broker(&extra),
            sim::own_answer(9),
        ),
    ];
    for (script, before) in unasked {
        let mismatch = Seen::Mismatch {
            expected: None,
            got: CorrelationId(9),
        };
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(trace.end, End::Closed(CloseReason::Mismatch), "{script:?}");
        assert!(trace.response.saw(&mismatch), "{script:?}");
        assert_eq!(trace.response.output, before);
    }
    let script = Script::new()
        .client(&after_all.0)
        .broker(&frames::metadata_told(1, 1, &[]))
        .broker(&extra);
    let trace = sim::same_under_any_cut(&sim::shared(sim::watching()), &script);
    assert_eq!(trace.response.output, script.stream(Direction::Response));
    assert_eq!(trace.end, End::Open);
}

#[test]
fn correlation_ids_may_repeat_be_negative_or_run_backwards() {
    let ids = [5, 5, -1, i32::MIN, i32::MAX, 0, 5];
    let mut talk = Conversation::new();
    for id in ids {
        let (ask, answer) = metadata(id);
        talk = talk.ask(&ask, &answer);
    }
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
    assert_eq!(trace.response.heads(), ids);
    assert_eq!(trace.in_flight, 0);
}

#[test]
fn a_response_that_comes_before_its_request_has_ended_still_belongs_to_it() {
    // A broker that refuses early, say by size: legal on the wire, and no latency can be told.
    let request = Produce {
        bytes: 4000,
        ..Produce::plain(9, 1, -1)
    }
    .frame();
    let response = frames::produced(9, 1, &[10]);
    let script = Script::new()
        .client(&request[..600])
        .broker(&response)
        .client(&request[600..]);
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.request.output, request);
    assert_eq!(trace.response.output, response);
    assert_eq!(trace.response.responses(), [(1, Outcome::Error)]);
    let latency = trace.response.what().find_map(|it| match it {
        Seen::ResponseHead { latency, .. } => Some(*latency),
        _ => None,
    });
    assert_eq!(latency, Some(None));
    assert_eq!(trace.in_flight, 0);
}
