//! One row of a version table: what a broker offers of one API, what we speak of it, and what the
//! clamp policy makes of the row.
//!
//! The trap: the broker's minimum is never raised. Old librdkafka stops compressing when the minimum
//! of Produce is above 0, so 4.x brokers go on telling 0 though they refuse it (KAFKA-18659).

use super::features::{self, FinalizedFeatures, Need};
use crate::session::Clamp;
use crate::types::{ApiKey, VersionRange};
use std::fmt;
use std::hash::{Hash, Hasher};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The wire code, known or not.
    pub api_key: ApiKey,
    /// What the broker offers.
    pub broker: Offer,
    /// What we speak under the clamp policy; `None` where nothing.
    pub ours: Option<VersionRange>,
    /// What the policy makes of the row.
    pub fate: Fate,
}

/// One write for nearly every row: each connection hashes its table, and to do so field by field takes
/// a quarter of all instructions that a short connection costs. What is left out (`ours`, the maximum
/// that a row is lowered to) follows from the rest and the policy.
impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let fate = match self.fate {
            Fate::Kept => 0,
            Fate::Lowered { .. } => 1,
            Fate::Hidden(Hidden::NoSchema) => 2,
            Fate::Hidden(Hidden::NoOverlap) => 3,
            Fate::Spared(_) => 4,
        };
        let key = self.api_key.0.to_be_bytes();
        let (min, max) = (self.broker.min.to_be_bytes(), self.broker.max.to_be_bytes());
        let row = [key[0], key[1], min[0], min[1], max[0], max[1], 0, fate];
        state.write_u64(u64::from_be_bytes(row));
        if let Fate::Spared(need) = self.fate {
            need.hash(state);
        }
    }
}

impl Row {
    /// What the broker offers and we speak.
    pub fn negotiated(&self) -> Option<VersionRange> {
        self.broker.range()?.intersect(self.ours?)
    }

    /// How many versions the broker offers beyond our highest: all of them where we have none.
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
        finalized: &FinalizedFeatures,
    ) -> Self {
        let clamped = match policy {
            Clamp::Off => return Self::Kept,
            Clamp::Encode | Clamp::Inspect => Self::clamped(broker, ours),
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

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]
mod tests {
    use super::super::Feature;
    use super::*;
    use std::hash::BuildHasher;

    const fn offer(min: i16, max: i16) -> Offer {
        Offer { min, max }
    }

    fn transaction_version(level: i16) -> FinalizedFeatures {
        let mut finalized = FinalizedFeatures::default();
        finalized.note(Feature::TransactionVersion, level);
        finalized
    }

    #[test]
    fn a_maximum_is_the_lower_of_both_and_what_nobody_could_use_is_hidden() {
        let no_schema = Fate::Hidden(Hidden::NoSchema);
        let no_overlap = Fate::Hidden(Hidden::NoOverlap);
        let cases = [
            // what the broker offers, what we speak, what the client sees
            (offer(0, 4), VersionRange::new(0, 4), Fate::Kept),
            (offer(0, 3), VersionRange::new(0, 4), Fate::Kept),
            (
                offer(0, 5),
                VersionRange::new(0, 4),
                Fate::Lowered { to: 4 },
            ),
            (
                offer(0, i16::MAX),
                VersionRange::new(0, 0),
                Fate::Lowered { to: 0 },
            ),
            // the minimum stays the broker's, on either side of ours
            (
                offer(0, 5),
                VersionRange::new(3, 4),
                Fate::Lowered { to: 4 },
            ),
            (
                offer(4, 5),
                VersionRange::new(3, 4),
                Fate::Lowered { to: 4 },
            ),
            (offer(0, 2), VersionRange::new(3, 4), no_overlap),
            (offer(5, 6), VersionRange::new(3, 4), no_overlap),
            (offer(5, 3), VersionRange::new(3, 4), no_overlap),
            (
                offer(i16::MAX, i16::MIN),
                VersionRange::new(0, 9),
                no_overlap,
            ),
            (offer(-1, -1), VersionRange::new(0, 9), no_overlap),
            (offer(0, 9), None, no_schema),
            (offer(5, 3), None, no_schema),
        ];
        for (broker, ours, expected) in cases {
            let none = FinalizedFeatures::default();
            let fate = Fate::under(Clamp::Encode, ApiKey::FETCH, broker, ours, &none);
            assert_eq!(fate, expected, "broker {broker}, ours {ours:?}");
            if let Some(shown) = fate.apply(broker) {
                assert_eq!(shown.min, broker.min, "broker {broker}, ours {ours:?}");
            }
            let off = Fate::under(Clamp::Off, ApiKey::FETCH, broker, ours, &none);
            assert_eq!(off, Fate::Kept);
        }
    }

    #[test]
    fn rows_that_transactions_v2_needs_are_never_lowered_below_what_it_needs() {
        let needed = [
            (ApiKey::PRODUCE, 12),
            (ApiKey::END_TXN, 5),
            (ApiKey::TXN_OFFSET_COMMIT, 5),
        ];
        for (api_key, version) in needed {
            for level in -1..=4 {
                for ours in 0..=version + 2 {
                    let broker = offer(0, version + 1);
                    let finalized = transaction_version(level);
                    let ours = VersionRange::new(0, ours);
                    let fate = Fate::under(Clamp::Encode, api_key, broker, ours, &finalized);
                    let clamped = Fate::clamped(broker, ours);
                    let told = format!("{api_key} at level {level}, ours {ours:?}: {fate:?}");
                    match fate {
                        Fate::Spared(need) => {
                            assert!(level >= 2, "{told}");
                            assert_eq!((need.api_key, need.version), (api_key, version));
                            assert!(clamped.apply(broker).unwrap().max < version, "{told}");
                        }
                        other => {
                            assert_eq!(other, clamped, "{told}");
                            let shown = other.apply(broker).unwrap();
                            assert!(level < 2 || shown.max >= version, "{told}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_is_spared_only_where_it_would_change() {
        let v2 = transaction_version(2);
        let fate = |broker, ours| Fate::under(Clamp::Encode, ApiKey::PRODUCE, broker, ours, &v2);
        // The broker itself has no Produce 12, we could read more: nothing to spare.
        assert_eq!(fate(offer(0, 9), VersionRange::new(3, 13)), Fate::Kept);
        assert!(matches!(
            fate(offer(0, 9), VersionRange::new(3, 8)),
            Fate::Spared(_)
        ));
        assert!(matches!(fate(offer(0, 12), None), Fate::Spared(_)));
        assert!(matches!(
            fate(offer(12, 13), VersionRange::new(3, 11)),
            Fate::Spared(_)
        ));
        // Fetch is no part of transactions v2.
        let fetch = Fate::under(Clamp::Encode, ApiKey::FETCH, offer(0, 12), None, &v2);
        assert_eq!(fetch, Fate::Hidden(Hidden::NoSchema));
    }

    #[test]
    fn versions_ahead_counts_what_the_broker_offers_above_ours() {
        let ahead = |broker, ours| {
            let fate = Fate::Kept;
            Row {
                api_key: ApiKey::FETCH,
                broker,
                ours,
                fate,
            }
            .versions_ahead()
        };
        assert_eq!(ahead(offer(0, 4), VersionRange::new(0, 4)), 0);
        assert_eq!(ahead(offer(0, 3), VersionRange::new(0, 4)), 0);
        assert_eq!(ahead(offer(0, 6), VersionRange::new(0, 4)), 2);
        assert_eq!(ahead(offer(6, 6), VersionRange::new(0, 4)), 1);
        assert_eq!(ahead(offer(0, 1), None), 2);
        assert_eq!(ahead(offer(3, 2), None), 0);
        assert_eq!(ahead(offer(i16::MIN, i16::MAX), None), u16::MAX);
    }

    #[test]
    fn rows_hash_apart_where_the_broker_or_what_becomes_of_them_differs() {
        let row = |api_key, broker, fate| Row {
            api_key: ApiKey(api_key),
            broker,
            ours: None,
            fate,
        };
        let need = features::needs(ApiKey::PRODUCE, &transaction_version(2)).next();
        let fates = [
            Fate::Kept,
            Fate::Lowered { to: 11 },
            Fate::Hidden(Hidden::NoSchema),
            Fate::Hidden(Hidden::NoOverlap),
            Fate::Spared(need.unwrap()),
        ];
        let same_offer = fates.map(|fate| row(0, offer(0, 12), fate));
        let others = [(1, 0, 12), (0, 1, 12), (0, 0, 13), (0, 12, 0)];
        let others = others.map(|(key, min, max)| row(key, offer(min, max), Fate::Kept));
        let hasher = std::hash::RandomState::new();
        let rows = same_offer.iter().chain(&others);
        let hashes: std::collections::HashSet<_> = rows.map(|row| hasher.hash_one(row)).collect();
        assert_eq!(hashes.len(), fates.len() + others.len());
    }
}
