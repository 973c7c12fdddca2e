//! ApiVersions, Metadata, and SASL by both handshakes.

use super::{Terms, code};
use crate::writer::Writer;

pub(super) fn api_versions(w: &mut Writer<'_>, version: i16, _: &Terms) {
    if version >= 3 {
        w.text(6).text(3).tags();
    }
}

pub(super) fn api_versions_answer(w: &mut Writer<'_>, version: i16, _: &Terms) {
    let (all, most) = (w.pick(&[70, 75]), w.pick(&[3, 12, 20]));
    let keys: Vec<i16> = match w.chance(0.3) {
        true => vec![3, 18],
        false => (0..all).collect(),
    };
    w.int16(0).array(Some(keys.len()));
    for key in keys {
        w.int16(key).int16(0).int16(most);
        if w.is_flexible() {
            w.raw(&[0]);
        }
    }
    if version >= 1 {
        w.int32(0);
    }
    w.tags();
}

pub(super) fn metadata(w: &mut Writer<'_>, version: i16, _: &Terms) {
    let many = if w.chance(0.1) { 300 } else { 3 };
    let topics = w.pick(&[0, 1, 2, 5, many]);
    w.array(Some(topics));
    for _ in 0..topics {
        if version >= 10 {
            w.uuid();
        }
        let letters = w.pick(&[3, 20, 200]);
        w.text(letters).tags();
    }
    if version >= 4 {
        w.int8(1);
    }
    if (8..=10).contains(&version) {
        w.int8(0);
    }
    if version >= 8 {
        w.int8(0);
    }
    w.tags();
}

pub(super) fn metadata_answer(w: &mut Writer<'_>, version: i16, terms: &Terms) {
    if version >= 3 {
        w.int32(0);
    }
    w.array(Some(1)).int32(1).string(Some(b"127.0.0.1"));
    w.int32(terms.port.into()).string(None).tags();
    if version >= 2 {
        w.text(10);
    }
    w.int32(1);
    let many = if w.chance(0.1) { 500 } else { 1 };
    let topics = w.pick(&[0, 1, 2, 4, many]);
    w.array(Some(topics));
    for _ in 0..topics {
        let (code, letters) = (code(w, 0.03), w.pick(&[4, 30]));
        w.int16(code).text(letters);
        if version >= 10 {
            w.uuid();
        }
        w.int8(0);
        let partitions = w.pick(&[1, 2, 3]);
        w.array(Some(partitions));
        for index in 0..partitions {
            w.int16(0).int32(index as i32).int32(1);
            if version >= 7 {
                w.int32(4);
            }
            w.array(Some(1)).int32(1).array(Some(1)).int32(1);
            if version >= 5 {
                w.array(Some(0));
            }
            w.tags();
        }
        if version >= 8 {
            w.int32(0);
        }
        w.tags();
    }
    if (8..=10).contains(&version) {
        w.int32(0);
    }
    w.tags();
}

pub(super) fn handshake(w: &mut Writer<'_>, _: i16, terms: &Terms) {
    w.string(Some(terms.mechanism.as_bytes()));
}

pub(super) fn handshake_answer(w: &mut Writer<'_>, _: i16, terms: &Terms) {
    w.int16(terms.handshake_error);
    w.array(Some(1)).string(Some(b"PLAIN"));
}

pub(super) fn authenticate(w: &mut Writer<'_>, _: i16, _: &Terms) {
    let size = w.size(0.01);
    let token = w.secret(size);
    w.secret_bytes(Some(token)).tags();
}

pub(super) fn authenticate_answer(w: &mut Writer<'_>, version: i16, _: &Terms) {
    let size = w.pick(&[0, 12, 40, 300]);
    let token = w.secret(size);
    w.int16(0).string(None).secret_bytes(Some(token));
    if version >= 1 {
        w.int64(0);
    }
    w.tags();
}
