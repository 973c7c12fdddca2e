//! Groups: what members tell each other, and the metadata of offsets.

use super::Terms;
use crate::writer::Writer;

pub(super) fn join(w: &mut Writer<'_>, version: i16, _: &Terms) {
    w.text(6).int32(10_000).int32(100).text(3).string(None);
    let protocols = w.pick(&[1, 2, 3]);
    w.string(Some(b"consumer")).array(Some(protocols));
    for _ in 0..protocols {
        let metadata = metadata(w);
        w.text(5).secret_bytes(Some(metadata)).tags();
    }
    if version >= 8 {
        w.text(5);
    }
    w.tags();
}

pub(super) fn join_answer(w: &mut Writer<'_>, version: i16, _: &Terms) {
    w.int32(0).int16(0).int32(3);
    if version >= 7 {
        w.string(Some(b"consumer"));
    }
    w.text(5).text(3);
    if version >= 9 {
        w.int8(0);
    }
    let many = if w.chance(0.2) { 50 } else { 2 };
    let members = w.pick(&[0, 1, 3, many]);
    w.text(4).array(Some(members));
    for _ in 0..members {
        let metadata = metadata(w);
        w.text(4).string(None).secret_bytes(Some(metadata)).tags();
    }
    w.tags();
}

pub(super) fn sync(w: &mut Writer<'_>, version: i16, _: &Terms) {
    w.text(6).int32(3).text(3).string(None);
    if version >= 5 {
        w.string(Some(b"consumer")).text(4);
    }
    let members = w.pick(&[0, 1, 3]);
    w.array(Some(members));
    for _ in 0..members {
        let assignment = metadata(w);
        w.text(4).secret_bytes(Some(assignment)).tags();
    }
    w.tags();
}

pub(super) fn sync_answer(w: &mut Writer<'_>, version: i16, _: &Terms) {
    w.int32(0).int16(0);
    if version >= 5 {
        w.string(Some(b"consumer")).text(4);
    }
    let assignment = metadata(w);
    w.secret_bytes(Some(assignment)).tags();
}

pub(super) fn commit(w: &mut Writer<'_>, _: i16, _: &Terms) {
    w.text(6).int32(3).text(3).string(None).array(Some(1));
    let many = if w.chance(0.2) { 40 } else { 2 };
    let partitions = w.pick(&[0, 1, 3, many]);
    w.text(5).array(Some(partitions));
    for index in 0..partitions {
        let metadata = w.value();
        w.int32(index as i32).int64(9).int32(-1);
        w.secret_string(metadata).tags();
    }
    w.tags().tags();
}

pub(super) fn commit_answer(w: &mut Writer<'_>, _: i16, _: &Terms) {
    w.int32(0).array(Some(1)).text(5).array(Some(2));
    for index in 0..2 {
        w.int32(index).int16(0).tags();
    }
    w.tags().tags();
}

fn metadata(w: &mut Writer<'_>) -> Vec<u8> {
    let size = w.size(0.02);
    w.secret(size)
}
