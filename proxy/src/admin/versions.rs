//! `/versions`: each distinct version table in use, who told it, and why clients see less of it.

use crate::table::{self, TableRow};
use crate::view::Views;
use klamp_codec::ApiKey;
use klamp_codec::versions::VersionTable;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// All tables, the one with the most connections first.
#[derive(Serialize)]
pub(super) struct Report {
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Table {
    connections: usize,
    upstreams: Vec<Upstream>,
    finalized_features: Vec<Feature>,
    /// Keys that a finalized feature promises to clients and that are hidden from them.
    broken_promises: Vec<Promise>,
    rows: Vec<TableRow>,
}

#[derive(Serialize)]
struct Upstream {
    address: Arc<str>,
    connections: usize,
}

#[derive(Serialize)]
struct Feature {
    name: &'static str,
    level: i16,
}

#[derive(Serialize)]
struct Promise {
    api_key: i16,
    feature: &'static str,
}

pub(super) fn report(views: &Views) -> Report {
    let mut tables = HashMap::new();
    for view in views.connections() {
        if let Some(table) = view.table() {
            let (_, upstreams) = tables
                .entry(Arc::as_ptr(&table))
                .or_insert_with(|| (table, BTreeMap::<Arc<str>, usize>::new()));
            *upstreams.entry(view.upstream.clone()).or_default() += 1;
        }
    }
    let mut tables: Vec<_> = tables
        .into_values()
        .map(|(table, told)| report_on(&table, told))
        .collect();
    tables.sort_by(|a, b| {
        let first = |table: &Table| table.upstreams.first().map(|told| told.address.clone());
        (b.connections.cmp(&a.connections)).then_with(|| first(a).cmp(&first(b)))
    });
    Report { tables }
}

fn report_on(table: &VersionTable, told: BTreeMap<Arc<str>, usize>) -> Table {
    let finalized = table.finalized().iter();
    let promises = table.broken_promises().map(|promise| Promise {
        api_key: promise.api_key.0,
        feature: promise.finalized.feature.name(),
    });
    Table {
        connections: told.values().sum(),
        finalized_features: finalized
            .map(|it| Feature {
                name: it.feature.name(),
                level: it.level,
            })
            .collect(),
        broken_promises: promises.collect(),
        rows: table::rows(table),
        upstreams: told
            .into_iter()
            .map(|(address, connections)| Upstream {
                address,
                connections,
            })
            .collect(),
    }
}

pub(super) fn text(report: &Report) -> String {
    if report.tables.is_empty() {
        return "no open connection has asked a broker for its versions\n".to_owned();
    }
    let mut text = String::new();
    for table in &report.tables {
        text += &table_text(table);
        text.push('\n');
    }
    text + table::LEGEND
}

fn table_text(table: &Table) -> String {
    let mut text = String::new();
    for Upstream {
        address,
        connections,
    } in &table.upstreams
    {
        let _ = writeln!(text, "told by {address} on open connections: {connections}");
    }
    for Feature { name, level } in &table.finalized_features {
        let _ = writeln!(text, "finalized: {name} {level}");
    }
    for Promise { api_key, feature } in &table.broken_promises {
        let _ = writeln!(
            text,
            "trouble: with {feature} finalized clients rely on {}, which is hidden; --clamp inspect lets \
             it pass",
            ApiKey(*api_key)
        );
    }
    text + "\n" + &table::text(&table.rows)
}
