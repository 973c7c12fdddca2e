//! What the recorder may take, and what it does where it cannot go on: memory under thousands of
//! connections that all trigger, a directory that is full or no longer takes files, a download that
//! nobody takes. Traffic is not held up by any of it.

use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{MetadataRequest, MetadataResponse};
use klamp_tests::klamp::Klamp;
use klamp_tests::peer::{Client, Upstream};
use klamp_tests::records::topic_name;
use klamp_tests::{place, wire};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

const METADATA: i16 = 1;
/// Of the default of `--capture-memory`.
const BUDGET: u64 = 64 << 20;

fn asking(id: i32) -> Vec<u8> {
    wire::request(METADATA, id, "app", &MetadataRequest::default())
}

/// An answer of some 16 KiB with this code in it.
fn answering(id: i32, code: i16) -> Vec<u8> {
    let topic = |number: u32| {
        MetadataResponseTopic::default()
            .with_name(Some(topic_name(&format!("{number:0>200}"))))
            .with_error_code(code)
    };
    let answer = MetadataResponse::default().with_topics((0..80).map(topic).collect());
    wire::response::<MetadataRequest>(METADATA, id, &answer)
}

/// Both ends of a connection through klamp.
struct Pair {
    client: TcpStream,
    broker: TcpStream,
}

impl Pair {
    fn open(klamp: SocketAddr, broker: &TcpListener) -> Self {
        let client = TcpStream::connect(klamp).expect("klamp takes it");
        client.set_nodelay(true).expect("a socket takes options");
        let (broker, _) = broker.accept().expect("klamp dials for each");
        broker.set_nodelay(true).expect("a socket takes options");
        for end in [&client, &broker] {
            let limit = Some(Duration::from_secs(30));
            end.set_read_timeout(limit).expect("a socket takes options");
        }
        Self { client, broker }
    }

    /// A request and its answer, as they come out at the other end.
    fn exchange(&mut self, request: &[u8], answer: &[u8]) {
        let mut came = vec![0; request.len()];
        self.client.write_all(request).expect("klamp takes it");
        self.broker.read_exact(&mut came).expect("it comes");
        assert_eq!(came, request);
        let mut came = vec![0; answer.len()];
        self.broker.write_all(answer).expect("klamp takes it");
        self.client.read_exact(&mut came).expect("it comes");
        assert!(came == answer, "the answer is another");
    }
}

/// Opens so many connections, each of which says much and then triggers; resident bytes of klamp then, and
/// how much it had before the first of them.
fn resident_after(connections: i32, arguments: &[&str]) -> (u64, u64, Klamp) {
    let broker = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
    let address = broker.local_addr().expect("it is bound");
    let klamp = Klamp::start_with(address, arguments);
    let before = klamp.process().resident_bytes();
    let good = (asking(0), answering(0, 0));
    let mut pairs = Vec::new();
    let mut most = 0;
    for number in 0..connections {
        let mut pair = Pair::open(klamp.address(), &broker);
        pair.exchange(&good.0, &good.1);
        let code = 1_000 + i16::try_from(number % 2_000).expect("it is small");
        pair.exchange(&asking(3), &answering(3, code));
        pairs.push(pair);
        if number % 250 == 0 {
            most = most.max(klamp.process().resident_bytes());
        }
    }
    let mut after = most.max(klamp.process().resident_bytes());
    klamp.scrape_until("all connections are open", |scrape| {
        scrape.get("klamp_connections_active", &[]) == Some(f64::from(connections))
    });
    // Some say one thing more, those that have long been quiet first.
    for pair in pairs.iter_mut().step_by(10) {
        pair.exchange(&good.0, &good.1);
    }
    after = after.max(klamp.process().resident_bytes());
    (before, after, klamp)
}

#[test]
fn five_thousand_connections_that_all_trigger_stay_within_the_budget() {
    const CONNECTIONS: i32 = 5_000;
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, all).expect("a process may have what it may have");
    let (bare, off, klamp) = resident_after(CONNECTIONS, &["--capture-memory=0"]);
    klamp.stop();
    let (_, on, klamp) = resident_after(CONNECTIONS, &[]);
    let scrape = klamp.scrape();
    let sum = |name| scrape.sum(name, &[]);
    let taken = sum("klamp_captures_total") + sum("klamp_captures_dropped_total");
    eprintln!(
        "resident: {bare} bytes at first, with {CONNECTIONS} connections {off} without a recorder, \
         {on} with one; {} captures taken, {} dropped; {} chunks given up",
        sum("klamp_captures_total"),
        sum("klamp_captures_dropped_total"),
        sum("klamp_recorder_given_up_total"),
    );
    assert!(
        taken >= f64::from(CONNECTIONS),
        "a trigger on each: {taken}"
    );
    assert!(!klamp.captures().is_empty());
    let held = sum("klamp_captures_bytes") + sum("klamp_recorder_bytes");
    assert!(held > 0.8 * BUDGET as f64, "it is made use of: {held}");
    assert!(held <= BUDGET as f64, "{held}");
    assert!(on <= off + BUDGET + BUDGET / 8, "{on} with, {off} without");
    klamp.stop();
}

/// A broker that answers each request with a code of its own.
fn failing_broker() -> Upstream {
    Upstream::start(|stream| {
        let mut peer = Client::over(stream);
        let mut length = [0; 4];
        while peer.stream().read_exact(&mut length).is_ok() {
            let length = usize::try_from(u32::from_be_bytes(length)).expect("it is small");
            let request = peer.read_bytes(length);
            let id = wire::request_correlation_id(&request);
            let code = 1_000 + i16::try_from(id).expect("it is small");
            peer.try_send_bytes(&answering(id, code));
        }
    })
}

/// A connection whose exchange with that broker triggers.
#[track_caller]
fn trigger(klamp: &Klamp, id: i32) -> Client {
    let mut client = Client::connect(klamp.address());
    client.send_bytes(&asking(id));
    let expected = answering(id, 1_000 + i16::try_from(id).expect("it is small"));
    assert!(client.read_bytes(expected.len()) == expected, "other bytes");
    client
}

/// klamp with a capture directory that takes so much and no more, and is gone with klamp: a file system in
/// a namespace of klamp's own.
fn with_small_directory(broker: SocketAddr, size: &str, arguments: &[&str]) -> Klamp {
    let directory = place::room("small");
    let mut command = Command::new("unshare");
    // (whoever is not root becomes it in a namespace of users)
    let is_root = rustix::process::geteuid().is_root();
    command.args(if is_root { &["-m"][..] } else { &["-rm"] });
    let script = r#"mount -t tmpfs -o "size=$2" tmpfs "$1" && shift 2 && exec "$@""#;
    command.args(["sh", "-c", script, "sh"]);
    command.arg(&directory).arg(size).arg(place::klamp_binary());
    let flag = format!("--capture-dir={}", directory.display());
    let pair = (place::free_address(), broker);
    Klamp::under(command, &[pair], &[&[&flag[..]], arguments].concat())
}

fn dropped(klamp: &Klamp, reason: &str) -> f64 {
    let scrape = klamp.scrape();
    scrape.sum("klamp_captures_dropped_total", &[("reason", reason)])
}

#[test]
fn a_full_directory_is_counted_and_said_and_holds_up_nobody() {
    let broker = failing_broker();
    // Each capture is of some 17 KB.
    let arguments = ["--capture-time=0s", "--log-level=debug"];
    let klamp = with_small_directory(broker.address(), "64k", &arguments);
    for id in 0..12 {
        trigger(&klamp, id);
    }
    klamp.scrape_until("the directory is full", |_| {
        dropped(&klamp, "directory_full") >= 8.0
    });
    let all = klamp.captures();
    assert_eq!(all.len(), 12, "in memory there are all");
    let written = all.iter().filter(|it| it["file"].is_string()).count();
    assert!((2..=4).contains(&written), "{all:?}");
    klamp.logged(&[("level", "WARN"), ("message", CANNOT)]);
    trigger(&klamp, 12);
    klamp.stop();
}

const CANNOT: &str = "a capture cannot be written to --capture-dir; it is at /captures for a while";

#[test]
fn a_directory_that_takes_no_more_files_is_counted_and_one_that_does_again_is_used() {
    let broker = failing_broker();
    let arguments = ["--capture-time=0s"];
    let klamp = with_small_directory(broker.address(), "1m", &arguments);
    trigger(&klamp, 0);
    klamp.captured(Duration::from_secs(10), "written", |it| {
        it["file"].is_string()
    });
    remount(&klamp, "ro");
    for id in 1..4 {
        trigger(&klamp, id);
    }
    klamp.scrape_until("they are counted", |_| {
        dropped(&klamp, "write_failed") == 3.0
    });
    klamp.logged(&[("level", "WARN"), ("message", CANNOT)]);
    remount(&klamp, "rw");
    trigger(&klamp, 4);
    klamp.captured(Duration::from_secs(10), "written again", |it| {
        it["id"] == 5 && it["file"].is_string()
    });
    assert_eq!(klamp.captures().len(), 5);
    klamp.stop();
}

/// Mounts klamp's directory anew, read-only or not.
#[track_caller]
fn remount(klamp: &Klamp, how: &str) {
    let mut command = Command::new("nsenter");
    let pid = klamp.process().pid().to_string();
    let is_root = rustix::process::geteuid().is_root();
    command.args(["-t", &pid, "-m"]);
    if !is_root {
        command.args(["-U", "--preserve-credentials"]);
    }
    let script = r#"mount -o "remount,$0" "$(mount -t tmpfs | tail -n 1 | cut -d ' ' -f 3)""#;
    command.args(["sh", "-c", script, how]);
    let output = command.output().expect("there is nsenter");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn downloads_that_are_broken_off_hold_up_nobody_and_leave_nothing() {
    let broker = failing_broker();
    let klamp = Klamp::start_with(broker.address(), &["--capture-time=0s"]);
    let mut client = trigger(&klamp, 0);
    // A file larger than what a socket takes when nobody reads would be.
    for id in 1..7 {
        client.send_bytes(&asking(id));
        let expected = answering(id, 1_000 + i16::try_from(id).expect("it is small"));
        assert!(client.read_bytes(expected.len()) == expected, "other bytes");
    }
    let capture = klamp.captured(Duration::from_secs(10), "of it", |_| true);
    let whole = std::fs::read(klamp.download(&capture)).expect("it is there");
    let descriptors = klamp.process().descriptors();
    let resident = klamp.process().resident_bytes();
    let path = format!("GET /captures/{}.pcapng HTTP/1.0\r\n\r\n", capture["id"]);
    for read in [0, 1, 100, whole.len() / 2] {
        for _ in 0..25 {
            let mut download = Client::over(TcpStream::connect(klamp.debug()).expect("it listens"));
            download.send_bytes(path.as_bytes());
            if read > 0 {
                download.read_bytes(read);
            }
            download.reset();
            trigger(&klamp, 9);
        }
    }
    klamp.scrape_until("all that was opened is closed", |scrape| {
        klamp.process().descriptors() <= descriptors
            && scrape.get("klamp_connections_active", &[]) == Some(1.0)
    });
    let grown = klamp.process().resident_bytes().saturating_sub(resident);
    assert!(grown < 16 << 20, "{grown} bytes more");
    let again = std::fs::read(klamp.download(&capture)).expect("it is there");
    assert!(again == whole, "it is the same capture still");
    klamp.stop();
}
