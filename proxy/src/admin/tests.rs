//! Asks the pages over real loopback sockets, as probes, scripts and hostile peers would.

mod captures;

use super::*;
use crate::capture::tape::{Arena, Settings};
use crate::record::{Record, catalog};
use crate::relay::Meter;
use klamp_codec::observation::{Exchange, Observation, Observer};
use klamp_codec::session::{Clamp, NonKafka};
use klamp_codec::versions::{Feature, FinalizedFeatures, Offer, TableStore, VersionTable};
use klamp_codec::{ApiKey, CorrelationId, Direction};
use klamp_metrics::{Metrics, Shard};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Rows of a broker: one that we know, and one that we do not.
fn offers(fetch_max: i16) -> [(ApiKey, Offer); 2] {
    [(1, 0, fetch_max), (10_000, 0, 3)].map(|(key, min, max)| (ApiKey(key), Offer { min, max }))
}

struct Rig {
    state: Arc<AdminState>,
    shard: Arc<Shard>,
}

impl Rig {
    fn new(token: Option<&str>) -> Self {
        let metrics = Metrics::new(catalog());
        let shard = metrics.shard();
        let captures = crate::capture::tests::captures("BEYOND", metrics.clone());
        let watch = Watch::new(metrics, Vec::new(), captures);
        let policy = Policy {
            clamp: Clamp::Encode,
            max_request_bytes: 100 << 20,
            non_kafka: NonKafka::Close,
            request_progress: None,
            response_progress: None,
            tables: TableStore::default(),
        };
        let state = AdminState::new(watch, Arc::new(policy), token.map(str::to_owned), || ());
        Self { state, shard }
    }

    async fn serve(&self, surface: Surface) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, surface, self.state.clone()));
        address
    }

    /// A connection that has told its client and its table, and made one request.
    fn connection(&self, upstream: &str, client_id: &[u8], fetch_max: i16) -> Record {
        let peer = "10.0.0.1:4000".parse().unwrap();
        let watch = self.state.watch.clone();
        let mut record = Record::new(watch, self.shard.clone(), peer, upstream.into());
        let settings = Settings {
            memory: 1 << 20,
            records: false,
            opaque: false,
        };
        record.keep_in(Arena::new(settings, 1, Arc::default()).as_ref());
        let exchange = Exchange {
            api_key: ApiKey::FETCH,
            api_version: 2,
            correlation_id: CorrelationId(1),
        };
        let (client_id, frame_bytes) = (Some(client_id), 100);
        let (name, version) = (b"librdkafka".as_slice(), b"2.5.0".as_slice());
        let finalized = FinalizedFeatures::default();
        let table = VersionTable::new(offers(fetch_max), finalized, Clamp::Encode);
        let table = self.state.policy.tables.intern(table).unwrap();
        for what in [
            Observation::RequestHead {
                exchange,
                client_id,
                frame_bytes,
            },
            Observation::Software { name, version },
            Observation::InFlight(1),
            Observation::RequestEnd {
                exchange,
                frame_bytes,
            },
            Observation::Learned(&table),
        ] {
            record.observe(Direction::Request, 0, what);
        }
        record.moved(Direction::Request, 2048);
        record
    }
}

/// Sends `request` and reads until the end.
async fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

async fn get_with(address: SocketAddr, path: &str, headers: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: klamp\r\n{headers}\r\n");
    let answer = exchange(address, request.as_bytes()).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    get_with(address, path, "").await
}

async fn json(address: SocketAddr, path: &str) -> Value {
    let (status, body) = get_with(address, path, "Accept: application/json\r\n").await;
    assert_eq!(status, 200);
    let by_query = get(address, &format!("{path}?format=json")).await;
    let parsed: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&by_query.1).unwrap(), parsed);
    parsed
}

#[tokio::test]
async fn probes_are_answered_by_what_klamp_does_and_never_by_a_brokers_health() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Admin).await;
    assert_eq!(get(address, "/livez").await.0, 200);
    assert_eq!(
        get(address, "/readyz").await,
        (503, "starting\n".to_owned())
    );
    rig.state.set_stage(Stage::Ready);
    assert_eq!(get(address, "/readyz").await, (200, "ready\n".to_owned()));
    rig.state.set_stage(Stage::Draining);
    assert_eq!(
        get(address, "/readyz").await,
        (503, "draining\n".to_owned())
    );
    assert_eq!(get(address, "/livez").await.0, 200);
}

#[tokio::test]
async fn pages_for_operators_are_on_the_debug_listener_alone() {
    let rig = Rig::new(None);
    let (admin, debug) = (
        rig.serve(Surface::Admin).await,
        rig.serve(Surface::Debug).await,
    );
    for path in ["/versions", "/connections", "/clients"] {
        assert_eq!(get(admin, path).await.0, 404, "{path}");
        assert_eq!(get(debug, path).await.0, 200, "{path}");
        assert!(!get(admin, "/").await.1.contains(path));
        assert!(get(debug, "/").await.1.contains(path));
    }
    for path in ["/metrics", "/livez"] {
        assert_eq!(get(admin, path).await.0, 200, "{path}");
        assert_eq!(get(debug, path).await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn a_token_is_asked_for_on_the_debug_listener_alone() {
    let rig = Rig::new(Some("secret"));
    let (admin, debug) = (
        rig.serve(Surface::Admin).await,
        rig.serve(Surface::Debug).await,
    );
    assert_eq!(get(admin, "/metrics").await.0, 200);
    for wrong in [
        "",
        "Authorization: Bearer wrong!\r\n",
        "Authorization: Bearer secret2\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Basic secret\r\n",
        "Authorization: secret\r\n",
    ] {
        let (status, body) = get_with(debug, "/connections", wrong).await;
        assert_eq!(status, 401, "{wrong}");
        assert!(!body.contains("peer"), "{body}");
    }
    let right = "Authorization: bearer secret\r\n";
    assert_eq!(get_with(debug, "/connections", right).await.0, 200);
}

#[tokio::test]
async fn a_scrape_tells_the_version_tables_in_use_at_that_time() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Admin).await;
    let one = rig.connection("a:9092", b"app", 99);
    let _two = rig.connection("b:9092", b"app", 17);
    let (_, body) = get(address, "/metrics").await;
    assert!(body.contains("\nklamp_version_tables 2\n"), "{body}");
    assert!(
        body.contains("\nklamp_hidden_api_keys{api_key=\"10000\"} 2\n"),
        "{body}"
    );
    let broker_max = "klamp_api_version_max{api_key=\"Fetch\",side=\"broker\"} 17\n";
    assert!(body.contains(broker_max), "{body}");
    let (offers, mut finalized) = (offers(17), FinalizedFeatures::default());
    finalized.note(Feature::ShareVersion, 1);
    let same_rows = VersionTable::new(offers, finalized, Clamp::Encode);
    let _same_rows = rig.state.policy.tables.intern(same_rows).unwrap();
    drop(one);
    let (_, body) = get(address, "/metrics").await;
    assert_eq!(rig.state.policy.tables.in_use().len(), 2);
    assert!(
        body.contains("\nklamp_version_tables 1\n"),
        "one broker's rows, with and without features: {body}"
    );
    assert!(
        !body.contains(broker_max),
        "the row is as the broker has it: {body}"
    );
}

#[tokio::test]
async fn each_distinct_table_is_shown_with_who_told_it_and_why_clients_see_less() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    assert!(
        get(address, "/versions")
            .await
            .1
            .starts_with("no open connection")
    );
    let _open = [
        ("a:9092", 99),
        ("a:9092", 99),
        ("b:9092", 99),
        ("c:9092", 5),
    ]
    .map(|(upstream, fetch_max)| rig.connection(upstream, b"app", fetch_max));
    let report = json(address, "/versions").await;
    let tables = report["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0]["connections"], 3);
    assert_eq!(tables[0]["upstreams"][1]["address"], "b:9092");
    let rows = tables[0]["rows"].as_array().unwrap();
    let fate = |key| &rows.iter().find(|row| row["api_key"] == key).unwrap()["fate"];
    assert_eq!(
        (fate(1), fate(10_000), fate(0)),
        (&"lowered".into(), &"hidden".into(), &"not_offered".into())
    );
    let (_, text) = get(address, "/versions").await;
    assert!(
        text.contains("told by a:9092 on open connections: 2"),
        "{text}"
    );
    assert!(text.contains("hidden: no schema here"), "{text}");
    for explained in [
        "negotiated  versions that both have",
        "hidden   klamp speaks none",
    ] {
        assert_eq!(text.matches(explained).count(), 1, "of both tables: {text}");
    }
}

#[tokio::test]
async fn connections_and_clients_show_what_hostile_names_cannot_break() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    for (path, nobody) in [
        ("/connections", "no open connection\n"),
        ("/clients", "no client has made a request\n"),
    ] {
        assert_eq!(get(address, path).await.1, nobody);
    }
    let _open = rig.connection("a:9092", b"app\r\n\x1b[2J\xff\"<script>", 99);
    let connection = &json(address, "/connections").await["connections"][0];
    assert_eq!(connection["peer"], "10.0.0.1:4000");
    assert_eq!(connection["upstream"], "a:9092");
    assert_eq!(connection["software_name"], "librdkafka");
    assert_eq!(
        (&connection["in_flight"], &connection["requests"]),
        (&1.into(), &1.into())
    );
    assert_eq!(connection["request_bytes"], 2048);
    let client = &json(address, "/clients").await["clients"][0];
    assert_eq!(client["client_id"], "app\r\n\u{1b}[2J\u{fffd}\"<script>");
    assert_eq!(client["connections"], 1);
    let fetch = &client["apis"][0];
    assert_eq!(
        (&fetch["name"], &fetch["min"], &fetch["max"]),
        (&"Fetch".into(), &2.into(), &2.into())
    );
    assert_eq!(
        fetch["gone_in"], "4.0",
        "it removed Fetch below 4 (KIP-896)"
    );
    for (path, lines) in [("/connections", 6), ("/clients", 4)] {
        let (_, text) = get(address, path).await;
        assert_eq!(text.lines().count(), lines, "{text}");
        assert!(text.contains(r"app\r\n\x1b[2J\xff"), "{text}");
    }
}

#[tokio::test]
async fn what_is_no_get_is_refused() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    let post = b"POST /metrics HTTP/1.1\r\nHost: klamp\r\nContent-Length: 1000000\r\n\r\n";
    let answer = exchange(address, post).await;
    assert!(
        answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: GET, HEAD"),
        "{answer}"
    );
    let head = exchange(address, b"HEAD /livez HTTP/1.1\r\nHost: klamp\r\n\r\n").await;
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    assert_eq!(get(address, "/no/such/page").await.0, 404);
}

#[tokio::test]
async fn hostile_requests_neither_stop_the_pages_nor_take_their_places_for_ever() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Admin).await;
    let endless = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &vec![b'x'; 1 << 20]].concat();
    for hostile in [
        b"\x16\x03\x01\x00\xff".as_slice(),
        b"\0\0\0\x10\0\x12",
        b"GET",
        &endless,
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.write_all(hostile).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    for _ in 0..3 {
        assert_eq!(get(address, "/livez").await.0, 200, "the oldest makes room");
    }
    let mut oldest = Vec::new();
    let cut = silent[0].read_to_end(&mut oldest);
    let cut = tokio::time::timeout(HEADER_TIME / 2, cut).await;
    assert!(cut.is_ok() && oldest.is_empty(), "long before its time");
    let mut youngest = silent.pop().unwrap();
    let closed = youngest.read_to_end(&mut oldest);
    let closed = tokio::time::timeout(HEADER_TIME * 2, closed).await;
    assert!(closed.is_ok(), "but none has its place for ever");
}
