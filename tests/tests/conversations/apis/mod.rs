//! The APIs that are spoken: their messages in several versions, flexible and not, with everything that
//! is withheld anywhere.

mod configs;
mod connecting;
mod data;
mod groups;

use super::writer::Writer;

/// What a message says beyond what is made up.
pub(crate) struct Terms {
    pub(crate) acks: i16,
    pub(crate) mechanism: &'static str,
    /// The code in the answer to SaslHandshake.
    pub(crate) handshake_error: i16,
    /// Where brokers are said to be.
    pub(crate) port: u16,
}

type Write = fn(&mut Writer<'_>, i16, &Terms);

/// An API of Kafka.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) name: &'static str,
    pub(crate) key: i16,
    pub(crate) versions: std::ops::RangeInclusive<i16>,
    pub(crate) flexible_from: i16,
    /// How often it is chosen, beside others.
    pub(crate) weight: usize,
    pub(crate) request: Write,
    pub(crate) response: Write,
}

pub(crate) const API_VERSIONS: i16 = 18;
pub(crate) const PRODUCE: i16 = 0;
pub(crate) const METADATA: i16 = 3;
pub(crate) const SASL_HANDSHAKE: i16 = 17;
pub(crate) const SASL_AUTHENTICATE: i16 = 36;

/// The API of that key.
pub(crate) fn api(key: i16) -> &'static Api {
    let found = ALL.iter().find(|api| api.key == key);
    found.expect("it is one of them")
}

/// Any but SaslHandshake, upon which tokens follow.
pub(crate) fn any(rng: &mut fastrand::Rng) -> &'static Api {
    let mut chosen = rng.usize(..ALL.iter().map(|api| api.weight).sum::<usize>());
    let is_it = |api: &&Api| {
        let is_it = chosen < api.weight;
        chosen = chosen.wrapping_sub(api.weight);
        is_it
    };
    ALL.iter().find(is_it).expect("the weights add up")
}

static ALL: [Api; 12] = [
    Api {
        name: "ApiVersions",
        key: API_VERSIONS,
        versions: 0..=4,
        flexible_from: 3,
        weight: 2,
        request: connecting::api_versions,
        response: connecting::api_versions_answer,
    },
    Api {
        name: "Metadata",
        key: METADATA,
        versions: 1..=12,
        flexible_from: 9,
        weight: 3,
        request: connecting::metadata,
        response: connecting::metadata_answer,
    },
    Api {
        name: "SaslHandshake",
        key: SASL_HANDSHAKE,
        versions: 0..=1,
        flexible_from: i16::MAX,
        weight: 0,
        request: connecting::handshake,
        response: connecting::handshake_answer,
    },
    Api {
        name: "SaslAuthenticate",
        key: SASL_AUTHENTICATE,
        versions: 0..=2,
        flexible_from: 2,
        weight: 1,
        request: connecting::authenticate,
        response: connecting::authenticate_answer,
    },
    Api {
        name: "Produce",
        key: PRODUCE,
        versions: 3..=13,
        flexible_from: 9,
        weight: 6,
        request: data::produce,
        response: data::produce_answer,
    },
    Api {
        name: "Fetch",
        key: 1,
        versions: 4..=17,
        flexible_from: 12,
        weight: 6,
        request: data::fetch,
        response: data::fetch_answer,
    },
    Api {
        name: "JoinGroup",
        key: 11,
        versions: 5..=9,
        flexible_from: 6,
        weight: 2,
        request: groups::join,
        response: groups::join_answer,
    },
    Api {
        name: "SyncGroup",
        key: 14,
        versions: 3..=5,
        flexible_from: 4,
        weight: 2,
        request: groups::sync,
        response: groups::sync_answer,
    },
    Api {
        name: "OffsetCommit",
        key: 8,
        versions: 7..=9,
        flexible_from: 8,
        weight: 1,
        request: groups::commit,
        response: groups::commit_answer,
    },
    Api {
        name: "IncrementalAlterConfigs",
        key: 44,
        versions: 0..=1,
        flexible_from: 1,
        weight: 2,
        request: configs::alter,
        response: configs::alter_answer,
    },
    Api {
        name: "DescribeConfigs",
        key: 32,
        versions: 1..=4,
        flexible_from: 4,
        weight: 2,
        request: configs::describe,
        response: configs::describe_answer,
    },
    Api {
        name: "CreateTopics",
        key: 19,
        versions: 4..=7,
        flexible_from: 5,
        weight: 1,
        request: configs::create,
        response: configs::create_answer,
    },
];

/// An error code of a partition or topic: mostly none, now and then one that no library knows.
fn code(w: &mut Writer<'_>, unnamed: f64) -> i16 {
    if w.chance(unnamed) {
        w.has_unnamed_code = true;
        return w.rng.i16(300..2000);
    }
    w.pick(&[0, 0, 0, 3, 5, 6])
}
