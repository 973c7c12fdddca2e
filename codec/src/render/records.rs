//! Finds the heads of the batches in records (RecordBatch v2, and the message sets of before 0.11), of
//! which it passes on nothing else.
//!
//! The trap: a batch's length is a promise, and behind a false one stands content. What does not look
//! like the head of a batch, or of a kind other than the first one's, ends the search.

use super::form::{Batch, BatchKind};

/// Bytes of a batch before its records (RecordBatch v2).
pub const HEAD: usize = 61;
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
    /// Bytes that the next batch may have. The first is there as a whole; the last, brokers may cut.
    room: u64,
    magic: Option<u8>,
    over: bool,
}

impl Batches {
    /// Of a record set of so many bytes.
    pub(super) fn new(len: u32) -> Self {
        Self {
            head: Vec::new(),
            skip: 0,
            at: 0,
            room: len.into(),
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
            let room = std::mem::replace(&mut self.room, u64::MAX);
            match batch(&self.head, room).filter(|_| self.is_like_the_first()) {
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

/// Whether a record batch (magic 2) may begin so, and of how many bytes it says that it is, these included.
/// Asked for each batch that passes, so it looks at the kind and the length only: what is shown has been
/// through [`batch`].
pub fn batch_bytes(head: &[u8; HEAD]) -> Option<u64> {
    let (bytes, magic, _) = begin(head)?;
    (magic == 2).then_some(bytes)
}

/// The length that stands in the first bytes of a batch, its magic, and its attributes.
#[inline]
fn begin(head: &[u8]) -> Option<(u64, u8, i16)> {
    let length = int32(head, 8)?;
    let magic = *head.get(16)?;
    let bytes = u64::try_from(length).ok()?.checked_add(PREFIX)?;
    let (least, attributes, known) = match magic {
        0 | 1 => (OLD_HEAD, i16::from(*head.get(17)?), 0x0f),
        2 => (HEAD, int16(head, 21)?, 0x7f),
        _ => return None,
    };
    (bytes >= least as u64 && attributes & !known == 0).then_some((bytes, magic, attributes))
}

/// No offset, time or id is so far: nanoseconds will be in 2043. Text is: its bytes are 0x20 or more.
const FAR: i64 = 0x20 << 56;
/// No batch has so many records, of 7 bytes at least, and no partition had so many leaders. Text says more.
const MANY: i32 = 0x20 << 24;

/// Reads a head of a batch that has `room` for so many bytes; `None` where it is none. Content may look
/// like one, so each field must have a value that Kafka gives it (its `DefaultRecordBatch`).
pub(crate) fn batch(head: &[u8], room: u64) -> Option<Batch> {
    let (bytes, magic, attributes) = begin(head)?;
    let base_offset = int64(head, 0)?;
    if bytes > room || !(-1..FAR).contains(&base_offset) {
        return None;
    }
    let kind = match magic {
        2 => Ok(kind(head, attributes)?),
        _ => Err(magic),
    };
    Some(Batch {
        base_offset,
        bytes,
        codec: (attributes & 7) as u8,
        kind,
    })
}

/// The fields behind the attributes of a batch of magic 2. -1 says of most that there is none.
fn kind(head: &[u8], attributes: i16) -> Option<BatchKind> {
    const LOG_APPEND_TIME: i16 = 0x08;
    const DELETE_HORIZON: i16 = 0x40;
    let kind = BatchKind {
        leader_epoch: int32(head, 12)?,
        producer_id: int64(head, 43)?,
        producer_epoch: int16(head, 51)?,
        base_sequence: int32(head, 53)?,
        records: int32(head, 57)?,
        is_transactional: attributes & 0x10 != 0,
        is_control: attributes & 0x20 != 0,
    };
    let last_offset_delta = int32(head, 23)?;
    let (base_timestamp, max_timestamp) = (int64(head, 27)?, int64(head, 35)?);
    // (of the broker's clock, or not of a record)
    let is_in_order = attributes & (LOG_APPEND_TIME | DELETE_HORIZON) != 0
        || max_timestamp == -1
        || max_timestamp >= base_timestamp;
    let is_one = (0..MANY).contains(&last_offset_delta)
        // Compaction takes records away, and nothing adds any.
        && (0..=last_offset_delta.saturating_add(1)).contains(&kind.records)
        && (-1..MANY).contains(&kind.leader_epoch)
        && (-1..FAR).contains(&kind.producer_id)
        && kind.producer_epoch >= -1
        && kind.base_sequence >= -1
        && [base_timestamp, max_timestamp].iter().all(|time| (-1..FAR).contains(time))
        && is_in_order;
    is_one.then_some(kind)
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

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a test may fail loudly, and its arithmetic is on its own numbers"
    )]

    use super::*;

    /// The offset, the length, what is between, the attributes, the last offset delta, both timestamps,
    /// producer id, epoch, sequence and count of a batch of three records.
    fn head() -> [u8; HEAD] {
        let mut head = [0; HEAD];
        put(&mut head, 0, &7_i64.to_be_bytes());
        put(&mut head, 8, &100_i32.to_be_bytes());
        put(&mut head, 12, &(-1_i32).to_be_bytes());
        head[16] = 2;
        put(&mut head, 23, &2_i32.to_be_bytes());
        put(&mut head, 27, &1_700_000_000_000_i64.to_be_bytes());
        put(&mut head, 35, &1_700_000_000_001_i64.to_be_bytes());
        put(&mut head, 43, &(-1_i64).to_be_bytes());
        put(&mut head, 51, &(-1_i16).to_be_bytes());
        put(&mut head, 53, &(-1_i32).to_be_bytes());
        put(&mut head, 57, &3_i32.to_be_bytes());
        head
    }

    fn put(head: &mut [u8], at: usize, bytes: &[u8]) {
        head[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Whether it is a head with other bytes at some places.
    fn is_head_with(others: &[(usize, &[u8])]) -> bool {
        let mut head = head();
        for (at, bytes) in others {
            put(&mut head, *at, bytes);
        }
        batch(&head, 112).is_some()
    }

    #[test]
    fn what_kafka_writes_is_the_head_of_a_batch() {
        let zero = &[0; 8][..];
        let one = &0x100_i64.to_be_bytes()[..];
        for others in [
            &[][..],
            // Compacted down to one record, or to none (its base sequence stays).
            &[(57, &1_i32.to_be_bytes()[..])],
            &[
                (57, &zero[..4]),
                (53, &zero[..4]),
                (43, one),
                (51, &zero[..2]),
            ],
            // A transaction's marker; Zstandard; without timestamps.
            &[
                (21, &0x30_i16.to_be_bytes()[..]),
                (43, one),
                (51, &zero[..2]),
            ],
            &[(21, &4_i16.to_be_bytes()[..])],
            &[
                (27, &(-1_i64).to_be_bytes()[..]),
                (35, &(-1_i64).to_be_bytes()[..]),
            ],
            // The broker's clock is behind the client's; a delete horizon is ahead of all records.
            &[(21, &8_i16.to_be_bytes()[..]), (35, one)],
            &[(21, &0x40_i16.to_be_bytes()[..]), (35, one)],
            // The last sequence before 0.
            &[(53, &i32::MAX.to_be_bytes()[..])],
        ] {
            assert!(is_head_with(others), "{others:?}");
        }
    }

    #[test]
    fn what_no_batch_begins_with_is_no_head() {
        let minus_two = &(-2_i64).to_be_bytes()[..];
        let text = b"a secret";
        for others in [
            // Longer than there is room, or shorter than a head.
            &[(8, &101_i32.to_be_bytes()[..])][..],
            &[(8, &48_i32.to_be_bytes()[..])],
            &[(16, &[3])],
            &[(21, &[0, 0x80])],
            &[(21, &[1, 0])],
            &[(23, &minus_two[4..])],
            &[(57, &minus_two[4..])],
            &[(57, &4_i32.to_be_bytes()[..])],
            &[(43, minus_two)],
            &[(51, &minus_two[6..])],
            &[(53, &minus_two[4..])],
            &[(12, &minus_two[4..])],
            &[(27, minus_two)],
            &[(35, minus_two)],
            &[(35, &1_699_999_999_999_i64.to_be_bytes()[..])],
            &[(0, text)],
            &[(12, &text[..4])],
            &[(23, &text[..4])],
            &[(35, text)],
            &[(27, text), (35, text)],
            &[(43, text)],
        ] {
            assert!(!is_head_with(others), "{others:?}");
        }
        assert!(batch(&head()[..60], 112).is_none());
        // Of older kinds, too, no text is an offset.
        let mut old = head();
        old[16..18].copy_from_slice(&[1, 0]);
        assert!(batch(&old, 112).is_some());
        put(&mut old, 0, text);
        assert!(batch(&old, 112).is_none());
    }

    #[test]
    fn the_last_of_several_batches_may_be_cut_and_the_only_one_may_not() {
        let two = [&head()[..], &[0; 51], &head()].concat();
        let heads = |len: usize| {
            let mut ends = Vec::new();
            let mut batches = Batches::new(len as u32);
            batches.bytes(&two[..len], &mut |_, at| ends.push(at));
            ends
        };
        assert_eq!(heads(two.len()), [61, 112 + 61]);
        assert_eq!(heads(112), [61]);
        assert!(heads(111).is_empty());
    }
}
