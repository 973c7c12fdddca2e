//! The only translator from what a session sees to metrics, views and log lines, so that neither
//! side knows the other.
//!
//! It stands on the hot path: what happens on every message touches the counters of its own thread
//! and of its own connection, no lock, and no memory that it would have to ask for. Closing is
//! accounted when the record is dropped, so that no exit path can forget it.

mod addresses;
mod capturing;
mod catalog;
mod labels;
mod look;
mod notices;
mod said;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use catalog::catalog;

use self::addresses::OwnNames;
use self::capturing::Capturing;
use self::notices::Notices;
use crate::capture::Captures;
use crate::capture::tape::{Arena, Recorder};
use crate::relay::{Ended, Meter};
use crate::view::{Client, ClientName, ConnView, Software, Views, cut};
use klamp_codec::observation::{Exchange, Observation, Observer, RejectReason};
use klamp_codec::session::{Input, Session, Step};
use klamp_codec::versions::VersionTable;
use klamp_codec::{ApiKey, Direction, ErrorCode};
use klamp_metrics::{ClientConnection, KeyRow, Metrics, Outcome, Shard};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// How often a connection may change what it calls itself. Each change takes locks that all connections
/// share, so from there on klamp stops following: what comes counts for the last name.
const NAMES: u8 = 16;
/// Unnamed error codes that a connection is remembered to have logged.
const UNNAMED: usize = 16;

/// What the records of all connections share.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) views: Views,
    pub(crate) captures: Captures,
    notices: Notices,
    own: OwnNames,
}

impl Watch {
    /// `own_addresses`: every `host:port` that klamp listens on or advertises. An answer that names
    /// any other address sends clients past klamp. Empty where that cannot be told.
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        own_addresses: Vec<(String, u16)>,
        captures: Captures,
    ) -> Arc<Self> {
        let own = OwnNames::new(own_addresses);
        if !own.is_empty() {
            metrics.foreign_addresses();
        }
        Arc::new(Self {
            metrics,
            views: Views::default(),
            captures,
            notices: Notices::default(),
            own,
        })
    }
}

/// The record of one connection, from accept to close. Dropping it accounts the close.
#[derive(Debug)]
pub(crate) struct Record {
    watch: Arc<Watch>,
    shard: Arc<Shard>,
    view: Arc<ConnView>,
    /// Who the client has said it is, up to the last request that was whole.
    client: Option<Arc<Client>>,
    /// What the request under way says, where that differs.
    claim: Option<Box<ClientName>>,
    /// How many more names are followed.
    names_left: u8,
    /// Counts the connection among those of its client's software.
    counted: Option<ClientConnection>,
    /// Unnamed error codes that have been logged.
    unnamed: Vec<(ApiKey, ErrorCode)>,
    end_cause: Option<Box<EndCause>>,
    capturing: Option<Box<Capturing>>,
    /// The trouble that was captured last, and when.
    captured: Option<Box<(u64, Instant)>>,
    ended: Option<Ended>,
    recorder: Recorder,
    /// The API key of the latest message, if it has a name, and where it is counted.
    row: Option<(ApiKey, KeyRow)>,
}

/// What a connection most likely ends for.
#[derive(Debug)]
enum EndCause {
    /// Bytes were rejected for that, and this stood where a length should be.
    Rejected(RejectReason, i32),
    /// The broker closed upon this request.
    Request(Exchange),
}

impl Record {
    /// A connection has been accepted from `peer` and goes to `upstream` (`host:port`).
    pub(crate) fn new(
        watch: Arc<Watch>,
        shard: Arc<Shard>,
        peer: SocketAddr,
        upstream: Arc<str>,
    ) -> Self {
        shard.connection_opened();
        Self {
            view: watch.views.open(peer, upstream),
            watch,
            shard,
            client: None,
            claim: None,
            names_left: NAMES,
            counted: None,
            unnamed: Vec::new(),
            end_cause: None,
            capturing: None,
            captured: None,
            ended: None,
            recorder: Recorder::Off,
            row: None,
        }
    }

    /// What passes is to be kept on a tape in `arena`, if there is one.
    pub(crate) fn keep_in(&mut self, arena: Option<&Rc<Arena>>) {
        self.recorder = Recorder::new(arena);
    }

    /// The broker has been reached.
    pub(crate) fn reached(&self, broker: SocketAddr) {
        self.view.set_broker(broker);
    }

    /// The connection ends. Without this call, dropping accounts it as `aborted`.
    pub(crate) fn ended(&mut self, ended: Ended) {
        self.ended = Some(ended);
        self.note_end(ended);
        self.capture_on_end(ended);
    }

    /// As a rule that of the message before. (The row of a key without a name may change.)
    #[inline]
    fn row(&mut self, api_key: ApiKey) -> KeyRow {
        match self.row {
            Some((known, row)) if known == api_key => row,
            _ => self.other_row(api_key),
        }
    }

    #[inline(never)]
    fn other_row(&mut self, api_key: ApiKey) -> KeyRow {
        let row = self.shard.row(api_key.0);
        if api_key.name().is_some() {
            self.row = Some((api_key, row));
        }
        row
    }

    /// Who the client says it is, the request under way included.
    fn name(&self) -> Option<&ClientName> {
        self.claim
            .as_deref()
            .or(self.client.as_ref().map(|client| &client.name))
    }

    #[inline]
    fn request_head(&mut self, client_id: Option<&[u8]>) {
        let client_id = client_id.map(cut);
        let is_new = |name: &ClientName| match (name.client_id.as_deref(), client_id) {
            (Some(known), Some(told)) => !is_same(known, told),
            (known, told) => known.is_some() || told.is_some(),
        };
        if self.name().is_none_or(is_new) {
            self.claim_id(client_id);
        }
    }

    #[cold]
    fn claim_id(&mut self, client_id: Option<&[u8]>) {
        self.claim(|name| name.client_id = client_id.map(Into::into));
    }

    fn software(&mut self, name: &[u8], version: &[u8]) {
        let told = Some(Software::new(name, version));
        if self.name().is_none_or(|name| name.software != told) {
            self.claim(|name| name.software = told);
        }
    }

    /// The request under way says something new of its client.
    fn claim(&mut self, change: impl FnOnce(&mut ClientName)) {
        if self.claim.is_none() {
            let Some(names_left) = self.names_left.checked_sub(1) else {
                return;
            };
            self.names_left = names_left;
            let known = self.client.as_ref().map(|client| client.name.clone());
            self.claim = Some(Box::new(known.unwrap_or_default()));
        }
        if let Some(claim) = &mut self.claim {
            change(claim);
        }
    }

    #[inline(always)]
    fn request_end(&mut self, exchange: Exchange, frame_bytes: u64) {
        if let Some(name) = self.claim.take() {
            self.take_name(*name);
        }
        let row = self.row(exchange.api_key);
        self.shard.request(row, exchange.api_version, frame_bytes);
        self.view
            .add_request(exchange.api_key, exchange.api_version);
    }

    /// A request is whole, and so is what it said of its client.
    #[cold]
    fn take_name(&mut self, name: ClientName) {
        let before = self.client.take();
        let before = before
            .as_ref()
            .and_then(|client| client.name.software.as_ref());
        if before != name.software.as_ref() {
            self.counted = (name.software.as_ref()).map(|told| {
                self.watch
                    .metrics
                    .client_connection(&told.name, &told.version)
            });
        }
        self.client = Some(self.watch.views.name(&self.view, name));
    }

    /// Costs a look at one field where no capture is under way.
    #[inline]
    fn frame_ended(&mut self, direction: Direction) {
        if self.capturing.is_some() {
            self.capture_sees_end(direction);
        }
    }

    fn in_flight(&self, requests: u32) {
        let before = self.view.in_flight();
        self.shard
            .in_flight(i64::from(requests) - i64::from(before));
        self.view.set_in_flight(requests);
    }

    #[inline(always)]
    fn errors(&mut self, exchange: Exchange, at: u64, code: ErrorCode, count: u32) {
        let row = self.row(exchange.api_key);
        let is_named = self.shard.error_code(row, code.0, count);
        if !is_named {
            self.unnamed(exchange, code);
        }
        if code != ErrorCode::NONE {
            self.capture_on_code(exchange, at, code);
        }
    }

    #[cold]
    fn unnamed(&mut self, exchange: Exchange, code: ErrorCode) {
        let told = (exchange.api_key, code);
        if self.unnamed.len() < UNNAMED && !self.unnamed.contains(&told) {
            self.unnamed.push(told);
            self.note_unnamed(exchange, code);
        }
    }

    fn answered(&mut self, exchange: Exchange) {
        let row = self.row(exchange.api_key);
        self.shard
            .error_code(row, ErrorCode::UNSUPPORTED_VERSION.0, 1);
        self.shard.response(row, Outcome::Error, 0);
    }

    fn learned(&self, table: &Arc<VersionTable>) {
        self.view.set_table(table);
        let (notices, upstream) = (&self.watch.notices, &self.view.upstream);
        // (limited: a broker that tells another table each time is broken or hostile)
        if let Some(admitted) = notices.said.admit(table.entries(), &notices.tables) {
            for row in table.entries() {
                if row.api_key.name().is_none() {
                    self.watch.metrics.advertised(row.api_key.0);
                }
            }
            tables::note_rows(table, upstream, admitted);
        }
        for finalized in table.finalized().iter() {
            let broken = table
                .broken_promises()
                .filter(|it| it.finalized == finalized);
            let broken: Vec<_> = broken.map(|promise| promise.api_key).collect();
            if !broken.is_empty()
                && let Some(admitted) = notices.said.admit((finalized, &broken), &notices.promises)
            {
                tables::note_broken_promise(finalized, &broken, upstream, admitted);
            }
        }
    }

    fn broker_address(&self, node_id: i32, host: &[u8], port: i32) {
        if !self.watch.own.is_empty() && self.watch.own.is_foreign(host, port) {
            self.watch.metrics.foreign_addresses().inc();
            self.note_foreign_address(node_id, host, port);
        }
    }

    /// What does not happen with every message.
    #[cold]
    #[inline(never)]
    fn observe_rare(&mut self, direction: Direction, at: u64, what: Observation<'_>) {
        match what {
            Observation::Answered { exchange } => self.answered(exchange),
            Observation::Learned(table) => self.learned(table),
            Observation::Opaque {
                exchange,
                reason,
                fault,
            } => {
                self.shard.opaque(labels::opaque_reason(reason));
                self.note_opaque(direction, exchange, reason, fault);
                self.capture_on_opaque(direction, exchange, at, reason);
            }
            Observation::Trailing { exchange, bytes } => {
                self.note_trailing(direction, exchange, bytes);
            }
            Observation::Unseen(reason) => {
                self.shard.opaque(labels::opaque_reason(reason));
                self.note_unseen(reason);
            }
            Observation::BrokerAddress {
                node_id,
                host,
                port,
            } => {
                self.broker_address(node_id, host, port);
            }
            Observation::Mismatch { expected, got } => {
                self.watch.metrics.correlation_mismatch();
                self.note_mismatch(expected, got);
                self.capture_on_mismatch(expected, got);
            }
            Observation::Rejected { reason, length } => {
                let (from, why) = (labels::direction(direction), labels::reject_reason(reason));
                self.watch.metrics.frame_rejected(from, why);
                self.end_cause = Some(Box::new(EndCause::Rejected(reason, length)));
            }
            Observation::Verdict {
                exchange,
                cause,
                topics,
            } => {
                self.end_cause = Some(Box::new(EndCause::Request(exchange)));
                self.note_verdict(exchange, cause, topics);
            }
            Observation::RawTokens { begins } => self.note_raw_tokens(begins),
            Observation::Software { name, version } => self.software(name, version),
            Observation::ReplicaFetch { replica_id } => self.note_replica_fetch(replica_id),
            // those that `observe` takes itself
            Observation::RequestHead { .. }
            | Observation::Acks(_)
            | Observation::RequestEnd { .. }
            | Observation::InFlight(_)
            | Observation::Hole { .. }
            | Observation::Token { .. }
            | Observation::ResponseHead { .. }
            | Observation::Errors { .. }
            | Observation::Throttle { .. }
            | Observation::ResponseEnd { .. } => {}
        }
    }
}

impl Observer for Record {
    // (inlined, since each place that calls it knows which observation it has: nothing is made, handed
    // over and taken apart again)
    #[inline(always)]
    fn observe(&mut self, direction: Direction, at: u64, what: Observation<'_>) {
        match what {
            Observation::RequestHead { client_id, .. } => self.request_head(client_id),
            Observation::Acks(acks) => self.shard.acks(acks),
            Observation::RequestEnd {
                exchange,
                frame_bytes,
            } => {
                self.request_end(exchange, frame_bytes);
                self.frame_ended(direction);
            }
            Observation::InFlight(requests) => self.in_flight(requests),
            Observation::Hole { .. } | Observation::Token { .. } => {}
            Observation::ResponseHead {
                exchange,
                latency,
                wait,
                ..
            } => {
                if let Some(latency) = latency {
                    let row = self.row(exchange.api_key);
                    self.shard.answered_after(row, latency, wait);
                    if self.watch.captures.is_slow(latency) {
                        self.capture_on_slow(exchange, at, latency, wait);
                    }
                }
            }
            Observation::Errors {
                exchange,
                code,
                count,
            } => self.errors(exchange, at, code, count),
            Observation::Throttle { api_key, time } => {
                let row = self.row(api_key);
                self.shard.throttled(row, time);
            }
            Observation::ResponseEnd {
                exchange,
                frame_bytes,
                outcome,
            } => {
                let row = self.row(exchange.api_key);
                (self.shard).response(row, labels::outcome(outcome), frame_bytes);
                self.frame_ended(direction);
            }
            rare => self.observe_rare(direction, at, rare),
        }
    }
}

impl Meter for Record {
    fn moved(&mut self, direction: Direction, bytes: u64) {
        self.view.add_moved(direction, bytes);
    }

    #[inline]
    fn ask(&mut self, session: &mut Session, direction: Direction, input: Input<'_>) -> Step {
        self.look(session, direction, input)
    }

    #[inline]
    fn came(&mut self, direction: Direction, owed: u64, bytes: &[u8]) {
        self.recorder.came(direction, owed, bytes);
    }

    fn rests(&mut self) {
        self.capture_wanted();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.capture_last();
        self.in_flight(0);
        self.shard.connection_closed();
        self.watch
            .metrics
            .connection_closed(self.ended.map_or("aborted", Ended::label));
        self.watch.views.close(&self.view);
    }
}

/// `==` for a name, as with every message: the C library that the binary ships with compares one byte at
/// a time.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let eight = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let (Some(last), Some(other_last)) = (one.last_chunk(), other.last_chunk()) else {
        return one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one == other);
    };
    let (eights, other_eights) = (one.as_chunks().0, other.as_chunks().0);
    one.len() == other.len()
        && eight(last) == eight(other_last) // those that are no eight among them
        && (eights.iter().zip(other_eights)).all(|(one, other)| eight(one) == eight(other))
}
