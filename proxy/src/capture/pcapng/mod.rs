//! A capture as a file that Wireshark opens, and `klamp decode`.
//!
//! The trap: a frame with holes is no frame. What is written has lengths that fit what is there, so it
//! is shorter than what was received, and the comment says by how much.

#[allow(dead_code)] // its notes, until captures are read back
pub(crate) mod comment;
mod order;
mod packets;
#[cfg(test)]
pub(crate) mod tests;

use super::Capture;
use klamp_codec::Direction;
use klamp_codec::kept::{Kept, Part, Reading};
use packets::{KAFKA_PORT, Packets};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// How the application that wrote a file begins in its head, if it is this one.
pub(crate) const APPLICATION: &str = "klamp ";

/// No packet is longer.
const SNAPLEN: u32 = 256 << 10;

/// Writes a capture as a pcapng file.
///
/// # Errors
/// Where `out` fails.
pub(crate) fn write(capture: &Capture, out: impl Write) -> io::Result<()> {
    let about = about(capture);
    let options = vec![
        SectionHeaderOption::UserApplication(Cow::Owned(format!(
            "{APPLICATION}{}",
            env!("CARGO_PKG_VERSION")
        ))),
        SectionHeaderOption::Common(CommonOption::Comment(Cow::Borrowed(&about))),
    ];
    let section = SectionHeaderBlock {
        endianness: Endianness::Little,
        options,
        ..SectionHeaderBlock::default()
    };
    let mut out = PcapNgWriter::with_section_header(out, section).map_err(failed)?;
    let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, SNAPLEN);
    interface.options = vec![
        InterfaceDescriptionOption::IfName(Cow::Borrowed("klamp")),
        InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
    ];
    out.write_pcapng_block(interface).map_err(failed)?;

    let frames = order::ordered(&capture.frames);
    let first = frames.first().map(|kept| kept.received);
    let mut packets = Packets::new(out, capture);
    packets.handshake(first.map_or(capture.opened, |first| first.min(capture.opened)))?;
    // Where the frame before ends, in each direction.
    let mut ends = [None; 2];
    for kept in frames {
        let end = &mut ends[kept.direction as usize];
        let lost = end.map_or(0, |end| kept.at.saturating_sub(end));
        *end = Some(kept.at.saturating_add(kept.bytes));
        let comment = comment::on(kept, capture.table.as_deref(), lost);
        packets.frame(kept.direction, kept.received, &mended(kept), &comment)?;
    }
    packets.end()
}

/// What the head of the file says.
fn about(capture: &Capture) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let value = value.to_string();
        let value: String = value.chars().filter(|char| !char.is_control()).collect();
        // A String takes all.
        let _ = writeln!(out, "{name}: {}", comment::cut(&value, 2048));
    };
    line("capture", &capture.id);
    line("reason", &capture.reason);
    line("taken", &humantime::format_rfc3339_nanos(capture.taken));
    line("client", &capture.client);
    if let Some(id) = &capture.client_id {
        line("client id", &format_args!("{id:?}"));
    }
    if let Some((name, version)) = &capture.software {
        line("software", &format_args!("{name} {version}"));
    }
    line("upstream", &capture.upstream);
    match capture.broker {
        None => line("broker", &"not reached"),
        Some(broker) if broker.port() == KAFKA_PORT => line("broker", &broker),
        Some(broker) => line(
            "broker",
            &format_args!(
                "{broker}, here with the port {KAFKA_PORT}, by which Wireshark knows Kafka"
            ),
        ),
    }
    line(
        "connection since",
        &humantime::format_rfc3339_nanos(capture.opened),
    );
    line("frames", &capture.frames.len());
    line("frames given up before them", &capture.lost_frames);
    out.truncate(out.trim_end().len());
    out
}

/// The bytes of a frame, with lengths that fit them.
fn mended(kept: &Kept) -> Vec<u8> {
    let mut frame = Vec::new();
    let mut has_hole = false;
    for part in &kept.parts {
        match part {
            Part::Bytes(bytes) if !has_hole => frame.extend_from_slice(bytes),
            Part::Bytes(_) => {}
            Part::Hole(_) => has_hole = true,
        }
    }
    if has_hole || kept.reading != Reading::Whole {
        let header = match (kept.reading, kept.direction) {
            (Reading::Token, _) => 4,
            (_, Direction::Response) => 8,
            // With the client id, unless there is none.
            (_, Direction::Request) => frame.get(12..14).map_or(12, |id| {
                let id = i16::from_be_bytes([id[0], id[1]]);
                14 + usize::try_from(id).unwrap_or(0)
            }),
        };
        frame.resize(frame.len().clamp(4, header.max(4)), 0);
        let length = frame.len() as u32 - 4;
        frame[..4].copy_from_slice(&length.to_be_bytes());
    }
    frame
}

/// What `out` said.
fn failed(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        error => io::Error::other(error),
    }
}
