//! One row of a version table: what a broker offers of one API, what we speak of it, and what the
//! clamp policy makes of the row.
//!
//! The trap: the broker's minimum is never raised. Old librdkafka stops compressing when the minimum
//! of Produce is above 0, so 4.x brokers go on telling 0 though they refuse it (KAFKA-18659).

use super::features::{self, Finalized, Need};
use crate::session::Clamp;
use crate::types::{ApiKey, VersionRange};
use std::fmt;

/// A range of versions as a broker wrote it: its minimum may exceed its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    /// MinVersion.
    pub min: i16,
    /// MaxVersion.
    pub max: i16,
}

impl Offer {
    /// The versions offered; `None` where the minimum exceeds the maximum.
    pub fn range(self) -> Option<VersionRange> {
        VersionRange::new(self.min, self.max)
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.min, self.max)
    }
}

/// What a broker offers of one API, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// The wire code, known or not.
    pub api_key: ApiKey,
    /// What the broker offers.
    pub broker: Offer,
    /// What we have a schema for; `None` where nothing.
    pub ours: Option<VersionRange>,
    /// What the policy makes of the row.
    pub fate: Fate,
}

impl Row {
    /// The versions that the broker offers and we have a schema for.
    pub fn negotiated(&self) -> Option<VersionRange> {
        self.broker.range()?.intersect(self.ours?)
    }

    /// How many versions the broker offers beyond our highest: all of them where we have no schema.
    pub fn versions_ahead(&self) -> u16 {
        let Some(broker) = self.broker.range() else {
            return 0;
        };
        let read = match self.ours {
            Some(ours) => i32::from(ours.max()).max(i32::from(broker.min()).saturating_sub(1)),
            None => i32::from(broker.min()).saturating_sub(1),
        };
        let ahead = i32::from(broker.max()).saturating_sub(read).max(0);
        u16::try_from(ahead).unwrap_or(u16::MAX)
    }

    /// The row as the client gets to see it; `None` where it is hidden.
    pub fn shown(&self) -> Option<Offer> {
        self.fate.apply(self.broker)
    }
}

/// What the clamp policy makes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The client sees the row as the broker wrote it.
    Kept,
    /// The client sees this lower maximum, since the broker is ahead of us.
    Lowered {
        /// The maximum shown.
        to: i16,
    },
    /// The client does not see the row.
    Hidden(Hidden),
    /// The row would be lowered or hidden, but a finalized feature has clients rely on a version that
    /// would then be missing: they see the row as the broker wrote it.
    Spared(&'static Need),
}

/// Why a row is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hidden {
    /// We have no schema for the key.
    NoSchema,
    /// We have none of the versions offered.
    NoOverlap,
}

impl Fate {
    /// What `policy` makes of an offer, given what we speak of the key and what is finalized.
    pub(crate) fn under(
        policy: Clamp,
        api_key: ApiKey,
        broker: Offer,
        ours: Option<VersionRange>,
        finalized: &[Finalized],
    ) -> Self {
        let clamped = match policy {
            Clamp::Off => return Self::Kept,
            Clamp::Encode => Self::clamped(broker, ours),
        };
        let spared = features::needs(api_key, finalized).find(|need| {
            clamped != Self::Kept
                && clamped
                    .apply(broker)
                    .is_none_or(|shown| shown.max < need.version)
        });
        spared.map_or(clamped, Self::Spared)
    }

    /// The maximum is the lower of both, the minimum stays the broker's; what nobody could use is hidden.
    fn clamped(broker: Offer, ours: Option<VersionRange>) -> Self {
        let Some(ours) = ours else {
            return Self::Hidden(Hidden::NoSchema);
        };
        match broker.range().and_then(|range| range.intersect(ours)) {
            None => Self::Hidden(Hidden::NoOverlap),
            Some(common) if common.max() < broker.max => Self::Lowered { to: common.max() },
            Some(_) => Self::Kept,
        }
    }

    /// The offer as the client gets to see it; `None` where it is hidden.
    fn apply(self, broker: Offer) -> Option<Offer> {
        match self {
            Self::Kept | Self::Spared(_) => Some(broker),
            Self::Lowered { to } => Some(Offer { max: to, ..broker }),
            Self::Hidden(_) => None,
        }
    }
}
