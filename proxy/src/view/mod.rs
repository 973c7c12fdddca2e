//! The live connections, as `/connections` and `/clients` show them.
//!
//! A view is written by its connection's own thread alone, with plain relaxed stores, and read by
//! whoever asks; its lock is taken only when a client says who it is. Ten thousand idle connections
//! must stay cheap, so what many of them share (the names of a client, a version table) is stored once.

mod clients;
mod uses;

pub(crate) use clients::{Client, ClientName, ClientReport, Software, UsedKey, cut};

use self::clients::Clients;
use self::uses::Uses;
use klamp_codec::versions::VersionTable;
use klamp_codec::{ApiKey, Direction};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// All live connections, and what is known of clients.
#[derive(Debug, Default)]
pub(crate) struct Views {
    last_id: AtomicU64,
    /// By id; in a tree, which gives memory back as connections go.
    live: Mutex<BTreeMap<u64, Arc<ConnView>>>,
    clients: Clients,
}

impl Views {
    /// A connection opens.
    pub(crate) fn open(&self, peer: SocketAddr, upstream: Arc<str>) -> Arc<ConnView> {
        let view = Arc::new(ConnView {
            id: self.last_id.fetch_add(1, Relaxed) + 1,
            peer,
            upstream,
            opened: Instant::now(),
            in_flight: AtomicU32::new(0),
            requests: AtomicU64::new(0),
            moved: [AtomicU64::new(0), AtomicU64::new(0)],
            wanted: AtomicU64::new(0),
            told: Mutex::default(),
            uses: Uses::default(),
        });
        lock(&self.live).insert(view.id, Arc::clone(&view));
        view
    }

    /// The connection is gone; what its client used stays known.
    pub(crate) fn close(&self, view: &ConnView) {
        let gone = lock(&self.live).remove(&view.id);
        if gone.is_some() {
            let told = lock(&view.told);
            self.clients.merge(told.client.as_ref(), &view.uses);
        }
    }

    /// The client of a connection has said who it is; what it used before under another name goes to
    /// that other.
    pub(crate) fn name(&self, view: &ConnView, name: ClientName) -> Arc<Client> {
        let mut told = lock(&view.told);
        self.clients.merge(told.client.as_ref(), &view.uses);
        view.uses.clear();
        let client = self.clients.named(name);
        told.client = Some(Arc::clone(&client));
        client
    }

    /// The live connection of this id.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<ConnView>> {
        lock(&self.live).get(&id).cloned()
    }

    /// All live connections, the oldest first.
    pub(crate) fn connections(&self) -> Vec<Arc<ConnView>> {
        lock(&self.live).values().cloned().collect()
    }

    /// What each client used, whether its connections are still there or not.
    pub(crate) fn clients(&self) -> Vec<ClientReport> {
        let mut reports = self.clients.reports();
        for view in self.connections() {
            let told = lock(&view.told);
            if let Some(client) = &told.client {
                reports.add_live(client, &view.uses);
            }
        }
        reports.done()
    }
}

/// One live connection.
#[derive(Debug)]
pub(crate) struct ConnView {
    /// Counts up from 1; names the connection in the log and on the pages.
    pub(crate) id: u64,
    pub(crate) peer: SocketAddr,
    pub(crate) upstream: Arc<str>,
    pub(crate) opened: Instant,
    in_flight: AtomicU32,
    requests: AtomicU64,
    /// Requests, responses.
    moved: [AtomicU64; 2],
    /// The id of a capture that somebody wants of it; 0: nobody.
    wanted: AtomicU64,
    told: Mutex<Told>,
    uses: Uses,
}

/// What a connection has told so far.
#[derive(Debug, Default)]
struct Told {
    client: Option<Arc<Client>>,
    table: Option<Arc<VersionTable>>,
    broker: Option<SocketAddr>,
}

impl ConnView {
    pub(crate) fn set_in_flight(&self, requests: u32) {
        self.in_flight.store(requests, Relaxed);
    }

    pub(crate) fn add_request(&self, api_key: ApiKey, api_version: i16) {
        bump(&self.requests, 1);
        self.uses.add(api_key, api_version);
    }

    pub(crate) fn add_moved(&self, direction: Direction, bytes: u64) {
        bump(&self.moved[direction as usize], bytes);
    }

    pub(crate) fn set_broker(&self, broker: SocketAddr) {
        lock(&self.told).broker = Some(broker);
    }

    /// The broker's address, as dialled.
    pub(crate) fn broker(&self) -> Option<SocketAddr> {
        lock(&self.told).broker
    }

    pub(crate) fn set_table(&self, table: &Arc<VersionTable>) {
        lock(&self.told).table = Some(Arc::clone(table));
    }

    /// Asks for a capture, to be taken when the connection is woken; `false` where one is asked for
    /// already.
    pub(crate) fn want_capture(&self, id: u64) -> bool {
        (self.wanted.compare_exchange(0, id, Relaxed, Relaxed)).is_ok()
    }

    /// Takes back what was asked for.
    pub(crate) fn want_no_capture(&self, id: u64) {
        let _ = self.wanted.compare_exchange(id, 0, Relaxed, Relaxed);
    }

    /// The id of the capture that is wanted, told once.
    #[inline]
    pub(crate) fn take_wanted(&self) -> Option<u64> {
        match self.wanted.load(Relaxed) {
            0 => None,
            _ => Some(self.wanted.swap(0, Relaxed)).filter(|id| *id > 0),
        }
    }

    /// Requests that wait for their response.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Requests received so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Bytes passed on so far.
    pub(crate) fn moved(&self, direction: Direction) -> u64 {
        self.moved[direction as usize].load(Relaxed)
    }

    /// Who the client says it is; `None` until its first request has come.
    pub(crate) fn client(&self) -> Option<Arc<Client>> {
        lock(&self.told).client.clone()
    }

    /// The version table; `None` until the client has asked for it.
    pub(crate) fn table(&self) -> Option<Arc<VersionTable>> {
        lock(&self.told).table.clone()
    }
}

/// Adds to a counter that only the calling thread writes.
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

/// What these locks guard is whole between any two statements, so a panic elsewhere leaves no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(views: &Views) -> Arc<ConnView> {
        views.open("10.0.0.1:4000".parse().unwrap(), "broker:9092".into())
    }

    fn name(client_id: &str) -> ClientName {
        ClientName {
            software: Some(Software::new(b"apache-kafka-java", b"4.3.1")),
            client_id: Some(client_id.as_bytes().into()),
        }
    }

    #[test]
    fn a_connection_is_listed_from_open_to_close_in_the_order_of_opening() {
        let views = Views::default();
        let opened: Vec<_> = (0..100).map(|_| open(&views)).collect();
        for view in opened.iter().step_by(2) {
            views.close(view);
        }
        let ids: Vec<_> = views.connections().iter().map(|view| view.id).collect();
        assert_eq!(ids, (2..=100).step_by(2).collect::<Vec<u64>>());
        opened.iter().for_each(|view| views.close(view));
        assert!(views.connections().is_empty());
    }

    #[test]
    fn what_a_client_used_is_told_while_it_is_connected_and_after() {
        let views = Views::default();
        let (one, two) = (open(&views), open(&views));
        views.name(&one, name("app"));
        views.name(&two, name("app"));
        one.add_request(ApiKey::FETCH, 16);
        two.add_request(ApiKey::FETCH, 17);
        two.add_request(ApiKey::FETCH, 17);
        for still_open in [2, 1, 0] {
            let reports = views.clients();
            assert_eq!(reports.len(), 1);
            assert_eq!(reports[0].connections, still_open);
            let used = &reports[0].used[0];
            assert_eq!(used.api_key, ApiKey::FETCH);
            assert_eq!(used.versions, [(16, 1), (17, 2)]);
            views.close(if still_open == 2 { &one } else { &two });
        }
    }

    #[test]
    fn a_client_that_changes_its_name_keeps_what_it_used_under_each() {
        let views = Views::default();
        let view = open(&views);
        views.name(&view, name("first"));
        view.add_request(ApiKey::PRODUCE, 9);
        views.name(&view, name("second"));
        view.add_request(ApiKey::PRODUCE, 9);
        views.close(&view);
        let counts: Vec<_> = views
            .clients()
            .iter()
            .map(|report| report.used[0].versions.clone())
            .collect();
        assert_eq!(counts, [[(9, 1)], [(9, 1)]]);
    }

    #[test]
    fn a_view_of_an_idle_connection_is_small() {
        // The map of live views adds some 40 bytes, a record some 100.
        assert!(size_of::<ConnView>() <= 256, "{}", size_of::<ConnView>());
    }
}
