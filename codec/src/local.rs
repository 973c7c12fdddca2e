//! Frames that klamp composes itself: its own answer to an ApiVersions request that nobody here
//! knows, and its own question to a broker.

use crate::types::CorrelationId;

/// The answer to an ApiVersions request of a version that nobody here reads (KIP-511).
pub fn unsupported_api_versions(correlation_id: CorrelationId) -> Vec<u8> {
    let _ = correlation_id;
    Vec::new()
}
