//! Finalized features that decide how clients use the rows of a version table (KIP-584).
//!
//! The trap: clients trust a feature without looking at the rows again. With `transaction.version` 2
//! a producer no longer adds partitions to its transaction and fails at its first send if Produce is
//! below 12 (KIP-890). So rows and features have to agree, and where they cannot, somebody is told.

use crate::types::ApiKey;
use std::fmt;

/// A feature that decides how clients use the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// `transaction.version` (KIP-890).
    TransactionVersion,
    /// `share.version` (KIP-932).
    ShareVersion,
    /// `streams.version` (KIP-1071).
    StreamsVersion,
}

impl Feature {
    const ALL: [Self; 3] = [
        Self::TransactionVersion,
        Self::ShareVersion,
        Self::StreamsVersion,
    ];

    /// The feature of this name, if it is one of these.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|feature| feature.name().as_bytes() == name)
    }

    /// The feature's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TransactionVersion => "transaction.version",
            Self::ShareVersion => "share.version",
            Self::StreamsVersion => "streams.version",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A feature and the level at which the cluster has finalized it (MaxVersionLevel).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Finalized {
    /// Which feature.
    pub feature: Feature,
    /// MaxVersionLevel.
    pub level: i16,
}

/// The features that a cluster has finalized, of those that decide how clients use the rows: however
/// many a broker tells, no more than these are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FinalizedFeatures([Option<i16>; Feature::ALL.len()]);

impl FinalizedFeatures {
    /// Adds a feature. Of one told more than once the highest level counts.
    pub fn note(&mut self, feature: Feature, level: i16) {
        if let Some(highest) = self.0.get_mut(feature as usize) {
            *highest = (*highest).max(Some(level));
        }
    }

    /// Each feature that is finalized.
    pub fn iter(&self) -> impl Iterator<Item = Finalized> {
        Feature::ALL
            .into_iter()
            .zip(self.0)
            .filter_map(|(feature, level)| {
                Some(Finalized {
                    feature,
                    level: level?,
                })
            })
    }

    /// Whether `at` is finalized at its level or a higher one.
    fn reaches(&self, at: Finalized) -> bool {
        self.iter()
            .any(|it| it.feature == at.feature && it.level >= at.level)
    }
}

/// From this level of a feature on, clients rely on this version of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    /// The feature, and from which level of it on.
    pub from: Finalized,
    /// Which API.
    pub api_key: ApiKey,
    /// The version of it that has to be there at least.
    pub version: i16,
}

/// A key that a finalized feature tells clients to use is hidden from them: they fail. The remedy is
/// `--clamp inspect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BrokenPromise {
    /// The hidden key.
    pub api_key: ApiKey,
    /// The feature that promises it, as finalized.
    pub finalized: Finalized,
}

/// Transactions v2 (KIP-890).
const TRANSACTION_V2: Finalized = Finalized {
    feature: Feature::TransactionVersion,
    level: 2,
};

/// What transactions v2 needs: partitions that Produce and TxnOffsetCommit add to the transaction,
/// and an epoch that each EndTxn raises.
static NEEDS: [Need; 3] = [
    Need {
        from: TRANSACTION_V2,
        api_key: ApiKey::PRODUCE,
        version: 12,
    },
    Need {
        from: TRANSACTION_V2,
        api_key: ApiKey::END_TXN,
        version: 5,
    },
    Need {
        from: TRANSACTION_V2,
        api_key: ApiKey::TXN_OFFSET_COMMIT,
        version: 5,
    },
];

/// From this level of a feature on, clients of it use these keys.
static PROMISES: [(Finalized, &[ApiKey]); 2] = [
    (
        Finalized {
            feature: Feature::ShareVersion,
            level: 1,
        },
        // ShareGroupHeartbeat, ShareGroupDescribe, ShareFetch, ShareAcknowledge
        &[ApiKey(76), ApiKey(77), ApiKey(78), ApiKey(79)],
    ),
    (
        Finalized {
            feature: Feature::StreamsVersion,
            level: 1,
        },
        // StreamsGroupHeartbeat, StreamsGroupDescribe
        &[ApiKey(88), ApiKey(89)],
    ),
];

/// What clients rely on of this key, given what is finalized.
pub(super) fn needs(
    api_key: ApiKey,
    finalized: &FinalizedFeatures,
) -> impl Iterator<Item = &'static Need> {
    NEEDS
        .iter()
        .filter(move |need| need.api_key == api_key && finalized.reaches(need.from))
}

/// Each key that is promised, given what is finalized.
pub(super) fn promises(finalized: &FinalizedFeatures) -> impl Iterator<Item = BrokenPromise> {
    finalized.iter().flat_map(move |it| {
        PROMISES
            .iter()
            .filter(move |(from, _)| from.feature == it.feature && from.level <= it.level)
            .flat_map(|(_, api_keys)| api_keys.iter())
            .map(move |&api_key| BrokenPromise {
                api_key,
                finalized: it,
            })
    })
}
