//! What the time of day does: latencies, and deadlines for peers that stop in the middle of a frame. The
//! trap: a peer that is held back, or has nothing to say, does not stall.
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
use klamp_codec::observation::CloseReason;
use klamp_codec::session::{NonKafka, Policy};
use sim::frames::Produce;
use sim::raw::{Raw, framed};
use sim::{End, Script, Seen, frames};
use std::time::Duration;

const REQUEST: Direction = Direction::Request;
const RESPONSE: Direction = Direction::Response;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn latency_runs_from_the_last_byte_of_the_request_to_the_head_of_the_response() {
    let ms = Duration::from_millis;
    let request = frames::fetch(12, 1, 500);
    let response = frames::fetched(12, 1, &[(0, 70_000)]);
    let script = Script::new()
        .client(&request[..20])
        .after(ms(100))
        .client(&request[20..])
        .after(ms(30))
        .broker(&response[..8])
        .after(ms(1000))
        .broker(&response[8..40])
        .after(ms(1000))
        .broker(&response[40..]);
    let trace = sim::trace_of(&sim::shared(sim::policy()), &script);
    let heads: Vec<_> = trace
        .response
        .what()
        .filter_map(|it| {
            if let Seen::ResponseHead { latency, .. } = it {
                Some(*latency)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(heads, [Some(ms(30))]);
    sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
}

#[test]
fn a_request_moved_unseen_counts_as_received_when_its_last_byte_has_gone() {
    let ms = Duration::from_millis;
    let request = Produce {
        bytes: 100_000,
        ..Produce::plain(9, 1, -1)
    }
    .frame();
    let script = Script::new()
        .client(&request[..500])
        .after(ms(100))
        .client(&request[500..])
        .after(ms(7))
        .broker(&frames::produced(9, 1, &[0]));
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    let latency = trace.response.what().find_map(|it| match it {
        Seen::ResponseHead { latency, .. } => Some(*latency),
        _ => None,
    });
    assert_eq!(latency, Some(Some(ms(7))));
}

#[test]
fn a_request_that_stops_in_its_middle_closes_after_the_progress_time() {
    let policy = || Policy {
        request_progress: Some(10 * SECOND),
        ..sim::policy()
    };
    let frames = [
        frames::metadata(9, 1),
        Produce {
            bytes: 5000,
            ..Produce::plain(9, 1, -1)
        }
        .frame(),
        Raw::request(9999, 0, 1, Some("c")).bytes(&[0; 300]).frame(),
        sim::raw::api_versions_beyond(127, 1),
    ];
    for frame in frames {
        for cut in [1, 3, 4, 9, 14, 19, frame.len() - 2] {
            let slowly = Script::new()
                .client(&frame[..cut])
                .after(9 * SECOND)
                .client(&frame[cut..=cut])
                .after(9 * SECOND)
                .client(&frame[cut + 1..])
                .after(1000 * SECOND);
            let trace = sim::same_under_any_cut(&sim::shared(policy()), &slowly);
            assert_eq!(
                trace.end,
                End::Open,
                "any byte is progress, and between frames is no stall"
            );

            let stops = Script::new()
                .client(&frames::metadata(9, 0))
                .after(50 * SECOND)
                .client(&frame[..cut])
                .after(10 * SECOND);
            let trace = sim::same_under_any_cut(&sim::shared(policy()), &stops);
            assert_eq!(
                trace.end,
                End::Closed(CloseReason::Stalled(REQUEST)),
                "after {cut} bytes"
            );
        }
    }
}

#[test]
fn a_response_may_stop_for_as_long_as_the_policy_says() {
    let response = frames::fetched(12, 1, &[(0, 5000), (0, 10)]);
    for cut in [1, 4, 8, 30, 2000, response.len() - 1] {
        let script = Script::new()
            .client(&frames::fetch(12, 1, 500))
            .after(1000 * SECOND)
            .broker(&response[..cut])
            .after(10 * SECOND);
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(trace.end, End::Open, "off means for ever");
        let limited = Policy {
            response_progress: Some(10 * SECOND),
            ..sim::policy()
        };
        let trace = sim::same_under_any_cut(&sim::shared(limited), &script);
        assert_eq!(
            trace.end,
            End::Closed(CloseReason::Stalled(RESPONSE)),
            "after {cut} bytes"
        );
    }
}

#[test]
fn a_token_that_stops_in_its_middle_is_a_stalled_request() {
    let script = Script::new()
        .client(&frames::handshake(0, 1, "PLAIN"))
        .broker(&frames::shaken(0, 1, 0, &["PLAIN"]))
        .after(1000 * SECOND)
        .client(&framed(&[0; 100])[..50])
        .after(600 * SECOND);
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.end, End::Closed(CloseReason::Stalled(REQUEST)));
}

#[test]
fn whoever_is_held_back_does_not_stall() {
    let many = klamp_codec::session::MAX_IN_FLIGHT as i32 + 1;
    let asked: Vec<u8> = (0..many).flat_map(|id| frames::metadata(9, id)).collect();
    let policy = Policy {
        response_progress: Some(10 * SECOND),
        ..sim::policy()
    };
    let script = Script::new().client(&asked).after(5000 * SECOND);
    let trace = sim::same_under_some_cuts(&sim::shared(policy), &script);
    assert_eq!(
        trace.end,
        End::Open,
        "the client waits for room, the broker need not have begun"
    );
}

#[test]
fn what_is_relayed_unseen_never_stalls() {
    let policy = Policy {
        non_kafka: NonKafka::Pass,
        request_progress: Some(SECOND),
        response_progress: Some(SECOND),
        ..sim::policy()
    };
    let script = Script::new().client(b"GET / HTTP/1.1").after(5000 * SECOND);
    let trace = sim::same_under_any_cut(&sim::shared(policy), &script);
    assert_eq!(trace.end, End::Open);
}
