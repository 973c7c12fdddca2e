//! Short forms for the generated tables, in which a struct is a line.

use crate::layout::table::{Api, Length, Op, Roots, Tag};
use crate::layout::{Kind, Of, Part, Role, Row, Stored};
use std::num::NonZeroU16;

pub(crate) const fn api(
    min_version: i16,
    request: &'static [u16],
    response: &'static [u16],
) -> Api {
    Api {
        request: Roots {
            min_version,
            first_ops: request,
        },
        response: Roots {
            min_version,
            first_ops: response,
        },
    }
}

pub(crate) const fn tag(number: u32, first: u16) -> Tag {
    Tag { number, first }
}

/// `op` behind so many bytes that nobody asks for.
pub(crate) const fn after(before: u8, op: Op) -> Op {
    op.after(before)
}

pub(crate) const fn int8(role: Role) -> Op {
    Op::Int8 { before: 0, role }
}

pub(crate) const fn int16(role: Role) -> Op {
    Op::Int16 { before: 0, role }
}

pub(crate) const fn uint16(role: Role) -> Op {
    Op::Uint16 { before: 0, role }
}

pub(crate) const fn int32(role: Role) -> Op {
    Op::Int32 { before: 0, role }
}

pub(crate) const fn int64(role: Role) -> Op {
    Op::Int64 { before: 0, role }
}

pub(crate) const fn uuid(role: Role) -> Op {
    Op::Uuid { before: 0, role }
}

/// A string or bytes.
pub(crate) const fn bytes(role: Role, length: Length) -> Op {
    Op::Bytes {
        before: 0,
        role,
        length,
    }
}

/// A string or bytes that nobody asks for.
pub(crate) const fn unread(length: Length) -> Op {
    fixed_array(length, 1)
}

/// Bytes that are told of and skipped.
pub(crate) const fn skipped(role: Role, length: Length) -> Op {
    Op::Skipped {
        before: 0,
        role,
        length,
    }
}

/// The same in a row.
pub(crate) const fn skipped_part(before: u8, role: Role, length: Length) -> Part {
    Part {
        before,
        length,
        of: Of::Skipped(role),
    }
}

/// An array of elements of fixed size that nobody asks for.
pub(crate) const fn fixed_array(length: Length, size: u16) -> Op {
    Op::Unread {
        before: 0,
        length,
        size,
    }
}

pub(crate) const fn array(length: Length, element: u16, min: u16) -> Op {
    Op::Array {
        before: 0,
        role: None,
        length,
        element,
        min: least(min),
    }
}

/// An array that is told of.
pub(crate) const fn told_array(role: Role, length: Length, element: u16, min: u16) -> Op {
    Op::Array {
        before: 0,
        role: Some(role),
        length,
        element,
        min: least(min),
    }
}

pub(crate) const fn nullable_struct(first: u16) -> Op {
    Op::NullableStruct {
        before: 0,
        told: false,
        first,
    }
}

pub(crate) const fn told_nullable_struct(first: u16) -> Op {
    Op::NullableStruct {
        before: 0,
        told: true,
        first,
    }
}

pub(crate) const fn told_struct(first: u16) -> Op {
    Op::Struct { first }
}

/// An element that can be read as one.
pub(crate) const fn row(row: u16) -> Op {
    Op::Row { row }
}

/// What is read as one: `behind` bytes behind its parts, and then without tagged fields if it has any.
pub(crate) const fn line(code: Option<u8>, parts: &'static [Part], behind: u8, tags: bool) -> Row {
    Row {
        code,
        parts,
        behind,
        tags,
    }
}

/// A string or bytes in a row, or an array of elements of so many bytes.
pub(crate) const fn part(before: u8, length: Length, size: u16) -> Part {
    Part {
        before,
        length,
        of: Of::Size(size),
    }
}

/// An array of rows in a row.
pub(crate) const fn rows(before: u8, length: Length, row: &'static Row) -> Part {
    Part {
        before,
        length,
        of: Of::Rows(row),
    }
}

/// Tagged fields within a struct.
pub(crate) const fn tags(first: u16, count: u8) -> Op {
    Op::Tags {
        before: 0,
        first,
        count,
        last: false,
    }
}

/// Tagged fields and the end of their struct.
pub(crate) const fn last_tags(first: u16, count: u8) -> Op {
    Op::Tags {
        before: 0,
        first,
        count,
        last: true,
    }
}

/// The end of a struct.
pub(crate) const END: Op = Op::End { before: 0 };

/// A field: where its name is among all names, and what it is.
pub(crate) const fn f(start: u16, len: u8, kind: Kind) -> Option<Stored> {
    Some(Stored { start, len, kind })
}

/// An op that is no field's.
pub(crate) const NO: Option<Stored> = None;

#[expect(clippy::panic, reason = "it would panic when the table is compiled")]
const fn least(min: u16) -> NonZeroU16 {
    match NonZeroU16::new(min) {
        Some(min) => min,
        None => panic!("an element takes at least one byte"),
    }
}
