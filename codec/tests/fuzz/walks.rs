//! Walks by both tables.

use crate::damage::damage;
use crate::grown::grown;
use crate::walk::{End, Move, Walked, check_hot, walk};
use crate::{Kind, pairs, run};
use allocation_counter::measure;
use fastrand::Rng;
use klamp_codec::layout::{Root, Walker};
use std::time::{Duration, Instant};

/// What the walks of a run cost at most.
#[derive(Debug, Default)]
struct Worst {
    events_per_byte: f64,
    nanoseconds_per_byte: f64,
    bytes: u64,
    read: u64,
    refused: u64,
}

#[test]
fn walks_end_soon_and_hold_nothing_whatever_comes() {
    let kinds = pairs().concat();
    let mut worst = Worst::default();
    let cases = run(|seed, rng| {
        let kind = kinds[seed as usize % kinds.len()];
        let valid = grown(kind.full(), rng);
        let whole = End::Done(valid.len());
        assert_eq!(
            check(kind, &valid, rng, &mut worst),
            whole,
            "{kind:?}: {valid:02x?}"
        );
        for _ in 0..8 {
            let mut bytes = match rng.u8(0..6) {
                0 => noise(rng),
                1 => grown(rng.choice(&kinds).unwrap().full(), rng),
                _ => valid.clone(),
            };
            if rng.u8(..) > 20 {
                damage(&mut bytes, rng);
            }
            match check(kind, &bytes, rng, &mut worst) {
                End::Done(_) => worst.read += 1,
                End::Failed(_) => worst.refused += 1,
                End::Hungry => panic!("{kind:?} goes on behind its frame: {bytes:02x?}"),
            }
        }
    });
    println!(
        "{cases} cases, at least {} of each layout: {worst:?}",
        cases / kinds.len() as u64
    );
    assert!(worst.read > 500 && worst.refused > 500, "{worst:?}");
}

/// Bytes of a small alphabet, or of all; now and then very many.
fn noise(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.u8(..) {
        0..8 => rng.usize(0..60_000),
        _ => rng.usize(0..300),
    };
    match rng.u8(0..3) {
        0 => vec![*rng.choice(&[0, 1, 2, 0x7f, 0x80, 0xff]).unwrap(); len],
        1 => (0..len).map(|_| rng.u8(0..4)).collect(),
        _ => (0..len).map(|_| rng.u8(..)).collect(),
    }
}

/// Walks by both tables, whole and in pieces, and returns how the full one's walk ended.
fn check(kind: Kind, bytes: &[u8], rng: &mut Rng, worst: &mut Worst) -> End {
    let [hot, full] = [kind.hot(), kind.full()].map(|root| {
        weigh(root, bytes, worst);
        let whole = walk(root, bytes, bytes.len(), |_, _| Move::Feed(usize::MAX));
        let largest = 1 << rng.u8(0..12);
        let pieces = walk(root, bytes, bytes.len(), |_, _| {
            match rng.usize(0..=largest) {
                n if rng.bool() => Move::Feed(n),
                n => Move::Skip(n),
            }
        });
        assert_eq!(pieces, whole, "{kind:?}: {bytes:02x?}");
        whole
    });
    // What the data path does not look for it does not refuse.
    if let Walked {
        end: End::Done(_), ..
    } = full
    {
        assert_eq!(hot.end, full.end, "{kind:?}: {bytes:02x?}");
        check_hot(&hot, &full);
    }
    full.end
}

/// Holds a walk to its bounds.
fn weigh(root: Root, bytes: &[u8], worst: &mut Worst) {
    let mut events = 0_usize;
    let walk = |events: &mut usize| {
        let start = Instant::now();
        let mut walker = Walker::new(root, bytes.len() as u32);
        let _ = walker.feed(bytes, &mut |_| *events += 1);
        start.elapsed()
    };
    let mut time = Duration::ZERO;
    let memory = measure(|| time = walk(&mut events));
    assert_eq!(memory.count_total, 0, "a walk needs no heap");
    assert!(
        events <= 4 * bytes.len() + 20,
        "{events} events of {bytes:02x?}"
    );

    // Others use the machine too: only what is slow again and again is slow.
    let most = Duration::from_micros(100 + 2 * bytes.len() as u64);
    for _ in 0..20 {
        if time > most {
            time = time.min(walk(&mut 0));
        }
    }
    assert!(time <= most, "{time:?} for {bytes:02x?}");
    worst.bytes += bytes.len() as u64;
    if bytes.len() >= 100 {
        let per_byte = |n: f64| n / bytes.len() as f64;
        worst.events_per_byte = worst.events_per_byte.max(per_byte(events as f64));
        let time = per_byte(time.as_nanos() as f64);
        worst.nanoseconds_per_byte = worst.nanoseconds_per_byte.max(time);
    }
}
