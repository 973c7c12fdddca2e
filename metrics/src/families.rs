//! The names, help texts and labels of all families: a contract with dashboards and alerts.
//!
//! Labels stand in alphabetical order, as the exporter sorts by their values in that order.

use prometheus::proto;

/// A family as it is described to Prometheus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: proto::MetricType,
    pub(crate) labels: &'static [&'static str],
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    let kind = proto::MetricType::COUNTER;
    Family {
        name,
        help,
        kind,
        labels,
    }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Family {
    let kind = proto::MetricType::GAUGE;
    Family {
        name,
        help,
        kind,
        labels,
    }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    let kind = proto::MetricType::HISTOGRAM;
    Family {
        name,
        help,
        kind,
        labels,
    }
}

pub(crate) const BUILD_INFO: Family = gauge(
    "klamp_build_info",
    &["kafka_schema", "version"],
    "Always 1: the version of klamp and the Kafka release its message definitions come from.",
);

pub(crate) const CONNECTIONS_OPENED: Family = counter(
    "klamp_connections_opened_total",
    &[],
    "Client connections accepted.",
);
pub(crate) const CONNECTIONS_ACTIVE: Family = gauge(
    "klamp_connections_active",
    &[],
    "Client connections that are open.",
);
pub(crate) const CONNECTIONS_LIMIT: Family = gauge(
    "klamp_connections_limit",
    &[],
    "Client connections that may be open at once; what comes beyond is accepted and closed.",
);
pub(crate) const CONNECTIONS_CLOSED: Family = counter(
    "klamp_connections_closed_total",
    &["reason"],
    "Client connections closed, by what ended them.",
);

pub(crate) const DIALS: Family = counter(
    "klamp_dials_total",
    &["result", "upstream"],
    "Attempts to connect to a broker.",
);
pub(crate) const DIAL_DURATION: Family = histogram(
    "klamp_dial_duration_seconds",
    &[],
    "Time until a connection to a broker was there or had failed, name look-up included.",
);
pub(crate) const UPSTREAM_UP: Family = gauge(
    "klamp_upstream_up",
    &["upstream"],
    "Whether the last attempt to connect to this broker succeeded.",
);

pub(crate) const REQUESTS: Family = counter(
    "klamp_requests_total",
    &["api_key", "api_version"],
    "Requests received to their last byte.",
);
pub(crate) const RESPONSES: Family = counter(
    "klamp_responses_total",
    &["api_key", "outcome"],
    "Responses passed on: ok, error (any code but 0 at any depth), or opaque where klamp could not \
     read their error codes.",
);
pub(crate) const ERROR_CODES: Family = counter(
    "klamp_response_error_codes_total",
    &["api_key", "error"],
    "Error codes in responses at any depth, NONE included; a code that has no name is UNNAMED_ and \
     its number.",
);
pub(crate) const REQUEST_DURATION: Family = histogram(
    "klamp_request_duration_seconds",
    &["api_key"],
    "Time from a request fully received to the first byte of its response.",
);
pub(crate) const REQUEST_EXCESS: Family = histogram(
    "klamp_request_excess_seconds",
    &["api_key"],
    "The part of the request duration beyond the wait that the request itself asked for.",
);
pub(crate) const REQUEST_BYTES: Family = counter(
    "klamp_request_bytes_total",
    &["api_key"],
    "Bytes of requests received, length fields included.",
);
pub(crate) const RESPONSE_BYTES: Family = counter(
    "klamp_response_bytes_total",
    &["api_key"],
    "Bytes of responses as received from brokers, length fields included.",
);
pub(crate) const IN_FLIGHT: Family = gauge(
    "klamp_in_flight_requests",
    &[],
    "Requests that wait for their response.",
);
pub(crate) const PRODUCE_REQUESTS: Family = counter(
    "klamp_produce_requests_total",
    &["acks"],
    "Produce requests by the acknowledgements they ask for.",
);
pub(crate) const THROTTLE: Family = counter(
    "klamp_throttle_seconds_total",
    &["api_key"],
    "Time for which brokers asked clients to stay quiet.",
);

pub(crate) const UNKNOWN_API_KEYS: Family = counter(
    "klamp_unknown_api_keys_total",
    &["api_key"],
    "Requests whose API key has no name here: by number where a broker advertises it, else other.",
);
pub(crate) const UNNAMED_ERROR_CODES: Family = counter(
    "klamp_unnamed_error_codes_total",
    &["api_key", "code"],
    "Error codes in responses that no library names.",
);
pub(crate) const OPAQUE_FRAMES: Family = counter(
    "klamp_opaque_frames_total",
    &["reason"],
    "Frames passed on without being understood.",
);
pub(crate) const FRAMES_REJECTED: Family = counter(
    "klamp_frames_rejected_total",
    &["direction", "reason"],
    "Bytes that are no Kafka frame; the connection was closed or, where told so, relayed unseen.",
);
pub(crate) const CORRELATION_MISMATCHES: Family = counter(
    "klamp_correlation_mismatches_total",
    &[],
    "Responses that answered no request in the queue.",
);
pub(crate) const FOREIGN_ADDRESSES: Family = counter(
    "klamp_foreign_addresses_total",
    &[],
    "Broker addresses in answers (Metadata and its like) that send clients past klamp.",
);

pub(crate) const API_VERSION_MIN: Family = gauge(
    "klamp_api_version_min",
    &["api_key", "side"],
    "Highest of the lowest versions over the version tables in use, for keys that are lowered, \
     hidden or where the broker is ahead.",
);
pub(crate) const API_VERSION_MAX: Family = gauge(
    "klamp_api_version_max",
    &["api_key", "side"],
    "Lowest of the highest versions over the version tables in use, for keys that are lowered, \
     hidden or where the broker is ahead.",
);
pub(crate) const BROKER_AHEAD: Family = gauge(
    "klamp_broker_ahead_versions",
    &["api_key"],
    "How many versions the most advanced broker offers beyond the highest that klamp speaks.",
);
pub(crate) const HIDDEN_API_KEYS: Family = gauge(
    "klamp_hidden_api_keys",
    &["api_key"],
    "In how many version tables in use this key is hidden from clients.",
);
pub(crate) const VERSION_TABLES: Family = gauge(
    "klamp_version_tables",
    &[],
    "Distinct version tables in use: 1, save while brokers differ.",
);

pub(crate) const CLIENT_CONNECTIONS: Family = gauge(
    "klamp_client_connections",
    &["software_name", "software_version"],
    "Open connections by the software that the client told (KIP-511).",
);

pub(crate) const CAPTURES: Family = counter(
    "klamp_captures_total",
    &["reason"],
    "Captures taken of what a connection said last, by what triggered them.",
);
pub(crate) const CAPTURES_DROPPED: Family = counter(
    "klamp_captures_dropped_total",
    &["reason"],
    "Captures not taken (rate_limited), given up or refused for want of memory (memory), or not written \
     to --capture-dir (queue_full, directory_full, write_failed).",
);
pub(crate) const CAPTURES_BYTES: Family = gauge(
    "klamp_captures_bytes",
    &[],
    "Memory that the captures at /captures take.",
);

pub(crate) const RECORDER_BYTES: Family = gauge(
    "klamp_recorder_bytes",
    &[],
    "Memory that the latest exchanges of all connections take, of which captures are made.",
);
pub(crate) const RECORDER_GIVEN_UP: Family = counter(
    "klamp_recorder_given_up_total",
    &[],
    "Chunks of the exchanges of connections that were given up early for want of memory (--capture-memory).",
);

/// A family that is being filled for a scrape.
pub(crate) struct Filled {
    family: Family,
    metrics: Vec<proto::Metric>,
}

impl Filled {
    pub(crate) fn new(family: Family) -> Self {
        Self {
            family,
            metrics: Vec::new(),
        }
    }

    /// Adds a series of a counter or gauge. `labels` are values in the order of the family's labels.
    pub(crate) fn value(&mut self, labels: &[&str], value: f64) {
        let mut metric = self.series(labels);
        match self.family.kind {
            proto::MetricType::GAUGE => {
                let mut gauge = proto::Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
            _ => {
                let mut counter = proto::Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
        }
        self.metrics.push(metric);
    }

    /// Adds a series of a histogram.
    pub(crate) fn histogram(&mut self, labels: &[&str], histogram: proto::Histogram) {
        let mut metric = self.series(labels);
        metric.set_histogram(histogram);
        self.metrics.push(metric);
    }

    /// The family for the registry, which drops it where it has no series.
    pub(crate) fn done(self) -> proto::MetricFamily {
        let mut family = proto::MetricFamily::default();
        family.set_name(self.family.name.to_owned());
        family.set_help(self.family.help.to_owned());
        family.set_field_type(self.family.kind);
        family.set_metric(self.metrics);
        family
    }

    fn series(&self, labels: &[&str]) -> proto::Metric {
        debug_assert_eq!(
            labels.len(),
            self.family.labels.len(),
            "{}",
            self.family.name
        );
        let pairs = self.family.labels.iter().zip(labels).map(|(name, value)| {
            let mut pair = proto::LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value((*value).to_owned());
            pair
        });
        proto::Metric::from_label(pairs.collect())
    }
}
