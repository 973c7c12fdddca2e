//! Entries become frames again.
//!
//! The trap: what stands first in the oldest chunk may be the rest of a frame whose start is given up. So
//! frames are counted from one that is known to begin, each from the end of the one before it.

use super::entry::{Entry, Note, Run, Told};
use super::reel::Chunk;
use super::shared::Shared;
use klamp_codec::kept::{Change, Part, Reading};
use klamp_codec::observation::Exchange;
use klamp_codec::{ApiKey, CorrelationId, Direction, ErrorCode};
use std::ops::Range;
use std::time::Duration;

/// Bytes of a response's header: length and correlation id.
pub(super) const ANSWER_HEADER: u64 = 8;
/// Key and version of the one request whose header has no client id.
const CONTROLLED_SHUTDOWN_V0: [u8; 4] = [0, 7, 0, 0];
/// Bytes of that.
const SHORT_HEADER: u64 = 12;

/// A frame whose start is here.
pub(super) struct Found<'a> {
    pub(super) direction: Direction,
    /// `None` for a token.
    pub(super) exchange: Option<Exchange>,
    /// Offset in the stream of its first byte.
    pub(super) at: u64,
    /// Bytes of it, the length field included.
    pub(super) bytes: u64,
    /// So many of them are its header, up to the client id's end.
    pub(super) header: u64,
    /// When its first byte was seen, since the process began to count.
    pub(super) began: Duration,
    pub(super) latency: Option<Duration>,
    /// A token; or why it was not understood.
    pub(super) reading: Option<Reading>,
    pub(super) change: Option<Change>,
    pub(super) errors: Vec<(ErrorCode, u32)>,
    /// Bytes by their offset in the frame, in its order.
    pieces: Vec<(u64, &'a [u8])>,
    /// Which entry it begins in.
    order: usize,
}

/// What stands in these chunks, the oldest first.
pub(super) fn found<'a>(
    chunks: impl Iterator<Item = &'a Chunk>,
    shared: &'a Shared,
) -> Vec<Found<'a>> {
    let sides = streams(chunks, shared);
    let [requests, responses] = &sides;
    let mut found = requests.frames(Direction::Request);
    found.extend(responses.frames(Direction::Response));
    found.sort_by_key(|frame| (frame.order, frame.at));
    found
}

/// Both directions, by their numbers.
fn streams<'a>(chunks: impl Iterator<Item = &'a Chunk>, shared: &'a Shared) -> [Stream<'a>; 2] {
    let mut sides: [Stream<'_>; 2] = Default::default();
    for (order, entry) in chunks.flat_map(|chunk| chunk.entries(shared)).enumerate() {
        match entry {
            Entry::Run(run) => sides[run.direction as usize].runs.push((order, run)),
            Entry::Answer(at, told) => {
                sides[Direction::Response as usize].answers.push((at, told));
            }
            Entry::Start(_) | Entry::Known(_) => {}
            Entry::Note {
                direction,
                at,
                nanos,
                note,
            } => sides[direction as usize].notes.push(Noted {
                order,
                at,
                nanos,
                note,
            }),
        }
    }
    sides
}

/// One direction, as far as it is here.
#[derive(Default)]
struct Stream<'a> {
    runs: Vec<(usize, Run<'a>)>,
    answers: Vec<(u64, Told)>,
    notes: Vec<Noted>,
}

struct Noted {
    order: usize,
    at: u64,
    nanos: u64,
    note: Note,
}

impl<'a> Stream<'a> {
    /// Each begins where one is known to, or where the one before it ends.
    fn frames(&self, direction: Direction) -> Vec<Found<'a>> {
        let (mut found, mut next) = (Vec::new(), None);
        for (order, run) in &self.runs {
            next = run.first.or(next);
            while let Some(at) = next
                && (run.at..run.end()).contains(&at)
            {
                next = self
                    .bytes(at)
                    .map(|length| at + 4 + u64::from(u32::from_be_bytes(length)));
                found.extend(next.and_then(|end| self.frame(*order, run, at..end)));
            }
        }
        for noted in &self.notes {
            if let Ok(place) = found.binary_search_by_key(&noted.at, |frame| frame.at) {
                found[place].note(noted.note);
            }
        }
        let tokens = self.notes.iter().filter_map(|noted| noted.token(direction));
        found.extend(tokens);
        found
    }

    /// `None`: it is not known which one it is.
    fn frame(&self, order: usize, run: &Run<'a>, place: Range<u64>) -> Option<Found<'a>> {
        let at = place.start;
        let id = |bytes| CorrelationId(i32::from_be_bytes(bytes));
        let (exchange, header, latency) = match run.direction {
            Direction::Request => {
                let int16 = |from| self.bytes(at + from).map(i16::from_be_bytes);
                let exchange = Exchange {
                    api_key: ApiKey(int16(4)?),
                    api_version: int16(6)?,
                    correlation_id: id(self.bytes(at + 8)?),
                };
                (exchange, self.request_header(at), None)
            }
            Direction::Response => {
                let behind = self.answers.partition_point(|(told, _)| *told <= at);
                let (_, told) = self.answers.get(behind.checked_sub(1)?)?;
                (
                    told.exchange(id(self.bytes(at + 4)?)),
                    ANSWER_HEADER,
                    told.latency,
                )
            }
        };
        let pieces = self.from(at).iter().map(|(_, run)| run);
        let pieces = pieces.take_while(|run| run.at < place.end);
        Some(Found {
            direction: run.direction,
            exchange: Some(exchange),
            bytes: place.end - at,
            header,
            began: Duration::from_nanos(run.nanos),
            latency,
            reading: None,
            change: None,
            errors: Vec::new(),
            pieces: pieces.map(|run| share(&place, run)).collect(),
            order,
            at,
        })
    }

    fn request_header(&self, at: u64) -> u64 {
        request_header(self.bytes(at).as_ref())
    }

    /// The runs that end behind `at`.
    fn from(&self, at: u64) -> &[(usize, Run<'a>)] {
        let first = self.runs.partition_point(|(_, run)| run.end() <= at);
        &self.runs[first..]
    }

    /// What stands at `at` of the stream, if all of it is here.
    fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let (mut bytes, mut filled) = ([0; N], 0);
        for (_, run) in self.from(at) {
            let start = usize::try_from((at + filled as u64).checked_sub(run.at)?).ok()?;
            let here = run.bytes.get(start..)?;
            let n = here.len().min(N - filled);
            bytes[filled..][..n].copy_from_slice(&here[..n]);
            filled += n;
            if filled == N {
                return Some(bytes);
            }
        }
        None
    }
}

impl Noted {
    fn token<'a>(&self, direction: Direction) -> Option<Found<'a>> {
        let Note::Token(bytes) = self.note else {
            return None;
        };
        Some(Found {
            direction,
            exchange: None,
            at: self.at,
            bytes,
            header: 4,
            began: Duration::from_nanos(self.nanos),
            latency: None,
            reading: Some(Reading::Token),
            change: None,
            errors: Vec::new(),
            pieces: Vec::new(),
            order: self.order,
        })
    }
}

impl<'a> Found<'a> {
    pub(super) fn end(&self) -> u64 {
        self.at + self.bytes
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Opaque(reason) => self.reading = Some(Reading::Opaque(reason)),
            Note::Rewritten(bytes) => self.change = Some(Change::Rewritten(bytes)),
            Note::AnsweredHere => self.change = Some(Change::AnsweredHere),
            Note::Error(code, count) => self.errors.push((code, count)),
            Note::Token(_) => {}
        }
    }

    /// The first `most` bytes; all of the frame if it `is_whole`.
    pub(super) fn parts(&self, most: u64, is_whole: bool) -> Vec<Part> {
        if self.reading == Some(Reading::Token) {
            let length = self.bytes.saturating_sub(4) as u32;
            return vec![Part::Bytes(length.to_be_bytes().into())];
        }
        let (mut parts, mut upto) = (Vec::new(), 0);
        for (offset, piece) in &self.pieces {
            let room = most.saturating_sub(*offset) as usize;
            let piece = piece.get(..room).unwrap_or(piece);
            if piece.is_empty() {
                break;
            }
            match parts.last_mut() {
                Some(Part::Bytes(last)) if *offset == upto => last.extend_from_slice(piece),
                _ => {
                    parts.extend(hole(upto..*offset));
                    parts.push(Part::Bytes(piece.to_vec()));
                }
            }
            upto = offset + piece.len() as u64;
        }
        if is_whole {
            parts.extend(hole(upto..self.bytes));
        }
        parts
    }
}

/// (A frame is shorter than 4 GiB: its length field says no more.)
fn hole(place: Range<u64>) -> Option<Part> {
    let bytes = u32::try_from(place.end.saturating_sub(place.start)).unwrap_or(u32::MAX);
    (bytes > 0).then_some(Part::Hole(bytes))
}

/// What belongs to a frame of a run that ends behind its start and begins before its end: by the offset in
/// the frame.
fn share<'a>(frame: &Range<u64>, run: &Run<'a>) -> (u64, &'a [u8]) {
    let start = frame.start.saturating_sub(run.at);
    let end = frame.end.saturating_sub(run.at).min(run.bytes.len() as u64);
    let mine = run.bytes.get(start as usize..end as usize);
    (run.at.saturating_sub(frame.start), mine.unwrap_or_default())
}

/// Bytes of the header of the request that begins at `at`.
pub(super) fn header_of<'a>(
    chunks: impl Iterator<Item = &'a Chunk>,
    shared: &'a Shared,
    at: u64,
) -> u64 {
    let [requests, _] = streams(chunks, shared);
    requests.request_header(at)
}

/// Bytes of a request's header, up to the client id's end, by its first ones; the fewest where these are
/// not known.
pub(super) fn request_header(start: Option<&[u8; 14]>) -> u64 {
    let Some([_, _, _, _, key @ .., _, _, _, _, high, low]) = start else {
        return SHORT_HEADER;
    };
    if *key == CONTROLLED_SHUTDOWN_V0 {
        return SHORT_HEADER;
    }
    let client_id = i16::from_be_bytes([*high, *low]);
    14 + u64::try_from(client_id).unwrap_or_default()
}
