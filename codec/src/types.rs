//! The protocol's small vocabulary: codes and ids as types of their own, so that mixing them does
//! not compile. A code that nobody here knows is a value like any other, never an error.

use std::fmt;

/// An API key, as it stands on the wire. Any number is a key; [`ApiKey::name`] tells whether we know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKey(pub i16);

#[allow(missing_docs)]
impl ApiKey {
    pub const PRODUCE: Self = Self(0);
    pub const FETCH: Self = Self(1);
    pub const METADATA: Self = Self(3);
    pub const CONTROLLED_SHUTDOWN: Self = Self(7);
    pub const SASL_HANDSHAKE: Self = Self(17);
    pub const API_VERSIONS: Self = Self(18);
    pub const END_TXN: Self = Self(26);
    pub const TXN_OFFSET_COMMIT: Self = Self(28);
}

/// An error code of a response. 0 is `NONE`; any number is a code, named or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

impl ErrorCode {
    /// No error.
    pub const NONE: Self = Self(0);
    /// The version of a request is not one that the broker speaks.
    pub const UNSUPPORTED_VERSION: Self = Self(35);
}

/// Matches a response to its request on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorrelationId(pub i32);

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An inclusive range of versions; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionRange {
    min: i16,
    max: i16,
}

impl VersionRange {
    /// `None` where `min > max`.
    pub const fn new(min: i16, max: i16) -> Option<Self> {
        if min > max {
            None
        } else {
            Some(Self { min, max })
        }
    }

    /// The lowest version in the range.
    pub const fn min(self) -> i16 {
        self.min
    }

    /// The highest version in the range.
    pub const fn max(self) -> i16 {
        self.max
    }

    /// Whether `version` is in the range.
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// What both ranges have in common; `None` where they do not overlap.
    pub fn intersect(self, other: Self) -> Option<Self> {
        Self::new(self.min.max(other.min), self.max.min(other.max))
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.min, self.max)
    }
}

/// Which way bytes travel: requests from client to broker, responses back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Client to broker.
    Request,
    /// Broker to client.
    Response,
}

impl Direction {
    /// What travels that way: `request` or `response`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }
}
