//! `/clients`: which versions of which API each client used, and whether a newer Kafka still has them.

use super::connections::{Name, names};
use crate::columns::Columns;
use crate::view::{ClientReport, UsedKey, Views};
use klamp_codec::releases::dropped_in;
use serde::Serialize;

const LEGEND: &str = "
open: connections now; removed in: the first Kafka whose brokers refuse the lowest of the versions
";

#[derive(Serialize)]
pub(super) struct Report {
    clients: Vec<Client>,
}

#[derive(Serialize)]
struct Client {
    software_name: Option<Name>,
    software_version: Option<Name>,
    client_id: Option<Name>,
    /// Whether this stands for all clients that there was no room to tell apart.
    is_other: bool,
    connections: usize,
    apis: Vec<Api>,
}

#[derive(Serialize)]
struct Api {
    api_key: i16,
    name: Option<&'static str>,
    /// Lowest version used.
    min: i16,
    /// Highest version used.
    max: i16,
    versions: Vec<Version>,
    /// The first Kafka release whose brokers do not speak the lowest version any more; of those known
    /// here, and passing over versions that no broker ever spoke.
    gone_in: Option<String>,
}

#[derive(Serialize)]
struct Version {
    version: i16,
    requests: u64,
}

pub(super) fn report(views: &Views) -> Report {
    Report {
        clients: views.clients().into_iter().map(client).collect(),
    }
}

fn client(report: ClientReport) -> Client {
    let is_other = report.name.is_none();
    let name = report.name.unwrap_or_default();
    let (software_name, software_version) = names(name.software.as_ref());
    Client {
        software_name,
        software_version,
        client_id: name.client_id.as_deref().map(Name::new),
        is_other,
        connections: report.connections,
        apis: report.used.into_iter().map(api).collect(),
    }
}

fn api(UsedKey { api_key, versions }: UsedKey) -> Api {
    let used = || versions.iter().map(|&(version, _)| version);
    let min = used().min().unwrap_or_default();
    let gone_in = used().find_map(|version| dropped_in(api_key, version));
    Api {
        api_key: api_key.0,
        name: api_key.name(),
        min,
        max: used().max().unwrap_or_default(),
        gone_in: gone_in.map(|release| release.to_string()),
        versions: versions
            .iter()
            .map(|&(version, requests)| Version { version, requests })
            .collect(),
    }
}

pub(super) fn text(report: &Report) -> String {
    if report.clients.iter().all(|client| client.apis.is_empty()) {
        return "no client has made a request\n".to_owned();
    }
    let mut columns = Columns::new([
        "software",
        "version",
        "client id",
        "open",
        "api",
        "versions",
        "requests",
        "removed in",
    ]);
    for client in &report.clients {
        for api in &client.apis {
            let shown = |name: &Option<Name>| match client.is_other {
                true => "(other)".to_owned(),
                false => Name::shown(name.as_ref()),
            };
            columns.row([
                shown(&client.software_name),
                shown(&client.software_version),
                shown(&client.client_id),
                client.connections.to_string(),
                api.name
                    .map_or_else(|| api.api_key.to_string(), str::to_owned),
                match api.min == api.max {
                    true => api.min.to_string(),
                    false => format!("{}..={}", api.min, api.max),
                },
                api.versions
                    .iter()
                    .map(|version| version.requests)
                    .sum::<u64>()
                    .to_string(),
                api.gone_in.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
    }
    columns.text() + LEGEND
}
