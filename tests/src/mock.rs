//! librdkafka's mock cluster behind a relay of ours, for the demo and for errors that no real broker
//! gives on demand.
//!
//! The relay does the two things that the mock cluster's safe interface cannot: it makes Metadata and
//! FindCoordinator name the address where clients are to come (klamp's), and it swaps error codes in
//! Produce answers for numbers that no library knows. The trap: an unknown code must never reach the
//! `rdkafka` crate, whose error type is an enum over C's numbers; read such answers with [`Client`].
//! And the mock cluster answers Produce even where acks is 0, as no broker does.
//!
//! [`Client`]: crate::peer::Client

use crate::peer::Upstream;
use crate::wire;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, BrokerId, FindCoordinatorRequest, MetadataRequest, ProduceRequest,
};
use kafka_protocol::protocol::{Request, StrBytes};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::RDKafkaApiKey;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI16, Ordering};
use std::sync::{Arc, Mutex};

/// A mock cluster of one broker, and the relay before it.
pub struct MockKafka {
    cluster: MockCluster<'static, DefaultProducerContext>,
    relay: Upstream,
    produce_error: Arc<AtomicI16>,
    more_rows: Rows,
}

impl MockKafka {
    /// Starts it. Clients are told to come to `advertised`.
    ///
    /// # Panics
    /// If librdkafka cannot start it.
    pub fn start(advertised: SocketAddr) -> Self {
        let cluster = MockCluster::new(1).expect("librdkafka makes a mock cluster");
        for (api_key, max) in [
            (RDKafkaApiKey::JoinGroup, 5),
            (RDKafkaApiKey::SyncGroup, 3),
            (RDKafkaApiKey::Heartbeat, 3),
            (RDKafkaApiKey::LeaveGroup, 2),
        ] {
            // Beyond these it reads and writes them in a way that only its own client understands.
            cluster
                .apiversion(api_key, Some(0), Some(max))
                .expect("the mock cluster has these keys");
        }
        let broker: SocketAddr = cluster
            .bootstrap_servers()
            .parse()
            .expect("one broker, named by its IP address and port");
        let produce_error = Arc::new(AtomicI16::new(0));
        let more_rows = Rows::default();
        let (swap, add) = (produce_error.clone(), more_rows.clone());
        let relay = Upstream::start(move |client| relay(client, broker, advertised, &swap, &add));
        Self {
            cluster,
            relay,
            produce_error,
            more_rows,
        }
    }

    /// Where klamp finds it.
    pub fn address(&self) -> SocketAddr {
        self.relay.address()
    }

    /// Creates a topic.
    ///
    /// # Panics
    /// If librdkafka refuses.
    pub fn create_topic(&self, name: &str, partitions: i32) {
        self.cluster
            .create_topic(name, partitions, 1)
            .expect("a topic can be created");
    }

    /// From now on, ApiVersions answers list this row too, as a newer broker's would. Nothing serves
    /// it: a client that takes it at its word is disconnected.
    pub fn also_list(&self, api_key: i16, versions: RangeInclusive<i16>) {
        let row = ApiVersion::default()
            .with_api_key(api_key)
            .with_min_version(*versions.start())
            .with_max_version(*versions.end());
        self.more_rows.lock().expect("no holder panics").push(row);
    }

    /// From now on, partitions in Produce answers have this error code; 0 for their own again.
    pub fn fail_produce_with(&self, code: i16) {
        self.produce_error.store(code, Ordering::SeqCst);
    }
}

impl std::fmt::Debug for MockKafka {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockKafka")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

/// Key and version of the requests that have not been answered, by correlation id.
type Pending = Arc<Mutex<HashMap<i32, (i16, i16)>>>;

/// Rows that ApiVersions answers get in addition.
type Rows = Arc<Mutex<Vec<ApiVersion>>>;

fn relay(
    client: TcpStream,
    broker: SocketAddr,
    advertised: SocketAddr,
    error: &AtomicI16,
    more_rows: &Rows,
) {
    let Ok(broker) = TcpStream::connect(broker) else {
        return;
    };
    let pending = Pending::default();
    let seen = pending.clone();
    let (from, to) = (
        client.try_clone().expect("a socket can be cloned"),
        broker.try_clone().expect("a socket can be cloned"),
    );
    let upward = std::thread::spawn(move || {
        each_frame(from, to, |payload| {
            let exchange = (wire::api_key(&payload), wire::api_version(&payload));
            let id = wire::request_correlation_id(&payload);
            seen.lock().expect("no holder panics").insert(id, exchange);
            wire::frame(&payload)
        });
    });
    each_frame(broker, client, |payload| {
        let id = wire::response_correlation_id(&payload);
        let exchange = pending.lock().expect("no holder panics").remove(&id);
        match exchange {
            Some((key, version)) => {
                let payload = mended(key, version, payload);
                edited(key, version, &payload, advertised, error, more_rows)
            }
            None => wire::frame(&payload),
        }
    });
    let _ = upward.join();
}

/// Moves frames one way, each as `edit` leaves it, until there are no more; then ends both ways, as
/// the mock cluster knows no half-closed connection.
fn each_frame(mut from: TcpStream, mut to: TcpStream, mut edit: impl FnMut(Vec<u8>) -> Vec<u8>) {
    let _ = to.set_nodelay(true);
    while let Some(payload) = read_frame(&mut from) {
        if to.write_all(&edit(payload)).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn read_frame(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    // The mock cluster and the clients of these tests send nothing that is not a frame.
    let mut payload = vec![0; usize::try_from(i32::from_be_bytes(length)).ok()?];
    from.read_exact(&mut payload).ok()?;
    Some(payload)
}

/// The answer as the protocol has it, where librdkafka 2.12's mock cluster writes it otherwise: with a
/// second section of tagged fields in Metadata; and upon an ApiVersions version that it does not know
/// with a count of one byte and a throttle time, in what has the shape of version 0 (KIP-511).
fn mended(key: i16, version: i16, mut payload: Vec<u8>) -> Vec<u8> {
    match ApiKey::try_from(key) {
        Ok(ApiKey::Metadata) if version >= 9 => {
            payload.pop();
        }
        Ok(ApiKey::ApiVersions) if version >= 3 => {
            let (count_at, row_bytes) = (6, 6);
            payload.splice(count_at..=count_at, 1_i32.to_be_bytes());
            payload.truncate(count_at + 4 + row_bytes);
        }
        _ => {}
    }
    payload
}

/// The answer as a frame, with our address and our error code where they belong.
fn edited(
    key: i16,
    version: i16,
    payload: &[u8],
    advertised: SocketAddr,
    error: &AtomicI16,
    more_rows: &Rows,
) -> Vec<u8> {
    let host = StrBytes::from_string(advertised.ip().to_string());
    let port = i32::from(advertised.port());
    match ApiKey::try_from(key) {
        Ok(ApiKey::Metadata) => rewrite::<MetadataRequest>(version, payload, |answer| {
            for broker in &mut answer.brokers {
                broker.host = host.clone();
                broker.port = port;
            }
        }),
        Ok(ApiKey::FindCoordinator) => {
            rewrite::<FindCoordinatorRequest>(version, payload, |answer| {
                if answer.node_id != BrokerId(-1) {
                    answer.host = host.clone();
                    answer.port = port;
                }
            })
        }
        // Newer ones are answered with an error only.
        Ok(ApiKey::ApiVersions) if version <= 2 => {
            rewrite::<ApiVersionsRequest>(version, payload, |answer| {
                let more = more_rows.lock().expect("no holder panics");
                answer.api_keys.extend(more.iter().cloned());
            })
        }
        Ok(ApiKey::Produce) => match error.load(Ordering::SeqCst) {
            0 => wire::frame(payload),
            code => rewrite::<ProduceRequest>(version, payload, |answer| {
                for partition in answer
                    .responses
                    .iter_mut()
                    .flat_map(|t| &mut t.partition_responses)
                {
                    partition.error_code = code;
                }
            }),
        },
        _ => wire::frame(payload),
    }
}

fn rewrite<R: Request>(
    version: i16,
    payload: &[u8],
    edit: impl FnOnce(&mut R::Response),
) -> Vec<u8> {
    let (id, mut answer) = wire::read_response::<R>(version, payload);
    edit(&mut answer);
    wire::response::<R>(version, id, &answer)
}
