//! What the values of the codec are called in metrics.

use klamp_codec::observation;
use klamp_metrics::{Direction, OpaqueReason, Outcome, RejectReason};

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

pub(super) fn direction(direction: klamp_codec::Direction) -> Direction {
    match direction {
        klamp_codec::Direction::Request => Direction::Request,
        klamp_codec::Direction::Response => Direction::Response,
    }
}

pub(super) fn reject_reason(reason: observation::RejectReason) -> RejectReason {
    match reason {
        observation::RejectReason::NegativeLength => RejectReason::NegativeLength,
        observation::RejectReason::TooShort => RejectReason::TooShort,
        observation::RejectReason::TooLarge => RejectReason::TooLarge,
        observation::RejectReason::Tls => RejectReason::Tls,
        observation::RejectReason::Http => RejectReason::Http,
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
