//! The recorder from outside: an error code that nobody names, and the capture that there is of it.

use crate::broker::{broker, read_request, write_frame};
use crate::client::{ask, connect, exchange, read_answer};
use crate::klamp::{Klamp, PATIENCE, output};
use serde_json::Value;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How a pcapng file begins: its section header block.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A directory of the test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("klamp-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn flag(&self) -> String {
        format!("--capture-dir={}", self.0.display())
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A broker that answers each request with no error, but one with this correlation id with this code.
fn failing_broker(fails: i32, code: i16) -> String {
    broker(move |stream| {
        while let Some(request) = read_request(&stream) {
            let code = if request.correlation_id == fails.to_be_bytes() {
                code
            } else {
                0
            };
            write_frame(
                &stream,
                &[&request.correlation_id, &code.to_be_bytes(), &[0; 4]],
            );
        }
    })
}

fn captures(klamp: &Klamp) -> Vec<Value> {
    let (status, page) = klamp.debug_page("GET", "/captures?format=json", "");
    assert_eq!(status, 200, "{page:?}");
    let report: Value = serde_json::from_slice(&page).unwrap();
    report["captures"].as_array().unwrap().clone()
}

/// Waits until the first capture is as the test wants it.
fn wait_for_capture(
    klamp: &Klamp,
    patience: Duration,
    is_wanted: impl Fn(&Value) -> bool,
) -> Value {
    let started = Instant::now();
    loop {
        let all = captures(klamp);
        if let Some(wanted) = all.first().filter(|capture| is_wanted(capture)) {
            return wanted.clone();
        }
        assert!(started.elapsed() < patience, "{all:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_error_code_that_nobody_names_is_captured_within_a_second() {
    let scratch = Scratch::new("captured");
    let broker = failing_broker(3, 250);
    let klamp = Klamp::before(&[&broker], &["--debug=127.0.0.1:0", &scratch.flag()]);
    let client = connect(klamp.listen());
    (1..=3).for_each(|id| exchange(&client, id));
    let capture = wait_for_capture(&klamp, Duration::from_secs(1), |_| true);
    assert_eq!(capture["reason"], "UNNAMED_250 in ListGroups");
    assert_eq!(capture["client"], client.local_addr().unwrap().to_string());
    assert_eq!(
        (&capture["client_id"], &capture["broker"]),
        (&"test".into(), &broker.as_str().into())
    );
    assert_eq!(capture["frames"], 6, "three requests and their answers");
    (4..=5).for_each(|id| exchange(&client, id));
    let capture = wait_for_capture(&klamp, PATIENCE, |capture| {
        capture["state"] == "complete" && capture["file"].is_string() && capture["frames"] == 10
    });

    let (status, shown) = klamp.debug_page("GET", "/captures/1?format=json", "");
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(status, 200);
    let exchanges = shown["exchanges"].as_array().unwrap();
    let ids: Vec<_> = exchanges
        .iter()
        .map(|frame| &frame["correlation_id"])
        .collect();
    assert_eq!(ids, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    assert!(
        exchanges
            .iter()
            .all(|frame| frame["note"] == "" && frame["name"] == "ListGroups"),
        "{exchanges:?}"
    );
    let errors: Vec<_> = exchanges.iter().map(|frame| &frame["errors"]).collect();
    assert_eq!(errors[5], "UNNAMED_250 (250)");
    assert!(
        (errors.iter().enumerate()).all(|(n, error)| n == 5 || error.is_null()),
        "{errors:?}"
    );

    let (status, download) = klamp.debug_page("GET", "/captures/1.pcapng", "");
    assert!(status == 200 && download.starts_with(&PCAPNG));
    let written = Instant::now();
    let file = loop {
        let files = scratch.files();
        if files.len() == 1 && fs::read(&files[0]).unwrap() == download {
            break files[0].clone();
        }
        assert!(written.elapsed() < PATIENCE, "{files:?}");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(file.ends_with(capture["file"].as_str().unwrap()));

    let line = klamp.wait_for("a capture was taken");
    assert_eq!(
        (&line["capture"], &line["client_id"]),
        (&1.into(), &"test".into()),
        "{line}"
    );
    assert_eq!(line["file"], file.to_str().unwrap());
    assert!(
        line["message"]
            .as_str()
            .unwrap()
            .contains("GET /captures/1.pcapng"),
        "{line}"
    );
    let (_, metrics) = klamp.debug_page("GET", "/metrics", "");
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(
        metrics.contains("klamp_captures_total{reason=\"unnamed\"} 1\n"),
        "{metrics}"
    );
}

#[test]
fn a_capture_by_hand_is_of_a_connection_that_is_quiet() {
    let broker = failing_broker(0, 0);
    let klamp = Klamp::before(&[&broker], &["--debug=127.0.0.1:0", "--capture-on=none"]);
    let quiet = connect(klamp.listen());
    exchange(&quiet, 7);
    let other = connect(klamp.listen());
    exchange(&other, 8);
    assert!(captures(&klamp).is_empty());
    let (status, page) = klamp.debug_page("POST", "/captures?connection=1", "");
    assert_eq!((status, page.as_slice()), (201, &b"capture 1\n"[..]));
    let capture = captures(&klamp).remove(0);
    assert_eq!(
        (&capture["reason"], &capture["frames"]),
        (&"by hand".into(), &2.into())
    );
    assert_eq!(capture["client"], quiet.local_addr().unwrap().to_string());
    assert_eq!(
        klamp.debug_page("POST", "/captures?connection=99", "").0,
        404
    );
}

#[test]
fn what_triggers_can_be_replaced_while_klamp_runs() {
    let broker = failing_broker(2, 15);
    let klamp = Klamp::before(&[&broker], &["--debug=127.0.0.1:0"]);
    let client = connect(klamp.listen());
    exchange(&client, 2);
    let on = klamp.debug_page(
        "PUT",
        "/captures/on",
        "ListGroups:COORDINATOR_NOT_AVAILABLE",
    );
    assert_eq!(on.0, 200);
    assert!(captures(&klamp).is_empty());
    exchange(&client, 2);
    let capture = wait_for_capture(&klamp, PATIENCE, |_| true);
    assert_eq!(
        capture["reason"],
        "COORDINATOR_NOT_AVAILABLE (15) in ListGroups"
    );
}

#[test]
fn the_end_of_the_process_writes_what_a_capture_has_become() {
    let scratch = Scratch::new("ends");
    let broker = failing_broker(1, 250);
    let klamp = Klamp::before(
        &[&broker],
        &[
            "--debug=127.0.0.1:0",
            "--capture-time=1h",
            "--drain-timeout=1s",
            &scratch.flag(),
        ],
    );
    let client = connect(klamp.listen());
    exchange(&client, 1);
    wait_for_capture(&klamp, PATIENCE, |capture| capture["file"].is_string());
    let before = fs::metadata(&scratch.files()[0]).unwrap().len();
    exchange(&client, 2);
    wait_for_capture(&klamp, PATIENCE, |capture| capture["frames"] == 4);
    assert_eq!(klamp.terminate(), Some(0));
    assert!(fs::metadata(&scratch.files()[0]).unwrap().len() > before);
}

#[test]
fn a_directory_that_cannot_be_written_to_ends_the_start_and_is_named() {
    let missing = "--capture-dir=/no/such/directory";
    for directory in [missing, "--capture-dir=/dev/null", "--capture-dir=/proc"] {
        let output = output(&[
            "run",
            "--listen=127.0.0.1:0",
            "--upstream=127.0.0.1:1",
            directory,
        ]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{directory}: {stderr}");
        let path = directory.split_once('=').unwrap().1;
        let cause = format!("cannot write captures to {path} (--capture-dir): ");
        assert!(stderr.contains(&cause), "{directory}: {stderr}");
    }
}

#[test]
fn a_directory_that_goes_away_is_counted_and_traffic_goes_on() {
    let scratch = Scratch::new("gone");
    let broker = failing_broker(1, 250);
    let klamp = Klamp::before(
        &[&broker],
        &[
            "--admin=127.0.0.1:0",
            "--debug=127.0.0.1:0",
            &scratch.flag(),
        ],
    );
    fs::remove_dir_all(&scratch.0).unwrap();
    let client = connect(klamp.listen());
    exchange(&client, 1);
    klamp.wait_for_metric("klamp_captures_dropped_total{reason=\"write_failed\"} 1");
    exchange(&client, 2);
    assert_eq!(captures(&klamp).len(), 1, "it is still at /captures");
    ask(&client, 3);
    assert_eq!(read_answer(&client), Some(3));
}

#[test]
fn a_full_directory_is_counted_and_traffic_goes_on() {
    let scratch = Scratch::new("full");
    let broker = failing_broker(1, 250);
    let full = [
        "--admin=127.0.0.1:0",
        "--debug=127.0.0.1:0",
        "--capture-dir-max-bytes=100",
        "--capture-time=1h",
        &scratch.flag(),
    ];
    let klamp = Klamp::before(&[&broker], &full);
    let client = connect(klamp.listen());
    exchange(&client, 1);
    klamp.wait_for_metric("klamp_captures_dropped_total{reason=\"directory_full\"} 1");
    exchange(&client, 2);
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
    assert_eq!(captures(&klamp).len(), 1, "it is still at /captures");
}

#[test]
fn the_log_names_no_page_where_there_is_none() {
    let broker = failing_broker(1, 250);
    let klamp = Klamp::before(&[&broker], &[]);
    let client = connect(klamp.listen());
    (1..=2).for_each(|id| exchange(&client, id));
    let line = klamp.wait_for("a capture was taken");
    let message = line["message"].as_str().unwrap();
    assert!(
        message.ends_with("give --debug or --capture-dir to see such") && line["file"].is_null(),
        "{line}"
    );
}

#[test]
fn nothing_is_captured_where_nothing_is_recorded() {
    let broker = failing_broker(1, 250);
    let klamp = Klamp::before(&[&broker], &["--debug=127.0.0.1:0", "--capture-memory=0"]);
    let client: TcpStream = connect(klamp.listen());
    exchange(&client, 1);
    exchange(&client, 2);
    assert!(captures(&klamp).is_empty());
    for (method, path, status) in [
        ("GET", "/captures", 200),
        ("POST", "/captures?connection=1", 409),
        ("PUT", "/captures/on", 409),
    ] {
        let (is, text) = klamp.debug_page(method, path, "close");
        let text = String::from_utf8(text).unwrap();
        assert_eq!(is, status, "{method}: {text}");
        assert!(text.contains("the recorder is off"), "{method}: {text}");
    }
}
