//! SaslHandshake v0 and the raw tokens after it; the trap: nothing on the wire marks where they begin or
//! end, and an empty frame is a good answer among them.
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
use klamp_codec::observation::{CloseReason, Outcome, RejectReason};
use sim::raw::{Raw, framed};
use sim::{Conversation, End, Script, Seen, Trace, frames};
use std::time::Duration;

const MECHANISMS: &[&str] = &["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI"];

fn shaken_v0(mechanism: &str) -> Conversation {
    let (ask, answer) = (
        frames::handshake(0, 1, mechanism),
        frames::shaken(0, 1, 0, MECHANISMS),
    );
    Conversation::new().ask(&ask, &answer).wait()
}

/// What a client does once it is in.
fn at_work(talk: Conversation) -> Conversation {
    talk.ask(
        &frames::metadata(9, 8),
        &frames::metadata_told(9, 8, &[&[0]]),
    )
    .ask(
        &frames::api_versions(3, 9),
        &frames::versions_told(3, 9, 0, frames::CLAMPED),
    )
}

fn raw_tokens(trace: &Trace) -> Vec<bool> {
    let begins = |it: &Seen| {
        if let Seen::RawTokens { begins } = it {
            Some(*begins)
        } else {
            None
        }
    };
    let response = trace.response.what().filter_map(begins);
    response
        .chain(trace.request.what().filter_map(begins))
        .collect()
}

/// No byte changed, and what was said in ordinary frames was told.
fn assert_worked(talk: &Conversation, trace: &Trace) {
    assert_eq!(trace.request.output, talk.asked());
    assert_eq!(trace.response.output, talk.answered());
    assert!(trace.request.edits.is_empty() && trace.response.edits.is_empty());
    assert_eq!(trace.request.heads(), [1, 8, 9]);
    assert_eq!(
        trace.response.responses(),
        [(1, Outcome::Ok), (8, Outcome::Ok), (9, Outcome::Ok)]
    );
    assert_eq!(
        raw_tokens(trace),
        [true, false],
        "the phase begins and ends once"
    );
    assert_eq!(trace.in_flight, 0);
    assert!(trace.request.rejected().is_empty() && trace.response.rejected().is_empty());
}

#[test]
fn plain_takes_one_token_and_an_empty_frame_is_its_good_answer() {
    for answer in [b"".as_slice(), b"ok"] {
        let talk =
            at_work(shaken_v0("PLAIN").ask(&framed(b"\0user\0secret"), &framed(answer))).end();
        let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
        assert_worked(&talk, &trace);
        assert_eq!(trace.end, End::Finished(CloseReason::Client));
    }
}

#[test]
fn scram_takes_two_tokens_whatever_they_look_like() {
    // The second token reads as a Metadata v1 request, header and all: counting, not guessing, decides.
    let like_a_request = frames::metadata(1, 77);
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let talk = at_work(
            shaken_v0(mechanism)
                .ask(
                    &framed(b"n,,n=user,r=nonce"),
                    &framed(b"r=nonce2,s=salt,i=4096"),
                )
                .ask(&like_a_request, &framed(b"v=signature")),
        );
        let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
        assert_worked(&talk, &trace);
    }
}

#[test]
fn other_mechanisms_take_tokens_until_an_ordinary_request_comes() {
    for mechanism in ["GSSAPI", "OAUTHBEARER", "", "plain", "PLAIN2"] {
        for tokens in 1..=4 {
            let mut talk = shaken_v0(mechanism);
            for n in 0..tokens {
                let token = format!("\x60\x40 token {n} with some bytes");
                talk = talk.ask(&framed(token.as_bytes()), &framed(&[7; 3][..n % 4]));
            }
            let talk = at_work(talk);
            let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
            assert_worked(&talk, &trace);
        }
    }
}

#[test]
fn a_short_answer_to_a_token_is_not_held_back_for_what_follows() {
    for answer in [framed(b""), framed(b"ok"), framed(b"abc")] {
        let script = shaken_v0("GSSAPI")
            .one_by_one()
            .client(&framed(b"\x60token"))
            .client(&frames::metadata(9, 8))
            .broker(&answer);
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(trace.response.output, script.stream(Direction::Response));
        assert_eq!(trace.in_flight, 1, "only Metadata waits");
    }
}

#[test]
fn a_last_token_without_answer_is_forgotten_when_work_begins() {
    let talk = at_work(
        shaken_v0("GSSAPI")
            .ask(&framed(b"\x60token"), &framed(b"\x60challenge"))
            .tell(&framed(b"")),
    );
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &talk.one_by_one());
    assert_worked(&talk, &trace);
}

#[test]
fn tokens_of_any_length_from_none_to_512_kib_pass_and_beyond_is_rejected() {
    for length in [0, 1, 3, 4, 7, 8, 9, 10, 20_000, 524_288] {
        let token = framed(&vec![0x60; length]);
        let talk = at_work(shaken_v0("PLAIN").ask(&token, &token));
        let trace = match length {
            0..100 => sim::same_under_any_cut(&sim::shared(sim::policy()), &talk.one_by_one()),
            _ => sim::same_under_some_cuts(&sim::shared(sim::policy()), &talk.one_by_one()),
        };
        assert_worked(&talk, &trace);
    }
    let large = 524_289_i32;
    let script = shaken_v0("PLAIN").one_by_one().client(&large.to_be_bytes());
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(
        trace.end,
        End::Closed(CloseReason::Rejected(
            Direction::Request,
            RejectReason::TooLarge
        ))
    );
    assert_eq!(trace.request.rejected(), [(RejectReason::TooLarge, large)]);

    let negative = shaken_v0("PLAIN")
        .one_by_one()
        .client(&framed(b"token"))
        .broker(&[0xff; 4]);
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &negative);
    let reason = CloseReason::Rejected(Direction::Response, RejectReason::NegativeLength);
    assert_eq!(trace.end, End::Closed(reason));
}

#[test]
fn no_token_is_told_to_the_observer() {
    let secret = b"hunter2-hunter2-hunter2";
    let talk = at_work(shaken_v0("GSSAPI").ask(&framed(secret), &framed(secret)));
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &talk.one_by_one());
    let told = format!("{:?} {:?}", trace.request.seen, trace.response.seen);
    let bytes = format!("{secret:?}");
    assert!(!told.contains(bytes.trim_matches(['[', ']'])), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn a_refused_handshake_keeps_ordinary_framing() {
    let talk = Conversation::new()
        .ask(
            &frames::handshake(0, 1, "KERBEROS"),
            &frames::shaken(0, 1, 33, MECHANISMS),
        )
        .wait()
        .ask(
            &frames::metadata(9, 8),
            &frames::metadata_told(9, 8, &[&[]]),
        );
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk.clone().end());
    assert_eq!(
        trace.response.responses(),
        [(1, Outcome::Error), (8, Outcome::Ok)]
    );
    assert_eq!(trace.response.errors(), [(1, 33, 1), (8, 0, 1)]);
    assert!(raw_tokens(&trace).is_empty());
    assert_eq!(trace.request.output, talk.asked());

    let empty_frame = Script::new()
        .client(&frames::handshake(0, 1, "KERBEROS"))
        .broker(&frames::shaken(0, 1, 33, MECHANISMS))
        .client(&framed(b""));
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &empty_frame);
    let reason = CloseReason::Rejected(Direction::Request, RejectReason::TooShort);
    assert_eq!(
        trace.end,
        End::Closed(reason),
        "an empty frame is a token only among tokens"
    );
}

#[test]
fn a_handshake_v1_keeps_ordinary_framing() {
    let authenticate =
        |id: i32, bytes: &[u8]| Raw::request(36, 1, id, Some("c")).sized(bytes).frame();
    let authenticated = |id: i32, error: i16| {
        Raw::response(id)
            .i16(error)
            .string(None)
            .sized(b"")
            .i64(0)
            .frame()
    };
    let talk = Conversation::new()
        .ask(
            &frames::handshake(1, 1, "PLAIN"),
            &frames::shaken(1, 1, 0, MECHANISMS),
        )
        .ask(&authenticate(2, b"\0user\0hunter2"), &authenticated(2, 0))
        .ask(&frames::metadata(9, 3), &frames::metadata_told(9, 3, &[]))
        // KIP-368: once more in the middle of a connection
        .ask(
            &frames::handshake(1, 4, "PLAIN"),
            &frames::shaken(1, 4, 0, MECHANISMS),
        )
        .ask(&authenticate(5, b"\0user\0hunter2"), &authenticated(5, 58))
        .ask(&frames::metadata(9, 6), &frames::metadata_told(9, 6, &[]));
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
    assert_eq!(trace.request.heads(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(trace.response.heads(), [1, 2, 3, 4, 5, 6]);
    assert!(raw_tokens(&trace).is_empty());
    assert_eq!(trace.response.output, talk.answered());
    assert!(!format!("{trace:?}").contains("hunter2"));
}

#[test]
fn a_client_that_does_not_wait_for_the_handshakes_answer_is_held_to_order() {
    // Legal on the wire, if unwise: until the answer has come nobody knows what the next frame is.
    let token = framed(b"\0user\0secret");
    let script = Script::new()
        .client(&frames::handshake(0, 1, "PLAIN"))
        .client(&token)
        .client(&frames::metadata(9, 8))
        .broker(&frames::shaken(0, 1, 0, MECHANISMS))
        .after(Duration::from_millis(1))
        .broker(&framed(b""))
        .broker(&frames::metadata_told(9, 8, &[&[0]]));
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.request.output, script.stream(Direction::Request));
    assert_eq!(trace.response.output, script.stream(Direction::Response));
    assert_eq!(trace.response.heads(), [1, 8]);
}

#[test]
fn requests_sent_before_the_handshake_are_answered_as_usual() {
    let talk = at_work(
        Conversation::new()
            .ask(
                &frames::api_versions(0, 0),
                &frames::versions_told(0, 0, 0, frames::CLAMPED),
            )
            .ask(
                &frames::handshake(0, 1, "PLAIN"),
                &frames::shaken(0, 1, 0, MECHANISMS),
            )
            .wait()
            .ask(&framed(b"\0user\0secret"), &framed(b"")),
    );
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
    assert_eq!(trace.response.heads(), [0, 1, 8, 9]);
    assert_eq!(trace.request.output, talk.asked());
    assert_eq!(raw_tokens(&trace), [true, false]);
}

#[test]
fn a_handshake_that_is_refused_by_a_close_ends_as_one() {
    let script = shaken_v0("PLAIN")
        .one_by_one()
        .client(&framed(b"\0user\0wrong"))
        .broker_eof()
        .client_eof();
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.reason(), CloseReason::BrokerInFlight);
    assert_eq!(trace.request.output, script.stream(Direction::Request));
}
