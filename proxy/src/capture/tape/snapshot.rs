//! Reads a tape back: entries become frames again.
//!
//! The trap: what stands first in the oldest chunk may be the rest of a frame whose head is given up. So
//! bytes count only behind the head of their frame.

use super::Tape;
use super::entry::{Entry, Head, Note};
use klamp_codec::kept::{Change, Kept, Part, Reading};
use klamp_codec::observation::Exchange;
use klamp_codec::{ApiKey, CorrelationId, Direction};
use std::time::{Duration, Instant, SystemTime};

/// What a tape had at one time.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// In order of time.
    pub(crate) frames: Vec<Kept>,
    /// Frames that passed before the first one here and are no longer kept.
    pub(crate) lost_frames: u64,
    /// From where a later snapshot goes on.
    pub(crate) mark: Mark,
}

/// A moment of a tape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// Frames that had begun.
    frames: u64,
    /// Where in each direction's stream the frame begins that had not ended then.
    open: [Option<u64>; 2],
    /// The same moment by two clocks.
    anchor: (Instant, SystemTime),
}

/// A frame that is being put together.
struct Found {
    head: Head,
    /// How many began before it.
    number: u64,
    /// When its first byte was seen, since the arena's start; `None`: none is here.
    began: Option<Duration>,
    /// A token; or why it was not understood.
    reading: Option<Reading>,
    change: Option<Change>,
    /// Bytes by their offset in the frame, in its order.
    pieces: Vec<(u64, Vec<u8>)>,
}

impl Tape {
    /// All that is kept.
    ///
    /// In the middle of a poll it lacks the bytes of that poll: see [`Tape::settled`].
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshot_since(&Mark {
            frames: 0,
            open: [None; 2],
            anchor: (Instant::now(), SystemTime::now()),
        })
    }

    /// What began after the moment of an earlier snapshot, or had not ended then (such a frame is in
    /// both: [`Kept::direction`] and [`Kept::at`] tell that it is the same). Times are by the same clock
    /// as in the earlier one.
    pub(crate) fn snapshot_since(&self, mark: &Mark) -> Snapshot {
        let mut found = self.found();
        let mut open = [None; 2];
        for frame in found.iter().filter(|frame| !self.has_ended(frame)) {
            open[frame.head.direction as usize] = Some(frame.head.at);
        }
        found.retain(|frame| {
            let was_open = mark.open[frame.head.direction as usize];
            frame.number >= mark.frames || was_open == Some(frame.head.at)
        });
        let due = self.frames.get() - mark.frames + mark.open.iter().flatten().count() as u64;
        Snapshot {
            lost_frames: due.saturating_sub(found.len() as u64),
            frames: found
                .into_iter()
                .map(|frame| self.kept(frame, mark.anchor))
                .collect(),
            mark: Mark {
                frames: self.frames.get(),
                open,
                anchor: mark.anchor,
            },
        }
    }

    /// All frames whose heads are here, with the bytes that are here.
    fn found(&self) -> Vec<Found> {
        let mut sides: [Vec<Found>; 2] = Default::default();
        for chunk in self.reel.borrow().chunks() {
            let mut number = chunk.frames_before;
            for entry in chunk.entries() {
                match entry {
                    Entry::Head(head) => {
                        sides[head.direction as usize].push(Found::new(head, number));
                        number += 1;
                    }
                    Entry::Note {
                        direction,
                        at,
                        nanos,
                        note,
                    } => {
                        let side = &mut sides[direction as usize];
                        if let Note::Token(bytes) = note {
                            let token = Found::token(direction, at, bytes, number, nanos);
                            side.push(token);
                            number += 1;
                        } else if let Some(latest) = side.last_mut()
                            && latest.head.at == at
                        {
                            latest.note(note);
                        }
                    }
                    Entry::Run {
                        direction,
                        at,
                        nanos,
                        bytes,
                    } => {
                        let side = &mut sides[direction as usize];
                        let first = side.partition_point(|frame| frame.end() <= at);
                        for frame in &mut side[first..] {
                            frame.take(at, nanos, bytes);
                        }
                    }
                }
            }
        }
        let mut found: Vec<_> = sides.into_iter().flatten().collect();
        found.sort_by_key(|frame| frame.number);
        found
    }

    fn has_ended(&self, frame: &Found) -> bool {
        let side = self.side(frame.head.direction);
        frame.reading == Some(Reading::Token) || frame.end() <= side.ended.get()
    }

    fn kept(&self, frame: Found, anchor: (Instant, SystemTime)) -> Kept {
        let Head {
            direction,
            exchange,
            at,
            bytes,
            header,
            latency,
        } = frame.head;
        let reading = match frame.reading {
            Some(reading) => reading,
            None if self.has_ended(&frame) => Reading::Whole,
            None => Reading::Unfinished,
        };
        let is_shown = match reading {
            Reading::Whole => true,
            Reading::Token => false,
            Reading::Opaque(_) | Reading::Unfinished => self.arena.settings.opaque,
        };
        let most = if is_shown { bytes } else { header.into() };
        // Of a message that is held no byte is here: it is the latest.
        let latest = || Duration::from_nanos(self.nanos.get());
        let began = self.arena.start + frame.began.unwrap_or_else(latest);
        let ago = anchor.0.saturating_duration_since(began);
        let ahead = began.saturating_duration_since(anchor.0);
        Kept {
            direction,
            exchange: (reading != Reading::Token).then_some(exchange),
            at,
            bytes: bytes.into(),
            received: anchor.1 - ago + ahead,
            latency,
            reading,
            change: frame.change,
            parts: frame.parts(most, reading == Reading::Whole),
        }
    }
}

impl Found {
    fn new(head: Head, number: u64) -> Self {
        Self {
            head,
            number,
            began: None,
            reading: None,
            change: None,
            pieces: Vec::new(),
        }
    }

    fn token(direction: Direction, at: u64, bytes: u64, number: u64, nanos: u64) -> Self {
        let exchange = Exchange {
            api_key: ApiKey::SASL_HANDSHAKE,
            api_version: 0,
            correlation_id: CorrelationId(0),
        };
        let head = Head::new(direction, exchange, at, bytes, 4);
        Self {
            began: Some(Duration::from_nanos(nanos)),
            reading: Some(Reading::Token),
            ..Self::new(head, number)
        }
    }

    fn end(&self) -> u64 {
        self.head.at + u64::from(self.head.bytes)
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Opaque(reason) => self.reading = Some(Reading::Opaque(reason)),
            Note::Rewritten(bytes) => self.change = Some(Change::Rewritten(bytes)),
            Note::AnsweredHere => self.change = Some(Change::AnsweredHere),
            Note::Token(_) => {}
        }
    }

    /// Takes what is its own of bytes that begin at `at` of the stream.
    fn take(&mut self, at: u64, nanos: u64, bytes: &[u8]) {
        let start = self.head.at.saturating_sub(at);
        let end = self.end().saturating_sub(at).min(bytes.len() as u64);
        if let Some(mine @ [_, ..]) = bytes.get(start as usize..end as usize) {
            let offset = (at + start) - self.head.at;
            self.began.get_or_insert(Duration::from_nanos(nanos));
            self.pieces.push((offset, mine.to_vec()));
        }
    }

    /// The first `most` bytes; all of the frame if it `is_whole`.
    fn parts(self, most: u32, is_whole: bool) -> Vec<Part> {
        let (bytes, start) = (self.head.bytes, self.start());
        let has_start = self.pieces.first().is_some_and(|(offset, _)| *offset == 0);
        // While a message is held, no byte of it has passed, and so none is here.
        let start = (!has_start).then_some((0, start));
        let mut parts = Vec::new();
        let mut upto = 0;
        for (offset, piece) in start.into_iter().chain(self.pieces) {
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            let room = most.saturating_sub(offset) as usize;
            let piece = piece.get(..room).unwrap_or(&piece);
            if piece.is_empty() {
                break;
            }
            match parts.last_mut() {
                Some(Part::Bytes(last)) if offset == upto => last.extend_from_slice(piece),
                _ => {
                    if offset > upto {
                        parts.push(Part::Hole(offset - upto));
                    }
                    parts.push(Part::Bytes(piece.to_vec()));
                }
            }
            upto = offset + piece.len() as u32;
        }
        if is_whole && upto < bytes {
            parts.push(Part::Hole(bytes - upto));
        }
        parts
    }

    /// The first bytes of the frame, which follow from its head.
    fn start(&self) -> Vec<u8> {
        let Exchange {
            api_key,
            api_version,
            correlation_id,
        } = self.head.exchange;
        let mut start = self.head.bytes.saturating_sub(4).to_be_bytes().to_vec();
        if self.reading != Some(Reading::Token) {
            if self.head.direction == Direction::Request {
                start.extend(api_key.0.to_be_bytes());
                start.extend(api_version.to_be_bytes());
            }
            start.extend(correlation_id.0.to_be_bytes());
        }
        start
    }
}
