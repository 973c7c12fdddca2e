//! The walker against `kafka-protocol`: what it writes is read to its end and told as it was filled in,
//! however the bytes come; and what nobody wrote is refused without a panic or a loop.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod by_kafka;
mod hostile;
mod requests;
mod responses;
mod samples;
mod walk;

use fastrand::Rng;
use klamp_codec::layout::{Progress, Root, WalkError, Walker};
use klamp_codec::{ApiKey, Direction};
use samples::{Fact, Sample, one_of_each};
use walk::{End, Move, check_offsets, walk};

#[test]
fn a_walk_tells_what_the_message_says_and_ends_where_it_ends() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..60 {
        for sample in one_of_each(&mut rng) {
            let walked = sample.walk();
            let facts = walked.told.iter().map(|told| told.fact.clone());
            assert_eq!(facts.collect::<Vec<_>>(), sample.hot_facts(), "{sample:?}");
            assert_eq!(walked.end, End::Done(sample.bytes.len()), "{sample:?}");
            check_offsets(&walked, &sample.bytes, sample.flexible);
        }
    }
}

#[test]
fn a_walk_over_the_full_table_tells_the_same_and_more() {
    let mut rng = Rng::with_seed(9);
    for _ in 0..20 {
        for sample in one_of_each(&mut rng) {
            let full = sample.walk_from(sample.full_root());
            assert_eq!(full.end, End::Done(sample.bytes.len()), "{sample:?}");
            let mut told = full.told.iter();
            for hot in sample.walk().told {
                assert!(told.any(|full| *full == hot), "{hot:?} of {sample:?}");
            }
            let mut told = full.told.iter().map(|told| &told.fact);
            for fact in &sample.facts {
                assert!(told.any(|full| full == fact), "{fact:?} of {sample:?}");
            }
        }
    }
}

#[test]
fn a_walk_cut_at_any_byte_tells_the_same() {
    let mut rng = Rng::with_seed(2);
    let small = |sample: &Sample| sample.bytes.len() < 400;
    for sample in one_of_each(&mut rng).into_iter().filter(small) {
        let whole = sample.walk();
        for cut in 0..=sample.bytes.len() {
            for skip in [Move::Feed(usize::MAX), Move::Skip(usize::MAX)] {
                let mut first = Some(Move::Feed(cut));
                let moves = |_, _| first.take().unwrap_or(skip);
                let walked = walk(sample.root(), &sample.bytes, sample.bytes.len(), moves);
                assert_eq!(walked, whole, "cut at {cut}, then {skip:?}, of {sample:?}");
            }
        }
    }
}

#[test]
fn a_walk_byte_by_byte_tells_the_same() {
    let mut rng = Rng::with_seed(3);
    for _ in 0..10 {
        for sample in one_of_each(&mut rng) {
            for next in [Move::Feed(1), Move::Skip(1)] {
                let walked = walk(sample.root(), &sample.bytes, sample.bytes.len(), |_, _| {
                    next
                });
                assert_eq!(walked, sample.walk(), "{next:?} of {sample:?}");
            }
        }
    }
}

#[test]
fn a_walk_in_random_pieces_some_of_them_skipped_tells_the_same() {
    let mut rng = Rng::with_seed(4);
    for _ in 0..40 {
        for sample in one_of_each(&mut rng) {
            let largest = 1 << rng.u8(1..15);
            let moves = |_, _| random_move(&mut rng, largest);
            let walked = walk(sample.root(), &sample.bytes, sample.bytes.len(), moves);
            assert_eq!(walked, sample.walk(), "{sample:?}");
        }
    }
}

fn random_move(rng: &mut Rng, largest: usize) -> Move {
    let n = rng.usize(0..=largest);
    if rng.bool() {
        Move::Feed(n)
    } else {
        Move::Skip(n)
    }
}

#[test]
fn what_is_skippable_is_the_whole_rest_of_the_records() {
    let mut rng = Rng::with_seed(5);
    let mut seen = 0;
    for _ in 0..5 {
        for sample in one_of_each(&mut rng) {
            for told in sample.walk_from(sample.full_root()).told {
                let Fact::Skipped(_, len @ 1..) = told.fact else {
                    continue;
                };
                // Fed to right behind the length, and to the middle.
                for inside in [0, len / 2] {
                    let cut = told.at as usize + inside;
                    let part = &sample.bytes[..cut];
                    let mut walker = Walker::new(sample.full_root(), sample.bytes.len() as u32);
                    let progress = walker.feed(part, &mut |_| {}).unwrap();
                    let left = Progress::Skippable((len - inside) as u32);
                    assert_eq!(progress, (cut, left), "{sample:?}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn more_than_is_skippable_cannot_be_skipped() {
    let root = Root::find(Direction::Request, ApiKey::PRODUCE, 2).unwrap();
    let mut walker = Walker::new(root, 10);
    assert_eq!(walker.skip(1), Err(WalkError::Skip { at: 0 }));
    assert_eq!(walker.skip(0), Ok(()));
    // Fetch response 0: behind the error code stand 8 bytes of high watermark.
    let root = Root::find(Direction::Response, ApiKey::FETCH, 0).unwrap();
    let mut walker = Walker::new(root, 100);
    let start = [0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 3, 0, 6, 0];
    let progress = walker.feed(&start, &mut |_| {});
    assert_eq!(progress, Ok((start.len(), Progress::Skippable(7))));
    assert_eq!(walker.skip(8), Err(WalkError::Skip { at: 18 }));
    assert_eq!(walker.skip(7), Ok(()));
    assert_eq!(walker.skip(1), Err(WalkError::Skip { at: 25 }));
}

#[test]
fn no_part_of_a_message_is_taken_for_the_whole() {
    let mut rng = Rng::with_seed(6);
    for _ in 0..5 {
        for sample in one_of_each(&mut rng) {
            let len = sample.bytes.len();
            let step = len / 200 + 1;
            for cut in (0..len).step_by(step) {
                let part = &sample.bytes[..cut];
                // The rest may still come.
                let walked = walk(sample.root(), part, len, |_, _| Move::Feed(usize::MAX));
                assert_eq!(walked.end, End::Hungry, "{cut} bytes of {sample:?}");
                // The frame itself is too short.
                let walked = walk(sample.root(), part, cut, |_, _| Move::Feed(usize::MAX));
                let failed = matches!(walked.end, End::Failed(_));
                assert!(failed, "{cut} bytes of {sample:?} give {walked:?}");
            }
        }
    }
}

#[test]
fn bytes_behind_a_message_are_left_over() {
    let mut rng = Rng::with_seed(7);
    for sample in one_of_each(&mut rng) {
        let mut longer = sample.bytes.clone();
        longer.extend([0; 5]);
        for next in [Move::Feed(usize::MAX), Move::Feed(1), Move::Skip(7)] {
            let walked = walk(sample.root(), &longer, longer.len(), |_, _| next);
            assert_eq!(walked.end, End::Done(sample.bytes.len()));
            assert_eq!(walked.told, sample.walk().told);
        }
    }
}

/// The control of all others: they could not pass if the layouts were all alike.
#[test]
fn a_walk_with_another_version_mostly_fails() {
    let mut rng = Rng::with_seed(8);
    let (mut wrong, mut all) = (0, 0);
    for _ in 0..10 {
        for sample in one_of_each(&mut rng) {
            if sample.api_key == ApiKey::SASL_HANDSHAKE {
                continue;
            }
            // Over the border between classic and flexible versions.
            let other = if sample.flexible { 2 } else { 13 };
            let Some(root) = Root::find(sample.direction, sample.api_key, other) else {
                continue;
            };
            let len = sample.bytes.len();
            let walked = walk(root, &sample.bytes, len, |_, _| Move::Feed(usize::MAX));
            all += 1;
            wrong += u32::from(walked.end == End::Done(len));
        }
    }
    assert!(all > 500 && wrong * 20 < all, "{wrong} of {all}");
}
