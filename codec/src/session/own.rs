//! The one request that klamp answers itself, ApiVersions in a version that nobody here knows (KIP-511):
//! taken out of one direction, and answered in the other when its turn comes.

use super::cursor::Cursor;
use super::pending::Answer;
use super::request::{RequestLane, State};
use super::response::ResponseLane;
use super::shared::Shared;
use super::{Input, Step};
use crate::local;
use crate::observation::{Observation, Observer};
use crate::types::Direction;

const REQUEST: Direction = Direction::Request;
const RESPONSE: Direction = Direction::Response;

impl RequestLane {
    /// Takes a request out of the stream; once it is gone its answer may go.
    #[cold]
    pub(super) fn swallow(
        &mut self,
        cursor: &Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let State::Swallow(request) = &mut self.state else {
            return None;
        };
        if cursor.rest().is_empty() {
            if input.eof {
                cx.truncated = true;
                return Some(Step::Finish);
            }
            return Some(Step::Need(1));
        }
        let left = usize::try_from(request.left).unwrap_or(usize::MAX);
        let drop = cursor.rest().len().min(left);
        request.left = request.left.saturating_sub(drop as u64);
        self.at = self.at.saturating_add(drop as u64);
        if request.left == 0 {
            // (now and not at the next poll: that one need not move this direction, and so nobody
            // would look whether the other one has an answer to send)
            let end = Observation::RequestEnd {
                exchange: request.exchange,
                frame_bytes: request.frame_bytes,
            };
            to.observe(REQUEST, self.at, end);
            if let Some(entry) = self.facts.entry(cx) {
                entry.received = Some(input.now);
            }
            self.state = State::Head;
        }
        Some(Step::Replace {
            drop,
            with: Vec::new(),
        })
    }
}

impl ResponseLane {
    /// Sends an answer of our own, if its turn has come, and once what is before it has passed.
    #[cold]
    pub(super) fn answer(
        &mut self,
        cursor: &Cursor<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let entry = *cx.queue.front().filter(|e| e.answer == Answer::Local)?;
        if let Some(owed) = cursor.owed() {
            return Some(owed);
        }
        entry.received?;
        let exchange = entry.exchange;
        cx.queue.pop();
        to.observe(RESPONSE, self.at, Observation::Answered { exchange });
        to.observe(RESPONSE, self.at, cx.in_flight());
        Some(Step::Replace {
            drop: 0,
            with: local::unsupported_api_versions(exchange.correlation_id),
        })
    }
}
