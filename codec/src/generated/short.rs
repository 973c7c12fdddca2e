//! Short forms for the generated tables, in which a struct is a line.

use crate::layout::table::{Api, Int, Length, Op, Roots, Tag};
use crate::layout::{Kind, Role, Stored};
use std::num::NonZeroU16;

/// Whether a field can be null.
pub(super) const NULL: bool = true;
pub(super) const NOT_NULL: bool = false;

pub(super) const fn api(
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

pub(super) const fn tag(number: u32, first: u16) -> Tag {
    Tag { number, first }
}

pub(super) const fn skip(n: u16) -> Op {
    Op::Skip(n)
}

pub(super) const fn int8(role: Role) -> Op {
    Op::Int(role, Int::Int8)
}

pub(super) const fn int16(role: Role) -> Op {
    Op::Int(role, Int::Int16)
}

pub(super) const fn uint16(role: Role) -> Op {
    Op::Int(role, Int::Uint16)
}

pub(super) const fn int32(role: Role) -> Op {
    Op::Int(role, Int::Int32)
}

pub(super) const fn int64(role: Role) -> Op {
    Op::Int(role, Int::Int64)
}

pub(super) const fn uuid(role: Role) -> Op {
    Op::Uuid(role)
}

/// A string or bytes.
pub(super) const fn bytes(role: Role, length: Length, nullable: bool) -> Op {
    Op::Bytes {
        role: Some(role),
        length,
        nullable,
    }
}

/// A string or bytes that nobody asks for.
pub(super) const fn unread(length: Length, nullable: bool) -> Op {
    Op::Bytes {
        role: None,
        length,
        nullable,
    }
}

/// Bytes that are told of and skipped.
pub(super) const fn skipped(role: Role, length: Length, nullable: bool) -> Op {
    Op::Skipped {
        role,
        length,
        nullable,
    }
}

pub(super) const fn fixed_array(length: Length, nullable: bool, size: u16) -> Op {
    Op::FixedArray {
        length,
        nullable,
        size,
    }
}

pub(super) const fn array(length: Length, nullable: bool, element: u16, min: u16) -> Op {
    Op::Array {
        role: None,
        length,
        nullable,
        element,
        min: least(min),
    }
}

/// An array that is told of.
pub(super) const fn told_array(
    role: Role,
    length: Length,
    nullable: bool,
    element: u16,
    min: u16,
) -> Op {
    Op::Array {
        role: Some(role),
        length,
        nullable,
        element,
        min: least(min),
    }
}

pub(super) const fn nullable_struct(first: u16) -> Op {
    let told = false;
    Op::NullableStruct { told, first }
}

pub(super) const fn told_nullable_struct(first: u16) -> Op {
    let told = true;
    Op::NullableStruct { told, first }
}

pub(super) const fn told_struct(first: u16) -> Op {
    Op::Struct { first }
}

pub(super) const fn tags(first: u16, count: u8) -> Op {
    Op::Tags { first, count }
}

/// A field: where its name is among all names, and what it is.
pub(super) const fn f(start: u16, len: u8, kind: Kind) -> Option<Stored> {
    Some(Stored { start, len, kind })
}

/// An op that is no field's.
pub(super) const NO: Option<Stored> = None;

#[expect(clippy::panic, reason = "it would panic when the table is compiled")]
const fn least(min: u16) -> NonZeroU16 {
    match NonZeroU16::new(min) {
        Some(min) => min,
        None => panic!("an element takes at least one byte"),
    }
}
