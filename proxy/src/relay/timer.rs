//! Time, asked for rarely: the clock once per batch of bytes, the timer only when a deadline is
//! nearer than the one it is set to. Going off too early costs one look; being set again with every
//! message would cost the runtime's timer wheel each time.

use crate::timers::{self, Timers};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::task::unconstrained;
use tokio::time::Sleep;

/// The time, read on first use.
#[derive(Default)]
pub(super) struct Clock {
    read: Option<Instant>,
    is_old: bool,
}

impl Clock {
    pub(super) fn now(&mut self) -> Instant {
        if self.is_old {
            (self.read, self.is_old) = (None, false);
        }
        self.recent()
    }

    /// The time when it was read last, less than a turn ago: for what need not be exact.
    pub(super) fn recent(&mut self) -> Instant {
        *(self.read).get_or_insert_with(|| tokio::time::Instant::now().into_std())
    }

    /// The same since the process began to count.
    pub(super) fn elapsed(&mut self) -> Duration {
        self.now().saturating_duration_since(timers::epoch())
    }

    /// Time has passed, or may have: the next use reads it again.
    pub(super) fn restart(&mut self) {
        self.is_old = true;
    }
}

/// The one timer of a connection; most never allocate it.
#[derive(Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready once it is `deadline` or later. Wakes the task by then, and perhaps earlier.
    pub(super) fn poll(
        &mut self,
        deadline: Instant,
        timers: &Timers,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let deadline = tokio::time::Instant::from_std(deadline);
        let sleep = match &mut self.0 {
            Some(sleep) => {
                if sleep.deadline() <= deadline && !sleep.is_elapsed() {
                    return Poll::Pending;
                }
                if sleep.deadline() != deadline {
                    sleep.as_mut().reset(deadline);
                }
                sleep
            }
            empty => empty.insert(Box::pin(timers.sleep_until(deadline))),
        };
        // Without the task's budget: once that is spent, a poll would not even arm the timer.
        Pin::new(&mut unconstrained(sleep.as_mut())).poll(cx)
    }
}
