//! What a tape has at one time, and what it has got since.

use super::frames::{self, Found};
use super::{Side, Tape};
use crate::timers;
use klamp_codec::kept::{Kept, Reading};
use std::time::{Instant, SystemTime};

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
    /// Frames that had begun, but for those that a later snapshot tells too: they had not ended.
    frames: u64,
    /// From where on in each direction's stream a later snapshot tells frames.
    from: [u64; 2],
    /// The same moment by two clocks.
    anchor: (Instant, SystemTime),
}

impl Tape {
    /// All that is kept.
    ///
    /// While the session is asked, what it is shown is not all there: see [`Take::settle`].
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshot_since(&Mark {
            frames: 0,
            from: [0; 2],
            anchor: (Instant::now(), SystemTime::now()),
        })
    }

    /// What began after the moment of an earlier snapshot, or had not ended then (such a frame is in
    /// both: [`Kept::direction`] and [`Kept::at`] tell that it is the same). Times are by the same clock
    /// as in the earlier one.
    pub(crate) fn snapshot_since(&self, mark: &Mark) -> Snapshot {
        let (reel, shared) = (self.reel.borrow(), self.arena.shared.borrow());
        let mut found = frames::found(reel.chunks(), &shared);
        found.retain(|frame| frame.at >= mark.from[frame.direction as usize]);
        let (mut from, mut under_way) = (mark.from, 0);
        for frame in &found {
            let has_ended = self.has_ended(frame);
            from[frame.direction as usize] = if has_ended { frame.end() } else { frame.at };
            under_way += u64::from(!has_ended);
        }
        let held = self.sides.iter().filter(|side| side.is_held()).count() as u64;
        let due = self.frames() - held - mark.frames;
        Snapshot {
            lost_frames: due.saturating_sub(found.len() as u64),
            frames: (found.iter())
                .map(|frame| self.kept(frame, mark.anchor))
                .collect(),
            mark: Mark {
                frames: self.frames() - held - under_way,
                from,
                anchor: mark.anchor,
            },
        }
    }

    fn has_ended(&self, frame: &Found<'_>) -> bool {
        let side = self.side(frame.direction);
        let is_owed = side.is_owed.get() && frame.at == side.frame.get();
        frame.reading == Some(Reading::Token) || (frame.end() <= side.at.get() && !is_owed)
    }

    fn kept(&self, frame: &Found<'_>, anchor: (Instant, SystemTime)) -> Kept {
        let reading = match frame.reading {
            Some(reading) => reading,
            None if self.has_ended(frame) => Reading::Whole,
            None => Reading::Unfinished,
        };
        let is_shown = match reading {
            Reading::Whole => true,
            Reading::Token => false,
            Reading::Opaque(_) | Reading::Unfinished => self.arena.settings.opaque,
        };
        let most = if is_shown { frame.bytes } else { frame.header };
        let began = timers::epoch() + frame.began;
        let ago = anchor.0.saturating_duration_since(began);
        let ahead = began.saturating_duration_since(anchor.0);
        Kept {
            direction: frame.direction,
            exchange: frame.exchange,
            at: frame.at,
            bytes: frame.bytes,
            received: anchor.1 - ago + ahead,
            latency: frame.latency,
            reading,
            change: frame.change,
            errors: frame.errors.clone(),
            parts: frame.parts(most, reading == Reading::Whole),
        }
    }
}

impl Side {
    /// Whether no byte of the latest frame is here, since it has not passed yet.
    fn is_held(&self) -> bool {
        self.copied.get() <= self.frame.get() && self.bytes.get() > 0
    }
}
