//! What is known of clients by the names they give themselves: software, version and client id.
//!
//! Names come from peers and some change with every start, so the number kept is bounded: the client
//! that has been gone for longest makes room, and what it used is kept under `other`.

use super::lock;
use super::uses::Uses;
use klamp_codec::ApiKey;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Clients that are told apart.
const CLIENTS: usize = 1000;
/// Pairs of key and version kept of one client.
const PAIRS: usize = 256;
/// Bytes kept of a name.
const NAME_BYTES: usize = 255;

/// How a client names its software (KIP-511); need not be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Software {
    pub(crate) name: Box<[u8]>,
    pub(crate) version: Box<[u8]>,
}

impl Software {
    /// Long names are cut.
    pub(crate) fn new(name: &[u8], version: &[u8]) -> Self {
        Self {
            name: cut(name).into(),
            version: cut(version).into(),
        }
    }
}

/// What a client says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientName {
    /// `None` where it has not told.
    pub(crate) software: Option<Software>,
    /// `None` where null; need not be UTF-8.
    pub(crate) client_id: Option<Box<[u8]>>,
}

/// The part of a name that is kept.
pub(crate) fn cut(name: &[u8]) -> &[u8] {
    name.get(..NAME_BYTES).unwrap_or(name)
}

/// A client, shared by its connections.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) name: ClientName,
    /// Whether it is one of those that are told apart.
    listed: bool,
    /// The turn of the last merge: the lowest has been gone for longest.
    last_seen: AtomicU64,
    /// By connections that are gone.
    used: Mutex<UsedPairs>,
}

/// Counts by key and version.
type UsedPairs = BTreeMap<(ApiKey, i16), u64>;

/// All clients that are told apart, and the rest.
#[derive(Debug, Default)]
pub(super) struct Clients {
    listed: Mutex<HashMap<ClientName, Arc<Client>>>,
    other: Mutex<UsedPairs>,
    turn: AtomicU64,
}

impl Clients {
    /// The client of this name. Where all places are taken by clients that are connected, it is not
    /// told apart from others.
    pub(super) fn named(&self, name: ClientName) -> Arc<Client> {
        let mut listed = lock(&self.listed);
        if let Some(client) = listed.get(&name) {
            return Arc::clone(client);
        }
        if listed.len() >= CLIENTS {
            self.make_room(&mut listed);
        }
        let client = Arc::new(Client {
            listed: listed.len() < CLIENTS,
            last_seen: AtomicU64::new(self.turn.fetch_add(1, Relaxed)),
            used: Mutex::default(),
            name,
        });
        if client.listed {
            listed.insert(client.name.clone(), Arc::clone(&client));
        }
        client
    }

    /// A connection of `client` is gone, or goes on under another name.
    pub(super) fn merge(&self, client: Option<&Arc<Client>>, uses: &Uses) {
        let mut used = match client.filter(|client| client.listed) {
            Some(client) => {
                client
                    .last_seen
                    .store(self.turn.fetch_add(1, Relaxed), Relaxed);
                lock(&client.used)
            }
            None => lock(&self.other),
        };
        uses.for_each(|api_key, version, count| add(&mut used, (api_key, version), count));
    }

    /// What is known by connections that are gone.
    pub(super) fn reports(&self) -> Reports {
        let listed = lock(&self.listed);
        let entry = |client: &Arc<Client>| (client.name.clone(), (0, lock(&client.used).clone()));
        Reports {
            listed: listed.values().map(entry).collect(),
            other: (0, lock(&self.other).clone()),
        }
    }

    /// Drops the client that has been gone for longest, if any is gone.
    fn make_room(&self, listed: &mut HashMap<ClientName, Arc<Client>>) {
        let gone = listed
            .values()
            .filter(|client| Arc::strong_count(client) == 1);
        let oldest = gone.min_by_key(|client| client.last_seen.load(Relaxed));
        if let Some(name) = oldest.map(|client| client.name.clone())
            && let Some(client) = listed.remove(&name)
        {
            let mut other = lock(&self.other);
            for (&pair, &count) in lock(&client.used).iter() {
                add(&mut other, pair, count);
            }
        }
    }
}

fn add(used: &mut UsedPairs, pair: (ApiKey, i16), count: u64) {
    if used.len() < PAIRS || used.contains_key(&pair) {
        let counted = used.entry(pair).or_default();
        *counted = counted.saturating_add(count);
    }
}

/// Reports in the making.
pub(super) struct Reports {
    /// Live connections, and what was used.
    listed: BTreeMap<ClientName, (usize, UsedPairs)>,
    other: (usize, UsedPairs),
}

impl Reports {
    pub(super) fn add_live(&mut self, client: &Client, uses: &Uses) {
        // (a client that was named after the report had begun is still among the others)
        let (connections, used) = self.listed.get_mut(&client.name).unwrap_or(&mut self.other);
        *connections += 1;
        uses.for_each(|api_key, version, count| add(used, (api_key, version), count));
    }

    pub(super) fn done(self) -> Vec<ClientReport> {
        let listed = self
            .listed
            .into_iter()
            .map(|(name, told)| (Some(name), told));
        let other = std::iter::once((None, self.other));
        let reports = listed
            .chain(other)
            .map(|(name, (connections, used))| ClientReport {
                name,
                connections,
                used: by_key(&used),
            });
        reports
            .filter(|report| report.connections > 0 || !report.used.is_empty())
            .collect()
    }
}

fn by_key(used: &UsedPairs) -> Vec<UsedKey> {
    let mut keys = Vec::<UsedKey>::new();
    for (&(api_key, version), &count) in used {
        match keys.last_mut() {
            Some(last) if last.api_key == api_key => last.versions.push((version, count)),
            _ => keys.push(UsedKey {
                api_key,
                versions: vec![(version, count)],
            }),
        }
    }
    keys
}

/// What a client used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientReport {
    /// `None` for all that are not told apart.
    pub(crate) name: Option<ClientName>,
    /// Connections that are open.
    pub(crate) connections: usize,
    /// Ascending by key.
    pub(crate) used: Vec<UsedKey>,
}

/// The versions of a key that a client used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsedKey {
    pub(crate) api_key: ApiKey,
    /// Each version with its number of requests, ascending.
    pub(crate) versions: Vec<(i16, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(client_id: usize) -> ClientName {
        ClientName {
            software: None,
            client_id: Some(client_id.to_string().as_bytes().into()),
        }
    }

    fn used_once() -> Uses {
        let uses = Uses::default();
        uses.add(ApiKey::FETCH, 17);
        uses
    }

    #[test]
    fn the_client_that_has_been_gone_for_longest_makes_room_and_its_counts_stay() {
        let clients = Clients::default();
        for number in 0..CLIENTS {
            clients.merge(Some(&clients.named(name(number))), &used_once());
        }
        clients.merge(Some(&clients.named(name(0))), &used_once());
        clients.named(name(CLIENTS));
        let reports = clients.reports();
        assert_eq!(reports.listed.len(), CLIENTS);
        assert!(
            reports.listed.contains_key(&name(0)),
            "it was here just now"
        );
        assert!(!reports.listed.contains_key(&name(1)));
        assert_eq!(reports.other.1, BTreeMap::from([((ApiKey::FETCH, 17), 1)]));
    }

    #[test]
    fn clients_beyond_the_limit_that_are_all_connected_are_told_as_one() {
        let clients = Clients::default();
        let connected: Vec<_> = (0..CLIENTS + 10).map(|n| clients.named(name(n))).collect();
        assert_eq!(clients.reports().listed.len(), CLIENTS);
        let mut reports = clients.reports();
        connected
            .iter()
            .for_each(|client| reports.add_live(client, &used_once()));
        let reports = reports.done();
        assert_eq!(reports.len(), CLIENTS + 1);
        let other = reports.last().unwrap();
        assert_eq!((other.connections, &other.name), (10, &None));
        assert_eq!(other.used[0].versions, [(17, 10)]);
    }

    #[test]
    fn a_hostile_client_has_a_bounded_number_of_pairs() {
        let clients = Clients::default();
        let client = clients.named(name(1));
        for round in 0..100 {
            let uses = Uses::default();
            (0..50).for_each(|version| uses.add(ApiKey(round), version));
            clients.merge(Some(&client), &uses);
        }
        assert_eq!(lock(&client.used).len(), PAIRS);
    }

    #[test]
    fn long_names_are_cut() {
        let software = Software::new(&[b'x'; 70_000], b"1");
        assert_eq!(software.name.len(), NAME_BYTES);
    }
}
