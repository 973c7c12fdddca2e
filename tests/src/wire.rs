//! Frames as bytes, made by `kafka-protocol` from its messages or by hand where they shall be wrong.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{
    Decodable, Encodable, HeaderVersion, Request, StrBytes, encode_request_header_into_buffer,
};

/// A frame: the length of `payload`, then `payload`.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let length = i32::try_from(payload.len()).expect("tests make small frames");
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(payload);
    frame
}

/// A request's header without tagged fields (version 1), then `body`, framed.
pub fn bare_request(
    key: i16,
    version: i16,
    correlation_id: i32,
    client: &str,
    body: &[u8],
) -> Vec<u8> {
    let mut payload = Vec::new();
    payload.put_i16(key);
    payload.put_i16(version);
    payload.put_i32(correlation_id);
    payload.put_i16(i16::try_from(client.len()).expect("tests use short client ids"));
    payload.put_slice(client.as_bytes());
    payload.put_slice(body);
    frame(&payload)
}

/// A request's header with empty tagged fields (version 2), then `body`, framed.
pub fn flexible_request(
    key: i16,
    version: i16,
    correlation_id: i32,
    client: &str,
    body: &[u8],
) -> Vec<u8> {
    bare_request(key, version, correlation_id, client, &[&[0], body].concat())
}

/// A request as `kafka-protocol` encodes it, framed.
///
/// # Panics
/// If it cannot encode that version.
#[track_caller]
pub fn request<R: Request>(
    version: i16,
    correlation_id: i32,
    client: &str,
    request: &R,
) -> Vec<u8> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_string(client.to_owned())));
    let mut payload = BytesMut::new();
    encode_request_header_into_buffer(&mut payload, &header).expect("a header can be encoded");
    request
        .encode(&mut payload, version)
        .unwrap_or_else(|e| panic!("cannot encode key {} version {version}: {e}", R::KEY));
    frame(&payload)
}

/// A response as `kafka-protocol` encodes it, framed. `R` is the request that it answers.
///
/// # Panics
/// If it cannot encode that version.
#[track_caller]
pub fn response<R: Request>(version: i16, correlation_id: i32, body: &R::Response) -> Vec<u8> {
    let mut payload = BytesMut::new();
    ResponseHeader::default()
        .with_correlation_id(correlation_id)
        .encode(&mut payload, R::Response::header_version(version))
        .expect("a header can be encoded");
    body.encode(&mut payload, version).unwrap_or_else(|e| {
        panic!(
            "cannot encode answer to key {} version {version}: {e}",
            R::KEY
        )
    });
    frame(&payload)
}

/// The correlation id and the body of a response's payload. `R` is the request that it answers. Bytes
/// after it are ignored, as Kafka's clients do; librdkafka's mock cluster leaves some.
///
/// # Panics
/// If it cannot be decoded.
#[track_caller]
pub fn read_response<R: Request>(version: i16, payload: &[u8]) -> (i32, R::Response) {
    let mut bytes = Bytes::copy_from_slice(payload);
    let header = ResponseHeader::decode(&mut bytes, R::Response::header_version(version))
        .expect("a response has a header");
    let body = R::Response::decode(&mut bytes, version).unwrap_or_else(|e| {
        panic!(
            "cannot decode answer to key {} version {version}: {e}",
            R::KEY
        )
    });
    (header.correlation_id, body)
}

/// The payloads of the frames in `stream`, and what is left after the last whole one.
pub fn frames(mut stream: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut payloads = Vec::new();
    while let Some((length, rest)) = stream.split_first_chunk::<4>() {
        let length = usize::try_from(i32::from_be_bytes(*length)).expect("a whole frame's length");
        let Some((payload, rest)) = rest.split_at_checked(length) else {
            break;
        };
        payloads.push(payload);
        stream = rest;
    }
    (payloads, stream)
}

/// The api key of a request's payload.
pub fn api_key(payload: &[u8]) -> i16 {
    i16::from_be_bytes([payload[0], payload[1]])
}

/// The api version of a request's payload.
pub fn api_version(payload: &[u8]) -> i16 {
    i16::from_be_bytes([payload[2], payload[3]])
}

/// The correlation id of a request's payload.
pub fn request_correlation_id(payload: &[u8]) -> i32 {
    i32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]])
}

/// The correlation id of a response's payload.
pub fn response_correlation_id(payload: &[u8]) -> i32 {
    i32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]])
}
