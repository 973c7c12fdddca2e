//! Waiting for what another process does, with a limit and a reason.

use std::time::{Duration, Instant};

/// Asks until there is an answer.
///
/// # Panics
/// With `what` if there is none `within` that time.
#[track_caller]
pub fn until<T>(within: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(
            start.elapsed() < within,
            "waited {within:?} in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until `condition` holds.
///
/// # Panics
/// With `what` if it does not `within` that time.
#[track_caller]
pub fn until_holds(within: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    until(within, what, || condition().then_some(()));
}
