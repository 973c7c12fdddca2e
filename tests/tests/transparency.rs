//! Outside ApiVersions not one byte changes: two recorders stand on the two sides of klamp while
//! clients work, and what they have written down must be the same.

use klamp_tests::kafka::{Kafka, V4_4_0};
use klamp_tests::klamp::Klamp;
use klamp_tests::peer::{Client, Recording, Upstream};
use klamp_tests::seed::seed;
use klamp_tests::tap::{Talk, Tap};
use klamp_tests::{java, place, wait, wire};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Message};
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

const API_VERSIONS: i16 = 18;

#[test]
fn outside_api_versions_not_one_byte_of_whole_client_sessions_changes() {
    let kafka = Kafka::shared(V4_4_0);
    let broker = kafka.broker();
    for topic in ["in", "out"] {
        kafka.create_topic(topic, 1);
    }
    // Clients come to the outer tap, since the broker advertises it.
    let inner = Tap::start(place::free_address(), broker.upstream);
    let klamp = Klamp::start(inner.address());
    let outer = Tap::start(broker.klamp, klamp.address());
    let bootstrap = outer.address().to_string();

    librdkafka(&bootstrap, "in", 5_000);
    let arguments = [&bootstrap, "in", "out", "5000"];
    java::program(V4_4_0, "Transactions.java", &arguments);

    let clear = [
        ("klamp_connections_active", 0.0),
        ("klamp_in_flight_requests", 0.0),
    ];
    klamp.scrape_until("all clients have gone", |scrape| {
        clear
            .iter()
            .all(|(name, value)| scrape.get(name, &[]) == Some(*value))
    });
    let mut last = (Vec::new(), Vec::new());
    wait::until_holds(
        Duration::from_secs(10),
        "both taps have written all down",
        || {
            last = (canonical(&outer.talks()), canonical(&inner.talks()));
            last.0.len() == last.1.len() && total(&last.0) == total(&last.1)
        },
    );
    let (outside, inside) = last;
    assert!(outside.len() >= 4, "only {} connections", outside.len());
    for (n, (outside, inside)) in outside.iter().zip(&inside).enumerate() {
        assert_same("requests", n, &outside.requests, &inside.requests);
        assert_same("responses", n, &outside.responses, &inside.responses);
    }
    let clamped = outside
        .iter()
        .zip(&inside)
        .filter(|(a, b)| a.rows < b.rows)
        .count();
    assert!(
        clamped > 0,
        "no ApiVersions answer was clamped: was klamp there at all?"
    );
    klamp.stop();
}

#[test]
fn whatever_frames_come_they_leave_as_they_came() {
    let seed = seed();
    let received = Recording::default();
    let sent = Recording::default();
    let (heard, said) = (received.clone(), sent.clone());
    let upstream = Upstream::start(move |stream| {
        let mut random = fastrand::Rng::with_seed(seed ^ 1);
        let mut peer = Client::over(stream);
        while heard.len() < usize::MAX {
            let payload = peer.read_frame();
            heard.add(&wire::frame(&payload));
            if payload.ends_with(b"the last") {
                break;
            }
            let id = wire::request_correlation_id(&payload).to_be_bytes();
            let answer = wire::frame(&[&id[..], &junk(&mut random)].concat());
            said.add(&answer);
            in_pieces(&answer, &mut random, |piece| peer.try_send_bytes(piece));
        }
        peer.finish();
    });
    let mut klamp = Klamp::start(upstream.address());

    let mut random = fastrand::Rng::with_seed(seed);
    let mut requests = Vec::new();
    for id in 0..300 {
        // Not ApiVersions, whose answer is read; not Produce, as junk may ask for no answer; not
        // SaslHandshake, after which frames are tokens.
        let key = *random
            .choice(&[1, 1, 3, 3, 2, 8, 12, 68, 88, 9_999, -5])
            .expect("not empty");
        let version = random.i16(-1..20);
        requests.extend(wire::bare_request(
            key,
            version,
            id,
            "junk",
            &junk(&mut random),
        ));
    }
    requests.extend(wire::bare_request(9_999, 0, 300, "junk", b"the last"));
    let mut client = Client::connect(klamp.address());
    let mut sending = client.stream().try_clone().expect("a socket can be cloned");
    let all = Arc::new(requests);
    let writing = {
        let all = all.clone();
        std::thread::spawn(move || {
            in_pieces(&all, &mut random, |piece| {
                sending.write_all(piece).expect("klamp takes bytes");
            });
        })
    };
    let (answers, _) = client.read_to_end();
    writing.join().expect("all requests are sent");
    assert_same("requests", 0, &all, &received.bytes());
    assert_same("responses", 0, &sent.bytes(), &answers);
    klamp.check_alive();
}

/// One connection's bytes with the rows of ApiVersions answers, and the lengths of these answers,
/// cut out.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Canonical {
    requests: Vec<u8>,
    responses: Vec<u8>,
    /// How many rows were cut out.
    rows: usize,
}

/// In an order that does not depend on who was accepted first.
fn canonical(talks: &[Talk]) -> Vec<Canonical> {
    let mut all: Vec<_> = talks.iter().map(canonical_talk).collect();
    all.sort();
    all
}

fn canonical_talk(talk: &Talk) -> Canonical {
    let requests = talk.requests.bytes();
    let (payloads, _) = wire::frames(&requests);
    let versions: HashMap<i32, i16> = payloads
        .iter()
        .filter(|payload| wire::api_key(payload) == API_VERSIONS)
        .map(|payload| {
            (
                wire::request_correlation_id(payload),
                wire::api_version(payload),
            )
        })
        .collect();
    let bytes = talk.responses.bytes();
    let (payloads, rest) = wire::frames(&bytes);
    let mut responses = Vec::new();
    let mut rows = 0;
    for payload in payloads {
        match versions.get(&wire::response_correlation_id(payload)) {
            Some(version) => {
                let (head, count, tail) = without_rows(*version, payload);
                responses.extend([head, tail].concat());
                rows += count;
            }
            None => responses.extend(wire::frame(payload)),
        }
    }
    responses.extend(rest);
    Canonical {
        requests,
        responses,
        rows,
    }
}

/// Correlation id and error code, the number of rows, and what follows them.
fn without_rows(version: i16, payload: &[u8]) -> (&[u8], usize, &[u8]) {
    let (head, rest) = payload.split_at(6);
    if version >= 3 {
        assert!(rest[0] > 0 && rest[0] < 0x80, "a compact count in one byte");
        let count = usize::from(rest[0]) - 1;
        (head, count, &rest[1 + 7 * count..])
    } else {
        let count = i32::from_be_bytes(rest[..4].try_into().expect("four bytes"));
        let count = usize::try_from(count).expect("no null rows");
        (head, count, &rest[4 + 6 * count..])
    }
}

fn total(talks: &[Canonical]) -> usize {
    talks
        .iter()
        .map(|talk| talk.requests.len() + talk.responses.len())
        .sum()
}

#[track_caller]
fn assert_same(what: &str, connection: usize, outside: &[u8], inside: &[u8]) {
    if outside != inside {
        let at = outside
            .iter()
            .zip(inside)
            .take_while(|(a, b)| a == b)
            .count();
        let (outside, inside) = (&outside[at..], &inside[at..]);
        let show = |bytes: &[u8]| format!("{:02x?}", &bytes[..bytes.len().min(32)]);
        panic!(
            "{what} of connection {connection} differ at byte {at}: {} outside, {} inside",
            show(outside),
            show(inside)
        );
    }
}

/// A whole session of librdkafka: a producer, and a consumer in a group, both closed at the end.
fn librdkafka(bootstrap: &str, topic: &str, records: usize) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap);
    let producer: BaseProducer = config.create().expect("librdkafka makes a producer");
    for number in 0..records {
        let payload = format!("record {number}");
        let record = BaseRecord::<(), _>::to(topic).payload(&payload);
        producer.send(record).expect("its queue takes so few");
    }
    producer
        .flush(Duration::from_secs(60))
        .expect("everything is delivered");
    drop(producer);
    let consumer: BaseConsumer = config
        .set("group.id", "transparency")
        .set("auto.offset.reset", "earliest")
        .create()
        .expect("librdkafka makes a consumer");
    consumer
        .subscribe(&[topic])
        .expect("a topic can be subscribed to");
    let start = Instant::now();
    let mut consumed = 0;
    while consumed < records {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "only {consumed} records came"
        );
        if let Some(message) = consumer.poll(Duration::from_secs(1)) {
            assert!(
                message
                    .expect("librdkafka reports no error")
                    .payload()
                    .is_some()
            );
            consumed += 1;
        }
    }
}

/// Few or many random bytes, now and then more than any buffer holds.
fn junk(random: &mut fastrand::Rng) -> Vec<u8> {
    let most = *random
        .choice(&[0, 10, 10, 100, 1_000, 1_000, 300_000])
        .expect("not empty");
    let length = random.usize(0..=most);
    std::iter::repeat_with(|| random.u8(..))
        .take(length)
        .collect()
}

/// Hands `bytes` on in pieces of random sizes, some of them with a pause.
fn in_pieces(mut bytes: &[u8], random: &mut fastrand::Rng, mut send: impl FnMut(&[u8])) {
    while !bytes.is_empty() {
        let most = *random
            .choice(&[1, 3, 20, 20_000, 500_000])
            .expect("not empty");
        let (piece, rest) = bytes.split_at(random.usize(1..=most).min(bytes.len()));
        send(piece);
        bytes = rest;
        if random.u8(..) < 8 {
            std::thread::sleep(Duration::from_millis(random.u64(0..5)));
        }
    }
}
