//! The connection as it might have been on a wire: a handshake, then segments that follow each other
//! without a gap.
//!
//! Two traps. Wireshark knows Kafka by the port 9092, so the broker has that one here, whatever its
//! own is. And it reports what no TCP would do, such as more bytes in flight than fit in the window,
//! so the handshake agrees on a window that holds all of a capture.

use super::failed;
use crate::capture::Capture;
use etherparse::{PacketBuilder, TcpHeader, TcpOptionElement};
use klamp_codec::Direction;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime};

/// The port by which Wireshark knows Kafka.
pub(super) const KAFKA_PORT: u16 = 9092;

/// Bytes of a segment: what an IPv4 packet holds beside its header and TCP's.
pub(super) const MOST: usize = u16::MAX as usize - 20 - 20;

const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const BROKER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// The ends of the connection, and how far it is.
pub(super) struct Packets<W: Write> {
    out: PcapNgWriter<W>,
    client: SocketAddr,
    broker: SocketAddr,
    /// The sequence number of the next byte of each direction.
    next: [u32; 2],
    /// When the latest packet was sent.
    now: Duration,
    /// Of the packet being made.
    packet: Vec<u8>,
}

impl<W: Write> Packets<W> {
    /// The connection of a capture, before its first packet.
    pub(super) fn new(out: PcapNgWriter<W>, capture: &Capture) -> Self {
        let broker = capture.broker.map(|broker| broker.ip().to_canonical());
        let client = capture.client.ip().to_canonical();
        let broker = broker.unwrap_or(match client {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        });
        let (client, broker) = match (client, broker) {
            (IpAddr::V4(_), IpAddr::V4(_)) => (client, broker),
            // One packet has one family.
            (client, broker) => (mapped(client), mapped(broker)),
        };
        Self {
            out,
            client: SocketAddr::new(client, capture.client.port()),
            broker: SocketAddr::new(broker, KAFKA_PORT),
            next: [0; 2],
            now: Duration::ZERO,
            packet: Vec::new(),
        }
    }

    /// SYN, SYN-ACK, ACK.
    pub(super) fn handshake(&mut self, at: SystemTime) -> io::Result<()> {
        self.pass_time(at);
        // 65,535 times 2 to the 14th: a gigabyte.
        let scale = [TcpOptionElement::WindowScale(14)];
        for direction in [Direction::Request, Direction::Response] {
            let mut header = self.header(direction);
            header.syn = true;
            header.ack = direction == Direction::Response;
            header.set_options(&scale).map_err(io::Error::other)?;
            self.write(direction, header, &[], None)?;
            self.next[direction as usize] += 1;
        }
        let header = self.header(Direction::Request);
        self.write(Direction::Request, header, &[], None)
    }

    /// A frame, in as many segments as it takes, the first of which has the comment.
    pub(super) fn frame(
        &mut self,
        direction: Direction,
        at: SystemTime,
        frame: &[u8],
        comment: &str,
    ) -> io::Result<()> {
        self.pass_time(at);
        let mut comment = Some(comment);
        let mut segments = frame.chunks(MOST).peekable();
        while let Some(segment) = segments.next() {
            let mut header = self.header(direction);
            header.psh = segments.peek().is_none();
            self.write(direction, header, segment, comment.take())?;
            let next = &mut self.next[direction as usize];
            *next = next.wrapping_add(segment.len() as u32);
        }
        Ok(())
    }

    /// Nothing follows.
    pub(super) fn end(self) -> io::Result<()> {
        self.out.into_inner().flush()
    }

    /// Time never goes back, as clocks do.
    fn pass_time(&mut self, at: SystemTime) {
        let at = at.duration_since(SystemTime::UNIX_EPOCH);
        self.now = self.now.max(at.unwrap_or_default());
    }

    fn header(&self, direction: Direction) -> TcpHeader {
        let (from, to, other) = match direction {
            Direction::Request => (self.client, self.broker, Direction::Response),
            Direction::Response => (self.broker, self.client, Direction::Request),
        };
        let next = self.next[direction as usize];
        let mut header = TcpHeader::new(from.port(), to.port(), next, u16::MAX);
        header.ack = true;
        header.acknowledgment_number = self.next[other as usize];
        header
    }

    fn write(
        &mut self,
        direction: Direction,
        mut header: TcpHeader,
        segment: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        if !header.ack {
            header.acknowledgment_number = 0;
        }
        let ends = [(CLIENT_MAC, self.client), (BROKER_MAC, self.broker)];
        let [from, to] = match direction {
            Direction::Request => ends,
            Direction::Response => [ends[1], ends[0]],
        };
        let link = PacketBuilder::ethernet2(from.0, to.0);
        let net = match (from.1.ip(), to.1.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => link.ipv4(from.octets(), to.octets(), 64),
            (from, to) => link.ipv6(octets(from), octets(to), 64),
        };
        self.packet.clear();
        net.tcp_header(header)
            .write(&mut self.packet, segment)
            .map_err(io::Error::other)?;
        let comment = comment.map(|comment| CommonOption::Comment(Cow::Borrowed(comment)));
        self.out
            .write_pcapng_block(EnhancedPacketBlock {
                interface_id: 0,
                timestamp: self.now,
                original_len: self.packet.len() as u32,
                data: Cow::Borrowed(&self.packet),
                options: comment
                    .map(EnhancedPacketOption::Common)
                    .into_iter()
                    .collect(),
            })
            .map_err(failed)?;
        Ok(())
    }
}

fn mapped(ip: IpAddr) -> IpAddr {
    IpAddr::from(octets(ip))
}

/// As IPv6 has it, where an IPv4 address is mapped.
fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}
