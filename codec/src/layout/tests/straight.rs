//! The readers in a straight line, and the loop that enters them, against what reads op by op by the
//! table: of whatever bytes, however they are cut, all must tell the same, consume the same, fail alike
//! and go on alike.

use super::super::table::{Length, Op, Table};
use super::super::{Event, Level, MAX_DEPTH, Plain, Progress, Root, WalkError, Walker, full, hot};
use super::super::{cursor::Cursor, versions};
use super::tables::ops;
use super::written::{Planted, message};
use crate::generated::straight;
use crate::types::{ApiKey, Direction};
use fastrand::Rng;

const DIRECTIONS: [Direction; 2] = [Direction::Request, Direction::Response];

/// Every layout that may have a reader.
fn kinds() -> Vec<(Direction, ApiKey, i16)> {
    let mut kinds = Vec::new();
    for key in [ApiKey::PRODUCE, ApiKey::FETCH] {
        let range = versions(key).unwrap();
        for version in range.min()..=range.max() {
            kinds.extend(DIRECTIONS.map(|direction| (direction, key, version)));
        }
    }
    kinds
}

/// What each input came to, and what it told.
type Walked = Vec<(Result<(usize, Progress), WalkError>, Vec<String>)>;

/// How a message is walked through.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Op by op.
    Slow,
    /// By the loop.
    Loop,
    /// In a straight line from its start.
    Straight(Direction),
}

/// A walk of a message of `len` bytes that come in pieces up to these ends, by a walker that has read
/// something `before`; what may be skipped is, or is not.
fn walk(
    before: &Walker,
    root: Root,
    way: Way,
    bytes: &[u8],
    len: usize,
    ends: &[usize],
    skips: bool,
) -> Walked {
    let mut walker = before.clone();
    let len = len as u32;
    let mut walked = Vec::new();
    let mut from = 0;
    for to in ends.iter().copied().chain([bytes.len()]) {
        let mut told = Vec::new();
        let mut on = |event: Event<'_>| told.push(format!("{event:?}"));
        let piece = bytes.get(from..to).unwrap_or_default();
        if walked.is_empty() && !matches!(way, Way::Straight(_)) {
            walker.restart(root, len);
        }
        let end = match way {
            Way::Straight(Direction::Request) if walked.is_empty() => {
                walker.begin_request(root, len, piece, &mut on)
            }
            Way::Straight(Direction::Response) if walked.is_empty() => {
                walker.begin_response(root, len, piece, &mut on)
            }
            Way::Slow => walker.feed_slowly(piece, &mut on),
            Way::Loop | Way::Straight(_) => walker.feed(piece, &mut on),
        };
        from = from.max(to);
        let is_over = matches!(end, Ok((_, Progress::Done)) | Err(_));
        if let Ok((_, Progress::Skippable(n))) = end
            && skips
        {
            walker.skip(n).unwrap();
            from += n as usize;
        }
        let is_done = matches!(end, Ok((_, Progress::Done)));
        walked.push((end, told));
        if is_done {
            assert_eq!(walker.feed(&[], &mut |_| {}), Ok((0, Progress::Done)));
        }
        if is_over {
            break;
        }
    }
    walked
}

/// Holds the walks in a straight line against the others, whole and in pieces.
fn compare(
    (direction, key, version): (Direction, ApiKey, i16),
    bytes: &[u8],
    len: usize,
    rng: &mut Rng,
) {
    let root = Root::find(direction, key, version).unwrap();
    // As the walk before may have left it.
    let mut before = Walker::new(root, len as u32);
    let _ = before.feed(&bytes[..rng.usize(..=bytes.len())], &mut |_| {});
    let before = &before;
    let mut cuts = vec![vec![]];
    if bytes.len() < 60 {
        cuts.extend((0..=bytes.len()).map(|cut| vec![cut]));
    }
    for _ in 0..2 {
        let mut ends = vec![0; 3];
        ends.fill_with(|| rng.usize(..=bytes.len()));
        ends.sort_unstable();
        cuts.push(ends);
    }
    for ends in cuts {
        for skips in [false, true] {
            let by_table = walk(before, root, Way::Slow, bytes, len, &ends, skips);
            for way in [Way::Loop, Way::Straight(direction)] {
                let walked = walk(before, root, way, bytes, len, &ends, skips);
                assert_eq!(
                    walked, by_table,
                    "{way:?}, {key} {version}: {bytes:02x?} of {len} bytes up to {ends:?}"
                );
            }
        }
    }
}

#[test]
fn a_straight_line_tells_what_the_table_tells_whatever_comes_and_however_it_is_cut() {
    let mut rng = Rng::with_seed(23);
    for kind @ (direction, key, version) in kinds() {
        let by_full = full().root(direction, key, version).unwrap();
        let by_hot = hot().root(direction, key, version).unwrap();
        for round in 0..8 {
            let bytes = match round % 2 {
                0 => message(by_full, Planted::default(), &mut rng),
                _ => plainest(hot(), by_hot.first, rng.usize(0..4)),
            };
            compare(kind, &bytes, bytes.len(), &mut rng);
            // Ends early, goes on too long, is damaged, or no message at all.
            let len = rng.usize(..=bytes.len());
            compare(kind, &bytes[..len], len, &mut rng);
            compare(kind, &bytes, bytes.len() + 1, &mut rng);
            for _ in 0..4 {
                let mut damaged = bytes.clone();
                let at = rng.usize(..damaged.len());
                let any = rng.u8(..);
                damaged[at] = rng.choice([0, 1, 2, 0x7f, 0x80, 0xff, any]).unwrap();
                compare(kind, &damaged, damaged.len(), &mut rng);
            }
            let noise: Vec<_> = (0..60).map(|_| rng.u8(0..4)).collect();
            compare(kind, &noise, noise.len(), &mut rng);
        }
    }
}

/// What no straight line reads to its end would slow the walk down.
#[test]
fn every_produce_and_fetch_has_a_reader_that_reads_the_plainest_of_them_to_its_end() {
    for (direction, key, version) in kinds() {
        let first = hot().root(direction, key, version).unwrap().first;
        let bytes = plainest(hot(), first, 2);
        let mut at = Plain {
            cursor: Cursor::new(&bytes, 0, bytes.len() as u32),
            op: first.into(),
            depth: 0,
        };
        let mut levels = [Level::UNUSED; MAX_DEPTH];
        let on = &mut |_: Event<'_>| {};
        let read = match direction {
            Direction::Request => straight::request(first, &mut at, &mut levels, on),
            Direction::Response => straight::response(first, &mut at, &mut levels, on),
        };
        assert_eq!(read, Some(true), "{direction:?} {key} {version}");
        assert_eq!(at.cursor.len(), 0, "{direction:?} {key} {version}");
    }
}

#[test]
fn a_message_of_the_full_table_has_no_straight_line() {
    for (direction, key, version) in kinds() {
        let root = full().root(direction, key, version).unwrap();
        let bytes = message(root, Planted::default(), &mut Rng::with_seed(1));
        let before = &Walker::new(root, 0);
        let by_table = walk(before, root, Way::Loop, &bytes, bytes.len(), &[], false);
        let way = Way::Straight(direction);
        let straight = walk(before, root, way, &bytes, bytes.len(), &[], false);
        assert_eq!(straight, by_table);
    }
}

/// A struct whose arrays have so many elements, without tagged fields, with strings of a byte.
fn plainest(table: &Table, first: u16, elements: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for op in ops(table, first) {
        // Bytes of no interest before it, a count of what follows, and that.
        let (before, count, content) = match *op {
            Op::Int8 { before, .. } | Op::Tags { before, .. } => (before, None, vec![0]),
            Op::Int16 { before, .. } | Op::Uint16 { before, .. } => (before, None, vec![0; 2]),
            Op::Int32 { before, .. } => (before, None, vec![0; 4]),
            Op::Int64 { before, .. } => (before, None, vec![0; 8]),
            Op::Uuid { before, .. } => (before, None, vec![0; 16]),
            Op::Bytes { before, length, .. } | Op::Skipped { before, length, .. } => {
                (before, Some((1, length)), vec![b'x'])
            }
            Op::Unread {
                before,
                length,
                size,
            } => (before, Some((1, length)), vec![0; size.into()]),
            Op::Array {
                before,
                length,
                element,
                ..
            } => {
                let element = plainest(table, element, elements);
                (before, Some((elements, length)), element.repeat(elements))
            }
            Op::End { before } => (before, None, vec![]),
            Op::Row { .. } => continue,
            Op::Struct { .. } | Op::NullableStruct { .. } => panic!("{op:?} in a common message"),
        };
        out.extend(vec![0; before.into()]);
        match count {
            None => {}
            Some((n, Length::Compact | Length::NullableCompact)) => out.push(n as u8 + 1),
            Some((n, Length::Int16 | Length::NullableInt16)) => {
                out.extend((n as i16).to_be_bytes());
            }
            Some((n, Length::Int32 | Length::NullableInt32)) => {
                out.extend((n as i32).to_be_bytes());
            }
        }
        out.extend(content);
    }
    out
}
