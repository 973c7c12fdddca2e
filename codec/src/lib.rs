//! Kafka protocol knowledge without I/O: bytes in; what to do with them and what they said, out.

pub mod layout;
pub mod observation;
pub mod session;
mod types;
pub mod versions;

pub use types::{ApiKey, CorrelationId, Direction, ErrorCode, VersionRange};
