//! Drives records with made-up observations, and looks at what metrics and views say of them.

mod capturing;
mod causes;
mod log;

use super::*;
use crate::capture::tape::{Arena, Settings};
use crate::capture::tests::captures;
use crate::relay::Ended;
use klamp_codec::observation::{CloseReason, Outcome as Went};
use klamp_codec::{CorrelationId, Direction::Request, Direction::Response};
use std::time::Duration;

const PRODUCE_9: Exchange = exchange(0, 9);
const FETCH_16: Exchange = exchange(1, 16);
const API_VERSIONS_3: Exchange = exchange(18, 3);

const fn exchange(key: i16, version: i16) -> Exchange {
    Exchange {
        api_key: ApiKey(key),
        api_version: version,
        correlation_id: CorrelationId(7),
    }
}

struct Rig {
    watch: Arc<Watch>,
    shard: Arc<Shard>,
}

impl Rig {
    fn new() -> Self {
        let metrics = Metrics::new(catalog());
        let shard = metrics.shard();
        let captures = captures("BEYOND", metrics.clone());
        let own = vec![("127.0.0.1".to_owned(), 9192)];
        let watch = Watch::new(metrics, own, captures);
        Self { watch, shard }
    }

    fn record(&self) -> Record {
        let peer = "10.0.0.1:4000".parse().unwrap();
        let (watch, shard) = (self.watch.clone(), self.shard.clone());
        let mut record = Record::new(watch, shard, peer, "broker:9092".into());
        let settings = Settings {
            memory: 1 << 20,
            records: false,
            opaque: false,
        };
        record.keep_in(Arena::new(settings, 1, Arc::default()).as_ref());
        record
    }

    /// The value of a series; 0 where there is none.
    fn metric(&self, series: &str) -> f64 {
        let text = self.watch.metrics.render().unwrap();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }
}

impl Record {
    fn sees(&mut self, direction: Direction, what: Observation<'_>) {
        self.observe(direction, 0, what);
        self.capture_settled();
    }

    fn request(&mut self, exchange: Exchange, client_id: Option<&[u8]>) {
        let frame_bytes = 100;
        self.sees(
            Request,
            Observation::RequestHead {
                exchange,
                client_id,
                frame_bytes,
            },
        );
        self.sees(Request, Observation::InFlight(self.view.in_flight() + 1));
        self.sees(
            Request,
            Observation::RequestEnd {
                exchange,
                frame_bytes,
            },
        );
    }

    fn response(&mut self, exchange: Exchange, code: i16) {
        let (frame_bytes, code) = (1000, ErrorCode(code));
        let latency = Some(Duration::from_millis(3));
        let wait = (exchange.api_key == ApiKey::FETCH).then_some(Duration::from_millis(500));
        let outcome = if code == ErrorCode::NONE {
            Went::Ok
        } else {
            Went::Error
        };
        let head = Observation::ResponseHead {
            exchange,
            frame_bytes,
            is_like_last: false,
            latency,
            wait,
            has_layout: true,
        };
        self.sees(Response, head);
        self.sees(Response, Observation::InFlight(self.view.in_flight() - 1));
        self.sees(
            Response,
            Observation::Errors {
                exchange,
                code,
                count: 2,
            },
        );
        self.sees(
            Response,
            Observation::ResponseEnd {
                exchange,
                frame_bytes,
                outcome,
            },
        );
    }
}

#[test]
fn an_exchange_is_counted_by_its_key_version_and_error() {
    let rig = Rig::new();
    let mut record = rig.record();
    record.request(PRODUCE_9, Some(b"app"));
    record.sees(Request, Observation::Acks(-1));
    record.request(FETCH_16, Some(b"app"));
    let throttle = Duration::from_millis(1500);
    record.response(PRODUCE_9, 6);
    record.sees(
        Response,
        Observation::Throttle {
            api_key: ApiKey::PRODUCE,
            time: throttle,
        },
    );
    record.response(FETCH_16, 0);

    let produce = r#"api_key="Produce""#;
    let metric = |series: String| rig.metric(&series);
    assert_eq!(
        metric(format!(
            r#"klamp_requests_total{{{produce},api_version="9"}}"#
        )),
        1.0
    );
    assert_eq!(
        metric(format!("klamp_request_bytes_total{{{produce}}}")),
        100.0
    );
    assert_eq!(
        metric(format!("klamp_response_bytes_total{{{produce}}}")),
        1000.0
    );
    assert_eq!(
        metric(format!(
            r#"klamp_responses_total{{{produce},outcome="error"}}"#
        )),
        1.0
    );
    let error = r#"error="NOT_LEADER_OR_FOLLOWER""#;
    assert_eq!(
        metric(format!(
            "klamp_response_error_codes_total{{{produce},{error}}}"
        )),
        2.0
    );
    assert_eq!(
        metric(format!("klamp_throttle_seconds_total{{{produce}}}")),
        1.5
    );
    assert_eq!(
        rig.metric(r#"klamp_produce_requests_total{acks="-1"}"#),
        1.0
    );
    assert_eq!(
        rig.metric(r#"klamp_responses_total{api_key="Fetch",outcome="ok"}"#),
        1.0
    );
    assert_eq!(
        rig.metric(r#"klamp_request_duration_seconds_count{api_key="Fetch"}"#),
        1.0
    );
    assert_eq!(
        rig.metric(r#"klamp_request_excess_seconds_sum{api_key="Fetch"}"#),
        0.0
    );
    assert_eq!(
        rig.metric(r#"klamp_request_excess_seconds_count{api_key="Fetch"}"#),
        1.0
    );
    assert_eq!(
        rig.metric(r#"klamp_request_excess_seconds_count{api_key="Produce"}"#),
        0.0
    );
}

#[test]
fn a_response_without_a_latency_is_counted_but_not_timed() {
    let rig = Rig::new();
    let mut record = rig.record();
    let (exchange, frame_bytes) = (PRODUCE_9, 50);
    let head = Observation::ResponseHead {
        exchange,
        frame_bytes,
        is_like_last: false,
        latency: None,
        wait: None,
        has_layout: true,
    };
    record.sees(Response, head);
    let outcome = Went::Opaque;
    record.sees(
        Response,
        Observation::ResponseEnd {
            exchange,
            frame_bytes,
            outcome,
        },
    );
    assert_eq!(
        rig.metric(r#"klamp_request_duration_seconds_count{api_key="Produce"}"#),
        0.0
    );
    assert_eq!(
        rig.metric(r#"klamp_responses_total{api_key="Produce",outcome="opaque"}"#),
        1.0
    );
}

#[test]
fn an_answer_of_our_own_is_a_response_with_error_35() {
    let rig = Rig::new();
    rig.record().sees(
        Response,
        Observation::Answered {
            exchange: exchange(18, 127),
        },
    );
    let responses = r#"klamp_responses_total{api_key="ApiVersions",outcome="error"}"#;
    assert_eq!(rig.metric(responses), 1.0);
    let error = r#"{api_key="ApiVersions",error="UNSUPPORTED_VERSION"}"#;
    assert_eq!(
        rig.metric(&format!("klamp_response_error_codes_total{error}")),
        1.0
    );
}

#[test]
fn gauges_return_to_zero_however_a_connection_ends() {
    let rig = Rig::new();
    let endings = [
        Some(Ended::Session(CloseReason::ClientInFlight)),
        Some(Ended::DrainTimeout),
        Some(Ended::Broken),
        None,
    ];
    for ending in endings {
        let mut record = rig.record();
        record.request(API_VERSIONS_3, Some(b"app"));
        let software = Observation::Software {
            name: b"librdkafka",
            version: b"2.5.0",
        };
        record.sees(Request, software);
        record.request(FETCH_16, Some(b"app"));
        let open =
            r#"klamp_client_connections{software_name="librdkafka",software_version="2.5.0"}"#;
        assert_eq!(rig.metric("klamp_in_flight_requests"), 2.0);
        assert_eq!(rig.metric("klamp_connections_active"), 1.0);
        assert_eq!(rig.metric(open), 1.0);
        assert_eq!(rig.watch.views.connections().len(), 1);
        if let Some(ended) = ending {
            record.ended(ended);
        }
        drop(record);
        assert_eq!(rig.metric("klamp_in_flight_requests"), 0.0);
        assert_eq!(rig.metric("klamp_connections_active"), 0.0);
        assert_eq!(rig.metric(open), 0.0);
        assert!(rig.watch.views.connections().is_empty());
    }
    let closed = |reason| {
        rig.metric(&format!(
            r#"klamp_connections_closed_total{{reason="{reason}"}}"#
        ))
    };
    assert_eq!(closed("client_in_flight"), 1.0);
    assert_eq!(closed("drain_timeout"), 1.0);
    assert_eq!(closed("internal"), 1.0);
    assert_eq!(closed("aborted"), 1.0);
    assert_eq!(rig.metric("klamp_connections_opened_total"), 4.0);
}

#[test]
fn a_view_follows_its_connection() {
    let rig = Rig::new();
    let mut record = rig.record();
    let view = rig.watch.views.connections().remove(0);
    assert!(view.client().is_none());
    record.request(FETCH_16, Some(b"app"));
    record.moved(Request, 100);
    record.moved(Response, 1 << 40);
    assert_eq!((view.requests(), view.in_flight()), (1, 1));
    assert_eq!((view.moved(Request), view.moved(Response)), (100, 1 << 40));
    assert_eq!(
        view.client().unwrap().name.client_id.as_deref(),
        Some(b"app".as_slice())
    );
    assert!(view.table().is_none());
}

#[test]
fn software_counts_with_the_request_that_tells_it_and_once_for_each_connection() {
    let rig = Rig::new();
    let mut record = rig.record();
    let (exchange, frame_bytes) = (API_VERSIONS_3, 60);
    for version in [b"4.3.1", b"4.3.1", b"4.4.0"] {
        let client_id = Some(b"app".as_slice());
        record.sees(
            Request,
            Observation::RequestHead {
                exchange,
                client_id,
                frame_bytes,
            },
        );
        let name = b"apache-kafka-java".as_slice();
        record.sees(Request, Observation::Software { name, version });
        record.sees(
            Request,
            Observation::RequestEnd {
                exchange,
                frame_bytes,
            },
        );
    }
    let open = |version| {
        let name = r#"software_name="apache-kafka-java""#;
        rig.metric(&format!(
            r#"klamp_client_connections{{{name},software_version="{version}"}}"#
        ))
    };
    assert_eq!((open("4.3.1"), open("4.4.0")), (0.0, 1.0));
    let reports = rig.watch.views.clients();
    let used: Vec<_> = reports
        .iter()
        .map(|report| report.used[0].versions[0].1)
        .collect();
    assert_eq!(
        used,
        [2, 1],
        "no request counts for a client that had not told its software"
    );
}

#[test]
fn a_client_with_ever_new_names_is_not_followed_for_ever() {
    let rig = Rig::new();
    let mut record = rig.record();
    for number in 0..1000 {
        record.request(FETCH_16, Some(format!("app-{number}").as_bytes()));
    }
    assert_eq!(rig.watch.views.clients().len(), usize::from(NAMES));
    assert_eq!(
        rig.metric(r#"klamp_requests_total{api_key="Fetch",api_version="16"}"#),
        1000.0
    );
}

#[test]
fn a_record_is_small() {
    assert!(size_of::<Record>() <= 128, "{}", size_of::<Record>());
}

#[test]
fn names_are_the_same_to_their_last_byte() {
    for len in 0..20 {
        let name = vec![7; len];
        assert!(is_same(&name, &name.clone()), "{len}");
        assert!(
            !is_same(&name, &[7; 20]) && !is_same(&[7; 20], &name),
            "{len}"
        );
        for at in 0..len {
            let mut other = name.clone();
            other[at] = 8;
            assert!(!is_same(&name, &other), "{at} of {len}");
        }
    }
}
