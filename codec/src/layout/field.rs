//! What the full table knows of a field beyond what it takes to read it: its name, and what it is.

/// Which field an event tells of: the event's table knows it ([`super::Root::field`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldId(pub(super) u16);

impl FieldId {
    /// Of no field.
    pub(crate) const NONE: Self = Self(u16::MAX);
}

/// A field as its message's definition has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// As Kafka spells it; empty for the element of an array of anything but structs.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
}

/// What a field is, in the words of the definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    /// [`super::Value::Int`], 0 or else.
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    /// [`super::Value::Int`] holds its bits.
    Float64,
    Uuid,
    /// UTF-8 where the peer keeps to the protocol.
    String,
    Bytes,
    Records,
    Struct,
    Array,
}

/// The fields of a table.
#[derive(Debug)]
pub(crate) struct Fields {
    /// All names, one in the other's wake.
    pub(crate) names: &'static str,
    /// For each op of the table, where it is a field's.
    pub(crate) by_op: &'static [Option<Stored>],
}

/// A field as it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    /// Where its name begins and how long it is.
    pub(crate) start: u16,
    pub(crate) len: u8,
    pub(crate) kind: Kind,
}

impl Fields {
    pub(super) fn field(&self, id: FieldId) -> Option<Field> {
        let stored = (*self.by_op.get(usize::from(id.0))?)?;
        let start = usize::from(stored.start);
        let end = start.checked_add(stored.len.into())?;
        Some(Field {
            name: self.names.get(start..end)?,
            kind: stored.kind,
        })
    }
}
