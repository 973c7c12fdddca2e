//! Holds an ApiVersions answer until all of it is there, then passes or replaces it. It is the one
//! message that is held whole: what its rows may become depends on the features behind them.

use super::cursor::Cursor;
use super::response::{HEADER, Head, ResponseLane};
use super::shared::Shared;
use super::{Input, Step};
use crate::clamp::{Malformed, clamp};
use crate::layout::Root;
use crate::observation::{CloseReason, Observation, Observer, OpaqueReason};
use crate::types::{ApiKey, Direction, ErrorCode};

const RESPONSE: Direction = Direction::Response;

/// Largest ApiVersions answer that is held to be rewritten, in bytes. Brokers send less than 2 KiB.
pub const MAX_HELD: u64 = 1 << 20;

impl ResponseLane {
    /// Waits until an ApiVersions answer is whole, then passes or replaces it.
    #[cold]
    pub(super) fn held(
        &mut self,
        held: Head,
        cursor: &mut Cursor<'_>,
        input: &Input<'_>,
        cx: &mut Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        let Head {
            exchange,
            frame_bytes,
        } = held;
        if let Some(owed) = cursor.owed() {
            return Some(owed);
        }
        let is_too_large = frame_bytes > MAX_HELD;
        let size = match is_too_large {
            true => HEADER,
            false => usize::try_from(frame_bytes).unwrap_or(usize::MAX),
        };
        let Some(frame) = cursor.rest().get(..size) else {
            return Some(self.need(size, cursor, input, cx));
        };
        if is_too_large {
            let opaque = Observation::Opaque {
                exchange,
                reason: OpaqueReason::Malformed,
                fault: None,
            };
            let close = self.unreadable(opaque, CloseReason::HoldLimit, cx, to);
            return close.or_else(|| self.enter(held, None, cursor, input, cx, to));
        }
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
                let close = self.unreadable(opaque, CloseReason::Malformed, cx, to);
                return close.or_else(|| self.enter(held, None, cursor, input, cx, to));
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
            return self.enter(held, root, cursor, input, cx, to);
        };
        // (what is told is what the broker said)
        self.enter(held, root, &mut Cursor::new(frame), input, cx, to);
        Some(Step::Replace { drop: size, with })
    }

    /// An ApiVersions answer that cannot be read: it may only pass where it need not be rewritten.
    fn unreadable(
        &self,
        opaque: Observation<'_>,
        otherwise: CloseReason,
        cx: &Shared,
        to: &mut impl Observer,
    ) -> Option<Step> {
        to.observe(RESPONSE, self.at, opaque);
        cx.rewrites().then_some(Step::Close(otherwise))
    }
}
