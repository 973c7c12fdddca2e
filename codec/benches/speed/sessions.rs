//! Whole exchanges through [`Session::poll`], beside a decode of the same requests and responses,
//! headers included: how much klamp's looking costs a connection.

use crate::frames;
use crate::pair::Pair;
use crate::walks::decode;
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    FetchRequest, FetchResponse, ProduceRequest, ProduceResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use klamp_codec::observation::{Observation, Observer};
use klamp_codec::session::{Clamp, Input, NonKafka, Policy, Session, Step};
use klamp_codec::versions::TableStore;
use klamp_codec::{ApiKey, Direction};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub fn pairs() -> Vec<Pair> {
    let produce = |bytes| {
        Exchange::new(
            ApiKey::PRODUCE,
            9,
            &frames::produce_request(1, 1, bytes),
            &frames::produce_response(1, 1),
        )
    };
    let fetch = |bytes| {
        Exchange::new(
            ApiKey::FETCH,
            12,
            &frames::fetch_request(1, 1),
            &frames::fetch_response(1, 1, bytes),
        )
    };
    vec![
        pair::<ProduceRequest, ProduceResponse>("Produce v9 200 B, 50 in flight", produce(200), 50),
        pair::<ProduceRequest, ProduceResponse>("Produce v9 200 B, one by one", produce(200), 1),
        pair::<ProduceRequest, ProduceResponse>(
            "Produce v9 64 KiB, one by one",
            produce(1 << 16),
            1,
        ),
        pair::<FetchRequest, FetchResponse>("Fetch v12 200 B, 50 in flight", fetch(200), 50),
        pair::<FetchRequest, FetchResponse>("Fetch v12 200 B, one by one", fetch(200), 1),
        pair::<FetchRequest, FetchResponse>("Fetch v12 1 MiB, one by one", fetch(1 << 20), 1),
    ]
}

/// A request and its response as frames.
struct Exchange {
    api_version: i16,
    request: Bytes,
    response: Bytes,
}

impl Exchange {
    fn new(
        api_key: ApiKey,
        api_version: i16,
        request: &impl Encodable,
        response: &impl Encodable,
    ) -> Self {
        let header = RequestHeader::default()
            .with_request_api_key(api_key.0)
            .with_request_api_version(api_version)
            .with_correlation_id(7)
            .with_client_id(Some(StrBytes::from_static_str("a-client")));
        Self {
            api_version,
            request: frame(&header, 2, request, api_version),
            response: frame(
                &ResponseHeader::default().with_correlation_id(7),
                1,
                response,
                api_version,
            ),
        }
    }
}

fn frame(
    header: &impl Encodable,
    header_version: i16,
    body: &impl Encodable,
    api_version: i16,
) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u32(0);
    header.encode(&mut frame, header_version).unwrap();
    body.encode(&mut frame, api_version).unwrap();
    let length = (frame.len() - 4) as u32;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

fn pair<Q: Decodable + 'static, R: Decodable + 'static>(
    name: &str,
    exchange: Exchange,
    in_flight: usize,
) -> Pair {
    let requests = Bytes::from(exchange.request.repeat(in_flight));
    let responses = Bytes::from(exchange.response.repeat(in_flight));
    let policy = Arc::new(Policy {
        clamp: Clamp::Encode,
        max_request_bytes: 100 << 20,
        non_kafka: NonKafka::Close,
        request_progress: None,
        response_progress: None,
        tables: TableStore::default(),
    });
    Pair {
        name: format!("session: {name}"),
        klamp: Rc::new(move |times| {
            let mut session = Session::new(Arc::clone(&policy));
            let mut seen = Seen::default();
            for _ in 0..times {
                relay(
                    &mut session,
                    Direction::Request,
                    black_box(&requests),
                    &mut seen,
                );
                relay(
                    &mut session,
                    Direction::Response,
                    black_box(&responses),
                    &mut seen,
                );
            }
            let expected = times * in_flight as u64;
            assert_eq!((seen.ends, seen.codes > 0), (2 * expected, expected > 0));
        }),
        other: Rc::new(move |times| {
            for _ in 0..times * in_flight as u64 {
                black_box(decoded::<RequestHeader, Q>(
                    &exchange.request,
                    2,
                    exchange.api_version,
                ));
                black_box(decoded::<ResponseHeader, R>(
                    &exchange.response,
                    1,
                    exchange.api_version,
                ));
            }
        }),
        messages: in_flight as u64,
        wanted: 1.0,
    }
}

fn decoded<H: Decodable, M: Decodable>(
    frame: &Bytes,
    header_version: i16,
    api_version: i16,
) -> (H, M) {
    let mut rest = black_box(frame).slice(4..);
    let header = H::decode(&mut rest, header_version).unwrap();
    (header, decode(&rest, api_version))
}

/// Settles every step, as whoever moves the bytes does.
fn relay(session: &mut Session, direction: Direction, mut shown: &[u8], seen: &mut Seen) {
    let now = seen.now;
    loop {
        let input = Input {
            shown,
            eof: false,
            unpaid: 0,
            now,
        };
        match session.poll(direction, input, seen) {
            Step::Pass(n) => shown = shown.get(n as usize..).unwrap_or_default(),
            Step::Need(_) if shown.is_empty() => return,
            step => panic!("{step:?}"),
        }
    }
}

/// What the cheapest of observers keeps.
struct Seen {
    now: Duration,
    ends: u64,
    codes: u64,
    bytes: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            now: Duration::ZERO,
            ends: 0,
            codes: 0,
            bytes: 0,
        }
    }
}

impl Observer for Seen {
    fn observe(&mut self, _: Direction, _: u64, what: Observation<'_>) {
        match what {
            Observation::RequestEnd { frame_bytes, .. }
            | Observation::ResponseEnd { frame_bytes, .. } => {
                self.ends += 1;
                self.bytes += frame_bytes;
            }
            Observation::Errors { count, .. } => self.codes += u64::from(count),
            _ => {}
        }
    }
}
