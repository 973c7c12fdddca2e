//! Which field stands where: the layout table, and the walker that reads bytes by it.

pub mod roles;
pub mod walker;

pub use roles::Role;
pub use walker::{Event, Progress, Root, Value, WalkError, Walker};
