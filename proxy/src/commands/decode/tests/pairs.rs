//! Which answer is whose: by what klamp noted on a frame, whatever else it looks like, and in what others
//! captured by correlation id and order.

use super::*;
use klamp_codec::Direction;
use klamp_codec::kept::Change;

/// ListGroups v0, without groups.
const GROUPS: &[u8] = b"\0\0\0\0\0\0";

/// Only the header of it was kept.
fn opaque(mut kept: Kept, reason: OpaqueReason) -> Kept {
    kept.reading = Reading::Opaque(reason);
    kept.bytes += 10;
    kept.parts.push(Part::Hole(10));
    kept
}

/// Only the length of it was kept.
fn token(direction: Direction, bytes: u32) -> Kept {
    let mut kept = match direction {
        Direction::Request => request(0, 0, 0, 0, b""),
        Direction::Response => response(0, 0, 0, 0, b""),
    };
    kept.exchange = None;
    kept.reading = Reading::Token;
    kept.bytes = u64::from(bytes) + 4;
    kept.parts = vec![Part::Bytes(bytes.to_be_bytes().to_vec()), Part::Hole(bytes)];
    kept
}

#[test]
fn where_ids_repeat_an_answer_is_that_of_the_request_that_klamp_noted_on_it() {
    let mut answered_here = opaque(request(18, 77, 0, 0, b""), OpaqueReason::UnknownVersion);
    answered_here.change = Some(Change::AnsweredHere);
    let lines = exchange_lines(&own(vec![
        // Its request was given up for newer frames.
        request(3, 1, 0, 0, METADATA),
        response(16, 0, 0, 1, GROUPS),
        response(3, 1, 0, 2, &metadata(0)),
        answered_here,
        // The broker never answers it.
        opaque(request(9_999, 0, 0, 3, b""), OpaqueReason::UnknownKey),
        request(16, 0, 0, 4, b""),
        response(16, 0, 0, 5, GROUPS),
    ]));
    let expected = [
        ("ListGroups v0", ", the request was not kept: 14 bytes "),
        ("Metadata v1", ", topic \"top\": 48 bytes "),
        (
            "ApiVersions v77",
            ": klamp answered, the broker never got it",
        ),
        ("api key 9999 v0", ": no answer in the file"),
        ("ListGroups v0", ", 17 bytes: 14 bytes "),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, (asked, answered)) in lines.iter().zip(expected) {
        assert!(line.contains(&format!(" {asked}, ")), "{asked}: {lines:?}");
        assert!(line.contains(answered), "{answered}: {lines:?}");
    }
}

#[test]
fn where_nothing_is_noted_and_ids_repeat_answers_come_in_order() {
    let frames = vec![
        // Produce v3 with acks=0.
        request(0, 3, 0, 0, b"\xff\xff\0\0\0\0\x03\xe8\0\0\0\0"),
        request(16, 0, 0, 1, b""),
        request(3, 1, 0, 2, METADATA),
        response(16, 0, 0, 3, GROUPS),
        response(3, 1, 0, 4, &metadata(0)),
    ];
    let lines = exchange_lines(&foreign(&capture(CLIENT, BROKER, frames)));
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].contains(" ListGroups v0, ") && lines[1].contains(": 14 bytes "));
    assert!(lines[2].contains(" Metadata v1, ") && lines[2].contains(": 48 bytes "));
}

#[test]
fn what_is_noted_as_a_request_is_none_of_the_tokens_behind_a_handshake() {
    let refused = [b"\0\x21".as_slice(), b"\0\0\0\0"].concat();
    let unknown = |kept| opaque(kept, OpaqueReason::UnknownKey);
    let file = own(vec![
        request(17, 0, 1, 0, b"\0\x05PLAIN"),
        response(17, 0, 1, 1, &refused),
        unknown(request(200, 0, 2, 2, b"")),
        unknown(response(200, 0, 2, 3, b"")),
    ]);
    let lines = exchange_lines(&file);
    assert_eq!(lines.len(), 2, "{lines:?}");
    let asked = " api key 200 v0, correlation id 2, client id \"app\", 27 bytes";
    assert!(lines[1].contains(asked), "{lines:?}");
    assert!(lines[1].contains("): 18 bytes after "), "{lines:?}");
}

#[test]
fn a_token_that_was_not_kept_has_its_size_and_the_token_that_answered_it() {
    let file = own(vec![
        request(17, 0, 1, 0, b"\0\x05PLAIN"),
        response(17, 0, 1, 1, b"\0\0\0\0\0\0"),
        token(Direction::Request, 12),
        token(Direction::Response, 5),
    ]);
    let lines = exchange_lines(&file);
    assert!(
        lines[1].contains(" SASL token, 16 bytes (length only): 9 bytes "),
        "{lines:?}"
    );
    let (out, read) = decoded(&file, Style::Json);
    assert_eq!(read, Ok(()), "{out}");
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["besideRequest"]["saslTokenSizeInBytes"], 12, "{out}");
    assert_eq!(last["besideResponse"]["saslTokenSizeInBytes"], 5, "{out}");
}
