//! Randomness that can be had again: a test that uses it says its seed, which is shown when it fails.

/// The seed in `KLAMP_TEST_SEED`, else a new one.
pub fn seed() -> u64 {
    let given = std::env::var("KLAMP_TEST_SEED").ok();
    let seed = given.map_or_else(
        || fastrand::u64(..),
        |text| text.parse().expect("KLAMP_TEST_SEED is a number"),
    );
    eprintln!("KLAMP_TEST_SEED={seed}");
    seed
}
