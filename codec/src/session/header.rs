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
    let Some((head, rest)) = shown.split_first_chunk::<14>() else {
        return read_short(shown, length);
    };
    let [_, _, _, _, k, y, v, e, c @ .., i, d] = *head;
    let header = RequestHeader {
        exchange: Exchange {
            api_key: ApiKey(i16::from_be_bytes([k, y])),
            api_version: i16::from_be_bytes([v, e]),
            correlation_id: CorrelationId(i32::from_be_bytes(c)),
        },
        client_id: Ok(None),
        length,
        read: head.len(),
    };
    if length < MIN_REQUEST_WITH_CLIENT_ID.unsigned_abs() || has_no_client_id(header.exchange) {
        return read_short(shown, length);
    }
    let Ok(id_length) = u16::try_from(i16::from_be_bytes([i, d])) else {
        return ReadHeader::Whole(header); // a negative length is null, as Kafka's Java reads it
    };
    let id_length = usize::from(id_length);
    let end = id_length.wrapping_add(head.len());
    if end > (length as usize).saturating_add(4) {
        let client_id = Err(Overrun);
        return ReadHeader::Whole(RequestHeader {
            client_id,
            ..header
        });
    }
    match rest.get(..id_length) {
        Some(id) => ReadHeader::Whole(RequestHeader {
            client_id: Ok(Some(id)),
            read: end,
            ..header
        }),
        None => ReadHeader::Need(end),
    }
}

/// The same for a header that has no client id, or of which even its length is not there.
#[cold]
fn read_short(shown: &[u8], length: u32) -> ReadHeader<'_> {
    let fixed = length.min(MIN_REQUEST_WITH_CLIENT_ID.unsigned_abs()) as usize;
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
    let exchange = Exchange {
        api_key: ApiKey(api_key),
        api_version,
        correlation_id: CorrelationId(correlation_id),
    };
    if !has_no_client_id(exchange) {
        return ReadHeader::Rejected(RejectReason::TooShort);
    }
    ReadHeader::Whole(RequestHeader {
        exchange,
        client_id: Ok(None),
        length,
        read: 12,
    })
}

/// Whether it is the one request with header v0.
#[inline]
fn has_no_client_id(exchange: Exchange) -> bool {
    exchange.api_key == ApiKey::CONTROLLED_SHUTDOWN && exchange.api_version == 0
}

/// The key and version of the request that begins so behind its length field, if they are there.
pub(crate) fn api_key_and_version(frame: &[u8]) -> Option<(ApiKey, i16)> {
    Some((ApiKey(int16(frame, 0)?), int16(frame, 2)?))
}

/// The length field and the correlation id of the response at the start of `shown`, if they are there.
#[inline]
pub(crate) fn read_response(shown: &[u8]) -> Option<(u32, CorrelationId)> {
    let [a, b, c, d, id @ ..] = shown.first_chunk::<8>()?;
    let id = CorrelationId(i32::from_be_bytes(*id));
    Some((u32::from_be_bytes([*a, *b, *c, *d]), id))
}

/// The same without the length field.
pub(crate) fn response_correlation_id(shown: &[u8]) -> Option<CorrelationId> {
    read_response(shown).map(|(_, id)| id)
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
