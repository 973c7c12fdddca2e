//! What is rendered of a message, against what `kafka-protocol` says of it; and of what is not there
//! whole, against what is rendered of the whole.

use crate::json::{self, is_part};
use crate::samples::{Sample, one_of_each};
use crate::tree::{Node, Struct};
use crate::walk::{Fact, Told};
use fastrand::Rng;
use klamp_codec::Direction;
use klamp_codec::layout::Role;
use klamp_codec::render::{Broken, Cause, End, Form, Json, Line, Message, Render, Text};
use serde_json::Value;
use std::collections::BTreeSet;

impl Sample {
    fn message(&self) -> Message {
        match self.direction {
            Direction::Request => Message::Request,
            Direction::Response => Message::Response(self.api_key, self.api_version),
        }
    }

    /// The frame behind its length field.
    fn frame(&self) -> Vec<u8> {
        let mut frame = Vec::new();
        if self.direction == Direction::Request {
            frame.extend(self.api_key.0.to_be_bytes());
            frame.extend(self.api_version.to_be_bytes());
        }
        frame.extend(7_i32.to_be_bytes());
        if self.direction == Direction::Request {
            frame.extend(b"\0\x04test");
        }
        frame.extend(&self.bytes);
        frame
    }

    /// Bytes of the frame, its length field included, before those that are walked.
    fn start(&self) -> usize {
        4 + self.frame().len() - self.bytes.len()
    }
}

/// What happens to the bytes of a frame, one after the other.
enum Given<'a> {
    Bytes(&'a [u8]),
    Hole(usize),
}

/// Renders a frame that says it has `len` bytes.
fn render<F: Form + Default>(message: Message, len: usize, given: &[Given<'_>]) -> (End, String) {
    let mut render = Render::new(message, len as u32, F::default());
    for given in given {
        match given {
            Given::Bytes(bytes) => render.bytes(bytes),
            Given::Hole(n) => render.hole(*n as u32),
        }
    }
    let (end, mut form) = render.end();
    (end, std::mem::take(form.written()))
}

/// Renders the whole of a frame.
fn whole<F: Form + Default>(message: Message, frame: &[u8]) -> String {
    let (end, text) = render::<F>(message, frame.len(), &[Given::Bytes(frame)]);
    assert_eq!(end, End::Whole(0), "{text}");
    text
}

fn parsed(json: &str) -> Value {
    assert!(json.ends_with("}\n") && json.lines().count() == 1, "{json}");
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn json_and_text_say_of_every_field_what_kafka_protocol_says() {
    let mut rng = Rng::with_seed(21);
    let mut withheld = BTreeSet::new();
    let mut unknown = 0;
    for _ in 0..4 {
        for sample in one_of_each(&mut rng) {
            let frame = sample.frame();
            let text = whole::<Text>(sample.message(), &frame);
            let json = parsed(&whole::<Json>(sample.message(), &frame));
            let header = &json["requestHeader"];
            assert_eq!(header["requestApiKey"], sample.api_key.0, "{sample:?}");
            assert_eq!(header["requestApiVersion"], sample.api_version);
            assert_eq!(header["correlationId"], 7);
            let body = match sample.direction {
                Direction::Request => {
                    assert_eq!(header["clientId"], "test");
                    &json["request"]
                }
                Direction::Response => &json["response"],
            };
            let read = Struct::read(sample.full_root(), &sample.bytes).unwrap();
            let mut here = BTreeSet::new();
            let same = json::check(body, &read, &sample.said, &mut here);
            same.unwrap_or_else(|difference| panic!("{difference}: {sample:?}\n{body}"));
            let is_request = sample.direction == Direction::Request;
            withheld.extend(
                here.into_iter()
                    .map(|it| (sample.api_key.0, is_request, it)),
            );

            let tags = text.matches("unknown tagged field ").count();
            assert_eq!(tags, unknown_tags(&read), "{sample:?}\n{text}");
            unknown += tags;
            json::check_text(&text, body);
        }
    }
    assert!(unknown > 150, "{unknown}");
    let listed = |(key, is_request, name): &(i16, bool, String)| {
        json::WITHHELD.contains(&(*key, *is_request, name))
    };
    assert!(
        withheld.len() > 20 && withheld.iter().all(listed),
        "{withheld:?}"
    );
}

fn unknown_tags(read: &Struct) -> usize {
    let of_value = |value: &Node| match value {
        Node::Struct(inner) => unknown_tags(inner),
        _ => 0,
    };
    let of_fields = read.fields.iter().map(|field| match &field.value {
        Node::List(elements) => elements.iter().map(|it| of_value(&it.value)).sum(),
        value => of_value(value),
    });
    read.unknown.len() + of_fields.sum::<usize>()
}

#[test]
fn no_form_has_what_is_secret() {
    let mut rng = Rng::with_seed(22);
    let mut seen = 0;
    for _ in 0..4 {
        for sample in one_of_each(&mut rng) {
            let frame = sample.frame();
            let secrets = sample.walk_from(sample.full_root()).told;
            let secrets = secrets.into_iter().filter_map(|told| match told.fact {
                Fact::Text(role, text) if role.is_secret() && text.len() > 5 => Some(text),
                Fact::Skipped(Role::Records, len @ 6..) => {
                    let at = told.at as usize;
                    Some(sample.bytes[at..at + len].to_vec())
                }
                _ => None,
            });
            let text = whole::<Text>(sample.message(), &frame);
            let json = whole::<Json>(sample.message(), &frame);
            for secret in secrets {
                let secret = String::from_utf8(secret).unwrap();
                assert!(!text.contains(&secret[..6]), "{secret}: {text}");
                assert!(!json.contains(&secret[..6]), "{secret}: {json}");
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn a_frame_in_pieces_is_rendered_as_the_whole() {
    let mut rng = Rng::with_seed(23);
    for sample in one_of_each(&mut rng) {
        let frame = sample.frame();
        let largest = 1 << rng.u8(0..9);
        let mut rest = frame.as_slice();
        let mut given = Vec::new();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rng.usize(0..=largest).min(rest.len()));
            given.push(Given::Bytes(piece));
            rest = behind;
        }
        let message = sample.message();
        let (_, text) = render::<Text>(message, frame.len(), &given);
        assert_eq!(text, whole::<Text>(message, &frame), "{sample:?}");
        let (_, json) = render::<Json>(message, frame.len(), &given);
        assert_eq!(json, whole::<Json>(message, &frame), "{sample:?}");
    }
}

#[test]
fn of_a_frame_cut_at_any_byte_all_that_is_before_the_cut_is_told_and_then_where_it_broke() {
    let mut rng = Rng::with_seed(24);
    let small = |sample: &Sample| sample.bytes.len() < 150;
    for sample in one_of_each(&mut rng).into_iter().filter(small) {
        let (message, frame) = (sample.message(), sample.frame());
        let text = whole::<Text>(message, &frame);
        let json = parsed(&whole::<Json>(message, &frame));
        for cut in 0..frame.len() {
            // The rest is missing; and the frame itself is too short.
            for len in [frame.len(), cut] {
                let what = || format!("{cut} of {len} bytes of {sample:?}");
                let given = [Given::Bytes(&frame[..cut])];
                let (end, part) = render::<Text>(message, len, &given);
                let End::Broken(broken) = end else {
                    panic!("{end:?}: {}", what());
                };
                match len == cut {
                    true => assert!(broken.at <= 4 + cut as u64, "{}", what()),
                    false => {
                        assert_eq!(broken.at, 4 + cut as u64, "{}", what());
                        assert_eq!(broken.cause, Cause::Ends((len - cut) as u64));
                    }
                }
                let told = part.strip_suffix(&format!("  {broken}\n"));
                let told = told.unwrap_or_else(|| panic!("{part}: {}", what()));
                check_beginning(told, &text, &what);

                let (_, part) = render::<Json>(message, len, &given);
                let mut part = parsed(&part);
                assert_eq!(part["broken"]["at"], broken.at, "{}", what());
                assert_eq!(part["broken"]["field"], broken.path);
                part.as_object_mut().unwrap().remove("broken");
                assert!(is_part(&part, &json), "{part} of {json}: {}", what());

                let (_, line) = render::<Line>(message, len, &given);
                assert!(line.ends_with(&format!("{broken}\n")) && line.lines().count() == 1);
            }
        }
    }
}

/// Holds what is told of a broken frame against the text of the whole one, which says another size.
fn check_beginning(told: &str, text: &str, what: &dyn Fn() -> String) {
    let (head, told) = told.split_once('\n').unwrap_or_default();
    let (whole_head, text) = text.split_once('\n').unwrap();
    let before_size = |head: &str| head.rsplit_once(", ").map(|it| it.0.to_owned());
    let whole_head = before_size(whole_head).unwrap();
    // Where the client id is not there whole, it is not told.
    let is_its = head.is_empty() || whole_head.starts_with(&before_size(head).unwrap());
    assert!(is_its, "{head}: {}", what());
    // A list of values is left open.
    let told = told.strip_suffix('\n').unwrap_or(told);
    assert!(text.starts_with(told), "{told}\nof\n{text}: {}", what());
}

#[test]
fn of_what_was_not_kept_of_strings_bytes_and_records_only_the_content_is_missing() {
    let mut rng = Rng::with_seed(25);
    let mut holes = 0;
    for sample in one_of_each(&mut rng) {
        let (message, frame) = (sample.message(), sample.frame());
        let text = whole::<Text>(message, &frame);
        for told in sample.walk_from(sample.full_root()).told {
            let len = match &told.fact {
                Fact::Text(_, text) => text.len(),
                Fact::Skipped(_, len) => *len,
                _ => continue,
            };
            if len == 0 || holes > 3_000 && rng.u8(..) > 20 {
                continue;
            }
            // All of it, and some.
            let from = sample.start() - 4 + told.at as usize;
            let (skip, n) = match told.width == 16 || rng.bool() {
                true => (0, len),
                false => {
                    let skip = rng.usize(..len);
                    (skip, rng.usize(1..=len - skip))
                }
            };
            let (before, rest) = frame.split_at(from + skip);
            let given = [
                Given::Bytes(before),
                Given::Hole(n),
                Given::Bytes(&rest[n..]),
            ];
            let (end, part) = render::<Text>(message, frame.len(), &given);
            assert_eq!(
                end,
                End::Whole(0),
                "{n} bytes at {from}: {sample:?}\n{part}"
            );
            check_hole(&part, &text, &told, len);
            holes += 1;
        }
    }
    assert!(holes > 2_000, "{holes}");
}

fn check_hole(part: &str, text: &str, told: &Told, len: usize) {
    let is_batch = |line: &&str| line.trim_start().starts_with("batch: ");
    let whole = text.lines().filter(|line| !is_batch(line));
    let part = part.lines().filter(|line| !is_batch(line));
    let differing = whole.zip(part).filter(|(whole, part)| whole != part);
    let differing = differing.map(|it| it.1).collect::<Vec<_>>();
    match told.fact {
        Fact::Text(..) => assert!(
            differing
                .iter()
                .all(|it| it.contains(&format!("({len} bytes, not kept)"))),
            "{differing:?}"
        ),
        _ => assert!(differing.is_empty(), "{differing:?}"),
    }
    assert!(differing.len() <= 1, "{differing:?}");
}

#[test]
fn where_a_length_a_count_or_a_number_was_not_kept_it_breaks() {
    let mut rng = Rng::with_seed(26);
    let mut holes = 0;
    for sample in one_of_each(&mut rng) {
        let (message, frame) = (sample.message(), sample.frame());
        let text = whole::<Text>(message, &frame);
        for told in sample.walk_from(sample.full_root()).told {
            let (from, n) = match &told.fact {
                Fact::Int(..) => (told.at, told.width),
                Fact::Count(..) | Fact::Text(..) if told.width < 16 => {
                    (told.at - told.width, told.width)
                }
                _ => continue,
            };
            if rng.u8(..) > 30 {
                continue;
            }
            let from = sample.start() - 4 + from as usize;
            let (before, rest) = frame.split_at(from);
            let behind = &rest[n as usize..];
            let given = [
                Given::Bytes(before),
                Given::Hole(n as usize),
                Given::Bytes(behind),
            ];
            let (end, part) = render::<Text>(message, frame.len(), &given);
            let End::Broken(Broken { at, cause, .. }) = end else {
                panic!("{n} bytes at {from}: {sample:?}\n{part}");
            };
            assert_eq!(
                (at, cause),
                (4 + from as u64, Cause::NotKept(n)),
                "{sample:?}"
            );
            let last = part.trim_end().rfind('\n').unwrap();
            check_beginning(&part[..=last], &text, &|| format!("{sample:?}"));
            holes += 1;
        }
    }
    assert!(holes > 2_000, "{holes}");
}
