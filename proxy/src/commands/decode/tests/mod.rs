//! Captures are written, damaged in the ways that captures are, and read.

mod damage;
mod links;
mod pairs;

use super::*;
use crate::capture::Capture;
use crate::capture::pcapng::tests::{
    METADATA, capture, exchanges, file, malformed, metadata, request, response,
};
use klamp_codec::kept::{Kept, Part, Reading};
use klamp_codec::observation::OpaqueReason;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::block_common::Block;
use std::time::Duration;

const CLIENT: &str = "10.0.0.1:50000";
const BROKER: &str = "10.0.0.2:9092";

/// What a file is printed as, what is remarked beside it, and whether all went well.
fn decoded(file: &[u8], style: Style) -> (String, Result<(), String>) {
    decoded_with(file, style, &[])
}

fn decoded_with(file: &[u8], style: Style, ports: &[u16]) -> (String, Result<(), String>) {
    let kind = Kind::of(*file.first_chunk().unwrap()).unwrap();
    let shared = Rc::new(Shared::new(style, Topics::default()));
    let mut out = Vec::new();
    let mut input = file;
    let read = captured(kind, &mut input, ports, &shared, &mut out);
    let read = read.map_err(|error| error.to_string());
    let broken = shared.broken.get();
    let read = read.and_then(|()| match broken {
        0 => Ok(()),
        _ => Err(format!("{broken} broken")),
    });
    (String::from_utf8(out).unwrap(), read)
}

/// The lines of exchanges, without those of the file itself.
fn exchange_lines(file: &[u8]) -> Vec<String> {
    let (out, read) = decoded(file, Style::Line);
    assert_eq!(read, Ok(()), "{out}");
    let lines = out.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// The packets in a pcapng file.
fn packets(file: &[u8]) -> Vec<(Duration, Vec<u8>)> {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap().0 {
            packets.push((packet.timestamp, packet.data.into_owned()));
        }
    }
    packets
}

/// As `tcpdump -w` writes them, with nanoseconds.
fn tcpdump(link: u32, packets: &[(Duration, Vec<u8>)]) -> Vec<u8> {
    let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
    file.extend(link.to_le_bytes());
    for (time, packet) in packets {
        let (length, nanos) = (packet.len() as u32, time.subsec_nanos());
        for word in [time.as_secs() as u32, nanos, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

fn own(frames: Vec<Kept>) -> Vec<u8> {
    file(&capture(CLIENT, BROKER, frames))
}

/// The file of a capture, as tcpdump might have written it.
fn foreign(capture: &Capture) -> Vec<u8> {
    tcpdump(1, &packets(&file(capture)))
}

#[test]
fn a_capture_of_klamp_s_is_printed_a_line_an_exchange() {
    let (out, read) = decoded(&own(exchanges()), Style::Line);
    assert_eq!(read, Ok(()), "{out}");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], "# capture: 7");
    assert!(
        lines.contains(&"# reason: UNNAMED_250 in Metadata"),
        "{out}"
    );
    let name = format!("{:?}", "n".repeat(255));
    assert_eq!(
        lines[lines.len() - 3..],
        [
            "2023-11-14T22:13:20.123457789Z 10.0.0.1:50000 -> 10.0.0.2:9092 ApiVersions v0, \
             correlation id 1, client id \"app\", 17 bytes: 20 bytes after 1.2ms, no error"
                .to_owned(),
            "2023-11-14T22:13:20.123459789Z 10.0.0.1:50000 -> 10.0.0.2:9092 Metadata v1, \
             correlation id 2, client id \"app\", 26 bytes, topic \"top\": 48 bytes after 1.2ms, \
             UNNAMED_250 (250)"
                .to_owned(),
            format!(
                "2023-11-14T22:13:20.123460289Z 10.0.0.1:50000 -> 10.0.0.2:9092 Metadata v1, \
                 correlation id 3, client id \"app\", 150031 bytes, topic {name}: 48 bytes after \
                 1.2ms, no error"
            ),
        ]
    );
}

#[test]
fn both_messages_are_printed_in_full_and_what_klamp_noted() {
    let mut frames = exchanges();
    frames[1].change = Some(klamp_codec::kept::Change::Rewritten(20));
    let (out, read) = decoded(&own(frames), Style::Text);
    assert_eq!(read, Ok(()), "{out}");
    for part in [
        "\nApiVersions v0 response, correlation id 1, 20 bytes\n  ErrorCode: NONE (0)\n",
        "\n  klamp: changed: 20 bytes went on in its place\n",
        "\nMetadata v1 request, correlation id 2, client id \"app\", 26 bytes\n  Topics: 1\n",
        "\n      ErrorCode: UNNAMED_250 (250)\n      Name: \"top\"\n",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
}

#[test]
fn an_exchange_is_one_object_in_the_shape_of_kafka_s_request_log() {
    let (out, read) = decoded(&own(exchanges()[..4].to_vec()), Style::Json);
    assert_eq!(read, Ok(()), "{out}");
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    assert_eq!(lines.len(), 3, "{out}");
    let first = &lines[0];
    assert_eq!(first["requestHeader"]["requestApiKeyName"], "API_VERSIONS");
    assert_eq!(first["requestHeader"]["clientId"], "app");
    assert_eq!(first["request"], serde_json::json!({}));
    assert_eq!(first["response"]["apiKeys"][0]["maxVersion"], 12);
    assert_eq!(first["connection"], "10.0.0.2:9092-10.0.0.1:50000-0");
    assert_eq!(first["totalTimeMs"], 1.204);
    assert_eq!(first["responseBytes"], 20);
    assert_eq!(lines[1]["request"]["topics"][0]["name"], "top");
    assert_eq!(lines[1]["response"], serde_json::Value::Null);
    assert_eq!(lines[1]["noAnswer"], "no answer in the file");
}

/// Flexible versions: a Metadata by id, and its answer with the name.
fn by_id() -> Vec<Kept> {
    let id = [7; 16];
    let tags = b"\0";
    let ask = [tags.as_slice(), b"\x02", &id, b"\0\0", b"\x01\x00", tags].concat();
    let mut answer = [
        tags.as_slice(),
        b"\0\0\0\0\x01\0\0\0\0\x01",
        b"\x02\0\0\x04top",
    ]
    .concat();
    answer.extend(id);
    answer.extend(b"\0\x01\x80\0\0\0\0\0");
    // Asked for twice, the second time with the name known.
    vec![
        request(3, 12, 1, 0, &ask),
        response(3, 12, 1, 1, &answer),
        request(3, 12, 2, 2, &ask),
        response(3, 12, 2, 3, &answer),
    ]
}

#[test]
fn ids_of_topics_are_resolved_by_what_a_response_tells() {
    let file = own(by_id());
    let lines = exchange_lines(&file);
    assert!(lines[1].contains(", topic \"top\": "), "{lines:?}");
    let (out, _) = decoded(&file, Style::Text);
    let named = "TopicId: BwcHBwcHBwcHBwcHBwcHBw (\"top\")\n";
    // In all but the request before the first answer.
    assert_eq!(out.matches(named).count(), 3, "{out}");
    let (out, _) = decoded(&file, Style::Json);
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["topicNames"]["BwcHBwcHBwcHBwcHBwcHBw"], "top");
}

#[test]
fn a_produce_that_wants_no_answer_gets_none_and_is_no_riddle() {
    // Produce v3: no transactional id, acks, timeout, no topics.
    let produce = |acks: &[u8]| [b"\xff\xff", acks, b"\0\0\x03\xe8\0\0\0\0"].concat();
    let lines = exchange_lines(&own(vec![
        request(0, 3, 1, 0, &produce(b"\0\0")),
        request(0, 3, 2, 1, &produce(b"\0\x01")),
        request(3, 1, 3, 2, METADATA),
        response(3, 1, 3, 3, &metadata(0)),
    ]));
    assert!(
        lines[0].ends_with(": no answer wanted (acks=0)"),
        "{lines:?}"
    );
    assert!(lines[1].ends_with(": no answer in the file"), "{lines:?}");
    assert!(lines[2].ends_with(", no error"), "{lines:?}");
}

#[test]
fn raw_sasl_tokens_are_told_by_their_size_in_captures_of_all_kinds() {
    let token = |mut kept: Kept, token: &[u8]| {
        let frame = [&(token.len() as u32).to_be_bytes(), token].concat();
        kept.bytes = frame.len() as u64;
        // So that it is written as it is.
        kept.reading = Reading::Opaque(OpaqueReason::NoLayout);
        kept.parts = vec![Part::Bytes(frame)];
        kept
    };
    let frames = vec![
        request(17, 0, 1, 0, b"\0\x05PLAIN"),
        response(17, 0, 1, 1, b"\0\0\0\0\0\x01\0\x05PLAIN"),
        token(request(3, 1, 2, 2, b""), b"\0user\0s3cret"),
        token(response(3, 1, 2, 3, b""), b""),
        request(3, 1, 3, 4, METADATA),
        response(3, 1, 3, 5, &metadata(0)),
    ];
    let file = foreign(&capture(CLIENT, BROKER, frames));
    for style in [Style::Line, Style::Text, Style::Json] {
        let (out, read) = decoded(&file, style);
        assert_eq!(read, Ok(()), "{out}");
        assert!(!out.contains("s3cret"), "{out}");
        assert!(
            out.contains("Metadata") || out.contains("METADATA"),
            "{out}"
        );
    }
    let lines = exchange_lines(&file);
    assert!(
        lines[1].contains(" SASL token, 16 bytes: 4 bytes after 1ns"),
        "{lines:?}"
    );
}

#[test]
fn what_is_kept_as_a_header_is_said_to_be_and_is_no_damage() {
    let malformed = malformed(response(3, 1, 2, 3, b""));
    let file = own(vec![request(3, 1, 2, 0, METADATA), malformed]);
    let lines = exchange_lines(&file);
    assert!(
        lines[0].ends_with(": 18 bytes after 1.2ms (header only, the body is malformed)"),
        "{lines:?}"
    );
}

#[test]
fn what_was_withheld_is_told_with_the_size_that_it_had() {
    let mut login = request(36, 0, 2, 1, b"\0\0\0\x06");
    login.bytes += 6;
    login.parts.push(Part::Hole(6));
    let (out, read) = decoded(&own(vec![login]), Style::Text);
    assert_eq!(read, Ok(()), "{out}");
    assert!(
        out.contains("\n  AuthBytes: (6 bytes, not kept)\n"),
        "{out}"
    );
    assert!(out.contains(", 27 bytes: no answer in the file"), "{out}");

    // Of another length, the length itself takes fewer bytes.
    let mut login = request(36, 2, 2, 1, b"\0\xc9\x01\0");
    if let Some(Part::Bytes(frame)) = login.parts.first_mut() {
        let behind = frame.split_off(frame.len() - 1);
        login.parts.extend([Part::Hole(200), Part::Bytes(behind)]);
    }
    login.bytes += 200;
    let (out, read) = decoded(&own(vec![login]), Style::Text);
    assert_eq!(read, Ok(()), "{out}");
    assert!(
        out.contains("\n  AuthBytes: (200 bytes, not kept)\n"),
        "{out}"
    );
    assert_eq!(
        out.matches(", client id \"app\", 221 bytes").count(),
        2,
        "{out}"
    );
}

#[test]
fn a_frame_of_an_api_that_nobody_knows_is_no_damage() {
    let unknown = |mut kept: Kept, hole: u32| {
        kept.reading = Reading::Opaque(OpaqueReason::UnknownKey);
        kept.bytes += u64::from(hole);
        kept.parts.push(Part::Hole(hole));
        kept
    };
    for hole in [0, 10] {
        let asked = unknown(request(9_999, 0, 2, 0, b""), hole);
        let answered = unknown(response(9_999, 0, 2, 3, b""), hole);
        let file = own(vec![asked, answered]);
        let lines = exchange_lines(&file);
        assert!(
            lines[0].contains(" api key 9999 v0, correlation id 2, "),
            "{lines:?}"
        );
        let why = match hole {
            0 => "no layout is known of this version",
            _ => "the API is not known",
        };
        assert_eq!(lines[0].matches(why).count(), 2, "{lines:?}");
        for style in [Style::Text, Style::Json] {
            let (out, read) = decoded(&file, style);
            assert_eq!(read, Ok(()), "{out}");
        }
    }
}

#[test]
fn nothing_that_a_peer_says_fools_a_terminal() {
    // (the client id stands behind its length, and is as long as `app`)
    let hostile = |name: &str| {
        let mut frame = request(3, 1, 2, 0, &[b"\0\0\0\x01\0\x03", name.as_bytes()].concat());
        if let Part::Bytes(bytes) = &mut frame.parts[0] {
            bytes[14..17].copy_from_slice(name.as_bytes());
        }
        frame
    };
    let names = ["\u{9b}J", "\u{202e}", "\u{200b}", "\u{1b}[J"];
    let mut capture = capture(CLIENT, BROKER, names.map(hostile).to_vec());
    capture.reason = names.concat();
    capture.client_id = Some(names.concat());
    capture.software = Some((names.concat(), names.concat()));
    for file in [file(&capture), foreign(&capture)] {
        for style in [Style::Line, Style::Text, Style::Json] {
            let (out, read) = decoded(&file, style);
            assert_eq!(read, Ok(()), "{out}");
            assert!(out.contains("202e"), "{out:?}");
            let is_shown = |char| klamp_codec::render::is_plain(char) || char == '\n';
            assert!(out.chars().all(is_shown), "{out:?}");
        }
    }
}
