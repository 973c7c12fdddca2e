//! Connections come and go in every way there is, and nothing of them stays; and one that stands
//! still, since a peer does not read, stays and costs nothing.

use klamp_tests::klamp::Klamp;
use klamp_tests::peer::{Client, End, Recording, Upstream};
use klamp_tests::wire;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Known, without a layout for its messages here; and a key that nobody knows.
const KEYS: [i16; 2] = [12, 9_999];

/// What the upstream is asked to do with a request: the first byte of its body.
const ANSWER: u8 = 0;
const ANSWER_LATE: u8 = 1;
const CLOSE: u8 = 2;
const RESET: u8 = 3;
const CLOSE_AMID_ANSWER: u8 = 4;

/// Does with each request what the request says.
fn obedient_upstream() -> Upstream {
    Upstream::start(|stream| {
        let mut peer = Client::over(stream);
        while let Some(payload) = frame_or_end(&mut peer) {
            let id = &payload[4..8];
            let at = 10 + usize::from(payload[9]);
            let answer = wire::frame(&[id, &[0x5a; 100][..]].concat());
            match payload[at] {
                ANSWER_LATE => sleep(Duration::from_millis(10)),
                CLOSE => return,
                RESET => return peer.reset(),
                CLOSE_AMID_ANSWER => return peer.try_send_bytes(&answer[..50]),
                _ => {}
            }
            peer.try_send_bytes(&answer);
        }
    })
}

fn frame_or_end(peer: &mut Client) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    peer.stream().read_exact(&mut length).ok()?;
    let length = u32::from_be_bytes(length);
    let mut payload = vec![0; usize::try_from(length).ok()?];
    peer.stream().read_exact(&mut payload).ok()?;
    Some(payload)
}

#[test]
fn a_thousand_connections_that_end_in_every_way_leave_nothing_behind() {
    const CONNECTIONS: u64 = 1_000;
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let upstream = obedient_upstream();
    let mut klamp = Klamp::start(upstream.address());
    let address = klamp.address();
    // Opens what stays open, such as the listener of this page itself.
    live(address, &mut fastrand::Rng::with_seed(0), 0);
    klamp.scrape_until("the first connection has ended", nothing_open);
    let descriptors = klamp.process().descriptors();

    std::thread::scope(|scope| {
        for thread in 0..40 {
            scope.spawn(move || {
                for number in (thread..CONNECTIONS).step_by(40) {
                    let mut random = fastrand::Rng::with_seed(seed ^ number);
                    sleep(Duration::from_millis(random.u64(0..30)));
                    live(address, &mut random, number % 6);
                }
            });
        }
    });

    let scrape = klamp.scrape_until("gauges are back at zero", nothing_open);
    let all = (CONNECTIONS + 1) as f64;
    assert_eq!(scrape.get("klamp_connections_opened_total", &[]), Some(all));
    assert_eq!(scrape.get("klamp_connections_closed_total", &[]), Some(all));
    for reason in [
        "internal",
        "aborted",
        "mismatch",
        "malformed",
        "rejected_request",
    ] {
        let closed = scrape.sum("klamp_connections_closed_total", &[("reason", reason)]);
        assert_eq!(closed, 0.0, "{reason}");
    }
    klamp_tests::wait::until_holds(Duration::from_secs(10), "descriptors are closed", || {
        klamp.process().descriptors() <= descriptors
    });
    assert_eq!(
        klamp
            .debug_page("/connections")
            .to_string()
            .matches("127.0.0.1")
            .count(),
        0
    );
    klamp.check_alive();
    klamp.stop();
}

fn nothing_open(scrape: &klamp_tests::scrape::Scrape) -> bool {
    scrape.get("klamp_connections_active", &[]) == Some(0.0)
        && scrape.get("klamp_in_flight_requests", &[]) == Some(0.0)
}

/// One connection from its start to its end, which comes in the way of that number.
fn live(address: SocketAddr, random: &mut fastrand::Rng, way: u64) {
    let mut client = Client::connect(address);
    let mut id = 0;
    let mut request = |action: u8, random: &mut fastrand::Rng| {
        id += 1;
        let key = *random.choice(&KEYS).expect("not empty");
        let body = [&[action][..], &vec![1; random.usize(0..200)]].concat();
        (id, wire::bare_request(key, 0, id, "churn", &body))
    };
    for _ in 0..random.usize(0..4) {
        let (id, bytes) = request(
            *random.choice(&[ANSWER, ANSWER_LATE]).expect("not empty"),
            random,
        );
        client.send_bytes(&bytes);
        if random.bool() {
            // Else the answer may still be on its way when the connection ends.
            let mut answer = client.read_frame();
            while wire::response_correlation_id(&answer) != id {
                answer = client.read_frame();
            }
        }
    }
    match way {
        0 => drop(client),
        1 => client.reset(),
        2 => {
            // Amid a frame.
            let (_, bytes) = request(ANSWER, random);
            client.send_bytes(&bytes[..random.usize(1..bytes.len())]);
        }
        3 => {
            // Half-closed: what was asked before is answered to the last byte.
            let (last, bytes) = request(ANSWER_LATE, random);
            client.send_bytes(&bytes);
            client.finish();
            let (bytes, end) = client.read_to_end();
            let (answers, rest) = wire::frames(&bytes);
            let answered = answers
                .last()
                .map(|answer| wire::response_correlation_id(answer));
            assert_eq!((answered, rest, end), (Some(last), &[][..], End::Closed));
        }
        4 => {
            let (_, bytes) = request(*random.choice(&[CLOSE, RESET]).expect("not empty"), random);
            client.send_bytes(&bytes);
            client.read_to_end();
        }
        _ => {
            let (_, bytes) = request(CLOSE_AMID_ANSWER, random);
            client.send_bytes(&bytes);
            let (bytes, _) = client.read_to_end();
            assert_eq!(
                wire::frames(&bytes).1.len(),
                50,
                "what came of the answer is passed on"
            );
        }
    }
}

/// How long a peer stands still. An operator's run may make it minutes.
fn standstill() -> Duration {
    let seconds = std::env::var("KLAMP_STANDSTILL_SECONDS").ok();
    Duration::from_secs(seconds.map_or(25, |text| text.parse().expect("a number of seconds")))
}

const LARGE: usize = 64 << 20;

#[test]
fn a_client_that_stops_reading_amid_a_response_keeps_its_connection_and_costs_no_memory() {
    let sent = Recording::default();
    let said = sent.clone();
    let upstream = Upstream::start(move |stream| {
        let mut peer = Client::over(stream);
        let payload = peer.read_frame();
        let mut answer = payload[4..8].to_vec();
        answer.resize(LARGE, 0x5a);
        let answer = wire::frame(&answer);
        peer.stream()
            .set_write_timeout(None)
            .expect("a socket takes options");
        peer.send_bytes(&answer);
        said.add(&answer[..16]);
        peer.finish();
        peer.read_to_end();
    });
    // Were the response timed while the client holds it back, five seconds would end it.
    let klamp = Klamp::start_with(upstream.address(), &["--response-progress-timeout", "5s"]);
    let before = klamp.process().resident_bytes();
    let mut client = Client::connect(klamp.address());
    client.send_bytes(&wire::bare_request(12, 0, 7, "poller", b""));
    let mut got = client.read_bytes(1 << 20).len();
    stand_still(&klamp, before);
    assert!(
        sent.is_empty(),
        "the whole answer has gone, so nothing was held back"
    );
    let (rest, end) = client.read_to_end();
    got += rest.len();
    assert_eq!((got, end), (LARGE + 4, End::Closed));
    drop(client);
    klamp.scrape_until("it has ended", nothing_open);
    klamp.stop();
}

#[test]
fn a_broker_that_stops_reading_amid_a_request_keeps_its_connection_and_costs_no_memory() {
    let received = Recording::default();
    let heard = received.clone();
    let pause = standstill() + Duration::from_secs(2);
    let upstream = Upstream::start(move |stream| {
        let mut peer = Client::over(stream);
        peer.read_bytes(1 << 20);
        sleep(pause);
        peer.read_bytes(LARGE + 4 - (1 << 20));
        heard.add(b"whole");
        peer.try_send_bytes(&wire::frame(&[0, 0, 0, 7, 1, 2]));
        peer.read_to_end();
    });
    let klamp = Klamp::start_with(upstream.address(), &["--request-progress-timeout", "5s"]);
    let before = klamp.process().resident_bytes();
    let mut client = Client::connect(klamp.address());
    let stream = client.stream().try_clone().expect("a socket can be cloned");
    stream
        .set_write_timeout(None)
        .expect("a socket takes options");
    let head = wire::bare_request(12, 0, 7, "bulky", b"");
    let writer = std::thread::spawn(move || {
        let mut request = head[4..].to_vec();
        request.resize(LARGE, 0x5a);
        (&stream)
            .write_all(&wire::frame(&request))
            .expect("klamp takes bytes");
    });
    stand_still(&klamp, before);
    assert!(received.is_empty());
    let answer = client.read_frame();
    assert_eq!(answer, [0, 0, 0, 7, 1, 2]);
    writer.join().expect("all of it was written");
    drop(client);
    klamp.scrape_until("it has ended", nothing_open);
    klamp.stop();
}

#[test]
fn a_peer_that_stops_sending_amid_a_frame_is_let_go() {
    let upstream = Upstream::start(|stream| {
        let mut peer = Client::over(stream);
        if let Some(payload) = frame_or_end(&mut peer) {
            let answer = wire::frame(&[&payload[4..8], &[0x5a; 1_000][..]].concat());
            peer.try_send_bytes(&answer[..500]);
            peer.read_to_end();
        }
    });
    let timeouts = [
        "--request-progress-timeout",
        "2s",
        "--response-progress-timeout",
        "2s",
    ];
    let klamp = Klamp::start_with(upstream.address(), &timeouts);
    let request = wire::bare_request(12, 0, 7, "client", b"");
    for (bytes, reason) in [
        (&request[..9], "stalled_request"),
        (&request[..], "stalled_response"),
    ] {
        let start = Instant::now();
        let mut client = Client::connect(klamp.address());
        client.send_bytes(bytes);
        client.read_to_end();
        let took = start.elapsed();
        let fair = Duration::from_millis(1_900)..Duration::from_secs(10);
        assert!(fair.contains(&took), "{reason} after {took:?}");
        klamp.scrape_until(reason, |scrape| {
            scrape.get("klamp_connections_closed_total", &[("reason", reason)]) == Some(1.0)
        });
    }
    klamp.stop();
}

/// Waits while a peer does not read, and looks at klamp meanwhile.
#[track_caller]
fn stand_still(klamp: &Klamp, before: u64) {
    const GROWTH: u64 = 4 << 20;
    let start = Instant::now();
    while start.elapsed() < standstill() {
        sleep(Duration::from_millis(500));
        let now = klamp.process().resident_bytes();
        assert!(
            now < before + GROWTH,
            "memory grew from {before} to {now} bytes"
        );
        let scrape = klamp.scrape();
        assert_eq!(scrape.get("klamp_connections_active", &[]), Some(1.0));
        assert_eq!(scrape.sum("klamp_connections_closed_total", &[]), 0.0);
    }
}
