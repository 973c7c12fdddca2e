//! Error codes that no library names are counted and logged with their number, and with who asked
//! for what. They come from librdkafka's mock cluster behind a relay that swaps codes.

use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use klamp_tests::klamp::{Klamp, with_fields};
use klamp_tests::mock::MockKafka;
use klamp_tests::peer::Client;
use klamp_tests::{place, records};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use std::time::{Duration, Instant};

/// A version of Produce that the mock cluster has.
const PRODUCE: i16 = 9;

fn mock_behind_klamp() -> (MockKafka, Klamp) {
    let address = place::free_address();
    let mock = MockKafka::start(address);
    mock.create_topic("orders", 1);
    let klamp = Klamp::between(&[(address, mock.address())], &[]);
    (mock, klamp)
}

#[test]
fn error_code_250_keeps_its_number_in_metrics_and_log() {
    let (mock, klamp) = mock_behind_klamp();
    let mut client = Client::connect(klamp.address()).named("order-service");
    client.call(2, &ApiVersionsRequest::default());
    let answer = client.call(PRODUCE, &records::produce("orders", -1, b"good"));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    mock.fail_produce_with(250);
    for _ in 0..3 {
        let answer = client.call(PRODUCE, &records::produce("orders", -1, b"bad"));
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 250);
    }

    let scrape = klamp.scrape_until("all answers are counted", |scrape| {
        scrape.sum("klamp_responses_total", &[("api_key", "Produce")]) == 4.0
    });
    let of_produce = |error| {
        let labels = [("api_key", "Produce"), ("error", error)];
        scrape.get("klamp_response_error_codes_total", &labels)
    };
    assert_eq!(of_produce("UNNAMED_250"), Some(3.0));
    assert_eq!(of_produce("NONE"), Some(1.0));
    let unnamed = [("api_key", "Produce"), ("code", "250")];
    assert_eq!(
        scrape.get("klamp_unnamed_error_codes_total", &unnamed),
        Some(3.0)
    );
    let failed = [("api_key", "Produce"), ("outcome", "error")];
    assert_eq!(scrape.get("klamp_responses_total", &failed), Some(3.0));

    let fields = [
        ("error_code", "250"),
        ("client_id", "order-service"),
        ("api_key", "Produce"),
        ("api_version", "9"),
    ];
    let lines = with_fields(klamp.stop(), &fields);
    assert_eq!(lines.len(), 1, "once for a connection: {lines:?}");
}

#[test]
fn however_many_codes_a_broker_invents_the_labels_stay_few() {
    let (mock, klamp) = mock_behind_klamp();
    let mut client = Client::connect(klamp.address()).named("order-service");
    for code in 1_000..2_000 {
        mock.fail_produce_with(code);
        client.call(PRODUCE, &records::produce("orders", -1, b"bad"));
    }
    let scrape = klamp.scrape_until("all answers are counted", |scrape| {
        scrape.sum("klamp_responses_total", &[("api_key", "Produce")]) == 1_000.0
    });
    let codes = scrape.samples(
        "klamp_response_error_codes_total",
        &[("api_key", "Produce")],
    );
    let codes: Vec<_> = codes.collect();
    assert_eq!(codes.iter().map(|(_, count)| count).sum::<f64>(), 1_000.0);
    assert!(
        codes.len() < 300,
        "{} codes have labels of their own",
        codes.len()
    );
    assert!(
        codes
            .iter()
            .any(|(labels, _)| labels["error"] == "UNNAMED_other")
    );
    let lines = klamp.stop().len();
    assert!(lines < 100, "{lines} lines in the log");
}

#[test]
fn librdkafka_works_through_klamp_against_its_own_mock_cluster() {
    const RECORDS: usize = 1_000;
    let (_mock, klamp) = mock_behind_klamp();
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", klamp.address().to_string());
    let producer: BaseProducer = config.create().expect("librdkafka makes a producer");
    for number in 0..RECORDS {
        let payload = number.to_string();
        let record = BaseRecord::<(), _>::to("orders").payload(&payload);
        producer.send(record).expect("its queue takes so few");
    }
    producer
        .flush(Duration::from_secs(60))
        .expect("everything is delivered");
    let consumer: BaseConsumer = config
        .set("group.id", "not used")
        .create()
        .expect("librdkafka makes a consumer");
    let mut partitions = TopicPartitionList::new();
    partitions
        .add_partition_offset("orders", 0, Offset::Beginning)
        .expect("offset 0 is an offset");
    consumer
        .assign(&partitions)
        .expect("a partition can be assigned");
    let start = Instant::now();
    let mut consumed = 0;
    while consumed < RECORDS {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "only {consumed} records came"
        );
        if let Some(message) = consumer.poll(Duration::from_secs(1)) {
            let message = message.expect("librdkafka reports no error");
            assert_eq!(message.payload(), Some(consumed.to_string().as_bytes()));
            consumed += 1;
        }
    }
    drop((producer, consumer));
    let scrape = klamp.scrape_until("all clients have gone", |scrape| {
        scrape.get("klamp_connections_active", &[]) == Some(0.0)
    });
    for api_key in ["Produce", "Fetch", "Metadata"] {
        assert!(
            scrape.sum("klamp_responses_total", &[("api_key", api_key)]) > 0.0,
            "{api_key}"
        );
    }
    // To a newer ApiVersions the mock cluster answers with an error, in a shape that is neither the
    // newer version's nor v0's. It passes all the same, and librdkafka asks again.
    let of_versions = |outcome| {
        let labels = [("api_key", "ApiVersions"), ("outcome", outcome)];
        scrape.sum("klamp_responses_total", &labels)
    };
    assert!(of_versions("error") + of_versions("opaque") > 0.0);
    assert!(of_versions("ok") > 0.0);
    assert_eq!(scrape.sum("klamp_correlation_mismatches_total", &[]), 0.0);
    assert_eq!(scrape.sum("klamp_foreign_addresses_total", &[]), 0.0);
    let mut client = Client::connect(klamp.address());
    let brokers = client.call(9, &MetadataRequest::default()).brokers;
    assert_eq!(brokers[0].port, i32::from(klamp.address().port()));
    klamp.stop();
}
