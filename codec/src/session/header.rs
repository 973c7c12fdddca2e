//! Stage one of reading a request: the fields that every header has, by bounds-checked reads. What
//! could be read is kept even where the rest fails. (RequestHeader.json v0 to v2; the tagged fields
//! of v2 belong to the walk.)

use super::reject::{self, MIN_REQUEST_WITH_CLIENT_ID};
use crate::observation::{Exchange, RejectReason};
use crate::types::{ApiKey, CorrelationId};

/// A request's header, up to its tagged fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader<'a> {
    pub(crate) exchange: Exchange,
    /// `Err`: the client id does not fit in the frame.
    pub(crate) client_id: Result<Option<&'a [u8]>, Overrun>,
    /// Bytes after the length field, as that field says.
    pub(crate) length: u32,
    /// Bytes read, the length field included.
    pub(crate) read: usize,
}

/// A field is longer than what is left of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overrun;

/// What a request's first bytes amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadHeader<'a> {
    Whole(RequestHeader<'a>),
    /// So many bytes must be shown.
    Need(usize),
    Rejected(RejectReason),
}

/// Reads the header at the start of `shown`, whose length field has been found to be `length`.
#[inline]
pub(crate) fn read_request(shown: &[u8], length: u32) -> ReadHeader<'_> {
    let fixed = length.min(10) as usize;
    let Some((_, frame)) = shown.split_first_chunk::<4>() else {
        return ReadHeader::Need(4);
    };
    let Some(head) = frame.get(..fixed) else {
        return ReadHeader::Need(fixed.saturating_add(4));
    };
    let (Some(api_key), Some(api_version), Some(correlation_id)) =
        (int16(head, 0), int16(head, 2), int32(head, 4))
    else {
        return ReadHeader::Rejected(RejectReason::TooShort);
    };
    let mut header = RequestHeader {
        exchange: Exchange {
            api_key: ApiKey(api_key),
            api_version,
            correlation_id: CorrelationId(correlation_id),
        },
        client_id: Ok(None),
        length,
        read: 12,
    };
    if header.exchange.api_key == ApiKey::CONTROLLED_SHUTDOWN && api_version == 0 {
        return ReadHeader::Whole(header); // header v0
    }
    if i64::from(length) < i64::from(MIN_REQUEST_WITH_CLIENT_ID) {
        return ReadHeader::Rejected(RejectReason::TooShort);
    }
    header.read = 14;
    let Some(Ok(id_length)) = int16(head, 8).map(usize::try_from) else {
        return ReadHeader::Whole(header); // a negative length is null, as Kafka's Java reads it
    };
    let end = id_length.saturating_add(14);
    if end > (length as usize).saturating_add(4) {
        header.client_id = Err(Overrun);
        return ReadHeader::Whole(header);
    }
    match shown.get(14..end) {
        Some(id) => {
            header.client_id = Ok(Some(id));
            header.read = end;
            ReadHeader::Whole(header)
        }
        None => ReadHeader::Need(end),
    }
}

/// The key and version of the request that begins so behind its length field, if they are there.
pub(crate) fn api_key_and_version(frame: &[u8]) -> Option<(ApiKey, i16)> {
    Some((ApiKey(int16(frame, 0)?), int16(frame, 2)?))
}

/// The correlation id of the response at the start of `shown`, if it is there.
#[inline]
pub(crate) fn response_correlation_id(shown: &[u8]) -> Option<CorrelationId> {
    int32(shown, 4).map(CorrelationId)
}

/// The length field at the start of `shown`.
#[inline]
pub(super) fn length_field(shown: &[u8]) -> Option<[u8; 4]> {
    shown.first_chunk().copied()
}

/// How many bytes a frame of this length has, its length field included.
#[inline]
pub(crate) fn frame_bytes(length: u32) -> u64 {
    u64::from(length).saturating_add(reject::LENGTH_FIELD)
}

fn int16(bytes: &[u8], at: usize) -> Option<i16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(i16::from_be_bytes(*bytes))
}

fn int32(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(i32::from_be_bytes(*bytes))
}
