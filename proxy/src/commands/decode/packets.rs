//! The packets in a capture file: pcapng, or the older pcap of `tcpdump -w`.
//!
//! Two traps. A length in a file is a promise: no block is held that is larger than the reader's
//! buffer. And a block that makes no sense is not the end: the next one stands behind its length.

use super::DecodeError;
use pcap_file::pcap::{PcapReadError, PcapReader, PcapTsResolution};
use pcap_file::pcapng::blocks::block_common::{Block, PACKET_BLOCK, RawBlock};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::{ENHANCED_PACKET_BLOCK, SIMPLE_PACKET_BLOCK};
use pcap_file::pcapng::{PcapNgReadError, PcapNgReader, PcapNgState};
use std::io::{self, Read};
use std::time::Duration;

/// Bytes that are held of a file: no packet and no other block may be larger.
const BUFFER: usize = 8 << 20;

/// Interfaces of a file, which are all held.
const MOST_INTERFACES: usize = 4096;

/// What kind of capture file begins with these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// pcapng.
    Ng,
    /// pcap, in microseconds or nanoseconds.
    Classic,
}

impl Kind {
    /// `None` where it is no capture file.
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        match u32::from_be_bytes(magic) {
            0x0a0d_0d0a => Some(Self::Ng),
            0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 => Some(Self::Classic),
            _ => None,
        }
    }
}

/// What a file has.
pub(super) enum Item<'a> {
    /// What follows was written by this application, if it said so, with these words.
    Section(Option<&'a str>, Option<&'a str>),
    /// A packet, whose block begins at this offset.
    Packet(u64, Packet<'a>),
    /// A block at this offset that makes no sense.
    Unreadable(u64, String),
}

/// A packet.
pub(super) struct Packet<'a> {
    /// Since 1970.
    pub(super) time: Duration,
    /// The type of its link, as libpcap numbers them.
    pub(super) link: u32,
    pub(super) bytes: &'a [u8],
    /// The first comment on it.
    pub(super) comment: Option<&'a str>,
}

/// Gives all that a file has to `on`.
pub(super) fn read(
    kind: Kind,
    input: impl Read,
    on: &mut dyn FnMut(Item<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    match kind {
        Kind::Ng => read_ng(input, on),
        Kind::Classic => read_classic(input, on),
    }
}

fn read_ng(
    input: impl Read,
    on: &mut dyn FnMut(Item<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut reader = PcapNgReader::with_capacity(input, BUFFER).map_err(|error| ng(0, error))?;
    on(section(reader.section()))?;
    loop {
        let at = reader.bytes_parsed();
        let (block, state) = match reader.next_raw_block() {
            None => return Ok(()),
            Some(Ok(next)) => next,
            Some(Err(PcapNgReadError::Io(error))) if error.kind() == io::ErrorKind::Interrupted => {
                continue;
            }
            Some(Err(error)) => return Err(ng(at, error)),
        };
        if state.interfaces().len() > MOST_INTERFACES {
            return Err(DecodeError::Interfaces(at));
        }
        let is_packet = matches!(
            block.type_,
            PACKET_BLOCK | SIMPLE_PACKET_BLOCK | ENHANCED_PACKET_BLOCK
        );
        match typed(&block, state) {
            Ok(Block::SectionHeader(head)) => on(section(&head))?,
            Ok(Block::EnhancedPacket(packet)) => {
                let comment = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Common(CommonOption::Comment(comment)) => Some(comment),
                    _ => None,
                });
                on(Item::Packet(
                    at,
                    Packet {
                        time: packet.timestamp,
                        link: link(state, packet.interface_id),
                        bytes: &packet.data,
                        comment: comment.map(|comment| comment.as_ref()),
                    },
                ))?;
            }
            Ok(Block::SimplePacket(packet)) => on(Item::Packet(
                at,
                Packet {
                    time: Duration::ZERO,
                    link: link(state, 0),
                    bytes: &packet.data,
                    comment: None,
                },
            ))?,
            Ok(Block::Packet(packet)) => on(Item::Packet(
                at,
                Packet {
                    time: packet.timestamp,
                    link: link(state, packet.interface_id.into()),
                    bytes: &packet.data,
                    comment: None,
                },
            ))?,
            // What else there is says nothing of packets.
            Ok(_) => {}
            Err(why) if is_packet => on(Item::Unreadable(at, why))?,
            Err(_) => {}
        }
    }
}

fn typed<'a>(block: &'a RawBlock<'_>, state: &PcapNgState) -> Result<Block<'a>, String> {
    let block = RawBlock {
        body: std::borrow::Cow::Borrowed(&block.body),
        ..*block
    };
    let block = block.try_into_block(state);
    block.map_err(|error| with_sources(&error))
}

fn section<'a>(head: &'a SectionHeaderBlock<'_>) -> Item<'a> {
    let application = head.options.iter().find_map(|option| match option {
        SectionHeaderOption::UserApplication(name) => Some(name.as_ref()),
        _ => None,
    });
    let comment = head.options.iter().find_map(|option| match option {
        SectionHeaderOption::Common(CommonOption::Comment(comment)) => Some(comment.as_ref()),
        _ => None,
    });
    Item::Section(application, comment)
}

fn link(state: &PcapNgState, interface: u32) -> u32 {
    let interface = state.interfaces().get(interface as usize);
    interface.map_or(u32::MAX, |interface| interface.linktype.into())
}

fn read_classic(
    input: impl Read,
    on: &mut dyn FnMut(Item<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut reader = PcapReader::with_capacity(input, BUFFER).map_err(|error| classic(0, error))?;
    let header = reader.header();
    // The upper bits tell of checksums behind frames.
    let link = u32::from(header.datalink) & 0xffff;
    let nanos = match header.ts_resolution {
        PcapTsResolution::MicroSecond => 1000,
        PcapTsResolution::NanoSecond => 1,
    };
    on(Item::Section(None, None))?;
    let mut at = 24;
    loop {
        let packet = match reader.next_raw_packet() {
            None => return Ok(()),
            Some(Ok(packet)) => packet,
            Some(Err(PcapReadError::Io(error))) if error.kind() == io::ErrorKind::Interrupted => {
                continue;
            }
            Some(Err(error)) => return Err(classic(at, error)),
        };
        let start = at;
        at += 16 + packet.data.len() as u64;
        let fraction = Duration::from_nanos(u64::from(packet.ts_frac) * nanos);
        on(Item::Packet(
            start,
            Packet {
                time: Duration::from_secs(packet.ts_sec.into()) + fraction,
                link,
                bytes: &packet.data,
                comment: None,
            },
        ))?;
    }
}

fn ng(at: u64, error: PcapNgReadError) -> DecodeError {
    match error {
        PcapNgReadError::Io(error) => ended(at, error),
        error => DecodeError::Damaged(at, with_sources(&error)),
    }
}

fn classic(at: u64, error: PcapReadError) -> DecodeError {
    match error {
        PcapReadError::Io(error) => ended(at, error),
        error => DecodeError::Damaged(at, with_sources(&error)),
    }
}

fn ended(at: u64, error: io::Error) -> DecodeError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => DecodeError::CutPacket(at),
        _ => DecodeError::Read(error),
    }
}

/// An error and what it says of its causes.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
