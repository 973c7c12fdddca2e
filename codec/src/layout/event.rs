//! What a walk tells: fields with a role, how far it came, and why it failed.

use super::{FieldId, Role};

/// A field with a role, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Which field it is, for its name.
    pub field: FieldId,
    /// What the field means.
    pub role: Role,
    /// Offset from where the walk began of the value's first byte: for strings, bytes, arrays and
    /// tagged fields the byte after the length, count or size, which is `width` bytes before it. The
    /// same for all pieces of one value.
    pub at: u32,
    /// Bytes of the length, count or size before `at`, for strings, bytes, arrays and tagged fields;
    /// bytes of the value else (16 for a uuid); 0 for `Element`, `Struct` and `End`, 1 for a null struct.
    pub width: u32,
    /// The value.
    pub value: Value<'a>,
}

impl<'a> Event<'a> {
    pub(super) fn new(field: u16, role: Role, at: u32, width: u32, value: Value<'a>) -> Self {
        Self {
            field: FieldId(field),
            role,
            at,
            width,
            value,
        }
    }
}

/// Who is told of the fields of a common message. Where its method is inlined, and the role of each field
/// is known to the compiler, hardly more of it is left for a field than what becomes of that.
pub trait Listener {
    /// Takes in one field.
    fn hear(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Listener for F {
    #[inline(always)]
    fn hear(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// The value of a field, or a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Any integer or bool.
    Int(i64),
    /// A null string, bytes, array, record set or struct.
    Null,
    /// The next piece of a string or bytes, and how many bytes of it are still to come. An empty
    /// string is one empty piece, no other piece is empty. A uuid is one piece of 16 bytes.
    Piece(&'a [u8], u32),
    /// So many bytes begin that are skipped: a record set, and in a walk of the hot table anything that is
    /// withheld, unless there is nothing in it.
    Skipped(u32),
    /// The number of elements of an array.
    Count(u32),
    /// An element of the array begins at `at` (its end is where the next begins or the array ends).
    Element,
    /// A struct begins at `at`, behind the byte that says that it is not null, if it might be. Only
    /// the full table tells of structs; elements of arrays are no structs of their own.
    Struct,
    /// The array or struct ends at `at`.
    End,
    /// The size in bytes of a tagged field, which begins at `at`.
    TagSize(u32),
    /// A tagged field that the table does not know, and its size: it is skipped. Only the full table
    /// tells of them.
    UnknownTag(u32, u32),
}

/// How far a walk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All that was fed is consumed or kept; feed more.
    NeedBytes,
    /// The next n bytes hold nothing of interest: feed them, or `skip` up to n of them.
    Skippable(u32),
    /// The message has been read to its end; bytes that follow in the frame are trailing bytes.
    Done,
}

/// Where and why bytes do not fit their layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at offset {at}")]
pub struct WalkError {
    /// What is wrong.
    pub fault: Fault,
    /// Offset from where the walk began of the field, count or varint that is wrong; of the end of a
    /// tagged field that ends in the wrong place.
    pub at: u32,
    /// The field that was being read, for its name: it, or in a walk that does not tell of all fields
    /// one before it. Tagged fields have none until their content is read.
    pub field: FieldId,
}

/// What is wrong with bytes that do not fit their layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The body, or the tagged field that is being read, ends before the field does.
    #[error("the message ends inside the field")]
    Short,
    /// An array promises more elements, or a struct more tagged fields, than can follow.
    #[error("{0} elements cannot fit in what is left of the message, but are promised")]
    Count(u32),
    /// Null where the layout has no null.
    #[error("null in a field that cannot be null")]
    Null,
    /// A varint of more than five bytes.
    #[error("a varint of more than five bytes")]
    Varint,
    /// A known tagged field does not end where its size says.
    #[error("a tagged field ends elsewhere than its size says")]
    TagSize,
    /// More bytes skipped than [`Progress::Skippable`] allowed: a fault of the caller.
    #[error("skipped past what is skippable")]
    Skip,
    /// The layout table refers to what it does not have: a fault of the table.
    #[error("the layout table is broken")]
    Table,
}
