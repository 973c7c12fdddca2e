//! Frames that klamp composes itself: its own answer to an ApiVersions request that nobody here
//! knows, and its own question to a broker.
//!
//! The trap: ApiVersions is asked before anybody knows what the other side speaks. So an answer that
//! has to be understood by everybody has the body of version 0, its header never has tagged fields
//! (KIP-511), and the first question is of version 0 too.

use crate::layout::Root;
use crate::types::{ApiKey, CorrelationId, Direction, ErrorCode};
use crate::versions::{NoUsableVersion, VersionTable};

/// The client id and ClientSoftwareName of what klamp asks itself.
const NAME: &str = "klamp";

/// The answer to an ApiVersions request of a version that nobody here reads: a body of version 0,
/// error 35, and one row that tells which versions of ApiVersions are read, so that the client can
/// ask again (KIP-511). A whole frame, its length field included.
pub fn unsupported_api_versions(correlation_id: CorrelationId) -> Vec<u8> {
    let highest = (0..=i16::MAX)
        .take_while(|&version| is_read(version))
        .last()
        .unwrap_or(0);
    let mut frame = Frame::default();
    frame.int32(correlation_id.0);
    frame.int16(ErrorCode::UNSUPPORTED_VERSION.0);
    frame.int32(1);
    frame.int16(ApiKey::API_VERSIONS.0);
    frame.int16(0);
    frame.int16(highest);
    frame.finish()
}

/// Whether an ApiVersions request of this version, and so its answer, has a layout: such a request
/// is for the broker to answer.
fn is_read(version: i16) -> bool {
    [Direction::Request, Direction::Response]
        .into_iter()
        .all(|direction| Root::find(direction, ApiKey::API_VERSIONS, version).is_some())
}

/// An ApiVersions request of klamp's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The version of the request and of its answer.
    pub version: i16,
    /// The whole frame, its length field included.
    pub frame: Vec<u8>,
}

/// Asks a broker for its versions. With no table yet: version 0, which every broker since 0.10
/// answers. With the table learned from that: the highest version that both sides have, since only
/// 3 and above tell of features.
pub fn ask_api_versions(
    broker: Option<&VersionTable>,
    correlation_id: CorrelationId,
) -> Result<Question, NoUsableVersion> {
    let version = broker.map_or(Ok(0), |table| table.negotiate(ApiKey::API_VERSIONS))?;
    let mut frame = Frame::default();
    frame.int16(ApiKey::API_VERSIONS.0);
    frame.int16(version);
    frame.int32(correlation_id.0);
    frame.int16(NAME.len() as i16);
    frame.bytes(NAME.as_bytes());
    if version >= 3 {
        frame.no_tagged_fields(); // the header's
        frame.compact_string(NAME);
        frame.compact_string(env!("CARGO_PKG_VERSION"));
        if version >= 5 {
            frame.bytes(&[0]); // ClusterId: null
            frame.int32(-1); // NodeId: unknown
        }
        frame.no_tagged_fields();
    }
    Ok(Question {
        version,
        frame: frame.finish(),
    })
}

/// A frame in the making; its length field is written at the end.
struct Frame(Vec<u8>);

impl Default for Frame {
    fn default() -> Self {
        Self(vec![0; 4])
    }
}

impl Frame {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn int16(&mut self, value: i16) {
        self.bytes(&value.to_be_bytes());
    }

    fn int32(&mut self, value: i32) {
        self.bytes(&value.to_be_bytes());
    }

    /// For strings of fewer than 127 bytes, whose length plus one is a varint of one byte.
    fn compact_string(&mut self, value: &'static str) {
        self.bytes(&[(value.len() as u8).saturating_add(1)]);
        self.bytes(value.as_bytes());
    }

    fn no_tagged_fields(&mut self) {
        self.bytes(&[0]);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() as u32).saturating_sub(4);
        if let Some(field) = self.0.first_chunk_mut() {
            *field = length.to_be_bytes();
        }
        self.0
    }
}
