//! Connections come and go in every way there is, and nothing of them stays; and one that stands
//! still, since a peer does not read, stays and costs nothing.

use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::{FetchRequest, FetchResponse, ProduceRequest, ProduceResponse};
use klamp_tests::klamp::Klamp;
use klamp_tests::peer::{Client, End, Recording, Upstream};
use klamp_tests::records::{self, FETCH, PRODUCE};
use klamp_tests::scrape::Scrape;
use klamp_tests::seed::seed;
use klamp_tests::{wait, wire};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Heartbeat, whose layout these bodies do not fit; and a key that nobody knows.
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
    let seed = seed();
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
    wait::until_holds(Duration::from_secs(10), "descriptors are closed", || {
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

fn nothing_open(scrape: &Scrape) -> bool {
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

/// Bytes in the record set of a large message.
const LARGE: usize = 64 << 20;

#[test]
fn a_client_that_stops_reading_amid_a_response_keeps_its_connection_and_costs_no_memory() {
    let sent = Recording::default();
    let said = sent.clone();
    let upstream = Upstream::start(move |stream| {
        let mut peer = Client::over(stream);
        let id = wire::request_correlation_id(&peer.read_frame());
        let records = PartitionData::default().with_records(Some(vec![0x5a; LARGE].into()));
        let topic = FetchableTopicResponse::default()
            .with_topic(records::topic_name("large"))
            .with_partitions(vec![records]);
        let answer = FetchResponse::default().with_responses(vec![topic]);
        let answer = wire::response::<FetchRequest>(FETCH, id, &answer);
        let timeless = peer.stream().set_write_timeout(None);
        timeless.expect("a socket takes options");
        peer.send_bytes(&answer);
        said.add(&answer.len().to_be_bytes());
        peer.finish();
        peer.read_to_end();
    });
    // Were the response timed while the client holds it back, five seconds would end it.
    let klamp = Klamp::start_with(upstream.address(), &["--response-progress-timeout", "5s"]);
    let before = klamp.process().resident_bytes();
    let mut client = Client::connect(klamp.address());
    client.send(FETCH, &records::fetch("large"));
    let mut got = client.read_bytes(1 << 20).len();
    stand_still(&klamp, before);
    assert!(
        sent.is_empty(),
        "the whole answer has gone: nothing was held back"
    );
    let (rest, end) = client.read_to_end();
    got += rest.len();
    assert_eq!(end, End::Closed);
    assert_eq!(sent.bytes(), got.to_be_bytes());
    drop(client);
    assert_understood(&klamp, "Fetch");
    klamp.stop();
}

#[test]
fn a_broker_that_stops_reading_amid_a_request_keeps_its_connection_and_costs_no_memory() {
    let request = records::produce("large", -1, &vec![0x5a; LARGE]);
    let request = wire::request(PRODUCE, 7, "bulky", &request);
    let length = request.len();
    let received = Recording::default();
    let heard = received.clone();
    let pause = standstill() + Duration::from_secs(2);
    let upstream = Upstream::start(move |stream| {
        let mut peer = Client::over(stream);
        peer.read_bytes(1 << 20);
        sleep(pause);
        peer.read_bytes(length - (1 << 20));
        heard.add(b"whole");
        let answer = wire::response::<ProduceRequest>(PRODUCE, 7, &ProduceResponse::default());
        peer.try_send_bytes(&answer);
        peer.read_to_end();
    });
    let klamp = Klamp::start_with(upstream.address(), &["--request-progress-timeout", "5s"]);
    let before = klamp.process().resident_bytes();
    let mut client = Client::connect(klamp.address());
    let mut stream = client.stream().try_clone().expect("a socket can be cloned");
    let timeless = stream.set_write_timeout(None);
    timeless.expect("a socket takes options");
    let writer = std::thread::spawn(move || stream.write_all(&request));
    stand_still(&klamp, before);
    assert!(
        received.is_empty(),
        "the whole request has gone: nothing was held back"
    );
    client.expect::<ProduceRequest>(PRODUCE, 7);
    let written = writer.join().expect("it does not panic");
    written.expect("klamp takes all of it");
    drop(client);
    assert_understood(&klamp, "Produce");
    klamp.stop();
}

/// The large message was read to its end, and the connection has gone.
#[track_caller]
fn assert_understood(klamp: &Klamp, api_key: &str) {
    let scrape = klamp.scrape_until("it has ended", nothing_open);
    let answered = [("api_key", api_key), ("outcome", "ok")];
    assert_eq!(scrape.get("klamp_responses_total", &answered), Some(1.0));
    assert_eq!(scrape.sum("klamp_opaque_frames_total", &[]), 0.0);
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
        eprintln!("{now} bytes resident, {before} before");
        assert!(
            now < before + GROWTH,
            "memory grew from {before} to {now} bytes"
        );
        let scrape = klamp.scrape();
        assert_eq!(scrape.get("klamp_connections_active", &[]), Some(1.0));
        assert_eq!(scrape.sum("klamp_connections_closed_total", &[]), 0.0);
    }
}
