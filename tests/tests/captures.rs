//! An error code that `kafka-protocol` does not know, named or not, makes a capture that Wireshark reads.
//! Needs `tshark`, which `tests/run` installs.

use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use klamp_tests::klamp::Klamp;
use klamp_tests::mock::MockKafka;
use klamp_tests::peer::Client;
use klamp_tests::{place, records, wait};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A version of Produce that the mock cluster has.
const PRODUCE: i16 = 9;
/// What a record has; no capture may have it.
const SECRET: &[u8] = b"what-nobody-may-see";

/// The fields of each packet.
fn dissected(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command
        .args(["-T", "fields", "-E", "separator=|", "-r"])
        .arg(file);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark, which tests/run installs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let packet = |line: &str| line.split('|').map(str::to_owned).collect();
    stdout.lines().map(packet).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let files = entries.map(|entry| entry.expect("an entry").path());
    files
        .filter(|file| file.extension().is_some_and(|is| is == "pcapng"))
        .collect()
}

#[test]
fn a_code_beyond_the_library_is_captured_within_a_second_and_wireshark_reads_it() {
    for (code, name) in [(250, "UNNAMED_250"), (135, "(135)")] {
        let address = place::free_address();
        let mock = MockKafka::start(address);
        mock.create_topic("orders", 1);
        let directory = place::room("captures");
        let flag = format!("--capture-dir={}", directory.display());
        let klamp = Klamp::between(&[(address, mock.address())], &[&flag]);
        let mut client = Client::connect(klamp.address()).named("order-service");
        client.call(2, &ApiVersionsRequest::default());
        client.call(1, &MetadataRequest::default());
        client.call(PRODUCE, &records::produce("orders", -1, SECRET));
        mock.fail_produce_with(code);
        client.call(PRODUCE, &records::produce("orders", -1, SECRET));
        let file = wait::until(Duration::from_secs(1), "a capture is written", || {
            files(&directory).pop()
        });
        let bytes = fs::read(&file).expect("a file");
        assert!(
            !bytes.windows(SECRET.len()).any(|at| at == SECRET),
            "{code}"
        );

        let fields = [
            "tcp.flags.str",
            "tcp.analysis.flags",
            "kafka.request_key",
            "kafka.request.version",
            "kafka.response_key",
            "frame.comment",
        ];
        let packets = dissected(&file, &fields);
        let of = |n: usize| packets.iter().map(move |packet| packet[n].as_str());
        let flags: Vec<_> = of(0).take(3).collect();
        assert_eq!(
            flags,
            ["··········S·", "·······A··S·", "·······A····"],
            "{code}"
        );
        assert!(of(1).all(str::is_empty), "{code}: a gap: {packets:?}");
        let requests: Vec<_> = (packets.iter())
            .filter(|packet| !packet[3].is_empty())
            .map(|packet| (packet[2].as_str(), packet[3].as_str()))
            .collect();
        assert_eq!(
            requests,
            [("18", "2"), ("3", "1"), ("0", "9"), ("0", "9")],
            "{code}"
        );
        let comments: Vec<_> = of(5).filter(|comment| !comment.is_empty()).collect();
        assert_eq!(comments.len(), 8, "{code}: {comments:?}");
        let last = comments[7];
        assert!(
            last.contains(name) && last.contains("Produce"),
            "{code}: {last}"
        );
        assert!(
            comments
                .iter()
                .any(|comment| comment.contains("order-service")),
            "{comments:?}"
        );

        let mut decode = Command::new(place::klamp_binary());
        let decoded = decode.args(["decode", "-v"]).arg(&file).output();
        let decoded = decoded.expect("klamp runs");
        let text = String::from_utf8_lossy(&decoded.stdout);
        assert!(decoded.status.success(), "{code}: {text}");
        for told in [name, "orders", "order-service"] {
            assert!(text.contains(told), "{code}: {told} is not in {text}");
        }
        assert!(!text.contains("what-nobody-may-see"), "{text}");
        klamp.stop();
    }
}
