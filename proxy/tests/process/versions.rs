//! `klamp versions`, before brokers and before what is none.

use crate::broker::{broker, closed, offer, read_request, refuse, silent, write_frame};
use crate::klamp::output;
use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;

/// Produce with versions ahead of ours, Metadata, ApiVersions, and a vendor's key.
const ROWS: [[i16; 3]; 4] = [[0, 0, 99], [3, 0, 5], [18, 0, 4], [10_000, 2, 3]];

/// Exit code, standard output, standard error.
fn versions(args: &[&str]) -> (Option<i32>, String, String) {
    let output = output(&[&["versions"], args].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn sound(stream: TcpStream) {
    while let Some(request) = read_request(&stream) {
        offer(&stream, &request, &ROWS);
    }
}

#[test]
fn a_broker_s_table_is_printed_in_columns() {
    let broker = broker(sound);
    let (code, table, stderr) = versions(&[&broker]);
    assert_eq!((code, &stderr[..]), (Some(0), ""), "{table}");
    let line = |start: &str| {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(start));
        line.unwrap_or_else(|| panic!("{start:?} is not in\n{table}"))
    };
    assert!(line("0  ").contains("Produce"), "{table}");
    assert!(line("0  ").contains("0..=99"), "{table}");
    assert!(line("0  ").contains("ahead"), "{table}");
    assert!(line("10000").contains("2..=3"), "{table}");
    assert!(line("1  ").contains("not offer"), "{table}");
    assert!(
        table.contains(&format!("{broker} offers 4 keys")),
        "{table}"
    );
}

#[test]
fn a_broker_s_table_is_printed_as_json() {
    let (code, json, stderr) = versions(&[&broker(sound), "--json"]);
    assert_eq!((code, &stderr[..]), (Some(0), ""), "{json}");
    let json: Value = serde_json::from_str(&json).unwrap();
    // The second question, in the highest version that both have, is the one that counts.
    assert!(json["answered_in_version"].as_i64() >= Some(3), "{json}");
    let row = |key: i64| {
        let mut rows = json["rows"].as_array().unwrap().iter();
        rows.find(|row| row["api_key"] == key).unwrap()
    };
    assert_eq!(row(0)["broker"]["max"], 99);
    assert_eq!(row(0)["negotiated"]["max"], row(0)["ours"]["max"]);
    assert_eq!(row(10_000)["name"], Value::Null);
    assert_eq!(row(1)["broker"], Value::Null);
}

#[test]
fn a_broker_that_refuses_to_tell_features_is_still_told_of() {
    let refuses_flexible = |stream: TcpStream| {
        while let Some(request) = read_request(&stream) {
            match request.api_version {
                0 => offer(&stream, &request, &ROWS),
                _ => refuse(&stream, &request),
            }
        }
    };
    let closes_upon_flexible = |stream: TcpStream| {
        let request = read_request(&stream).unwrap();
        offer(&stream, &request, &ROWS);
        read_request(&stream);
    };
    for broker in [broker(refuses_flexible), broker(closes_upon_flexible)] {
        let (code, table, stderr) = versions(&[&broker]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(table.contains("10000"), "{table}");
        assert!(stderr.starts_with("warning: "), "{stderr}");
        assert!(stderr.contains("features are not known"), "{stderr}");
    }
}

#[test]
fn an_old_broker_without_features_is_asked_in_what_it_has() {
    let old = |stream: TcpStream| {
        while let Some(request) = read_request(&stream) {
            match request.api_version {
                0 => offer(&stream, &request, &[[0, 0, 2], [18, 0, 0]]),
                _ => refuse(&stream, &request),
            }
        }
    };
    let (code, table, stderr) = versions(&[&broker(old)]);
    assert_eq!((code, &stderr[..]), (Some(0), ""), "{table}");
    assert!(table.contains("offers 2 keys"), "{table}");
}

/// What answers with these bytes, whatever it is asked, and then closes.
fn answering(bytes: &'static [u8]) -> String {
    broker(move |mut stream| {
        read_request(&stream);
        let _ = stream.write_all(bytes);
    })
}

#[test]
fn what_is_no_broker_is_told_in_one_line_and_code_1() {
    let (unreachable, _kept) = silent();
    let (refusing, _kept_too) = closed();
    let cases = [
        (refusing, "refused"),
        (unreachable, "no answer within"),
        (
            "no-such-host.invalid:9092".to_owned(),
            "looking up its name",
        ),
        (answering(b""), "closed the connection"),
        (
            broker(|stream| while read_request(&stream).is_some() {}),
            "no answer within",
        ),
        (
            broker(|stream| refuse(&stream, &read_request(&stream).unwrap())),
            "UNSUPPORTED_VERSION",
        ),
        (
            broker(|stream| {
                let mut request = read_request(&stream).unwrap();
                request.correlation_id = [9; 4];
                offer(&stream, &request, &ROWS);
            }),
            "another question",
        ),
        (
            broker(|stream| {
                let request = read_request(&stream).unwrap();
                write_frame(
                    &stream,
                    &[&request.correlation_id, &[0, 0, 0x7f, 0xff, 0xff, 0xff]],
                );
            }),
            "not a Kafka broker",
        ),
        (answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "HTTP"),
        (answering(&[0x15, 3, 3, 0, 2, 2, 40]), "TLS"),
        (answering(&[0xff; 8]), "-1 bytes"),
        (answering(&[0; 8]), "0 bytes"),
        (answering(&[0x7f, 0xff, 0xff, 0xff, 0]), "2147483647 bytes"),
        (answering(&[0, 0, 0, 4, 0, 0, 0, 0]), "not a Kafka broker"),
        (
            answering(&[0, 0, 1, 0, 0, 0, 0, 0]),
            "closed the connection",
        ),
        (answering(b"SSH-2.0-OpenSSH_9.6\r\n"), "not a Kafka broker"),
    ];
    let check = |address: &str, cause: &str| {
        let (code, stdout, stderr) = versions(&[address, "--timeout=3s"]);
        assert_eq!((code, &stdout[..]), (Some(1), ""), "{cause}: {stderr}");
        assert!(
            stderr.starts_with(&format!("error: {address}: ")),
            "{stderr}"
        );
        assert!(stderr.contains(cause), "{cause:?} is not in {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    };
    std::thread::scope(|threads| {
        for (address, cause) in &cases {
            threads.spawn(move || check(address, cause));
        }
    });
}
