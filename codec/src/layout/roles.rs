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
    /// ReplicaId of a request: 0 or more where a broker asks for its own sake.
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
    /// The name of a group.
    GroupId,
    /// A transactional id.
    TransactionalId,
    /// A SASL token (SaslAuthenticate's AuthBytes, both ways): a secret.
    SaslBytes,
    /// What proves or makes an identity (Hmac of delegation tokens, Salt, SaltedPassword): a secret.
    Credential,
    /// The value of a config, which may be a password.
    ConfigValue,
    /// A client's metrics (KIP-714).
    Telemetry,
    /// A request or response inside another, or whose it is (Envelope).
    Envelope,
    /// What the members of a group tell each other or keep beside an offset; the application's own.
    GroupData,
    /// None of the others. Only the full table tells of such fields.
    Other,
    /// The size of a tagged field with a role inside: an edit that changes the length of something in
    /// it changes the size too.
    TagSize,
}

impl Role {
    /// Whether the field's content is nobody's business but the client's and the broker's: it must
    /// not be logged or kept unless somebody has asked for just that.
    pub fn is_secret(self) -> bool {
        matches!(
            self,
            Self::SaslBytes
                | Self::Credential
                | Self::ConfigValue
                | Self::Telemetry
                | Self::Envelope
                | Self::GroupData
        )
    }
    /// Whether the field's content must not be told: secrets and records. Bytes that are neither cannot
    /// get past the generator of the tables, unless they are in its list of those that may be seen.
    pub fn is_withheld(self) -> bool {
        self.is_secret() || self == Self::Records
    }
}
