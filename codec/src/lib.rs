//! Kafka protocol knowledge without I/O: bytes in; what to do with them and what they said, out.

pub mod clamp;
pub mod edit;
mod generated;
pub mod kept;
pub mod layout;
pub mod local;
pub mod mend;
mod names;
pub mod observation;
mod ours;
pub mod releases;
pub mod render;
pub mod session;
mod types;
pub mod versions;

pub use ours::ours;
pub use types::{ApiKey, CorrelationId, Direction, ErrorCode, VersionRange};
