//! Frames of every layout, valid, damaged and made up, for as long as one likes: through the walker by
//! both tables, and through whole sessions. Nothing may panic, take more steps or time than its bytes
//! allow, or hold memory; and what a walk tells must not depend on how the bytes come.
//!
//! The tests take a few seconds. For long, and at full speed:
//!
//!     KLAMP_FUZZ_SECONDS=600 nice cargo test --release -p klamp-codec --test fuzz -- --nocapture
//!
//! A failure names its seed, with which `KLAMP_FUZZ_SEED` begins.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod damage;
mod grown;
mod sessions;
#[path = "../sim/mod.rs"]
mod sim;
#[path = "../differential/walk.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod walk;
mod walks;

use fastrand::Rng;
use klamp_codec::layout::Root;
use klamp_codec::{ApiKey, Direction};
use std::time::{Duration, Instant};

/// How long each test runs where nobody says so.
const SECONDS: u64 = 8;

/// Enough for a walk or a session, and far too little for one that recurs with the depth of its input.
const STACK: usize = 256 << 10;

/// Names a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    direction: Direction,
    api_key: ApiKey,
    api_version: i16,
}

impl Kind {
    fn hot(self) -> Root {
        Root::find(self.direction, self.api_key, self.api_version).unwrap()
    }

    fn full(self) -> Root {
        Root::find_full(self.direction, self.api_key, self.api_version).unwrap()
    }
}

/// All layouts, each request with its response.
fn pairs() -> Vec<[Kind; 2]> {
    let mut pairs = Vec::new();
    for api_key in (0..=i8::MAX.into()).map(ApiKey) {
        let versions = klamp_codec::layout::versions(api_key);
        for api_version in versions.into_iter().flat_map(|it| it.min()..=it.max()) {
            let kind = |direction| Kind {
                direction,
                api_key,
                api_version,
            };
            pairs.push([Direction::Request, Direction::Response].map(kind));
        }
    }
    pairs
}

/// Runs cases on a small stack until the time is over; returns how many.
fn run(mut case: impl FnMut(u64, &mut Rng) + Send) -> u64 {
    let number = |name| std::env::var(name).ok().map(|it| it.parse().unwrap());
    let first = number("KLAMP_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..1 << 48));
    let time = Duration::from_secs(number("KLAMP_FUZZ_SECONDS").unwrap_or(SECONDS));
    let until = Instant::now() + time;
    std::thread::scope(|scope| {
        let cases = || {
            let mut seed = first;
            while Instant::now() < until {
                let _tell = Tell(seed);
                case(seed, &mut Rng::with_seed(seed));
                seed += 1;
            }
            seed - first
        };
        let small = std::thread::Builder::new().stack_size(STACK);
        let thread = small.spawn_scoped(scope, cases).unwrap();
        thread.join().expect("no case fails")
    })
}

/// Says which case it was that failed.
struct Tell(u64);

impl Drop for Tell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("KLAMP_FUZZ_SEED={}", self.0);
        }
    }
}
