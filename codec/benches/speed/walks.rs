//! A walk over a message that counts its error codes, beside a decode of the same bytes.

use crate::frames::{self, Frame};
use crate::pair::Pair;
use bytes::Bytes;
use kafka_protocol::messages::{
    ApiVersionsResponse, FetchRequest, FetchResponse, MetadataResponse, ProduceRequest,
    ProduceResponse,
};
use kafka_protocol::protocol::Decodable;
use klamp_codec::layout::{Progress, Role, Value, Walker};
use klamp_codec::{ApiKey, Direction};
use std::hint::black_box;
use std::rc::Rc;

pub fn pairs() -> Vec<Pair> {
    frames::all().into_iter().map(pair).collect()
}

fn pair((frame, wanted): (Frame, f64)) -> Pair {
    let walked = frame.clone();
    let other: Rc<dyn Fn(u64)> = match (frame.direction, frame.api_key) {
        (Direction::Request, ApiKey::PRODUCE) => decoding::<ProduceRequest>(&frame),
        (Direction::Response, ApiKey::PRODUCE) => decoding::<ProduceResponse>(&frame),
        (Direction::Request, ApiKey::FETCH) => decoding::<FetchRequest>(&frame),
        (Direction::Response, ApiKey::FETCH) => decoding::<FetchResponse>(&frame),
        (Direction::Response, ApiKey::METADATA) => decoding::<MetadataResponse>(&frame),
        (Direction::Response, ApiKey::API_VERSIONS) => decoding::<ApiVersionsResponse>(&frame),
        other => panic!("nothing decodes {other:?}"),
    };
    Pair {
        name: frame.name.to_owned(),
        klamp: Rc::new(move |times| {
            for _ in 0..times {
                black_box(walk(black_box(&walked)));
            }
        }),
        other,
        messages: 1,
        wanted,
    }
}

/// Walks to the end. Returns how often the code was none, and how often another.
pub fn walk(frame: &Frame) -> [u32; 2] {
    let mut codes = [0; 2];
    let mut walker = Walker::new(frame.root(), frame.bytes.len() as u32);
    let end = walker.feed(&frame.bytes, &mut |event| {
        if let (Role::ErrorCode, Value::Int(code)) = (event.role, event.value) {
            codes[usize::from(code != 0)] += 1;
        }
    });
    assert_eq!(end, Ok((frame.bytes.len(), Progress::Done)));
    codes
}

fn decoding<M: Decodable + 'static>(frame: &Frame) -> Rc<dyn Fn(u64)> {
    let (body, api_version) = (frame.bytes.slice(frame.head..), frame.api_version);
    Rc::new(move |times| {
        for _ in 0..times {
            black_box(decode::<M>(black_box(&body), api_version));
        }
    })
}

pub fn decode<M: Decodable>(body: &Bytes, api_version: i16) -> M {
    let mut body = body.clone();
    let message = M::decode(&mut body, api_version).unwrap();
    assert!(body.is_empty());
    message
}
