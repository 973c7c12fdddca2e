//! What Kafka's own classes and a walk make of damaged messages: the same, but where Kafka's are known to
//! be laxer or stricter, each of which has a name here.

use crate::walk::{End, Move, walk};
use crate::{Frame, hex};
use klamp_codec::layout::{Fault, Root};
use klamp_codec::{ApiKey, Direction};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Whether these bytes end with a varint that Kafka's int takes for a negative number: it has five bytes,
/// and of the last one the bits that fit count.
fn ends_negative(bytes: &[u8]) -> bool {
    let varint = bytes.last_chunk::<5>();
    varint.is_some_and(|[more @ .., last]| {
        more.iter().all(|byte| *byte >= 0x80) && *last < 0x80 && last & 0x08 != 0
    })
}

/// A body with something wrong in it.
#[derive(Deserialize)]
pub(crate) struct Damaged {
    #[serde(deserialize_with = "hex")]
    body: Vec<u8>,
    /// Bytes that the class left.
    left: usize,
    /// Why it refused it; empty where it did not.
    refusal: String,
}

/// What Kafka's class and a walk make of a damaged body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Both read it, and leave as many bytes.
    Read,
    /// Both refuse it.
    Refused,
    /// Kafka's class does not look at the size of a tagged field that it knows; a walk goes by it.
    KafkaIgnoresTagSize,
    /// Kafka's class takes a count or compact length beyond its int for a negative one: none, or null.
    KafkaReadsNegative,
    /// Kafka's class refuses a tagged field that it knows, but not in this version.
    KafkaRefusesTag,
}

impl Frame {
    /// Holds what a walk makes of damaged bodies against what Kafka's class does.
    pub(crate) fn check_damaged(&self, verdicts: &mut BTreeMap<Verdict, u32>) {
        let root = self.root(Root::find_full);
        // An ApiVersions response has no tagged fields in its header.
        let is_versions =
            ApiKey(self.api_key) == ApiKey::API_VERSIONS && self.direction() == Direction::Response;
        let header: &[u8] = if self.flexible && !is_versions {
            &[0]
        } else {
            &[]
        };
        for damaged in &self.damaged {
            let body = [header, &damaged.body].concat();
            let walked = walk(root, &body, body.len(), |_, _| Move::Feed(usize::MAX));
            let refusal = damaged.refusal.as_str();
            let verdict = match walked.end {
                End::Done(used) if refusal.is_empty() && used + damaged.left == body.len() => {
                    Some(Verdict::Read)
                }
                End::Failed(_) if !refusal.is_empty() => Some(Verdict::Refused),
                End::Failed(error) => match error.fault {
                    Fault::Count(0x7fff_ffff..) => Some(Verdict::KafkaReadsNegative),
                    Fault::Short if ends_negative(&body[..error.at as usize]) => {
                        Some(Verdict::KafkaReadsNegative)
                    }
                    Fault::TagSize | Fault::Short | Fault::Count(_) => {
                        let is_tagged = walked.tags.iter().any(|(at, ..)| *at <= error.at);
                        // Of a tagged field that ends behind the message nothing is told.
                        let is_tag = root.field(error.field).is_none();
                        (is_tagged || is_tag).then_some(Verdict::KafkaIgnoresTagSize)
                    }
                    _ => None,
                },
                End::Done(_) if refusal.contains("not valid for version") => {
                    Some(Verdict::KafkaRefusesTag)
                }
                _ => None,
            };
            let verdict = verdict.unwrap_or_else(|| {
                let (direction, key, version) = (&self.direction, self.api_key, self.api_version);
                let (end, left) = (&walked.end, damaged.left);
                panic!("{direction} {key} v{version}: {end:?}, but {left} {refusal:?}: {body:02x?}")
            });
            *verdicts.entry(verdict).or_default() += 1;
        }
    }
}
