//! SASL passes through klamp on a real SASL listener: raw tokens after SaslHandshake v0, where an
//! empty frame is a good answer; SaslAuthenticate after v1; and authentication once more in the
//! middle of a connection (KIP-368). And the secrets stay secret.

use bytes::Bytes;
use kafka_protocol::messages::{
    MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest, SaslHandshakeResponse,
};
use kafka_protocol::protocol::StrBytes;
use klamp_tests::kafka::{Kafka, SASL_USER, V4_4_0};
use klamp_tests::klamp::Klamp;
use klamp_tests::peer::Client;
use klamp_tests::{java, place, wire};
use std::sync::OnceLock;
use std::time::Duration;

const METADATA: i16 = 9;

/// A broker whose clients must authenticate again within an hour, so that they may.
fn kafka() -> &'static Kafka {
    static KAFKA: OnceLock<Kafka> = OnceLock::new();
    let again = [("connections.max.reauth.ms", "3600000")];
    KAFKA.get_or_init(|| Kafka::start_with(V4_4_0, 1, &again))
}

#[test]
fn raw_tokens_after_handshake_v0_are_followed_by_ordinary_requests() {
    let broker = kafka().broker();
    let klamp = Klamp::start(broker.sasl_upstream);
    let mut client = Client::connect(klamp.address());
    assert_eq!(handshake(&mut client, 0).error_code, 0);
    client.send_bytes(&wire::frame(&plain(SASL_USER.1)));
    assert_eq!(
        client.read_bytes(4),
        [0, 0, 0, 0],
        "a good answer to PLAIN is an empty frame"
    );
    let metadata = client.call(METADATA, &MetadataRequest::default());
    assert_eq!(
        metadata.brokers[0].port,
        i32::from(broker.sasl_klamp.port())
    );
    drop(client);

    let scrape = klamp.scrape_until("the connection is over", |scrape| {
        scrape.sum("klamp_connections_closed_total", &[("reason", "client")]) == 1.0
    });
    assert_eq!(
        scrape.sum(
            "klamp_responses_total",
            &[("api_key", "SaslHandshake"), ("outcome", "ok")]
        ),
        1.0
    );
    assert_eq!(
        scrape.sum(
            "klamp_responses_total",
            &[("api_key", "Metadata"), ("outcome", "ok")]
        ),
        1.0
    );
    assert_understood(&klamp);
    klamp.stop();
}

#[test]
fn a_wrong_password_ends_as_it_does_without_klamp() {
    let broker = kafka().broker();
    let klamp = Klamp::start(broker.sasl_upstream);
    let ends = [broker.sasl_upstream, klamp.address()].map(|address| {
        let mut client = Client::connect(address);
        assert_eq!(handshake(&mut client, 0).error_code, 0);
        client.send_bytes(&wire::frame(&plain("a-wrong-password")));
        client.read_to_end().0
    });
    assert_eq!(ends[0], ends[1]);
    klamp.scrape_until("the connection is over", |scrape| {
        scrape.get("klamp_connections_active", &[]) == Some(0.0)
    });
    assert_understood(&klamp);
    klamp.stop();
}

#[test]
fn a_client_may_authenticate_again_in_the_middle_of_a_connection() {
    let broker = kafka().broker();
    let klamp = Klamp::start(broker.sasl_upstream);
    let mut client = Client::connect(klamp.address());
    for round in 0..3 {
        if round > 0 {
            // Brokers refuse to do it again within a second.
            std::thread::sleep(Duration::from_millis(1_100));
        }
        assert_eq!(handshake(&mut client, 1).error_code, 0);
        let token = Bytes::from(plain(SASL_USER.1));
        let request = SaslAuthenticateRequest::default().with_auth_bytes(token);
        let answer = client.call(1, &request);
        assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
        assert!(answer.session_lifetime_ms > 0);
        assert!(
            !client
                .call(METADATA, &MetadataRequest::default())
                .brokers
                .is_empty()
        );
    }
    drop(client);
    let scrape = klamp.scrape_until("the connection is over", |scrape| {
        scrape.get("klamp_connections_active", &[]) == Some(0.0)
    });
    assert_eq!(
        scrape.sum("klamp_responses_total", &[("api_key", "SaslAuthenticate")]),
        3.0
    );
    assert_understood(&klamp);
    klamp.stop();
}

#[test]
fn kafkas_own_clients_authenticate_through_klamp() {
    let kafka = kafka();
    let broker = kafka.broker();
    kafka.create_topic("secured", 1);
    let klamp = Klamp::between(&[(broker.sasl_klamp, broker.sasl_upstream)], &[]);
    let (user, password) = SASL_USER;
    let config = place::room("sasl-client").join("client.properties");
    let text = format!(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=org.apache.kafka.common.\
         security.plain.PlainLoginModule required username=\"{user}\" password=\"{password}\";\n"
    );
    std::fs::write(&config, text).expect("a room can be written to");
    let bootstrap = klamp.address().to_string();
    let to = [
        "--bootstrap-server",
        &bootstrap,
        "--topic",
        "secured",
        "--command-config",
    ];
    let to = [
        &to[..],
        &[config.to_str().expect("cargo's folders are UTF-8")],
    ]
    .concat();
    java::tool_fed(
        V4_4_0,
        "org.apache.kafka.tools.ConsoleProducer",
        &to,
        "a\nb\n",
    );
    let consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    let read = [&to[..], &["--from-beginning", "--max-messages", "2"]].concat();
    assert_eq!(java::tool(V4_4_0, consumer, &read), "a\nb\n");
    assert_understood(&klamp);
    klamp.stop();
}

#[track_caller]
fn handshake(client: &mut Client, version: i16) -> SaslHandshakeResponse {
    let plain = StrBytes::from_static_str("PLAIN");
    client.call(
        version,
        &SaslHandshakeRequest::default().with_mechanism(plain),
    )
}

/// A PLAIN token: no authorization id, the user, and this password.
fn plain(password: &str) -> Vec<u8> {
    format!("\0{}\0{password}", SASL_USER.0).into_bytes()
}

/// Nothing was taken for what it is not, and no secret has been written down.
#[track_caller]
fn assert_understood(klamp: &Klamp) {
    let scrape = klamp.scrape();
    for name in [
        "klamp_opaque_frames_total",
        "klamp_frames_rejected_total",
        "klamp_correlation_mismatches_total",
    ] {
        assert_eq!(scrape.sum(name, &[]), 0.0, "{name}");
    }
    assert_eq!(scrape.sum("klamp_in_flight_requests", &[]), 0.0);
    let log = klamp.process().err();
    for secret in [SASL_USER.1, "a-wrong-password"] {
        assert!(!log.contains(secret), "a secret is in the log");
        assert!(!scrape.text.contains(secret), "a secret is in the metrics");
    }
}
