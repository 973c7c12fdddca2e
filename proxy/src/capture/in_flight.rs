//! The requests that waited for their answer when a capture was taken.
//!
//! The trap: what waited is not told, it is what the tape has no answer to. So the latest of what there was
//! then is gone through, and each answer takes away what it answers.

use super::Capture;
use super::pcapng::comment::facts;
use klamp_codec::kept::{Change, Kept};
use klamp_codec::observation::Exchange;
use klamp_codec::{ApiKey, Direction};
use klamp_metrics::CaptureReason;

/// Frames that are looked at, the newest ones.
const LATEST: usize = 256;
/// Requests that are told of.
const WAITING: usize = 8;

/// The requests that had no answer when the connection ended, or somebody asked.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// The oldest first.
    pub(crate) requests: Vec<Exchange>,
    /// How many more there were after those.
    pub(crate) more: usize,
}

impl InFlight {
    pub(crate) fn of(capture: &Capture) -> Self {
        let frames = capture.frames.first();
        let frames = &frames[frames.len().saturating_sub(LATEST)..];
        let mut requests = match capture.kind {
            CaptureReason::Close | CaptureReason::ByHand => unanswered(frames),
            _ => Vec::new(),
        };
        let more = requests.len().saturating_sub(WAITING);
        requests.truncate(WAITING);
        Self { requests, more }
    }
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

/// Whether this request is a Produce with acks=0.
fn is_unanswerable(kept: &Kept) -> bool {
    let is_produce = kept
        .exchange
        .is_some_and(|of| of.api_key == ApiKey::PRODUCE);
    is_produce && facts(kept).acks == Some(0)
}

#[cfg(test)]
mod tests {
    use super::super::Reason;
    use super::super::pcapng::tests::{METADATA, capture, metadata, request, response};
    use super::*;
    use klamp_codec::ErrorCode;

    /// Metadata three times, each answered.
    fn frames() -> Vec<Kept> {
        let requests = (1..4).map(|id| request(3, 1, id, 0, METADATA));
        let answers = (1..4).map(|id| response(3, 1, id, 1, &metadata(0)));
        requests.chain(answers).collect()
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
            capture.kind = reason.kind();
            let InFlight { requests, more } = InFlight::of(&capture);
            let ids = requests.iter().map(|it| it.correlation_id.0);
            (ids.collect::<Vec<_>>(), more)
        };
        for reason in [Reason::Close("client_in_flight"), Reason::ByHand] {
            let eight = vec![5, 7, 8, 9, 10, 11, 12, 13];
            assert_eq!(waits(reason, &frames), (eight, 6));
            assert_eq!(waits(reason, &frames[..7]), (vec![], 0));
        }
        let code = Reason::Code(ApiKey::METADATA, ErrorCode(250));
        assert_eq!(waits(code, &frames), (vec![], 0));
        // A client may give all of them the same id.
        let same = [
            request(3, 1, 1, 0, METADATA),
            request(3, 1, 1, 1, METADATA),
            response(3, 1, 1, 2, &metadata(0)),
            request(3, 1, 1, 3, METADATA),
        ];
        assert_eq!(waits(Reason::ByHand, &same), (vec![1, 1], 0));
    }
}
