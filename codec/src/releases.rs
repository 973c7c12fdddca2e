//! Which versions of which API the brokers of each Kafka release speak, from 3.9 on: by the release's
//! own message definitions, of its last patch. A version that its brokers speak only when told to
//! (unstable) is not among them.
//!
//! The trap: what a broker lists is more than what it speaks. Those of 4.x list Produce 0 to 2, for
//! the sake of old librdkafka, and refuse them (KAFKA-18659).

use crate::generated::releases::{RELEASES, SPOKEN};
use crate::types::{ApiKey, VersionRange};
use std::fmt;

/// A release of Kafka, as in 4.0. The later is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    major: u16,
    minor: u16,
}

impl Release {
    pub(crate) const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Those that are known here, the oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        RELEASES.into_iter()
    }

    /// The versions that its brokers speak.
    pub fn speaks(self, api_key: ApiKey) -> Option<VersionRange> {
        let index = RELEASES.iter().position(|it| *it == self)?;
        *row(api_key)?.get(index)?
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The releases whose brokers speak `version` of `api_key`, the oldest first.
pub fn spoken_by(api_key: ApiKey, version: i16) -> impl DoubleEndedIterator<Item = Release> {
    Release::all().filter(move |release| {
        let range = release.speaks(api_key);
        range.is_some_and(|range| range.contains(version))
    })
}

/// The first release that does not speak `version` of `api_key` any more. `None` where the newest
/// does, and where none that is known here ever did.
pub fn dropped_in(api_key: ApiKey, version: i16) -> Option<Release> {
    let last = spoken_by(api_key, version).next_back()?;
    Release::all().find(|release| *release > last)
}

fn row(api_key: ApiKey) -> Option<&'static [Option<VersionRange>; RELEASES.len()]> {
    SPOKEN.get(usize::try_from(api_key.0).ok()?)
}
