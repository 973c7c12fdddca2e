//! Finds the heads of the batches in records (RecordBatch v2, and the message sets of before 0.11), of
//! which it passes on nothing else.
//!
//! The trap: a batch's length is a promise, and behind a false one stands content. What does not look
//! like the head of a batch, or of a kind other than the first one's, ends the search.

use super::form::{Batch, BatchKind};

/// Bytes of a batch before its records.
pub(crate) const HEAD: usize = 61;
/// Bytes of a message before magic 2, up to its attributes.
const OLD_HEAD: usize = 18;
/// Bytes of the offset and the length, which the length does not count.
const PREFIX: u64 = 12;

/// A search through one record set.
#[derive(Debug)]
pub(super) struct Batches {
    head: Vec<u8>,
    /// Bytes before the next head.
    skip: u64,
    /// Bytes that were looked at.
    at: u64,
    magic: Option<u8>,
    over: bool,
}

impl Batches {
    pub(super) fn new() -> Self {
        Self {
            head: Vec::new(),
            skip: 0,
            at: 0,
            magic: None,
            over: false,
        }
    }

    /// Looks at the next bytes. Tells of heads, and at which offset in the records each ends.
    pub(super) fn bytes(&mut self, mut bytes: &[u8], on: &mut dyn FnMut(&Batch, u64)) {
        while !self.over && !bytes.is_empty() {
            let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX);
            let skipped = skipped.min(bytes.len());
            self.skip = self.skip.saturating_sub(skipped as u64);
            bytes = bytes.get(skipped..).unwrap_or_default();
            self.at = self.at.saturating_add(skipped as u64);

            let wanted = match self.head.get(16) {
                None => OLD_HEAD,
                Some(0 | 1) => OLD_HEAD,
                Some(_) => HEAD,
            };
            let missing = wanted.saturating_sub(self.head.len());
            let (taken, rest) = bytes.split_at_checked(missing).unwrap_or((bytes, &[]));
            self.head.extend_from_slice(taken);
            bytes = rest;
            self.at = self.at.saturating_add(taken.len() as u64);
            if self.head.len() < wanted || wanted == OLD_HEAD && self.head.get(16) == Some(&2) {
                continue;
            }
            match batch(&self.head).filter(|_| self.is_like_the_first()) {
                Some(batch) => {
                    on(&batch, self.at);
                    self.skip = batch.bytes.saturating_sub(wanted as u64);
                    self.head.clear();
                }
                None => self.over = true,
            }
        }
    }

    /// The next bytes cannot be seen.
    pub(super) fn hole(&mut self, n: u32) {
        self.at = self.at.saturating_add(n.into());
        match self.skip.checked_sub(n.into()) {
            Some(skip) => self.skip = skip,
            None => self.over = true,
        }
    }

    fn is_like_the_first(&mut self) -> bool {
        let magic = self.head.get(16).copied();
        *self.magic.get_or_insert(magic.unwrap_or(0)) == magic.unwrap_or(0)
    }
}

/// Whether a record batch (magic 2) begins so, and of how many bytes it says that it is, these included.
pub fn batch_bytes(head: &[u8; HEAD]) -> Option<u64> {
    batch(head)
        .filter(|batch| batch.kind.is_ok())
        .map(|batch| batch.bytes)
}

/// Reads a head; `None` where it is none.
pub(crate) fn batch(head: &[u8]) -> Option<Batch> {
    let length = int32(head, 8)?;
    let magic = *head.get(16)?;
    let bytes = u64::try_from(length).ok()?.checked_add(PREFIX)?;
    let (least, attributes, known) = match magic {
        0 | 1 => (OLD_HEAD, i16::from(*head.get(17)?), 0x0f),
        2 => (HEAD, int16(head, 21)?, 0x7f),
        _ => return None,
    };
    if bytes < least as u64 || attributes & !known != 0 {
        return None;
    }
    let kind = match magic {
        2 => Ok(BatchKind {
            leader_epoch: int32(head, 12)?,
            producer_id: int64(head, 43)?,
            producer_epoch: int16(head, 51)?,
            base_sequence: int32(head, 53)?,
            records: int32(head, 57)?,
            is_transactional: attributes & 0x10 != 0,
            is_control: attributes & 0x20 != 0,
        }),
        _ => Err(magic),
    };
    Some(Batch {
        base_offset: int64(head, 0)?,
        bytes,
        codec: (attributes & 7) as u8,
        kind,
    })
}

fn int16(bytes: &[u8], at: usize) -> Option<i16> {
    Some(i16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn int32(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn int64(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
