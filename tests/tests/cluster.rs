//! A cluster of several brokers behind one klamp, a listener for each: clients find every broker
//! through it, and find the way when one of them goes and comes to know it from klamp's metrics.

use klamp_tests::kafka::{Kafka, V4_4_0};
use klamp_tests::klamp::Klamp;
use klamp_tests::peer::Client;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Message};
use std::collections::HashSet;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
const TOPIC: &str = "spread";
/// The first broker is the only controller, so the last one goes.
const LEAVES: i32 = 3;

#[test]
fn clients_reach_every_broker_through_klamp_and_get_over_one_that_leaves() {
    let replicated = [("offsets.topic.replication.factor", "3")];
    let mut kafka = Kafka::start_with(V4_4_0, 3, &replicated);
    kafka.create_topic(TOPIC, 6);
    let pairs: Vec<_> = kafka
        .brokers()
        .iter()
        .map(|b| (b.klamp, b.upstream))
        .collect();
    let klamp = Klamp::between(&pairs, &[]);
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", pairs[0].0.to_string());
    let producer: BaseProducer = config.create().expect("librdkafka makes a producer");

    produce(&producer, 0..3_000);
    let scrape = klamp.scrape();
    for (_, upstream) in &pairs {
        let labels = [("upstream", &*upstream.to_string()), ("result", "ok")];
        assert!(
            scrape.sum("klamp_dials_total", &labels) >= 1.0,
            "{upstream}"
        );
    }
    assert_eq!(scrape.sum("klamp_foreign_addresses_total", &[]), 0.0);
    assert_eq!(scrape.get("klamp_version_tables", &[]), Some(1.0));

    kafka.stop_broker(LEAVES);
    produce(&producer, 3_000..6_000);
    let (listen, gone) = pairs.last().expect("three of them");
    let (came, _) = Client::connect(*listen).read_to_end();
    assert_eq!(came, b"", "a client of a broker that is gone is let go");
    klamp.scrape_until("the broker is known to be gone", |scrape| {
        let upstream = [("upstream", &*gone.to_string())];
        let refused = [upstream[0], ("result", "refused")];
        scrape.get("klamp_upstream_up", &upstream) == Some(0.0)
            && scrape.sum("klamp_dials_total", &refused) == 1.0
    });

    let consumer: BaseConsumer = config
        .set("group.id", "readers")
        .set("auto.offset.reset", "earliest")
        .create()
        .expect("librdkafka makes a consumer");
    consumer
        .subscribe(&[TOPIC])
        .expect("a topic can be subscribed to");
    let start = Instant::now();
    let mut read = HashSet::new();
    while read.len() < 6_000 {
        assert!(
            start.elapsed() < PATIENCE,
            "only {} records came",
            read.len()
        );
        if let Some(Ok(message)) = consumer.poll(Duration::from_secs(1)) {
            read.insert(message.payload().expect("records have values").to_vec());
        }
    }
    drop((producer, consumer));
    let scrape = klamp.scrape_until("all clients have gone", |scrape| {
        scrape.get("klamp_connections_active", &[]) == Some(0.0)
            && scrape.get("klamp_in_flight_requests", &[]) == Some(0.0)
    });
    assert_eq!(scrape.sum("klamp_correlation_mismatches_total", &[]), 0.0);
    klamp.stop();
}

/// Sends one record for each number, spread over all partitions, until all are delivered.
fn produce(producer: &BaseProducer, numbers: std::ops::Range<i32>) {
    for number in numbers {
        let (key, value) = (number.to_string(), format!("record {number}"));
        let record = BaseRecord::to(TOPIC).key(&key).payload(&value);
        producer.send(record).expect("its queue takes so few");
    }
    producer.flush(PATIENCE).expect("everything is delivered");
}
