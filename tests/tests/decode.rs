//! What tcpdump wrote of a real conversation is decoded, and of klamp's own captures Wireshark reads the
//! same fields. Needs `tcpdump` and `tshark`, which `tests/run` installs.

use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use klamp_tests::klamp::{self, Klamp};
use klamp_tests::mock::MockKafka;
use klamp_tests::peer::Client;
use klamp_tests::process::Process;
use klamp_tests::{place, records, wait};
use std::process::{Command, Stdio};
use std::time::Duration;

/// For what should take no time at all, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);

/// A version of Produce that the mock cluster and Wireshark have.
const PRODUCE: i16 = 7;

/// Needs root, or sudo, as `tests/run` does.
const TCPDUMP: &str = r#"[ "$(id -u)" = 0 ] && exec tcpdump "$@" || exec sudo tcpdump "$@""#;

fn mock_behind_klamp(arguments: &[&str]) -> (MockKafka, Klamp) {
    let address = place::free_address();
    let mock = MockKafka::start(address);
    mock.create_topic("orders", 1);
    let klamp = Klamp::between(&[(address, mock.address())], arguments);
    (mock, klamp)
}

/// Asks for versions and topics, and produces a record that fails with 250.
fn converse(mock: &MockKafka, klamp: &Klamp) {
    let mut client = Client::connect(klamp.address()).named("order-service");
    client.call(2, &ApiVersionsRequest::default());
    client.call(4, &MetadataRequest::default());
    mock.fail_produce_with(250);
    let answer = client.call(PRODUCE, &records::produce("orders", -1, b"s3cret"));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 250);
    client.finish();
}

#[test]
fn what_tcpdump_writes_of_a_real_conversation_is_decoded() {
    let (mock, klamp) = mock_behind_klamp(&[]);
    let room = place::room("tcpdump");
    let port = klamp.address().port().to_string();
    for interface in ["lo", "any"] {
        let file = room.join(format!("{interface}.pcap"));
        let mut tcpdump = Command::new("sh");
        tcpdump.args(["-c", TCPDUMP, "tcpdump", "-i", interface, "-U"]);
        tcpdump
            .args(["--immediate-mode", "-Z", "root", "-w"])
            .arg(&file);
        tcpdump.args(["tcp", "port", &port]);
        let mut tcpdump = Process::spawn("tcpdump", tcpdump, Stdio::null(), &room, None);
        wait::until_holds(PATIENCE, "tcpdump listens", || {
            assert!(tcpdump.ended().is_none(), "{}", tcpdump.last_words());
            tcpdump.err().contains("listening on")
        });
        mock.fail_produce_with(0);
        converse(&mock, &klamp);
        let file = file.to_str().expect("a room has a plain name");
        let decoded = || klamp::run(&["decode", file]);
        wait::until_holds(PATIENCE, "tcpdump has the last answer", || {
            decoded().1.contains("UNNAMED_250")
        });
        tcpdump.stop(PATIENCE);

        let (code, lines, stderr) = decoded();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{lines}");
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(lines.len(), 3, "{interface}: {lines:?}");
        assert!(
            lines[0].contains(" ApiVersions v2, correlation id 1, client id \"order-service\", ")
        );
        assert!(
            lines[1].contains(" Metadata v4, correlation id 2, "),
            "{lines:?}"
        );
        assert!(
            lines[2].contains(" Produce v7, correlation id 3, "),
            "{lines:?}"
        );
        assert!(lines[2].contains(", topic \"orders\": "), "{lines:?}");
        assert!(lines[2].ends_with(", UNNAMED_250 (250)"), "{lines:?}");
        let (code, text, _) = klamp::run(&["decode", "-v", file]);
        assert_eq!(code, Some(0));
        assert!(text.contains("batch: base offset 0, "), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn of_versions_that_wireshark_knows_it_reads_all_fields_of_a_capture() {
    let room = place::room("captures");
    let directory = room.join("captures");
    std::fs::create_dir(&directory).expect("a room can be written to");
    let directory = directory.to_str().expect("a room has a plain name");
    let (mock, klamp) = mock_behind_klamp(&["--capture-dir", directory]);
    converse(&mock, &klamp);
    let file = wait::until(PATIENCE, "a capture is there", || {
        let files = std::fs::read_dir(directory).ok()?;
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        let mut done = paths.filter(|path| path.extension().is_some_and(|it| it == "pcapng"));
        done.next()
    });
    let file = file.to_str().expect("a capture has a plain name");
    let fields = [
        "tcp.analysis.flags",
        "_ws.malformed",
        "kafka.request_key",
        "kafka.request.version",
        "kafka.error",
        "kafka.topic_name",
        "frame.comment",
    ];
    let mut tshark = Command::new("tshark");
    tshark.args(["-r", file, "-T", "fields", "-E", "separator=|"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().expect("tests/run installs tshark");
    let packets = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let packets: Vec<Vec<&str>> = packets
        .lines()
        .map(|line| line.split('|').collect())
        .collect();
    // A handshake, and three exchanges.
    assert_eq!(packets.len(), 3 + 6, "{packets:?}");
    for packet in &packets {
        assert_eq!(packet[..2], ["", ""], "{packets:?}");
    }
    let requests = packets.iter().filter(|packet| !packet[3].is_empty());
    let requests: Vec<_> = requests.map(|packet| [packet[2], packet[3]]).collect();
    assert_eq!(
        requests,
        [["18", "2"], ["3", "4"], ["0", "7"]],
        "{packets:?}"
    );
    let last = &packets[8];
    assert_eq!(last[4..6], ["250", "orders"], "{packets:?}");
    assert!(last[6].contains("errors: UNNAMED_250 (250)"), "{packets:?}");

    let (code, text, stderr) = klamp::run(&["decode", "-v", file]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{text}");
    for part in [
        "# reason: ",
        "ErrorCode: UNNAMED_250 (250)\n",
        "batch: base offset 0, ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let bytes = std::fs::read(file).expect("the capture can be read");
    assert!(!bytes.windows(6).any(|bytes| bytes == b"s3cret"));
}
