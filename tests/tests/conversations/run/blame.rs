//! Says which conversation a failure is of, and how to have it again.

/// Speaks up if what it lives in panics.
pub(super) struct Blame {
    test: &'static str,
    first: u64,
    seed: u64,
}

impl Blame {
    pub(super) fn new(test: &'static str, first: u64, seed: u64) -> Self {
        Self { test, first, seed }
    }
}

impl Drop for Blame {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { test, first, seed } = *self;
            let before = seed - first;
            let run = |seed: u64, count: u64| {
                format!(
                    "KLAMP_TEST_SEED={seed} KLAMP_TEST_CONVERSATIONS={count} \
                     cargo test -p klamp-tests --test conversations {test}"
                )
            };
            eprintln!(
                "The conversation with seed {seed} failed, number {before} of those from {first} on. \
                 It alone:\n  {}\nWith those before it:\n  {}",
                run(seed, 1),
                run(first, before + 1),
            );
        }
    }
}
