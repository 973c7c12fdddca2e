//! `/connections`: every open connection, the oldest first; as text by upstream, to fit a terminal.

use crate::columns::Columns;
use crate::shown::Shown;
use crate::view::{ConnView, Software, Views};
use bytesize::ByteSize;
use klamp_codec::Direction;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Serialize)]
pub(super) struct Report {
    connections: Vec<Connection>,
}

#[derive(Serialize)]
struct Connection {
    id: u64,
    peer: SocketAddr,
    upstream: Arc<str>,
    age_seconds: u64,
    client_id: Option<Name>,
    software_name: Option<Name>,
    software_version: Option<Name>,
    in_flight: u32,
    requests: u64,
    /// Passed on to the broker.
    request_bytes: u64,
    /// Passed on to the client.
    response_bytes: u64,
}

/// What a client calls something: in JSON as text, with bytes that are no UTF-8 replaced.
#[derive(Clone, Debug)]
pub(super) struct Name(Box<[u8]>);

impl Name {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// For people.
    pub(super) fn shown(name: Option<&Self>) -> String {
        Shown(name.map(|Self(bytes)| &**bytes)).to_string()
    }
}

impl Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&String::from_utf8_lossy(&self.0))
    }
}

/// Name and version of a client's software.
pub(super) fn names(software: Option<&Software>) -> (Option<Name>, Option<Name>) {
    let name = software.map(|told| Name::new(&told.name));
    (name, software.map(|told| Name::new(&told.version)))
}

pub(super) fn report(views: &Views) -> Report {
    Report {
        connections: views
            .connections()
            .iter()
            .map(|view| connection(view))
            .collect(),
    }
}

fn connection(view: &ConnView) -> Connection {
    let client = view.client();
    let client = client.as_ref().map(|client| &client.name);
    let (software_name, software_version) = names(client.and_then(|name| name.software.as_ref()));
    Connection {
        id: view.id,
        peer: view.peer,
        upstream: view.upstream.clone(),
        age_seconds: view.opened.elapsed().as_secs(),
        client_id: client
            .and_then(|name| name.client_id.as_deref())
            .map(Name::new),
        software_name,
        software_version,
        in_flight: view.in_flight(),
        requests: view.requests(),
        request_bytes: view.moved(Direction::Request),
        response_bytes: view.moved(Direction::Response),
    }
}

/// Connections to the same upstream under a line that names it, since such a name can be long.
pub(super) fn text(report: &Report) -> String {
    let mut upstreams = BTreeMap::<&str, Vec<&Connection>>::new();
    for connection in &report.connections {
        let to = upstreams.entry(&connection.upstream).or_default();
        to.push(connection);
    }
    if upstreams.is_empty() {
        return "no open connection\n".to_owned();
    }
    let mut text = String::new();
    for (upstream, connections) in upstreams {
        let _ = writeln!(text, "open to {upstream}: {}\n", connections.len());
        text += &to_upstream(&connections);
        text.push('\n');
    }
    text + "sent, got: bytes from and to the client\n"
}

fn to_upstream(connections: &[&Connection]) -> String {
    let mut columns = Columns::new([
        "id",
        "client",
        "age",
        "client id",
        "software",
        "in flight",
        "requests",
        "sent",
        "got",
    ]);
    for connection in connections {
        let software = (&connection.software_name, &connection.software_version);
        columns.row([
            connection.id.to_string(),
            connection.peer.to_string(),
            age(connection.age_seconds),
            Name::shown(connection.client_id.as_ref()),
            match software {
                (Some(name), version) => {
                    format!(
                        "{} {}",
                        Name::shown(Some(name)),
                        Name::shown(version.as_ref())
                    )
                }
                (None, _) => "-".to_owned(),
            },
            connection.in_flight.to_string(),
            connection.requests.to_string(),
            bytes(connection.request_bytes),
            bytes(connection.response_bytes),
        ]);
    }
    columns.text()
}

/// The larger two of its units, as in `3d 4h`.
fn age(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, ..) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// As `ls -h` has it.
fn bytes(bytes: u64) -> String {
    ByteSize(bytes).display().iec_short().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(id: u64, upstream: &str, age_seconds: u64) -> Connection {
        Connection {
            id,
            peer: "10.244.117.213:54321".parse().unwrap(),
            upstream: upstream.into(),
            age_seconds,
            client_id: Some(Name::new(b"consumer-orders-v2-1")),
            software_name: Some(Name::new(b"apache-kafka-java")),
            software_version: Some(Name::new(b"4.3.1")),
            in_flight: 1,
            requests: 1_234_567,
            request_bytes: 1023 << 20,
            response_bytes: 5 << 40,
        }
    }

    #[test]
    fn ordinary_connections_fit_a_terminal_whatever_their_upstream_is_called() {
        let long = "kafka-2.kafka-headless.production.svc.cluster.local:9092";
        let connections = vec![
            connection(12_345, long, 3 * 86400 + 59),
            connection(12_346, "a:9092", 23 * 3600 + 59 * 60),
            connection(12_347, long, 12),
        ];
        let text = text(&Report { connections });
        for line in text.lines() {
            assert!(line.chars().count() <= 120, "{line:?} in\n{text}");
        }
        let words = |line: &'static str| text.lines().filter(move |it| it.starts_with(line));
        assert_eq!(words("open to a:9092: 1").count(), 1, "{text}");
        assert_eq!(
            words("open to kafka-2.kafka-headless.").count(),
            1,
            "{text}"
        );
        for (id, age, bytes) in [
            ("12345", " 3d 0h ", " 1023.0M "),
            ("12346", " 23h 59m ", " 5.0T"),
        ] {
            let line = text.lines().find(|line| line.starts_with(id)).unwrap();
            assert!(line.contains(age) && line.contains(bytes), "{text}");
        }
    }
}
