//! The harness itself is tested first: what it cannot see, no test that uses it can.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

#[path = "mod.rs"]
mod sim;

use klamp_codec::Direction;
use sim::script::Act;
use sim::{Conversation, Relay, Script, Show, Style, frames, raw};
use std::time::Duration;

#[test]
fn a_cut_keeps_every_byte_and_every_moment() {
    let script = Script::new()
        .client(b"hello")
        .after(Duration::from_secs(1))
        .broker(b"world")
        .client_eof()
        .after(Duration::from_secs(1));
    let cut = script.cut(|_, len| (1..len).collect());
    assert_eq!(cut.events().len(), 11);
    assert_eq!(cut.joined(), script);
    assert_eq!(cut.stream(Direction::Request), b"hello");
    assert_eq!(cut.end(), Duration::from_secs(2));
}

#[test]
fn joining_never_crosses_a_moment_or_a_turn() {
    let script = Script::new()
        .client(b"a")
        .client(b"b")
        .broker(b"c")
        .client(b"d")
        .after(Duration::from_millis(1))
        .client(b"e");
    let pieces: Vec<_> = script
        .joined()
        .events()
        .iter()
        .map(|(_, act)| act.clone())
        .collect();
    assert_eq!(
        pieces,
        [
            Act::Bytes(Direction::Request, b"ab".to_vec()),
            Act::Bytes(Direction::Response, b"c".to_vec()),
            Act::Bytes(Direction::Request, b"d".to_vec()),
            Act::Bytes(Direction::Request, b"e".to_vec()),
        ]
    );
}

#[test]
fn mingled_conversations_keep_both_streams_and_causality() {
    let talk = Conversation::new()
        .ask(b"first?", b"one!")
        .tell(b"by the way")
        .ask(b"second?", b"two!")
        .end();
    let mut shapes = std::collections::HashSet::new();
    for seed in 0..200 {
        let script = talk.mingled(&mut fastrand::Rng::with_seed(seed));
        assert_eq!(script.stream(Direction::Request), talk.asked());
        assert_eq!(script.stream(Direction::Response), talk.answered());
        let (mut sent, mut answered) = (0, 0);
        for (_, act) in script.events() {
            match act {
                Act::Bytes(Direction::Request, bytes) => sent += bytes.len(),
                Act::Bytes(Direction::Response, bytes) => {
                    answered += bytes.len();
                    let due = if sent == talk.asked().len() {
                        8
                    } else if sent >= 6 {
                        4
                    } else {
                        0
                    };
                    assert!(
                        answered <= due,
                        "seed {seed}: {answered} bytes answered after {sent}"
                    );
                }
                Act::Eof(_) | Act::Lost(_) | Act::Drain => {}
            }
        }
        shapes.insert(format!("{:?}", script.events()));
    }
    assert!(shapes.len() > 100, "only {} ways to mingle", shapes.len());
}

#[test]
fn frames_by_hand_and_by_encoder_agree_where_both_exist() {
    let by_hand = raw::Raw::request(18, 0, 7, Some("c")).frame();
    assert_eq!(frames::api_versions(0, 7), by_hand);
    assert_eq!(
        frames::versions_told(0, 7, 35, &[(18, 0, 4)]),
        raw::unsupported_version(7, 0, 4)
    );
}

#[test]
fn the_builders_reach_every_version_of_their_messages() {
    for version in 3..=13 {
        assert!(
            frames::Produce::plain(version, 1, 0).frame().len() > 40,
            "Produce v{version}"
        );
        assert!(
            frames::produced(version, 1, &[0, 3]).len() > 30,
            "Produce v{version}"
        );
    }
    for version in 4..=18 {
        assert!(
            frames::fetch(version, 1, 500).len() > 40,
            "Fetch v{version}"
        );
        assert!(
            frames::fetched(version, 1, &[(0, 100), (6, 0)]).len() > 130,
            "Fetch v{version}"
        );
    }
    for version in 0..=13 {
        assert!(
            frames::metadata(version, 1).len() > 14,
            "Metadata v{version}"
        );
        assert!(
            frames::metadata_told(version, 1, &[&[0, 5], &[]]).len() > 50,
            "Metadata v{version}"
        );
    }
}

#[test]
fn a_show_hides_what_was_not_asked_for() {
    let mut relay = Relay::new(
        sim::shared(sim::watching()),
        Style {
            show: Show::Asked,
            ..Style::default()
        },
    );
    relay.arrive(Direction::Request, &frames::metadata(1, 1));
    relay.arrive(Direction::Response, &frames::metadata_told(1, 1, &[&[0]]));
    let trace = relay.trace();
    assert_eq!(trace.request.output, frames::metadata(1, 1));
    assert_eq!(trace.response.output, frames::metadata_told(1, 1, &[&[0]]));
}

#[test]
fn traces_that_differ_in_any_part_are_told_apart() {
    let policy = sim::shared(sim::watching());
    let (ask, answer) = (frames::metadata(1, 1), frames::metadata_told(1, 1, &[&[0]]));
    let one = sim::trace_of(&policy, &Script::new().client(&ask).broker(&answer));
    let others = [
        Script::new().client(&ask),
        Script::new()
            .client(&ask)
            .broker(&frames::metadata_told(1, 1, &[&[5]])),
        Script::new()
            .client(&ask)
            .broker(&answer)
            .client(&[0])
            .client_eof(),
        Script::new().client(&ask).broker(&answer).broker_lost(),
    ];
    for other in others {
        let two = sim::trace_of(&policy, &other);
        let told = std::panic::catch_unwind(|| sim::check::assert_same(&one, &two, &String::new));
        assert!(told.is_err(), "{other:?} gives what {one:?} gives");
    }
}
