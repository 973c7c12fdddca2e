//! Ordinary clients work through klamp against real brokers of two releases: Kafka's own tools, a
//! transactional producer, librdkafka, and one client that mixes acks as no library would.
//!
//! All clients of a release share a broker and a klamp, and come to klamp because the broker's
//! `advertised.listeners` names it. After each of them klamp must have understood everything.

use kafka_protocol::messages::ProduceRequest;
use klamp_tests::kafka::{Kafka, V4_3_1, V4_4_0, Version};
use klamp_tests::klamp::Klamp;
use klamp_tests::peer::Client;
use klamp_tests::records::{self, FETCH, PRODUCE};
use klamp_tests::seed::seed;
use klamp_tests::{java, wire};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Message};
use std::fmt::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const CONSOLE_PRODUCER: &str = "org.apache.kafka.tools.ConsoleProducer";
const CONSOLE_CONSUMER: &str = "org.apache.kafka.tools.consumer.ConsoleConsumer";

/// A broker and the klamp that its clients are sent to.
struct Front {
    kafka: &'static Kafka,
    klamp: Klamp,
}

impl Front {
    fn of(version: Version) -> &'static Self {
        static OLDER: OnceLock<Front> = OnceLock::new();
        static NEWER: OnceLock<Front> = OnceLock::new();
        let kafka = Kafka::shared(version);
        let broker = kafka.broker();
        let front = if version == V4_3_1 { &OLDER } else { &NEWER };
        front.get_or_init(|| Self {
            kafka,
            klamp: Klamp::between(&[(broker.klamp, broker.upstream)], &[]),
        })
    }

    fn bootstrap(&self) -> String {
        self.klamp.address().to_string()
    }

    /// Runs one of Kafka's tools through klamp and returns what it printed.
    #[track_caller]
    fn tool(&self, main: &str, arguments: &[&str]) -> String {
        self.tool_fed(main, arguments, "")
    }

    #[track_caller]
    fn tool_fed(&self, main: &str, arguments: &[&str], input: &str) -> String {
        let bootstrap = self.bootstrap();
        let all = [&["--bootstrap-server", &bootstrap], arguments].concat();
        java::tool_fed(self.kafka.version(), main, &all, input)
    }

    /// klamp has seen `api_key`, and whatever it has seen it has understood.
    #[track_caller]
    fn has_understood(&self, api_key: &str) {
        let answered = |scrape: &klamp_tests::scrape::Scrape| {
            scrape.sum("klamp_responses_total", &[("api_key", api_key)]) > 0.0
        };
        let scrape = self
            .klamp
            .scrape_until(&format!("{api_key} is answered"), answered);
        for name in [
            "klamp_opaque_frames_total",
            "klamp_frames_rejected_total",
            "klamp_correlation_mismatches_total",
            "klamp_unknown_api_keys_total",
            "klamp_unnamed_error_codes_total",
            "klamp_foreign_addresses_total",
        ] {
            assert_eq!(scrape.sum(name, &[]), 0.0, "{name}");
        }
        let unread = [("outcome", "opaque")];
        assert_eq!(scrape.sum("klamp_responses_total", &unread), 0.0);
    }
}

fn a_hundred_thousand_records_arrive_whole_and_in_order(version: Version) {
    let front = Front::of(version);
    front.kafka.create_topic("hundred-thousand", 1);
    let mut records = String::new();
    for number in 0..100_000_u64 {
        writeln!(records, "record {number} {:x}", number * 2_654_435_761).unwrap();
    }
    front.tool_fed(CONSOLE_PRODUCER, &["--topic", "hundred-thousand"], &records);
    let from = [
        "--topic",
        "hundred-thousand",
        "--from-beginning",
        "--max-messages",
        "100000",
    ];
    let consumed = front.tool(CONSOLE_CONSUMER, &from);
    let same = consumed
        .lines()
        .zip(records.lines())
        .take_while(|(a, b)| a == b);
    assert_eq!(same.count(), 100_000, "the records differ after so many");
    assert_eq!(consumed.len(), records.len());
    front.has_understood("Produce");
    front.has_understood("Fetch");
}

fn kafka_topics_creates_describes_alters_lists_and_deletes(version: Version) {
    let front = Front::of(version);
    let topics = |arguments: &[&str]| front.tool("org.apache.kafka.tools.TopicCommand", arguments);
    topics(&["--create", "--topic", "by-tool", "--partitions", "2"]);
    topics(&["--alter", "--topic", "by-tool", "--partitions", "5"]);
    let described = topics(&["--describe", "--topic", "by-tool"]);
    assert!(described.contains("PartitionCount: 5"), "{described}");
    assert!(topics(&["--list"]).lines().any(|line| line == "by-tool"));
    topics(&["--delete", "--topic", "by-tool"]);
    assert!(!topics(&["--list"]).lines().any(|line| line == "by-tool"));
    front.has_understood("CreateTopics");
    front.has_understood("DeleteTopics");
}

fn kafka_consumer_groups_lists_describes_and_resets(version: Version) {
    let front = Front::of(version);
    front.kafka.create_topic("for-groups", 1);
    front.tool_fed(CONSOLE_PRODUCER, &["--topic", "for-groups"], "a\nb\nc\nd\n");
    let from = [
        "--topic",
        "for-groups",
        "--from-beginning",
        "--max-messages",
        "4",
    ];
    let read = front.tool(
        CONSOLE_CONSUMER,
        &[&from[..], &["--group", "readers"]].concat(),
    );
    assert_eq!(read, "a\nb\nc\nd\n");

    let groups = |arguments: &[&str]| {
        front.tool(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            arguments,
        )
    };
    assert!(groups(&["--list"]).lines().any(|line| line == "readers"));
    let described = groups(&["--describe", "--group", "readers"]);
    assert_eq!(offsets(&described), ["4", "4", "0"], "{described}");
    let reset = [
        "--reset-offsets",
        "--group",
        "readers",
        "--topic",
        "for-groups",
    ];
    groups(&[&reset[..], &["--to-offset", "1", "--execute"]].concat());
    let described = groups(&["--describe", "--group", "readers"]);
    assert_eq!(offsets(&described), ["1", "4", "3"], "{described}");
    front.has_understood("OffsetFetch");
    front.has_understood("ListGroups");
}

/// Current offset, log end offset and lag of the only topic in a group's description.
fn offsets(described: &str) -> Vec<&str> {
    let row = described.lines().find(|line| line.contains("for-groups"));
    let row = row.unwrap_or_else(|| panic!("no row: {described}"));
    let header = described
        .lines()
        .find(|line| line.contains("CURRENT-OFFSET"));
    let header = header.unwrap_or_else(|| panic!("no header: {described}"));
    let column = |name| {
        let at = header.split_whitespace().position(|title| title == name);
        let at = at.unwrap_or_else(|| panic!("no {name}: {described}"));
        row.split_whitespace().nth(at).unwrap_or_default()
    };
    ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
        .map(column)
        .to_vec()
}

fn kafka_configs_sets_describes_and_deletes(version: Version) {
    let front = Front::of(version);
    front.kafka.create_topic("for-configs", 1);
    let main = if version == V4_3_1 {
        "kafka.admin.ConfigCommand"
    } else {
        "org.apache.kafka.tools.ConfigCommand"
    };
    let of = ["--entity-type", "topics", "--entity-name", "for-configs"];
    let configs = |arguments: &[&str]| front.tool(main, &[&of[..], arguments].concat());
    configs(&["--alter", "--add-config", "retention.ms=123456"]);
    let described = configs(&["--describe"]);
    assert!(described.contains("retention.ms=123456"), "{described}");
    configs(&["--alter", "--delete-config", "retention.ms"]);
    let described = configs(&["--describe"]);
    assert!(!described.contains("retention.ms=123456"), "{described}");
    front.has_understood("IncrementalAlterConfigs");
    front.has_understood("DescribeConfigs");
}

fn a_transactional_producer_commits_aborts_and_sends_offsets(version: Version) {
    let front = Front::of(version);
    front.kafka.create_topic("transactions-in", 1);
    front.kafka.create_topic("transactions-out", 1);
    front.tool_fed(
        CONSOLE_PRODUCER,
        &["--topic", "transactions-in"],
        "a\nb\nc\n",
    );
    let arguments = [
        &front.bootstrap(),
        "transactions-in",
        "transactions-out",
        "3",
    ];
    let found = java::program(version, "Transactions.java", &arguments);
    assert_eq!(found, "offset 3\ncommitted a\ncommitted b\ncommitted c\n");
    front.has_understood("EndTxn");
    front.has_understood("TxnOffsetCommit");
}

fn librdkafka_produces_and_consumes_in_a_group(version: Version) {
    const RECORDS: usize = 20_000;
    let front = Front::of(version);
    front.kafka.create_topic("librdkafka", 1);
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", front.bootstrap())
        .set("enable.idempotence", "true")
        .create()
        .expect("librdkafka makes a producer");
    for number in 0..RECORDS {
        let payload = format!("record {number}");
        while producer
            .send(BaseRecord::<(), _>::to("librdkafka").payload(&payload))
            .is_err()
        {
            // Its queue is full.
            producer.poll(Duration::from_millis(100));
        }
    }
    producer
        .flush(Duration::from_secs(60))
        .expect("everything is delivered");

    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", front.bootstrap())
        .set("group.id", "librdkafka-readers")
        .set("auto.offset.reset", "earliest")
        .create()
        .expect("librdkafka makes a consumer");
    consumer
        .subscribe(&["librdkafka"])
        .expect("a topic can be subscribed to");
    let start = Instant::now();
    for number in 0..RECORDS {
        let message = loop {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "only {number} records came"
            );
            if let Some(message) = consumer.poll(Duration::from_secs(1)) {
                break message.expect("librdkafka reports no error");
            }
        };
        assert_eq!(
            message.payload(),
            Some(format!("record {number}").as_bytes())
        );
    }
    front.has_understood("InitProducerId");
    front.has_understood("JoinGroup");
}

fn acks_0_and_acks_all_interleaved_leave_no_entry_pending(version: Version) {
    const REQUESTS: i32 = 500;
    let kafka = Kafka::shared(version);
    kafka.create_topic("acks", 1);
    let klamp = Klamp::start(kafka.broker().upstream);
    let mut client = Client::connect(klamp.address());

    // All of them at once, so that answers come while requests without one are still being sent.
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut stream = Vec::new();
    let mut answered = Vec::new();
    let mut values = Vec::new();
    for id in 0..REQUESTS {
        let acks = if random.bool() { 0 } else { -1 };
        let value = format!("record {id}").into_bytes();
        let request = records::produce("acks", acks, &value);
        stream.extend(wire::request(PRODUCE, id, "acks-mixer", &request));
        values.push(value);
        if acks == -1 {
            answered.push(id);
        }
    }
    client.send_bytes(&stream);
    for id in &answered {
        let answer = client.expect::<ProduceRequest>(PRODUCE, *id);
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }
    let answer = client.call(FETCH, &records::fetch("acks"));
    assert_eq!(records::fetched(&answer), values);

    let all = answered.len() as f64;
    let scrape = klamp.scrape_until("both kinds are counted and none is in flight", |scrape| {
        let with = |acks| scrape.sum("klamp_produce_requests_total", &[("acks", acks)]);
        with("0") == f64::from(REQUESTS) - all
            && with("-1") == all
            && scrape.get("klamp_in_flight_requests", &[]) == Some(0.0)
    });
    let produce = [("api_key", "Produce")];
    assert_eq!(
        scrape.sum("klamp_requests_total", &produce),
        f64::from(REQUESTS)
    );
    assert_eq!(scrape.sum("klamp_responses_total", &produce), all);
    assert_eq!(scrape.sum("klamp_correlation_mismatches_total", &[]), 0.0);
    drop(client);
    klamp.stop();
}

macro_rules! on_both_releases {
    ($($test:ident)*) => {
        mod on_4_3_1 {
            $(#[test] fn $test() { super::$test(super::V4_3_1); })*
        }
        mod on_4_4_0 {
            $(#[test] fn $test() { super::$test(super::V4_4_0); })*
        }
    };
}

on_both_releases! {
    a_hundred_thousand_records_arrive_whole_and_in_order
    kafka_topics_creates_describes_alters_lists_and_deletes
    kafka_consumer_groups_lists_describes_and_resets
    kafka_configs_sets_describes_and_deletes
    a_transactional_producer_commits_aborts_and_sends_offsets
    librdkafka_produces_and_consumes_in_a_group
    acks_0_and_acks_all_interleaved_leave_no_entry_pending
}
