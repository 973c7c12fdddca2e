//! Which field stands where: the layout table, and the walker that reads bytes by it.

mod cursor;
mod event;
mod reading;
mod roles;
mod state;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod walker;

pub use event::{Event, Progress, Value, WalkError};
pub use roles::Role;
pub use table::Root;
pub use walker::Walker;

/// The layouts with the roles that the data path looks for.
fn hot() -> &'static table::Table {
    &crate::generated::hot::TABLE
}
