//! A Metadata answer of a large cluster in which the host of one broker is another, and every error code
//! counted: by an edit of the held frame, and by decoding it and encoding it again.

use crate::frames::{self, Frame};
use crate::pair::Pair;
use crate::walks::decode;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::MetadataResponse;
use kafka_protocol::protocol::{Encodable, StrBytes};
use klamp_codec::edit::Edits;
use klamp_codec::layout::{Progress, Role, Value, Walker};
use std::hint::black_box;
use std::rc::Rc;

/// Bytes before the message: the frame's length field and its correlation id.
const HEAD: usize = 8;

/// The broker whose host is edited.
const NODE: i64 = 50;

const HOST: &[u8] = b"klamp.example.com";

pub fn pair() -> Pair {
    let frame = frames::metadata();
    let mut held = BytesMut::new();
    held.put_u32((HEAD - 4 + frame.bytes.len()) as u32);
    held.put_u32(7);
    held.put(frame.bytes.clone());
    let held = held.freeze();
    let other_held = held.clone();
    assert_eq!(edited(&frame, &held), encoded(&held, frame.api_version));
    let api_version = frame.api_version;
    Pair {
        name: format!("{}, a host edited", frame.name),
        klamp: Rc::new(move |times| {
            for _ in 0..times {
                black_box(edited(&frame, black_box(&held)));
            }
        }),
        other: Rc::new(move |times| {
            for _ in 0..times {
                black_box(encoded(black_box(&other_held), api_version));
            }
        }),
        messages: 1,
        wanted: 10.0,
    }
}

fn edited(frame: &Frame, held: &[u8]) -> (u32, Vec<u8>) {
    let mut codes = 0;
    let mut is_the_one = false;
    let mut edits = Edits::default();
    let body = &held[HEAD..];
    let mut walker = Walker::new(frame.root(), body.len() as u32);
    let end = walker.feed(body, &mut |event| match (event.role, event.value) {
        (Role::ErrorCode, Value::Int(_)) => codes += 1,
        (Role::NodeId, Value::Int(node_id)) => is_the_one = node_id == NODE,
        (Role::Host, Value::Piece(host, 0)) if is_the_one => {
            let at = event.at + HEAD as u32 - event.width;
            let with = [&[HOST.len() as u8 + 1], HOST].concat();
            edits.replace(at, event.width + host.len() as u32, with);
        }
        _ => {}
    });
    assert_eq!(end, Ok((body.len(), Progress::Done)));
    (codes, edits.apply(held).unwrap())
}

fn encoded(held: &Bytes, api_version: i16) -> (u32, Vec<u8>) {
    let mut message: MetadataResponse = decode(&held.slice(HEAD + 1..), api_version);
    let mut codes = 0;
    for topic in &message.topics {
        black_box(topic.error_code);
        codes += 1;
        for partition in &topic.partitions {
            black_box(partition.error_code);
            codes += 1;
        }
    }
    let host = str::from_utf8(HOST).unwrap();
    let brokers = &mut message.brokers;
    let broker = brokers
        .iter_mut()
        .find(|broker| i64::from(*broker.node_id) == NODE);
    broker.unwrap().host = StrBytes::from_static_str(host);
    let mut out = BytesMut::with_capacity(held.len());
    out.put_slice(&held[..=HEAD]);
    message.encode(&mut out, api_version).unwrap();
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    (codes, out.to_vec())
}
