//! Where connections go, and where they must not go.
//!
//! Guards against the loop: a klamp whose upstream is klamp itself would answer one connection with
//! a chain of them, until the descriptors run out.

use crate::dial::LookUps;
use crate::log::{self, RateLimit};
use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tracing::Level;

/// A broker's listener as the operator names it: `host:port`, the host a name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Upstream {
    host: Box<str>,
    port: u16,
}

impl Upstream {
    /// The name or IP address, without the brackets of IPv6.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Never 0.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let (host, port) = text.rsplit_once(':').ok_or(UpstreamError)?;
        let host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            Some(v6) if v6.parse::<std::net::Ipv6Addr>().is_ok() => v6,
            Some(_) => return Err(UpstreamError),
            None => host,
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let bracketed = text.starts_with('[');
        if host.is_empty() || !(bracketed || host.chars().all(is_name)) {
            return Err(UpstreamError);
        }
        match port.parse() {
            Ok(port) if port > 0 => Ok(Self {
                host: host.into(),
                port,
            }),
            _ => Err(UpstreamError),
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Text that does not name an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected HOST:PORT, as in broker-1:9092, 10.0.0.7:9092 or [2001:db8::7]:9092")]
pub(crate) struct UpstreamError;

/// Where the connections of one listener go.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) upstream: Upstream,
    /// `upstream` as text, for labels and log lines.
    pub(crate) name: Arc<str>,
    /// Whether the last dial failed, so that the first success after it is told.
    pub(crate) down: AtomicBool,
    /// Of the name of `upstream`.
    pub(crate) look_ups: LookUps,
    /// For the failures of this upstream alone: they must not keep those of another from the log.
    pub(crate) failures: Arc<RateLimit>,
}

impl Route {
    pub(crate) fn new(upstream: Upstream) -> Arc<Self> {
        let name = upstream.to_string();
        let unreached = format!("clients whose broker cannot be reached ({name})");
        Arc::new(Self {
            name: name.into(),
            upstream,
            down: AtomicBool::new(false),
            look_ups: LookUps::default(),
            failures: log::limit(Level::WARN, unreached, 5),
        })
    }
}

/// The addresses that klamp itself accepts connections on.
#[derive(Debug, Default)]
pub(crate) struct OwnAddresses(Vec<SocketAddr>);

impl OwnAddresses {
    /// `bound`: the listeners' addresses, with their real ports.
    pub(crate) fn new(bound: Vec<SocketAddr>) -> Self {
        Self(bound)
    }

    /// Whether a connection to `address` would arrive at klamp itself. Not seen: the ways round that
    /// leave this host's own sight, such as a published container port.
    pub(crate) fn contain(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        self.0.iter().any(|own| {
            let own_ip = own.ip().to_canonical();
            own.port() == address.port()
                && match (own_ip.is_unspecified(), ip.is_unspecified()) {
                    // To connect to 0.0.0.0 or :: is to connect to localhost.
                    (_, true) => own_ip.is_unspecified() || own_ip.is_loopback(),
                    (true, false) => takes_family(own_ip, ip) && is_this_host(ip),
                    (false, false) => own_ip == ip,
                }
        })
    }
}

/// Whether a listener on all addresses of one family takes connections to `ip`; klamp's listeners
/// on `::` take both families.
fn takes_family(wildcard: IpAddr, ip: IpAddr) -> bool {
    wildcard.is_ipv6() || ip.is_ipv4()
}

/// Whether packets to `ip` stay on this host. Asks the kernel's routes by connecting a datagram
/// socket, which sends nothing: for an address of its own the kernel picks that very address as the
/// source. (Binding to `ip` would not do: `ip_nonlocal_bind` lets any address be bound.)
fn is_this_host(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((ip, 9))?;
        socket.local_addr()
    };
    ip.is_loopback() || source().is_ok_and(|source| source.ip() == ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_a_host_and_a_port() {
        for (text, host, port) in [
            ("broker-1.kafka.svc:9092", "broker-1.kafka.svc", 9092),
            ("my_broker:1", "my_broker", 1),
            ("10.0.0.7:65535", "10.0.0.7", 65535),
            ("[::1]:9092", "::1", 9092),
        ] {
            let upstream: Upstream = text.parse().unwrap();
            assert_eq!((upstream.host(), upstream.port()), (host, port));
            assert_eq!(upstream.to_string(), text);
        }
    }

    #[test]
    fn what_names_no_upstream_is_refused() {
        for text in [
            "",
            "broker",
            ":9092",
            "broker:",
            "broker:0",
            "broker:65536",
            "broker:http",
            "kafka://broker:9092",
            "[broker]:9092",
            "2001:db8::7:9092",
            "a b:9092",
            "a:9092,b:9092",
        ] {
            assert_eq!(text.parse::<Upstream>(), Err(UpstreamError), "{text}");
        }
    }

    fn own(addresses: &[&str]) -> OwnAddresses {
        OwnAddresses::new(addresses.iter().map(|a| a.parse().unwrap()).collect())
    }

    fn contain(own: &OwnAddresses, address: &str) -> bool {
        own.contain(address.parse().unwrap())
    }

    #[test]
    fn a_listener_on_one_address_is_that_address_alone() {
        let own = own(&["127.0.0.1:9192", "[::1]:9193"]);
        assert!(contain(&own, "127.0.0.1:9192"));
        assert!(contain(&own, "[::ffff:127.0.0.1]:9192"));
        assert!(contain(&own, "0.0.0.0:9192"));
        assert!(contain(&own, "[::1]:9193"));
        assert!(!contain(&own, "127.0.0.2:9192"));
        assert!(!contain(&own, "127.0.0.1:9193"));
        assert!(!contain(&own, "192.0.2.1:9192"));
    }

    #[test]
    fn a_listener_on_all_addresses_is_every_address_of_this_host() {
        for wildcard in ["0.0.0.0:9192", "[::]:9192"] {
            let own = own(&[wildcard]);
            assert!(contain(&own, "127.0.0.1:9192"), "{wildcard}");
            assert!(contain(&own, "127.0.0.2:9192"), "{wildcard}");
            assert!(contain(&own, "0.0.0.0:9192"), "{wildcard}");
            assert!(!contain(&own, "127.0.0.1:9092"), "{wildcard}");
            assert!(!contain(&own, "192.0.2.1:9192"), "{wildcard}");
        }
        assert!(!contain(&own(&["0.0.0.0:9192"]), "[::1]:9192"));
    }
}
