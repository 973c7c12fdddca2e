//! Whether an address that a broker tells clients leads them to klamp or past it.
//!
//! The trap: a name may lead to klamp by ways that it does not know (a Kubernetes service, a load
//! balancer). So only what is certain counts: a port that klamp does not have, or an IP address that
//! is not its own.

use std::net::IpAddr;

/// Every address that klamp listens on or advertises.
#[derive(Debug)]
pub(super) struct OwnNames {
    names: Vec<(Host, u16)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    Name(String),
}

impl Host {
    fn new(host: &str) -> Self {
        match host.parse::<IpAddr>() {
            Ok(ip) => Self::Ip(ip.to_canonical()),
            Err(_) => Self::Name(host.to_ascii_lowercase()),
        }
    }

    /// Whether `told` certainly leads elsewhere.
    fn differs(&self, told: &Self) -> bool {
        match (self, told) {
            (Self::Ip(own), _) if own.is_unspecified() => false,
            (Self::Ip(own), Self::Ip(told)) => own != told,
            (Self::Name(_), Self::Ip(_)) | (_, Self::Name(_)) => false,
        }
    }
}

impl OwnNames {
    pub(super) fn new(names: Vec<(String, u16)>) -> Self {
        let names = names
            .into_iter()
            .map(|(host, port)| (Host::new(&host), port));
        Self {
            names: names.collect(),
        }
    }

    /// Whether nothing is known, so that nothing can be told.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a client that connects to this address certainly goes past klamp. `host` need not be
    /// UTF-8. An empty host or a port that is none says that there is no broker to go to.
    pub(super) fn is_foreign(&self, host: &[u8], port: i32) -> bool {
        let Some(port) = u16::try_from(port)
            .ok()
            .filter(|&port| port > 0 && !host.is_empty())
        else {
            return false;
        };
        let mut same_port = self.names.iter().filter(|(_, own)| *own == port).peekable();
        if same_port.peek().is_none() {
            return true;
        }
        let told = Host::new(&String::from_utf8_lossy(host));
        same_port.all(|(own, _)| own.differs(&told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_certainly_leads_elsewhere_is_foreign() {
        let own = [
            ("127.0.0.1", 9192),
            ("0.0.0.0", 9193),
            ("kafka.example.com", 9194),
        ];
        let own = OwnNames::new(own.map(|(host, port)| (host.to_owned(), port)).into());
        for (host, port) in [
            ("127.0.0.1", 9192),
            ("localhost", 9192),
            ("any.name", 9192),
            ("10.0.0.7", 9193),
            ("KAFKA.example.com", 9194),
            ("10.0.0.7", 9194),
            ("", 9092),
            ("gone", -1),
            ("gone", 70_000),
        ] {
            assert!(!own.is_foreign(host.as_bytes(), port), "{host}:{port}");
        }
        for (host, port) in [("127.0.0.1", 9092), ("broker", 9092), ("10.0.0.7", 9192)] {
            assert!(own.is_foreign(host.as_bytes(), port), "{host}:{port}");
        }
    }
}
