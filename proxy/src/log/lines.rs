//! Takes log lines off the threads that relay.
//!
//! The trap: standard error is often a pipe, and whoever reads it may stop without closing it. A
//! thread that wrote its lines itself would stop with the reader, and all its connections with it.
//! So one thread writes, and it alone waits. While too many lines wait for it further ones are lost,
//! and their number is told when there is room again. A standard error that is closed loses them all.

use super::RateLimit;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Lines that may wait.
const QUEUE: usize = 4096;

/// How long the end of the process may wait for its last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Starts the thread that writes.
pub(super) fn start() -> io::Result<(Arc<Lines>, Flush)> {
    let (queue, waiting) = sync_channel(QUEUE);
    let lines = Arc::new(Lines {
        queue: queue.clone(),
        lost: AtomicU64::new(0),
    });
    let writer = lines.clone();
    std::thread::Builder::new()
        .name("klamp-log".to_owned())
        .spawn(move || write_out(&waiting, &writer.lost))?;
    Ok((lines, Flush(queue)))
}

/// Where lines are queued; each write is a whole line.
#[derive(Debug)]
pub(super) struct Lines {
    queue: SyncSender<Message>,
    lost: AtomicU64,
}

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    /// All lines before this have been written.
    Written(SyncSender<()>),
}

impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Message::Line(line.to_vec())) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_out(waiting: &Receiver<Message>, lost: &AtomicU64) {
    static TOLD: RateLimit = RateLimit::new(1, Duration::from_secs(10));
    for message in waiting {
        match message {
            // A closed standard error loses the line, and there is no other place to say so.
            Message::Line(line) => drop(io::stderr().write_all(&line)),
            Message::Written(done) => drop(done.send(())),
        }
        if lost.load(Ordering::Relaxed) > 0 && TOLD.admit().is_some() {
            // Queued like any other line, and counted like any other if there is no room.
            let lost = lost.swap(0, Ordering::Relaxed);
            tracing::warn!(
                lost,
                "log lines were lost: nobody read standard error in time"
            );
        }
    }
}

/// Writes what is queued when dropped, unless nobody reads it.
#[derive(Debug)]
pub(crate) struct Flush(SyncSender<Message>);

impl Drop for Flush {
    fn drop(&mut self) {
        let (done, written) = sync_channel(1);
        if self.0.try_send(Message::Written(done)).is_ok() {
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_queue_are_counted_and_hold_nobody_up() {
        let (queue, waiting) = sync_channel(2);
        let lines = Lines {
            queue,
            lost: AtomicU64::new(0),
        };
        for line in ["one", "two", "three", "four"] {
            (&lines).write_all(line.as_bytes()).unwrap();
        }
        let queued: Vec<_> = waiting.try_iter().collect();
        assert!(
            matches!(&queued[..], [Message::Line(one), Message::Line(_)] if one == b"one"),
            "{queued:?}"
        );
        assert_eq!(lines.lost.load(Ordering::Relaxed), 2);
    }
}
