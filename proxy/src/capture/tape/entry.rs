//! What stands in a chunk: entries, one behind the other.
//!
//! Written on the hot path, so what the bytes of a stream tell is not told again: where a frame begins
//! follows from the one before it, and of a request all else too; of a response it is told which request
//! it answers. What is known later of a frame (that it was not understood, that it was changed) is an
//! entry of its own.

use klamp_codec::observation::{Exchange, OpaqueReason};
use klamp_codec::{ApiKey, CorrelationId, Direction, ErrorCode};
use std::time::Duration;

/// Bytes of the start of an answer.
pub(super) const ANSWER: usize = 24;
/// Bytes of the start of a run.
pub(super) const RUN: usize = 24;
/// Bytes of a piece of a run, without those that it brings.
pub(super) const PIECE: usize = 8;
/// Bytes of what is known.
pub(super) const KNOWN: usize = 8;
/// Bytes of a note.
pub(super) const NOTE: usize = 32;

const ANSWER_IS: u8 = 1;
const RUN_IS: u8 = 2;
const KNOWN_IS: u8 = 8;
const ERROR_IS: u8 = 9;
const OPAQUE_IS: u8 = 3;
const REWRITTEN_IS: u8 = 4;
const ANSWERED_IS: u8 = 5;
const TOKEN_IS: u8 = 6;

/// No latency is known.
const NO_LATENCY: u64 = u64::MAX;

/// Nothing is known of where frames begin.
const NO_FRAME: u16 = u16::MAX;

/// What the bytes of a response do not say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    api_key: ApiKey,
    api_version: i16,
    pub(super) latency: Option<Duration>,
}

impl Told {
    pub(super) fn exchange(self, correlation_id: CorrelationId) -> Exchange {
        Exchange {
            api_key: self.api_key,
            api_version: self.api_version,
            correlation_id,
        }
    }
}

/// Tells of the pieces that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) direction: Direction,
    /// Offset in the stream of the first one.
    pub(super) at: u64,
    /// When they were seen, in nanoseconds since the process began to count.
    pub(super) nanos: u64,
    /// Where the first frame begins that begins there or behind it, if that is known.
    pub(super) first: Option<u64>,
    /// How many there are.
    pub(super) pieces: u32,
}

/// How many bytes a piece of a run has, and how many are left out behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: u32,
    pub(super) left_out: u32,
}

impl Piece {
    #[inline(always)]
    pub(super) fn new(bytes: usize, left_out: u32) -> Self {
        let bytes = bytes as u32;
        Self { bytes, left_out }
    }

    pub(super) fn read(bytes: [u8; PIECE]) -> Self {
        let [a, b, c, d, left_out @ ..] = bytes;
        Self {
            bytes: u32::from_ne_bytes([a, b, c, d]),
            left_out: u32::from_ne_bytes(left_out),
        }
    }

    #[inline(always)]
    pub(super) fn put(self, to: &mut [u8; PIECE]) {
        if let [bytes, left_out] = to.as_chunks_mut::<4>().0 {
            *bytes = self.bytes.to_ne_bytes();
            *left_out = self.left_out.to_ne_bytes();
        }
    }

    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        let mut word = [0; PIECE];
        self.put(&mut word);
        u64::from_ne_bytes(word)
    }
}

/// Bytes of a stream, of one frame or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run<'a> {
    pub(super) direction: Direction,
    /// Offset in the stream of the first byte.
    pub(super) at: u64,
    /// When they were seen, in nanoseconds since the process began to count.
    pub(super) nanos: u64,
    /// Where the first frame begins that begins here or behind it, if that is known.
    pub(super) first: Option<u64>,
    pub(super) bytes: &'a [u8],
}

impl Run<'_> {
    /// Offset in the stream of what follows.
    pub(super) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}

/// One entry as it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    /// Of the response that begins at this offset, and of those behind it up to the next one of these.
    Answer(u64, Told),
    /// A run begins.
    Start(Start),
    Run(Run<'a>),
    /// What is known in the arena by this number goes on where the run before has come to.
    Known(u16),
    /// Of the frame that begins at `at`.
    Note {
        direction: Direction,
        at: u64,
        /// When it became known, in nanoseconds since the process began to count.
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
    /// So often this code stands in it.
    Error(ErrorCode, u32),
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

/// Of 584 years at most.
#[inline(always)]
pub(super) fn nanos(time: Duration) -> u64 {
    time.as_secs() * 1_000_000_000 + u64::from(time.subsec_nanos())
}

#[inline(always)]
pub(super) fn answer(at: u64, exchange: Exchange, latency: Option<Duration>) -> [u64; ANSWER / 8] {
    let (key, version) = (exchange.api_key.0 as u16, exchange.api_version as u16);
    let large = u32::from(key) | u32::from(version) << 16;
    [
        first_word(ANSWER_IS, Direction::Response, 0, large),
        at,
        latency.map_or(NO_LATENCY, nanos),
    ]
}

/// The start of a run of so many pieces. `first`: the offset in the stream of the first frame that begins in it
/// or behind it; one before it: none is known.
#[inline(always)]
pub(super) fn run(
    direction: Direction,
    at: u64,
    nanos: u64,
    first: u64,
    pieces: u32,
) -> [u64; RUN / 8] {
    let first = u16::try_from(first.wrapping_sub(at)).unwrap_or(NO_FRAME);
    [first_word(RUN_IS, direction, first, pieces), at, nanos]
}

/// What goes on with the run before, and is known by this number.
pub(super) fn known(number: u16) -> [u64; KNOWN / 8] {
    [first_word(KNOWN_IS, Direction::Response, number, 0)]
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
        Note::Error(code, count) => (ERROR_IS, u64::from(code.0 as u16) | u64::from(count) << 32),
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

/// So many bytes are copied by the C library.
pub(super) const MANY: usize = 256;

/// Copies `from` to the start of `to`, which is as long or longer. Few bytes by a few wide moves, for the C
/// library that the binary ships with takes a start for each copy that is longer than that.
#[inline(always)]
pub(super) fn copy(from: &[u8], to: &mut [u8]) {
    let Some(to) = to.get_mut(..from.len()) else {
        return;
    };
    // (asked in this order, what is common first)
    match from.len() {
        MANY.. => to.copy_from_slice(from),
        128.. => match from.len() {
            ..160 => copy_ends::<128, 32>(from, to),
            192.. => copy_ends::<128, 128>(from, to),
            _ => copy_ends::<128, 64>(from, to),
        },
        64.. => copy_ends::<64, 64>(from, to),
        16.. => match from.len() {
            32.. => copy_ends::<32, 32>(from, to),
            _ => copy_ends::<16, 16>(from, to),
        },
        4.. => match from.len() {
            8.. => copy_ends::<8, 8>(from, to),
            _ => copy_ends::<4, 4>(from, to),
        },
        2.. => copy_ends::<2, 2>(from, to),
        _ => copy_ends::<1, 1>(from, to),
    }
}

/// Copies what is at most as long as both: its start and its end, which may overlap.
#[inline(always)]
fn copy_ends<const START: usize, const END: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(start), Some(place)) = (from.first_chunk::<START>(), to.first_chunk_mut()) {
        *place = *start;
    }
    if let (Some(end), Some(place)) = (from.last_chunk::<END>(), to.last_chunk_mut()) {
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
        ANSWER_IS => {
            let nanos = Some(word(2)?).filter(|nanos| *nanos != NO_LATENCY);
            let told = Told {
                api_key: ApiKey(large as i16),
                api_version: (large >> 16) as i16,
                latency: nanos.map(Duration::from_nanos),
            };
            Some((Entry::Answer(word(1)?, told), ANSWER))
        }
        KNOWN_IS => Some((Entry::Known((first >> 16) as u16), KNOWN)),
        RUN_IS => {
            let (at, begins) = (word(1)?, (first >> 16) as u16);
            let start = Start {
                direction,
                at,
                nanos: word(2)?,
                first: (begins != NO_FRAME).then_some(at + u64::from(begins)),
                pieces: large,
            };
            Some((Entry::Start(start), RUN))
        }
        OPAQUE_IS => note(Note::Opaque(*REASONS.get(word(3)? as usize)?)),
        REWRITTEN_IS => note(Note::Rewritten(word(3)?)),
        ANSWERED_IS => note(Note::AnsweredHere),
        TOKEN_IS => note(Note::Token(word(3)?)),
        ERROR_IS => {
            let word = word(3)?;
            note(Note::Error(ErrorCode(word as i16), (word >> 32) as u32))
        }
        _ => None,
    }
}
