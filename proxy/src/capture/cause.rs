//! Which of a capture's frames its reason is about, and what was waited for when it was taken.
//!
//! The trap: whoever takes a capture knows the reason and not the frame. So it is looked for from the end of
//! what there was then, where it must be, and only a frame that gives the same reason is the one.

use super::pcapng::comment::facts;
use super::{Capture, Reason};
use klamp_codec::kept::{Change, Kept, Reading};
use klamp_codec::observation::{Exchange, OpaqueReason};
use klamp_codec::{ApiKey, Direction};

/// Frames that are looked at, the newest first.
const LATEST: usize = 256;
/// Requests without an answer that are told of.
const WAITING: usize = 8;

/// What a capture was taken for.
#[derive(Debug)]
pub(crate) struct Cause<'a> {
    /// The frame that triggered; `None` where none did, or it is not known which.
    pub(crate) frame: Option<&'a Kept>,
    /// The requests that had no answer when the connection ended, or somebody asked, the oldest first.
    pub(crate) in_flight: Vec<Exchange>,
    /// How many more there were after those.
    pub(crate) more_in_flight: usize,
}

impl<'a> Cause<'a> {
    pub(crate) fn of(capture: &'a Capture) -> Self {
        let frames = capture.frames.first();
        let frames = &frames[frames.len().saturating_sub(LATEST)..];
        let latest = || frames.iter().rev();
        let mut in_flight = match capture.kind {
            "close" | "by_hand" => unanswered(frames),
            _ => Vec::new(),
        };
        let more_in_flight = in_flight.len().saturating_sub(WAITING);
        in_flight.truncate(WAITING);
        Self {
            frame: latest().find(|kept| is_about(capture, kept)),
            in_flight,
            more_in_flight,
        }
    }
}

/// Whether that frame gives the capture's reason.
fn is_about(capture: &Capture, kept: &Kept) -> bool {
    let is_response = kept.direction == Direction::Response;
    let is = |reason: Reason| reason.to_string() == capture.reason;
    let Some(Exchange {
        api_key,
        api_version,
        ..
    }) = kept.exchange
    else {
        return false;
    };
    match capture.kind {
        "unnamed" | "beyond" | "error_code" if is_response && kept.reading == Reading::Whole => {
            // (where not all of it is kept, it has them beside it)
            let beside = kept
                .errors
                .iter()
                .any(|(code, _)| is(Reason::Code(api_key, *code)));
            beside || {
                let read = facts(kept).errors.kept;
                read.keys().any(|code| is(Reason::Code(api_key, *code)))
            }
        }
        "malformed" => {
            kept.reading == Reading::Opaque(OpaqueReason::Malformed)
                && is(Reason::Malformed(kept.direction, api_key, api_version))
        }
        "slow" => is_response && capture.reason.starts_with(&format!("slow {api_key}: ")),
        "close" if is(Reason::Close("broker_after_acks0")) => is_unanswerable(kept),
        "close" if is(Reason::Close("broker_after_opaque")) => {
            !is_response && matches!(kept.reading, Reading::Opaque(_))
        }
        _ => false,
    }
}

/// Whether it is a Produce with acks=0.
fn is_unanswerable(kept: &Kept) -> bool {
    let is_produce = kept
        .exchange
        .is_some_and(|of| of.api_key == ApiKey::PRODUCE);
    kept.direction == Direction::Request && is_produce && facts(kept).acks == Some(0)
}

/// The requests that wait for an answer, the oldest first. Answers come in order, so before one that has
/// its answer there is none; and ids may repeat.
fn unanswered(frames: &[Kept]) -> Vec<Exchange> {
    let mut waiting = Vec::new();
    for kept in frames {
        let Some(exchange) = kept.exchange else {
            continue;
        };
        match kept.direction {
            Direction::Response => {
                if let Some(asked) = waiting.iter().position(|asked| *asked == exchange) {
                    waiting.drain(..=asked);
                }
            }
            Direction::Request if kept.change == Some(Change::AnsweredHere) => {}
            Direction::Request if is_unanswerable(kept) => {}
            Direction::Request => waiting.push(exchange),
        }
    }
    waiting
}

#[cfg(test)]
mod tests {
    use super::super::pcapng::tests::{METADATA, capture, malformed, metadata, request, response};
    use super::*;
    use std::time::Duration;

    fn ids(exchanges: &[Exchange]) -> Vec<i32> {
        let ids = exchanges.iter().map(|it| it.correlation_id.0);
        ids.collect()
    }

    /// The correlation id and the direction of the frame that a capture of that reason is about.
    fn about(reason: Reason, frames: Vec<Kept>) -> Option<(i32, Direction)> {
        let mut capture = capture("10.0.0.1:50000", "10.0.0.2:9092", frames);
        capture.reason = reason.to_string();
        capture.kind = reason.kind();
        let frame = Cause::of(&capture).frame?;
        Some((frame.exchange?.correlation_id.0, frame.direction))
    }

    /// Metadata three times, of which the second fails with 250 and the third is malformed.
    fn frames() -> Vec<Kept> {
        vec![
            request(3, 1, 1, 0, METADATA),
            request(3, 1, 2, 1, METADATA),
            request(3, 1, 3, 2, METADATA),
            response(3, 1, 1, 3, &metadata(0)),
            response(3, 1, 2, 4, &metadata(250)),
            malformed(response(3, 1, 3, 5, &metadata(0))),
        ]
    }

    #[test]
    fn a_code_is_of_the_latest_answer_that_has_it() {
        let code = |code| Reason::Code(ApiKey::METADATA, klamp_codec::ErrorCode(code));
        let response = |id| Some((id, Direction::Response));
        assert_eq!(about(code(250), frames()), response(2));
        assert_eq!(about(code(251), frames()), None);
        let later = [frames(), frames()].concat();
        assert_eq!(about(code(250), later), response(2));
        // Of which the code was not kept.
        let mut cut = frames();
        let long = &mut cut[4];
        if let klamp_codec::kept::Part::Bytes(bytes) = &mut long.parts[0] {
            bytes.truncate(20);
        }
        assert_eq!(about(code(250), vec![long.clone()]), None);
        long.errors = vec![(klamp_codec::ErrorCode(250), 1)];
        assert_eq!(about(code(250), cut), response(2));
    }

    #[test]
    fn what_is_malformed_or_late_is_the_frame_itself() {
        let malformed = Reason::Malformed(Direction::Response, ApiKey::METADATA, 1);
        assert_eq!(about(malformed, frames()), Some((3, Direction::Response)));
        let malformed = Reason::Malformed(Direction::Request, ApiKey::METADATA, 1);
        assert_eq!(about(malformed, frames()), None);
        let slow = |api_key| Reason::Slow(api_key, Duration::from_secs(3));
        let frames = || frames()[..5].to_vec();
        assert_eq!(
            about(slow(ApiKey::METADATA), frames()),
            Some((2, Direction::Response))
        );
        assert_eq!(about(slow(ApiKey::FETCH), frames()), None);
        assert_eq!(about(Reason::ByHand, frames()), None);
    }

    /// Produce v3 of nothing.
    fn produce(id: i32, acks: i16) -> Kept {
        let body = [b"\xff\xff", &acks.to_be_bytes()[..], &[0; 8]].concat();
        request(0, 3, id, 0, &body)
    }

    #[test]
    fn what_waits_for_an_answer_is_told_where_the_connection_ends_or_somebody_asks() {
        let mut frames = frames();
        frames.extend([produce(4, 0), request(3, 1, 5, 6, METADATA), produce(6, 0)]);
        frames.extend((7..20).map(|id| produce(id, 1)));
        let waits = |reason: Reason, frames: &[Kept]| {
            let mut capture = capture("10.0.0.1:50000", "10.0.0.2:9092", frames.to_vec());
            capture.reason = reason.to_string();
            capture.kind = reason.kind();
            let cause = Cause::of(&capture);
            (ids(&cause.in_flight), cause.more_in_flight)
        };
        for reason in [Reason::Close("client_in_flight"), Reason::ByHand] {
            let eight = vec![5, 7, 8, 9, 10, 11, 12, 13];
            assert_eq!(waits(reason, &frames), (eight, 6));
            assert_eq!(waits(reason, &frames[..7]), (vec![], 0));
        }
        let code = Reason::Code(ApiKey::METADATA, klamp_codec::ErrorCode(250));
        assert_eq!(waits(code, &frames), (vec![], 0));
        // A client may give all of them the same id.
        let same = [
            request(3, 1, 1, 0, METADATA),
            request(3, 1, 1, 1, METADATA),
            response(3, 1, 1, 2, &metadata(0)),
            request(3, 1, 1, 3, METADATA),
        ];
        assert_eq!(waits(Reason::ByHand, &same), (vec![1, 1], 0));
        assert_eq!(
            about(Reason::Close("broker_after_acks0"), frames),
            Some((6, Direction::Request))
        );
    }
}
