//! Whether a capture tells the truth of a connection: which frames are there, in which order, and what is
//! kept of each.
//!
//! The trap: what a capture does not tell cannot be asked. Where all requests have the same id, or are tokens,
//! several places of a conversation may look alike; a capture that was taken amid it is right if it fits one
//! of them.

use super::frame::{Direction, FRAME, Kind};
use super::matching;
use super::pcapng::{Capture, Kept};
use super::run::Mode;
use super::script::Ids;
use super::talk::{Sent, Stream, Talk};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Of a connection's tape, what is surely used for its latest frames.
const TAPE: usize = 100 << 10;
/// Of several places that look alike so many are tried.
const PLACES: usize = 40;

/// When a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// When all had been said and had arrived.
    AtRest,
    /// Amid the conversation.
    Amid,
}

/// The frames of a capture among those that were sent: which one each is.
pub(crate) struct Judged {
    pub(crate) order: Vec<(Direction, usize)>,
    /// Whether they cannot be others that look alike.
    pub(crate) is_sure: bool,
}

/// # Panics
/// If the capture is not of what was said.
pub(crate) fn judge(capture: &Capture, talk: &Talk, taken: Taken, mode: &Mode) -> Judged {
    let places = Direction::BOTH.map(|direction| place(capture, talk, direction, taken, mode));
    let mut places = places.each_ref().map(|it| it.iter());
    let order = capture.frames.iter().map(|kept| {
        let place = places[kept.direction as usize].next();
        (kept.direction, *place.expect("there is one for each"))
    });
    let tell_apart = Direction::BOTH.iter().all(|direction| {
        let mut frames = capture
            .frames
            .iter()
            .filter(|it| it.direction == *direction);
        frames.clone().next().is_none() || frames.any(|it| it.head.is_some())
    });
    let judged = Judged {
        order: order.collect(),
        is_sure: taken == Taken::AtRest || talk.script.ids != Ids::Same && tell_apart,
    };
    if judged.is_sure {
        judged.check_partners(talk);
        judged.check_order(talk);
        judged.check_latencies(talk, capture);
    }
    if taken == Taken::AtRest {
        judged.check_completeness(talk, capture, mode);
    }
    judged
}

/// Which frames of a direction are kept: one after the other, but for what is said to be lost.
fn place(
    capture: &Capture,
    talk: &Talk,
    direction: Direction,
    taken: Taken,
    mode: &Mode,
) -> Vec<usize> {
    let sent = &talk.stream(direction).frames;
    let kept = capture.frames.iter().filter(|it| it.direction == direction);
    let kept: Vec<_> = kept.collect();
    let places = (0..=sent.len()).rev().filter_map(|first| {
        let place = from(first, sent, &kept)?;
        let is_last = place.last().is_none_or(|last| last + 1 == sent.len());
        (is_last || taken == Taken::Amid).then_some(place)
    });
    let mut why = None;
    for place in places.take(PLACES) {
        let frames = place.iter().map(|index| &sent[*index]).zip(&kept);
        let wrong = frames.filter_map(|(sent, kept)| {
            let is_over = taken == Taken::AtRest;
            let wrong = matching::check(sent, kept, mode, is_over).err()?;
            Some(format!("{wrong}\n  of {:?}\n  {kept:?}", sent.frame))
        });
        let wrong: Vec<_> = wrong.take(3).collect();
        if wrong.is_empty() {
            return place;
        }
        why.get_or_insert(wrong.join("\n"));
    }
    let name = direction.name();
    let why = why.unwrap_or_else(|| {
        let sent: Vec<_> = sent.iter().rev().take(5).map(|it| &it.frame).collect();
        let kept: Vec<_> = kept.iter().rev().take(5).collect();
        format!(
            "no such row of frames was sent; the latest that were kept: {kept:#?}, sent: {sent:#?}"
        )
    });
    panic!("{taken:?}, of {}s of the capture: {why}", name);
}

/// Which frames are kept if the first is that one.
fn from(first: usize, sent: &[Sent], kept: &[&Kept]) -> Option<Vec<usize>> {
    let mut next = first;
    let places = kept.iter().enumerate().map(|(number, kept)| {
        let mut lost = if number == 0 { 0 } else { kept.lost() };
        while lost > 0 {
            lost = lost.checked_sub(sent.get(next)?.frame.bytes.len())?;
            next += 1;
        }
        next += 1;
        matching::may_be(sent.get(next - 1)?, kept).then_some(next - 1)
    });
    places.collect()
}

impl Judged {
    fn sent<'t>(&self, talk: &'t Talk) -> Vec<&'t Sent> {
        let sent =
            |(direction, index): &(Direction, usize)| &talk.stream(*direction).frames[*index];
        self.order.iter().map(sent).collect()
    }

    /// An answer stands behind its request.
    fn check_partners(&self, talk: &Talk) {
        let places = self.order.iter().enumerate();
        let places: HashMap<_, _> = places.map(|(place, of)| (*of, place)).collect();
        assert_eq!(places.len(), self.order.len(), "a frame is there twice");
        for (index, response) in talk.stream(Direction::Response).frames.iter().enumerate() {
            let request = response.partner.expect("it answers one");
            let answer = places.get(&(Direction::Response, index));
            let asked = places.get(&(Direction::Request, request));
            if let (Some(answer), Some(asked)) = (answer, asked) {
                let frame = &response.frame;
                assert!(asked < answer, "{frame:?} stands before its request");
            }
        }
    }

    /// What had arrived before something began stands before it.
    fn check_order(&self, talk: &Talk) {
        let mut earliest: Option<Instant> = None;
        for sent in self.sent(talk).into_iter().rev() {
            let (began, frame) = (sent.began, &sent.frame);
            if let (Some(began), Some(earliest)) = (began, earliest) {
                assert!(
                    earliest >= began,
                    "{frame:?} stands before one that had passed"
                );
            }
            earliest = match (earliest, sent.arrived) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
    }

    /// What klamp says of how long an answer took is between what both ends saw.
    fn check_latencies(&self, talk: &Talk, capture: &Capture) {
        let requests = &talk.stream(Direction::Request).frames;
        for (sent, kept) in self.sent(talk).iter().zip(&capture.frames) {
            let Some(request) = sent
                .partner
                .filter(|_| kept.direction == Direction::Response)
            else {
                continue;
            };
            let Some(ms) = kept.latency_ms() else {
                continue;
            };
            let told = Duration::from_secs_f64(ms / 1e3);
            let request = &requests[request];
            let between = |from: Option<Instant>, to: Option<Instant>| Some(to? - from?);
            let least = between(request.arrived, sent.began).unwrap_or_default();
            let most = between(request.began, sent.arrived).unwrap_or(Duration::MAX);
            // (it is told in millionths of a millisecond)
            let rounding = Duration::from_nanos(2);
            assert!(
                told + rounding >= least && told <= most.saturating_add(rounding),
                "{:?} took {told:?}, but between {least:?} and {most:?}",
                sent.frame
            );
        }
    }

    /// All is there, or was given up for what came later, where there was no room for it.
    fn check_completeness(&self, talk: &Talk, capture: &Capture, mode: &Mode) {
        let sent = talk.streams.iter().map(|it| it.frames.len());
        let all = sent.sum::<usize>();
        let (kept, given_up) = (self.order.len(), capture.given_up());
        assert_eq!(
            kept + given_up,
            all,
            "frames kept and given up, of those that were sent"
        );
        if mode.is_small {
            return;
        }
        let is_kept: HashSet<_> = self.order.iter().collect();
        let frames = Direction::BOTH.into_iter().flat_map(|direction| {
            let stream = talk.stream(direction);
            let frames = stream.frames.iter().enumerate();
            frames.map(move |(index, sent)| ((direction, index), sent, cost(stream, sent, mode)))
        });
        let frames: Vec<_> = frames.collect();
        for (of, sent, cost) in &frames {
            // (klamp has seen a frame at some time between its first byte and its last)
            let may_be_later = frames.iter().filter(|(_, other, _)| {
                let arrived = other.arrived.is_none_or(|at| Some(at) >= sent.began);
                arrived && !std::ptr::eq(*other, *sent)
            });
            let bytes = cost + may_be_later.map(|(_, _, cost)| cost).sum::<usize>();
            let frame = &sent.frame;
            assert!(
                bytes > TAPE || is_kept.contains(of),
                "{bytes} bytes back is not kept, with {kept} of {all}: {frame:?}"
            );
        }
    }
}

/// Bytes of the tape that a frame takes at most.
fn cost(stream: &Stream, sent: &Sent, mode: &Mode) -> usize {
    let frame = &sent.frame;
    let end = sent.start + frame.bytes.len();
    let before = |at: usize| stream.marks.partition_point(|mark| *mark < at);
    // Each look at it costs a bit, each place where something is left out, and the frame itself.
    let looks = before(end) - before(sent.start + 1) + 2 + frame.bytes.len() / 4096;
    let holes = frame.withheld().count();
    // (what is wiped out takes its place still)
    let is_kept = mode.keeps_records || mode.keeps_unread || frame.kind == Kind::Malformed;
    let bytes = match is_kept {
        true => frame.bytes.len().min(2 * FRAME),
        false => frame.plain().min(FRAME + 61 * holes),
    };
    bytes + looks * 40 + holes.min(40) * 90 + 600
}
