//! Messages filled at random and written by `kafka-protocol`, each with what a walk must tell of it.

use crate::{requests, responses};
use bytes::{Bytes, BytesMut};
use fastrand::Rng;
use kafka_protocol::protocol::{Encodable, Message, StrBytes};
use klamp_codec::layout::Role;
use klamp_codec::{ApiKey, Direction};
use std::collections::BTreeMap;
use std::fmt;
use uuid::Uuid;

/// What a walk tells, without where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    Int(Role, i64),
    /// A string or uuid, its pieces joined.
    Text(Role, Vec<u8>),
    Null(Role),
    Skipped(Role, usize),
    Count(Role, usize),
    Element(Role),
    Struct(Role),
    End(Role),
}

/// A message without its header's fixed part, and what is in it.
#[derive(Clone)]
pub struct Sample {
    pub direction: Direction,
    pub api_key: ApiKey,
    pub api_version: i16,
    pub flexible: bool,
    /// What follows the client id or correlation id.
    pub bytes: Vec<u8>,
    /// In the order of the bytes, without the tagged fields' sizes.
    pub facts: Vec<Fact>,
}

impl Sample {
    /// What the data path's table tells: it has nothing that nobody there looks for.
    pub fn hot_facts(&self) -> Vec<Fact> {
        let names_are_hot = self.api_key == ApiKey::PRODUCE && self.direction == Direction::Request;
        let is_hot = |fact: &&Fact| match fact {
            Fact::Null(role) | Fact::Text(role, _) => match role {
                Role::TopicName | Role::TopicId => names_are_hot,
                role => *role != Role::Records,
            },
            Fact::Skipped(..) => false,
            _ => true,
        };
        self.facts.iter().filter(is_hot).cloned().collect()
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (direction, key, version) = (self.direction, self.api_key.0, self.api_version);
        write!(
            f,
            "{direction:?} {key} v{version}, {} bytes",
            self.bytes.len()
        )?;
        let start = &self.bytes[..self.bytes.len().min(500)];
        write!(f, ": {start:02x?}")
    }
}

/// Every message in every version that `kafka-protocol` writes.
pub fn one_of_each(rng: &mut Rng) -> Vec<Sample> {
    use Direction::{Request, Response};
    let mut all = Vec::new();
    add(
        &mut all,
        rng,
        Request,
        ApiKey::PRODUCE,
        9,
        requests::produce_request,
    );
    add(
        &mut all,
        rng,
        Response,
        ApiKey::PRODUCE,
        9,
        responses::produce_response,
    );
    add(
        &mut all,
        rng,
        Request,
        ApiKey::FETCH,
        12,
        requests::fetch_request,
    );
    add(
        &mut all,
        rng,
        Response,
        ApiKey::FETCH,
        12,
        responses::fetch_response,
    );
    add(
        &mut all,
        rng,
        Request,
        ApiKey::METADATA,
        9,
        requests::metadata_request,
    );
    add(
        &mut all,
        rng,
        Response,
        ApiKey::METADATA,
        9,
        responses::metadata_response,
    );
    let none = i16::MAX;
    add(
        &mut all,
        rng,
        Request,
        ApiKey::SASL_HANDSHAKE,
        none,
        requests::sasl_handshake_request,
    );
    add(
        &mut all,
        rng,
        Response,
        ApiKey::SASL_HANDSHAKE,
        none,
        responses::sasl_handshake_response,
    );
    add(
        &mut all,
        rng,
        Request,
        ApiKey::API_VERSIONS,
        3,
        requests::api_versions_request,
    );
    add(
        &mut all,
        rng,
        Response,
        ApiKey::API_VERSIONS,
        3,
        responses::api_versions_response,
    );
    all
}

fn add<M: Encodable + Message>(
    all: &mut Vec<Sample>,
    rng: &mut Rng,
    direction: Direction,
    api_key: ApiKey,
    first_flexible: i16,
    fill: impl Fn(&mut Fill<'_>) -> M,
) {
    for api_version in M::VERSIONS.min..=M::VERSIONS.max {
        let flexible = api_version >= first_flexible;
        let mut filling = Fill {
            rng,
            version: api_version,
            flexible,
            facts: Vec::new(),
        };
        let mut bytes = BytesMut::new();
        if flexible && (direction, api_key) != (Direction::Response, ApiKey::API_VERSIONS) {
            bytes.extend(filling.header_tags());
        }
        let message = fill(&mut filling);
        message.encode(&mut bytes, api_version).unwrap();
        all.push(Sample {
            direction,
            api_key,
            api_version,
            flexible,
            bytes: bytes.to_vec(),
            facts: filling.facts,
        });
    }
}

/// Fills one message, and notes what a walk must tell of it.
pub struct Fill<'a> {
    rng: &'a mut Rng,
    pub version: i16,
    flexible: bool,
    pub facts: Vec<Fact>,
}

impl Fill<'_> {
    /// `value` is in the message, with a role.
    pub fn int<T: Into<i64> + Copy>(&mut self, role: Role, value: T) -> T {
        self.facts.push(Fact::Int(role, value.into()));
        value
    }

    pub fn text(&mut self, role: Role, value: StrBytes) -> StrBytes {
        self.facts.push(Fact::Text(role, value.as_bytes().to_vec()));
        value
    }

    pub fn id(&mut self, role: Role, value: Uuid) -> Uuid {
        self.facts.push(Fact::Text(role, value.as_bytes().to_vec()));
        value
    }

    pub fn i16(&mut self) -> i16 {
        self.rng.i16(..)
    }

    pub fn i32(&mut self) -> i32 {
        self.rng.i32(..)
    }

    pub fn i64(&mut self) -> i64 {
        self.rng.i64(..)
    }

    pub fn bool(&mut self) -> bool {
        self.rng.bool()
    }

    pub fn uuid(&mut self) -> Uuid {
        Uuid::from_u128(self.rng.u128(..))
    }

    /// How many elements an array has: often none or few, now and then so many that their count
    /// takes a second byte.
    pub fn len(&mut self) -> usize {
        match self.rng.u8(..) {
            0..60 => 0,
            60..120 => 1,
            120..252 => self.rng.usize(2..5),
            252.. => self.rng.usize(126..300),
        }
    }

    /// Often short, now and then so long that its length takes a second byte.
    pub fn string(&mut self) -> StrBytes {
        let len = match self.rng.u8(..) {
            0..30 => 0,
            30..240 => self.rng.usize(1..20),
            240.. => self.rng.usize(120..400),
        };
        StrBytes::from_string((0..len).map(|_| self.rng.alphanumeric()).collect())
    }

    pub fn nullable<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.rng.u8(..) > 60).then(|| value(self))
    }

    pub fn array<T>(&mut self, mut element: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.len()).map(|_| element(self)).collect()
    }

    pub fn records(&mut self) -> Option<Bytes> {
        let records = self.nullable(|fill| {
            let len = match fill.rng.u8(..) {
                0..30 => 0,
                30..220 => fill.rng.usize(1..100),
                220.. => fill.rng.usize(100..20_000),
            };
            Bytes::from((0..len).map(|_| fill.rng.u8(..)).collect::<Vec<_>>())
        });
        self.facts.push(match &records {
            None => Fact::Null(Role::Records),
            Some(records) => Fact::Skipped(Role::Records, records.len()),
        });
        records
    }

    /// Tagged fields that no definition knows.
    pub fn tags(&mut self) -> BTreeMap<i32, Bytes> {
        let mut tags = BTreeMap::new();
        if self.flexible && self.rng.u8(..) < 40 {
            for _ in 0..self.rng.u8(1..4) {
                let number = match self.rng.u8(0..3) {
                    0 => self.rng.i32(50..128),
                    1 => self.rng.i32(128..20_000),
                    _ => self.rng.i32(20_000..),
                };
                let len = self.rng.usize(0..150);
                tags.insert(number, Bytes::from(vec![self.rng.u8(..); len]));
            }
        }
        tags
    }

    fn header_tags(&mut self) -> Vec<u8> {
        match self.rng.u8(..) {
            0..200 => vec![0],
            // Tag 0 is known in bodies, but not in headers; then one with long varints.
            _ => vec![
                2, 0, 2, 0xff, 0xff, 0x80, 0x80, 0x80, 0, 0x81, 0x80, 0x80, 0x80, 0, 1,
            ],
        }
    }
}
