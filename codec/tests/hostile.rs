//! Bytes that are no frames, and frames that are no messages: each gets the outcome that an operator can
//! read, and none a panic, a spin or memory without bound.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod sim;

use klamp_codec::observation::{CloseReason, OpaqueReason, Outcome, RejectReason};

use klamp_codec::session::{MAX_HELD, NonKafka, Policy};
use klamp_codec::{ApiKey, Direction, ours};
use sim::raw::{Raw, framed};
use sim::{End, MAX_REQUEST, Script, Seen, frames};

const REQUEST: Direction = Direction::Request;
const RESPONSE: Direction = Direction::Response;

fn int(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes[..4].try_into().unwrap())
}

/// What a client may open with that is no Kafka, and what it is taken for.
fn other_protocols() -> Vec<(&'static [u8], RejectReason)> {
    vec![
        (b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", RejectReason::Http),
        (b"POST /topics HTTP/1.1\r\n\r\n", RejectReason::Http),
        (b"PUT /x HTTP/1.1\r\n\r\n", RejectReason::Http),
        (b"HEAD / HTTP/1.0\r\n\r\n", RejectReason::Http),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", RejectReason::Http),
        (b"DELETE /x HTTP/1.1\r\n\r\n", RejectReason::Http),
        (b"CONNECT kafka:9092 HTTP/1.1\r\n\r\n", RejectReason::Http),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", RejectReason::Http),
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            RejectReason::Tls,
        ),
        (
            b"\x16\x03\x03\x00\xc8\x01\x00\x00\xc4\x03\x03",
            RejectReason::Tls,
        ),
        (b"\x15\x03\x03\x00\x02\x02\x28", RejectReason::Tls),
    ]
}

#[test]
fn a_request_that_is_no_frame_closes_and_names_the_likely_cause() {
    let too_large = (MAX_REQUEST + 1).to_be_bytes();
    let mut cases: Vec<(&[u8], RejectReason)> = vec![
        (b"\xff\xff\xff\xff", RejectReason::NegativeLength),
        (b"\x80\x00\x00\x00", RejectReason::NegativeLength),
        (b"\x00\x00\x00\x00", RejectReason::TooShort),
        (b"\x00\x00\x00\x03\x00\x03\x00", RejectReason::TooShort),
        (
            b"\x00\x00\x00\x07\x00\x03\x00\x01\x00\x00\x00",
            RejectReason::TooShort,
        ),
        (b"\x7f\xff\xff\xff", RejectReason::TooLarge),
        (&too_large, RejectReason::TooLarge),
    ];
    cases.extend(other_protocols());
    for (bytes, reason) in cases {
        let before = frames::metadata(1, 1);
        for prefix in [b"".as_slice(), &before] {
            let script = Script::new().client(&[prefix, bytes].concat());
            let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
            assert_eq!(
                trace.request.output, prefix,
                "{reason:?}: what came before it passes"
            );
            let (told, length) = *trace.request.rejected().first().expect("it is told");
            assert_eq!(trace.request.rejected().len(), 1);
            assert_eq!(length, int(bytes));
            assert_eq!(told, reason, "{bytes:?} after {} bytes", prefix.len());
            assert_eq!(
                trace.end,
                End::Closed(CloseReason::Rejected(REQUEST, reason))
            );
        }
    }
}

#[test]
fn the_largest_request_that_is_allowed_passes() {
    let mut request = Raw::request(3, 1, 1, None).i32(-1);
    request = request.bytes(&vec![0; MAX_REQUEST as usize - 14]);
    let request = request.frame();
    assert_eq!(int(&request), MAX_REQUEST as i32);
    let trace = sim::trace_of(&sim::shared(sim::policy()), &Script::new().client(&request));
    assert_eq!(trace.request.requests(), [1]);
    assert_eq!(trace.end, End::Open);
}

#[test]
fn a_response_that_is_no_frame_closes_and_names_the_likely_cause() {
    let cases: Vec<(&[u8], RejectReason)> = vec![
        (b"\xff\xff\xff\xff", RejectReason::NegativeLength),
        (b"\x00\x00\x00\x00", RejectReason::TooShort),
        (b"\x00\x00\x00\x03\x00\x00\x00", RejectReason::TooShort),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", RejectReason::Http),
        (b"\x15\x03\x03\x00\x02\x02\x28", RejectReason::Tls),
    ];
    for (bytes, reason) in cases {
        let script = Script::new().client(&frames::metadata(1, 1)).broker(bytes);
        for policy in [sim::policy(), sim::watching()] {
            let trace = sim::same_under_any_cut(&sim::shared(policy), &script);
            assert_eq!(trace.response.output, b"");
            assert_eq!(trace.response.rejected(), [(reason, int(bytes))]);
            assert_eq!(
                trace.end,
                End::Closed(CloseReason::Rejected(RESPONSE, reason))
            );
        }
    }
}

#[test]
fn a_response_may_be_as_long_as_a_length_can_say() {
    let head = [
        &i32::MAX.to_be_bytes()[..],
        &1_i32.to_be_bytes(),
        b"beginning",
    ]
    .concat();
    let script = Script::new()
        .client(&frames::fetch(12, 1, 500))
        .broker(&head);
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.end, End::Open);
    assert_eq!(trace.response.output, head);
    let bytes = trace.response.what().find_map(|it| match it {
        Seen::ResponseHead { frame_bytes, .. } => Some(*frame_bytes),
        _ => None,
    });
    assert_eq!(bytes, Some(i32::MAX as u64 + 4));
}

#[test]
fn where_other_protocols_pass_they_pass_both_ways_untouched_from_the_start_only() {
    let pass = || Policy {
        non_kafka: NonKafka::Pass,
        ..sim::policy()
    };
    for (bytes, reason) in other_protocols() {
        let script = Script::new()
            .client(bytes)
            .broker(b"\xff\xff\xff\xff\x00\x00\x00\x00 anything")
            .client(b"\xff\xff\xff\xff and more")
            .client_eof()
            .broker(b"the rest")
            .broker_eof();
        let trace = sim::same_under_any_cut(&sim::shared(pass()), &script);
        assert_eq!(trace.request.output, script.stream(REQUEST));
        assert_eq!(trace.response.output, script.stream(RESPONSE));
        assert_eq!(trace.request.rejected(), [(reason, int(bytes))]);
        assert!(trace.request.saw(&Seen::Unseen(OpaqueReason::NonKafka)));
        assert_eq!(trace.end, End::Finished(CloseReason::Client));

        let later = Script::new().client(&frames::metadata(1, 1)).client(bytes);
        let trace = sim::same_under_any_cut(&sim::shared(pass()), &later);
        assert_eq!(
            trace.end,
            End::Closed(CloseReason::Rejected(REQUEST, reason))
        );
    }
}

#[test]
fn other_rejects_close_even_where_other_protocols_pass() {
    for bytes in [[0xff; 4], [0; 4], i32::MAX.to_be_bytes()] {
        let policy = Policy {
            non_kafka: NonKafka::Pass,
            ..sim::policy()
        };
        let trace = sim::same_under_any_cut(&sim::shared(policy), &Script::new().client(&bytes));
        assert!(
            matches!(trace.end, End::Closed(CloseReason::Rejected(REQUEST, _))),
            "{trace:?}"
        );
        assert_eq!(trace.request.output, b"");
    }
}

#[test]
fn a_header_cut_short_by_its_own_length_closes() {
    for length in 8..10_u8 {
        let header = Raw::request(3, 1, 7, None);
        let bytes = [
            &[0, 0, 0, length],
            &header.frame()[4..4 + usize::from(length)],
        ]
        .concat();
        let script = Script::new().client(&bytes).client(&frames::metadata(1, 8));
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        let reason = RejectReason::TooShort;
        assert_eq!(
            trace.end,
            End::Closed(CloseReason::Rejected(REQUEST, reason)),
            "length {length}"
        );
        assert_eq!(trace.request.output, b"");
    }
}

#[test]
fn a_client_id_that_overruns_its_frame_passes_as_malformed() {
    for over in [1, 2, 100, i16::MAX - 5] {
        let header = Raw::new().i16(3).i16(1).i32(7);
        let cut = header.i16(5 + over).bytes(b"short").frame();
        let after = frames::metadata(1, 8);
        let script = Script::new()
            .client(&cut)
            .client(&after)
            .broker(&frames::metadata_told(1, 7, &[]))
            .broker(&frames::metadata_told(1, 8, &[]));
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(trace.request.output, [cut, after].concat());
        assert_eq!(trace.request.opaque(), [(7, OpaqueReason::Malformed)]);
        assert_eq!(trace.request.heads(), [7, 8], "what could be read is told");
        assert_eq!(trace.response.heads(), [7, 8]);
    }
}

#[test]
fn a_message_that_does_not_fit_its_layout_passes_where_nothing_must_be_rewritten() {
    let bodies: [(&str, Vec<u8>); 6] = [
        (
            "a body of four bytes",
            Raw::response(1).i32(0x0101_0101).frame(),
        ),
        ("no body at all", Raw::response(1).frame()),
        (
            "an array of 2^31 - 1",
            Raw::response(1).i32(i32::MAX).bytes(&[0; 40]).frame(),
        ),
        (
            "an array of -2^31",
            Raw::response(1).i32(i32::MIN).bytes(&[0; 40]).frame(),
        ),
        (
            "a string of 32,767",
            Raw::response(1)
                .i32(1)
                .i32(1)
                .i16(i16::MAX)
                .bytes(b"short")
                .frame(),
        ),
        ("trailing bytes", {
            let whole = frames::metadata_told(1, 1, &[]);
            framed(&[&whole[4..], b"more than was asked for"].concat())
        }),
    ];
    for (what, body) in bodies {
        let after = frames::metadata_told(1, 2, &[&[3]]);
        let script = Script::new()
            .client(&frames::metadata(1, 1))
            .client(&frames::metadata(1, 2))
            .broker(&body)
            .broker(&after);
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(trace.response.output, [body, after].concat(), "{what}");
        assert_eq!(
            trace.response.heads(),
            [1, 2],
            "{what}: the next frame is found"
        );
        assert_eq!(
            trace.response.responses().last(),
            Some(&(2, Outcome::Error)),
            "{what}"
        );
        assert_eq!(trace.end, End::Open, "{what}");
        let trailing = trace.response.what().any(|seen| {
            matches!(seen, Seen::Trailing { exchange, bytes: 23 } if exchange.correlation_id.0 == 1)
        });
        assert_eq!(trailing, what == "trailing bytes", "{what}");
        if matches!(
            what,
            "a body of four bytes" | "an array of 2^31 - 1" | "a string of 32,767"
        ) {
            assert_eq!(
                trace.response.opaque(),
                [(1, OpaqueReason::Malformed)],
                "{what}"
            );
            assert_eq!(
                trace.response.responses()[0],
                (1, Outcome::Opaque),
                "{what}"
            );
        }
    }
}

#[test]
fn a_produce_that_does_not_fit_its_layout_passes_and_may_be_answered_or_not() {
    let odd = Raw::request(0, 9, 1, Some("c"))
        .no_tags()
        .bytes(&[0xff; 3])
        .frame();
    let after = (frames::metadata(1, 2), frames::metadata_told(1, 2, &[]));
    for answer in [Vec::new(), Raw::response(1).no_tags().bytes(b"?").frame()] {
        let script = Script::new()
            .client(&odd)
            .client(&after.0)
            .broker(&answer)
            .broker(&after.1);
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(trace.request.output, script.stream(REQUEST));
        assert_eq!(trace.response.output, script.stream(RESPONSE));
        assert_eq!(trace.request.opaque(), [(1, OpaqueReason::Malformed)]);
        assert_eq!(trace.in_flight, 0);
        assert_eq!(trace.end, End::Open);
    }
}

#[test]
fn an_api_versions_answer_that_does_not_fit_closes_where_it_must_be_rewritten() {
    let answers = [
        Raw::response(1).frame(),
        Raw::response(1).i16(0).uvarint(50).bytes(&[0; 20]).frame(),
        Raw::response(1)
            .i16(0)
            .bytes(&[0xff; 5])
            .bytes(&[0; 40])
            .frame(),
    ];
    for answer in answers {
        let script = Script::new()
            .client(&frames::api_versions(3, 1))
            .broker(&answer);
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(trace.end, End::Closed(CloseReason::Malformed));
        assert_eq!(
            trace.response.output, b"",
            "not one row of it reaches the client"
        );

        let script = script
            .client(&frames::metadata(1, 2))
            .broker(&frames::metadata_told(1, 2, &[]));
        let trace = sim::same_under_any_cut(&sim::shared(sim::watching()), &script);
        assert_eq!(trace.response.output, script.stream(RESPONSE));
        assert_eq!(
            trace.response.responses(),
            [(1, Outcome::Opaque), (2, Outcome::Ok)]
        );
    }
}

#[test]
fn an_answer_too_large_to_hold_closes_at_its_head_and_is_never_held() {
    let length = MAX_HELD as u32 - 3; // with its length field one more than may be held
    let head = [&length.to_be_bytes()[..], &1_i32.to_be_bytes()].concat();
    let script = Script::new()
        .client(&frames::api_versions(3, 1))
        .broker(&head);
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.end, End::Closed(CloseReason::HoldLimit));
    assert_eq!(trace.response.output, b"");

    let trace = sim::same_under_any_cut(&sim::shared(sim::watching()), &script);
    assert_eq!(
        trace.response.output, head,
        "where nothing is rewritten it passes"
    );
}

#[test]
fn an_answer_with_every_key_there_can_be_is_held_and_rewritten() {
    let rows: Vec<_> = (i16::MIN..=i16::MAX).map(|key| (key, 0, 0)).collect();
    let kept: Vec<_> = rows
        .iter()
        .copied()
        .filter(|(key, ..)| ours(ApiKey(*key)).is_some_and(|ours| ours.contains(0)))
        .collect();
    assert!(kept.len() > 40, "{kept:?}");
    let script = Script::new()
        .client(&frames::api_versions(3, 1))
        .broker(&frames::versions_told(3, 1, 0, &rows));
    let trace = sim::trace_of(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.end, End::Open);
    assert_eq!(trace.response.output, frames::versions_told(3, 1, 0, &kept));
}
