//! The log lines that a record writes: one for each thing an operator must know.
//!
//! Peers choose how often such a thing happens and what they call themselves. So every line here is
//! said once or at a limited rate, and every name is escaped and cut. Nothing from a message's body is
//! logged but names of topics; nothing at all from SASL.

use super::said::Said;
use super::{EndCause, Record};
use crate::log::{self, Admitted, RateLimit};
use crate::relay::Ended;
use crate::shown::{Shown, rounded};
use klamp_codec::layout::WalkError;
use klamp_codec::observation::{CloseReason, Exchange, OpaqueReason, RejectReason, VerdictCause};
use klamp_codec::{CorrelationId, Direction, ErrorCode};
use std::fmt;
use std::sync::Arc;
use tracing::{Level, debug, error, info, warn};

/// What has been said by all records, and how much more of each kind may be.
#[derive(Debug)]
pub(super) struct Notices {
    pub(super) said: Said,
    pub(super) tables: Arc<RateLimit>,
    pub(super) promises: Arc<RateLimit>,
    unnamed: Arc<RateLimit>,
    malformed: Arc<RateLimit>,
    trailing: Arc<RateLimit>,
    unknown: Arc<RateLimit>,
    no_layout: Arc<RateLimit>,
    unseen: Arc<RateLimit>,
    foreign_addresses: Arc<RateLimit>,
    replica_fetches: Arc<RateLimit>,
    mismatches: Arc<RateLimit>,
    verdicts: Arc<RateLimit>,
    rejected: Arc<RateLimit>,
    failed: Arc<RateLimit>,
}

impl Default for Notices {
    fn default() -> Self {
        let limit = |level, about| log::limit(level, about, 10);
        let (warn, info) = (Level::WARN, Level::INFO);
        Self {
            said: Said::default(),
            // (each is a long line)
            tables: log::limit(info, "version tables", 3),
            promises: limit(warn, "features that clients cannot use"),
            unnamed: limit(warn, "unnamed error codes"),
            malformed: limit(warn, "messages that do not fit their layout"),
            trailing: limit(info, "bytes behind messages"),
            unknown: limit(info, "messages of unknown keys and versions"),
            no_layout: limit(Level::DEBUG, "messages without a layout"),
            unseen: limit(warn, "connections that do not speak Kafka"),
            foreign_addresses: limit(warn, "addresses past klamp"),
            replica_fetches: limit(warn, "brokers that replicate through klamp"),
            mismatches: limit(warn, "answers with another correlation id"),
            verdicts: limit(warn, "connections that the broker closed upon a request"),
            rejected: limit(warn, "connections with what is no Kafka frame"),
            failed: limit(warn, "connections that klamp closed"),
        }
    }
}

impl Record {
    pub(super) fn note_unnamed(&self, exchange: Exchange, code: ErrorCode) {
        if let Some(Admitted { suppressed }) = self.watch.notices.unnamed.admit() {
            warn!(
                suppressed,
                connection = self.view.id,
                upstream = %self.view.upstream,
                client_id = %self.client_id(),
                software = %self.told_software(),
                api_key = %exchange.api_key,
                api_version = exchange.api_version,
                error_code = code.0,
                "a response carries an error code that no library names"
            );
        }
    }

    pub(super) fn note_opaque(
        &self,
        direction: Direction,
        exchange: Exchange,
        why: OpaqueReason,
        fault: Option<WalkError>,
    ) {
        let Exchange {
            api_key,
            api_version,
            ..
        } = exchange;
        let notices = &self.watch.notices;
        let limit = match why {
            OpaqueReason::Malformed => &notices.malformed,
            OpaqueReason::UnknownKey | OpaqueReason::UnknownVersion => &notices.unknown,
            OpaqueReason::NoLayout | OpaqueReason::Mismatch | OpaqueReason::NonKafka => {
                &notices.no_layout
            }
        };
        let what = (direction, api_key, api_version, why);
        let Some(Admitted { suppressed }) = notices.said.admit(what, limit) else {
            return;
        };
        let connection = self.view.id;
        let upstream = &*self.view.upstream;
        let client_id = self.client_id();
        let software = self.told_software();
        let direction = direction.name();
        // (from where its body begins)
        let offset = fault.map(|fault| fault.at);
        let fault = fault.map(|fault| fault.fault.to_string());
        match why {
            OpaqueReason::Malformed => warn!(
                suppressed, connection, upstream, %client_id, %software, direction, %api_key, api_version,
                offset, fault,
                "a message does not fit its layout: it is not understood (said once for each key and \
                 version)"
            ),
            OpaqueReason::UnknownKey | OpaqueReason::UnknownVersion => info!(
                suppressed, connection, upstream, %client_id, %software, direction, %api_key, api_version,
                "a message of an API key or version that klamp does not know passes unread (said once \
                 for each)"
            ),
            OpaqueReason::NoLayout | OpaqueReason::Mismatch | OpaqueReason::NonKafka => debug!(
                suppressed, connection, upstream, direction, %api_key, api_version,
                "a message that klamp has no layout for passes unread (said once for each)"
            ),
        }
    }

    pub(super) fn note_trailing(&self, direction: Direction, exchange: Exchange, bytes: u32) {
        let what = (
            "trailing",
            direction,
            exchange.api_key,
            exchange.api_version,
        );
        let notices = &self.watch.notices;
        if let Some(Admitted { suppressed }) = notices.said.admit(what, &notices.trailing) {
            info!(
                suppressed,
                connection = self.view.id,
                upstream = %self.view.upstream,
                client_id = %self.client_id(),
                software = %self.told_software(),
                direction = direction.name(),
                api_key = %exchange.api_key,
                api_version = exchange.api_version,
                bytes,
                "a frame goes on where its message has ended: what follows passes unread (said once for \
                 each key and version)"
            );
        }
    }

    pub(super) fn note_unseen(&self, why: OpaqueReason) {
        let upstream = &*self.view.upstream;
        match (why, self.rejected()) {
            (OpaqueReason::NonKafka, Some((reason, _))) => {
                let notices = &self.watch.notices;
                let what = ("unseen", upstream, reason);
                if let Some(Admitted { suppressed }) = notices.said.admit(what, &notices.unseen) {
                    warn!(
                        suppressed,
                        connection = self.view.id,
                        peer = %self.view.peer,
                        upstream,
                        cause = cause(Direction::Request, reason),
                        "a connection that does not speak Kafka is relayed unseen (said once for each \
                         upstream)"
                    );
                }
            }
            _ => debug!(
                connection = self.view.id,
                upstream, "the rest of a connection is relayed unseen"
            ),
        }
    }

    pub(super) fn note_foreign_address(&self, node_id: i32, host: &[u8], port: i32) {
        let notices = &self.watch.notices;
        let what = ("foreign address", host, port);
        if let Some(Admitted { suppressed }) = notices.said.admit(what, &notices.foreign_addresses)
        {
            warn!(
                suppressed,
                upstream = %self.view.upstream,
                node_id,
                address = %format_args!("{}:{port}", Shown(Some(host))),
                "an answer sends clients past klamp: does the broker's advertised.listeners \
                 name klamp's address? (said once for each address)"
            );
        }
    }

    pub(super) fn note_replica_fetch(&self, replica_id: i32) {
        let notices = &self.watch.notices;
        let what = ("replica fetch", replica_id, &self.view.upstream);
        if let Some(Admitted { suppressed }) = notices.said.admit(what, &notices.replica_fetches) {
            warn!(
                suppressed,
                upstream = %self.view.upstream,
                peer = %self.view.peer,
                replica_id,
                "another broker replicates through klamp: its inter.broker.listener.name should name a \
                 listener of its own (said once for each broker)"
            );
        }
    }

    pub(super) fn note_mismatch(&self, expected: Option<CorrelationId>, got: CorrelationId) {
        if let Some(Admitted { suppressed }) = self.watch.notices.mismatches.admit() {
            warn!(
                suppressed,
                connection = self.view.id,
                upstream = %self.view.upstream,
                client_id = %self.client_id(),
                expected = expected.map(|id| id.0),
                got = got.0,
                "a response answers no request that waits for one: its correlation id is another"
            );
        }
    }

    pub(super) fn note_verdict(&self, exchange: Exchange, cause: VerdictCause, topics: &str) {
        let Some(Admitted { suppressed }) = self.watch.notices.verdicts.admit() else {
            return;
        };
        let connection = self.view.id;
        let upstream = &*self.view.upstream;
        let client_id = self.client_id();
        let software = self.told_software();
        let Exchange {
            api_key,
            api_version,
            ..
        } = exchange;
        match cause {
            VerdictCause::Acks0 => warn!(
                suppressed, connection, upstream, %client_id, %software, %api_key, api_version,
                topics = %Shown(Some(topics.as_bytes())),
                "the broker closed the connection right after a Produce with acks=0: that send most \
                 likely failed, and its client will not know"
            ),
            VerdictCause::Opaque => warn!(
                suppressed, connection, upstream, %client_id, %software, %api_key, api_version,
                "the broker closed the connection upon a request that klamp does not read either: \
                 most likely it does not know this API key or version, or cannot read the body"
            ),
        }
    }

    pub(super) fn note_raw_tokens(&self, begins: bool) {
        debug!(
            connection = self.view.id,
            begins, "SASL tokens without headers (SaslHandshake v0)"
        );
    }

    /// How a connection ended: a line for whoever looks, and a louder one where something is wrong.
    pub(super) fn note_end(&self, ended: Ended) {
        match ended {
            Ended::Session(CloseReason::Rejected(direction, reason)) => {
                self.note_rejected(direction, reason);
            }
            Ended::Session(CloseReason::Stalled(direction)) => self.note_failed(
                ended,
                match direction {
                    Direction::Request => "a request stopped arriving (--request-progress-timeout)",
                    Direction::Response => "a response stopped arriving (--response-progress-timeout)",
                },
            ),
            Ended::Session(CloseReason::Malformed) => self.note_failed(
                ended,
                "a message that klamp must rewrite does not fit its layout; --clamp off lets it pass",
            ),
            Ended::Session(CloseReason::HoldLimit) => {
                self.note_failed(ended, "a message that klamp must rewrite is too large to be held");
            }
            Ended::HoldBudget => self.note_failed(
                ended,
                "all connections together hold as many bytes as the process may",
            ),
            Ended::Broken => error!(
                connection = self.view.id,
                upstream = %self.view.upstream,
                client_id = %self.client_id(),
                "a connection is closed upon a fault of klamp's own"
            ),
            _ => {}
        }
        debug!(
            connection = self.view.id,
            peer = %self.view.peer,
            upstream = %self.view.upstream,
            client_id = %self.client_id(),
            reason = ended.label(),
            requests = self.view.requests(),
            request_bytes = self.view.moved(Direction::Request),
            response_bytes = self.view.moved(Direction::Response),
            open_for = ?rounded(self.view.opened.elapsed()),
            "a connection has ended"
        );
    }

    /// Why bytes were rejected, and what stood where a length should be.
    fn rejected(&self) -> Option<(RejectReason, i32)> {
        match self.end_cause.as_deref() {
            Some(EndCause::Rejected(reason, length)) => Some((*reason, *length)),
            _ => None,
        }
    }

    fn note_rejected(&self, direction: Direction, reason: RejectReason) {
        if let Some(Admitted { suppressed }) = self.watch.notices.rejected.admit() {
            warn!(
                suppressed,
                connection = self.view.id,
                peer = %self.view.peer,
                upstream = %self.view.upstream,
                client_id = %self.client_id(),
                direction = direction.name(),
                length = self.rejected().map(|(_, length)| length),
                cause = cause(direction, reason),
                "what came is no Kafka frame: the connection is closed"
            );
        }
    }

    fn note_failed(&self, ended: Ended, cause: &str) {
        if let Some(Admitted { suppressed }) = self.watch.notices.failed.admit() {
            warn!(
                suppressed,
                connection = self.view.id,
                peer = %self.view.peer,
                upstream = %self.view.upstream,
                client_id = %self.client_id(),
                software = %self.told_software(),
                reason = ended.label(),
                cause,
                "a connection is closed"
            );
        }
    }

    fn client_id(&self) -> Shown<'_> {
        Shown(self.name().and_then(|name| name.client_id.as_deref()))
    }

    fn told_software(&self) -> ToldSoftware<'_> {
        ToldSoftware(self.name())
    }
}

/// The likely cause of bytes that are no frame, and what to do about it.
fn cause(direction: Direction, reason: RejectReason) -> &'static str {
    match (direction, reason) {
        (Direction::Request, RejectReason::Tls) => {
            "this looks like TLS and klamp expects plain text here: is the client's security.protocol \
             SSL or SASL_SSL?"
        }
        (Direction::Response, RejectReason::Tls) => {
            "the broker answers in TLS: is --upstream its SSL listener?"
        }
        (Direction::Request, RejectReason::Http) => {
            "this is an HTTP request: a probe or a browser on Kafka's port? Probes go to --admin"
        }
        (Direction::Response, RejectReason::Http) => {
            "this is an HTTP answer: is --upstream a Kafka broker?"
        }
        (Direction::Request, RejectReason::TooLarge) => {
            "a request larger than --max-request-bytes allows: either not Kafka, or raise it to the \
             broker's socket.request.max.bytes"
        }
        (Direction::Response, RejectReason::TooLarge) => {
            "a response larger than any can be: is --upstream a Kafka broker?"
        }
        (Direction::Request, RejectReason::NegativeLength | RejectReason::TooShort) => {
            "these are not the first bytes of a Kafka request: does something else than a Kafka client \
             connect here?"
        }
        (Direction::Response, RejectReason::NegativeLength | RejectReason::TooShort) => {
            "these are not the first bytes of a Kafka response: is --upstream a Kafka broker?"
        }
    }
}

/// Name and version of a client's software; `-` where it has not told.
struct ToldSoftware<'a>(Option<&'a super::ClientName>);

impl fmt::Display for ToldSoftware<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(|name| name.software.as_ref()) {
            Some(told) => write!(
                f,
                "{} {}",
                Shown(Some(&told.name)),
                Shown(Some(&told.version))
            ),
            None => f.write_str("-"),
        }
    }
}
