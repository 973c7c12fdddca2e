//! Timers for threads whose event loops have none of their own: such a loop would read the clock twice
//! whenever it wakes, which is a large part of what a small message costs, for timers that go off hardly
//! ever. They are those of one loop of the process then, which wakes the task in its thread.
//!
//! The trap: when that loop ends, whoever still waits for one of its timers panics.

use std::sync::OnceLock;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, Timeout, sleep_until, timeout_at};

/// The moment from which this process counts: the one at which it began to.
pub(crate) fn epoch() -> std::time::Instant {
    static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
    *EPOCH.get_or_init(std::time::Instant::now)
}

/// The timers of one event loop, for tasks of any.
#[derive(Clone, Debug)]
pub(crate) struct Timers(Handle);

impl Timers {
    /// Those of the event loop in which this is called.
    pub(crate) fn here() -> Self {
        Self(Handle::current())
    }

    pub(crate) fn sleep_until(&self, deadline: Instant) -> Sleep {
        let _entered = self.0.enter();
        sleep_until(deadline)
    }

    pub(crate) fn timeout_at<F: Future>(&self, deadline: Instant, future: F) -> Timeout<F> {
        let _entered = self.0.enter();
        timeout_at(deadline, future)
    }
}
