//! Walks a message under a cut of its bytes, and writes down what was told so that it can be compared:
//! pieces joined, every offset held against the bytes.

use klamp_codec::layout::{Event, Progress, Role, Root, Value, WalkError, Walker};

/// What a walk tells, without where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Int(Role, i64),
    /// A string or uuid, its pieces joined.
    Text(Role, Vec<u8>),
    Null(Role),
    Skipped(Role, usize),
    Count(Role, usize),
    Element(Role),
    Struct(Role),
    End(Role),
}

/// A fact and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) at: u32,
    pub(crate) width: u32,
    pub(crate) fact: Fact,
}

/// How a walk went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walked {
    pub(crate) told: Vec<Told>,
    /// Offset, width and size of tagged fields.
    pub(crate) tags: Vec<(u32, u32, u32)>,
    pub(crate) end: End,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Done, after so many bytes.
    Done(usize),
    /// The bytes ended first.
    Hungry,
    Failed(WalkError),
}

/// How far the next move goes; what is skippable may be skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Feed(usize),
    Skip(usize),
}

/// Walks `bytes`, the first ones of a message of `len` bytes, by the moves that `next` makes of how
/// many bytes are skippable and where it stands.
pub(crate) fn walk(
    root: Root,
    bytes: &[u8],
    len: usize,
    mut next: impl FnMut(usize, usize) -> Move,
) -> Walked {
    let mut walker = Walker::new(root, len as u32);
    let mut notes = Notes::default();
    let mut pos = 0;
    let mut skippable = 0;
    let end = loop {
        let rest = &bytes[pos..];
        let shown = match next(skippable, pos) {
            Move::Skip(n) if n > 0 && skippable > 0 => {
                let n = n.min(skippable).min(rest.len());
                walker.skip(n as u32).unwrap();
                pos += n;
                &[]
            }
            Move::Feed(n) | Move::Skip(n) => &rest[..n.min(rest.len())],
        };
        match walker.feed(shown, &mut |event| notes.take(event)) {
            Err(error) => break End::Failed(error),
            Ok((used, Progress::Done)) => break End::Done(pos + used),
            Ok((used, progress)) => {
                assert_eq!(
                    used,
                    shown.len(),
                    "all is consumed until the message is done"
                );
                pos += used;
                skippable = match progress {
                    Progress::Skippable(n) => n as usize,
                    _ => 0,
                };
            }
        }
        if pos == bytes.len() {
            // What is done needs no more bytes to say so.
            match walker.feed(&[], &mut |event| notes.take(event)) {
                Err(error) => break End::Failed(error),
                Ok((used, Progress::Done)) => break End::Done(pos + used),
                Ok(_) => break End::Hungry,
            }
        }
    };
    Walked {
        told: notes.told,
        tags: notes.tags,
        end,
    }
}

#[derive(Default)]
struct Notes {
    told: Vec<Told>,
    tags: Vec<(u32, u32, u32)>,
    /// Bytes that the last string still lacks.
    left: u32,
}

impl Notes {
    fn take(&mut self, event: Event<'_>) {
        let Event {
            field: _,
            role,
            at,
            width,
            value,
        } = event;
        if self.left > 0 {
            let Value::Piece(piece, left) = value else {
                panic!("{event:?} inside a string");
            };
            let last = self.told.last_mut().unwrap();
            assert_eq!((last.at, last.width), (at, width));
            let Fact::Text(last_role, text) = &mut last.fact else {
                panic!("{event:?} after {last:?}");
            };
            assert_eq!(*last_role, role);
            assert!(!piece.is_empty());
            assert_eq!(piece.len() as u32 + left, self.left);
            text.extend(piece);
            self.left = left;
            return;
        }
        let fact = match value {
            Value::Int(n) => Fact::Int(role, n),
            Value::Null => Fact::Null(role),
            Value::Piece(piece, left) => {
                assert!(!piece.is_empty() || left == 0);
                self.left = left;
                Fact::Text(role, piece.to_vec())
            }
            Value::Skipped(n) => Fact::Skipped(role, n as usize),
            Value::Count(n) => Fact::Count(role, n as usize),
            Value::Element => Fact::Element(role),
            Value::Struct => Fact::Struct(role),
            Value::End => Fact::End(role),
            Value::TagSize(size) => {
                assert_eq!(role, Role::TagSize);
                self.tags.push((at, width, size));
                return;
            }
            Value::UnknownTag(_, size) => {
                self.tags.push((at, width, size));
                return;
            }
        };
        self.told.push(Told { at, width, fact });
    }
}

/// Holds every offset and width against the bytes that stand there.
pub(crate) fn check_offsets(walked: &Walked, bytes: &[u8], flexible: bool) {
    for told in &walked.told {
        let at = told.at as usize;
        let before = &bytes[at - told.width as usize * usize::from(counted(told))..at];
        match &told.fact {
            // The sign of an unsigned one is not its own.
            Fact::Int(_, n) => {
                let value = &bytes[at..at + told.width as usize];
                assert!(n.to_be_bytes().ends_with(value), "{told:?}");
            }
            // No length takes so many bytes.
            Fact::Text(_, uuid) if told.width == 16 => {
                assert_eq!(uuid.as_slice(), &bytes[at..at + 16]);
            }
            Fact::Text(_, text) => {
                assert_eq!(text.as_slice(), &bytes[at..at + text.len()]);
                assert_eq!(length(before, flexible), Some(text.len()), "{told:?}");
            }
            Fact::Skipped(_, n) | Fact::Count(_, n) => {
                assert_eq!(length(before, flexible), Some(*n), "{told:?}");
            }
            Fact::Null(Role::Other) if before == [0xff] => {} // a struct
            Fact::Null(_) => assert_eq!(length(before, flexible), None, "{told:?}"),
            Fact::Element(_) | Fact::Struct(_) | Fact::End(_) => assert_eq!(told.width, 0),
        }
    }
    for &(at, width, size) in &walked.tags {
        let before = &bytes[(at - width) as usize..at as usize];
        assert_eq!(uvarint(before), u64::from(size));
        assert!(at + size <= bytes.len() as u32);
    }
}

/// Whether the width is that of what stands before.
fn counted(told: &Told) -> bool {
    !matches!(told.fact, Fact::Int(..)) && told.width < 16
}

fn length(bytes: &[u8], flexible: bool) -> Option<usize> {
    match (bytes, flexible) {
        (_, true) => uvarint(bytes).checked_sub(1).map(|n| n as usize),
        (&[a, b], _) => usize::try_from(i16::from_be_bytes([a, b])).ok(),
        (&[a, b, c, d], _) => usize::try_from(i32::from_be_bytes([a, b, c, d])).ok(),
        _ => panic!("no length has {} bytes", bytes.len()),
    }
}

fn uvarint(bytes: &[u8]) -> u64 {
    let (last, others) = bytes.split_last().unwrap();
    assert!(*last < 0x80 && others.iter().all(|byte| *byte >= 0x80));
    let bits = bytes.iter().rev().map(|byte| u64::from(byte & 0x7f));
    bits.fold(0, |value, bits| value << 7 | bits)
}

/// Holds what the hot table tells against what the full one does: none of what every reader of the data
/// path looks for is missing, and nothing is told that is not there.
pub(crate) fn check_hot(hot: &Walked, full: &Walked) {
    let always = |told: &&Told| {
        let role = match told.fact {
            Fact::Int(role, _) | Fact::Text(role, _) | Fact::Null(role) => role,
            Fact::Count(role, _) | Fact::Element(role) | Fact::End(role) => role,
            Fact::Skipped(_, len) => return len > 0,
            Fact::Struct(_) => return false,
        };
        matches!(
            role,
            Role::ErrorCode
                | Role::ThrottleTime
                | Role::Acks
                | Role::Wait
                | Role::NodeId
                | Role::Host
                | Role::Port
                | Role::SoftwareName
                | Role::SoftwareVersion
                | Role::Mechanism
                | Role::VersionRows
                | Role::RowKey
                | Role::RowMin
                | Role::RowMax
                | Role::FinalizedFeature
                | Role::FinalizedLevel
        )
    };
    let told = full.told.iter().map(|told| Told {
        fact: match &told.fact {
            Fact::Text(role, text) if role.is_withheld() => Fact::Skipped(*role, text.len()),
            fact => fact.clone(),
        },
        ..*told
    });
    let told = told.collect::<Vec<_>>();
    let wanted = told.iter().filter(always).collect::<Vec<_>>();
    assert_eq!(hot.told.iter().filter(always).collect::<Vec<_>>(), wanted);
    let mut all = told.iter();
    let known = hot.told.iter().all(|told| all.any(|it| it == told));
    let mut all = full.tags.iter();
    let tagged = hot.tags.iter().all(|told| all.any(|it| it == told));
    assert!(known && tagged, "{hot:?}, but {full:?}");
}
