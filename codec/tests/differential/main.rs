//! The walker against `kafka-protocol`: what it writes is read to its end and told as it was filled in,
//! however the bytes come; and what nobody wrote is refused without a panic or a loop.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod dictation;
mod hostile;
mod json;
mod printed;
mod rendered;
mod samples;
mod tree;
mod walk;

use fastrand::Rng;
use kafka_protocol::messages::ApiKey as Schema;
use klamp_codec::layout::{Fault, Progress, Root, Walker};
use klamp_codec::{ApiKey, Direction};
use samples::{Sample, one_of_each};
use std::collections::BTreeSet;
use tree::Struct;
use walk::{End, Fact, Move, check_hot, check_offsets, walk};

#[test]
fn every_version_that_is_ours_has_a_sample_each_way() {
    let all = one_of_each(&mut Rng::with_seed(0));
    let key = |it: &Sample| {
        (
            it.direction == Direction::Request,
            it.api_key.0,
            it.api_version,
        )
    };
    let keys = all.iter().map(key).collect::<BTreeSet<_>>();
    assert_eq!(keys.len(), all.len());
    for schema in Schema::iter() {
        let api_key = ApiKey(schema as i16);
        let ours = klamp_codec::ours(api_key).unwrap();
        for version in ours.min()..=ours.max() {
            for is_request in [true, false] {
                assert!(
                    keys.contains(&(is_request, api_key.0, version)),
                    "{api_key:?}"
                );
            }
        }
    }
}

#[test]
fn the_full_table_reads_every_field_as_the_message_says() {
    let mut rng = Rng::with_seed(1);
    let mut unknown = 0;
    // Fields by API, and those of them that had a value other than none, 0 or empty.
    let mut named = BTreeSet::new();
    let mut filled = BTreeSet::new();
    let mut wanted = Schema::iter()
        .map(|it| ApiKey(it as i16))
        .collect::<Vec<_>>();
    for round in 0..100 {
        for sample in samples::one_of(|key| wanted.contains(&key), &mut rng) {
            let read = Struct::read(sample.full_root(), &sample.bytes);
            let read = read.unwrap_or_else(|error| panic!("{error}: {sample:?}"));
            let same = read.check(&sample.said);
            same.unwrap_or_else(|difference| panic!("{difference}: {sample:?}\n{:?}", sample.said));
            let roles = read.check_roles(sample.direction, sample.api_key);
            roles.unwrap_or_else(|difference| panic!("{difference}: {sample:?}"));
            let walked = sample.walk_from(sample.full_root());
            check_offsets(&walked, &sample.bytes, sample.flexible);

            unknown += read.unknown.len();
            let message = format!("{:?}", sample.direction);
            sample.said.paths(&message, &mut |path, _| {
                named.insert((sample.api_key.0, path));
            });
            read.paths(&message, &mut |path, is_filled| {
                filled.extend(is_filled.then_some((sample.api_key.0, path)));
            });
        }
        if round >= 6 {
            let missing = named.difference(&filled).filter(|it| !is_beyond(it));
            wanted = missing.map(|(api_key, _)| ApiKey(*api_key)).collect();
        }
    }
    assert_eq!(wanted, [], "{:?}", named.difference(&filled));
    assert!(
        named.len() > 1_000 && unknown > 500,
        "{}, {unknown}",
        named.len()
    );
}

/// Whether a field is only in versions that `kafka-protocol` has a struct for, and does not write.
fn is_beyond((api_key, path): &(i16, String)) -> bool {
    matches!(
        (api_key, path.as_str()),
        (22, "Request/enable2pc" | "Request/keeppreparedtxn")
            | (78, "Request/topics/partitions/partitionmaxbytes")
            | (8, "Request/topics/topicid")
            | (9, "Request/groups/topics/topicid")
    )
}

#[test]
fn the_hot_table_tells_what_the_data_path_needs_of_what_the_full_one_tells() {
    let mut rng = Rng::with_seed(9);
    for _ in 0..8 {
        for sample in one_of_each(&mut rng) {
            let hot = sample.walk();
            assert_eq!(hot.end, End::Done(sample.bytes.len()), "{sample:?}");
            check_offsets(&hot, &sample.bytes, sample.flexible);
            check_hot(&hot, &sample.walk_from(sample.full_root()));
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
    for _ in 0..3 {
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
    for _ in 0..8 {
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
    for _ in 0..2 {
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
    let refused = |walker: &mut Walker, n| {
        let error = walker.skip(n).unwrap_err();
        assert_eq!(error.fault, Fault::Skip);
        error.at
    };
    assert_eq!(refused(&mut walker, 1), 0);
    assert_eq!(walker.skip(0), Ok(()));
    // Fetch response 0: behind the error code stand 8 bytes of high watermark.
    let root = Root::find(Direction::Response, ApiKey::FETCH, 0).unwrap();
    let mut walker = Walker::new(root, 100);
    let start = [0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 3, 0, 6, 0];
    let progress = walker.feed(&start, &mut |_| {});
    assert_eq!(progress, Ok((start.len(), Progress::Skippable(7))));
    assert_eq!(refused(&mut walker, 8), 18);
    assert_eq!(walker.skip(7), Ok(()));
    assert_eq!(refused(&mut walker, 1), 25);
}

#[test]
fn no_part_of_a_message_is_taken_for_the_whole() {
    let mut rng = Rng::with_seed(6);
    for _ in 0..2 {
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
    for sample in one_of_each(&mut rng)
        .into_iter()
        .chain(one_of_each(&mut rng))
    {
        // Over the border between classic and flexible versions, if there is one.
        let others = (0..20).filter(|other| {
            let flexible = |version| samples::is_flexible(sample.api_key, version);
            flexible(*other) != flexible(sample.api_version)
        });
        for other in others {
            let root = Root::find(sample.direction, sample.api_key, other);
            let Some(root) = root.filter(|_| sample.bytes.len() > 60) else {
                continue;
            };
            let len = sample.bytes.len();
            let walked = walk(root, &sample.bytes, len, |_, _| Move::Feed(usize::MAX));
            all += 1;
            wrong += u32::from(walked.end == End::Done(len));
        }
    }
    assert!(all > 1_000 && wrong * 50 < all, "{wrong} of {all}");
}
