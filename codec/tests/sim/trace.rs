//! What came of a stream: output, edits, observations and end, as values that compare.
//!
//! Two runs of the same stream must give equal traces. Steps are no part of it, since they may differ;
//! nor is the order between the two directions, since the cut decides it.

use klamp_codec::layout::WalkError;
use klamp_codec::observation::{
    CloseReason, Exchange, Observation, Observer, OpaqueReason, Outcome, RejectReason, VerdictCause,
};
use klamp_codec::versions::VersionTable;
use klamp_codec::{ApiKey, CorrelationId, Direction, ErrorCode};
use std::sync::Arc;
use std::time::Duration;

/// All that one run of a script gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Client to broker.
    pub request: Side,
    /// Broker to client.
    pub response: Side,
    /// Requests that still wait for an answer.
    pub in_flight: usize,
    /// How the connection ended, if it did.
    pub end: End,
}

/// One direction of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// What was written.
    pub output: Vec<u8>,
    /// Where the output is not what came in; neighbours are merged, since a cut may split them.
    pub edits: Vec<Edit>,
    /// What was seen, at which offset of the incoming stream.
    pub seen: Vec<(u64, Seen)>,
    /// Whether this half was shut down.
    pub finished: bool,
}

/// Bytes taken away, and what was written in their place.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Offset in the incoming stream.
    pub at: u64,
    /// What was taken away.
    pub dropped: Vec<u8>,
    /// What was written instead.
    pub with: Vec<u8>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// It goes on.
    Open,
    /// Both halves were shut down in order.
    Finished(CloseReason),
    /// The session closed both at once.
    Closed(CloseReason),
    /// A peer was lost, and the session had no reason to give.
    Lost(Direction),
}

/// An [`Observation`] that owns what it says and compares.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    RequestHead {
        exchange: Exchange,
        client_id: Option<Vec<u8>>,
        frame_bytes: u64,
    },
    Software {
        name: Vec<u8>,
        version: Vec<u8>,
    },
    Acks(i16),
    ReplicaFetch {
        replica_id: i32,
    },
    RequestEnd {
        exchange: Exchange,
        frame_bytes: u64,
    },
    ResponseHead {
        exchange: Exchange,
        frame_bytes: u64,
        latency: Option<Duration>,
        wait: Option<Duration>,
        has_layout: bool,
    },
    Errors {
        exchange: Exchange,
        code: ErrorCode,
        count: u32,
    },
    Throttle {
        api_key: ApiKey,
        time: Duration,
    },
    ResponseEnd {
        exchange: Exchange,
        frame_bytes: u64,
        outcome: Outcome,
    },
    Answered {
        exchange: Exchange,
    },
    Learned(Arc<VersionTable>),
    Hole {
        bytes: u32,
        records: bool,
    },
    Token {
        frame_bytes: u64,
    },
    Opaque {
        exchange: Exchange,
        reason: OpaqueReason,
        fault: Option<WalkError>,
    },
    Trailing {
        exchange: Exchange,
        bytes: u32,
    },
    Mismatch {
        expected: Option<CorrelationId>,
        got: CorrelationId,
    },
    Rejected {
        reason: RejectReason,
        length: i32,
    },
    Verdict {
        exchange: Exchange,
        cause: VerdictCause,
        topics: String,
    },
    RawTokens {
        begins: bool,
    },
    Unseen(OpaqueReason),
    BrokerAddress {
        node_id: i32,
        host: Vec<u8>,
        port: i32,
    },
}

impl Trace {
    /// One direction.
    pub fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::Request => &self.request,
            Direction::Response => &self.response,
        }
    }

    /// Why the connection ended.
    pub fn reason(&self) -> CloseReason {
        match self.end {
            End::Open | End::Lost(_) => panic!("no reason is given: {self:#?}"),
            End::Finished(reason) | End::Closed(reason) => reason,
        }
    }
}

impl Side {
    /// What was seen, without offsets.
    pub fn what(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().map(|(_, what)| what)
    }

    /// Whether `what` was seen.
    pub fn saw(&self, what: &Seen) -> bool {
        self.what().any(|seen| seen == what)
    }

    /// The correlation ids of the request heads, in order.
    pub fn heads(&self) -> Vec<i32> {
        self.what()
            .filter_map(|seen| match seen {
                Seen::RequestHead { exchange, .. } | Seen::ResponseHead { exchange, .. } => {
                    Some(exchange.correlation_id.0)
                }
                _ => None,
            })
            .collect()
    }

    /// The correlation ids of the requests that ended, in order.
    pub fn requests(&self) -> Vec<i32> {
        self.what()
            .filter_map(|seen| match seen {
                Seen::RequestEnd { exchange, .. } => Some(exchange.correlation_id.0),
                _ => None,
            })
            .collect()
    }

    /// Of each response that ended, its correlation id and outcome.
    pub fn responses(&self) -> Vec<(i32, Outcome)> {
        self.what()
            .filter_map(|seen| match seen {
                Seen::ResponseEnd {
                    exchange, outcome, ..
                } => Some((exchange.correlation_id.0, *outcome)),
                _ => None,
            })
            .collect()
    }

    /// Every (correlation id, error code, count), sorted; a frame's count of a code may be told in parts.
    pub fn errors(&self) -> Vec<(i32, i16, u32)> {
        let mut counts = std::collections::BTreeMap::new();
        for seen in self.what() {
            if let Seen::Errors {
                exchange,
                code,
                count,
            } = seen
            {
                *counts
                    .entry((exchange.correlation_id.0, code.0))
                    .or_default() += count;
            }
        }
        counts
            .into_iter()
            .map(|((id, code), count)| (id, code, count))
            .collect()
    }

    /// Every (correlation id, reason) of frames that nobody here read.
    pub fn opaque(&self) -> Vec<(i32, OpaqueReason)> {
        self.what()
            .filter_map(|seen| match seen {
                Seen::Opaque {
                    exchange, reason, ..
                } => Some((exchange.correlation_id.0, *reason)),
                _ => None,
            })
            .collect()
    }

    /// What was rejected, and the length that stood there.
    pub fn rejected(&self) -> Vec<(RejectReason, i32)> {
        self.what()
            .filter_map(|seen| match seen {
                Seen::Rejected { reason, length } => Some((*reason, *length)),
                _ => None,
            })
            .collect()
    }
}

/// The observer of a run.
#[derive(Debug, Default)]
pub struct Tape {
    request: Vec<(u64, Seen)>,
    response: Vec<(u64, Seen)>,
    in_flight: u32,
}

impl Tape {
    /// What was seen in one direction.
    pub fn of(&self, direction: Direction) -> &[(u64, Seen)] {
        match direction {
            Direction::Request => &self.request,
            Direction::Response => &self.response,
        }
    }

    /// How many requests wait for their answers, as last told. Not part of a trace: it moves with both
    /// directions at once.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

impl Observer for Tape {
    fn observe(&mut self, direction: Direction, at: u64, what: Observation<'_>) {
        if let Observation::InFlight(count) = what {
            self.in_flight = count;
            return;
        }
        if let Observation::ResponseHead {
            is_like_last: true,
            exchange,
            latency,
            has_layout,
            ..
        } = what
        {
            let told = (exchange.api_key, exchange.api_version, latency, true);
            let last = self.response.iter().rev().find_map(|(_, seen)| match seen {
                Seen::ResponseHead {
                    exchange,
                    latency,
                    has_layout,
                    ..
                } => Some((
                    exchange.api_key,
                    exchange.api_version,
                    *latency,
                    *has_layout,
                )),
                _ => None,
            });
            assert_eq!(last, Some(told), "is like the last one");
            assert!(has_layout, "is like the last one");
        }
        let list = match direction {
            Direction::Request => &mut self.request,
            Direction::Response => &mut self.response,
        };
        list.push((at, Seen::from(what)));
    }
}

impl From<Observation<'_>> for Seen {
    fn from(what: Observation<'_>) -> Self {
        match what {
            Observation::RequestHead {
                exchange,
                client_id,
                frame_bytes,
            } => Self::RequestHead {
                exchange,
                client_id: client_id.map(<[u8]>::to_vec),
                frame_bytes,
            },
            Observation::Software { name, version } => Self::Software {
                name: name.to_vec(),
                version: version.to_vec(),
            },
            Observation::Acks(acks) => Self::Acks(acks),
            Observation::ReplicaFetch { replica_id } => Self::ReplicaFetch { replica_id },
            Observation::RequestEnd {
                exchange,
                frame_bytes,
            } => Self::RequestEnd {
                exchange,
                frame_bytes,
            },
            Observation::ResponseHead {
                exchange,
                frame_bytes,
                latency,
                wait,
                has_layout,
                is_like_last: _, // which depends on the cut
            } => Self::ResponseHead {
                exchange,
                frame_bytes,
                latency,
                wait,
                has_layout,
            },
            Observation::Errors {
                exchange,
                code,
                count,
            } => Self::Errors {
                exchange,
                code,
                count,
            },
            Observation::Throttle { api_key, time } => Self::Throttle { api_key, time },
            Observation::ResponseEnd {
                exchange,
                frame_bytes,
                outcome,
            } => Self::ResponseEnd {
                exchange,
                frame_bytes,
                outcome,
            },
            Observation::Answered { exchange } => Self::Answered { exchange },
            Observation::Learned(table) => Self::Learned(Arc::clone(table)),
            Observation::Hole { bytes, records } => Self::Hole { bytes, records },
            Observation::Token { frame_bytes } => Self::Token { frame_bytes },
            Observation::Opaque {
                exchange,
                reason,
                fault,
            } => Self::Opaque {
                exchange,
                reason,
                fault,
            },
            Observation::Trailing { exchange, bytes } => Self::Trailing { exchange, bytes },
            Observation::Mismatch { expected, got } => Self::Mismatch { expected, got },
            Observation::Rejected { reason, length } => Self::Rejected { reason, length },
            Observation::Verdict {
                exchange,
                cause,
                topics,
            } => Self::Verdict {
                exchange,
                cause,
                topics: topics.to_owned(),
            },
            Observation::RawTokens { begins } => Self::RawTokens { begins },
            Observation::Unseen(reason) => Self::Unseen(reason),
            Observation::BrokerAddress {
                node_id,
                host,
                port,
            } => Self::BrokerAddress {
                node_id,
                host: host.to_vec(),
                port,
            },
            Observation::InFlight(_) => unreachable!("the tape keeps it apart"),
        }
    }
}
