//! Holds an ApiVersions answer until all of it is there, then passes or replaces it. It is the one
//! message that is held whole: what its rows may become depends on the features behind them.

use super::cursor::Cursor;
use super::response::{ResponseLane, State};
use super::shared::Shared;
use super::{Input, Step};
use crate::clamp::{Malformed, clamp};
use crate::layout::Root;
use crate::observation::{CloseReason, Exchange, Observation, Observer, OpaqueReason};
use crate::types::{ApiKey, Direction, ErrorCode};

const RESPONSE: Direction = Direction::Response;

/// Largest ApiVersions answer that is held to be rewritten, in bytes. Brokers send less than 2 KiB.
pub const MAX_HELD: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) exchange: Exchange,
    pub(super) frame_bytes: u64,
}

impl ResponseLane {
    /// Waits until an ApiVersions answer is whole, then passes or replaces it.
    pub(super) fn held(
        &mut self,
        held: Held,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let Held {
            exchange,
            frame_bytes,
        } = held;
        if let Some(owed) = cursor.owed() {
            return Some(owed);
        }
        let size = usize::try_from(frame_bytes).unwrap_or(usize::MAX);
        if frame_bytes > MAX_HELD {
            let opaque = Observation::Opaque {
                exchange,
                reason: OpaqueReason::Malformed,
                fault: None,
            };
            return self.unreadable(held, opaque, CloseReason::HoldLimit, cursor, cx, to);
        }
        let Some(frame) = cursor.rest().get(..size) else {
            return Some(self.need(size, cursor, input, cx));
        };
        let clamped = match clamp(frame, exchange.api_version, cx.policy.clamp) {
            Ok(clamped) => clamped,
            Err(why) => {
                let (reason, fault) = match why {
                    Malformed::Version { .. } => (OpaqueReason::NoLayout, None),
                    Malformed::Layout(fault) => (OpaqueReason::Malformed, Some(fault)),
                    _ => (OpaqueReason::Malformed, None),
                };
                let opaque = Observation::Opaque {
                    exchange,
                    reason,
                    fault,
                };
                return self.unreadable(held, opaque, CloseReason::Malformed, cursor, cx, to);
            }
        };
        let table = (clamped.table).and_then(|table| cx.policy.tables.intern(table));
        if let Some(table) = table {
            to.observe(RESPONSE, self.at, Observation::Learned(&table));
            cx.table = Some(table);
        }
        let answered_in = match clamped.error {
            ErrorCode::UNSUPPORTED_VERSION => 0,
            _ => exchange.api_version,
        };
        let root = Root::find(RESPONSE, ApiKey::API_VERSIONS, answered_in);
        let Some(with) = clamped.frame else {
            let (frame, root) = self.enter(exchange, frame_bytes, root, cursor);
            return self.go_on(frame, root, cursor, input, cx, to);
        };
        let start = self.at;
        let mut unsettled = Cursor::new(frame);
        let (mut read, root) = self.enter(exchange, frame_bytes, root, &mut unsettled);
        self.body(&mut read, root, &mut unsettled, to);
        self.at = start.saturating_add(frame_bytes);
        self.end_response(read, cx, to);
        Some(Step::Replace { drop: size, with })
    }

    /// An ApiVersions answer that cannot be read: it may only pass where it need not be rewritten.
    fn unreadable(
        &mut self,
        held: Held,
        opaque: Observation<'_>,
        otherwise: CloseReason,
        cursor: &mut Cursor<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let Held {
            exchange,
            frame_bytes,
        } = held;
        to.observe(RESPONSE, self.at, opaque);
        if cx.rewrites() {
            return Some(Step::Close(otherwise));
        }
        let (frame, _) = self.enter(exchange, frame_bytes, None, cursor);
        self.state = State::Response(frame);
        None
    }
}
