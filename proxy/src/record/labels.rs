//! What the values of the codec are called in metrics.

use klamp_codec::Direction;
use klamp_codec::observation::{self, RejectReason};
use klamp_metrics::{OpaqueReason, Outcome};

pub(super) fn opaque_reason(reason: observation::OpaqueReason) -> OpaqueReason {
    match reason {
        observation::OpaqueReason::UnknownKey => OpaqueReason::UnknownKey,
        observation::OpaqueReason::UnknownVersion => OpaqueReason::UnknownVersion,
        observation::OpaqueReason::NoLayout => OpaqueReason::NoLayout,
        observation::OpaqueReason::Malformed => OpaqueReason::Malformed,
        observation::OpaqueReason::Mismatch => OpaqueReason::Mismatch,
        observation::OpaqueReason::NonKafka => OpaqueReason::NonKafka,
    }
}

pub(super) fn direction_label(direction: Direction) -> &'static str {
    match direction {
        Direction::Request => "request",
        Direction::Response => "response",
    }
}

pub(super) fn reject_label(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::NegativeLength => "negative_length",
        RejectReason::TooShort => "too_short",
        RejectReason::TooLarge => "too_large",
        RejectReason::Tls => "tls",
        RejectReason::Http => "http",
    }
}

#[inline(always)]
pub(super) fn outcome(outcome: observation::Outcome) -> Outcome {
    match outcome {
        observation::Outcome::Ok => Outcome::Ok,
        observation::Outcome::Error => Outcome::Error,
        observation::Outcome::Opaque => Outcome::Opaque,
    }
}
