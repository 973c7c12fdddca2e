//! What the labels are made of. Whoever knows the protocol fills this in once, at start.

/// Names for the numbers that the wire carries, and what `klamp_build_info` tells.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// klamp's own version.
    pub version: &'static str,
    /// Which release of Kafka the message definitions come from.
    pub kafka_schema: &'static str,
    /// API keys that have a name.
    pub api_keys: Vec<KnownKey>,
    /// Error codes that have a name.
    pub error_codes: Vec<(i16, &'static str)>,
}

/// An API key that has a name.
#[derive(Clone, Copy, Debug)]
pub struct KnownKey {
    /// The number on the wire.
    pub code: i16,
    /// The name, as Kafka spells it.
    pub name: &'static str,
    /// The highest version known here; what is beyond counts as `other`.
    pub max_version: i16,
}
