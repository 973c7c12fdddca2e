//! Turns messages into a table: runs of ops, equal ones stored once.
//!
//! Two readers, two tables. The hot one has the roles that the data path looks for, and what nobody
//! asks for is folded away: fields of fixed size become one skip, structs that cannot be null are
//! written into the one around them, tagged fields without a role inside are left out and pass as
//! unknown ones. The full one tells of every field, with its name.

use crate::message::{Direction, Field, Kind, Message, Scalar, Struct};
use crate::pack::{Packed, pack};
use crate::role::{self, Role};
use crate::row::Row;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, HashMap};

/// How deep the walker's stack is, the message itself included: `MAX_DEPTH` there.
const MAX_DEPTH: usize = 9;

/// Who reads the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Hot,
    Full,
}

/// All layouts for one reader.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) runs: Vec<Run>,
    pub(crate) rows: Vec<Row>,
    pub(crate) tags: Vec<Tag>,
    pub(crate) apis: BTreeMap<i16, Api>,
    /// How many ops there are in all runs.
    ops: usize,
}

/// The ops of a struct, or of the content of a tagged field, up to its end.
#[derive(Debug)]
pub(crate) struct Run {
    /// Where it was met first.
    pub(crate) path: String,
    /// The index of its first op.
    pub(crate) first: u16,
    pub(crate) ops: Vec<Packed>,
}

#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) name: String,
    pub(crate) min_version: i16,
    /// The first op of each version's message.
    pub(crate) first_ops: [Vec<u16>; 2],
}

/// An op, and in the full table whose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) field: Option<Named>,
}

/// The name of a field, empty for an element, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    pub(crate) number: u32,
    pub(crate) first: u16,
}

/// The ops of `klamp_codec::layout::table`, and [`Op::Skip`] until they are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Skip(u16),
    Int(Role, Scalar),
    Uuid(Role),
    Bytes {
        role: Option<Role>,
        length: Length,
        nullable: bool,
    },
    Skipped {
        role: Role,
        length: Length,
        nullable: bool,
    },
    FixedArray {
        length: Length,
        nullable: bool,
        size: u16,
    },
    Array {
        role: Option<Role>,
        length: Length,
        nullable: bool,
        element: u16,
        min: u16,
    },
    NullableStruct {
        told: bool,
        first: u16,
    },
    Struct {
        first: u16,
    },
    Tags {
        first: u16,
        count: u8,
        last: bool,
    },
    Row(u16),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Length {
    Int16,
    Int32,
    Compact,
}

impl Table {
    pub(crate) fn compile(messages: &[Message], reader: Reader) -> Result<Self> {
        let mut compiler = Compiler {
            reader,
            table: Self {
                runs: Vec::new(),
                rows: Vec::new(),
                tags: Vec::new(),
                apis: BTreeMap::new(),
                ops: 0,
            },
            known: HashMap::new(),
            known_tags: HashMap::new(),
            flexible: false,
        };
        for message in messages {
            compiler
                .message(message)
                .with_context(|| format!("{} version {}", message.name, message.key.version))?;
        }
        Ok(compiler.table)
    }

    /// Which row an element is, where it is one that nobody asks for.
    fn silent(&self, element: u16) -> Option<usize> {
        let run = self.runs.iter().find(|run| run.first == element)?;
        match run.ops.first()?.op {
            Op::Row(row) => {
                let row = usize::from(row);
                self.rows[row].is_silent().then_some(row)
            }
            _ => None,
        }
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{} runs, {} ops, {} rows, {} tagged fields",
            self.runs.len(),
            self.ops,
            self.rows.len(),
            self.tags.len()
        )
    }
}

struct Compiler {
    reader: Reader,
    table: Table,
    known: HashMap<Vec<Packed>, u16>,
    known_tags: HashMap<Vec<Tag>, u16>,
    /// Of the message that is being compiled.
    flexible: bool,
}

/// The ops of a struct, its end not yet among them.
#[derive(Default)]
struct Shape {
    ops: Vec<Step>,
    /// The least bytes that it takes.
    min: u16,
    /// How many levels of the walker's stack it takes beneath itself.
    depth: usize,
}

impl Compiler {
    fn message(&mut self, message: &Message) -> Result<()> {
        let key = message.key;
        let mut body = message.body.clone();
        if self.reader == Reader::Hot {
            body.keep_roles(&|role| role::is_hot(role, key));
        }
        self.flexible = message.flexible;
        let mut shape = Shape::default();
        // The header's tagged fields. An ApiVersions response has none, so that a client can read it
        // that does not know its version (KIP-511).
        let bare = key.api_key == 18 && key.direction == Direction::Response;
        if message.flexible && !bare {
            shape.tags(0, 0);
        }
        self.structure(&mut shape, &body, &message.name)?;
        let path = format!("{} v{}", message.name, key.version);
        ensure!(shape.depth < MAX_DEPTH, "deeper than the walker's stack");
        let first = self.run(shape, path)?;
        let name = message.name.strip_suffix("Request").unwrap_or_default();
        let api = self.table.apis.entry(key.api_key).or_insert_with(|| Api {
            name: name.to_owned(),
            min_version: key.version,
            first_ops: Default::default(),
        });
        api.first_ops[key.direction as usize].push(first);
        Ok(())
    }

    /// Adds the fields of a struct.
    fn structure(&mut self, shape: &mut Shape, structure: &Struct, path: &str) -> Result<()> {
        for field in &structure.fields {
            self.field(shape, field, path)?;
        }
        if !self.flexible {
            ensure!(
                structure.tagged.is_empty(),
                "tagged fields in a classic version"
            );
            return Ok(());
        }
        let mut tags = Vec::new();
        for (number, field) in &structure.tagged {
            if self.reader == Reader::Hot && !field.has_role() {
                continue;
            }
            let mut content = Shape::default();
            self.field(&mut content, field, path)?;
            shape.depth = shape.depth.max(content.depth + 1);
            tags.push(Tag {
                number: *number,
                first: self.run(content, format!("{path}, tag {number}"))?,
            });
        }
        let count = tags.len().try_into()?;
        let first = match self.known_tags.get(&tags) {
            Some(first) => *first,
            None => {
                let first = self.table.tags.len().try_into()?;
                self.table.tags.extend(&tags);
                self.known_tags.insert(tags, first);
                first
            }
        };
        shape.tags(first, count);
        Ok(())
    }

    fn field(&mut self, shape: &mut Shape, field: &Field, path: &str) -> Result<()> {
        let role = match self.reader {
            Reader::Hot => field.role,
            Reader::Full => Some(field.role.unwrap_or(Role::Other)),
        };
        let nullable = field.nullable;
        let path = match field.name.as_str() {
            "" => path.to_owned(),
            name => format!("{path}/{name}"),
        };
        let reader = self.reader;
        let named = |kind| {
            (reader == Reader::Full).then(|| Named {
                name: field.name.clone(),
                kind,
            })
        };
        match &field.kind {
            Kind::Scalar(scalar) => {
                let Some(role) = role else {
                    shape.skip(scalar.width());
                    return Ok(());
                };
                let op = match scalar {
                    Scalar::Uuid => Op::Uuid(role),
                    _ => Op::Int(role, *scalar),
                };
                shape.add(op, named(scalar.name()), scalar.width());
            }
            Kind::String | Kind::Bytes | Kind::Records => {
                let (length, kind) = match field.kind {
                    Kind::String => (self.length(Length::Int16), "String"),
                    Kind::Bytes => (self.length(Length::Int32), "Bytes"),
                    _ => (self.length(Length::Int32), "Records"),
                };
                // Where what is withheld stands is all that the data path may know of it.
                let is_records = matches!(field.kind, Kind::Records);
                let is_skipped =
                    |role: &Role| is_records || reader == Reader::Hot && role::is_withheld(*role);
                let op = match role.filter(is_skipped) {
                    Some(role) => Op::Skipped {
                        role,
                        length,
                        nullable,
                    },
                    None => Op::Bytes {
                        role,
                        length,
                        nullable,
                    },
                };
                shape.add(op, named(kind), length.width());
            }
            Kind::Struct(structure) if nullable => {
                let mut content = Shape::default();
                self.structure(&mut content, structure, &path)?;
                shape.depth = shape.depth.max(content.depth + 1);
                let named = named("Struct");
                let first = self.run(content, path)?;
                let told = reader == Reader::Full;
                shape.add(Op::NullableStruct { told, first }, named, 1);
            }
            Kind::Struct(structure) if reader == Reader::Hot => {
                self.structure(shape, structure, &path)?;
            }
            Kind::Struct(structure) => {
                let mut content = Shape::default();
                self.structure(&mut content, structure, &path)?;
                shape.depth = shape.depth.max(content.depth + 1);
                let min = content.min;
                let named = named("Struct");
                let first = self.run(content, path)?;
                shape.add(Op::Struct { first }, named, min);
            }
            Kind::Array(element) => {
                let named = named("Array");
                let mut content = Shape::default();
                match &element.kind {
                    // An element is a level of its own; a struct that it consists of is not.
                    Kind::Struct(structure) if !element.nullable => {
                        self.structure(&mut content, structure, &path)?;
                    }
                    _ => self.field(&mut content, element, &path)?,
                }
                ensure!(content.min > 0, "elements of {path} take no room");
                let length = self.length(Length::Int32);
                let op = match *content.ops.as_slice() {
                    [
                        Step {
                            op: Op::Skip(size), ..
                        },
                    ] if role.is_none() => Op::FixedArray {
                        length,
                        nullable,
                        size,
                    },
                    _ => {
                        shape.depth = shape.depth.max(content.depth + 1);
                        Op::Array {
                            role,
                            length,
                            nullable,
                            min: content.min,
                            element: self.element(content, path, role.is_none())?,
                        }
                    }
                };
                shape.add(op, named, length.width());
            }
        }
        Ok(())
    }

    fn length(&self, classic: Length) -> Length {
        match self.flexible {
            true => Length::Compact,
            false => classic,
        }
    }

    /// The index of the first op of an element, which is a row where it can be one.
    fn element(&mut self, shape: Shape, path: String, untold: bool) -> Result<u16> {
        let mut ops = pack(shape.ops).context(path.clone())?;
        if self.reader == Reader::Hot
            && untold
            && let Some(row) = Row::of(&ops, |element| self.table.silent(element))
        {
            let rows = &mut self.table.rows;
            let known = rows.iter().position(|known| *known == row);
            let index = known.unwrap_or(rows.len());
            if known.is_none() {
                rows.push(row);
            }
            ops.insert(0, Packed::row(index.try_into()?));
        }
        self.packed(ops, path)
    }

    /// The index of the first op of `shape`, packed and stored once.
    fn run(&mut self, shape: Shape, path: String) -> Result<u16> {
        let ops = pack(shape.ops).context(path.clone())?;
        self.packed(ops, path)
    }

    fn packed(&mut self, ops: Vec<Packed>, path: String) -> Result<u16> {
        if let Some(first) = self.known.get(&ops) {
            return Ok(*first);
        }
        let first = self.table.ops.try_into().context("too many ops")?;
        self.table.ops += ops.len();
        self.known.insert(ops.clone(), first);
        self.table.runs.push(Run { path, first, ops });
        Ok(first)
    }
}

impl Shape {
    fn add(&mut self, op: Op, field: Option<Named>, min: u16) {
        self.ops.push(Step { op, field });
        self.min += min;
    }

    fn tags(&mut self, first: u16, count: u8) {
        let last = false;
        self.add(Op::Tags { first, count, last }, None, 1);
    }

    fn skip(&mut self, n: u16) {
        match self.ops.last_mut() {
            Some(Step {
                op: Op::Skip(before),
                ..
            }) => {
                *before += n;
                self.min += n;
            }
            _ => self.add(Op::Skip(n), None, n),
        }
    }
}

impl Length {
    fn width(self) -> u16 {
        match self {
            Self::Int16 => 2,
            Self::Int32 => 4,
            Self::Compact => 1,
        }
    }
}

impl Scalar {
    fn width(self) -> u16 {
        match self {
            Self::Bool | Self::Int8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 => 4,
            Self::Int64 | Self::Float64 => 8,
            Self::Uuid => 16,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bool => "Bool",
            Self::Int8 => "Int8",
            Self::Int16 => "Int16",
            Self::Uint16 => "Uint16",
            Self::Int32 => "Int32",
            Self::Int64 => "Int64",
            Self::Float64 => "Float64",
            Self::Uuid => "Uuid",
        }
    }
}
