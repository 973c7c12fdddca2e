//! Why a capture was taken: for metrics one of a few words, for people a line.

use crate::shown::rounded;
use klamp_codec::{ApiKey, CorrelationId, Direction, ErrorCode};
use klamp_metrics::CaptureReason;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Why a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// An answer of this API has this code.
    Code(ApiKey, ErrorCode),
    /// A message of this API and version does not fit its layout.
    Malformed(Direction, ApiKey, i16),
    /// A response with this correlation id answered no request, of which the oldest (if any) has that one.
    Mismatch(CorrelationId, Option<CorrelationId>),
    /// An answer of this API came so late, beyond the wait that was asked for.
    Slow(ApiKey, Duration),
    /// The connection ended so (a label of `klamp_connections_closed_total`) with something undone.
    Close(&'static str),
    /// Somebody asked for it.
    ByHand,
}

impl Reason {
    /// As metrics label it.
    pub(crate) fn kind(self) -> CaptureReason {
        match self {
            Self::Code(_, code) if code.name().is_none() => CaptureReason::Unnamed,
            Self::Code(_, code) if code.is_beyond_kafka_protocol() => CaptureReason::Beyond,
            Self::Code(..) => CaptureReason::ErrorCode,
            Self::Malformed(..) => CaptureReason::Malformed,
            Self::Mismatch(..) => CaptureReason::Mismatch,
            Self::Slow(..) => CaptureReason::Slow,
            Self::Close(_) => CaptureReason::Close,
            Self::ByHand => CaptureReason::ByHand,
        }
    }

    /// What has the same hash is the same trouble, and limited together.
    pub(crate) fn trouble(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Code(api_key, code) => (0, api_key, code.0).hash(&mut hasher),
            Self::Malformed(direction, api_key, version) => {
                (1, direction, api_key, version).hash(&mut hasher);
            }
            Self::Mismatch(..) => 2.hash(&mut hasher),
            Self::Slow(api_key, _) => (3, api_key).hash(&mut hasher),
            Self::Close(label) => (4, label).hash(&mut hasher),
            Self::ByHand => 5.hash(&mut hasher),
        }
        hasher.finish()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(api_key, code) => match code.name() {
                Some(name) => write!(f, "{name} ({}) in {api_key}", code.0),
                None => write!(f, "{code} in {api_key}"),
            },
            Self::Malformed(direction, api_key, version) => {
                let what = direction.name();
                write!(f, "malformed {api_key} {what} of version {version}")
            }
            Self::Mismatch(got, Some(expected)) => {
                write!(f, "mismatch: correlation id {got}, expected {expected}")
            }
            Self::Mismatch(got, None) => {
                write!(f, "mismatch: correlation id {got}, expected no answer")
            }
            Self::Slow(api_key, late) => {
                write!(f, "slow {api_key}: {:?} late", rounded(*late))
            }
            Self::Close(label) => write!(f, "close: {}", in_words(label)),
            Self::ByHand => f.write_str("by hand"),
        }
    }
}

/// How a connection ended, by its label.
fn in_words(label: &'static str) -> &'static str {
    match label {
        "client_in_flight" => "the client closed with requests in flight",
        "broker_in_flight" => "the broker closed with requests in flight",
        "broker_after_acks0" => "the broker closed after a Produce with acks=0",
        "broker_after_opaque" => "the broker closed after a request that klamp cannot read",
        "client_reset" => "the client reset the connection with requests in flight",
        "broker_reset" => "the broker reset the connection with requests in flight",
        "stalled_request" => "a request stalled half-received",
        "stalled_response" => "a response stalled half-received",
        other => other,
    }
}
