//! Turns message definitions into the table: one layout per version, equal ones stored once.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    reason = "it reads this crate's own constants, which a test compiles, and no peer's bytes"
)]

use super::super::Role;
use super::super::table::{Api, Int, Length, Op, Roots, Table, Tag};
use crate::types::{ApiKey, Direction};
use std::collections::HashMap;
use std::num::NonZeroU16;

/// The first and the last version that something is in.
pub(super) type Versions = (i16, i16);

const NEVER: Versions = (i16::MAX, i16::MIN);

/// A request or response.
pub(super) struct Message {
    pub(super) api_key: ApiKey,
    pub(super) direction: Direction,
    pub(super) versions: Versions,
    /// The first flexible version.
    pub(super) flexible: Option<i16>,
    pub(super) fields: &'static [Field],
}

/// A field of a struct.
pub(super) struct Field {
    kind: Kind,
    versions: Versions,
    nullable: Versions,
    tag: Option<u32>,
    role: Option<Role>,
}

enum Kind {
    Int(Int),
    Uuid,
    String,
    Records,
    Struct(&'static [Field]),
    /// An array of structs.
    Array(&'static [Field]),
    /// An array of anything else.
    List(&'static Field),
}

pub(super) const fn bool(versions: Versions) -> Field {
    Field::new(Kind::Int(Int::Int8), versions)
}
pub(super) const fn int8(versions: Versions) -> Field {
    Field::new(Kind::Int(Int::Int8), versions)
}
pub(super) const fn int16(versions: Versions) -> Field {
    Field::new(Kind::Int(Int::Int16), versions)
}
pub(super) const fn int32(versions: Versions) -> Field {
    Field::new(Kind::Int(Int::Int32), versions)
}
pub(super) const fn int64(versions: Versions) -> Field {
    Field::new(Kind::Int(Int::Int64), versions)
}
pub(super) const fn uuid(versions: Versions) -> Field {
    Field::new(Kind::Uuid, versions)
}
pub(super) const fn string(versions: Versions) -> Field {
    Field::new(Kind::String, versions)
}
pub(super) const fn records(versions: Versions) -> Field {
    Field::new(Kind::Records, versions).role(Role::Records)
}
pub(super) const fn structure(versions: Versions, fields: &'static [Field]) -> Field {
    Field::new(Kind::Struct(fields), versions)
}
pub(super) const fn array(versions: Versions, fields: &'static [Field]) -> Field {
    Field::new(Kind::Array(fields), versions)
}
pub(super) const fn list(versions: Versions, element: &'static Field) -> Field {
    Field::new(Kind::List(element), versions)
}

impl Field {
    const fn new(kind: Kind, versions: Versions) -> Self {
        Self {
            kind,
            versions,
            nullable: NEVER,
            tag: None,
            role: None,
        }
    }

    pub(super) const fn nullable(self, nullable: Versions) -> Self {
        Self { nullable, ..self }
    }

    pub(super) const fn tag(self, number: u32) -> Self {
        Self {
            tag: Some(number),
            ..self
        }
    }

    pub(super) const fn role(self, role: Role) -> Self {
        Self {
            role: Some(role),
            ..self
        }
    }
}

/// The table of all `messages`.
pub(super) fn compile(messages: &[Message]) -> Table {
    let mut builder = Builder::default();
    let roots = |builder: &mut Builder, api_key, direction| {
        let message = messages
            .iter()
            .find(|message| message.api_key == api_key && message.direction == direction);
        message.map_or(Roots::NONE, |message| builder.message(message))
    };
    let last = messages.iter().map(|message| message.api_key.0).max();
    let apis = (0..=last.expect("some messages"))
        .map(|key| Api {
            request: roots(&mut builder, ApiKey(key), Direction::Request),
            response: roots(&mut builder, ApiKey(key), Direction::Response),
        })
        .collect::<Vec<_>>();
    Table {
        ops: builder.ops.leak(),
        tags: builder.tags.leak(),
        apis: apis.leak(),
    }
}

#[derive(Default)]
struct Builder {
    ops: Vec<Op>,
    tags: Vec<Tag>,
    /// Where each run of ops is.
    runs: HashMap<Vec<Op>, u16>,
    /// Where each run of tagged fields is.
    tag_runs: HashMap<Vec<Tag>, u16>,
}

/// The ops of a struct, its end not yet among them, and the least bytes that it takes.
#[derive(Default)]
struct Shape {
    ops: Vec<Op>,
    min: u16,
}

impl Builder {
    fn message(&mut self, message: &Message) -> Roots {
        let (min, max) = message.versions;
        let first_ops = (min..=max)
            .map(|version| {
                let flexible = message.flexible.is_some_and(|first| version >= first);
                let mut shape = Shape::default();
                // The header's. An ApiVersions response has none, so that it can be read by a client
                // that does not know its version.
                let bare = message.api_key == ApiKey::API_VERSIONS
                    && message.direction == Direction::Response;
                if flexible && !bare {
                    shape.add(Op::Tags { first: 0, count: 0 }, 1);
                }
                self.fields(&mut shape, message.fields, version, flexible);
                self.run(shape)
            })
            .collect::<Vec<_>>();
        Roots {
            min_version: min,
            first_ops: first_ops.leak(),
        }
    }

    /// Adds the fields of a struct.
    fn fields(&mut self, shape: &mut Shape, fields: &[Field], version: i16, flexible: bool) {
        let mut tags = Vec::new();
        for field in fields
            .iter()
            .filter(|field| within(field.versions, version))
        {
            match field.tag {
                None => self.field(shape, field, version, flexible),
                Some(number) => {
                    let mut content = Shape::default();
                    self.field(&mut content, field, version, flexible);
                    let first = self.run(content);
                    tags.push(Tag { number, first });
                }
            }
        }
        if flexible {
            let count = tags.len().try_into().expect("few tagged fields");
            let first = match self.tag_runs.get(&tags) {
                Some(first) => *first,
                None => {
                    let first = index(self.tags.len());
                    self.tags.extend_from_slice(&tags);
                    self.tag_runs.insert(tags, first);
                    first
                }
            };
            shape.add(Op::Tags { first, count }, 1);
        }
    }

    fn field(&mut self, shape: &mut Shape, field: &Field, version: i16, flexible: bool) {
        let role = field.role;
        let nullable = within(field.nullable, version);
        let long = if flexible {
            Length::Compact
        } else {
            Length::Int32
        };
        let short = if flexible {
            Length::Compact
        } else {
            Length::Int16
        };
        match (&field.kind, role) {
            (Kind::Int(int), None) => shape.skip(width(*int)),
            (Kind::Int(int), Some(role)) => shape.add(Op::Int(role, *int), width(*int)),
            (Kind::Uuid, None) => shape.skip(16),
            (Kind::Uuid, Some(role)) => shape.add(Op::Uuid(role), 16),
            (Kind::String, _) => {
                let length = short;
                let op = Op::Bytes {
                    role,
                    length,
                    nullable,
                };
                shape.add(op, length_width(length));
            }
            (Kind::Records, _) => {
                let length = long;
                let role = role.expect("records have a role");
                let op = Op::Skipped {
                    role,
                    length,
                    nullable,
                };
                shape.add(op, length_width(length));
            }
            (Kind::Struct(fields), _) if nullable => {
                let mut content = Shape::default();
                self.fields(&mut content, fields, version, flexible);
                let first = self.run(content);
                shape.add(Op::NullableStruct { first }, 1);
            }
            (Kind::Struct(fields), _) => {
                let mut content = Shape::default();
                self.fields(&mut content, fields, version, flexible);
                let min = content.min;
                let first = self.run(content);
                shape.add(Op::Struct { first }, min);
            }
            (Kind::Array(fields), _) => {
                let mut element = Shape::default();
                self.fields(&mut element, fields, version, flexible);
                self.array(shape, element, role, long, nullable);
            }
            (Kind::List(field), _) => {
                let mut element = Shape::default();
                self.field(&mut element, field, version, flexible);
                self.array(shape, element, role, long, nullable);
            }
        }
    }

    fn array(
        &mut self,
        shape: &mut Shape,
        element: Shape,
        role: Option<Role>,
        length: Length,
        nullable: bool,
    ) {
        let op = match (element.ops.as_slice(), role) {
            (&[Op::Skip(size)], None) => Op::FixedArray {
                length,
                nullable,
                size,
            },
            _ => Op::Array {
                role,
                length,
                nullable,
                min: NonZeroU16::new(element.min).expect("elements take room"),
                element: self.run(element),
            },
        };
        shape.add(op, length_width(length));
    }

    /// The index of the first op of `shape`, stored once.
    fn run(&mut self, shape: Shape) -> u16 {
        let mut ops = shape.ops;
        ops.push(Op::End);
        if let Some(first) = self.runs.get(&ops) {
            return *first;
        }
        let first = index(self.ops.len());
        self.ops.extend_from_slice(&ops);
        self.runs.insert(ops, first);
        first
    }
}

impl Shape {
    fn add(&mut self, op: Op, min: u16) {
        self.ops.push(op);
        self.min += min;
    }

    fn skip(&mut self, n: u16) {
        self.min += n;
        match self.ops.last_mut() {
            Some(Op::Skip(before)) => *before += n,
            _ => self.ops.push(Op::Skip(n)),
        }
    }
}

fn within((min, max): Versions, version: i16) -> bool {
    min <= version && version <= max
}

fn index(len: usize) -> u16 {
    len.try_into().expect("fewer than 65,536 ops")
}

fn width(int: Int) -> u16 {
    match int {
        Int::Int8 => 1,
        Int::Int16 => 2,
        Int::Int32 => 4,
        Int::Int64 => 8,
    }
}

fn length_width(length: Length) -> u16 {
    match length {
        Length::Int16 => 2,
        Length::Int32 => 4,
        Length::Compact => 1,
    }
}
