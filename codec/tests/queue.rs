//! The queue of requests that wait is bounded: a full one holds the client back, and never for good.
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
use klamp_codec::session::MAX_IN_FLIGHT;
use sim::frames::Produce;
use sim::script::Act;
use sim::{End, Relay, Script, Style, frames, raw};

fn metadata(id: i32) -> (Vec<u8>, Vec<u8>) {
    (frames::metadata(1, id), frames::metadata_told(1, id, &[]))
}

/// A Produce that nobody here reads, so that nobody knows whether it will be answered.
fn unread_produce(id: i32) -> Vec<u8> {
    raw::Raw::request(0, 99, id, Some("odd"))
        .bytes(&[0; 30])
        .frame()
}

#[test]
fn a_full_queue_holds_the_client_back_and_each_answer_lets_one_more_in() {
    let many = MAX_IN_FLIGHT as i32 + 300;
    let asked: Vec<u8> = (0..many).flat_map(|id| metadata(id).0).collect();
    let frame = metadata(0).0.len();
    for style in [
        Style::default(),
        Style {
            show: sim::Show::Asked,
            ..Style::default()
        },
    ] {
        let mut relay = Relay::new(sim::shared(sim::policy()), style);
        relay.arrive(Direction::Request, &asked);
        assert_eq!(relay.in_flight(), MAX_IN_FLIGHT);
        assert_eq!(
            relay.taken(Direction::Request),
            MAX_IN_FLIGHT * frame,
            "not one byte more"
        );
        for id in 0..many {
            relay.arrive(Direction::Response, &metadata(id).1);
            let left = MAX_IN_FLIGHT.min((many - 1 - id) as usize);
            assert_eq!(relay.in_flight(), left, "after {} answers", id + 1);
        }
        let trace = relay.trace();
        assert_eq!(trace.request.output, asked);
        assert_eq!(trace.response.heads().len(), many as usize);
        assert_eq!(trace.end, End::Open);
    }
}

#[test]
fn what_needs_no_answer_from_the_broker_never_fills_the_queue_for_good() {
    let many = 2 * MAX_IN_FLIGHT as i32 + 10;
    let silent: Vec<u8> = (0..many)
        .flat_map(|id| Produce::plain(9, id, 0).frame())
        .collect();
    let own: Vec<u8> = (0..many)
        .flat_map(|id| raw::api_versions_beyond(127, id))
        .collect();
    let last = metadata(-5);
    let script = Script::new()
        .client(&silent)
        .client(&own)
        .client(&last.0)
        .broker(&last.1);
    let trace = sim::same_under_some_cuts(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.request.output, [silent, last.0].concat());
    let answers: Vec<u8> = (0..many).flat_map(sim::own_answer).collect();
    assert_eq!(trace.response.output, [answers, last.1].concat());
    assert_eq!(trace.in_flight, 0);
}

#[test]
fn requests_that_may_stay_unanswered_never_block_the_connection_for_good() {
    // As many Produce requests with acks=0, in a version that nobody here reads, as fill the queue twice.
    let many = 2 * MAX_IN_FLIGHT as i32;
    let asked: Vec<u8> = (0..many).flat_map(unread_produce).collect();
    let last = metadata(-5);
    let script = Script::new().client(&asked).client(&last.0).broker(&last.1);
    let trace = sim::same_under_some_cuts(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.request.output, [asked, last.0].concat());
    assert_eq!(trace.response.output, last.1);
    assert_eq!(trace.in_flight, 0);
}

#[test]
fn a_full_queue_ends_when_both_peers_do() {
    let many = MAX_IN_FLIGHT as i32 + 3;
    let asked: Vec<u8> = (0..many).flat_map(|id| metadata(id).0).collect();
    for script in [
        Script::new().client(&asked).client_eof().broker_eof(),
        Script::new().client(&asked).broker_eof().client_eof(),
    ] {
        let trace = sim::same_under_some_cuts(&sim::shared(sim::policy()), &script);
        assert_ne!(trace.end, End::Open);
        assert!(matches!(
            trace.reason(),
            CloseReason::ClientInFlight | CloseReason::BrokerInFlight
        ));
    }
}

#[test]
fn only_bytes_are_awaited_but_with_a_half_head_an_own_answer_in_front_or_in_a_drain() {
    let mut relay = Relay::new(sim::shared(sim::policy()), Style::default());
    let (one, two) = (metadata(1), metadata(2));
    let own = raw::api_versions_beyond(127, 3);
    let mut awaits = |act: Act| {
        relay.act(&act);
        [Direction::Request, Direction::Response].map(|direction| relay.awaits_bytes(direction))
    };
    let client = |bytes: &[u8]| Act::Bytes(Direction::Request, bytes.to_vec());
    let broker = |bytes: &[u8]| Act::Bytes(Direction::Response, bytes.to_vec());
    assert_eq!(awaits(client(&one.0[..6])), [true, true]);
    assert_eq!(awaits(client(&one.0[6..])), [true, true]);
    assert_eq!(awaits(client(&two.0)), [true, true]);
    assert_eq!(awaits(broker(&one.1[..6])), [true, false], "half a head");
    assert_eq!(awaits(broker(&one.1[6..9])), [true, true], "in a body");
    assert_eq!(awaits(broker(&one.1[9..])), [true, true]);
    assert_eq!(awaits(broker(&two.1)), [true, true]);
    assert_eq!(awaits(client(&own[..10])), [true, true]);
    assert_eq!(
        awaits(client(&own[10..own.len() - 1])),
        [true, false],
        "begun"
    );
    assert_eq!(awaits(client(&own[own.len() - 1..])), [true, true]);
    assert_eq!(awaits(client(&one.0)), [true, true]);
    assert_eq!(awaits(Act::Drain), [false, false]);
}
