//! The thread that writes captures to `--capture-dir`, so that a slow or full disk holds up nothing else.
//!
//! The trap: what waits for the disk must not grow. The queue has ids only and is bounded; the captures
//! themselves stay in the store, under its bounds.

use super::directory::{Directory, Failure};
use super::store::{Found, Store};
use crate::log::{self, Admitted, RateLimit};
use klamp_metrics::{CaptureDropped, Metrics};
use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Level, warn};

/// Captures that may wait for the disk.
const QUEUE: usize = 64;

/// The thread, from outside.
#[derive(Debug)]
pub(super) struct Writer {
    /// Gone once the thread has been told to end.
    queue: Mutex<Option<SyncSender<u64>>>,
    /// Says nothing; closed once the thread has ended.
    end: Mutex<Receiver<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        directory: Directory,
        store: Arc<Store>,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let (queue, errands) = sync_channel(QUEUE);
        let (alive, end) = sync_channel(0);
        let work = Work {
            directory,
            store,
            metrics,
            recording: Vec::new(),
            counted: BTreeSet::new(),
        };
        std::thread::Builder::new()
            .name("klamp-captures".to_owned())
            .spawn(move || {
                work.until_closed(&errands);
                drop::<SyncSender<()>>(alive);
            })?;
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            end: Mutex::new(end),
        })
    }

    /// Has a capture written, as it is now and as it is when complete. `false`: too many wait already.
    pub(super) fn write(&self, id: u64) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // (after the end there is nobody to write it, nor to ask for it)
        queue
            .as_ref()
            .is_none_or(|queue| queue.try_send(id).is_ok())
    }

    /// Writes what is left to write, for at most so long.
    pub(super) fn finish(&self, time: Duration) {
        drop(
            self.queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(RecvTimeoutError::Timeout) = end.recv_timeout(time) {
            warn!("klamp ends before all captures are written: the disk is slow");
        }
    }
}

struct Work {
    directory: Directory,
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    /// Captures that went on when they were written.
    recording: Vec<Written>,
    /// The latest that could not be written: each is counted once, however often it is tried.
    counted: BTreeSet<u64>,
}

struct Written {
    id: u64,
    /// How often frames had been added by then.
    pieces: usize,
    /// When it is complete.
    until: Instant,
}

impl Work {
    fn until_closed(mut self, errands: &Receiver<u64>) {
        loop {
            let due = self.recording.iter().map(|written| written.until).min();
            let errand = match due {
                Some(due) => errands.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => errands.recv().map_err(RecvTimeoutError::from),
            };
            match errand {
                Ok(id) => self.write(id),
                Err(RecvTimeoutError::Timeout) => self.write_complete(Instant::now()),
                Err(RecvTimeoutError::Disconnected) => {
                    while let Some(written) = self.recording.first() {
                        self.write_complete(written.until);
                    }
                    return;
                }
            }
        }
    }

    /// Writes those again that are complete by `now`.
    fn write_complete(&mut self, now: Instant) {
        let (due, rest) = std::mem::take(&mut self.recording)
            .into_iter()
            .partition(|written| written.until <= now);
        self.recording = rest;
        for Written { id, pieces, .. } in due {
            // (given up meanwhile, which was counted: what is on the disk stays)
            if let Some(found) = self.store.find(id)
                && found.capture.frames.pieces() > pieces
            {
                self.write_file(&found);
            }
        }
    }

    fn write(&mut self, id: u64) {
        let Some(found) = self.store.find(id) else {
            return;
        };
        let pieces = found.capture.frames.pieces();
        let before = self.recording.iter().position(|written| written.id == id);
        let before = before.map(|index| self.recording.swap_remove(index));
        if before.is_none_or(|before| before.pieces < pieces) {
            self.write_file(&found);
        }
        if found.is_recording() {
            let until = found.until;
            self.recording.push(Written { id, pieces, until });
        }
    }

    fn write_file(&mut self, found: &Found) {
        static TROUBLE: LazyLock<Arc<RateLimit>> = LazyLock::new(|| {
            log::limit(
                Level::WARN,
                "captures that cannot be written to --capture-dir",
                3,
            )
        });
        let id = found.capture.id;
        let failure = match self.directory.write(&found.capture) {
            Ok(name) => return self.store.filed(id, &name),
            Err(failure) => failure,
        };
        if self.counted.insert(id) {
            self.metrics.capture_dropped(match failure {
                Failure::Full(_) => CaptureDropped::DirectoryFull,
                Failure::Other(_) => CaptureDropped::WriteFailed,
            });
        }
        if self.counted.len() > QUEUE {
            self.counted.pop_first();
        }
        if let Some(Admitted { suppressed }) = TROUBLE.admit() {
            warn!(suppressed, capture = id, %failure,
                "a capture cannot be written to --capture-dir; it is at /captures for a while");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Capture;
    use super::super::directory::DirectoryBounds;
    use super::super::store::Bounds;
    use super::super::tests::{Scratch, capture, frame};
    use super::*;
    use crate::record::catalog;
    use std::fs;
    use std::io::Write;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn encode(capture: &Capture, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&vec![b'x'; capture.frames.len()])
    }

    fn broken(_: &Capture, _: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::other("made to fail"))
    }

    /// Blocks while there is a file `hold` where the capture's upstream says.
    fn slow(capture: &Capture, _: &mut dyn Write) -> io::Result<()> {
        while fs::exists(&*capture.upstream)? {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    struct Rig {
        scratch: Scratch,
        store: Arc<Store>,
        metrics: Arc<Metrics>,
        writer: Writer,
    }

    fn rig(encode: super::super::directory::Encode) -> Rig {
        let scratch = Scratch::new();
        let bounds = DirectoryBounds {
            files: 9,
            bytes: 1_000,
        };
        let directory = Directory::open(scratch.0.clone(), bounds, encode).unwrap();
        let store = Arc::new(Store::new(Bounds {
            captures: 1_000,
            bytes: 1 << 20,
        }));
        let metrics = Metrics::new(catalog());
        let writer = Writer::start(directory, store.clone(), metrics.clone()).unwrap();
        Rig {
            scratch,
            store,
            metrics,
            writer,
        }
    }

    impl Rig {
        fn insert(&self, id: u64, time: Duration) {
            let until = Instant::now() + time;
            self.store.insert(capture(id, 10), id, until).unwrap();
        }

        /// Waits until the file of a capture has so many bytes.
        fn wait_for(&self, id: u64, bytes: u64) {
            let started = Instant::now();
            loop {
                let file = self.store.find(id).unwrap().file;
                let metadata = file.and_then(|file| fs::metadata(self.scratch.0.join(&*file)).ok());
                if metadata.is_some_and(|metadata| metadata.len() == bytes) {
                    return;
                }
                assert!(started.elapsed() < PATIENCE, "{:?}", self.scratch.names());
                std::thread::sleep(Duration::from_millis(1));
            }
        }

        fn dropped(&self, reason: &str) -> bool {
            let line = format!("klamp_captures_dropped_total{{reason=\"{reason}\"}} 1\n");
            self.metrics.render().unwrap().contains(&line)
        }
    }

    #[test]
    fn a_capture_is_written_at_once_and_again_when_it_is_complete() {
        let rig = rig(encode);
        rig.insert(1, PATIENCE * 9);
        assert!(rig.writer.write(1));
        rig.wait_for(1, 1);
        rig.store.append(1, vec![frame(10), frame(10)]).unwrap();
        rig.store.complete(1);
        assert!(rig.writer.write(1));
        rig.wait_for(1, 3);
        assert_eq!(rig.scratch.names().len(), 1);
    }

    #[test]
    fn a_capture_whose_connection_says_nothing_more_is_written_when_its_time_is_over() {
        let rig = rig(encode);
        rig.insert(1, Duration::from_millis(200));
        assert!(rig.writer.write(1));
        rig.wait_for(1, 1);
        rig.store.append(1, vec![frame(10)]).unwrap();
        rig.wait_for(1, 2);
    }

    #[test]
    fn the_end_writes_what_has_not_been_written() {
        let rig = rig(encode);
        rig.insert(1, PATIENCE * 9);
        assert!(rig.writer.write(1));
        rig.wait_for(1, 1);
        rig.store.append(1, vec![frame(10)]).unwrap();
        rig.insert(2, PATIENCE * 9);
        assert!(rig.writer.write(2));
        rig.writer.finish(PATIENCE);
        rig.wait_for(1, 2);
        rig.wait_for(2, 1);
    }

    #[test]
    fn what_cannot_be_written_is_tried_again_when_complete_and_counted_once() {
        let rig = rig(broken);
        rig.insert(1, PATIENCE * 9);
        assert!(rig.writer.write(1));
        rig.store.append(1, vec![frame(10)]).unwrap();
        rig.store.complete(1);
        assert!(rig.writer.write(1));
        rig.writer.finish(PATIENCE);
        assert!(
            rig.dropped("write_failed"),
            "{}",
            rig.metrics.render().unwrap()
        );
        assert!(rig.store.find(1).unwrap().file.is_none());
    }

    #[test]
    fn a_slow_disk_holds_up_nobody_and_what_does_not_fit_the_queue_is_refused() {
        let rig = rig(slow);
        let hold = rig.scratch.0.join("hold");
        fs::write(&hold, b"").unwrap();
        let refused = (1..=200).filter(|id| {
            let mut capture = capture(*id, 10);
            capture.upstream = hold.to_str().unwrap().into();
            rig.store.insert(capture, *id, Instant::now()).unwrap();
            !rig.writer.write(*id)
        });
        assert!((200 - QUEUE - 1..=200 - QUEUE).contains(&refused.count()));
        rig.writer.finish(Duration::from_millis(1));
        fs::remove_file(hold).unwrap();
        rig.writer.finish(PATIENCE);
    }
}
