//! From the first signal to the end: who is waited for, who is served, who is cut.

use crate::broker::{Request, broker, read_request};
use crate::client::{ask, connect, exchange, is_closed, read_answer};
use crate::klamp::Klamp;
use rustix::process::Signal;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// A broker that answers each request at once.
fn prompt() -> String {
    broker(|stream| {
        while let Some(request) = read_request(&stream) {
            request.answer(&stream);
        }
    })
}

/// A broker that answers requests only when told to.
struct Hesitant {
    address: String,
    requests: mpsc::Receiver<(TcpStream, Request)>,
}

impl Hesitant {
    fn new() -> Self {
        let (tell, requests) = mpsc::channel();
        let tell = Arc::new(Mutex::new(tell));
        let address = broker(move |stream| {
            while let Some(request) = read_request(&stream) {
                let told = (stream.try_clone().unwrap(), request);
                let _ = tell.lock().unwrap().send(told);
            }
        });
        Self { address, requests }
    }

    /// The next request that arrived.
    fn request(&self) -> (TcpStream, Request) {
        self.requests.recv_timeout(crate::klamp::PATIENCE).unwrap()
    }
}

#[test]
fn idle_connections_are_closed_and_the_process_ends() {
    let klamp = Klamp::before(&[&prompt()], &["--drain-timeout=1h"]);
    let clients: Vec<_> = (0..5).map(|_| connect(klamp.listen())).collect();
    for (id, client) in clients.iter().enumerate() {
        exchange(client, id as i32);
    }
    klamp.signal(Signal::TERM);
    assert_eq!(klamp.wait_for("draining")["connections"], 5);
    assert!(clients.iter().all(is_closed));
    klamp.wait_for("no connection is left");
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn an_answer_in_flight_is_waited_for() {
    let broker = Hesitant::new();
    let klamp = Klamp::before(&[&broker.address], &["--drain-timeout=1h"]);
    let client = connect(klamp.listen());
    ask(&client, 7);
    let (stream, request) = broker.request();
    klamp.signal(Signal::TERM);
    klamp.wait_for("draining");
    std::thread::sleep(Duration::from_millis(200));
    request.answer(&stream);
    assert_eq!(read_answer(&client), Some(7));
    assert!(is_closed(&client));
    klamp.wait_for("no connection is left");
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn whoever_comes_back_during_a_drain_is_served_until_it_leaves() {
    let klamp = Klamp::before(&[&prompt()], &["--drain-timeout=1h"]);
    klamp.signal(Signal::TERM);
    klamp.wait_for("draining");
    let late = connect(klamp.listen());
    exchange(&late, 1);
    // Longer than nobody may be there, and quiet: a connection under drain would be closed by now.
    std::thread::sleep(Duration::from_millis(1500));
    exchange(&late, 2);
    drop(late);
    klamp.wait_for("no connection is left");
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn those_who_came_late_are_drained_shortly_before_the_timeout() {
    let klamp = Klamp::before(&[&prompt()], &["--drain-timeout=2s"]);
    klamp.signal(Signal::TERM);
    klamp.wait_for("draining");
    let started = Instant::now();
    let late = connect(klamp.listen());
    exchange(&late, 1);
    assert!(is_closed(&late));
    assert!(started.elapsed() >= Duration::from_secs(1));
    drop(late);
    klamp.wait_for("no connection is left");
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn new_connections_are_refused_where_that_is_asked_for() {
    let broker = Hesitant::new();
    let terms = ["--drain-timeout=1h", "--drain-refuse-new"];
    let klamp = Klamp::before(&[&broker.address], &terms);
    let client = connect(klamp.listen());
    ask(&client, 7);
    let (stream, request) = broker.request();
    klamp.signal(Signal::TERM);
    klamp.wait_for("draining");
    let started = Instant::now();
    while TcpStream::connect(klamp.listen()).is_ok() {
        assert!(started.elapsed() < crate::klamp::PATIENCE);
    }
    request.answer(&stream);
    assert_eq!(read_answer(&client), Some(7));
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn what_is_still_at_work_at_the_timeout_is_cut_and_counted() {
    let broker = Hesitant::new();
    let klamp = Klamp::before(&[&broker.address], &["--drain-timeout=300ms"]);
    let client = connect(klamp.listen());
    ask(&client, 7);
    let _kept = broker.request();
    klamp.signal(Signal::TERM);
    assert_eq!(klamp.wait_for("connections are cut")["cut"], 1);
    assert!(is_closed(&client));
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn a_second_signal_ends_the_wait() {
    let broker = Hesitant::new();
    let klamp = Klamp::before(&[&broker.address], &["--drain-timeout=1h"]);
    let client = connect(klamp.listen());
    ask(&client, 7);
    let _kept = broker.request();
    klamp.signal(Signal::TERM);
    klamp.wait_for("draining");
    klamp.signal(Signal::INT);
    assert_eq!(klamp.wait_for("connections are cut")["cut"], 1);
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn probes_are_told_at_once_and_served_to_the_end() {
    let broker = Hesitant::new();
    let args = ["--drain-timeout=1h", "--admin=127.0.0.1:0"];
    let klamp = Klamp::before(&[&broker.address], &args);
    assert_eq!(klamp.page("/readyz").0, 200);
    let client = connect(klamp.listen());
    ask(&client, 7);
    let (stream, request) = broker.request();
    klamp.signal(Signal::TERM);
    klamp.wait_for("draining");
    assert_eq!(klamp.page("/readyz").0, 503);
    assert_eq!(klamp.page("/livez").0, 200);
    klamp.wait_for_metric("klamp_connections_active 1");
    request.answer(&stream);
    assert_eq!(read_answer(&client), Some(7));
    drop(client);
    assert_eq!(klamp.terminate(), Some(0));
}
