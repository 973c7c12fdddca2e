//! Timers for threads whose event loops have none of their own: such a loop would read the clock twice
//! whenever it wakes, which is a large part of what a small message costs, for timers that go off hardly
//! ever. They are those of one loop of the process then, which wakes the task in its thread.
//!
//! The trap: when that loop ends, whoever still waits for one of its timers panics.

use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, Timeout, sleep_until, timeout_at};

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
