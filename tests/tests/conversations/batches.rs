//! Records: batches, honest and lying, and the heads that a capture keeps of them.

use super::writer::Writer;

/// Bytes of a batch before its records.
const HEAD: usize = 61;
/// No field of a head has such a value, of eight bytes or four. Text has.
const FAR: i64 = 0x20 << 56;
const MANY: i32 = 0x20 << 24;
/// Heads of a field that are kept.
const MOST: usize = 32;

/// The records of a partition: `None` is null.
pub(crate) fn records(w: &mut Writer<'_>) -> Option<Vec<u8>> {
    let small = |w: &mut Writer<'_>, sizes| {
        let size = w.rng.usize(sizes);
        batch_of(w, size, 0)
    };
    let records = match w.rng.usize(..100) {
        0..8 => return None,
        8..16 => Vec::new(),
        16..50 => batch(w, 0),
        50..70 => (0..w.rng.usize(2..7)).flat_map(|_| batch(w, 0)).collect(),
        70..73 => (0..w.rng.usize(20..60))
            .flat_map(|_| small(w, 0..30))
            .collect(),
        73..79 => {
            let mut cut = [batch(w, 0), small(w, 20..90)].concat();
            cut.truncate(cut.len() - w.rng.usize(1..80));
            cut
        }
        // a head that is none
        79..85 => {
            let mut spoilt = batch(w, 0);
            spoilt[w.pick(&[0, 8, 16, 23, 43, 57])] = w.pick(&[0x7f, 0x80, 3, 0x52]);
            spoilt
        }
        85..90 => {
            let lie = w.pick(&[-20, -1, 1, 7, 61, 300]);
            [batch(w, lie), batch(w, 0)].concat()
        }
        90..95 => old_messages(w),
        _ => {
            let size = w.size(0.02);
            w.content(size)
        }
    };
    Some(records)
}

/// A batch with records of this size.
pub(crate) fn batch_of(w: &mut Writer<'_>, size: usize, lie: i32) -> Vec<u8> {
    let records = w.rng.i32(0..5);
    let delta = records + w.rng.i32(0..3);
    let length = i32::try_from(HEAD - 12 + size).expect("a batch is small") + lie;
    let mut batch = w.rng.i64(0..1 << 40).to_be_bytes().to_vec();
    batch.extend(length.to_be_bytes());
    batch.extend(w.pick(&[-1_i32, 0, 9]).to_be_bytes());
    batch.push(2);
    batch.extend(w.rng.u32(..).to_be_bytes());
    batch.extend(w.pick(&[0_i16, 0, 1, 2, 4, 16, 8]).to_be_bytes());
    batch.extend(delta.to_be_bytes());
    batch.extend(1_700_000_000_000_i64.to_be_bytes());
    batch.extend(1_700_000_000_005_i64.to_be_bytes());
    batch.extend(w.pick(&[-1_i64, 77]).to_be_bytes());
    batch.extend(w.pick(&[-1_i16, 0]).to_be_bytes());
    batch.extend(w.pick(&[-1_i32, 3]).to_be_bytes());
    batch.extend(records.to_be_bytes());
    batch.extend(w.content(size));
    batch
}

/// A batch whose length is wrong by so much.
fn batch(w: &mut Writer<'_>, lie: i32) -> Vec<u8> {
    let size = w.size(0.03);
    batch_of(w, size, lie)
}

/// Messages of magic 0 or 1, of which nothing is kept.
fn old_messages(w: &mut Writer<'_>) -> Vec<u8> {
    let magic = w.pick(&[0, 1]);
    let size = w.size(0.01);
    let mut message = 5_u32.to_be_bytes().to_vec();
    message.extend([magic, 0]);
    if magic == 1 {
        message.extend(1_i64.to_be_bytes());
    }
    message.extend((-1_i32).to_be_bytes());
    message.extend(u32::try_from(size).expect("it is small").to_be_bytes());
    message.extend(w.content(size));
    let mut one = 4_i64.to_be_bytes().to_vec();
    let length = u32::try_from(message.len()).expect("it is small");
    one.extend(length.to_be_bytes());
    one.extend(message);
    one.repeat(w.rng.usize(1..4))
}

/// What is kept of records: the heads of batches, each with the length of a head, up to what is none.
pub(crate) fn heads(records: &[u8]) -> Vec<Vec<u8>> {
    let (mut heads, mut at) = (Vec::new(), 0);
    while let Some(head) = records.get(at..at + HEAD)
        && heads.len() < MOST
    {
        // (brokers cut the last batch of an answer, never the first)
        let room = if at == 0 { records.len() } else { usize::MAX };
        let Some(size) = batch_size(head, room) else {
            break;
        };
        let mut own = head.to_vec();
        own[8..12].copy_from_slice(&((HEAD - 12) as u32).to_be_bytes());
        heads.push(own);
        at += size;
    }
    heads
}

/// How many bytes a batch has that begins so, if one can: Kafka gives each field of a head a value in bounds.
fn batch_size(head: &[u8], room: usize) -> Option<usize> {
    let int = |at: usize, bytes: usize| {
        let first = i64::from(head[at] as i8);
        let rest = head[at + 1..at + bytes].iter();
        rest.fold(first, |value, byte| value << 8 | i64::from(*byte))
    };
    let attributes = int(21, 2);
    let size = usize::try_from(int(8, 4)).ok()? + 12;
    let (delta, count) = (int(23, 4), int(57, 4));
    let (first, last) = (int(27, 8), int(35, 8));
    // the broker's clock, or a delete horizon, may be behind what records say
    let is_in_order = attributes & 0x48 != 0 || last == -1 || last >= first;
    let is_one = head[16] == 2
        && size >= HEAD
        && size <= room
        && attributes & !0x7f == 0
        && is_in_order
        && (0..i64::from(MANY)).contains(&delta)
        && (0..=delta + 1).contains(&count)
        && (-1..i64::from(MANY)).contains(&int(12, 4))
        && [int(0, 8), int(43, 8), first, last]
            .iter()
            .all(|value| (-1..FAR).contains(value))
        && int(51, 2) >= -1
        && int(53, 4) >= -1;
    is_one.then_some(size)
}
