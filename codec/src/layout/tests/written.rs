//! Both tables over the same messages: of every API and version one is written at random by the full
//! table, and the hot one must read it alike.

use super::super::table::{Length, Op, Table};
use super::super::{Event, Progress, Role, Root, Value, Walker, full, versions};
use super::tables::ops;
use crate::types::{ApiKey, Direction};
use fastrand::Rng;

/// What stands in fields that must not be told; `None`: whatever chance has it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planted<'a> {
    /// In strings, bytes and records that are withheld.
    pub(crate) withheld: Option<&'a [u8]>,
    /// In tagged fields that nobody knows.
    pub(crate) unknown: Option<&'a [u8]>,
}

/// Writes a message without its header's fixed part, in which something is planted.
pub(crate) fn message(root: Root, planted: Planted<'_>, rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    write(root.table, root.first, planted, rng, &mut out);
    out
}

/// Writes a struct, or what a tagged field contains.
fn write(table: &Table, first: u16, planted: Planted<'_>, rng: &mut Rng, out: &mut Vec<u8>) {
    for op in ops(table, first) {
        match *op {
            Op::Bytes { role, length, .. } | Op::Skipped { role, length, .. }
                if let Some(secret) = planted.withheld
                    && role.is_withheld() =>
            {
                let is_null = length.is_nullable() && rng.bool();
                prefix(length, (!is_null).then_some(secret.len()), out);
                if !is_null {
                    out.extend(secret);
                }
            }
            Op::Int8 { .. } => some(1, rng, out),
            Op::Int16 { .. } | Op::Uint16 { .. } => some(2, rng, out),
            Op::Int32 { .. } => some(4, rng, out),
            Op::Int64 { .. } => some(8, rng, out),
            Op::Uuid { .. } => some(16, rng, out),
            Op::Bytes { length, .. } | Op::Skipped { length, .. } => {
                if let Some(len) = count(length, rng, out) {
                    some(len, rng, out);
                }
            }
            Op::Array {
                length, element, ..
            } => {
                for _ in 0..count(length, rng, out).unwrap_or(0) {
                    write(table, element, planted, rng, out);
                }
            }
            Op::Struct { first } => write(table, first, planted, rng, out),
            Op::NullableStruct { .. } if rng.bool() => out.push(rng.u8(0x80..)),
            Op::NullableStruct { first, .. } => {
                out.push(1);
                write(table, first, planted, rng, out);
            }
            Op::Tags { first, count, .. } => {
                let known = &table.tags[usize::from(first)..][..usize::from(count)];
                let known: Vec<_> = known.iter().filter(|_| rng.bool()).collect();
                let unknown = rng.u8(0..2);
                out.push(known.len() as u8 + unknown);
                for tag in known {
                    let mut content = Vec::new();
                    write(table, tag.first, planted, rng, &mut content);
                    uvarint(tag.number, out);
                    uvarint(content.len() as u32, out);
                    out.extend(content);
                }
                for number in 0..unknown {
                    uvarint(500 + u32::from(number), out);
                    let content = match planted.unknown {
                        Some(content) => content.to_vec(),
                        None => rng.u32(..).to_be_bytes()[..3].to_vec(),
                    };
                    uvarint(content.len() as u32, out);
                    out.extend(content);
                }
            }
            Op::End { .. } => {}
            Op::Unread { .. } | Op::Row { .. } => panic!("{op:?} in the full table"),
        }
    }
}

fn some(len: usize, rng: &mut Rng, out: &mut Vec<u8>) {
    out.extend(std::iter::repeat_with(|| rng.u8(..)).take(len));
}

fn count(length: Length, rng: &mut Rng, out: &mut Vec<u8>) -> Option<usize> {
    let count = match length.is_nullable() && rng.bool() {
        true => None,
        false => Some(rng.u8(0..3)),
    };
    let count = count.map(usize::from);
    prefix(length, count, out);
    count
}

fn prefix(length: Length, count: Option<usize>, out: &mut Vec<u8>) {
    let classic = count.map_or(-1, |count| count as i32);
    match length {
        Length::Int16 | Length::NullableInt16 => out.extend((classic as i16).to_be_bytes()),
        Length::Int32 | Length::NullableInt32 => out.extend(classic.to_be_bytes()),
        Length::Compact | Length::NullableCompact => uvarint((classic + 1) as u32, out),
    }
}

fn uvarint(mut value: u32, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

type Told = (Role, u32, u32, String);

/// All that a walk over a whole message tells; of what is withheld only where it is.
fn told(root: Root, bytes: &[u8]) -> Vec<Told> {
    let mut told = Vec::new();
    let mut on = |event: Event<'_>| {
        // What is skipped by one may be read by the other.
        assert!(!matches!(event.value, Value::Piece(_, 1..)), "all is there");
        let value = match event.value {
            Value::Piece(piece, 0) if event.role.is_withheld() => {
                Value::Skipped(piece.len() as u32)
            }
            value => value,
        };
        let Event {
            role, at, width, ..
        } = event;
        told.push((role, at, width, format!("{value:?}")));
    };
    let end = Walker::new(root, bytes.len() as u32).feed(bytes, &mut on);
    assert_eq!(end, Ok((bytes.len(), Progress::Done)), "{bytes:02x?}");
    told
}

#[test]
fn the_hot_table_reads_every_message_as_the_full_one_does_and_tells_less() {
    let mut rng = Rng::with_seed(20);
    let (mut hot_events, mut full_events) = (0, 0);
    for key in (0..95).map(ApiKey) {
        let range = versions(key).unwrap();
        for version in range.min()..=range.max() {
            for direction in [Direction::Request, Direction::Response] {
                let root = full().root(direction, key, version).unwrap();
                for _ in 0..20 {
                    let bytes = message(root, Planted::default(), &mut rng);
                    let by_full = told(root, &bytes);
                    let by_hot = told(Root::find(direction, key, version).unwrap(), &bytes);
                    let mut rest = by_full.iter();
                    for event in &by_hot {
                        let what = format!("{event:?} of {key} {version} {direction:?}");
                        assert!(rest.any(|other| other == event), "{what}");
                    }
                    let roles = [Role::ErrorCode, Role::ThrottleTime, Role::Host, Role::Wait];
                    let secrets = [Role::ConfigValue, Role::GroupData, Role::Records];
                    for role in roles.into_iter().chain(secrets) {
                        // Of what is withheld nothing is told where there is nothing.
                        let is_told = |it: &&Told| {
                            it.0 == role
                                && !(role.is_withheld()
                                    && matches!(it.3.as_str(), "Null" | "Skipped(0)"))
                        };
                        let count = |told: &[Told]| told.iter().filter(is_told).count();
                        assert_eq!(
                            count(&by_hot),
                            count(&by_full),
                            "{role:?} of {key} {version}"
                        );
                    }
                    hot_events += by_hot.len();
                    full_events += by_full.len();
                }
            }
        }
    }
    assert!(hot_events > 10_000 && full_events > 5 * hot_events);
}
