//! What a walk remembers from one input to the next: where it stands in the layout, and what is left
//! of a field that an input was too short for.

use super::Role;

/// A struct being read, an element of an array, or the content of a tagged field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// The next op, while something inside is read.
    pub(super) op: u16,
    /// The first op, at which the next element begins.
    pub(super) first: u16,
    /// The op and the role of the array or struct, where it is told of.
    pub(super) field: u16,
    pub(super) role: Option<Role>,
    /// Whether it is the content of a tagged field, and so must end at its limit.
    pub(super) tag: bool,
    /// How many more elements follow this one.
    pub(super) more: u32,
    /// Tagged fields still to be read.
    pub(super) tags: u32,
}

/// What is left of a field that the input was too short for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Region {
    /// Nothing: the next op is to be read.
    None,
    /// So many bytes without interest; not 0.
    Skip(u32),
    /// A string or bytes with a role.
    Bytes(Bytes),
    /// The message has been read.
    Done,
}

/// A string or bytes with a role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    /// Its op.
    pub(super) field: u16,
    pub(super) role: Role,
    /// Bytes of its length.
    pub(super) width: u8,
    /// Offset of its first byte.
    pub(super) at: u32,
    /// Bytes still to be told.
    pub(super) left: u32,
}

impl Level {
    /// None that is in use.
    pub(super) const UNUSED: Self = Self::once(0);

    /// A struct that is read once.
    #[inline(always)]
    pub(super) const fn once(first: u16) -> Self {
        Self {
            op: first,
            first,
            field: 0,
            role: None,
            tag: false,
            more: 0,
            tags: 0,
        }
    }
}
