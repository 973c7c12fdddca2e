//! Finalized features that decide how clients use the rows of a version table (KIP-584).
//!
//! The trap: clients trust a feature without looking at the rows again. With `transaction.version` 2
//! a producer no longer adds partitions to its transaction and fails at its first send if Produce is
//! below 12 (KIP-890). So rows and features have to agree, and where they cannot, somebody is told.

use crate::types::ApiKey;
use std::collections::BTreeMap;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finalized {
    /// Which feature.
    pub feature: Feature,
    /// MaxVersionLevel.
    pub level: i16,
}

/// From this level of the feature on, clients rely on this version of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Need {
    /// Which feature.
    pub feature: Feature,
    /// From which finalized level on.
    pub level: i16,
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

/// What transactions v2 needs: an implicit AddPartitionsToTxn in Produce and in TxnOffsetCommit, an
/// epoch raised by each EndTxn (KIP-890).
static NEEDS: [Need; 3] = [
    Need {
        feature: Feature::TransactionVersion,
        level: 2,
        api_key: ApiKey::PRODUCE,
        version: 12,
    },
    Need {
        feature: Feature::TransactionVersion,
        level: 2,
        api_key: ApiKey::END_TXN,
        version: 5,
    },
    Need {
        feature: Feature::TransactionVersion,
        level: 2,
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
    finalized: &[Finalized],
) -> impl Iterator<Item = &'static Need> {
    NEEDS.iter().filter(move |need| {
        need.api_key == api_key
            && finalized
                .iter()
                .any(|it| it.feature == need.feature && it.level >= need.level)
    })
}

/// Each key that is promised, given what is finalized.
pub(super) fn promises(finalized: &[Finalized]) -> impl Iterator<Item = BrokenPromise> {
    finalized.iter().flat_map(|&finalized| {
        PROMISES
            .iter()
            .filter(move |(from, _)| {
                from.feature == finalized.feature && finalized.level >= from.level
            })
            .flat_map(|(_, api_keys)| api_keys.iter())
            .map(move |&api_key| BrokenPromise { api_key, finalized })
    })
}

/// One entry per feature, with the highest of its levels, ascending by feature.
pub(super) fn highest(finalized: impl IntoIterator<Item = Finalized>) -> Box<[Finalized]> {
    let mut levels = BTreeMap::new();
    for Finalized { feature, level } in finalized {
        let highest = levels.entry(feature).or_insert(level);
        *highest = level.max(*highest);
    }
    levels
        .into_iter()
        .map(|(feature, level)| Finalized { feature, level })
        .collect()
}
