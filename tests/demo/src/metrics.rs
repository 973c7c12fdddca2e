//! What `/metrics` has to say about the demo's traffic, and the part of it that is shown.

use crate::klamp::Klamp;
use klamp_tests::scrape::Scrape;

/// The families that are shown, in this order.
const SHOWN: [&str; 5] = [
    "klamp_requests_total",
    "klamp_response_error_codes_total",
    "klamp_unnamed_error_codes_total",
    "klamp_hidden_api_keys",
    "klamp_broker_ahead_versions",
];

/// The metrics that matter, once klamp has counted the answer with the `unnamed` error code.
///
/// # Panics
/// If klamp has not counted what has happened.
pub(crate) fn that_matter(klamp: &Klamp, unnamed: i16) -> String {
    let error = format!("UNNAMED_{unnamed}");
    let error = [("api_key", "Produce"), ("error", error.as_str())];
    let scrape = klamp.scrape_until("klamp counts the unnamed error code", |scrape| {
        scrape.sum("klamp_response_error_codes_total", &error) == 1.0
    });
    let value = |name, labels: &[(&str, &str)]| {
        let value = scrape.get(name, labels);
        value.unwrap_or_else(|| panic!("{name} with {labels:?} is not among klamp's metrics"))
    };
    let code = unnamed.to_string();
    let code = [("api_key", "Produce"), ("code", code.as_str())];
    assert_eq!(
        value("klamp_unnamed_error_codes_total", &code),
        1.0,
        "answers with error code {unnamed}"
    );
    for key in ["StreamsGroupHeartbeat", "StreamsGroupDescribe"] {
        let hidden = value("klamp_hidden_api_keys", &[("api_key", key)]);
        assert!(hidden > 0.0, "key {key} is not hidden");
    }
    let ahead = value(
        "klamp_broker_ahead_versions",
        &[("api_key", "DescribeLogDirs")],
    );
    assert_eq!(ahead, 1.0, "versions of DescribeLogDirs ahead of klamp's");
    let foreign = value("klamp_foreign_addresses_total", &[]);
    assert_eq!(foreign, 0.0, "times that clients were sent past klamp");
    excerpt(&scrape)
}

fn excerpt(scrape: &Scrape) -> String {
    let is_of = |line: &str, family| {
        let labels = line.strip_prefix(family);
        labels.is_some_and(|labels| labels.starts_with('{'))
    };
    // That nothing was there, or that all went well, is nothing to look at.
    let tells = |line: &str| !line.ends_with(" 0") && !line.contains("error=\"NONE\"");
    let lines = SHOWN.iter().flat_map(|family| {
        let lines = scrape.text.lines();
        lines.filter(move |line| is_of(line, family) && tells(line))
    });
    lines.collect::<Vec<_>>().join("\n")
}
