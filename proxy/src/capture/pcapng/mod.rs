//! A capture as a file that Wireshark opens, and `klamp decode`.
//!
//! The trap: a frame with holes is no frame. What is written has lengths that fit what is there, so it
//! is shorter than what was received, and the comment says by how much.

pub(crate) mod comment;
mod packets;
#[cfg(test)]
pub(crate) mod tests;

use super::facts::Named;
use super::{Capture, InFlight};
use crate::shown::{self, Shown};
use klamp_codec::Direction;
use klamp_codec::mend::mend;
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

/// Writes a capture as a pcapng file, in which the content of records may be seen if `records` says so.
///
/// # Errors
/// Where `out` fails.
pub(crate) fn write(capture: &Capture, records: bool, out: impl Write) -> io::Result<()> {
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

    let frames = capture.frames.all();
    let trigger = capture.cause.and_then(|cause| cause.among(&frames));
    let first = frames.first().map(|kept| kept.received);
    let mut packets = Packets::new(out, capture);
    packets.handshake(first.map_or(capture.opened, |first| first.min(capture.opened)))?;
    // Where the frame before ends, in each direction.
    let mut ends = [None; 2];
    for (index, kept) in frames.into_iter().enumerate() {
        let end = &mut ends[kept.direction as usize];
        let lost = end.map_or(0, |end| kept.at.saturating_sub(end));
        *end = Some(kept.at.saturating_add(kept.bytes));
        let mended = mend(kept, records);
        let why = (trigger == Some(index)).then_some(capture.reason.as_str());
        let comment = comment::on(kept, &mended, capture.table.as_deref(), lost, why);
        packets.frame(kept.direction, kept.received, &mended.bytes, &comment)?;
    }
    packets.end()
}

/// What the head of the file says.
fn about(capture: &Capture) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let value = shown::line(&value.to_string());
        // A String takes all.
        let _ = writeln!(out, "{name}: {}", comment::cut(&value, 2048));
    };
    line("capture", &capture.id);
    line("reason", &capture.reason);
    if let Some(cause) = &capture.cause {
        line("trigger", &Named(cause.direction, cause.exchange));
    }
    let InFlight { requests, more } = InFlight::of(capture);
    for exchange in requests {
        line("in flight", &Named(Direction::Request, exchange));
    }
    if more > 0 {
        line("in flight", &format_args!("{more} more"));
    }
    line("taken", &humantime::format_rfc3339_nanos(capture.taken));
    line("client", &capture.client);
    if let Some(id) = &capture.client_id {
        line("client id", &format_args!("{id:?}"));
    }
    if let Some((name, version)) = &capture.software {
        let [name, version] = [name, version].map(|told| Shown(Some(told.as_bytes())));
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

/// What `out` said.
fn failed(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        error => io::Error::other(error),
    }
}
