//! Configs: their values, which may be secrets, and messages that may quote them.

use super::Terms;
use crate::writer::Writer;

pub(super) fn alter(w: &mut Writer<'_>, _: i16, _: &Terms) {
    let resources = w.pick(&[1, 2]);
    w.array(Some(resources));
    for _ in 0..resources {
        let many = if w.chance(0.2) { 45 } else { 1 };
        let configs = w.pick(&[0, 1, 3, many]);
        w.int8(2).text(6).array(Some(configs));
        for _ in 0..configs {
            let value = w.value();
            w.text(12).int8(0).secret_string(value).tags();
        }
        w.tags();
    }
    w.int8(0).tags();
}

pub(super) fn alter_answer(w: &mut Writer<'_>, _: i16, _: &Terms) {
    let (code, message) = (w.pick(&[0, 40]), w.value());
    w.int32(0).array(Some(1)).int16(code).secret_string(message);
    w.int8(2).text(6).tags().tags();
}

pub(super) fn describe(w: &mut Writer<'_>, version: i16, _: &Terms) {
    let keys = w.pick(&[None, Some(0)]);
    w.array(Some(1)).int8(2).text(6).array(keys).tags().int8(1);
    if version >= 3 {
        w.int8(0);
    }
    w.tags();
}

pub(super) fn describe_answer(w: &mut Writer<'_>, version: i16, _: &Terms) {
    w.int32(0).array(Some(1)).int16(0).string(None);
    let many = if w.chance(0.3) { 80 } else { 2 };
    let configs = w.pick(&[0, 1, 3, many]);
    w.int8(2).text(6).array(Some(configs));
    for _ in 0..configs {
        let (value, synonyms) = (w.value(), w.pick(&[0, 1]));
        w.text(9).secret_string(value).int8(0).int8(1).int8(0);
        w.array(Some(synonyms));
        for _ in 0..synonyms {
            let value = w.value();
            w.text(9).secret_string(value).int8(1).tags();
        }
        if version >= 3 {
            w.int8(1).text(12);
        }
        w.tags();
    }
    w.tags().tags();
}

pub(super) fn create(w: &mut Writer<'_>, _: i16, _: &Terms) {
    let topics = w.pick(&[1, 2]);
    w.array(Some(topics));
    for _ in 0..topics {
        w.text(6).int32(3).int16(1).array(Some(1));
        w.int32(0).array(Some(1)).int32(1).tags();
        let configs = w.pick(&[0, 1, 3]);
        w.array(Some(configs));
        for _ in 0..configs {
            let value = w.value();
            w.text(12).secret_string(value).tags();
        }
        w.tags();
    }
    w.int32(1000).int8(0).tags();
}

pub(super) fn create_answer(w: &mut Writer<'_>, version: i16, _: &Terms) {
    let topics = w.pick(&[1, 2]);
    w.int32(0).array(Some(topics));
    for _ in 0..topics {
        w.text(6);
        if version >= 7 {
            w.uuid();
        }
        let (code, message) = (w.pick(&[0, 36, 40]), w.value());
        w.int16(code).secret_string(message);
        if version >= 5 {
            let configs = w.pick(&[None, Some(0), Some(2)]);
            w.int32(3).int16(1).array(configs);
            for _ in 0..configs.unwrap_or(0) {
                let value = w.value();
                w.text(9).secret_string(value);
                w.int8(0).int8(1).int8(0).tags();
            }
        }
        w.tags();
    }
    w.tags();
}
