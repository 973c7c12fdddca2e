//! The same conversation on all links, in all files, by all names of the broker.

use super::*;

/// The lines that a conversation is printed as, whoever wrote the file.
fn expected() -> Vec<String> {
    let lines = exchange_lines(&foreign(&capture(CLIENT, BROKER, exchanges())));
    assert_eq!(lines.len(), 3);
    assert!(
        lines[1].contains("48 bytes after 1µs, UNNAMED_250 (250)"),
        "{lines:?}"
    );
    lines
}

#[test]
fn all_links_that_tcpdump_writes_are_read() {
    let given = packets(&own(exchanges()));
    let on = |link: u32, header: &[u8]| {
        let packets = given.iter().map(|(time, bytes)| {
            // Behind Ethernet's 14 bytes.
            (*time, [header, &bytes[14..]].concat())
        });
        tcpdump(link, &packets.collect::<Vec<_>>())
    };
    let expected = expected();
    let vlan = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x81\0\0\x05\x08\0";
    let cooked = b"\0\0\0\x01\0\x06\x02\0\0\0\0\x01\0\0\x08\0";
    let cooked_2 = b"\x08\0\0\0\0\0\0\x01\0\x01\0\x06\x02\0\0\0\0\x01\0\0";
    for (link, header) in [
        (1, vlan.as_slice()),
        (113, cooked),
        (276, cooked_2),
        (101, b""),
        (228, b""),
        (0, b"\x02\0\0\0"),
        (108, b"\0\0\0\x02"),
    ] {
        assert_eq!(exchange_lines(&on(link, header)), expected, "{link}");
    }
    let (out, read) = decoded(&on(147, b""), Style::Line);
    assert_eq!(read, Ok(()));
    assert_eq!(
        out,
        "# packets of link type 147 were left out: it is not read here\n"
    );
}

#[test]
fn files_of_either_order_and_resolution_are_read() {
    let given = packets(&own(exchanges()));
    let expected = expected();
    for (magic, resolution) in [(0xa1b2_c3d4_u32, 1000), (0xa1b2_3c4d, 1)] {
        let mut file = magic.to_be_bytes().to_vec();
        file.extend([0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 1]);
        for (time, packet) in &given {
            let (length, fraction) = (packet.len() as u32, time.subsec_nanos() / resolution);
            for word in [time.as_secs() as u32, fraction, length, length] {
                file.extend(word.to_be_bytes());
            }
            file.extend(packet);
        }
        let lines = exchange_lines(&file);
        match resolution {
            1 => assert_eq!(lines, expected),
            _ => assert!(
                lines[0].starts_with("2023-11-14T22:13:20.123457000Z "),
                "{lines:?}"
            ),
        }
    }
}

#[test]
fn version_6_of_ip_is_read_and_extension_headers_are_passed() {
    let given = packets(&file(&capture(
        "[fd00::1]:50000",
        "[fd00::2]:9092",
        exchanges(),
    )));
    let plain = exchange_lines(&tcpdump(1, &given));
    assert_eq!(plain.len(), 3);
    assert!(
        plain[0].contains(" [fd00::1]:50000 -> [fd00::2]:9092 ApiVersions"),
        "{plain:?}"
    );
    // Eight bytes of hop-by-hop options before TCP.
    let extended = given.iter().map(|(time, bytes)| {
        let mut packet = bytes[..54].to_vec();
        let length = u16::from_be_bytes([packet[18], packet[19]]).saturating_add(8);
        packet[18..20].copy_from_slice(&length.to_be_bytes());
        packet[20] = 0;
        packet.extend(b"\x06\0\x01\x04\0\0\0\0");
        packet.extend(&bytes[54..]);
        (*time, packet)
    });
    assert_eq!(
        exchange_lines(&tcpdump(1, &extended.collect::<Vec<_>>())),
        plain
    );
}

/// The packets of a conversation with a broker on a port of its own.
fn on_port(port: u16) -> Vec<(Duration, Vec<u8>)> {
    let mut given = packets(&own(exchanges()));
    for (_, packet) in &mut given {
        for at in [34, 36] {
            if packet[at..at + 2] == 9092_u16.to_be_bytes() {
                packet[at..at + 2].copy_from_slice(&port.to_be_bytes());
            }
        }
    }
    given
}

#[test]
fn the_broker_is_who_was_called_or_asked_or_has_the_port() {
    let at_port = |lines: Vec<String>| -> Vec<String> {
        lines
            .iter()
            .map(|line| line.replace(":9092", ":19092"))
            .collect()
    };
    let expected = at_port(expected());
    let whole = on_port(19092);
    assert_eq!(exchange_lines(&tcpdump(1, &whole)), expected);
    // Without the handshake: who asks is the client.
    assert_eq!(exchange_lines(&tcpdump(1, &whole[3..])), expected);
    for (ports, count) in [(&[19092][..], 3), (&[9092], 0), (&[1, 19092], 3)] {
        let (out, _) = decoded_with(&tcpdump(1, &whole), Style::Line, ports);
        assert_eq!(out.lines().count(), count, "{ports:?} {out}");
    }
}

#[test]
fn other_protocols_are_passed_over_in_silence() {
    let mut given = on_port(80);
    // What is said is not Kafka.
    for (_, packet) in &mut given {
        for byte in packet.iter_mut().skip(58) {
            *byte = b'x';
        }
    }
    for packets in [&given[..], &given[3..]] {
        let (out, read) = decoded(&tcpdump(1, packets), Style::Line);
        assert_eq!((out.as_str(), read), ("", Ok(())));
    }
}
