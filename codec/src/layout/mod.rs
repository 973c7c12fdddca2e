//! Which field stands where: the layout table, and the walker that reads bytes by it.

mod cursor;
mod event;
mod field;
mod inside;
mod plain;
mod reading;
mod roles;
mod row;
mod state;
mod step;
mod straight;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
mod walker;

pub use event::{Event, Fault, Listener, Progress, Value, WalkError};
pub use field::{Field, FieldId, Kind};
pub(crate) use field::{Fields, Stored};
pub(crate) use plain::Plain;
pub use roles::Role;
pub(crate) use row::{Of, Part, Row};
pub(crate) use state::Level;
pub(crate) use straight::{Read, Straight, elements, message};
pub use table::{Root, versions};
pub(crate) use walker::MAX_DEPTH;
pub use walker::Walker;

/// The layouts with the roles that the data path looks for.
fn hot() -> &'static table::Table {
    &crate::generated::hot::TABLE
}

/// The layouts with every field and its name.
fn full() -> &'static table::Table {
    &crate::generated::full::TABLE
}
