//! Produce and Fetch: records of several partitions, of batches that may lie.

use super::{Terms, code};
use crate::batches;
use crate::writer::Writer;

pub(super) fn produce(w: &mut Writer<'_>, version: i16, terms: &Terms) {
    w.string(None).int16(terms.acks).int32(1000);
    let topics = w.pick(&[1, 1, 2, 3]);
    w.array(Some(topics));
    for _ in 0..topics {
        topic(w, version);
        let many = if w.chance(0.1) { 60 } else { 2 };
        let partitions = w.pick(&[0, 1, 1, 2, 4, many]);
        w.array(Some(partitions));
        for index in 0..partitions {
            let records = batches::records(w);
            w.int32(index as i32).records(records).tags();
        }
        w.tags();
    }
    w.tags();
}

pub(super) fn produce_answer(w: &mut Writer<'_>, version: i16, _: &Terms) {
    w.array(Some(1));
    topic(w, version);
    let partitions = w.pick(&[1, 2]);
    w.array(Some(partitions));
    for index in 0..partitions {
        let code = code(w, 0.06);
        w.int32(index as i32).int16(code).int64(44).int64(-1);
        if version >= 5 {
            w.int64(0);
        }
        if version >= 8 {
            w.array(Some(1)).int32(0).text(4).tags().text(12);
        }
        w.tags();
    }
    w.tags().int32(0).tags();
}

pub(super) fn fetch(w: &mut Writer<'_>, version: i16, _: &Terms) {
    if version < 15 {
        w.int32(-1);
    }
    w.int32(10).int32(1).int32(1 << 20).int8(0);
    if version >= 7 {
        w.int32(0).int32(-1);
    }
    w.array(Some(1));
    topic(w, version);
    let many = if w.chance(0.2) { 700 } else { 1 };
    let partitions = w.pick(&[1, 2, 5, many]);
    w.array(Some(partitions));
    for index in 0..partitions {
        w.int32(index as i32);
        if version >= 9 {
            w.int32(-1);
        }
        w.int64(5);
        if version >= 12 {
            w.int32(-1);
        }
        if version >= 5 {
            w.int64(-1);
        }
        w.int32(1 << 20).tags();
    }
    w.tags();
    if version >= 7 {
        w.array(Some(0));
    }
    if version >= 11 {
        w.text(3);
    }
    w.tags();
}

pub(super) fn fetch_answer(w: &mut Writer<'_>, version: i16, _: &Terms) {
    w.int32(0);
    if version >= 7 {
        w.int16(0).int32(9);
    }
    let topics = w.pick(&[0, 1, 1, 2]);
    w.array(Some(topics));
    for _ in 0..topics {
        topic(w, version);
        let many = if w.chance(0.15) {
            w.rng.usize(30..300)
        } else {
            1
        };
        let partitions = w.pick(&[1, 1, 2, 6, many]);
        w.array(Some(partitions));
        for index in 0..partitions {
            let code = code(w, 0.02);
            w.int32(index as i32).int16(code).int64(9).int64(9);
            if version >= 5 {
                w.int64(0);
            }
            match w.chance(0.7) {
                true => w.array(None),
                false => w.array(Some(1)).int64(5).int64(6).tags(),
            };
            if version >= 11 {
                w.int32(-1);
            }
            let records = match partitions < 20 || w.chance(0.3) {
                true => batches::records(w),
                false => Some(batches::batch_of(w, 20, 0)),
            };
            w.records(records).tags();
        }
        w.tags();
    }
    w.tags();
}

fn topic(w: &mut Writer<'_>, version: i16) {
    match version >= 13 {
        true => w.uuid(),
        false => w.text(8),
    };
}
