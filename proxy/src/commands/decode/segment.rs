//! From a packet to the TCP segment in it.
//!
//! The trap: a packet may have been cut where it was captured (`tcpdump -s`). How long its segment was
//! says the IP header, and the rest of it is missing, not absent.

use super::packets::Packet;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use std::net::{IpAddr, SocketAddr};

/// What a packet was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen<'a> {
    Tcp(Segment<'a>),
    /// A fragment of an IP packet.
    Fragment,
    /// A link of this type, which nobody here reads.
    UnknownLink(u32),
    /// Something else.
    Other,
}

/// A TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Number of its first byte.
    pub(super) sequence: u32,
    pub(super) syn: bool,
    pub(super) ack: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) bytes: &'a [u8],
    /// So many bytes behind them were not captured.
    pub(super) missing: u32,
}

/// Reads a packet.
pub(super) fn read<'a>(packet: &Packet<'a>) -> Seen<'a> {
    let bytes = packet.bytes;
    // By the numbers of libpcap's link types.
    let sliced = match packet.link {
        1 => LaxSlicedPacket::from_ethernet(bytes).ok(),
        // BSD loopback: an address family, in the order of the machine that captured.
        0 | 108 => bytes
            .get(4..)
            .and_then(|ip| LaxSlicedPacket::from_ip(ip).ok()),
        12 | 14 | 101 | 228 | 229 => LaxSlicedPacket::from_ip(bytes).ok(),
        // Linux cooked, what `tcpdump -i any` writes.
        113 => cooked(bytes, 14, 16),
        276 => cooked(bytes, 0, 20),
        link => return Seen::UnknownLink(link),
    };
    sliced.map_or(Seen::Other, |sliced| segment(&sliced))
}

/// A packet behind a header that has the type of what follows at `protocol`.
fn cooked(bytes: &[u8], protocol: usize, header: usize) -> Option<LaxSlicedPacket<'_>> {
    let protocol = bytes.get(protocol..)?.first_chunk()?;
    let ether_type = EtherType(u16::from_be_bytes(*protocol));
    let behind = bytes.get(header..)?;
    Some(LaxSlicedPacket::from_ether_type(ether_type, behind))
}

fn segment<'a>(sliced: &LaxSlicedPacket<'a>) -> Seen<'a> {
    let (from, to, announced, captured) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) if ip.payload().fragmented => return Seen::Fragment,
        Some(LaxNetSlice::Ipv6(ip)) if ip.payload().fragmented => return Seen::Fragment,
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let (from, to) = (
                header.source_addr().into(),
                header.destination_addr().into(),
            );
            let announced = header.payload_len().unwrap_or(0);
            (from, to, usize::from(announced), ip.payload().payload.len())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let (from, to) = (
                header.source_addr().into(),
                header.destination_addr().into(),
            );
            let captured = ip.extensions().slice().len() + ip.payload().payload.len();
            (from, to, usize::from(header.payload_length()), captured)
        }
        _ => return Seen::Other,
    };
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else {
        return Seen::Other;
    };
    let (from, to): (IpAddr, IpAddr) = (from, to);
    Seen::Tcp(Segment {
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        syn: tcp.syn(),
        ack: tcp.ack(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        bytes: tcp.payload(),
        // Where no length is announced, the packet was too large for one: all of it is there.
        missing: announced.saturating_sub(captured) as u32,
    })
}
