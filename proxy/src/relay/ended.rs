//! Why a connection ended: the one list of reasons, and the only place where their labels live
//! (`klamp_connections_closed_total{reason}`), so that metrics, logs and code cannot drift apart.

use klamp_codec::Direction;
use klamp_codec::observation::CloseReason;
use std::io;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As the session says.
    Session(CloseReason),
    /// A peer's socket failed.
    Lost(Side, Loss),
    /// The broker could not be reached.
    DialFailed,
    /// More connections than `--max-connections`.
    Limit,
    /// Still open when the drain timeout was over.
    DrainTimeout,
    /// All connections together hold as many bytes as the process may.
    HoldBudget,
    /// The session broke its contract with the relay: a bug of ours.
    Broken,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Whoever connected to us.
    Client,
    /// Whom we connected to.
    Broker,
}

impl Side {
    /// The direction that this side sends.
    pub(crate) const fn sends(self) -> Direction {
        match self {
            Self::Client => Direction::Request,
            Self::Broker => Direction::Response,
        }
    }
}

/// How a socket failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The peer reset the connection, or does not take bytes any more.
    Reset,
    /// The peer vanished: neither data nor keepalive probes were acknowledged.
    TimedOut,
    /// Anything else.
    Other(io::ErrorKind),
}

impl From<io::ErrorKind> for Loss {
    fn from(kind: io::ErrorKind) -> Self {
        use io::ErrorKind::{
            BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut,
        };
        match kind {
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected => Self::Reset,
            TimedOut => Self::TimedOut,
            other => Self::Other(other),
        }
    }
}

impl Ended {
    /// The value of the label `reason`: lower case, stable, bounded in number.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Session(reason) => match reason {
                CloseReason::Client => "client",
                CloseReason::ClientInFlight => "client_in_flight",
                CloseReason::Broker => "broker",
                CloseReason::BrokerInFlight => "broker_in_flight",
                CloseReason::BrokerAfterAcks0 => "broker_after_acks0",
                CloseReason::BrokerAfterOpaque => "broker_after_opaque",
                CloseReason::Rejected(Direction::Request, _) => "rejected_request",
                CloseReason::Rejected(Direction::Response, _) => "rejected_response",
                CloseReason::Mismatch => "mismatch",
                CloseReason::Malformed => "malformed",
                CloseReason::HoldLimit => "hold_limit",
                CloseReason::Stalled(Direction::Request) => "stalled_request",
                CloseReason::Stalled(Direction::Response) => "stalled_response",
                CloseReason::Drained => "drained",
            },
            Self::Lost(Side::Client, Loss::Reset) => "client_reset",
            Self::Lost(Side::Client, Loss::TimedOut) => "client_timed_out",
            Self::Lost(Side::Client, Loss::Other(_)) => "client_error",
            Self::Lost(Side::Broker, Loss::Reset) => "broker_reset",
            Self::Lost(Side::Broker, Loss::TimedOut) => "broker_timed_out",
            Self::Lost(Side::Broker, Loss::Other(_)) => "broker_error",
            Self::DialFailed => "dial_failed",
            Self::Limit => "limit",
            Self::DrainTimeout => "drain_timeout",
            Self::HoldBudget => "hold_budget",
            Self::Broken => "internal",
        }
    }
}
