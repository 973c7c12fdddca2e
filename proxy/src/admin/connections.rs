//! `/connections`: every open connection, the oldest first.

use crate::columns::Columns;
use crate::shown::Shown;
use crate::view::{ConnView, Software, Views};
use bytesize::ByteSize;
use klamp_codec::Direction;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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

pub(super) fn text(report: &Report) -> String {
    let mut columns = Columns::new([
        "id",
        "peer",
        "upstream",
        "age",
        "client id",
        "software",
        "in flight",
        "requests",
        "to broker",
        "to client",
    ]);
    for connection in &report.connections {
        let software = (&connection.software_name, &connection.software_version);
        columns.row([
            connection.id.to_string(),
            connection.peer.to_string(),
            connection.upstream.to_string(),
            humantime::format_duration(Duration::from_secs(connection.age_seconds)).to_string(),
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
            ByteSize(connection.request_bytes).to_string(),
            ByteSize(connection.response_bytes).to_string(),
        ]);
    }
    columns.text()
}
