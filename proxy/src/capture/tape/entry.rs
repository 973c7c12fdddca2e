//! What stands in a chunk: entries, one behind the other, all whole numbers of eight bytes.
//!
//! Written on the hot path, so an entry is a few words with all that is known at that moment; what is
//! known later of a frame (that it was not understood, that it was changed) is an entry of its own.

use klamp_codec::observation::{Exchange, OpaqueReason};
use klamp_codec::{ApiKey, CorrelationId, Direction};
use std::time::Duration;

/// Bytes of the head of a frame.
pub(super) const HEAD: usize = 32;
/// Bytes of a run without those that it brings.
pub(super) const RUN: usize = 24;
/// Bytes of a note.
pub(super) const NOTE: usize = 32;

const HEAD_IS: u8 = 1;
const RUN_IS: u8 = 2;
const OPAQUE_IS: u8 = 3;
const REWRITTEN_IS: u8 = 4;
const ANSWERED_IS: u8 = 5;
const TOKEN_IS: u8 = 6;

/// No latency is known.
const NO_LATENCY: u64 = u64::MAX;

/// A frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) direction: Direction,
    pub(super) exchange: Exchange,
    /// Offset in the stream of its first byte.
    pub(super) at: u64,
    /// Bytes of it, the length field included; frames are shorter than 4 GiB.
    pub(super) bytes: u32,
    /// So many of them are its header, up to the client id's end.
    pub(super) header: u16,
    pub(super) latency: Option<Duration>,
}

impl Head {
    /// Without a latency; `bytes` is less than 4 GiB, as the length field says no more.
    #[inline(always)]
    pub(super) fn new(
        direction: Direction,
        exchange: Exchange,
        at: u64,
        bytes: u64,
        header: u16,
    ) -> Self {
        Self {
            direction,
            exchange,
            at,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            header,
            latency: None,
        }
    }
}

/// One entry as it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    Head(Head),
    /// Bytes of a stream, of one frame or several.
    Run {
        direction: Direction,
        at: u64,
        /// When they were seen, in nanoseconds since the arena's start.
        nanos: u64,
        bytes: &'a [u8],
    },
    /// Of the frame that begins at `at`.
    Note {
        direction: Direction,
        at: u64,
        /// When it became known, in nanoseconds since the arena's start.
        nanos: u64,
        note: Note,
    },
}

/// What became known of a frame behind its head, or of a frame that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Opaque(OpaqueReason),
    /// Another frame of so many bytes went on.
    Rewritten(u64),
    AnsweredHere,
    /// A raw SASL token of so many bytes.
    Token(u64),
}

const REASONS: [OpaqueReason; 6] = [
    OpaqueReason::UnknownKey,
    OpaqueReason::UnknownVersion,
    OpaqueReason::NoLayout,
    OpaqueReason::Malformed,
    OpaqueReason::Mismatch,
    OpaqueReason::NonKafka,
];

#[inline(always)]
fn first_word(kind: u8, direction: Direction, small: u16, large: u32) -> u64 {
    u64::from(kind)
        | u64::from(direction as u8) << 8
        | u64::from(small) << 16
        | u64::from(large) << 32
}

#[inline(always)]
pub(super) fn head(head: &Head) -> [u64; HEAD / 8] {
    let Exchange {
        api_key,
        api_version,
        correlation_id,
    } = head.exchange;
    let latency = match head.latency {
        Some(latency) => latency.as_secs() * 1_000_000_000 + u64::from(latency.subsec_nanos()),
        None => NO_LATENCY,
    };
    [
        first_word(HEAD_IS, head.direction, head.header, head.bytes),
        u64::from(api_key.0 as u16)
            | u64::from(api_version as u16) << 16
            | u64::from(correlation_id.0 as u32) << 32,
        head.at,
        latency,
    ]
}

/// The start of a run, whose `bytes` follow, up to the next whole word.
#[inline(always)]
pub(super) fn run(direction: Direction, at: u64, nanos: u64, bytes: u32) -> [u64; RUN / 8] {
    [first_word(RUN_IS, direction, 0, bytes), at, nanos]
}

pub(super) fn note(direction: Direction, at: u64, nanos: u64, note: Note) -> [u64; NOTE / 8] {
    let (kind, value) = match note {
        Note::Opaque(reason) => {
            let index = REASONS.iter().position(|it| *it == reason);
            (OPAQUE_IS, index.unwrap_or_default() as u64)
        }
        Note::Rewritten(bytes) => (REWRITTEN_IS, bytes),
        Note::AnsweredHere => (ANSWERED_IS, 0),
        Note::Token(bytes) => (TOKEN_IS, bytes),
    };
    [first_word(kind, direction, 0, 0), at, nanos, value]
}

/// The words of an entry as bytes.
#[inline(always)]
pub(super) fn put<const BYTES: usize, const WORDS: usize>(
    words: [u64; WORDS],
    to: &mut [u8; BYTES],
) {
    for (place, word) in to.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_ne_bytes();
    }
}

/// Copies `from` to `to`, which is as long. Few bytes by a few wide moves, for the C library that the
/// binary ships with takes a start for each copy that is longer than that.
#[inline]
pub(super) fn copy(from: &[u8], to: &mut [u8]) {
    match from.len() {
        0..8 => {
            for (place, byte) in to.iter_mut().zip(from) {
                *place = *byte;
            }
        }
        8..16 => copy_ends::<8>(from, to),
        16..32 => copy_ends::<16>(from, to),
        32..64 => copy_ends::<32>(from, to),
        64..128 => copy_ends::<64>(from, to),
        128..=256 => copy_ends::<128>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Copies what is at most twice as long as `N`: its start and its end, which may overlap.
#[inline(always)]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(start), Some(place)) = (from.first_chunk::<N>(), to.first_chunk_mut()) {
        *place = *start;
    }
    if let (Some(end), Some(place)) = (from.last_chunk::<N>(), to.last_chunk_mut()) {
        *place = *end;
    }
}

/// The first entry of `chunk`, and how many bytes it takes.
pub(super) fn read(chunk: &[u8]) -> Option<(Entry<'_>, usize)> {
    let word = |n: usize| Some(u64::from_ne_bytes(*chunk.get(n * 8..)?.first_chunk()?));
    let first = word(0)?;
    let direction = match first >> 8 & 0xff {
        0 => Direction::Request,
        _ => Direction::Response,
    };
    let large = (first >> 32) as u32;
    let note = |note| {
        let entry = Entry::Note {
            direction,
            at: word(1)?,
            nanos: word(2)?,
            note,
        };
        Some((entry, NOTE))
    };
    match first as u8 {
        HEAD_IS => {
            let exchange = word(1)?;
            let head = Head {
                direction,
                exchange: Exchange {
                    api_key: ApiKey(exchange as i16),
                    api_version: (exchange >> 16) as i16,
                    correlation_id: CorrelationId((exchange >> 32) as i32),
                },
                at: word(2)?,
                bytes: large,
                header: (first >> 16) as u16,
                latency: (word(3)? != NO_LATENCY).then_some(Duration::from_nanos(word(3)?)),
            };
            Some((Entry::Head(head), HEAD))
        }
        RUN_IS => {
            let bytes = chunk.get(RUN..RUN + large as usize)?;
            let run = Entry::Run {
                direction,
                at: word(1)?,
                nanos: word(2)?,
                bytes,
            };
            Some((run, RUN + (large as usize).next_multiple_of(8)))
        }
        OPAQUE_IS => note(Note::Opaque(*REASONS.get(word(3)? as usize)?)),
        REWRITTEN_IS => note(Note::Rewritten(word(3)?)),
        ANSWERED_IS => note(Note::AnsweredHere),
        TOKEN_IS => note(Note::Token(word(3)?)),
        _ => None,
    }
}
