//! `klamp decode`, of files that are whole and of files that are not.

use crate::klamp::{command, output};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What a broker of Kafka 4.4.0 answered to ApiVersions 4.
const ANSWER: &[u8] = include_bytes!("../../../codec/tests/clamp/captured/4.4.0-v4.bin");

/// Metadata v1 for one topic, ApiVersions v0, SaslAuthenticate v0 with a password.
const REQUESTS: &[u8] = b"\0\0\0\x14\0\x03\0\x01\0\0\0\x07\0\x01a\0\0\0\x01\0\x03top\
    \0\0\0\x0a\0\x12\0\0\0\0\0\x08\xff\xff\
    \0\0\0\x15\0\x24\0\0\0\0\0\x09\xff\xff\0\0\0\x07u\0s3cre";

/// A file of its own for each test, gone at its end.
struct Given(PathBuf);

impl Given {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("decode-{name}"));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    /// Exit code, standard output, standard error.
    fn decode(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = output(&[&["decode", self.0.to_str().unwrap()], args].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn requests_are_printed_a_line_each_or_field_by_field() {
    let given = Given::new("requests", REQUESTS);
    let (code, lines, stderr) = given.decode(&[]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{lines}");
    assert_eq!(
        lines.lines().collect::<Vec<_>>(),
        [
            "Metadata v1 request, correlation id 7, client id \"a\", 24 bytes",
            "ApiVersions v0 request, correlation id 8, no client id, 14 bytes",
            "SaslAuthenticate v0 request, correlation id 9, no client id, 25 bytes",
        ]
    );
    let (code, text, _) = given.decode(&["-v"]);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("\n  Topics: 1\n    [0]\n      Name: \"top\"\n"),
        "{text}"
    );
    assert!(
        text.contains("\n  AuthBytes: (7 bytes, not kept)\n"),
        "{text}"
    );
    assert!(!text.contains("s3cr"), "{text}");
}

#[test]
fn a_password_sent_without_a_header_is_not_printed() {
    let token = b"\0\0\0\x12\0Admin\0s3cret-word";
    let handshake = b"\0\0\0\x11\0\x11\0\0\0\0\0\x01\xff\xff\0\x05PLAIN";
    let given = Given::new("token", &[handshake, token.as_slice(), REQUESTS].concat());
    for args in [&[][..], &["-v"], &["--json"]] {
        let (code, text, stderr) = given.decode(args);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{text}");
        assert!(
            !text.contains("Admin") && !text.contains("s3cret"),
            "{text}"
        );
        assert!(
            text.contains("SASL token (18 bytes") || text.contains(":18}"),
            "{text}"
        );
    }
}

#[test]
fn a_broker_s_answer_is_printed_as_json_a_line_each() {
    let given = Given::new("answers", &ANSWER.repeat(3));
    let (code, json, stderr) = given.decode(&["--json", "--response-of", "apiversions:4"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{json}");
    let lines = json.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines = lines.collect::<Vec<Value>>();
    assert_eq!(lines.len(), 3);
    let header = &lines[2]["requestHeader"];
    assert_eq!(header["requestApiKeyName"], "API_VERSIONS");
    let response = &lines[2]["response"];
    assert_eq!(response["errorCode"], 0);
    let rows = response["apiKeys"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["maxVersion"]), (77, &13.into()));
    let (_, same, _) = given.decode(&["--json", "--response-of", "18:4"]);
    assert_eq!(same, json);
}

#[test]
fn of_a_cut_file_all_that_is_there_is_printed_and_where_it_broke() {
    for cut in 1..REQUESTS.len() {
        let given = Given::new("cut", &REQUESTS[..cut]);
        // Many processes: only where something changes.
        if ![2, 4, 9, 20, 24, 38, 40, 60].contains(&cut) {
            continue;
        }
        let (code, lines, stderr) = given.decode(&[]);
        let whole = [24, 38].iter().filter(|end| **end <= cut).count();
        let is_between = [24, 38].contains(&cut);
        assert_eq!(
            code,
            Some(if is_between { 0 } else { 1 }),
            "{cut}: {stderr}"
        );
        let in_length = [2, 40].contains(&cut);
        let cut_one = usize::from(!is_between && !in_length);
        assert_eq!(lines.lines().count(), whole + cut_one, "{cut}: {lines}");
        if in_length {
            assert!(stderr.contains("2 of 4 bytes are there"), "{stderr}");
        } else if !is_between {
            let between = if lines.starts_with("broken") {
                ""
            } else {
                ", "
            };
            let broken = format!("{between}broken at byte {}", cut - [0, 24, 38][whole]);
            assert!(lines.contains(&broken), "{cut}: {lines}");
            let at = format!("1 of {} frames could not be read", whole + 1);
            assert!(stderr.contains(&at), "{cut}: {stderr}");
        }
    }
}

/// What `tcpdump -i any -w` would have of a connection: a request, and the broker's answer to it.
fn capture(answer: &[u8]) -> Vec<u8> {
    let mut file = b"\xa1\xb2\xc3\xd4\0\x02\0\x04\0\0\0\0\0\0\0\0\0\x04\0\0\0\0\0\x65".to_vec();
    let ends = [(b"\x0a\0\0\x01", 50_000_u16), (b"\x0a\0\0\x02", 9_092)];
    for (turn, bytes) in [&REQUESTS[24..38], answer].into_iter().enumerate() {
        let length = 40 + bytes.len() as u16;
        let ((from, from_port), (to, to_port)) = (ends[turn], ends[1 - turn]);
        let mut packet = [b"\x45\0".as_slice(), &length.to_be_bytes()].concat();
        packet.extend(b"\0\0\0\0\x40\x06\0\0");
        packet.extend([from.as_slice(), to].concat());
        packet.extend(from_port.to_be_bytes());
        packet.extend(to_port.to_be_bytes());
        packet.extend(b"\0\0\0\x01\0\0\0\x01\x50\x10\xff\xff\0\0\0\0");
        packet.extend(bytes);
        // Half a second later each.
        for word in [
            1_700_000_000,
            turn as u32 * 500_000,
            length.into(),
            length.into(),
        ] {
            file.extend(word.to_be_bytes());
        }
        file.extend(packet);
    }
    file
}

/// To ApiVersions v0 with correlation id 8: error 250.
const REFUSAL: &[u8] = b"\0\0\0\x0a\0\0\0\x08\0\xfa\0\0\0\0";

#[test]
fn a_capture_of_packets_is_printed_a_line_an_exchange() {
    let file = capture(REFUSAL);
    let given = Given::new("capture", &file);
    let (code, line, stderr) = given.decode(&[]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{line}");
    assert_eq!(
        line,
        "2023-11-14T22:13:20.000000000Z 10.0.0.1:50000 -> 10.0.0.2:9092 ApiVersions v0, \
         correlation id 8, 14 bytes: 14 bytes after 500ms, UNNAMED_250 (250)\n"
    );
    let (code, text, _) = given.decode(&["-v"]);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("\n  ErrorCode: UNNAMED_250 (250)\n"),
        "{text}"
    );
    let (code, json, _) = given.decode(&["--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(code, Some(0));
    assert_eq!(json["response"]["errorCode"], 250);
    assert_eq!(json["totalTimeMs"], 500.0);
    let (code, nothing, stderr) = given.decode(&["--port", "9093,9094"]);
    assert_eq!((code, nothing.as_str()), (Some(1), ""));
    assert!(
        stderr.contains("with port 9093 or 9094 was found; left out: 1 connection with port 9092"),
        "{stderr}"
    );
    let (code, _, stderr) = given.decode(&["--response-of", "Fetch:4"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("takes no --response-of"), "{stderr}");
}

#[test]
fn of_a_cut_capture_all_that_is_there_is_printed_and_where_it_broke() {
    let file = capture(REFUSAL);
    let given = Given::new("cut-capture", &file[..file.len() - 1]);
    let (code, line, stderr) = given.decode(&[]);
    assert_eq!(code, Some(1));
    assert!(line.ends_with(": no answer in the file\n"), "{line}");
    assert!(
        stderr.contains("it ends in the packet at byte 94"),
        "{stderr}"
    );
    // Of an answer that says more than it has.
    let given = Given::new(
        "broken-answer",
        &capture(&[REFUSAL, b"\0\0\0\x0a\0"].concat()),
    );
    let (code, line, stderr) = given.decode(&[]);
    assert_eq!(code, Some(1));
    assert!(
        line.contains("250 (250)\n") && line.contains("in the head of a frame"),
        "{line}"
    );
    assert!(
        stderr.contains("1 of 3 frames could not be read"),
        "{stderr}"
    );
}

#[test]
fn what_is_no_file_of_frames_is_said_to_be_none() {
    let given = Given::new("none", b"\xff\xff\xff\xff");
    let (code, _, stderr) = given.decode(&[]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("no frame has the length"), "{stderr}");
    for (bytes, cause) in [
        (b"".as_slice(), "it is empty"),
        (
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x02\x03\x04",
            "by gzip: unpack",
        ),
        (b"lorem ipsum dolor sit amet", "begins with \"lorem ipsum d"),
        (b"lorem", "begins with \"lorem\""),
    ] {
        let (code, lines, stderr) = Given::new("foreign", bytes).decode(&[]);
        assert_eq!((code, lines.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.contains(cause), "{stderr}");
    }
    for (args, cause) in [
        (&["decode", "/nowhere/at/all"][..], "cannot open"),
        (&["decode"], "<FILE>"),
        (&["decode", "-", "--response-of", "Fetch"], "Fetch:12"),
        (&["decode", "-", "--response-of", "Fetsch:12"], "Fetch:12"),
        (&["decode", "-", "-v", "--json"], "cannot be used with"),
    ] {
        let output = output(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(cause), "{args:?}: {stderr}");
        assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}");
    }
}

#[test]
fn a_frame_comes_out_of_a_pipe_before_it_is_there_whole() {
    // A Fetch v4 response that promises 2 GiB, of which little ever comes.
    let mut process = command(&["decode", "-", "-v", "--response-of", "Fetch:4"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin
        .write_all(b"\x7f\xff\xff\xff\0\0\0\x07\0\0\0\0\0\0\0\x01\0\x01t")
        .unwrap();
    stdin.write_all(b"\0\0\0\x01\0\0\0\0\0\0").unwrap();
    stdin.write_all(&[0; 16]).unwrap();
    stdin.write_all(b"\0\0\0\0\x7f\x00\0\0").unwrap();
    stdin.write_all(&vec![0; 8 << 20]).unwrap();
    drop(stdin);
    let mut text = String::new();
    let mut stdout = process.stdout.take().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(1));
    assert!(text.contains("Records: 2130706432 bytes\n"), "{text}");
    let broken = "Responses[0]/Partitions[0]/Records: the bytes end here";
    assert!(text.contains(broken), "{text}");
}
