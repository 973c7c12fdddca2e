//! The captures that are kept in memory: a bounded number, in a bounded number of bytes, the oldest
//! given up first.
//!
//! The trap: a capture goes on for a while, on a connection that may neither say anything again nor end.
//! So whether it is complete is told by the clock as well as by its connection, and needs no timer. And
//! connections wait for the lock: behind it nothing is done that takes longer the more is kept.

use super::Capture;
use super::frames::size_of_piece;
use klamp_codec::kept::Kept;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) captures: usize,
    /// Of memory, for the frames and what holds them.
    pub(super) bytes: usize,
}

/// The captures that are kept in memory.
#[derive(Debug)]
pub(super) struct Store {
    bounds: Bounds,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// By id, and so by age.
    entries: BTreeMap<u64, Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    capture: Arc<Capture>,
    connection: u64,
    bytes: usize,
    /// When it is complete, if nothing completes it earlier.
    until: Instant,
    file: Option<Arc<str>>,
}

/// A capture as it is when somebody asks.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) capture: Arc<Capture>,
    /// The connection it is of.
    pub(crate) connection: u64,
    /// Of memory.
    pub(crate) bytes: usize,
    /// When it is or was complete.
    pub(crate) until: Instant,
    /// The file it was written to.
    pub(crate) file: Option<Arc<str>>,
}

impl Found {
    /// Whether it goes on.
    pub(crate) fn is_recording(&self) -> bool {
        Instant::now() < self.until
    }
}

/// There was no room for frames, or their capture is not kept any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

impl Store {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            held: Mutex::default(),
        }
    }

    /// Keeps a capture, which goes on until then; tells how many older ones were given up for it.
    pub(super) fn insert(
        &self,
        capture: Capture,
        connection: u64,
        until: Instant,
    ) -> Result<u64, NoRoom> {
        let bytes = size_of::<Capture>() + capture.frames.bytes();
        let entry = Entry {
            connection,
            bytes,
            until,
            file: None,
            capture: Arc::new(capture),
        };
        let id = entry.capture.id;
        let mut held = self.lock();
        let given_up = self.make_room(&mut held, bytes, 1, id)?;
        held.bytes += bytes;
        held.entries.insert(id, entry);
        drop(held);
        Ok(given_up.len() as u64)
    }

    /// Adds frames to a capture that goes on; tells how many others were given up for them.
    pub(super) fn append(&self, id: u64, frames: Vec<Kept>) -> Result<u64, NoRoom> {
        let bytes = size_of_piece(&frames);
        let mut held = self.lock();
        if !held.entries.contains_key(&id) {
            return Err(NoRoom);
        }
        let given_up = self.make_room(&mut held, bytes, 0, id)?;
        let entry = held.entries.get_mut(&id).ok_or(NoRoom)?;
        // (where somebody reads it this copies who and why, and no frame)
        Arc::make_mut(&mut entry.capture).frames.add(frames);
        entry.bytes += bytes;
        held.bytes += bytes;
        drop(held);
        Ok(given_up.len() as u64)
    }

    /// A capture is complete.
    pub(super) fn complete(&self, id: u64) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            entry.until = entry.until.min(Instant::now());
        }
    }

    /// A capture has been written to this file.
    pub(super) fn filed(&self, id: u64, file: &str) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            entry.file = Some(file.into());
        }
    }

    pub(super) fn find(&self, id: u64) -> Option<Found> {
        self.lock().entries.get(&id).map(Entry::found)
    }

    /// All of them, the oldest first.
    pub(super) fn all(&self) -> Vec<Found> {
        self.lock().entries.values().map(Entry::found).collect()
    }

    /// Gives up a capture; whether it was there.
    pub(super) fn remove(&self, id: u64) -> bool {
        let gone = self.lock().remove(id);
        gone.is_some()
    }

    /// Gives up all, and tells how many there were.
    pub(super) fn clear(&self) -> usize {
        let gone = std::mem::take(&mut *self.lock());
        gone.entries.len()
    }

    /// Of memory, for all together.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Gives up the oldest, but not `spared`, until so much more may be kept. Those are to be dropped when
    /// nobody waits for the lock any more: each is thousands of frames.
    fn make_room(
        &self,
        held: &mut Held,
        bytes: usize,
        captures: usize,
        spared: u64,
    ) -> Result<Vec<Entry>, NoRoom> {
        let spared_bytes = held.entries.get(&spared).map_or(0, |entry| entry.bytes);
        if spared_bytes + bytes > self.bounds.bytes {
            return Err(NoRoom);
        }
        let mut given_up = Vec::new();
        while held.bytes + bytes > self.bounds.bytes
            || held.entries.len() + captures > self.bounds.captures
        {
            let oldest = held.entries.keys().find(|id| **id != spared).copied();
            given_up.extend(held.remove(oldest.ok_or(NoRoom)?));
        }
        Ok(given_up)
    }

    /// What the lock guards is whole between any two statements that could panic.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn remove(&mut self, id: u64) -> Option<Entry> {
        let gone = self.entries.remove(&id);
        self.bytes -= gone.as_ref().map_or(0, |entry| entry.bytes);
        gone
    }
}

impl Entry {
    fn found(&self) -> Found {
        Found {
            capture: Arc::clone(&self.capture),
            connection: self.connection,
            bytes: self.bytes,
            until: self.until,
            file: self.file.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{capture, frame};
    use super::*;
    use std::time::Duration;

    const BOUNDS: Bounds = Bounds {
        captures: 3,
        bytes: 10_000,
    };

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    fn ids(store: &Store) -> Vec<u64> {
        store.all().iter().map(|found| found.capture.id).collect()
    }

    #[test]
    fn the_oldest_of_too_many_captures_is_given_up() {
        let store = Store::new(BOUNDS);
        let given_up: Vec<_> = (1..=5)
            .map(|id| store.insert(capture(id, 10), id, later()))
            .collect();
        assert_eq!(given_up, [Ok(0), Ok(0), Ok(0), Ok(1), Ok(1)]);
        assert_eq!(ids(&store), [3, 4, 5]);
    }

    #[test]
    fn as_many_of_the_oldest_are_given_up_as_a_large_one_needs() {
        let store = Store::new(BOUNDS);
        for id in 1..=3 {
            store.insert(capture(id, 2_000), id, later()).unwrap();
        }
        assert_eq!(store.insert(capture(4, 7_500), 4, later()), Ok(3));
        assert_eq!(ids(&store), [4]);
        assert!((7_500..=BOUNDS.bytes).contains(&store.bytes()));
    }

    #[test]
    fn what_is_larger_than_all_the_room_is_refused_and_nothing_given_up_for_it() {
        let store = Store::new(BOUNDS);
        store.insert(capture(1, 100), 1, later()).unwrap();
        let before = store.bytes();
        assert_eq!(store.insert(capture(2, 10_000), 2, later()), Err(NoRoom));
        assert_eq!(store.append(1, vec![frame(10_000)]), Err(NoRoom));
        assert_eq!((ids(&store), store.bytes()), (vec![1], before));
    }

    #[test]
    fn frames_that_come_later_are_added_and_make_room_for_themselves() {
        let store = Store::new(BOUNDS);
        store.insert(capture(1, 4_000), 1, later()).unwrap();
        store.insert(capture(2, 4_000), 2, later()).unwrap();
        let seen_before = store.find(2).unwrap();
        assert_eq!(store.append(2, vec![frame(1_000), frame(2_000)]), Ok(1));
        assert_eq!(ids(&store), [2]);
        assert_eq!(store.find(2).unwrap().capture.frames.len(), 3);
        assert_eq!(seen_before.capture.frames.len(), 1);
        let expected = size_of::<Capture>() + store.find(2).unwrap().capture.frames.bytes();
        assert_eq!(
            (store.find(2).unwrap().bytes, store.bytes()),
            (expected, expected)
        );
        assert_eq!(store.append(1, vec![frame(1)]), Err(NoRoom), "it is gone");
        assert!(store.remove(2) && !store.remove(2));
        assert_eq!(store.bytes(), 0);
    }

    #[test]
    fn a_capture_is_complete_when_told_so_or_when_its_time_is_over() {
        let store = Store::new(BOUNDS);
        store.insert(capture(1, 10), 1, later()).unwrap();
        store.insert(capture(2, 10), 2, Instant::now()).unwrap();
        let recording = || {
            store
                .all()
                .iter()
                .map(Found::is_recording)
                .collect::<Vec<_>>()
        };
        assert_eq!(recording(), [true, false]);
        store.complete(1);
        assert_eq!(recording(), [false, false]);
        assert_eq!(store.clear(), 2);
        assert_eq!(store.bytes(), 0);
    }
}
