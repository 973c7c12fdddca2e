//! The heads of record batches, which are all that is left of records.
//!
//! The trap: a head may itself be cut by a hole, or stand where a false length says. What is not the
//! whole head of a batch of magic 2 goes, and all that follows it.

use super::Mended;
use super::holes::OTHER_BATCHES;
use crate::render::records::{self, HEAD};

/// Bytes of a batch that its length counts, where nothing but its head is left of it.
const LENGTH: u32 = 49;

/// What becomes of one record set.
#[derive(Debug, Default)]
pub(super) struct Heads {
    head: Vec<u8>,
    /// Bytes before the next head.
    skip: u64,
    /// Bytes that the next batch may have. The first is there as a whole; the last, brokers may cut.
    room: u64,
    /// Bytes of the batch written last, behind its head.
    own: Option<u64>,
    /// Bytes left out since what was written last.
    dropped: u64,
    over: bool,
}

impl Heads {
    /// Of a record set of so many bytes.
    pub(super) fn of(len: u32) -> Self {
        Self {
            room: len.into(),
            ..Self::default()
        }
    }

    /// Of records that do not begin with a batch.
    pub(super) fn none() -> Self {
        Self {
            over: true,
            ..Self::default()
        }
    }

    /// The next bytes; heads among them are written.
    pub(super) fn bytes(&mut self, mut bytes: &[u8], to: &mut Mended, field: &'static str) {
        while !bytes.is_empty() {
            if self.over {
                return self.drop(bytes.len() as u64);
            }
            let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX);
            let skipped = skipped.min(bytes.len());
            self.skip = self.skip.saturating_sub(skipped as u64);
            self.drop(skipped as u64);
            bytes = bytes.get(skipped..).unwrap_or_default();

            let missing = HEAD.saturating_sub(self.head.len());
            let (taken, rest) = bytes.split_at_checked(missing).unwrap_or((bytes, &[]));
            self.head.extend_from_slice(taken);
            bytes = rest;
            if self.head.len() < HEAD {
                return;
            }
            let mut head = std::mem::take(&mut self.head);
            let batch = records::batch(&head, self.room);
            self.room = u64::MAX;
            match batch.filter(|batch| batch.kind.is_ok()) {
                Some(batch) => {
                    self.flush(to, field);
                    self.skip = batch.bytes.saturating_sub(HEAD as u64);
                    self.own = Some(self.skip);
                    if let Some(length) = head.get_mut(8..12) {
                        length.copy_from_slice(&LENGTH.to_be_bytes());
                    }
                    to.bytes.extend_from_slice(&head);
                    to.batches.push(batch);
                }
                None => {
                    self.over = true;
                    self.drop(HEAD as u64);
                }
            }
        }
    }

    /// The next bytes were not kept.
    pub(super) fn hole(&mut self, n: u64) {
        match self.skip.checked_sub(n) {
            Some(skip) if self.head.is_empty() => self.skip = skip,
            _ => self.over = true,
        }
        if self.over {
            let head = std::mem::take(&mut self.head);
            self.drop(head.len() as u64);
        }
        self.drop(n);
    }

    /// The records end.
    pub(super) fn end(mut self, to: &mut Mended, field: &'static str) {
        self.drop(self.head.len() as u64);
        self.flush(to, field);
    }

    fn drop(&mut self, n: u64) {
        self.dropped = self.dropped.saturating_add(n);
    }

    fn flush(&mut self, to: &mut Mended, field: &'static str) {
        let dropped = std::mem::take(&mut self.dropped);
        let of_batch = self.own.take().map_or(dropped, |own| own.min(dropped));
        let at = to.bytes.len();
        to.withheld.add(at, of_batch, field.into());
        let others = dropped.saturating_sub(of_batch);
        to.withheld.add(at, others, OTHER_BATCHES.into());
    }
}
