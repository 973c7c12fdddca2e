//! The walker over tables made for the purpose.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod tables;
mod written;

use super::table::{Int, Length, Op, Table, Tag};
use super::{Event, Progress, Role, Root, Value, WalkError, Walker};
use std::num::NonZeroU16;

const ONE: NonZeroU16 = NonZeroU16::MIN;

/// A message that begins with the first of `ops`.
fn root(ops: &[Op], tags: &[Tag]) -> Root {
    let table = Box::leak(Box::new(Table {
        ops: ops.to_vec().leak(),
        tags: tags.to_vec().leak(),
        apis: &[],
        fields: None,
    }));
    Root { table, first: 0 }
}

/// All events of a message, which must be read to its end, whole and byte by byte.
fn events(root: Root, bytes: &[u8]) -> Vec<String> {
    let told = |step: usize| {
        let mut told = Vec::new();
        let mut on = |event: Event<'_>| {
            let Event {
                field: _,
                role,
                at,
                width,
                value,
            } = event;
            told.push(format!("{role:?} {at} {width} {value:?}"));
        };
        let mut walker = Walker::new(root, bytes.len() as u32);
        let mut end = walker.feed(&[], &mut on).unwrap();
        for piece in bytes.chunks(step) {
            end = walker.feed(piece, &mut on).unwrap();
        }
        assert_eq!(end.1, Progress::Done, "in steps of {step}");
        told
    };
    let whole = told(usize::MAX);
    // Only strings may be cut otherwise.
    if !whole.iter().any(|event| event.contains("Piece")) {
        assert_eq!(told(1), whole);
    }
    whole
}

fn fails(root: Root, bytes: &[u8], len: u32) -> WalkError {
    Walker::new(root, len).feed(bytes, &mut |_| {}).unwrap_err()
}

fn bytes(role: Option<Role>, length: Length, nullable: bool) -> Op {
    Op::Bytes {
        role,
        length,
        nullable,
    }
}

#[test]
fn integers_of_every_size_keep_their_sign() {
    let ints = [Int::Int8, Int::Int16, Int::Int32, Int::Int64];
    let mut ops = ints.map(|int| Op::Int(Role::Port, int)).to_vec();
    ops.push(Op::End);
    let mut body = vec![0xfe];
    body.extend((-3_i16).to_be_bytes());
    body.extend((-4_i32).to_be_bytes());
    body.extend(i64::MIN.to_be_bytes());
    assert_eq!(
        events(root(&ops, &[]), &body),
        [
            "Port 0 1 Int(-2)",
            "Port 1 2 Int(-3)",
            "Port 3 4 Int(-4)",
            "Port 7 8 Int(-9223372036854775808)",
        ]
    );
}

#[test]
fn a_uuid_is_one_piece_wherever_it_is_cut() {
    let root = root(&[Op::Uuid(Role::TopicId), Op::End], &[]);
    let body: Vec<u8> = (0..16).collect();
    for cut in 0..=16 {
        let mut told = Vec::new();
        let mut walker = Walker::new(root, 16);
        for part in [&body[..cut], &body[cut..]] {
            let on = &mut |event: Event<'_>| {
                let Value::Piece(piece, left) = event.value else {
                    panic!("{event:?}");
                };
                told.push((event.at, event.width, piece.to_vec(), left));
            };
            walker.feed(part, on).unwrap();
        }
        assert_eq!(told, [(0, 16, body.clone(), 0)], "cut at {cut}");
    }
}

#[test]
fn the_pieces_of_a_string_share_their_offset_and_count_down() {
    let ops = [bytes(Some(Role::Host), Length::Compact, false), Op::End];
    let mut walker = Walker::new(root(&ops, &[]), 6);
    let mut told = Vec::new();
    for part in [[6, b'h'].as_slice(), b"os", b"", b"ts"] {
        let on = &mut |event: Event<'_>| told.push(format!("{event:?}"));
        walker.feed(part, on).unwrap();
    }
    let expected = [(b"h".as_slice(), 4), (b"os", 2), (b"ts", 0)].map(|(piece, left)| {
        let value = Value::Piece(piece, left);
        format!("{:?}", Event::new(0, Role::Host, 1, 1, value))
    });
    assert_eq!(told, expected);
}

#[test]
fn null_and_empty_differ() {
    let host = |length, nullable| bytes(Some(Role::Host), length, nullable);
    let ops = [
        host(Length::Int16, true),
        host(Length::Int16, true),
        host(Length::Int32, true),
        host(Length::Compact, true),
        host(Length::Compact, true),
        Op::End,
    ];
    // Any negative length is null, as in Kafka's own reader.
    let body = [0, 0, 0x80, 0, 0xff, 0xff, 0xff, 0xfe, 0, 1];
    assert_eq!(
        events(root(&ops, &[]), &body),
        [
            "Host 2 2 Piece([], 0)",
            "Host 4 2 Null",
            "Host 8 4 Null",
            "Host 9 1 Null",
            "Host 10 1 Piece([], 0)",
        ]
    );
}

#[test]
fn an_array_with_a_role_tells_count_elements_and_end() {
    let array = |length| Op::Array {
        role: Some(Role::VersionRows),
        length,
        nullable: true,
        element: 5,
        min: ONE,
    };
    let ops = [
        array(Length::Int32),
        array(Length::Compact),
        array(Length::Compact),
        array(Length::Int32),
        Op::End,
        // An element.
        Op::Int(Role::RowKey, Int::Int8),
        Op::End,
    ];
    let body = [0, 0, 0, 2, 7, 8, 0, 1, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(
        events(root(&ops, &[]), &body),
        [
            "VersionRows 4 4 Count(2)",
            "VersionRows 4 0 Element",
            "RowKey 4 1 Int(7)",
            "VersionRows 5 0 Element",
            "RowKey 5 1 Int(8)",
            "VersionRows 6 0 End",
            "VersionRows 7 1 Null",
            "VersionRows 8 1 Count(0)",
            "VersionRows 8 0 End",
            "VersionRows 12 4 Null",
        ]
    );
}

#[test]
fn a_null_struct_is_one_negative_byte() {
    for told in [false, true] {
        let ops = [
            Op::NullableStruct { told, first: 3 },
            Op::NullableStruct { told, first: 3 },
            Op::End,
            // The struct.
            Op::Int(Role::NodeId, Int::Int16),
            Op::Tags { first: 0, count: 0 },
            Op::End,
        ];
        let events = events(root(&ops, &[]), &[0x80, 1, 0, 5, 0]);
        match told {
            false => assert_eq!(events, ["NodeId 2 2 Int(5)"]),
            true => assert_eq!(
                events,
                [
                    "Other 1 1 Null",
                    "Other 2 0 Struct",
                    "NodeId 2 2 Int(5)",
                    "Other 5 0 End"
                ]
            ),
        }
    }
}

#[test]
fn a_struct_tells_its_begin_and_its_end() {
    let ops = [
        Op::Struct { first: 3 },
        Op::Int(Role::Port, Int::Uint16),
        Op::End,
        // The struct.
        Op::Int(Role::NodeId, Int::Int16),
        Op::End,
    ];
    assert_eq!(
        events(root(&ops, &[]), &[0, 5, 0xff, 0xfe]),
        [
            "Other 0 0 Struct",
            "NodeId 0 2 Int(5)",
            "Other 2 0 End",
            "Port 2 2 Int(65534)"
        ]
    );
}

#[test]
fn known_tagged_fields_nest_and_each_ends_at_its_own_size() {
    let ops = [
        Op::Tags { first: 0, count: 1 },
        Op::End,
        // The content of tag 300: a struct of an integer and a tagged field of its own.
        Op::Struct { first: 4 },
        Op::End,
        Op::Int(Role::NodeId, Int::Int8),
        Op::Tags { first: 1, count: 1 },
        Op::End,
        // The content of tag 0 in there.
        bytes(Some(Role::Host), Length::Compact, false),
        Op::End,
    ];
    let tags = [
        Tag {
            number: 300,
            first: 2,
        },
        Tag {
            number: 0,
            first: 7,
        },
    ];
    let root = root(&ops, &tags);
    let body = [2, 0, 1, 9, 0xac, 2, 6, 5, 1, 0, 2, 2, b'h'];
    assert_eq!(
        events(root, &body),
        [
            "TagSize 7 1 TagSize(6)",
            "Other 7 0 Struct",
            "NodeId 7 1 Int(5)",
            "TagSize 11 1 TagSize(2)",
            "Host 12 1 Piece([104], 0)",
            "Other 13 0 End",
        ]
    );
    // The inner one goes beyond the outer one, though not beyond the message.
    let body = [1, 0xac, 2, 6, 5, 1, 0, 3, 2, b'h', 0];
    assert_eq!(fails(root, &body, 11), WalkError::Short { at: 8 });
}

#[test]
fn elements_without_bytes_cannot_make_it_spin() {
    let ops = [
        Op::FixedArray {
            length: Length::Int32,
            nullable: false,
            size: 0,
        },
        Op::End,
    ];
    assert_eq!(events(root(&ops, &[]), &[0x7f, 0xff, 0xff, 0xff]), [""; 0]);
}

#[test]
fn a_count_times_its_size_does_not_wrap() {
    let ops = [
        Op::FixedArray {
            length: Length::Int32,
            nullable: false,
            size: 0x8000,
        },
        Op::End,
    ];
    let root = root(&ops, &[]);
    // 0x20000 elements of 0x8000 bytes are 0 in 32 bits.
    let error = fails(root, &[0, 2, 0, 0], 4);
    assert_eq!(
        error,
        WalkError::Count {
            at: 0,
            count: 0x20000
        }
    );
}

#[test]
fn a_table_that_nests_too_deep_or_points_nowhere_is_an_error() {
    let endless = root(&[Op::Struct { first: 0 }, Op::End], &[]);
    assert_eq!(fails(endless, &[0; 64], 64), WalkError::Table);
    assert_eq!(fails(root(&[Op::Skip(1)], &[]), &[0], 1), WalkError::Table);
}

#[test]
fn a_walker_is_small_since_each_connection_may_have_two() {
    assert!(size_of::<Walker>() <= 256, "{}", size_of::<Walker>());
    assert_eq!(size_of::<Op>(), 8);
}
