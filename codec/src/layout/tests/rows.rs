//! Rows against the ops behind them: a table without rows reads by those alone, and must tell the same
//! of whatever bytes, however they are cut.

use super::super::table::{Length, Op, Table};
use super::super::{
    Event, Fault, Of, Part, Progress, Root, Row, Value, Walker, full, hot, versions,
};
use super::written::{Planted, message};
use crate::generated::short::{END, after, array, fixed_array, int16, last_tags, line, part, row};
use crate::generated::short::{rows, unread};
use crate::layout::Role;
use crate::types::{ApiKey, Direction};
use fastrand::Rng;

/// The message of `root` by a table without rows.
fn without_rows(root: Root) -> Root {
    Root {
        table: Box::leak(Box::new(Table {
            rows: &[],
            ..*root.table
        })),
        first: root.first,
    }
}

/// All that a walk tells, and how it ends, where `bytes` of `len` come in pieces up to these ends.
fn told(root: Root, bytes: &[u8], len: usize, ends: &[usize]) -> String {
    let mut told = Vec::new();
    let mut walker = Walker::new(root, len as u32);
    let mut from = 0;
    for to in ends.iter().copied().chain([bytes.len()]) {
        // What strings are cut into is no matter.
        let mut on = |event: Event<'_>| match event.value {
            Value::Piece(piece, _) => told.extend(piece.iter().map(|it| format!("{it:02x}"))),
            _ => told.push(format!("{event:?}")),
        };
        let end = walker.feed(&bytes[from..to], &mut on);
        from = to;
        match end {
            Ok((_, Progress::Done)) | Err(_) => {
                told.push(format!("{end:?}"));
                break;
            }
            Ok(_) => {}
        }
    }
    told.join("\n")
}

/// Holds a walk by rows against one without, whole and in pieces.
fn compare(root: Root, bytes: &[u8], len: usize, rng: &mut Rng) {
    let plain = without_rows(root);
    assert_eq!(told(root, bytes, len, &[]), told(plain, bytes, len, &[]));
    for _ in 0..2 {
        let mut ends = [0; 3].map(|_| rng.usize(..=bytes.len()));
        ends.sort_unstable();
        let what = format!("{bytes:02x?} of {len} bytes in pieces up to {ends:?}");
        let by_rows = told(root, bytes, len, &ends);
        assert_eq!(by_rows, told(plain, bytes, len, &ends), "{what}");
    }
}

#[test]
fn a_row_tells_what_its_ops_tell_whatever_comes_and_however_it_is_cut() {
    let mut rng = Rng::with_seed(21);
    for key in (0..95).map(ApiKey) {
        let range = versions(key).unwrap();
        for version in range.min()..=range.max() {
            for direction in [Direction::Request, Direction::Response] {
                let by_full = full().root(direction, key, version).unwrap();
                let root = Root::find(direction, key, version).unwrap();
                for _ in 0..4 {
                    let mut bytes = message(by_full, Planted::default(), &mut rng);
                    compare(root, &bytes, bytes.len(), &mut rng);
                    // Ends early, goes on too long, or is damaged.
                    let len = rng.usize(..=bytes.len());
                    compare(root, &bytes[..len], len, &mut rng);
                    compare(root, &bytes, bytes.len() + 1, &mut rng);
                    if !bytes.is_empty() {
                        let at = rng.usize(..bytes.len());
                        bytes[at] = rng.u8(..);
                        compare(root, &bytes, bytes.len(), &mut rng);
                    }
                }
            }
        }
    }
}

/// What no row reads would slow the walk down.
#[test]
fn every_row_reads_the_plainest_of_its_elements_at_once() {
    let mut read = 0;
    for op in hot().ops {
        let Op::Row { row } = *op else { continue };
        let row = &hot().rows[usize::from(row)];
        let bytes = plainest(row);
        let (mut count, mut told) = (3, 0);
        let all = bytes.repeat(3);
        let on = &mut |_: Event<'_>| told += 1;
        let rest = row.read_all(&all, all.len() as u32, &mut count, 0, on);
        assert_eq!((count, rest.len()), (0, 0), "{row:?}");
        let skipped = row
            .parts
            .iter()
            .filter(|it| matches!(it.of, Of::Skipped(_)));
        let each = usize::from(row.code.is_some()) + skipped.count();
        assert_eq!(told, 3 * each, "{row:?}");
        read += 1;
    }
    assert!(read > 200, "{read}");
}

/// An element with one byte, element or row in each part.
fn plainest(row: &Row) -> Vec<u8> {
    let mut bytes = vec![0; row.code.map_or(0, |before| usize::from(before) + 2)];
    for Part { before, length, of } in row.parts {
        bytes.extend(vec![0; usize::from(*before)]);
        match length {
            Length::Compact | Length::NullableCompact => bytes.push(2),
            Length::Int16 | Length::NullableInt16 => bytes.extend([0, 1]),
            Length::Int32 | Length::NullableInt32 => bytes.extend([0, 0, 0, 1]),
        }
        match of {
            Of::Size(size) => bytes.extend(vec![7; usize::from(*size)]),
            Of::Skipped(_) => bytes.push(7),
            Of::Rows(row) => bytes.extend(plainest(row)),
        }
    }
    bytes.extend(vec![0; usize::from(row.behind) + usize::from(row.tags)]);
    bytes
}

static INNER: Row = line(None, &[part(1, Length::Compact, 1)], 0, true);
static ROWS: [Row; 2] = [
    line(
        Some(1),
        &[
            part(0, Length::NullableCompact, 2),
            rows(1, Length::Int32, &INNER),
        ],
        1,
        true,
    ),
    INNER,
];

/// An array of elements that hold a byte, a code, numbers of two bytes, and structs of a byte and a
/// string.
fn made() -> Root {
    let ops = [
        array(Length::Compact, 2, 10),
        END,
        row(0),
        after(1, int16(Role::ErrorCode)),
        fixed_array(Length::NullableCompact, 2),
        after(1, array(Length::Int32, 8, 3)),
        after(1, last_tags(0, 0)),
        END,
        row(1),
        after(1, unread(Length::Compact)),
        last_tags(0, 0),
    ];
    Root {
        table: Box::leak(Box::new(Table {
            ops: ops.to_vec().leak(),
            rows: &ROWS,
            tags: &[],
            apis: &[],
            fields: None,
        })),
        first: 0,
    }
}

#[rustfmt::skip]
const MADE: &[u8] = &[
    4,
    9, 0, 5,  3, 1, 2, 3, 4,  9, 0, 0, 0, 2,  9, 3, b'a', b'b', 0,  9, 1, 0,  9, 0,
    9, 0, 6,  0,  9, 0, 0, 0, 1,  9, 1, 1, 7, 2, 8, 8,  9, 1, 7, 1, 8, // tags in both
    9, 0, 7,  1,  9, 0, 0, 0, 0,  9, 0,
];

#[test]
fn an_element_is_told_of_once_wherever_it_is_cut_and_whatever_tags_it_has() {
    let whole = told(made(), MADE, MADE.len(), &[]);
    for (at, code) in [(2, 5), (25, 6), (46, 7)] {
        let event = Event::new(3, Role::ErrorCode, at, 2, Value::Int(code));
        assert!(whole.contains(&format!("{event:?}")), "{whole}");
    }
    assert_eq!(whole.lines().count(), 4, "{whole}");
    let every: Vec<_> = (1..MADE.len()).collect();
    for ends in every.chunks(1).chain([every.as_slice()]) {
        let cut = told(made(), MADE, MADE.len(), ends);
        let codes = |told: &str| told.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(codes(&cut), codes(&whole), "up to {ends:?}");
        assert!(cut.contains("Done"), "{cut}");
    }
}

#[test]
fn a_count_that_cannot_fit_is_an_error_at_once_though_no_element_is_there() {
    // The inner array's, in the first element; and the outer one's.
    for (at, count) in [(13, 200), (0, 100)] {
        let mut bytes = MADE.to_vec();
        bytes[at] = count;
        let seen = &bytes[..=at];
        let mut walker = Walker::new(made(), MADE.len() as u32);
        let error = walker.feed(seen, &mut |_| {}).unwrap_err();
        assert!(matches!(error.fault, Fault::Count(_)), "{error:?}");
        let mut told = 0;
        let mut walker = Walker::new(made(), MADE.len() as u32);
        let error = walker.feed(&bytes, &mut |_| told += 1).unwrap_err();
        assert!(matches!(error.fault, Fault::Count(_)), "{error:?}");
        assert_eq!(told, usize::from(at > 0), "the code before it");
    }
}

#[test]
fn bytes_that_end_amid_an_element_are_too_short_for_it() {
    for len in 0..MADE.len() {
        let by_rows = told(made(), &MADE[..len], len, &[]);
        assert!(by_rows.contains("Err"), "{by_rows}");
        let by_ops = told(without_rows(made()), &MADE[..len], len, &[]);
        assert_eq!(by_rows, by_ops, "of {len} bytes");
    }
}
