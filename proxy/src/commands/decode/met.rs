//! Which connections a file has, for when nothing of them could be printed.
//!
//! The trap: a file may have any number of them, so no more than a few are told apart.

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;

/// Connections that are told apart.
const MOST: usize = 4096;

/// Ports that are named.
const NAMED: usize = 5;

/// The connections that were met.
#[derive(Debug, Default)]
pub(super) struct Met {
    /// Their two ends.
    ends: HashSet<[SocketAddr; 2]>,
    /// Whether any byte was said on any of them.
    have_said: bool,
}

impl Met {
    /// Another segment, or the first, of the connection between these ends.
    pub(super) fn meet(&mut self, ends: [SocketAddr; 2]) {
        if self.ends.len() < MOST {
            self.ends.insert(ends);
        }
    }

    /// Bytes were said on one of them.
    pub(super) fn hear(&mut self) {
        self.have_said = true;
    }

    /// Why nothing was printed of them, where brokers were to be at these ports, or at any.
    pub(super) fn told(&self, wanted: &[u16]) -> String {
        // (servers have the lower port, as a rule)
        let port = |ends: &[SocketAddr; 2]| ends[0].port().min(ends[1].port());
        let ports: BTreeSet<_> = self.ends.iter().map(port).collect();
        let (wanted, hint) = match wanted {
            [] => (String::new(), ": give the broker's with --port"),
            wanted => (format!(" with port {}", list(wanted.iter(), " or ")), ""),
        };
        let nothing = format!("no conversation with Kafka{wanted} was found");
        let s = if self.ends.len() == 1 { "" } else { "s" };
        match self.ends.len() {
            n @ 1.. if !self.have_said => {
                format!("{nothing}: of {n} connection{s} not one byte is here that was said")
            }
            0 => format!("{nothing}, nor any other TCP connection"),
            MOST => format!("{nothing}, among more than {MOST} connections{hint}"),
            n => {
                let more = if ports.len() > NAMED { ", ..." } else { "" };
                let ports = list(ports.iter().take(NAMED), ", ");
                format!("{nothing}; left out: {n} connection{s} with port {ports}{more}{hint}")
            }
        }
    }
}

fn list<'a>(ports: impl Iterator<Item = &'a u16>, between: &str) -> String {
    let ports: Vec<_> = ports.map(u16::to_string).collect();
    ports.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_counted_and_a_few_ports_are_named() {
        let mut met = Met::default();
        assert_eq!(
            met.told(&[1, 2]),
            "no conversation with Kafka with port 1 or 2 was found, nor any other TCP connection"
        );
        for port in 8001..8008_u16 {
            let ends = [port, 50_000].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
            met.meet(ends);
            met.meet(ends);
        }
        assert_eq!(
            met.told(&[]),
            "no conversation with Kafka was found: of 7 connections not one byte is here that was said"
        );
        met.hear();
        assert_eq!(
            met.told(&[]),
            "no conversation with Kafka was found; left out: 7 connections with port 8001, 8002, \
             8003, 8004, 8005, ...: give the broker's with --port"
        );
        for port in 1..=MOST as u16 {
            met.meet([port, 50_000].map(|port| SocketAddr::from(([127, 0, 0, 1], port))));
        }
        assert!(met.told(&[1]).ends_with("more than 4096 connections"));
    }
}
