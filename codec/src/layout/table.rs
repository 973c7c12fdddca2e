//! The layout table: which fields follow which, for each API, direction and version.
//!
//! It is specialised per version, so that whoever reads it knows nothing of versions: each struct is
//! a run of ops up to one that ends it, and ops name other structs by the index of their first.
//! Equal runs are stored once. What nobody asks for is folded away: fields of fixed size without a
//! role become bytes before the next op, tagged fields without a role inside are left out and pass
//! as unknown ones.
//!
//! A table is plain static data, so there can be several for the one walker. Facts that it keeps:
//! structs do not contain themselves, and an element of an array takes at least one byte.

use super::{Field, FieldId, Fields, Role, Row};
use crate::types::{ApiKey, Direction, VersionRange};
use std::num::NonZeroU16;

/// All layouts of one kind of reader.
#[derive(Debug)]
pub(crate) struct Table {
    /// The runs of ops of all structs.
    pub(crate) ops: &'static [Op],
    /// What [`Op::Row`]s read.
    pub(crate) rows: &'static [Row],
    /// The known tagged fields of all structs.
    pub(crate) tags: &'static [Tag],
    /// By API key, from 0 on; a key without layouts has empty ones.
    pub(crate) apis: &'static [Api],
    /// Only in the full table.
    pub(crate) fields: Option<&'static Fields>,
}

/// Where the layouts of one API are.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) request: Roots,
    pub(crate) response: Roots,
}

/// Where the layouts of one direction of an API are.
#[derive(Debug)]
pub(crate) struct Roots {
    /// The version that the first of `first_ops` is for; each further version follows.
    pub(crate) min_version: i16,
    /// The first op of each version's message, the tagged fields of its header included.
    pub(crate) first_ops: &'static [u16],
}

impl Roots {
    fn versions(&self) -> Option<VersionRange> {
        let after = i16::try_from(self.first_ops.len()).ok()?;
        let max = self.min_version.checked_add(after)?.checked_sub(1)?;
        VersionRange::new(self.min_version, max)
    }
}

/// A tagged field with something of interest inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    /// The tag.
    pub(crate) number: u32,
    /// The first op of its content.
    pub(crate) first: u16,
}

/// One step of a layout: `before` bytes of fields of fixed size that nobody asks for, then one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// A bool or integer of one byte with a role.
    Int8 { before: u8, role: Role },
    /// An integer of two bytes with a role. All are big-endian.
    Int16 { before: u8, role: Role },
    /// An integer of two bytes without a sign with a role.
    Uint16 { before: u8, role: Role },
    /// An integer of four bytes with a role.
    Int32 { before: u8, role: Role },
    /// An integer of eight bytes, or the bits of a float64, with a role.
    Int64 { before: u8, role: Role },
    /// A uuid with a role.
    Uuid { before: u8, role: Role },
    /// A string, bytes, or an array of elements of fixed size that nobody asks for: as many times
    /// `size` bytes as its length says.
    Unread {
        before: u8,
        length: Length,
        size: u16,
    },
    /// A string or bytes with a role, given in pieces.
    Bytes {
        before: u8,
        role: Role,
        length: Length,
    },
    /// Bytes that are told of and skipped: records, and in the hot table all that is withheld. That tells
    /// of no empty ones, nor of null.
    Skipped {
        before: u8,
        role: Role,
        length: Length,
    },
    /// An array. With a role its count, its elements' starts and its end are told.
    Array {
        before: u8,
        role: Option<Role>,
        length: Length,
        /// First op of an element.
        element: u16,
        /// Least bytes that an element takes.
        min: NonZeroU16,
    },
    /// A struct that may be null: one byte, negative where it is, before its first op at `first`.
    NullableStruct { before: u8, told: bool, first: u16 },
    /// A struct that is told of; another's ops stand in the struct around it.
    Struct { first: u16 },
    /// The tagged fields of a struct or header: `count` known ones, from `first` on in the table's tags.
    Tags {
        before: u8,
        first: u16,
        count: u8,
        /// The struct ends behind them, as all do but those that stand in the one around.
        last: bool,
    },
    /// An element that can be read as one begins; where it cannot, the ops that follow read it. Of
    /// arrays that are not told of.
    Row { row: u16 },
    /// The struct ends.
    End { before: u8 },
}

impl Op {
    /// The same with as many bytes before it.
    pub(crate) const fn after(self, before: u8) -> Self {
        match self {
            Self::Int8 { role, .. } => Self::Int8 { before, role },
            Self::Int16 { role, .. } => Self::Int16 { before, role },
            Self::Uint16 { role, .. } => Self::Uint16 { before, role },
            Self::Int32 { role, .. } => Self::Int32 { before, role },
            Self::Int64 { role, .. } => Self::Int64 { before, role },
            Self::Uuid { role, .. } => Self::Uuid { before, role },
            Self::Bytes { role, length, .. } => Self::Bytes {
                before,
                role,
                length,
            },
            Self::Skipped { role, length, .. } => Self::Skipped {
                before,
                role,
                length,
            },
            Self::Unread { length, size, .. } => Self::Unread {
                before,
                length,
                size,
            },
            Self::Array {
                role,
                length,
                element,
                min,
                ..
            } => Self::Array {
                before,
                role,
                length,
                element,
                min,
            },
            Self::NullableStruct { told, first, .. } => Self::NullableStruct {
                before,
                told,
                first,
            },
            Self::Struct { .. } | Self::Row { .. } => self,
            Self::Tags {
                first, count, last, ..
            } => Self::Tags {
                before,
                first,
                count,
                last,
            },
            Self::End { .. } => Self::End { before },
        }
    }
}

/// How a length or count stands on the wire, and whether it may be negative, which means null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Length {
    /// An unsigned varint of the length and one more, 0 for null (KIP-482).
    Compact,
    NullableCompact,
    /// Strings before KIP-482.
    Int16,
    NullableInt16,
    /// Bytes and arrays before KIP-482.
    Int32,
    NullableInt32,
}

impl Length {
    #[inline(always)]
    pub(crate) const fn is_nullable(self) -> bool {
        self as u8 & 1 != 0
    }

    #[inline(always)]
    pub(crate) const fn is_compact(self) -> bool {
        (self as u8) < Self::Int16 as u8
    }
}

/// Where a walk begins: what follows a request's client id or a response's correlation id, the
/// header's tagged fields included.
#[derive(Clone, Copy, Debug)]
pub struct Root {
    pub(super) table: &'static Table,
    pub(super) first: u16,
}

/// The versions of `api_key` whose requests and responses can be read; `None` where none.
pub fn versions(api_key: ApiKey) -> Option<VersionRange> {
    let api = super::hot().api(api_key)?;
    api.request.versions()?.intersect(api.response.versions()?)
}

impl Root {
    /// For a walk that tells what the data path looks for: few roles, and no names. `None` where this
    /// message is not known.
    #[inline]
    pub fn find(direction: Direction, api_key: ApiKey, api_version: i16) -> Option<Self> {
        super::hot().root(direction, api_key, api_version)
    }

    /// Whether it is [`Root::find`]'s.
    #[inline(always)]
    pub(super) fn is_hot(&self) -> bool {
        self.table.is_hot()
    }

    /// For a walk that tells of every field, whose names [`Root::field`] knows; of the same messages.
    pub fn find_full(direction: Direction, api_key: ApiKey, api_version: i16) -> Option<Self> {
        super::full().root(direction, api_key, api_version)
    }

    /// The field that an event of a walk from here tells of. `None` for the size of no field: unknown
    /// tagged fields, and everything if this is not [`Root::find_full`]'s.
    pub fn field(&self, id: FieldId) -> Option<Field> {
        self.table.fields?.field(id)
    }

    /// Whether the array that an event of a walk from here tells of is one of anything but structs: its
    /// elements are values without a name. Only of [`Root::find_full`].
    pub fn has_plain_elements(&self, array: FieldId) -> bool {
        let op = self.table.ops.get(usize::from(array.0));
        let Some(Op::Array { element, .. }) = op else {
            return false;
        };
        let element = self.field(FieldId(*element));
        element.is_some_and(|element| element.name.is_empty())
    }

    /// Whether the length stands as an unsigned varint of one more (KIP-482) of the string, bytes or
    /// records that an event of a walk from here tells of.
    pub(crate) fn is_compact(&self, field: FieldId) -> bool {
        let op = self.table.ops.get(usize::from(field.0));
        matches!(op, Some(Op::Bytes { length, .. } | Op::Skipped { length, .. }) if length.is_compact())
    }

    /// Whether unknown tagged fields that an event of a walk from here tells of are the header's.
    pub fn is_of_header(&self, tags: FieldId) -> bool {
        tags.0 == self.first
    }
}

impl Table {
    /// Whether it is the one that there are readers for.
    #[inline(always)]
    pub(super) fn is_hot(&self) -> bool {
        std::ptr::eq(self, super::hot())
    }

    #[inline]
    fn api(&self, api_key: ApiKey) -> Option<&Api> {
        self.apis.get(usize::try_from(api_key.0).ok()?)
    }

    /// Where the message begins, if the table has it.
    #[inline]
    pub(crate) fn root(
        &'static self,
        direction: Direction,
        api_key: ApiKey,
        api_version: i16,
    ) -> Option<Root> {
        let api = self.api(api_key)?;
        let roots = match direction {
            Direction::Request => &api.request,
            Direction::Response => &api.response,
        };
        let index = api_version.checked_sub(roots.min_version)?;
        let first = *roots.first_ops.get(usize::try_from(index).ok()?)?;
        Some(Root { table: self, first })
    }
}
