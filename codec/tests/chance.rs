//! Streams by chance: thousands of valid conversations, of which everything that must be told is known
//! beforehand, and thousands that are damaged or noise, which must not harm.
//!
//! A failure names its seed; the seed is the test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod sim;

use klamp_codec::observation::CloseReason;
use klamp_codec::session::{NonKafka, Policy};
use sim::chance::{self, Talk};
use sim::{End, Seen};

#[test]
fn of_thousands_of_valid_conversations_all_is_told_and_nothing_else_changed() {
    let policy = sim::shared(sim::policy());
    for seed in 0..2000 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let talk = Talk::by_chance(rng);
        let trace = sim::trace_of(&policy, &talk.conversation.mingled(rng));
        assert_eq!(trace.request.output, talk.to_broker, "seed {seed}");
        assert_eq!(trace.response.output, talk.to_client, "seed {seed}");
        assert_eq!(trace.request.heads(), talk.asked, "seed {seed}");
        assert_eq!(trace.request.requests(), talk.asked, "seed {seed}");
        assert_eq!(trace.response.responses(), talk.answered, "seed {seed}");
        assert_eq!(trace.response.errors(), talk.errors, "seed {seed}");
        let acks = trace.request.what().filter_map(|it| match it {
            Seen::Acks(acks) => Some(*acks),
            _ => None,
        });
        assert!(
            acks.eq(talk.acks.iter().copied()),
            "seed {seed}: {:?}",
            talk.acks
        );
        assert_eq!(trace.in_flight, 0, "seed {seed}");
        assert_eq!(trace.end, End::Finished(CloseReason::Client), "seed {seed}");

        for _ in 0..3 {
            let script = talk.conversation.mingled(rng);
            sim::check::same_again(&policy, &trace, &script, rng, &format!("seed {seed}"));
        }
    }
}

#[test]
fn where_klamp_only_watches_no_conversation_is_changed_at_all() {
    let policy = sim::shared(sim::watching());
    for seed in 10_000..10_500 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let talk = Talk::by_chance(rng);
        if talk.swallowed > 0 {
            continue; // what klamp would answer itself has no answer here
        }
        let trace = sim::trace_of(&policy, &talk.conversation.mingled(rng));
        assert_eq!(
            trace.request.output,
            talk.conversation.asked(),
            "seed {seed}"
        );
        assert_eq!(
            trace.response.output,
            talk.conversation.answered(),
            "seed {seed}"
        );
        assert!(
            trace.request.edits.is_empty() && trace.response.edits.is_empty(),
            "seed {seed}"
        );
        assert_eq!(trace.response.errors(), talk.errors, "seed {seed}");
    }
}

#[test]
fn damaged_conversations_do_no_harm_and_give_the_same_trace_under_any_cut() {
    let policies = policies();
    for seed in 0..3000 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let policy = &policies[rng.usize(0..policies.len())];
        let talk = Talk::by_chance(rng).conversation;
        let script = match rng.u8(0..3) {
            0 => talk.one_by_one(),
            1 => talk.pipelined(),
            _ => talk.mingled(rng),
        };
        let script = chance::mutated(&script, rng);
        let trace = sim::trace_of(policy, &script);
        for _ in 0..2 {
            if talk.has_waits() {
                // What comes ahead of its raw token is judged by when it is looked at.
                sim::check::harmless_again(policy, &script, rng, &format!("seed {seed}"));
            } else {
                sim::check::compatible_again(policy, &trace, &script, rng, &format!("seed {seed}"));
            }
        }
    }
}

#[test]
fn noise_does_no_harm_and_gives_the_same_trace_under_any_cut() {
    let policies = policies();
    for seed in 0..8000 {
        let rng = &mut fastrand::Rng::with_seed(seed);
        let policy = &policies[rng.usize(0..policies.len())];
        let script = chance::noise(rng);
        let trace = sim::trace_of(policy, &script);
        for _ in 0..2 {
            sim::check::compatible_again(policy, &trace, &script, rng, &format!("seed {seed}"));
        }
    }
}

fn policies() -> Vec<std::sync::Arc<Policy>> {
    let passing = Policy {
        non_kafka: NonKafka::Pass,
        ..sim::watching()
    };
    [sim::policy(), sim::watching(), passing]
        .into_iter()
        .map(sim::shared)
        .collect()
}
