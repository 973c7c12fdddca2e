//! A producer and a consumer of librdkafka's, both through klamp, and the proof that what the one
//! sends is what the other receives.

use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a record may take to be acknowledged, or to arrive. The first of a consumer waits for its
/// group to settle, which the embedded broker gives three seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Records that are sent before their acknowledgements are waited for.
const BATCH: u64 = 30;

/// The two clients and how far they are. Dropping them leaves the group and closes the connections.
pub(crate) struct Traffic {
    producer: BaseProducer<Deliveries>,
    consumer: BaseConsumer,
    topic: &'static str,
    deliveries: Deliveries,
    sent: u64,
    received: u64,
}

impl Traffic {
    /// Makes the clients; they connect to `klamp` in the background.
    ///
    /// # Panics
    /// If librdkafka refuses the configuration.
    pub(crate) fn start(klamp: SocketAddr, topic: &'static str) -> Self {
        let deliveries = Deliveries::default();
        let producer = client(klamp, "demo-shop")
            .create_with_context(deliveries.clone())
            .expect("librdkafka makes a producer");
        let consumer: BaseConsumer = client(klamp, "demo-dashboard")
            .set("group.id", "demo-dashboards")
            .set("auto.offset.reset", "earliest")
            .create()
            .expect("librdkafka makes a consumer");
        consumer
            .subscribe(&[topic])
            .expect("a topic can be subscribed to");
        Self {
            producer,
            consumer,
            topic,
            deliveries,
            sent: 0,
            received: 0,
        }
    }

    /// How many records have arrived in all.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Produces so many records, and consumes them.
    ///
    /// # Panics
    /// If one is not acknowledged, does not arrive, or arrives out of order.
    pub(crate) fn send_and_receive(&mut self, records: u64) {
        let end = self.sent + records;
        while self.sent < end {
            self.send_batch((end - self.sent).min(BATCH));
        }
        let deadline = Instant::now() + PATIENCE;
        while self.received < end {
            self.receive_one(deadline);
        }
    }

    fn send_batch(&mut self, records: u64) {
        for _ in 0..records {
            let order = order(self.sent);
            self.producer
                .send(
                    BaseRecord::<str, str>::to(self.topic)
                        .partition(0)
                        .payload(&order),
                )
                .unwrap_or_else(|(error, _)| panic!("cannot produce {order:?}: {error}"));
            self.sent += 1;
        }
        self.producer
            .flush(PATIENCE)
            .unwrap_or_else(|e| panic!("records are not acknowledged through klamp: {e}"));
        self.deliveries.check(self.sent);
    }

    fn receive_one(&mut self, deadline: Instant) {
        let message = match self.consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => message,
            // An error is told as it happens, and librdkafka goes on trying.
            Some(Err(_)) | None => {
                assert!(
                    Instant::now() < deadline,
                    "{} of {} records have arrived through klamp, and no more came",
                    self.received,
                    self.sent
                );
                return;
            }
        };
        let payload = message.payload().map(String::from_utf8_lossy);
        assert_eq!(
            payload.as_deref(),
            Some(order(self.received).as_str()),
            "the next record that arrives through klamp"
        );
        self.received += 1;
    }
}

/// The payload of a record.
fn order(number: u64) -> String {
    format!("order {number}")
}

fn client(klamp: SocketAddr, client_id: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", klamp.to_string())
        .set("client.id", client_id);
    config
}

/// What has become of the records that were sent.
#[derive(Clone, Default)]
struct Deliveries {
    acknowledged: Arc<AtomicU64>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Deliveries {
    fn check(&self, sent: u64) {
        if let Some(failure) = &*self.failure.lock().expect("no holder panics") {
            panic!("a record was not taken: {failure}");
        }
        let acknowledged = self.acknowledged.load(Ordering::Relaxed);
        assert_eq!(acknowledged, sent, "records acknowledged through klamp");
    }
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => {
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err((error, _)) => {
                let mut failure = self.failure.lock().expect("no holder panics");
                failure.get_or_insert_with(|| error.to_string());
            }
        }
    }
}
