//! Makes a frame with lengths that fit again of one that a recorder kept with holes, and is the second to
//! look for what may not be seen: by the full table, whatever the recorder was told.
//!
//! Two traps. A length is never alone: that of a string, of records, of the tagged fields around them
//! and of the frame all change, and as varints their own width too. And a frame can only be mended where
//! what is missing is the content of a field: where a count or a number is missing, nobody knows what
//! follows, so the frame ends there, which its reader will say.

mod heads;
mod holes;
mod mender;
#[cfg(test)]
mod tests;

pub use holes::{NotWithheld, Withheld, WithheldList};

use crate::kept::{Kept, Part, Reading};
use crate::layout::Root;
use crate::render::Batch;
use crate::session::header::{self, ReadHeader};
use crate::types::{ApiKey, Direction, ErrorCode};
use mender::Mender;
use std::borrow::Cow;

/// Bytes of a frame's length field.
const LENGTH_FIELD: usize = 4;

/// Bytes of the longest header, its length field included: that of a request whose client id is as long
/// as can be.
const MOST_HEADER: usize = 14 + i16::MAX as usize;

/// A frame that is as long as it says, and what it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// The frame, its length field included, which is there whatever was kept. A message that could be
    /// read to its end still can, to this end.
    pub bytes: Vec<u8>,
    /// What is missing, in the order of where.
    pub withheld: WithheldList,
    /// The heads of the record batches as they were. In `bytes` they are followed by nothing of the
    /// batch, and its length says so; the count of its records and all else is as it was.
    pub batches: Vec<Batch>,
}

/// Mends a frame. What may not be seen is left out, if any of it was kept; `records` says that records
/// may be seen. Of what was not understood only the header is left, unless all of it was kept.
pub fn mend(kept: &Kept, records: bool) -> Mended {
    let total = kept.bytes;
    let mended = match kept.reading {
        Reading::Opaque(_) => all_of(kept),
        Reading::Whole => whole(kept, records),
        Reading::Unfinished | Reading::Token => None,
    };
    mended.unwrap_or_else(|| {
        let first = first_bytes(kept);
        let header = match kept.reading {
            Reading::Token => None,
            _ => header_len(kept.direction, &first),
        };
        let header = first.get(..header.unwrap_or(LENGTH_FIELD));
        let mut mended = Mended {
            bytes: header.map_or(vec![0; LENGTH_FIELD], <[u8]>::to_vec),
            ..Mended::default()
        };
        mended.lacks_the_rest_of(total);
        mended.mend_length();
        mended
    })
}

impl Mended {
    /// Notes that of a frame of `total` bytes nothing follows those that are there and those withheld.
    fn lacks_the_rest_of(&mut self, total: u64) {
        let withheld = self.withheld.bytes();
        let there = (self.bytes.len() as u64).saturating_add(withheld);
        self.withheld
            .add_rest(self.bytes.len(), total.saturating_sub(there));
    }

    fn mend_length(&mut self) {
        let behind = self.bytes.len().saturating_sub(LENGTH_FIELD) as u32;
        if let Some(field) = self.bytes.first_chunk_mut() {
            *field = behind.to_be_bytes();
        }
    }
}

/// The frame as it was, if nothing of it is missing.
fn all_of(kept: &Kept) -> Option<Mended> {
    let mut bytes = Vec::new();
    for part in &kept.parts {
        match part {
            Part::Bytes(part) => bytes.extend_from_slice(part),
            Part::Hole(0) => {}
            Part::Hole(_) => return None,
        }
    }
    (bytes.len() as u64 == kept.bytes).then(|| Mended {
        bytes,
        ..Mended::default()
    })
}

/// A message that could be read to its end. `None` where it cannot.
fn whole(kept: &Kept, records: bool) -> Option<Mended> {
    let first = first_bytes(kept);
    let header = header_len(kept.direction, &first)?;
    let root = root(kept, &first)?;
    let mender = Mender::new(root, first.get(..header)?, kept.bytes, records);
    match mender.mend(&kept.parts) {
        // Whose holes are no less withheld for being in records.
        Ok((_, true)) if records => whole(kept, false),
        Ok((mended, _)) => Some(mended),
        Err(_) => None,
    }
}

/// What was kept up to the first hole, or enough of it for any header.
fn first_bytes(kept: &Kept) -> Cow<'_, [u8]> {
    let mut first = Cow::Borrowed([].as_slice());
    for part in &kept.parts {
        match part {
            Part::Bytes(bytes) if first.is_empty() => first = Cow::Borrowed(bytes),
            Part::Bytes(bytes) if first.len() < MOST_HEADER => {
                first.to_mut().extend_from_slice(bytes);
            }
            Part::Bytes(_) | Part::Hole(0) => {}
            Part::Hole(_) => break,
        }
    }
    first
}

/// How long the header is that a frame begins with, up to its tagged fields; `None` where it is not all
/// there.
fn header_len(direction: Direction, first: &[u8]) -> Option<usize> {
    match direction {
        Direction::Request => {
            let length = u32::from_be_bytes(*first.first_chunk()?);
            match header::read_request(first, length) {
                ReadHeader::Whole(header) => Some(header.read),
                _ => None,
            }
        }
        Direction::Response => header::response_correlation_id(first).map(|_| 8),
    }
}

/// The layout of the message that a frame begins so of.
fn root(kept: &Kept, first: &[u8]) -> Option<Root> {
    let (api_key, version) = match kept.direction {
        Direction::Request => header::api_key_and_version(first.get(LENGTH_FIELD..)?)?,
        Direction::Response => {
            let exchange = kept.exchange?;
            let code = first.get(8..10);
            let is_refusal = exchange.api_key == ApiKey::API_VERSIONS
                && code == Some(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes());
            // The answer to a version that the broker does not speak has the shape of version 0.
            let version = if is_refusal { 0 } else { exchange.api_version };
            (exchange.api_key, version)
        }
    };
    Root::find_full(kept.direction, api_key, version)
}
