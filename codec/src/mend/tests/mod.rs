//! Frames of every layout with holes, mended and read again; and what nobody kept so.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod shapes;

use super::{Mended, Withheld, WithheldList, mend};
use crate::kept::{Kept, Part, Reading};
use crate::layout::tests::written::{Planted, message};
use crate::layout::{Event, Progress, Role, Root, Value, Walker, versions};
use crate::observation::{Exchange, OpaqueReason};
use crate::render::{Form, Message, Render, Text};
use crate::types::{ApiKey, CorrelationId, Direction};
use fastrand::Rng;
use std::time::SystemTime;

/// What is planted.
const SECRET: &[u8] = b"a secret that nobody is to find";

/// A frame of a message, and where what is withheld of it stands.
struct Frame {
    direction: Direction,
    api_key: ApiKey,
    api_version: i16,
    root: Root,
    bytes: Vec<u8>,
    /// Bytes of the header.
    start: usize,
}

impl Frame {
    fn new(direction: Direction, api_key: ApiKey, api_version: i16, body: &[u8]) -> Self {
        let (bytes, start) = crate::session::holes::frame(direction, api_key, api_version, body);
        Self {
            direction,
            api_key,
            api_version,
            root: Root::find_full(direction, api_key, api_version).unwrap(),
            bytes,
            start,
        }
    }

    /// A message of this layout in which something is planted.
    fn written(
        direction: Direction,
        api_key: ApiKey,
        api_version: i16,
        planted: Planted<'_>,
        rng: &mut Rng,
    ) -> Self {
        let root = Root::find_full(direction, api_key, api_version).unwrap();
        let mut body = message(root, planted, rng);
        if (direction, api_key) == (Direction::Response, ApiKey::API_VERSIONS) {
            // No error, or it might have another shape.
            body[..2].fill(0);
        }
        Self::new(direction, api_key, api_version, &body)
    }

    /// These bytes stand in it behind the message.
    fn is_followed_by(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let length = self.bytes.len() as u32 - 4;
        self.bytes[..4].copy_from_slice(&length.to_be_bytes());
    }

    /// As a recorder keeps it: `holes` are where and how long.
    fn kept(&self, holes: &[(usize, usize)], reading: Reading) -> Kept {
        let mut parts = Vec::new();
        let mut at = 0;
        for &(from, len) in holes {
            parts.push(Part::Bytes(self.bytes[at..from].to_vec()));
            parts.push(Part::Hole(len as u32));
            at = from + len;
        }
        parts.push(Part::Bytes(self.bytes[at..].to_vec()));
        Kept {
            direction: self.direction,
            exchange: Some(Exchange {
                api_key: self.api_key,
                api_version: self.api_version,
                correlation_id: CorrelationId(7),
            }),
            at: 0,
            bytes: self.bytes.len() as u64,
            received: SystemTime::UNIX_EPOCH,
            latency: None,
            reading,
            change: None,
            errors: Vec::new(),
            parts,
        }
    }

    /// Where what is withheld stands, and how long it is.
    fn holes(&self) -> Vec<(usize, usize)> {
        let mut holes = Vec::new();
        for (_, role, at, value) in told(self.root, &self.bytes[self.start..]) {
            if let (true, Said::Content(bytes @ 1..)) = (role.is_withheld(), value) {
                holes.push((self.start + at as usize, bytes));
            }
        }
        holes
    }
}

/// What a walk tells, without lengths.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Int(i64),
    Text(Vec<u8>),
    /// Of something withheld only how long it is.
    Content(usize),
    Other(String),
}

fn told(root: Root, body: &[u8]) -> Vec<(crate::layout::FieldId, Role, u32, Said)> {
    let mut told = Vec::new();
    let mut on = |event: Event<'_>| {
        let said = match event.value {
            Value::Int(n) => Said::Int(n),
            Value::Piece(piece, 0) if event.role.is_withheld() => Said::Content(piece.len()),
            Value::Piece(piece, 0) => Said::Text(piece.to_vec()),
            Value::Skipped(len) => Said::Content(len as usize),
            Value::TagSize(_) => Said::Other("a tagged field".to_owned()),
            Value::UnknownTag(tag, size) => Said::Other(format!("tag {tag}, {size} bytes")),
            value => Said::Other(format!("{value:?}")),
        };
        told.push((event.field, event.role, event.at, said));
    };
    let end = Walker::new(root, body.len() as u32).feed(body, &mut on);
    assert_eq!(end, Ok((body.len(), Progress::Done)), "{body:02x?}");
    told
}

/// Holds a mended frame against what it was.
fn check(frame: &Frame, mended: &Mended) {
    let what = || {
        let (direction, key, version) = (frame.direction, frame.api_key, frame.api_version);
        format!(
            "{direction:?} {key:?} v{version}: {mended:?} of {:02x?}",
            frame.bytes
        )
    };
    let length = u32::from_be_bytes(*mended.bytes.first_chunk().unwrap());
    assert_eq!(length as usize + 4, mended.bytes.len(), "{}", what());
    let header = |bytes: &[u8]| bytes[4..frame.start].to_vec();
    assert_eq!(header(&mended.bytes), header(&frame.bytes));
    let told = |bytes: &[u8]| {
        let told = told(frame.root, &bytes[frame.start..]);
        let said = told.into_iter().map(|(field, role, _, said)| match said {
            Said::Content(_) => (field, role, Said::Content(0)),
            Said::Other(text) if text.starts_with("tag ") => {
                let number = text.split_once(',').unwrap().0.to_owned();
                (field, role, Said::Other(number))
            }
            said => (field, role, said),
        });
        said.collect::<Vec<_>>()
    };
    assert_eq!(told(&mended.bytes), told(&frame.bytes), "{}", what());
    let there = mended.bytes.len() as u64 + mended.withheld.bytes();
    // Lengths may have become shorter too.
    assert!(there <= frame.bytes.len() as u64, "{}", what());
    assert!(!has_secret(&mended.bytes), "{}", what());
    for it in mended.withheld.iter() {
        assert!(it.at as usize <= mended.bytes.len(), "{}", what());
    }
    assert!(
        mended.withheld.iter().map(|it| it.at).is_sorted(),
        "{}",
        what()
    );
    let text = mended.withheld.to_string();
    assert_eq!(text.parse().as_ref(), Ok(&mended.withheld), "{text}");
}

fn has_secret(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|it| it == SECRET)
}

/// Calls for every layout that there is.
fn for_each_layout(mut case: impl FnMut(Direction, ApiKey, i16)) {
    for api_key in (0..95).map(ApiKey) {
        let range = versions(api_key).unwrap();
        for api_version in range.min()..=range.max() {
            for direction in [Direction::Request, Direction::Response] {
                case(direction, api_key, api_version);
            }
        }
    }
}

#[test]
fn of_every_layout_what_is_mended_is_the_message_without_what_is_withheld() {
    let mut rng = Rng::with_seed(40);
    let mut withheld = 0;
    for_each_layout(|direction, api_key, api_version| {
        for _ in 0..12 {
            let planted = Planted {
                withheld: Some(SECRET),
                unknown: Some(SECRET),
            };
            let frame = Frame::written(direction, api_key, api_version, planted, &mut rng);
            let holes = frame.holes();
            let mended = mend(&frame.kept(&holes, Reading::Whole), false);
            check(&frame, &mended);
            let lacks = holes.iter().map(|hole| hole.1 as u64).sum::<u64>();
            let tags = mended.withheld.iter().filter(|it| it.field.is_empty());
            let tags = tags.map(|it| u64::from(it.bytes)).sum::<u64>();
            assert_eq!(mended.withheld.bytes(), lacks + tags);
            withheld += holes.len();

            // And whatever the recorder kept of it.
            let part = holes.iter().filter(|_| rng.bool()).copied();
            let part = part.collect::<Vec<_>>();
            assert_eq!(mend(&frame.kept(&part, Reading::Whole), false), mended);
            // In any pieces.
            let mut kept = frame.kept(&part, Reading::Whole);
            kept.parts = kept
                .parts
                .iter()
                .flat_map(|part| cut(part, &mut rng))
                .collect();
            assert_eq!(mend(&kept, false), mended, "{:?}", kept.parts);
        }
    });
    assert!(withheld > 1_000, "{withheld}");
}

/// A part in two.
fn cut(part: &Part, rng: &mut Rng) -> [Part; 2] {
    match part {
        Part::Bytes(bytes) => {
            let (one, other) = bytes.split_at(rng.usize(..=bytes.len()));
            [Part::Bytes(one.to_vec()), Part::Bytes(other.to_vec())]
        }
        Part::Hole(n) => {
            let one = rng.u32(..=*n);
            [Part::Hole(one), Part::Hole(n - one)]
        }
    }
}

#[test]
fn where_nothing_is_withheld_nothing_changes() {
    let mut rng = Rng::with_seed(41);
    for_each_layout(|direction, api_key, api_version| {
        let planted = Planted {
            withheld: Some(&[]),
            unknown: Some(&[]),
        };
        let frame = Frame::written(direction, api_key, api_version, planted, &mut rng);
        let mended = mend(&frame.kept(&[], Reading::Whole), false);
        let as_it_was = Mended {
            bytes: frame.bytes.clone(),
            ..Mended::default()
        };
        assert_eq!(mended, as_it_was);
    });
}

/// A mended frame in text, as what it was.
fn text(message: Message, mended: &Mended) -> String {
    let behind = &mended.bytes[4..];
    let mut render = Render::new(message, behind.len() as u32, Text::default());
    render = render.withheld(mended.withheld.to_string().parse().unwrap());
    render.bytes(behind);
    std::mem::take(render.end().1.written())
}

/// The head of a batch of `records` that has `bytes` behind it.
fn head(base_offset: i64, records: i32, bytes: usize) -> Vec<u8> {
    let mut head = base_offset.to_be_bytes().to_vec();
    head.extend((49 + bytes as i32).to_be_bytes());
    head.extend(b"\0\0\0\x05\x02crc!\0\x14");
    head.extend(b"\0\0\0\x09\x01\x01\x01\x01\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02\x02\x02");
    head.extend(b"\0\0\0\0\0\0\0\x4d\0\x03\0\0\0\x09");
    head.extend(records.to_be_bytes());
    assert_eq!(head.len(), 61);
    head
}

#[test]
fn rendered_with_what_is_withheld_a_mended_frame_says_how_long_each_field_was() {
    let mut rng = Rng::with_seed(43);
    for_each_layout(|direction, api_key, api_version| {
        let batch = [head(3, 2, SECRET.len()), SECRET.to_vec()].concat();
        let is_of_records = ApiKey::PRODUCE == api_key || ApiKey::FETCH == api_key;
        let planted = Planted {
            withheld: Some(if is_of_records { &batch } else { SECRET }),
            unknown: Some(SECRET),
        };
        let mut frame = Frame::written(direction, api_key, api_version, planted, &mut rng);
        if rng.bool() {
            frame.is_followed_by(SECRET);
        }
        let mended = mend(&frame.kept(&[], Reading::Whole), false);
        let message = match direction {
            Direction::Request => Message::Request,
            Direction::Response => Message::Response(api_key, api_version),
        };
        let whole = Mended {
            bytes: frame.bytes,
            ..Mended::default()
        };
        assert_eq!(text(message, &mended), text(message, &whole));
    });
}

#[test]
fn whatever_was_kept_is_mended_to_a_frame_as_long_as_it_says() {
    let mut rng = Rng::with_seed(42);
    let mut read = 0;
    for _ in 0..4 {
        for_each_layout(|direction, api_key, api_version| {
            let mut frame = Frame::written(
                direction,
                api_key,
                api_version,
                Planted::default(),
                &mut rng,
            );
            if rng.bool() {
                let at = rng.usize(..frame.bytes.len());
                frame.bytes[at] = rng.u8(..);
            }
            let reading = match rng.u8(..8) {
                0 => Reading::Unfinished,
                1 => Reading::Token,
                2 => Reading::Opaque(OpaqueReason::UnknownKey),
                _ => Reading::Whole,
            };
            let from = rng.usize(..=frame.bytes.len());
            let len = rng.usize(..=frame.bytes.len() - from);
            let mut kept = frame.kept(&[(from, len)], reading);
            kept.parts = kept
                .parts
                .iter()
                .flat_map(|part| cut(part, &mut rng))
                .collect();
            match rng.u8(..8) {
                0 => kept.bytes = rng.u64(..),
                1 => kept.bytes = rng.u64(..100),
                2 => kept.exchange = None,
                3 => rng.shuffle(&mut kept.parts),
                _ => {}
            }
            let mended = mend(&kept, rng.bool());
            let length = u32::from_be_bytes(*mended.bytes.first_chunk().unwrap());
            let is_as_it_was = matches!(reading, Reading::Opaque(_)) && len == 0;
            assert!(is_as_it_was || length as usize + 4 == mended.bytes.len());
            read += usize::from(mended.bytes.len() > frame.start);
        });
    }
    assert!(read > 500, "{read}");
}

#[test]
fn a_list_of_what_is_withheld_is_read_as_it_is_written() {
    let list = "AuthBytes@14+30,80+4096".parse::<WithheldList>().unwrap();
    let auth = Withheld {
        at: 14,
        bytes: 30,
        field: "AuthBytes".into(),
    };
    assert_eq!(list.iter().next(), Some(&auth));
    assert_eq!(
        (list.bytes(), list.to_string().as_str()),
        (4126, "AuthBytes@14+30,80+4096")
    );
    assert!("".parse::<WithheldList>().unwrap().is_empty());
    for text in [
        ",",
        "1",
        "1+",
        "+1",
        "a+1",
        "1+-1",
        "1+4294967296",
        "1+1,",
        "x@1",
    ] {
        assert!(text.parse::<WithheldList>().is_err(), "{text}");
    }
}
