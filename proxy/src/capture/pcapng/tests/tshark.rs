//! What Wireshark makes of a capture. Needs `tshark`, which `tests/run` installs.

use super::*;
use std::process::{Command, Stdio};

/// What is asked of each packet, in this order.
const FIELDS: [&str; 16] = [
    "tcp.flags.str",
    "tcp.analysis.flags",
    "_ws.malformed",
    "ip.checksum.status",
    "tcp.checksum.status",
    "frame.time_epoch",
    "ip.src",
    "ipv6.dst",
    "tcp.dstport",
    "kafka.request_key",
    "kafka.request.version",
    "kafka.correlation_id",
    "kafka.response_key",
    "kafka.error",
    "frame.comment",
    "kafka.topic_name",
];

/// A packet's fields by their names.
struct Packet(Vec<String>);

impl Packet {
    fn get(&self, field: &str) -> &str {
        let index = FIELDS.iter().position(|is| *is == field).unwrap();
        &self.0[index]
    }
}

fn dissected(file: &[u8]) -> Vec<Packet> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields", "-E", "separator=|"]);
    command.args(["-o", "ip.check_checksum:TRUE"]);
    command.args(["-o", "tcp.check_checksum:TRUE"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let pipes = pipes.stderr(Stdio::piped()).spawn();
    let mut process = pipes.expect("tshark, which tests/run installs");
    let written = process.stdin.take().unwrap().write_all(file);
    let output = process.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    written.unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let packets = stdout.lines().map(|line| {
        let fields: Vec<_> = line.split('|').map(str::to_owned).collect();
        assert_eq!(fields.len(), FIELDS.len(), "{line}");
        Packet(fields)
    });
    packets.collect()
}

#[test]
fn wireshark_finds_the_handshake_all_frames_and_nothing_to_complain_of() {
    for (client, broker, from, to) in [
        ("10.0.0.1:50000", "10.0.0.2:19092", "10.0.0.1", ""),
        ("[fd00::1]:50000", "[fd00::2]:9092", "", "fd00::2"),
        ("10.0.0.1:50000", "[fd00::2]:9092", "", "fd00::2"),
        ("[::1]:50000", "10.0.0.2:9092", "", "::ffff:10.0.0.2"),
    ] {
        let packets = dissected(&file(&capture(client, broker, exchanges())));
        // Handshake, five frames of a packet each, one of three.
        assert_eq!(packets.len(), 3 + 5 + 3, "{broker}");
        for packet in &packets {
            for field in ["tcp.analysis.flags", "_ws.malformed"] {
                assert_eq!(packet.get(field), "", "{broker} {:?}", packet.0);
            }
            let good = if from.is_empty() { "" } else { "1" };
            assert_eq!(packet.get("ip.checksum.status"), good, "{:?}", packet.0);
            assert_eq!(packet.get("tcp.checksum.status"), "1", "{:?}", packet.0);
        }
        let flags = packets.iter().take(3).map(|it| it.get("tcp.flags.str"));
        let flags: Vec<_> = flags.collect();
        assert_eq!(flags, ["··········S·", "·······A··S·", "·······A····"]);
        assert_eq!(packets[0].get("ip.src"), from);
        assert_eq!(packets[0].get("ipv6.dst"), to);
        assert_eq!(packets[0].get("tcp.dstport"), "9092");
        assert_eq!(packets[4].get("frame.time_epoch"), "1700000000.123458790");

        // A frame that spans packets is dissected where it ends.
        let requests: Vec<_> = packets
            .iter()
            .filter(|packet| !packet.get("kafka.request_key").is_empty())
            .filter(|packet| packet.get("tcp.dstport") == "9092")
            .map(|packet| {
                let fields = [
                    "kafka.request_key",
                    "kafka.request.version",
                    "kafka.correlation_id",
                ];
                fields.map(|field| packet.get(field))
            })
            .collect();
        assert_eq!(
            requests,
            [["18", "0", "1"], ["3", "1", "2"], ["3", "1", "3"]]
        );
        let responses: Vec<_> = packets
            .iter()
            .filter(|packet| !packet.get("kafka.response_key").is_empty())
            .map(|packet| ["kafka.response_key", "kafka.error"].map(|field| packet.get(field)))
            .collect();
        assert_eq!(responses, [["18", "0"], ["3", "250"], ["3", "0"]]);
        let topics = packets.iter().map(|packet| packet.get("kafka.topic_name"));
        assert_eq!(topics.filter(|topic| *topic == "top").count(), 3);
        let comments = packets.iter().map(|packet| packet.get("frame.comment"));
        let comments: Vec<_> = comments.filter(|comment| !comment.is_empty()).collect();
        assert_eq!(comments.len(), 6, "{comments:?}");
        assert!(comments[4].contains("UNNAMED_250 (250)"), "{comments:?}");
    }
}
