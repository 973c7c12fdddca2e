//! What becomes of a client whose broker cannot be reached.

use crate::broker::{closed, silent};
use crate::client::{connect, is_closed};
use crate::klamp::Klamp;
use std::net::TcpListener;
use std::time::{Duration, Instant};

#[test]
fn a_client_is_closed_at_once_when_its_broker_refuses_and_the_cause_is_logged() {
    let (upstream, _kept) = closed();
    let klamp = Klamp::before(&[&upstream], &["--admin=127.0.0.1:0"]);
    let client = connect(klamp.listen());
    assert!(is_closed(&client));
    let line = klamp.wait_for("cannot reach the broker");
    assert_eq!(line["upstream"], upstream);
    assert_eq!(line["peer"], client.local_addr().unwrap().to_string());
    let cause = line["cause"].as_str().unwrap();
    assert!(cause.contains("refused"), "{cause}");
    for line in [
        format!("klamp_dials_total{{result=\"refused\",upstream=\"{upstream}\"}} 1"),
        format!("klamp_upstream_up{{upstream=\"{upstream}\"}} 0"),
        "klamp_connections_closed_total{reason=\"dial_failed\"} 1".to_owned(),
        "klamp_connections_active 0".to_owned(),
    ] {
        klamp.wait_for_metric(&line);
    }
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn a_client_is_closed_when_its_broker_does_not_answer_in_time() {
    let (upstream, _kept) = silent();
    let klamp = Klamp::before(&[&upstream], &["--dial-timeout=200ms"]);
    let started = Instant::now();
    assert!(is_closed(&connect(klamp.listen())));
    assert!(started.elapsed() >= Duration::from_millis(200));
    let cause = klamp.wait_for("cannot reach the broker");
    let cause = cause["cause"].as_str().unwrap();
    assert!(cause.contains("no answer within"), "{cause}");
}

#[test]
fn a_client_is_closed_when_its_broker_has_no_address() {
    let klamp = Klamp::before(&["no-such-host.invalid:9092"], &[]);
    assert!(is_closed(&connect(klamp.listen())));
    let cause = klamp.wait_for("cannot reach the broker");
    let cause = cause["cause"].as_str().unwrap();
    assert!(cause.contains("looking up its name"), "{cause}");
}

#[test]
fn a_name_that_leads_back_to_klamp_is_not_dialled() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut command = crate::klamp::command(&["run", "--log-format=json"]);
    command.args(["--listen", &format!("0.0.0.0:{port}")]);
    command.args(["--upstream", &format!("localhost:{port}")]);
    let klamp = Klamp::spawn(command);
    assert!(is_closed(&connect(([127, 0, 0, 1], port).into())));
    let cause = klamp.wait_for("cannot reach the broker");
    let cause = cause["cause"].as_str().unwrap();
    assert!(cause.contains("klamp itself"), "{cause}");
}

#[test]
fn a_dial_ends_with_the_client_that_it_is_for() {
    let (upstream, _kept) = silent();
    let limits = ["--dial-timeout=1h", "--drain-timeout=1h"];
    let klamp = Klamp::before(&[&upstream], &limits);
    drop(connect(klamp.listen()));
    // A drain ends when no connection is left: had the dial gone on, it would take an hour.
    assert_eq!(klamp.terminate(), Some(0));
}

/// How many failures the log tells up to the line with `last`, in lines and in counts of those kept back.
fn told_up_to(klamp: &Klamp, last: &str) -> (usize, u64) {
    let (mut lines, mut suppressed) = (0, 0);
    loop {
        let line = klamp.next_line();
        suppressed += line["suppressed"].as_u64().unwrap_or_default();
        let message = line["message"].as_str().unwrap();
        lines += usize::from(message.starts_with("cannot reach the broker"));
        if message.contains(last) {
            return (lines, suppressed);
        }
    }
}

#[test]
fn a_flood_of_failures_is_logged_now_and_then_and_in_the_end_how_many_more_there_were() {
    let (upstream, _kept) = closed();
    let klamp = Klamp::before(&[&upstream], &[]);
    for _ in 0..50 {
        assert!(is_closed(&connect(klamp.listen())));
    }
    // By itself, though nothing happens any more.
    let (lines, suppressed) = told_up_to(&klamp, "kept back");
    assert!((1..=10).contains(&lines), "{lines} lines");
    assert_eq!(lines as u64 + suppressed, 50);
}

#[test]
fn what_was_kept_back_is_told_at_the_end_of_the_process_at_the_latest() {
    let (upstream, _kept) = closed();
    let klamp = Klamp::before(&[&upstream], &[]);
    for _ in 0..50 {
        assert!(is_closed(&connect(klamp.listen())));
    }
    klamp.signal(rustix::process::Signal::TERM);
    let (lines, before) = told_up_to(&klamp, "drained");
    let (none, rest) = told_up_to(&klamp, "kept back");
    assert_eq!((lines as u64 + before + rest, none), (50, 0));
}

#[test]
fn over_the_limit_a_connection_is_closed_at_once_and_room_is_made_by_leaving() {
    let (upstream, _kept) = silent();
    let limits = [
        "--max-connections=2",
        "--dial-timeout=1h",
        "--admin=127.0.0.1:0",
    ];
    let klamp = Klamp::before(&[&upstream], &limits);
    let first = connect(klamp.listen());
    let second = connect(klamp.listen());
    assert!(is_closed(&connect(klamp.listen())));
    let line = klamp.wait_for("closed at once");
    assert_eq!(line["limit"], 2);
    klamp.wait_for_metric("klamp_connections_closed_total{reason=\"limit\"} 1");
    klamp.wait_for_metric("klamp_connections_active 2");
    klamp.wait_for_metric("klamp_connections_limit 2");

    drop(first);
    let is_let_in = || {
        let third = connect(klamp.listen());
        third
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        !is_closed(&third)
    };
    let started = Instant::now();
    while !is_let_in() {
        assert!(started.elapsed() < crate::klamp::PATIENCE);
    }
    second
        .set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    assert!(!is_closed(&second), "a connection at work was shed");
}
