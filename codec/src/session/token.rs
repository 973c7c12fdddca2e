//! Frames of the raw token phase after SaslHandshake v0, which have no header: the trap is a mechanism of
//! which nobody knows how many it takes.

use super::cursor::Cursor;
use super::header::{self, ReadHeader};
use super::pending::{Answer, Entry};
use super::reject::{self, MAX_TOKEN, MIN_REQUEST, MIN_RESPONSE};
use super::request::{self, RequestLane, Unlike};
use super::response::{self, ResponseLane};
use super::sasl::Sasl;
use super::shared::Shared;
use super::{Input, Step};
use crate::observation::{Exchange, Observation, Observer};
use crate::types::{ApiKey, CorrelationId, Direction};

const REQUEST: Direction = Direction::Request;
const RESPONSE: Direction = Direction::Response;

impl RequestLane {
    /// Begins a frame in the raw token phase, if it is a token.
    #[cold]
    pub(super) fn token(
        &mut self,
        field: [u8; 4],
        left: Option<u8>,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Unlike {
        if left == Some(0) {
            return Unlike::Ordinary(field);
        }
        if left.is_none() {
            match self.is_ordinary(field, cursor, cx) {
                Ok(true) => return Unlike::Ordinary(field),
                Ok(false) => {}
                Err(n) if input.eof && n > cursor.rest().len() => {}
                Err(n) => return Unlike::Step(self.need(n, cursor, input, cx)),
            }
        }
        let length = match reject::check(field, false, 0, MAX_TOKEN) {
            Ok(length) => length,
            Err(reason) => {
                return Unlike::Step(self.reject(reason, field, cursor, cx, to));
            }
        };
        if !cx.queue.has_room() {
            return Unlike::Step(cursor.owed().unwrap_or(Step::Wait));
        }
        cx.sasl = Sasl::Tokens(left.map(|n| n.saturating_sub(1)));
        let mut entry = Entry::of(Exchange {
            api_key: ApiKey::SASL_HANDSHAKE,
            api_version: 0,
            correlation_id: CorrelationId(0),
        });
        entry.token = true;
        if left.is_none() {
            entry.answer = Answer::Unknown;
        }
        cx.queue.push(entry);
        let frame_bytes = header::frame_bytes(length);
        to.observe(REQUEST, self.at, Observation::Token { frame_bytes });
        to.observe(REQUEST, self.at, cx.in_flight());
        self.at = self.at.saturating_add(frame_bytes);
        self.state = request::State::Token;
        match cursor.pass_frame(frame_bytes) {
            0 => Unlike::Begun,
            unseen => Unlike::Step(cursor.owe_and(unseen)),
        }
    }

    /// Whether a frame in a token phase of unknown length is an ordinary request. `Err`: so many
    /// bytes must be shown to tell.
    fn is_ordinary(&self, field: [u8; 4], cursor: &Cursor<'_>, cx: &Shared) -> Result<bool, usize> {
        let max = cx.policy.max_request_bytes;
        let Ok(length) = reject::check(field, false, MIN_REQUEST, max) else {
            return Ok(false);
        };
        match header::read_request(cursor.rest(), length) {
            ReadHeader::Need(n) => Err(n),
            ReadHeader::Rejected(_) => Ok(false),
            ReadHeader::Whole(header) => Ok(header.client_id.is_ok()
                && cx.knows(header.exchange.api_key, header.exchange.api_version)),
        }
    }
}

impl ResponseLane {
    /// Whether the next frame answers a raw SASL token. `Err`: so many bytes must be shown to tell.
    #[cold]
    pub(super) fn is_token(
        &self,
        field: [u8; 4],
        cursor: &Cursor<'_>,
        input: &Input<'_>,
        cx: &Shared,
    ) -> Result<bool, usize> {
        let Some(front) = cx.queue.front().filter(|entry| entry.token) else {
            return Ok(false);
        };
        let only_token = front.answer == Answer::Expected || cx.queue.len() == 1;
        if only_token || i32::from_be_bytes(field) < MIN_RESPONSE {
            return Ok(true);
        }
        match header::read_response(cursor.rest()) {
            Some((_, id)) => Ok(cx.queue.later(id).is_none()),
            None if input.eof => Ok(true),
            None => Err(8),
        }
    }

    #[cold]
    pub(super) fn token(
        &mut self,
        frame_bytes: u64,
        cursor: &mut Cursor<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        cx.queue.pop();
        to.observe(RESPONSE, self.at, Observation::Token { frame_bytes });
        to.observe(RESPONSE, self.at, cx.in_flight());
        self.at = self.at.saturating_add(frame_bytes);
        self.state = response::State::Token;
        match cursor.pass_frame(frame_bytes) {
            0 => None,
            unseen => Some(cursor.owe_and(unseen)),
        }
    }
}
