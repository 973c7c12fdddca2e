//! A drain begun at any byte: the request under way goes whole, no further one begins, every answer in
//! flight is waited for, and then the connection closes.
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
use sim::raw::{Raw, framed};
use sim::script::Act;
use sim::{End, Relay, Script, Show, Style, frames, raw};

const REQUEST: Direction = Direction::Request;
const RESPONSE: Direction = Direction::Response;
const DRAINED: End = End::Closed(CloseReason::Drained);

/// A request, and what the broker says to it: nothing to what klamp answers itself.
type Exchange = (Vec<u8>, Vec<u8>);

fn exchanges() -> Vec<Exchange> {
    vec![
        (
            frames::api_versions(3, 1),
            frames::versions_told(3, 1, 0, frames::CLAMPED),
        ),
        (frames::metadata(9, 2), frames::metadata_told(9, 2, &[&[0]])),
        (raw::api_versions_beyond(127, 4), Vec::new()),
        (
            Produce {
                bytes: 120,
                ..Produce::plain(9, 5, -1)
            }
            .frame(),
            frames::produced(9, 5, &[0]),
        ),
        (
            Raw::request(9999, 0, 6, None).bytes(&[0; 20]).frame(),
            Raw::response(6).frame(),
        ),
    ]
}

fn asked(exchanges: &[Exchange]) -> Vec<u8> {
    exchanges.iter().flat_map(|(ask, _)| ask).copied().collect()
}

/// What the broker says to those requests that end within the first `sent` bytes.
fn answers(exchanges: &[Exchange], sent: usize) -> Vec<u8> {
    let mut end = 0;
    let mut answers = Vec::new();
    for (ask, answer) in exchanges {
        end += ask.len();
        if end <= sent {
            answers.extend_from_slice(answer);
        }
    }
    answers
}

/// Where requests begin and end, ascending.
fn boundaries(exchanges: &[Exchange]) -> Vec<usize> {
    let ends = exchanges.iter().scan(0, |at, (ask, _)| {
        *at += ask.len();
        Some(*at)
    });
    [0].into_iter().chain(ends).collect()
}

#[test]
fn a_drain_at_any_byte_lets_the_request_under_way_go_and_begins_no_other() {
    let exchanges = exchanges();
    let (asked, boundaries) = (asked(&exchanges), boundaries(&exchanges));
    for show in [Show::All, Show::Asked] {
        for at in 0..=asked.len() {
            let style = Style {
                show: show.clone(),
                ..Style::default()
            };
            let mut relay = Relay::new(sim::shared(sim::policy()), style);
            relay.arrive(REQUEST, &asked[..at]);
            relay.act(&Act::Drain);
            let floor = *boundaries.iter().rfind(|b| **b <= at).unwrap();
            let ceiling = *boundaries.iter().find(|b| **b >= at).unwrap();
            let has_begun = relay.taken(REQUEST) > floor;
            relay.arrive(REQUEST, &asked[at..]);
            let sent = relay.taken(REQUEST);
            let wanted = if has_begun { ceiling } else { floor };
            assert_eq!(sent, wanted, "drained after {at} bytes");

            let answers = answers(&exchanges, sent);
            for (n, byte) in answers.iter().enumerate() {
                assert_eq!(
                    relay.end(),
                    End::Open,
                    "drained at {at}, {n} bytes answered"
                );
                relay.arrive(RESPONSE, &[*byte]);
            }
            assert_eq!(relay.end(), DRAINED, "drained after {at} bytes");
            assert_eq!(relay.in_flight(), 0);
        }
    }
}

#[test]
fn a_drained_connection_gives_the_same_trace_under_any_cut() {
    let exchanges = exchanges();
    let asked = asked(&exchanges);
    let policy = sim::shared(sim::policy());
    for at in 0..=asked.len() {
        let begin = Script::new()
            .client(&asked[..at])
            .drain()
            .client(&asked[at..]);
        let sent = {
            let mut relay = Relay::new(policy.clone(), Style::default());
            relay.play(&begin);
            relay.taken(REQUEST)
        };
        let trace = sim::same_under_some_cuts(&policy, &begin.broker(&answers(&exchanges, sent)));
        assert_eq!(trace.end, DRAINED, "drained after {at} bytes");
    }
}

#[test]
fn a_drain_in_the_middle_of_an_answer_lets_the_client_have_all_of_it() {
    let exchanges = exchanges();
    let asked = asked(&exchanges);
    let answered = answers(&exchanges, asked.len());
    let policy = sim::shared(sim::policy());
    let undisturbed = sim::trace_of(&policy, &Script::new().client(&asked).broker(&answered))
        .response
        .output;
    for at in 0..=answered.len() {
        let script = Script::new()
            .client(&asked)
            .broker(&answered[..at])
            .drain()
            .broker(&answered[at..]);
        let trace = sim::same_under_some_cuts(&policy, &script);
        assert_eq!(
            trace.response.output, undisturbed,
            "drained after {at} bytes of the answers"
        );
        assert_eq!(trace.end, DRAINED);
    }
}

#[test]
fn a_quiet_connection_closes_at_once() {
    let talk = [
        Script::new(),
        Script::new()
            .client(&frames::metadata(1, 1))
            .broker(&frames::metadata_told(1, 1, &[])),
        Script::new()
            .client(&Produce::plain(9, 1, 1).frame())
            .broker(&frames::produced(9, 1, &[0])),
        Script::new().client(&raw::api_versions_beyond(127, 1)),
    ];
    for script in talk {
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script.clone().drain());
        assert_eq!(trace.end, DRAINED, "{script:?}");
    }
}

#[test]
fn what_a_client_with_acks0_has_sent_goes_and_it_is_told_the_end_first() {
    let metadata = frames::metadata(9, 3);
    let produce = |id| Produce::plain(9, id, 0).frame();
    let asked = [produce(1), produce(2), metadata, produce(4)].concat();
    let policy = sim::shared(sim::policy());
    for at in produce(1).len()..=asked.len() - produce(4).len() - 1 {
        // an answer in flight comes first; to what is asked later the client does not listen
        let begun = Script::new()
            .client(&asked[..at])
            .drain()
            .client(&asked[at..])
            .broker(&frames::metadata_told(9, 3, &[]));
        let trace = sim::same_under_some_cuts(&policy, &begun);
        assert_eq!(trace.request.output, asked, "drained after {at} bytes");
        assert!(trace.response.finished, "the client knows");
        assert_eq!(trace.request.heads().len(), 4, "all of it is seen");
        assert_eq!(trace.end, End::Open, "it may be sending still");
        let trace = sim::same_under_some_cuts(&policy, &begun.client_eof());
        assert_eq!(trace.end, End::Finished(CloseReason::Drained));
    }
}

#[test]
fn a_client_that_was_told_the_end_and_asks_for_acks_again_is_not_held_any_longer() {
    let parted = Script::new()
        .client(&Produce::plain(9, 1, 0).frame())
        .drain()
        .client(&Produce::plain(9, 2, -1).frame());
    let policy = sim::shared(sim::policy());
    let trace = sim::same_under_any_cut(&policy, &parted);
    assert_eq!(trace.end, DRAINED);
    let more = sim::trace_of(&policy, &parted.client(&Produce::plain(9, 3, -1).frame()));
    assert_eq!(more.request.output, trace.request.output);
}

#[test]
fn what_the_broker_need_not_answer_is_not_waited_for() {
    let unread = Raw::request(0, 99, 1, Some("c")).bytes(&[0; 30]).frame();
    let trace = sim::same_under_any_cut(
        &sim::shared(sim::policy()),
        &Script::new().client(&unread).drain(),
    );
    assert_eq!(trace.request.output, unread);
    assert_eq!(trace.end, DRAINED);
}

#[test]
fn a_full_queue_drains_too() {
    let many = MAX_IN_FLIGHT as i32 + 50;
    let asked: Vec<u8> = (0..many).flat_map(|id| frames::metadata(1, id)).collect();
    let answered: Vec<u8> = (0..MAX_IN_FLIGHT as i32)
        .flat_map(|id| frames::metadata_told(1, id, &[]))
        .collect();
    let script = Script::new().client(&asked).drain().broker(&answered);
    let trace = sim::same_under_some_cuts(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.end, DRAINED);
    assert_eq!(
        trace.request.heads().len(),
        MAX_IN_FLIGHT,
        "what had no room is not begun"
    );
    assert_eq!(trace.response.output, answered);
}

#[test]
fn a_token_under_way_is_sent_and_its_answer_waited_for() {
    let token = framed(b"\0user\0secret");
    let script = Script::new()
        .client(&frames::handshake(0, 1, "PLAIN"))
        .broker(&frames::shaken(0, 1, 0, &["PLAIN"]))
        .client(&token[..7])
        .drain()
        .client(&token[7..]);
    let policy = sim::shared(sim::policy());
    let trace = sim::same_under_any_cut(&policy, &script);
    assert_eq!(trace.end, End::Open);
    let trace = sim::same_under_any_cut(&policy, &script.broker(&framed(b"")));
    assert_eq!(trace.end, DRAINED);
    assert_eq!(
        trace.response.output,
        [frames::shaken(0, 1, 0, &["PLAIN"]), framed(b"")].concat()
    );
}

#[test]
fn a_drain_while_the_handshake_is_in_flight_waits_for_its_answer_only() {
    let script = Script::new()
        .client(&frames::handshake(0, 1, "PLAIN"))
        .drain()
        .broker(&frames::shaken(0, 1, 0, &["PLAIN"]));
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.response.output, frames::shaken(0, 1, 0, &["PLAIN"]));
    assert_eq!(trace.end, DRAINED);
}

#[test]
fn peers_that_close_during_a_drain_end_the_connection_all_the_same() {
    let (ask, answer) = (frames::metadata(1, 1), frames::metadata_told(1, 1, &[]));
    let policy = sim::shared(sim::policy());
    let client_first = Script::new()
        .client(&ask)
        .drain()
        .client_eof()
        .broker(&answer)
        .broker_eof();
    let trace = sim::same_under_any_cut(&policy, &client_first);
    assert_eq!(trace.response.output, answer, "the answer still goes");
    assert_ne!(trace.end, End::Open);

    let broker_first = Script::new().client(&ask).drain().broker_eof().client_eof();
    let trace = sim::same_under_any_cut(&policy, &broker_first);
    assert_ne!(trace.end, End::Open);
}

#[test]
fn a_client_that_stops_amid_a_request_is_left_to_the_callers_patience() {
    let request = frames::metadata(1, 1);
    let script = Script::new().client(&request[..request.len() - 1]).drain();
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.end, End::Open);
}
