//! Each proxy really starts and forwards, on this machine.

use super::{all, from_file, versions};
use crate::contender::{Contender, Running};
use klamp_tests::peer::Upstream;
use klamp_tests::place;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A server that sends back what it gets.
fn echo() -> Upstream {
    Upstream::start(|mut stream| {
        let mut bytes = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            if stream.write_all(&bytes[..read]).is_err() {
                return;
            }
        }
    })
}

/// Starts it, sees bytes go through it and back, and gives its processes.
fn check(contender: &dyn Contender) -> (Running, Vec<u32>) {
    let upstream = echo();
    let listen = place::free_address();
    let dir = place::room(contender.name());
    let start = Instant::now();
    let running = contender
        .start(listen, upstream.address(), 2, &dir)
        .unwrap_or_else(|e| panic!("{e}"));
    println!("{} listens after {:?}", contender.name(), start.elapsed());
    let mut client = TcpStream::connect(listen).expect("it listens");
    client
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a socket takes options");
    client.write_all(b"there").expect("it takes bytes");
    let mut back = [0; 5];
    client.read_exact(&mut back).expect("they come back");
    assert_eq!(&back, b"there");
    let pids = running.pids();
    (running, pids)
}

fn alive(pid: &u32) -> bool {
    Path::new(&format!("/proc/{pid}/stat")).exists()
}

#[test]
#[ignore = "needs the proxies that tests/bench/run installs, and that runs it"]
fn every_rival_forwards_and_leaves_no_process_behind() {
    for contender in all() {
        let (running, pids) = check(contender.as_ref());
        let workers = if contender.name() == "nginx" { 2 } else { 0 };
        assert_eq!(pids.len(), 1 + workers, "{}", contender.name());
        drop(running);
        let start = Instant::now();
        while pids.iter().any(alive) {
            assert!(start.elapsed() < Duration::from_secs(5), "{pids:?}");
        }
    }
    for (name, version) in versions() {
        assert!(version.contains('.'), "{name}: {version}");
    }
}

#[test]
fn a_rival_that_does_not_start_is_told_with_its_own_words() {
    let dir = place::room("rivals-file");
    let file = dir.join("rivals");
    let command = "bad: echo no {listen_port} today, {upstream_port} >&2; exit 3";
    fs::write(&file, command).expect("a room can be written to");
    let rivals = from_file(&file).expect("the file is right");
    let (listen, upstream) = (place::free_address(), place::free_address());
    let error = rivals[0].start(listen, upstream, 1, &dir);
    let error = error.expect_err("it ends at once").to_string();
    assert!(error.contains("exit status: 3"), "{error}");
    assert!(
        error.contains(&format!("no {} today", listen.port())),
        "{error}"
    );
}

#[test]
fn the_example_of_further_rivals_is_right() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals.example");
    let rivals = from_file(&example).expect("the example is right");
    let names: Vec<&str> = rivals.iter().map(|rival| rival.name()).collect();
    assert_eq!(names, ["socat"]);
}
