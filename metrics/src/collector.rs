//! Sums the shards when scraped, and makes families of the sums.

use crate::counter::Counter;
use crate::families::{self, Family, Filled};
use crate::histogram::{DURATION_BOUNDS, EXCESS_BOUNDS, HistogramSum};
use crate::labels::{ACKS, KeyRow, OTHER, OpaqueReason, Outcome, VERSIONS};
use crate::shard::{KeyCounters, Shard, Shared};
use crate::versions::Versions;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// What the shards hold, and what is set from outside at each scrape.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) shared: Arc<Shared>,
    pub(crate) shards: Mutex<Vec<Arc<Shard>>>,
    pub(crate) versions: Mutex<Versions>,
    /// Bytes that the recorder takes, and chunks that it has given up.
    pub(crate) recorder: [AtomicU64; 2],
}

/// The families that [`Sums`] makes.
pub(crate) struct SumsCollector {
    sums: Arc<Sums>,
    described: Vec<Desc>,
}

const COLLECTED: [Family; 22] = [
    families::CONNECTIONS_OPENED,
    families::CONNECTIONS_ACTIVE,
    families::IN_FLIGHT,
    families::PRODUCE_REQUESTS,
    families::OPAQUE_FRAMES,
    families::REQUESTS,
    families::REQUEST_BYTES,
    families::RESPONSES,
    families::RESPONSE_BYTES,
    families::ERROR_CODES,
    families::REQUEST_DURATION,
    families::REQUEST_EXCESS,
    families::THROTTLE,
    families::UNKNOWN_API_KEYS,
    families::UNNAMED_ERROR_CODES,
    families::VERSION_TABLES,
    families::API_VERSION_MIN,
    families::API_VERSION_MAX,
    families::BROKER_AHEAD,
    families::HIDDEN_API_KEYS,
    families::RECORDER_BYTES,
    families::RECORDER_GIVEN_UP,
];

impl SumsCollector {
    pub(crate) fn new(sums: Arc<Sums>) -> prometheus::Result<Self> {
        let described = COLLECTED.iter().map(|family| {
            let labels = family
                .labels
                .iter()
                .map(|label| (*label).to_owned())
                .collect();
            Desc::new(
                family.name.into(),
                family.help.into(),
                labels,
                HashMap::new(),
            )
        });
        Ok(Self {
            described: described.collect::<Result<_, _>>()?,
            sums,
        })
    }
}

impl Collector for SumsCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.described.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let shards = self
            .sums
            .shards
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut collected = connections(&shards);
        collected.extend(Keys::new().fill(&self.sums.shared, &shards));
        let versions = self
            .sums
            .versions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        collected.extend(versions.collect(&self.sums.shared.labels));
        let recorder = [families::RECORDER_BYTES, families::RECORDER_GIVEN_UP];
        for (family, value) in recorder.into_iter().zip(&self.sums.recorder) {
            let mut filled = Filled::new(family);
            filled.value(&[], value.load(Relaxed) as f64);
            collected.push(filled.done());
        }
        collected
    }
}

/// The families that know no API key.
fn connections(shards: &[Arc<Shard>]) -> Vec<MetricFamily> {
    let mut opened = Filled::new(families::CONNECTIONS_OPENED);
    let mut active = Filled::new(families::CONNECTIONS_ACTIVE);
    let mut in_flight = Filled::new(families::IN_FLIGHT);
    let mut acks = Filled::new(families::PRODUCE_REQUESTS);
    let mut opaque = Filled::new(families::OPAQUE_FRAMES);
    opened.value(&[], sum(shards, |shard| &shard.opened) as f64);
    let open = sum(shards, |shard| &shard.active).cast_signed();
    active.value(&[], open as f64);
    let waiting = sum(shards, |shard| &shard.in_flight).cast_signed();
    in_flight.value(&[], waiting as f64);
    for (slot, label) in ACKS.iter().enumerate() {
        used(&mut acks, &[label], sum(shards, |shard| &shard.acks[slot]));
    }
    for reason in OpaqueReason::ALL {
        let frames = sum(shards, |shard| &shard.opaque[reason as usize]);
        used(&mut opaque, &[reason.label()], frames);
    }
    [opened, active, in_flight, acks, opaque]
        .map(Filled::done)
        .into()
}

/// The families by API key, one key after the other.
struct Keys {
    requests: Filled,
    request_bytes: Filled,
    responses: Filled,
    response_bytes: Filled,
    errors: Filled,
    durations: Filled,
    excess: Filled,
    throttle: Filled,
    unknown: Filled,
    unnamed: Filled,
}

impl Keys {
    fn new() -> Self {
        Self {
            requests: Filled::new(families::REQUESTS),
            request_bytes: Filled::new(families::REQUEST_BYTES),
            responses: Filled::new(families::RESPONSES),
            response_bytes: Filled::new(families::RESPONSE_BYTES),
            errors: Filled::new(families::ERROR_CODES),
            durations: Filled::new(families::REQUEST_DURATION),
            excess: Filled::new(families::REQUEST_EXCESS),
            throttle: Filled::new(families::THROTTLE),
            unknown: Filled::new(families::UNKNOWN_API_KEYS),
            unnamed: Filled::new(families::UNNAMED_ERROR_CODES),
        }
    }

    fn fill(mut self, shared: &Shared, shards: &[Arc<Shard>]) -> Vec<MetricFamily> {
        for index in 0..shared.labels.rows() {
            let row = KeyRow(index as u16);
            let seen: Vec<_> = shards.iter().filter_map(|shard| shard.seen(row)).collect();
            if let (Some(name), false) = (shared.labels.key(row), seen.is_empty()) {
                self.key(shared, row, name, &seen);
            }
        }
        shared.unnamed.for_each(|row, code, count| {
            let Some(name) = shared.labels.key(row) else {
                return;
            };
            let code = code.map_or(OTHER.to_owned(), |code| code.to_string());
            used(&mut self.unnamed, &[name, &code], count);
            used(&mut self.errors, &[name, &format!("UNNAMED_{code}")], count);
        });
        [
            self.requests,
            self.request_bytes,
            self.responses,
            self.response_bytes,
            self.errors,
            self.durations,
            self.excess,
            self.throttle,
            self.unknown,
            self.unnamed,
        ]
        .map(Filled::done)
        .into()
    }

    fn key(&mut self, shared: &Shared, row: KeyRow, name: &str, seen: &[&KeyCounters]) {
        let mut all_versions = 0;
        for version in 0..=VERSIONS {
            let requests = sum(seen, |key| &key.requests[version]);
            all_versions += requests;
            match version {
                VERSIONS => used(&mut self.requests, &[name, OTHER], requests),
                _ => used(&mut self.requests, &[name, &version.to_string()], requests),
            }
        }
        if !shared.labels.is_named(row) {
            used(&mut self.unknown, &[name], all_versions);
        }
        for outcome in Outcome::ALL {
            let responses = sum(seen, |key| &key.outcomes[outcome as usize]);
            used(&mut self.responses, &[name, outcome.label()], responses);
        }
        for (slot, error) in shared.labels.errors().iter().enumerate() {
            used(
                &mut self.errors,
                &[name, error],
                sum(seen, |key| &key.errors[slot]),
            );
        }
        used(
            &mut self.request_bytes,
            &[name],
            sum(seen, |key| &key.request_bytes),
        );
        used(
            &mut self.response_bytes,
            &[name],
            sum(seen, |key| &key.response_bytes),
        );
        let throttle = sum(seen, |key| &key.throttle_nanos);
        if throttle > 0 {
            self.throttle.value(&[name], throttle as f64 / 1e9);
        }
        let mut durations = HistogramSum::default();
        let mut excess = HistogramSum::default();
        for key in seen {
            durations.add(&key.durations);
            if let Some(one) = key.excess.get() {
                excess.add(one);
            }
        }
        if let Some(histogram) = durations.export(DURATION_BOUNDS) {
            self.durations.histogram(&[name], histogram);
        }
        if let Some(histogram) = excess.export(EXCESS_BOUNDS) {
            self.excess.histogram(&[name], histogram);
        }
    }
}

/// Adds a series only where it has ever counted.
fn used(filled: &mut Filled, labels: &[&str], count: u64) {
    if count > 0 {
        filled.value(labels, count as f64);
    }
}

fn sum<T>(of: &[T], counter: impl Fn(&T) -> &Counter) -> u64 {
    of.iter()
        .fold(0, |sum, one| sum.wrapping_add(counter(one).get()))
}
