//! What the body of the response under way tells: its error codes, tallied for the whole frame, the
//! throttle time, and the brokers it sends clients to.

use crate::layout::{Event, Role, Value};
use crate::observation::{Exchange, Observation, Observer, Outcome};
use crate::types::{Direction, ErrorCode};
use std::time::Duration;

const RESPONSE: Direction = Direction::Response;

/// How many different codes of a frame are tallied before the tally is told in part. Frames with
/// thousands of partitions have few different codes.
const CODES: usize = 6;

/// Longest host that is told, in bytes; more of it is cut.
const MOST_HOST: usize = 255;

/// Of one response at a time.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Those in use, and how often each came; the first is 0, which nearly all have.
    codes: [(i16, u32); CODES],
    used: usize,
    /// Which of them came last: the next is most likely the same.
    last: usize,
    any_error: bool,
    node_id: i32,
    host: Vec<u8>,
}

impl Findings {
    #[inline]
    pub(super) fn begin(&mut self) {
        self.clear();
        self.any_error = false;
        if self.host.capacity() > 0 {
            self.host = Vec::new(); // an idle connection keeps no host
        }
    }

    #[inline]
    pub(super) fn outcome(&self) -> Outcome {
        match self.any_error {
            true => Outcome::Error,
            false => Outcome::Ok,
        }
    }

    /// Takes in one field, which stands at `at` in the stream.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        event: Event<'_>,
        at: u64,
        exchange: Exchange,
        to: &mut impl Observer,
    ) {
        let code = match (event.role, event.value) {
            (Role::ErrorCode, Value::Int(code)) => code,
            (Role::ThrottleTime, Value::Int(0)) => return,
            (Role::ThrottleTime, Value::Int(ms)) => return throttled(ms, at, exchange, to),
            _ => return self.take_other(event, at, to),
        };
        match self.codes.get_mut(self.last) {
            // (a frame is too short for more than that)
            Some((last, count)) if i64::from(*last) == code => *count = count.wrapping_add(1),
            _ => self.tally(code, at, exchange, to),
        }
    }

    /// The same for all but error codes and throttling.
    #[inline(never)]
    fn take_other(&mut self, event: Event<'_>, at: u64, to: &mut impl Observer) {
        match (event.role, event.value) {
            (Role::NodeId, Value::Int(node_id)) => {
                self.node_id = i32::try_from(node_id).unwrap_or(-1);
                self.host.clear();
            }
            (Role::Host, Value::Piece(piece, _)) => {
                let room = MOST_HOST.saturating_sub(self.host.len());
                self.host
                    .extend_from_slice(piece.get(..room).unwrap_or(piece));
            }
            (Role::Port, Value::Int(port)) => {
                let address = Observation::BrokerAddress {
                    node_id: self.node_id,
                    host: &self.host,
                    port: i32::try_from(port).unwrap_or(-1),
                };
                to.observe(RESPONSE, at, address);
            }
            _ => {}
        }
    }

    /// Takes in a code that does not follow its like.
    #[inline(never)]
    fn tally(&mut self, code: i64, at: u64, exchange: Exchange, to: &mut impl Observer) {
        let code = i16::try_from(code).unwrap_or_default();
        self.any_error |= code != 0;
        let used = self.codes.iter_mut().take(self.used).enumerate();
        for (index, (known, count)) in used {
            if *known == code {
                *count = count.saturating_add(1);
                self.last = index;
                return;
            }
        }
        if self.used == CODES {
            self.emit(exchange, at, to);
        }
        if let Some(place) = self.codes.get_mut(self.used) {
            *place = (code, 1);
            self.last = self.used;
            self.used = self.used.saturating_add(1);
        }
    }

    /// Tells the tally and begins a new one.
    #[inline]
    pub(super) fn emit(&mut self, exchange: Exchange, at: u64, to: &mut impl Observer) {
        let [(_, count), ..] = self.codes;
        if count > 0 {
            let errors = Observation::Errors {
                exchange,
                code: ErrorCode::NONE,
                count,
            };
            to.observe(RESPONSE, at, errors);
        }
        if self.used > 1 {
            self.emit_others(exchange, at, to);
        }
        self.clear();
    }

    #[inline(never)]
    fn emit_others(&self, exchange: Exchange, at: u64, to: &mut impl Observer) {
        for (code, count) in self.codes.get(1..self.used).unwrap_or_default() {
            let errors = Observation::Errors {
                exchange,
                code: ErrorCode(*code),
                count: *count,
            };
            to.observe(RESPONSE, at, errors);
        }
    }

    #[inline]
    fn clear(&mut self) {
        let [none, ..] = &mut self.codes;
        *none = (0, 0);
        self.used = 1;
        self.last = 0;
    }
}

/// The broker asks its client to stay quiet for so many milliseconds, if more than 0.
// (a way of its own, so that no event is put into memory to be looked at there)
#[inline(never)]
fn throttled(ms: i64, at: u64, exchange: Exchange, to: &mut impl Observer) {
    if ms > 0 {
        let throttle = Observation::Throttle {
            api_key: exchange.api_key,
            time: Duration::from_millis(ms.unsigned_abs()),
        };
        to.observe(RESPONSE, at, throttle);
    }
}
