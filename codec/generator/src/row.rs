//! Finds the elements that can be read as one: an error code perhaps, and behind it nothing
//! that anybody asks for but where one field stands that is withheld.

use crate::compile::{Length, Op};
use crate::message::Scalar;
use crate::pack::Packed;
use crate::role::Role;

/// `klamp_codec::layout::Row`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) code: Option<u8>,
    pub(crate) parts: Vec<Part>,
    pub(crate) behind: u8,
    pub(crate) tags: bool,
}

/// `klamp_codec::layout::Part`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) before: u8,
    pub(crate) length: Length,
    pub(crate) nullable: bool,
    pub(crate) of: Of,
}

/// `klamp_codec::layout::Of`, rows by their index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Size(u16),
    Skipped(Role),
    Rows(usize),
}

impl Row {
    /// What the ops of a struct are as a row, where `silent` tells which row an element is if it is
    /// one of no interest. `None` where they are none.
    pub(crate) fn of(ops: &[Packed], silent: impl Fn(u16) -> Option<usize> + Copy) -> Option<Self> {
        let (end, ops) = ops.split_last()?;
        let tags = match end.op {
            Op::Tags { .. } => true,
            Op::End => false,
            _ => return None,
        };
        let (code, ops) = match ops.split_first() {
            Some((first, rest)) => match first.op {
                Op::Int(Role::ErrorCode, Scalar::Int16) => (Some(first.before), rest),
                _ => (None, ops),
            },
            None => (None, ops),
        };
        let part = |packed| Part::of(packed, silent);
        let parts = ops.iter().map(part).collect::<Option<Vec<_>>>()?;
        if parts.iter().filter(|part| part.is_told()).count() > 1 {
            return None;
        }
        Some(Self {
            code,
            parts,
            behind: end.before,
            tags,
        })
    }
}

impl Row {
    /// Whether nothing is told of it.
    pub(crate) fn is_silent(&self) -> bool {
        self.code.is_none() && !self.parts.iter().any(Part::is_told)
    }
}

impl Part {
    fn is_told(&self) -> bool {
        matches!(self.of, Of::Skipped(_))
    }

    fn of(packed: &Packed, silent: impl Fn(u16) -> Option<usize>) -> Option<Self> {
        let (length, nullable, of) = match packed.op {
            Op::Bytes {
                role: None,
                length,
                nullable,
            } => (length, nullable, Of::Size(1)),
            Op::Skipped {
                role,
                length,
                nullable,
            } => (length, nullable, Of::Skipped(role)),
            Op::FixedArray {
                length,
                nullable,
                size,
            } => (length, nullable, Of::Size(size)),
            Op::Array {
                role: None,
                length,
                nullable,
                element,
                ..
            } => (length, nullable, Of::Rows(silent(element)?)),
            _ => return None,
        };
        Some(Self {
            before: packed.before,
            length,
            nullable,
            of,
        })
    }
}
