//! `/metrics` is what Prometheus wants to read, after traffic of every kind has filled its families.

use kafka_protocol::messages::ApiVersionsRequest;
use kafka_protocol::protocol::StrBytes;
use klamp_tests::klamp::Klamp;
use klamp_tests::mock::MockKafka;
use klamp_tests::peer::Client;
use klamp_tests::{place, records, wire};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn promtool_has_nothing_to_say_about_the_metrics() {
    let address = place::free_address();
    let mock = MockKafka::start(address);
    mock.create_topic("orders", 1);
    let (lost, nobody) = (place::free_address(), place::free_address());
    let klamp = Klamp::between(&[(address, mock.address()), (lost, nobody)], &[]);

    let mut client = Client::connect(klamp.address());
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("a \"quoted\\ name\n"))
        .with_client_software_version(StrBytes::from_static_str("1.0"));
    client.send(3, &request);
    client.read_frame();
    client.call(2, &ApiVersionsRequest::default());
    for code in [0, 3, 250] {
        mock.fail_produce_with(code);
        client.call(9, &records::produce("orders", -1, b"value"));
    }
    client.call(11, &records::fetch("orders"));
    client.send_bytes(&wire::bare_request(9_999, 0, 99, "hostile", b""));
    client.read_to_end();
    drop(client);
    let mut client = Client::connect(klamp.address());
    client.send_bytes(b"GET / HTTP/1.1\r\n\r\n");
    client.read_to_end();
    drop(client);
    Client::connect(lost).read_to_end();

    let scrape = klamp.scrape_until("all connections have ended", |scrape| {
        scrape.get("klamp_connections_closed_total", &[]) == Some(3.0)
    });
    for family in [
        "klamp_build_info",
        "process_open_fds",
        "klamp_connections_opened_total",
        "klamp_connections_active",
        "klamp_connections_limit",
        "klamp_connections_closed_total",
        "klamp_dials_total",
        "klamp_dial_duration_seconds_count",
        "klamp_upstream_up",
        "klamp_requests_total",
        "klamp_responses_total",
        "klamp_response_error_codes_total",
        "klamp_request_duration_seconds_bucket",
        "klamp_request_excess_seconds_bucket",
        "klamp_request_bytes_total",
        "klamp_response_bytes_total",
        "klamp_in_flight_requests",
        "klamp_unknown_api_keys_total",
        "klamp_unnamed_error_codes_total",
        "klamp_opaque_frames_total",
        "klamp_frames_rejected_total",
        "klamp_produce_requests_total",
        "klamp_version_tables",
    ] {
        assert!(
            scrape.get(family, &[]).is_some(),
            "{family} has no sample:\n{}",
            scrape.text
        );
    }
    let mut promtool = Command::new(place::promtool())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut input = promtool.stdin.take().expect("it is piped");
    input
        .write_all(scrape.text.as_bytes())
        .expect("promtool reads");
    drop(input);
    let said = promtool.wait_with_output().expect("promtool ends");
    let words = format!(
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
    assert!(
        said.status.success() && words.is_empty(),
        "promtool: {words}\n{}",
        scrape.text
    );
    klamp.stop();
}
