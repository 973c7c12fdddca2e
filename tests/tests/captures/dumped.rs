//! What tcpdump saw at a broker's port, and what klamp kept of the same connection, are the same
//! exchanges to `klamp decode`.

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiVersionsRequest, FindCoordinatorRequest, ListOffsetsRequest, MetadataRequest,
};
use klamp_tests::captures::exchanges;
use klamp_tests::klamp::Klamp;
use klamp_tests::mock::MockKafka;
use klamp_tests::peer::Client;
use klamp_tests::process::Process;
use klamp_tests::records::{self, topic_name};
use klamp_tests::{place, wait};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Needs root, or sudo, as `tests/run` does.
const TCPDUMP: &str = r#"[ "$(id -u)" = 0 ] && exec tcpdump "$@" || exec sudo tcpdump "$@""#;

/// tcpdump at work.
pub(crate) struct Dump {
    process: Process,
    file: PathBuf,
}

impl Dump {
    /// Begins to write down what passes at a port of loopback.
    #[track_caller]
    pub(crate) fn start(port: u16) -> Self {
        let room = place::room("tcpdump");
        let file = room.join("it.pcap");
        let mut command = Command::new("sh");
        // All of each packet, each at once.
        command.args([
            "-c", TCPDUMP, "sh", "-i", "lo", "-s", "0", "-U", "-B", "16384",
        ]);
        command.args(["-Z", "root", "-w"]).arg(&file);
        command.args(["tcp", "port", &port.to_string()]);
        let mut process = Process::spawn("tcpdump", command, Stdio::null(), &room, None);
        wait::until_holds(Duration::from_secs(30), "tcpdump listens", || {
            if let Some(status) = process.ended() {
                panic!("tcpdump ended: {status}:\n{}", process.last_words());
            }
            process.err().contains("listening on")
        });
        Self { process, file }
    }

    /// Ends it, once what it wrote stands still; it must not have missed a packet.
    #[track_caller]
    pub(crate) fn stop(mut self) -> PathBuf {
        let size = || std::fs::metadata(&self.file).map_or(0, |it| it.len());
        let mut before = 0;
        wait::until_holds(Duration::from_secs(30), "packets stop coming", || {
            std::thread::sleep(Duration::from_millis(200));
            let now = size();
            std::mem::replace(&mut before, now) == now && now > 0
        });
        self.process.stop(Duration::from_secs(10));
        let said = self.process.err();
        assert!(said.contains("\n0 packets dropped by kernel"), "{said}");
        self.file
    }
}

/// Of an exchange what both must tell: who asked for what in which version, and all fields that came.
fn told(exchange: &Value) -> (Value, Value, Value) {
    let part = |name: &str| exchange[name].clone();
    (part("requestHeader"), part("request"), part("response"))
}

#[test]
fn a_file_of_tcpdump_has_the_same_exchanges_as_the_capture() {
    let address = place::free_address();
    let mock = MockKafka::start(address);
    mock.create_topic("orders", 2);
    let dump = Dump::start(mock.address().port());
    let klamp = Klamp::between(
        &[(address, mock.address())],
        &["--capture-time=1m", "--capture-frames=100"],
    );
    let mut client = Client::connect(klamp.address()).named("order-service");
    client.call(2, &ApiVersionsRequest::default());
    let topic = MetadataRequestTopic::default().with_name(Some(topic_name("orders")));
    let metadata = MetadataRequest::default().with_topics(Some(vec![topic]));
    for version in [1, 5, 9] {
        client.call(version, &metadata);
    }
    client.call(2, &FindCoordinatorRequest::default().with_key("g".into()));
    client.call(
        2,
        &ListOffsetsRequest::default().with_replica_id((-1).into()),
    );
    for version in [7, 9] {
        client.call(version, &records::produce("orders", -1, b"good"));
    }
    // In segments of many packets, and several requests at a time.
    let large = vec![b'x'; 300_000];
    client.call(9, &records::produce("orders", -1, &large));
    for version in [11, 12] {
        client.call(version, &records::fetch("orders"));
    }
    let ids: Vec<i32> = (0..5)
        .map(|_| client.send(9, &records::produce("orders", -1, b"good")))
        .collect();
    for id in ids {
        client.expect::<kafka_protocol::messages::ProduceRequest>(9, id);
    }
    for code in [250, 251, 135] {
        mock.fail_produce_with(code);
        client.call(9, &records::produce("orders", -1, b"bad"));
    }
    let capture = klamp.captured(Duration::from_secs(10), "of all", |capture| {
        capture["frames"] == 2 * 19
    });
    let own = klamp.download(&capture);
    drop(client);
    klamp.stop();
    let dumped = dump.stop();

    let port = mock.address().port().to_string();
    let dumped = exchanges(&dumped, &["--port", &port]);
    let own = exchanges(&own, &[]);
    assert_eq!(own.len(), 19);
    assert_eq!(dumped.len(), own.len());
    for (dumped, own) in dumped.iter().zip(&own) {
        assert_eq!(told(dumped), told(own));
        for bytes in ["requestBytes", "responseBytes"] {
            assert!(own[bytes].is_u64(), "{own}");
            assert_eq!(dumped[bytes], own[bytes], "{own}");
        }
    }
    let codes: Vec<_> = own[16..]
        .iter()
        .map(|it| &it["response"]["responses"][0]["partitionResponses"][0]["errorCode"])
        .collect();
    assert_eq!(codes, [250, 251, 135]);
}
