//! Captures made up here, written and read back by those who did not write them.

mod tshark;

use super::*;
use crate::capture::{Cause, Place};
use klamp_codec::Direction;
use klamp_codec::kept::{Change, Kept, Part, Reading};
use klamp_codec::observation::{Exchange, OpaqueReason};
use klamp_codec::render::Message;
use klamp_codec::{ApiKey, CorrelationId, ErrorCode};
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::block_common::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

/// When the connections here were accepted.
const OPENED: Duration = Duration::new(1_700_000_000, 123_456_789);

pub(crate) fn at(after: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + OPENED + Duration::from_nanos(after)
}

/// A capture of these frames, each of which begins where the one before it ends.
pub(crate) fn capture(client: &str, broker: &str, mut frames: Vec<Kept>) -> Capture {
    let mut ends = [0; 2];
    for kept in &mut frames {
        kept.at = ends[kept.direction as usize];
        ends[kept.direction as usize] += kept.bytes;
    }
    Capture {
        id: 7,
        reason: "UNNAMED_250 in Metadata".to_owned(),
        kind: klamp_metrics::CaptureReason::Unnamed,
        cause: None,
        taken: at(1_000_000_000),
        client: client.parse().unwrap(),
        broker: Some(broker.parse::<SocketAddr>().unwrap()),
        upstream: "broker:9093".into(),
        client_id: Some("app".to_owned()),
        software: Some(("librdkafka".to_owned(), "2.0".to_owned())),
        opened: at(0),
        lost_frames: 0,
        frames: frames.into(),
        table: None,
    }
}

fn exchange(api_key: i16, api_version: i16, id: i32) -> Exchange {
    Exchange {
        api_key: ApiKey(api_key),
        api_version,
        correlation_id: CorrelationId(id),
    }
}

fn kept(direction: Direction, exchange: Option<Exchange>, after: u64, behind: &[u8]) -> Kept {
    let frame = [&(behind.len() as u32).to_be_bytes(), behind].concat();
    Kept {
        direction,
        exchange,
        at: 0,
        bytes: frame.len() as u64,
        received: at(after),
        latency: None,
        reading: Reading::Whole,
        change: None,
        errors: Vec::new(),
        parts: vec![Part::Bytes(frame)],
    }
}

/// A request of the client `app`.
pub(crate) fn request(api_key: i16, api_version: i16, id: i32, after: u64, body: &[u8]) -> Kept {
    let mut behind = [api_key.to_be_bytes(), api_version.to_be_bytes()].concat();
    behind.extend(id.to_be_bytes());
    behind.extend(b"\0\x03app");
    behind.extend(body);
    let exchange = exchange(api_key, api_version, id);
    kept(Direction::Request, Some(exchange), after, &behind)
}

/// Its response.
pub(crate) fn response(api_key: i16, api_version: i16, id: i32, after: u64, body: &[u8]) -> Kept {
    let exchange = exchange(api_key, api_version, id);
    let behind = [&id.to_be_bytes(), body].concat();
    let mut kept = kept(Direction::Response, Some(exchange), after, &behind);
    kept.latency = Some(Duration::from_micros(1204));
    kept
}

/// The same, of which ten more bytes made no sense and were not kept.
pub(crate) fn malformed(mut kept: Kept) -> Kept {
    kept.reading = Reading::Opaque(OpaqueReason::Malformed);
    kept.bytes += 10;
    kept.parts.push(Part::Hole(10));
    kept
}

/// Metadata v1 for the topic `top`.
pub(crate) const METADATA: &[u8] = b"\0\0\0\x01\0\x03top";

/// The answer: a broker, and the topic with this error code and no partitions.
pub(crate) fn metadata(code: i16) -> Vec<u8> {
    let broker = b"\0\0\0\x01\0\0\0\x01\0\x04host\0\0\x23\x84\xff\xff";
    let controller = b"\0\0\0\x01";
    let topic = [&code.to_be_bytes(), b"\0\x03top\0\0\0\0\0".as_slice()].concat();
    [broker.as_slice(), controller, b"\0\0\0\x01", &topic].concat()
}

/// Two exchanges of Metadata and ApiVersions, and a frame that spans packets.
pub(crate) fn exchanges() -> Vec<Kept> {
    let name = "n".repeat(30_000);
    let mut large = b"\0\0\0\x05".to_vec();
    for _ in 0..5 {
        large.extend((name.len() as u16).to_be_bytes());
        large.extend(name.as_bytes());
    }
    vec![
        request(18, 0, 1, 1_000, b""),
        response(18, 0, 1, 2_001, b"\0\0\0\0\0\x01\0\x03\0\0\0\x0c"),
        request(3, 1, 2, 3_000, METADATA),
        request(3, 1, 3, 3_500, &large),
        response(3, 1, 2, 4_002, &metadata(250)),
        response(3, 1, 3, 5_003, &metadata(0)),
    ]
}

/// A capture as a file.
pub(crate) fn file(capture: &Capture) -> Vec<u8> {
    let mut file = Vec::new();
    write(capture, false, &mut file).unwrap();
    file
}

/// The comments on packets, in order.
fn comments(capture: &Capture) -> Vec<String> {
    let file = file(capture);
    let mut comments = Vec::new();
    let mut reader = PcapNgReader::new(file.as_slice()).unwrap();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap().0 else {
            continue;
        };
        for option in packet.options {
            if let EnhancedPacketOption::Common(CommonOption::Comment(comment)) = option {
                comments.push(comment.into_owned());
            }
        }
    }
    comments
}

#[test]
fn a_frame_s_comment_says_what_its_bytes_do_not_and_is_read_again() {
    let mut frames = exchanges();
    frames[1].change = Some(Change::Rewritten(20));
    let comments = comments(&capture("10.0.0.1:50000", "10.0.0.2:9092", frames));
    assert_eq!(comments.len(), 6, "{comments:?}");
    assert_eq!(
        comments[0],
        "ApiVersions (18) v0 request, correlation id 1, client id \"app\"\nreceived: 17 bytes"
    );
    assert_eq!(
        comments[1],
        "ApiVersions (18) v0 response, correlation id 1\nreceived: 20 bytes\nlatency: 1.204000 ms\n\
         errors: no error\nchanged: 20 bytes went on in its place"
    );
    assert!(
        comments[4].contains("\nerrors: UNNAMED_250 (250)"),
        "{comments:?}"
    );
    let note = comment::Note::read(&comments[1]);
    assert_eq!(note.message, Some(Message::Response(ApiKey(18), 0)));
    assert_eq!(note.received, Some(20));
    assert_eq!(note.latency, Some(Duration::from_micros(1204)));
    assert_eq!(note.header_only, None);
    assert_eq!(note.lines, ["changed: 20 bytes went on in its place"]);
    let message = |comment| comment::Note::read(comment).message;
    assert_eq!(message(&comments[0]), Some(Message::Request));
    assert_eq!(message("what others write"), None);
}

#[test]
fn the_frame_that_triggered_says_so_though_others_are_like_it() {
    let answers = [250, 250, 250].map(|code| response(3, 1, 7, 0, &metadata(code)));
    let mut capture = capture("10.0.0.1:50000", "10.0.0.2:9092", answers.into());
    let second = capture.frames.first()[1].clone();
    let cause = |place| Cause {
        direction: Direction::Response,
        exchange: exchange(3, 1, 7),
        place,
    };
    for place in [
        Place::At(second.at),
        Place::Around(second.at + 1),
        Place::Around(second.at + second.bytes),
    ] {
        capture.cause = Some(cause(place));
        let comments = comments(&capture);
        let marked = comments
            .iter()
            .map(|it| it.contains("\ntrigger: UNNAMED_250 in Metadata\n"));
        assert_eq!(
            marked.collect::<Vec<_>>(),
            [false, true, false],
            "{place:?}"
        );
        assert!(
            about(&capture).contains("\ntrigger: Metadata (3) v1 response, correlation id 7\n")
        );
    }
    // Of which nothing is kept.
    capture.cause = Some(cause(Place::At(1 << 20)));
    assert!(
        comments(&capture)
            .iter()
            .all(|it| !it.contains("trigger: "))
    );
    capture.cause = None;
    assert!(!about(&capture).contains("trigger: "));
}

#[test]
fn of_a_frame_that_was_not_understood_only_the_header_is_written() {
    let malformed = malformed(request(3, 1, 2, 3_000, b""));
    let token = b"\0\0\0\x06";
    let mut token = kept(Direction::Request, None, 3_500, token);
    token.reading = Reading::Token;
    token.bytes = 10;
    token.parts = vec![Part::Bytes(b"\0\0\0\x06".to_vec()), Part::Hole(6)];
    let capture = capture("[::1]:50000", "10.0.0.2:19092", vec![malformed, token]);
    let file = file(&capture);
    let frame = b"\0\0\0\x0d\0\x03\0\x01\0\0\0\x02\0\x03app";
    assert!(file.windows(frame.len()).any(|bytes| bytes == frame));
    let comments = comments(&capture);
    assert!(
        comments[0].contains("\nkept: header only, the body is malformed\n"),
        "{comments:?}"
    );
    assert_eq!(
        comments[1],
        "SASL token, request\nreceived: 10 bytes\nkept: length only\nwithheld: rest@4+6"
    );
}

#[test]
fn of_a_frame_of_which_only_the_beginning_was_kept_the_rest_is_not_judged() {
    // The first topic's code is there, but not its name, nor the second topic.
    let mut long = response(3, 1, 2, 4_002, &metadata(250));
    if let Part::Bytes(frame) = &mut long.parts[0] {
        frame[35] = 2;
        frame.truncate(39);
    }
    long.parts.push(Part::Hole(long.bytes as u32 - 39 + 16_384));
    long.bytes += 16_384;
    long.errors = vec![(ErrorCode(250), 2), (ErrorCode(6), 1)];
    let frames = vec![request(3, 1, 2, 3_000, METADATA), long];
    let comments = comments(&capture("10.0.0.1:50000", "10.0.0.2:9092", frames));
    assert!(
        comments[1].contains(
            "\nerrors: UNNAMED_250 (250) in what was read\n\
             errors in all of it: 2 times UNNAMED_250 (250), NOT_LEADER_OR_FOLLOWER (6)\n\
             kept: its first 39 bytes, not the rest\n"
        ),
        "{comments:?}"
    );
}

#[test]
fn of_what_is_withheld_the_size_and_the_heads_of_batches_are_left() {
    // Produce v3 of a batch of five records, of which the recorder kept the head.
    let mut head = [
        b"\0\0\0\0\0\0\0\0\0\0\x04\x31\0\0\0\0\x02".as_slice(),
        &[0; 6],
        b"\0\0\0\x04",
        &[0; 16],
    ]
    .concat();
    head.extend(b"\0\0\0\0\0\0\x03\xe8\0\x07\0\0\0\x2a\0\0\0\x05");
    assert_eq!(head.len(), 61);
    let before = b"\xff\xff\0\x01\0\0\x03\xe8\0\0\0\x01\0\x03top\0\0\0\x01\0\0\0\0\0\0\x04\x3d";
    let mut produce = request(0, 3, 1, 0, &[before.as_slice(), &head].concat());
    produce.bytes += 1024;
    if let Part::Bytes(frame) = &mut produce.parts[0] {
        frame[..4].copy_from_slice(&(produce.bytes as u32 - 4).to_be_bytes());
    }
    produce.parts.push(Part::Hole(1024));
    // SaslAuthenticate v0.
    let mut login = request(36, 0, 2, 1, b"\0\0\0\x06s3cret");
    if let Part::Bytes(frame) = &mut login.parts[0] {
        frame.truncate(frame.len() - 6);
    }
    login.parts.push(Part::Hole(6));
    let capture = capture("10.0.0.1:50000", "10.0.0.2:9092", vec![produce, login]);
    let comments = comments(&capture);
    assert!(
        comments[0].contains("\nreceived: 1131 bytes\n"),
        "{comments:?}"
    );
    assert!(comments[0].contains("5 records, 1085 bytes, codec none, producer id 1000, "));
    assert!(comments[0].contains("\nwithheld: Records@"), "{comments:?}");
    assert!(
        comments[1].contains("\nwithheld: AuthBytes@21+6"),
        "{comments:?}"
    );
    let note = comment::Note::read(&comments[0]);
    assert_eq!(note.withheld.bytes(), 1024);
    assert_eq!(note.header_only, None);
}
