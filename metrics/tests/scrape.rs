//! What a scrape shows of what was counted, seen from outside: the text is parsed as Prometheus
//! would, so that a family with a missing help text or a series that stands twice fails here.

use klamp_metrics::{
    CaptureDropped, CaptureReason, Catalog, DialResult, Direction, KnownKey, Metrics, OpaqueReason,
    Outcome, RejectReason, VersionRow,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

fn metrics() -> Arc<Metrics> {
    Metrics::new(Catalog {
        version: "0.1.0",
        kafka_schema: "4.4.0",
        api_keys: vec![
            KnownKey {
                code: 0,
                name: "Produce",
                max_version: 13,
            },
            KnownKey {
                code: 1,
                name: "Fetch",
                max_version: 18,
            },
            KnownKey {
                code: 18,
                name: "ApiVersions",
                max_version: 4,
            },
        ],
        error_codes: vec![
            (-1, "UNKNOWN_SERVER_ERROR"),
            (0, "NONE"),
            (35, "UNSUPPORTED_VERSION"),
        ],
    })
}

/// Every sample of a scrape by its name and labels, as they stand in the text.
fn scrape(metrics: &Metrics) -> BTreeMap<String, f64> {
    let text = metrics.render().expect("the registry encodes");
    let mut described = BTreeSet::new();
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a help text");
            assert!(
                !help.is_empty() && described.insert(name.to_owned()),
                "{line}"
            );
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().unwrap_or_default();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|part| name.strip_suffix(part))
                .filter(|family| described.contains(*family))
                .unwrap_or(name);
            assert!(described.contains(family), "no help for {line}");
            let value = value.parse().expect("a number");
            assert!(
                samples.insert(series.to_owned(), value).is_none(),
                "twice: {line}"
            );
        }
    }
    samples
}

fn series<'a>(samples: &'a BTreeMap<String, f64>, family: &str) -> Vec<&'a str> {
    let of_family = |name: &&str| name.split('{').next() == Some(family);
    samples
        .keys()
        .map(String::as_str)
        .filter(of_family)
        .collect()
}

#[test]
fn counts_of_all_threads_are_summed() {
    let metrics = metrics();
    let shards = [metrics.shard(), metrics.shard(), metrics.shard()];
    std::thread::scope(|scope| {
        for shard in &shards {
            scope.spawn(|| {
                let fetch = shard.row(1);
                for _ in 0..1000 {
                    shard.request(fetch, 17, 100);
                    shard.error_code(fetch, 0, 3);
                    shard.error_code(fetch, -1, 1);
                    shard.response(fetch, Outcome::Error, 5000);
                    shard.throttled(fetch, Duration::from_micros(1500));
                }
            });
        }
    });
    let samples = scrape(&metrics);
    assert_eq!(
        samples[r#"klamp_requests_total{api_key="Fetch",api_version="17"}"#],
        3000.0
    );
    assert_eq!(
        samples[r#"klamp_request_bytes_total{api_key="Fetch"}"#],
        300_000.0
    );
    assert_eq!(
        samples[r#"klamp_responses_total{api_key="Fetch",outcome="error"}"#],
        3000.0
    );
    assert_eq!(
        samples[r#"klamp_response_bytes_total{api_key="Fetch"}"#],
        15_000_000.0
    );
    let errors = |error: &str| {
        samples[&format!(r#"klamp_response_error_codes_total{{api_key="Fetch",error="{error}"}}"#)]
    };
    assert_eq!(errors("NONE"), 9000.0);
    assert_eq!(errors("UNKNOWN_SERVER_ERROR"), 3000.0);
    assert_eq!(
        samples[r#"klamp_throttle_seconds_total{api_key="Fetch"}"#],
        4.5
    );
}

#[test]
#[cfg(debug_assertions)]
fn a_second_thread_that_counts_into_a_shard_is_found_out() {
    let metrics = metrics();
    let shard = metrics.shard();
    shard.acks(1);
    let second = std::thread::scope(|scope| scope.spawn(|| shard.acks(1)).join());
    assert!(second.is_err());
}

#[test]
fn gauges_of_all_threads_are_summed_and_return_to_zero() {
    let metrics = metrics();
    let (one, two) = (metrics.shard(), metrics.shard());
    for shard in [&one, &two, &two] {
        shard.connection_opened();
        shard.in_flight(5);
        shard.in_flight(-2);
    }
    let samples = scrape(&metrics);
    assert_eq!(samples["klamp_connections_active"], 3.0);
    assert_eq!(samples["klamp_in_flight_requests"], 9.0);
    for shard in [&one, &two, &two] {
        shard.in_flight(-3);
        shard.connection_closed();
    }
    let samples = scrape(&metrics);
    assert_eq!(samples["klamp_connections_active"], 0.0);
    assert_eq!(samples["klamp_in_flight_requests"], 0.0);
    assert_eq!(samples["klamp_connections_opened_total"], 3.0);
}

#[test]
fn only_what_was_seen_has_series() {
    let metrics = metrics();
    let shard = metrics.shard();
    let produce = shard.row(0);
    shard.request(produce, 12, 100);
    let samples = scrape(&metrics);
    let requests = series(&samples, "klamp_requests_total");
    assert_eq!(
        requests,
        [r#"klamp_requests_total{api_key="Produce",api_version="12"}"#]
    );
    assert!(series(&samples, "klamp_request_duration_seconds_bucket").is_empty());
    assert!(series(&samples, "klamp_response_error_codes_total").is_empty());
    assert!(series(&samples, "klamp_foreign_addresses_total").is_empty());
}

#[test]
fn a_duration_counts_in_every_bucket_whose_bound_it_does_not_exceed() {
    let metrics = metrics();
    let shard = metrics.shard();
    let fetch = shard.row(1);
    let took = [
        Duration::ZERO,
        Duration::from_millis(1),
        Duration::from_nanos(1_000_001),
        Duration::from_millis(500),
        Duration::from_secs(600),
        Duration::from_secs(601),
    ];
    for took in took {
        shard.answered_after(fetch, took, None);
    }
    let samples = scrape(&metrics);
    let up_to = |bound: &str| {
        let labels = format!(r#"{{api_key="Fetch",le="{bound}"}}"#);
        samples[&format!("klamp_request_duration_seconds_bucket{labels}")]
    };
    assert_eq!(up_to("0.001"), 2.0);
    assert_eq!(up_to("0.0025"), 3.0);
    assert_eq!(up_to("0.25"), 3.0);
    assert_eq!(up_to("0.5"), 4.0);
    assert_eq!(up_to("300"), 4.0);
    assert_eq!(up_to("600"), 5.0);
    assert_eq!(up_to("+Inf"), 6.0);
    assert_eq!(
        samples[r#"klamp_request_duration_seconds_count{api_key="Fetch"}"#],
        6.0
    );
    let sum: f64 = took.iter().map(Duration::as_secs_f64).sum();
    let shown = samples[r#"klamp_request_duration_seconds_sum{api_key="Fetch"}"#];
    assert!((shown - sum).abs() < 1e-6, "{shown} is not {sum}");
}

#[test]
fn excess_is_what_lies_beyond_the_wait_and_exists_only_where_a_request_asked_for_one() {
    let metrics = metrics();
    let shard = metrics.shard();
    let half = Duration::from_millis(500);
    shard.answered_after(shard.row(1), Duration::from_millis(502), Some(half));
    shard.answered_after(shard.row(1), Duration::from_millis(3), Some(half));
    shard.answered_after(shard.row(0), Duration::from_millis(502), None);
    let samples = scrape(&metrics);
    let up_to = |bound: &str| {
        samples[&format!(r#"klamp_request_excess_seconds_bucket{{api_key="Fetch",le="{bound}"}}"#)]
    };
    assert_eq!(
        (up_to("0.001"), up_to("0.0025"), up_to("60")),
        (1.0, 2.0, 2.0)
    );
    let beyond_a_minute = r#"klamp_request_excess_seconds_bucket{api_key="Fetch",le="300"}"#;
    assert!(!samples.contains_key(beyond_a_minute));
    assert_eq!(
        series(&samples, "klamp_request_excess_seconds_count").len(),
        1
    );
}

#[test]
fn a_key_without_a_name_is_told_by_number_once_a_broker_advertises_it() {
    let metrics = metrics();
    let shard = metrics.shard();
    shard.request(shard.row(10000), 0, 50);
    metrics.advertised(10000);
    metrics.advertised(10000);
    metrics.advertised(1);
    shard.request(shard.row(10000), 31, 50);
    shard.request(shard.row(10000), 32, 50);
    let samples = scrape(&metrics);
    assert_eq!(
        samples[r#"klamp_unknown_api_keys_total{api_key="other"}"#],
        1.0
    );
    assert_eq!(
        samples[r#"klamp_unknown_api_keys_total{api_key="10000"}"#],
        2.0
    );
    assert_eq!(
        samples[r#"klamp_requests_total{api_key="10000",api_version="31"}"#],
        1.0
    );
    assert_eq!(
        samples[r#"klamp_requests_total{api_key="10000",api_version="other"}"#],
        1.0
    );
    assert_eq!(series(&samples, "klamp_unknown_api_keys_total").len(), 2);
}

#[test]
fn a_version_beyond_the_known_ones_is_other() {
    let metrics = metrics();
    let shard = metrics.shard();
    for version in [-1, 4, 5, 127, i16::MAX, i16::MIN] {
        shard.request(shard.row(18), version, 20);
    }
    let samples = scrape(&metrics);
    let of = |version: &str| {
        let labels = format!(r#"{{api_key="ApiVersions",api_version="{version}"}}"#);
        samples[&format!("klamp_requests_total{labels}")]
    };
    assert_eq!((of("4"), of("other")), (1.0, 5.0));
}

#[test]
fn an_error_code_without_a_name_keeps_its_number_in_both_families() {
    let metrics = metrics();
    let shard = metrics.shard();
    assert!(shard.error_code(shard.row(0), 35, 1));
    assert!(!shard.error_code(shard.row(0), 250, 2));
    let samples = scrape(&metrics);
    let code = r#"klamp_unnamed_error_codes_total{api_key="Produce",code="250"}"#;
    let error = r#"klamp_response_error_codes_total{api_key="Produce",error="UNNAMED_250"}"#;
    assert_eq!((samples[code], samples[error]), (2.0, 2.0));
    assert_eq!(series(&samples, "klamp_unnamed_error_codes_total").len(), 1);
}

#[test]
fn nothing_that_a_peer_sends_adds_series_without_bound() {
    let metrics = metrics();
    let shards = [metrics.shard(), metrics.shard()];
    for api_key in i16::MIN..=i16::MAX {
        metrics.advertised(api_key);
        let shard = &shards[usize::from(api_key % 2 == 0)];
        let row = shard.row(api_key);
        for version in (0..200).chain([-1, i16::MAX]) {
            shard.request(row, version, 10);
        }
        shard.error_code(row, api_key, 1);
        shard.error_code(row, api_key.wrapping_mul(31), 1);
        shard.response(row, Outcome::Error, 10);
        shard.answered_after(row, Duration::from_secs(1), Some(Duration::ZERO));
        shard.throttled(row, Duration::from_millis(1));
        shard.acks(api_key);
    }
    for reason in [OpaqueReason::UnknownKey, OpaqueReason::NonKafka] {
        shards[0].opaque(reason);
    }
    let mut open = Vec::new();
    for number in 0..10_000_u32 {
        let name = format!("client {number}\n\"{{}}");
        open.push(metrics.client_connection(name.as_bytes(), &number.to_be_bytes()));
        metrics.dialled(
            &format!("host-{number}:9092"),
            DialResult::Ok,
            Duration::ZERO,
        );
    }
    let rows: Vec<_> = (i16::MIN..=i16::MAX)
        .map(|api_key| VersionRow {
            api_key,
            broker: Some((0, 9)),
            ahead: 1,
            is_hidden: true,
            ..Default::default()
        })
        .collect();
    metrics.set_version_tables(&[rows]);

    let samples = scrape(&metrics);
    let count = |family| series(&samples, family).len();
    // Three named keys, 64 advertised ones, and `other`.
    assert_eq!(count("klamp_responses_total"), 68);
    assert_eq!(
        count("klamp_requests_total"),
        (14 + 19 + 5) + 3 + 64 * 33 + 33
    );
    assert_eq!(count("klamp_produce_requests_total"), 4);
    assert!(count("klamp_unnamed_error_codes_total") <= 200 + 68);
    assert_eq!(count("klamp_client_connections"), 201);
    assert_eq!(count("klamp_upstream_up"), 201);
    assert_eq!(count("klamp_hidden_api_keys"), 68);
    assert!(samples.len() < 8_000, "{} series", samples.len());
    drop(open);
    let samples = scrape(&metrics);
    let left: f64 = series(&samples, "klamp_client_connections")
        .iter()
        .map(|name| samples[*name])
        .sum();
    assert_eq!(left, 0.0);
}

#[test]
fn a_software_name_outside_of_kip_511_is_cleaned_and_cut() {
    let metrics = metrics();
    let hostile = [b"a b\"\n\xff".as_slice(), &[b'x'; 1000]].concat();
    let _open = metrics.client_connection(&hostile, b"");
    let _java = metrics.client_connection(b"apache-kafka-java", b"4.3.1");
    let samples = scrape(&metrics);
    let mut expected = format!("a_b___{}", "x".repeat(58));
    expected = format!(
        r#"klamp_client_connections{{software_name="{expected}",software_version="unknown"}}"#
    );
    assert_eq!(
        series(&samples, "klamp_client_connections"),
        [
            expected.as_str(),
            r#"klamp_client_connections{software_name="apache-kafka-java",software_version="4.3.1"}"#
        ]
    );
}

#[test]
fn a_broker_is_up_as_its_last_dial_says() {
    let metrics = metrics();
    metrics.dialled("b:9092", DialResult::Ok, Duration::from_millis(2));
    assert_eq!(
        scrape(&metrics)[r#"klamp_upstream_up{upstream="b:9092"}"#],
        1.0
    );
    metrics.dialled("b:9092", DialResult::Refused, Duration::from_millis(2));
    let samples = scrape(&metrics);
    assert_eq!(samples[r#"klamp_upstream_up{upstream="b:9092"}"#], 0.0);
    assert_eq!(
        samples[r#"klamp_dials_total{result="refused",upstream="b:9092"}"#],
        1.0
    );
    assert_eq!(
        samples[r#"klamp_dial_duration_seconds_bucket{le="0.0025"}"#],
        2.0
    );
}

#[test]
fn several_version_tables_show_what_a_client_can_count_on_with_every_broker() {
    let metrics = metrics();
    let fetch = |broker, negotiated, ahead| VersionRow {
        api_key: 1,
        broker: Some(broker),
        ours: Some((4, 17)),
        negotiated: Some(negotiated),
        ahead,
        is_lowered: ahead > 0,
        is_hidden: false,
    };
    let same = VersionRow {
        api_key: 0,
        broker: Some((0, 12)),
        ours: Some((3, 13)),
        negotiated: Some((3, 12)),
        ..Default::default()
    };
    let hidden = VersionRow {
        api_key: 88,
        broker: Some((0, 0)),
        is_hidden: true,
        ..Default::default()
    };
    metrics.advertised(88);
    metrics.set_version_tables(&[
        vec![fetch((0, 18), (0, 17), 1), same, hidden],
        vec![fetch((4, 16), (4, 16), 0), same],
    ]);
    let samples = scrape(&metrics);
    let of = |family: &str, side: &str| {
        samples[&format!(r#"{family}{{api_key="Fetch",side="{side}"}}"#)]
    };
    assert_eq!(samples["klamp_version_tables"], 2.0);
    assert_eq!(of("klamp_api_version_max", "broker"), 16.0);
    assert_eq!(of("klamp_api_version_min", "broker"), 4.0);
    assert_eq!(of("klamp_api_version_max", "ours"), 17.0);
    assert_eq!(of("klamp_api_version_max", "negotiated"), 16.0);
    assert_eq!(
        samples[r#"klamp_broker_ahead_versions{api_key="Fetch"}"#],
        1.0
    );
    assert_eq!(samples[r#"klamp_hidden_api_keys{api_key="88"}"#], 1.0);
    let produce: Vec<_> = samples
        .keys()
        .filter(|name| name.contains("Produce"))
        .collect();
    assert!(
        produce.is_empty(),
        "a row that is as the broker has it has no series: {produce:?}"
    );
}

#[test]
fn a_family_that_depends_on_the_mode_exists_from_its_first_use_on() {
    let metrics = metrics();
    metrics.foreign_addresses();
    assert_eq!(scrape(&metrics)["klamp_foreign_addresses_total"], 0.0);
    metrics.foreign_addresses().inc();
    assert_eq!(scrape(&metrics)["klamp_foreign_addresses_total"], 1.0);
}

#[test]
fn labels_stand_in_alphabetical_order() {
    let metrics = metrics();
    let shard = metrics.shard();
    shard.request(shard.row(1), 1, 1);
    shard.response(shard.row(1), Outcome::Ok, 1);
    shard.error_code(shard.row(1), 999, 1);
    metrics.dialled("b:9092", DialResult::Loop, Duration::ZERO);
    metrics.frame_rejected(Direction::Request, RejectReason::Http);
    let _open = metrics.client_connection(b"a", b"b");
    for name in scrape(&metrics).keys() {
        let labels = name
            .split(['{', ','])
            .skip(1)
            .filter_map(|label| label.split('=').next());
        assert!(labels.is_sorted(), "{name}");
    }
}

#[test]
fn what_is_rejected_is_told_from_the_start_by_direction_and_reason() {
    let metrics = metrics();
    let rejected = |metrics: &Metrics| {
        let all = scrape(metrics).into_iter();
        let rejected = all.filter(|(name, _)| name.starts_with("klamp_frames_rejected_total"));
        rejected.partition::<Vec<_>, _>(|(_, count)| *count == 0.0)
    };
    let (none, some) = rejected(&metrics);
    assert_eq!(
        (none.len(), some.len()),
        (10, 0),
        "increase() sees the first"
    );
    metrics.frame_rejected(Direction::Response, RejectReason::Tls);
    let tls = "klamp_frames_rejected_total{direction=\"response\",reason=\"tls\"}";
    let (none, some) = rejected(&metrics);
    assert_eq!((none.len(), some), (9, vec![(tls.to_owned(), 1.0)]));
}

#[test]
fn captures_and_those_that_are_missing_are_told_by_reason() {
    let metrics = metrics();
    let of = |metrics: &Metrics, series: &str| scrape(metrics).get(series).copied();
    let full = "klamp_captures_dropped_total{reason=\"directory_full\"}";
    assert_eq!(of(&metrics, full), Some(0.0), "an alert may ask for it");
    let taken = "klamp_captures_total{reason=\"unnamed\"}";
    assert_eq!(of(&metrics, taken), Some(0.0), "increase() sees the first");
    metrics.captured(CaptureReason::Unnamed);
    metrics.capture_dropped(CaptureDropped::DirectoryFull);
    metrics.set_captures_bytes(1 << 20);
    metrics.set_recorder(1 << 21, 7);
    assert_eq!(of(&metrics, taken), Some(1.0));
    assert_eq!(of(&metrics, full), Some(1.0));
    assert_eq!(of(&metrics, "klamp_captures_bytes"), Some(1_048_576.0));
    assert_eq!(of(&metrics, "klamp_recorder_bytes"), Some(2_097_152.0));
    assert_eq!(of(&metrics, "klamp_recorder_given_up_total"), Some(7.0));
}
