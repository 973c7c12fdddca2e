//! What a field means to klamp, whatever its name is in its message.

/// The meaning of a field. Fields without one are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// An error code, at any depth (int16).
    ErrorCode,
    /// ThrottleTimeMs (int32, milliseconds).
    ThrottleTime,
    /// Acks of a Produce request (int16).
    Acks,
    /// How long the request asks the broker to wait at most (int32, milliseconds).
    Wait,
    /// ClientSoftwareName.
    SoftwareName,
    /// ClientSoftwareVersion.
    SoftwareVersion,
    /// Mechanism of a SaslHandshake request.
    Mechanism,
    /// A topic's name.
    TopicName,
    /// A topic's id (uuid, 16 bytes).
    TopicId,
    /// The id of a broker that clients may connect to; its host and port follow.
    NodeId,
    /// The host of a broker that clients may connect to.
    Host,
    /// The port of a broker that clients may connect to.
    Port,
    /// ReplicaId of a Fetch request: 0 or more on a broker's own fetches.
    ReplicaId,
    /// A record set.
    Records,
    /// The array of an ApiVersions response's rows: its count, and `Element` at each row's start.
    VersionRows,
    /// ApiKey of a row.
    RowKey,
    /// MinVersion of a row.
    RowMin,
    /// MaxVersion of a row.
    RowMax,
    /// The name of a finalized feature.
    FinalizedFeature,
    /// MaxVersionLevel of a finalized feature.
    FinalizedLevel,
    /// The size of a tagged field with a role inside: an edit that changes the length of something in
    /// it changes the size too.
    TagSize,
}
