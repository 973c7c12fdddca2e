//! The walker over tables made for the purpose.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod rows;
mod straight;
mod tables;
pub(crate) mod written;

use super::table::{Length, Op, Table, Tag};
use super::{Event, Fault, FieldId, Progress, Role, Root, Value, WalkError, Walker};
use crate::generated::short::{
    END, after, array, bytes, fixed_array, int8, int16, int32, int64, last_tags, nullable_struct,
    tag, tags, told_array, told_nullable_struct, told_struct, uint16, unread, uuid,
};

/// A message that begins with the first of `ops`.
fn root(ops: &[Op], tags: &[Tag]) -> Root {
    let table = Box::leak(Box::new(Table {
        ops: ops.to_vec().leak(),
        rows: &[],
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

#[test]
fn integers_of_every_size_keep_their_sign() {
    let ops = [int8, int16, int32, int64, uint16].map(|int| int(Role::Port));
    let ops = [ops.as_slice(), &[END]].concat();
    let mut body = vec![0xfe];
    body.extend((-3_i16).to_be_bytes());
    body.extend((-4_i32).to_be_bytes());
    body.extend(i64::MIN.to_be_bytes());
    body.extend([0xff, 0xfe]);
    assert_eq!(
        events(root(&ops, &[]), &body),
        [
            "Port 0 1 Int(-2)",
            "Port 1 2 Int(-3)",
            "Port 3 4 Int(-4)",
            "Port 7 8 Int(-9223372036854775808)",
            "Port 15 2 Int(65534)",
        ]
    );
}

#[test]
fn a_uuid_is_one_piece_wherever_it_is_cut() {
    let root = root(&[uuid(Role::TopicId), END], &[]);
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
    let ops = [bytes(Role::Host, Length::Compact), END];
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
    let host = |length| bytes(Role::Host, length);
    let ops = [
        host(Length::NullableInt16),
        host(Length::NullableInt16),
        host(Length::NullableInt32),
        host(Length::NullableCompact),
        host(Length::NullableCompact),
        END,
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
    let array = |length| told_array(Role::VersionRows, length, 5, 1);
    let ops = [
        array(Length::NullableInt32),
        array(Length::NullableCompact),
        array(Length::NullableCompact),
        array(Length::NullableInt32),
        END,
        // An element.
        int8(Role::RowKey),
        END,
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
        let may_be_null = match told {
            false => nullable_struct(3),
            true => told_nullable_struct(3),
        };
        let ops = [
            may_be_null,
            may_be_null,
            END,
            // The struct.
            int16(Role::NodeId),
            last_tags(0, 0),
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
        told_struct(3),
        int16(Role::Port),
        END,
        // The struct.
        int16(Role::NodeId),
        END,
    ];
    assert_eq!(
        events(root(&ops, &[]), &[0, 5, 0, 6]),
        [
            "Other 0 0 Struct",
            "NodeId 0 2 Int(5)",
            "Other 2 0 End",
            "Port 2 2 Int(6)"
        ]
    );
}

#[test]
fn known_tagged_fields_nest_and_each_ends_at_its_own_size() {
    let ops = [
        tags(0, 1),
        END,
        // The content of tag 300: a struct of an integer and a tagged field of its own.
        told_struct(4),
        END,
        int8(Role::NodeId),
        last_tags(1, 1),
        // The content of tag 0 in there.
        bytes(Role::Host, Length::Compact),
        END,
    ];
    let root = root(&ops, &[tag(300, 2), tag(0, 6)]);
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
    let error = fails(root, &body, 11);
    assert_eq!((error.fault, error.at), (Fault::Short, 8));
}

#[test]
fn a_walker_that_begins_anew_remembers_nothing() {
    let ops = [
        tags(0, 1),
        array(Length::Compact, 3, 1),
        END,
        // An element.
        int16(Role::ErrorCode),
        END,
        // The content of tag 0.
        bytes(Role::Host, Length::Compact),
        END,
    ];
    let root = root(&ops, &[tag(0, 5)]);
    let body = [1, 0, 3, 3, b'h', b'i', 3, 0, 7, 0, 8];
    let walk = |walker: &mut Walker| {
        let mut told = Vec::new();
        let on = &mut |event: Event<'_>| told.push(format!("{event:?}"));
        let end = walker.feed(&body, on).unwrap();
        assert_eq!(end, (body.len(), Progress::Done));
        told
    };
    let len = body.len() as u32;
    let expected = walk(&mut Walker::new(root, len));
    assert_eq!(expected.len(), 4);
    for cut in 0..=body.len() {
        let mut walker = Walker::new(root, len);
        walker.feed(&body[..cut], &mut |_| {}).unwrap();
        walker.restart(root, len);
        assert_eq!(walk(&mut walker), expected, "after {cut} bytes");
    }
}

#[test]
fn elements_without_bytes_cannot_make_it_spin() {
    let ops = [fixed_array(Length::Int32, 0), END];
    assert_eq!(events(root(&ops, &[]), &[0x7f, 0xff, 0xff, 0xff]), [""; 0]);
}

#[test]
fn a_count_times_its_size_does_not_wrap() {
    // 0x20000 elements of 0x8000 bytes are 0 in 32 bits.
    let count = 0x20000;
    for array in [
        fixed_array(Length::Int32, 0x8000),
        array(Length::Int32, 0, 0x8000),
    ] {
        let error = fails(root(&[array, END], &[]), &[0, 2, 0, 0], 4);
        let (fault, at, field) = (Fault::Count(count), 0, FieldId(0));
        assert_eq!(error, WalkError { fault, at, field });
    }
}

#[test]
fn a_table_that_nests_too_deep_or_points_nowhere_is_an_error() {
    let endless = [
        told_struct(0),
        nullable_struct(0),
        array(Length::Compact, 0, 1),
        told_array(Role::VersionRows, Length::Compact, 0, 1),
    ];
    for op in endless {
        let error = fails(root(&[op, END], &[]), &[2; 64], 64);
        assert_eq!(error.fault, Fault::Table);
    }
    let nowhere = root(&[int8(Role::Port)], &[]);
    assert_eq!(fails(nowhere, &[0], 1).fault, Fault::Table);
}

/// Three elements with bytes of no interest before each op, and what is plain and what is not side by
/// side.
#[test]
fn bytes_before_an_op_are_skipped_wherever_they_are_cut() {
    let ops = [
        array(Length::Compact, 2, 20),
        after(2, END),
        // An element.
        after(3, int16(Role::ErrorCode)),
        after(2, int64(Role::NodeId)),
        after(1, bytes(Role::Host, Length::NullableCompact)),
        after(1, unread(Length::NullableInt16)),
        after(2, tags(0, 0)),
        after(1, last_tags(0, 0)),
    ];
    let root = root(&ops, &[]);
    let mut body = vec![4];
    let mut expected = Vec::new();
    for host in [b"h".as_slice(), b"", b"host"] {
        let start = body.len();
        expected.push(format!("ErrorCode {} 2 Int(1539)", start + 3));
        expected.push(format!("NodeId {} 8 Int(9)", start + 7));
        body.extend([9, 9, 9, 6, 3, 9, 9, 0, 0, 0, 0, 0, 0, 0, 9, 9]);
        body.push(host.len() as u8 + 1);
        let value = Value::Piece(host, 0);
        expected.push(format!("Host {} 1 {value:?}", body.len()));
        body.extend(host);
        body.extend([9, 0xff, 0xff, 9, 9, 0, 9, 1, 5, 2, 8, 8]);
    }
    body.extend([9, 9]);
    assert_eq!(events(root, &body), expected);
    for cut in 0..body.len() {
        let walker = &mut Walker::new(root, body.len() as u32);
        let (used, progress) = walker.feed(&body[..cut], &mut |_| {}).unwrap();
        assert_eq!(used, cut);
        assert_ne!(progress, Progress::Done);
        let (used, progress) = walker.feed(&body[cut..], &mut |_| {}).unwrap();
        assert_eq!((cut + used, progress), (body.len(), Progress::Done));
        // A message that ends there is too short.
        let error = Walker::new(root, cut as u32).feed(&body[..cut], &mut |_| {});
        assert!(error.is_err(), "{cut}");
    }
}

#[test]
fn bytes_before_an_op_need_not_be_shown() {
    let ops = [after(9, int8(Role::Port)), after(7, last_tags(0, 0))];
    let mut walker = Walker::new(root(&ops, &[]), 18);
    let mut on = |_: Event<'_>| {};
    assert_eq!(
        walker.feed(&[0; 2], &mut on),
        Ok((2, Progress::Skippable(7)))
    );
    assert_eq!(walker.skip(7), Ok(()));
    assert_eq!(
        walker.feed(&[0; 3], &mut on),
        Ok((3, Progress::Skippable(5)))
    );
    assert_eq!(walker.skip(5), Ok(()));
    assert_eq!(walker.feed(&[], &mut on), Ok((0, Progress::NeedBytes)));
    assert_eq!(walker.feed(&[0; 3], &mut on), Ok((1, Progress::Done)));
}

#[test]
fn a_walker_is_small_since_each_connection_may_have_two() {
    assert!(size_of::<Walker>() <= 256, "{}", size_of::<Walker>());
    assert_eq!(size_of::<Op>(), 8);
}
