//! What a length must be, and what it most likely is when it cannot be one.

use crate::observation::RejectReason;

/// Bytes of the length field itself.
pub(super) const LENGTH_FIELD: u64 = 4;
/// Key, version and correlation id: the smallest request, ControlledShutdown v0 alone has no more.
pub(super) const MIN_REQUEST: i32 = 8;
/// The same with a null client id: the smallest request otherwise.
pub(super) const MIN_REQUEST_WITH_CLIENT_ID: i32 = 10;
/// The correlation id: the smallest response.
pub(super) const MIN_RESPONSE: i32 = 4;
/// The largest response, in bytes after the length field: all that this can say.
pub(super) const MAX_RESPONSE: u32 = i32::MAX.unsigned_abs();
/// Largest raw SASL token, in bytes: the broker's `sasl.server.max.receive.size`.
pub(super) const MAX_TOKEN: u32 = 524_288;

/// Checks the length field of a frame. `first`: nothing came before it in this direction.
#[inline]
pub(super) fn check(field: [u8; 4], first: bool, min: i32, max: u32) -> Result<u32, RejectReason> {
    let length = u32::from_be_bytes(field);
    match fits(length, min, max) && !first {
        true => Ok(length),
        false => check_closely(field, min, max),
    }
}

/// Whether a frame may have this length.
#[inline]
pub(super) fn fits(length: u32, min: i32, max: u32) -> bool {
    length.cast_signed() >= min && length <= max
}

/// The same where it may be no length at all.
#[cold]
fn check_closely(field: [u8; 4], min: i32, max: u32) -> Result<u32, RejectReason> {
    if let Some(other) = other_protocol(field) {
        return Err(other);
    }
    let length = i32::from_be_bytes(field);
    match u32::try_from(length) {
        Err(_) => Err(RejectReason::NegativeLength),
        Ok(_) if length < min => Err(RejectReason::TooShort),
        Ok(length) if length > max => Err(RejectReason::TooLarge),
        Ok(length) => Ok(length),
    }
}

/// The protocol whose first four bytes these are, if they are one's. None of them is a likely
/// length: the smallest (a TLS alert) is above 336 MiB.
fn other_protocol(field: [u8; 4]) -> Option<RejectReason> {
    match &field {
        // content type alert, handshake or application data; then major version 3
        [0x15..=0x17, 0x03, 0x00..=0x04, _] => Some(RejectReason::Tls),
        b"GET " | b"POST" | b"PUT " | b"HEAD" | b"DELE" | b"OPTI" | b"CONN" | b"PATC" | b"TRAC"
        | b"PRI " | b"HTTP" => Some(RejectReason::Http),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB_100: u32 = 100 << 20;

    fn request(field: [u8; 4]) -> Result<u32, RejectReason> {
        check(field, true, MIN_REQUEST, MIB_100)
    }

    #[test]
    fn a_length_is_named_for_what_it_most_likely_is() {
        assert_eq!(request([0, 0, 0, 8]), Ok(8));
        assert_eq!(request([0, 0, 0, 7]), Err(RejectReason::TooShort));
        assert_eq!(request([0, 0, 0, 0]), Err(RejectReason::TooShort));
        assert_eq!(request([0xff; 4]), Err(RejectReason::NegativeLength));
        assert_eq!(
            request([0x7f, 0xff, 0xff, 0xff]),
            Err(RejectReason::TooLarge)
        );
        assert_eq!(request([0x16, 3, 1, 2]), Err(RejectReason::Tls));
        assert_eq!(request(*b"GET "), Err(RejectReason::Http));
    }

    #[test]
    fn a_large_response_in_mid_stream_is_no_tls() {
        let length = [0x16, 3, 1, 2];
        assert!(check(length, false, MIN_RESPONSE, i32::MAX as u32).is_ok());
        assert_eq!(
            check(length, true, MIN_RESPONSE, i32::MAX as u32),
            Err(RejectReason::Tls)
        );
    }
}
