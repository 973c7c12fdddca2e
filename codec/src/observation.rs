//! What a session says about the bytes that pass it. Observations borrow from the bytes or from the
//! session; an observer copies what it wants to keep. They come in wire order for each direction.

use crate::layout::WalkError;
use crate::types::{ApiKey, CorrelationId, Direction, ErrorCode};
use crate::versions::VersionTable;
use std::sync::Arc;
use std::time::Duration;

/// Receives what a session sees. Called on the hot path: implementations neither block nor allocate
/// for what happens on every message.
pub trait Observer {
    /// `at` is the offset in the stream of `direction` (bytes as received, from the connection's
    /// start) at which the thing observed ends or, for frames, begins.
    fn observe(&mut self, direction: Direction, at: u64, what: Observation<'_>);

    /// Up to which offset in the stream of `direction` holes are worth telling. Asked again and again, behind
    /// one that was told: a frame may have thousands, of which an observer may want to hear of a few only.
    fn holes_upto(&self, _direction: Direction) -> u64 {
        u64::MAX
    }
}

/// Names a request: what its response is matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request's API key.
    pub api_key: ApiKey,
    /// The request's API version.
    pub api_version: i16,
    /// The request's correlation id.
    pub correlation_id: CorrelationId,
}

/// One thing that a session saw.
#[derive(Clone, Debug)]
pub enum Observation<'a> {
    /// A request's header is known. `client_id` is `None` where null; it need not be UTF-8.
    RequestHead {
        /// Which request.
        exchange: Exchange,
        /// The client id as it stands in the header.
        client_id: Option<&'a [u8]>,
        /// Bytes of the frame, its length field included.
        frame_bytes: u64,
    },
    /// Client software as told by ApiVersions v3+ (KIP-511). Neither need be UTF-8.
    Software {
        /// ClientSoftwareName.
        name: &'a [u8],
        /// ClientSoftwareVersion.
        version: &'a [u8],
    },
    /// The acks field of a Produce request: -1, 0, 1, or what the client wrote.
    Acks(i16),
    /// A Fetch by another broker, which replicates: ReplicaId is 0 or more, where consumers have -1.
    ReplicaFetch {
        /// The broker that asks.
        replica_id: i32,
    },
    /// A request has been received to its last byte.
    RequestEnd {
        /// Which request.
        exchange: Exchange,
        /// Bytes of the frame, its length field included.
        frame_bytes: u64,
    },
    /// How many requests are now in the queue, waiting for their answer. Comes with each change; a
    /// Produce with acks=0 leaves the queue as soon as its acks are read.
    InFlight(u32),
    /// A response begins.
    ResponseHead {
        /// Which request it answers.
        exchange: Exchange,
        /// Bytes of the frame, its length field included.
        frame_bytes: u64,
        /// From the request fully received to the response's first byte; `None` where the response
        /// came before the request ended.
        latency: Option<Duration>,
        /// Whether it is known that there is a layout, and that key, version and latency are those of the
        /// response before. That depends on what came together: it saves work, and says nothing.
        is_like_last: bool,
        /// How long the request itself asked the broker to wait at most (Fetch's MaxWaitMs), if it did.
        wait: Option<Duration>,
        /// Whether there is a layout to read it by. Where there is none, `Opaque` tells of it only if it
        /// has not told of the request.
        has_layout: bool,
    },
    /// `count` times `code` in the response that is about to end, `NONE` included.
    Errors {
        /// Which request was answered.
        exchange: Exchange,
        /// The code, named or not.
        code: ErrorCode,
        /// How often, at any depth.
        count: u32,
    },
    /// ThrottleTimeMs of a response, where above zero.
    Throttle {
        /// Which API.
        api_key: ApiKey,
        /// How long the broker asks the client to stay quiet.
        time: Duration,
    },
    /// A response has been passed on to its last byte.
    ResponseEnd {
        /// Which request was answered.
        exchange: Exchange,
        /// Bytes of the frame as received, its length field included.
        frame_bytes: u64,
        /// What is known of how it went.
        outcome: Outcome,
    },
    /// klamp answered a request itself (an ApiVersions version that nobody here knows).
    Answered {
        /// Which request was answered.
        exchange: Exchange,
    },
    /// The broker told its versions; from now on this is the connection's table.
    Learned(&'a Arc<VersionTable>),
    /// What nobody but the client and the broker may see begins at `at`: the content of records, or of a
    /// field that is withheld. Nothing else is told of it.
    Hole {
        /// Bytes of it.
        bytes: u32,
        /// Whether it is records, the heads of whose batches may be seen.
        records: bool,
    },
    /// A frame was passed on without being understood.
    Opaque {
        /// Which request, or the request that the response answers.
        exchange: Exchange,
        /// Why it was not understood.
        reason: OpaqueReason,
        /// Where and in what the body did not fit its layout, from where its walk began (behind the
        /// client id of a request or the correlation id of a response).
        fault: Option<WalkError>,
    },
    /// A message is over before its frame is, and what follows is not read. Kafka's own readers leave
    /// it unread too.
    Trailing {
        /// Which request, or the request that the response answers.
        exchange: Exchange,
        /// How many bytes follow.
        bytes: u32,
    },
    /// From here on the whole connection is relayed unseen.
    Unseen(OpaqueReason),
    /// A broker that an answer sends clients to: Metadata, FindCoordinator, DescribeCluster, and the
    /// new leaders that Produce, Fetch, ShareFetch and ShareAcknowledge tell of.
    BrokerAddress {
        /// NodeId; -1 where there is none.
        node_id: i32,
        /// Host; need not be UTF-8, cut after 255 bytes; empty where there is none.
        host: &'a [u8],
        /// Port; -1 where there is none.
        port: i32,
    },
    /// A response that answers no request in the queue.
    Mismatch {
        /// The oldest request that expects an answer, if any.
        expected: Option<CorrelationId>,
        /// What came instead.
        got: CorrelationId,
    },
    /// Bytes that are no frame: the connection is about to be closed, or relayed unseen.
    Rejected {
        /// What was wrong.
        reason: RejectReason,
        /// The four bytes that stand where a length should be, read as one.
        length: i32,
    },
    /// The broker closed with this as the last thing it was sent: the request was most likely the cause.
    Verdict {
        /// The request.
        exchange: Exchange,
        /// What kind of request it was.
        cause: VerdictCause,
        /// For acks=0: names of topics in the last Produce request (a bounded number), else empty.
        topics: &'a str,
    },
    /// A frame without a header begins: a raw SASL token, which is passed without being looked at.
    Token {
        /// Bytes of the frame, its length field included.
        frame_bytes: u64,
    },
    /// Frames without headers follow until authentication ends (SaslHandshake v0), or ordinary
    /// frames follow again.
    RawTokens {
        /// Whether the phase begins or ends.
        begins: bool,
    },
}

/// What is known of a response once it has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Read to its end, no error code other than 0.
    Ok,
    /// An error code other than 0 at some depth.
    Error,
    /// Not read to its end: what its error codes say is not known.
    Opaque,
}

/// Why a frame was passed on without being understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpaqueReason {
    /// The API key is not known here.
    UnknownKey,
    /// The key is known, this version of it is not.
    UnknownVersion,
    /// Key and version are known, but the layout table does not read this message.
    NoLayout,
    /// The message does not fit its layout.
    Malformed,
    /// The whole connection is relayed unseen since a response answered no request.
    Mismatch,
    /// The whole connection is relayed unseen since what came is not Kafka.
    NonKafka,
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// A negative length.
    NegativeLength,
    /// Shorter than the smallest header.
    TooShort,
    /// Longer than the limit of its direction.
    TooLarge,
    /// A TLS ClientHello or other TLS record.
    Tls,
    /// An HTTP request or response.
    Http,
}

/// What kind of request a broker closed the connection upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerdictCause {
    /// A Produce with acks=0, whose failure has no other sign.
    Acks0,
    /// A key or version that nobody here reads.
    Opaque,
}

/// Why a connection ended, as far as the session decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The client closed first, with nothing in flight.
    Client,
    /// The client closed first while answers were on their way or a frame was incomplete.
    ClientInFlight,
    /// The broker closed first, with nothing in flight.
    Broker,
    /// The broker closed first while requests were waiting for their answers or a frame was incomplete.
    BrokerInFlight,
    /// The broker closed right after a Produce with acks=0 as the last request.
    BrokerAfterAcks0,
    /// The broker closed upon a request that nobody here reads.
    BrokerAfterOpaque,
    /// What came is no frame.
    Rejected(Direction, RejectReason),
    /// A response answered no request in the queue.
    Mismatch,
    /// A message that must be rewritten does not fit its layout.
    Malformed,
    /// A message that must be rewritten is larger than what may be held.
    HoldLimit,
    /// A frame stopped arriving.
    Stalled(Direction),
    /// Drained for shutdown.
    Drained,
}
