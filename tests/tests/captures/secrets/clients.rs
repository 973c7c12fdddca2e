//! What Kafka's own clients and tools tell real brokers, and hear from them: captures by hand of connections
//! that are open, and such as a slow answer or an error code triggers.

use super::overheard::Overheard;
use super::told::Told;
use klamp_tests::captures::exchanges;
use klamp_tests::kafka::{Kafka, V4_3_1, V4_4_0, Version};
use klamp_tests::klamp::Klamp;
use klamp_tests::needle::Needle;
use klamp_tests::process::Process;
use klamp_tests::tap::Tap;
use klamp_tests::{java, place, wait};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A JVM starts in a second or two, in many on a machine under load.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of PLAIN.
const USER: &str = "carol";
const WORD: &str = "Pl4ntedS3cret";
/// What a config that takes only numbers has, in milliseconds.
const NUMBER: &str = "731648295164823";

const DELEGATION_TOKENS: &str = "org.apache.kafka.tools.DelegationTokenCommand";

/// APIs whose messages have secrets here, as Kafka numbers them: Produce, SaslHandshake, CreateTopics,
/// DescribeConfigs, SaslAuthenticate, those of tokens, IncrementalAlterConfigs, AlterUserScramCredentials.
const APIS: [i16; 11] = [0, 17, 19, 32, 36, 38, 39, 40, 41, 44, 51];

fn password() -> String {
    format!("{WORD}-of-{USER}")
}

/// A broker of whose secrets all are planted.
fn kafka(version: Version) -> Kafka {
    let password = password();
    let module = "org.apache.kafka.common.security";
    let plain = format!(
        "{module}.plain.PlainLoginModule required user_{USER}=\"{password}\" \
         user_alice=\"another-{WORD}\";"
    );
    let scram = format!("{module}.scram.ScramLoginModule required;");
    let key = format!("{WORD}-of-the-brokers");
    Kafka::start_with(
        version,
        1,
        &[
            (
                "sasl.enabled.mechanisms",
                "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            ),
            ("listener.name.sasl.plain.sasl.jaas.config", &plain),
            ("listener.name.sasl.scram-sha-256.sasl.jaas.config", &scram),
            ("listener.name.sasl.scram-sha-512.sasl.jaas.config", &scram),
            ("delegation.token.secret.key", &key),
        ],
    )
}

/// klamp in front of a broker, and a tap behind klamp.
struct Rig {
    klamp: Klamp,
    tap: Tap,
    directory: PathBuf,
}

impl Rig {
    fn start(kafka: &Kafka, on: &str) -> Self {
        let broker = kafka.broker();
        let tap = Tap::start(place::free_address(), broker.sasl_upstream);
        let directory = place::room("captures");
        let flag = format!("--capture-dir={}", directory.display());
        let on = format!("--capture-on={on}");
        let klamp = Klamp::between(
            &[(broker.sasl_klamp, tap.address())],
            &[&super::LONG[..], &[&on, &flag, "--log-level=trace"]].concat(),
        );
        Self {
            klamp,
            tap,
            directory,
        }
    }

    /// Takes what klamp told, once so many captures are there, and ends it.
    #[track_caller]
    fn stop(self, captures: usize, told: &mut Told) -> Overheard {
        self.klamp.scrape_until("all files are written", |_| {
            let all = self.klamp.captures();
            all.len() == captures && all.iter().all(|it| it["file"].is_string())
        });
        told.add_pages(&self.klamp);
        let log = self.klamp.process().err();
        self.klamp.stop();
        told.add("the log".to_owned(), log);
        told.add_files(&self.directory);
        Overheard::of(&self.tap.talks())
    }

    /// The same where all connections have been captured: captures must have each exchange that could tell
    /// a secret, for nobody finds anything in what has not been kept.
    #[track_caller]
    fn stop_with_all(self, connections: usize, told: &mut Told) -> Overheard {
        let directory = self.directory.clone();
        let overheard = self.stop(connections, told);
        let captured = asked(&directory);
        for api in APIS {
            let count = |of: &BTreeMap<i16, usize>| of.get(&api).copied().unwrap_or(0);
            assert_eq!(count(&captured), count(&overheard.asked), "API {api}");
        }
        overheard
    }
}

/// How often the captures of a directory have which API, both messages of it.
fn asked(directory: &Path) -> BTreeMap<i16, usize> {
    let mut asked = BTreeMap::new();
    for file in std::fs::read_dir(directory).expect("klamp wrote there") {
        for exchange in exchanges(&file.expect("it is there").path(), &[]) {
            assert!(exchange["request"].is_object(), "{exchange}");
            assert!(exchange["response"].is_object(), "{exchange}");
            let key = exchange["requestHeader"]["requestApiKey"].as_i64();
            let key = key.and_then(|key| i16::try_from(key).ok());
            *asked.entry(key.expect("it has a key")).or_default() += 1;
        }
    }
    asked
}

/// The properties of a client that authenticates so.
fn properties(mechanism: &str, user: &str, password: &str) -> PathBuf {
    let module = match mechanism {
        "PLAIN" => "plain.PlainLoginModule",
        _ => "scram.ScramLoginModule",
    };
    let file = place::room("client").join("client.properties");
    let text = format!(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config=\
         org.apache.kafka.common.security.{module} required username=\"{user}\" password=\"{password}\";\n"
    );
    std::fs::write(&file, text).expect("a room can be written to");
    file
}

/// The program whose connections stay open until the file is there.
fn program(kafka: &Kafka, hold: &Path) -> Process {
    let bootstrap = kafka.broker().sasl_klamp.to_string();
    let (password, hold) = (
        password(),
        hold.to_str().expect("cargo's folders are UTF-8"),
    );
    let arguments = [&bootstrap, USER, &password, WORD, NUMBER, hold];
    let mut process = java::start_program(kafka.version(), "Secrets.java", &arguments);
    wait::until_holds(PATIENCE, "all has been said", || {
        if let Some(status) = process.ended() {
            panic!("it ended: {status}:\n{}", process.last_words());
        }
        process.out().contains("ready")
    });
    process
}

/// Kafka's own tools, as an operator calls them.
struct Tools<'a> {
    kafka: &'a Kafka,
    bootstrap: String,
    config: String,
}

impl<'a> Tools<'a> {
    fn of(kafka: &'a Kafka) -> Self {
        let config = properties("PLAIN", USER, &password());
        Self {
            kafka,
            bootstrap: kafka.broker().sasl_klamp.to_string(),
            config: config.display().to_string(),
        }
    }

    fn arguments<'b>(&'b self, config: &'b str, arguments: &[&'b str]) -> Vec<&'b str> {
        let to = [
            "--bootstrap-server",
            &self.bootstrap,
            "--command-config",
            config,
        ];
        [&to, arguments].concat()
    }

    #[track_caller]
    fn run(&self, main: &str, arguments: &[&str]) -> String {
        java::tool(
            self.kafka.version(),
            main,
            &self.arguments(&self.config, arguments),
        )
    }

    #[track_caller]
    fn fail(&self, main: &str, arguments: &[&str], expected: &str) {
        let arguments = self.arguments(&self.config, arguments);
        let said = java::failing_tool(self.kafka.version(), main, &arguments, "");
        assert!(said.contains(expected), "{said}");
    }

    fn configs(&self) -> &'static str {
        match self.kafka.version() {
            V4_3_1 => "kafka.admin.ConfigCommand",
            _ => "org.apache.kafka.tools.ConfigCommand",
        }
    }

    /// Makes a token, renews it and lists it; what it is known by, in Base64.
    #[track_caller]
    fn token(&self) -> String {
        let made = self.run(
            DELEGATION_TOKENS,
            &["--create", "--max-life-time-period", "-1"],
        );
        let owner = format!("User:{USER}");
        // (TOKENID, HMAC, OWNER, ...)
        let row = made.lines().find(|line| line.contains(&owner));
        let hmac = row.and_then(|row| row.split_whitespace().nth(1));
        let hmac = hmac
            .unwrap_or_else(|| panic!("no token: {made}"))
            .to_owned();
        let renew = ["--renew", "--renew-time-period", "-1", "--hmac", &hmac];
        self.run(DELEGATION_TOKENS, &renew);
        let described = self.run(
            DELEGATION_TOKENS,
            &["--describe", "--owner-principal", &owner],
        );
        assert!(described.contains(&hmac), "{described}");
        hmac
    }

    fn expiry(hmac: &str) -> [&str; 5] {
        ["--expire", "--expiry-time-period", "-1", "--hmac", hmac]
    }

    /// Writes records as a user of SCRAM.
    #[track_caller]
    fn produce(&self, mechanism: &str, user: &str, password: &str) {
        let config = properties(mechanism, user, password);
        let config = config.to_str().expect("cargo's folders are UTF-8");
        let arguments = self.arguments(config, &["--topic", "secured"]);
        let (main, input) = (
            "org.apache.kafka.tools.ConsoleProducer",
            format!("{WORD}\n"),
        );
        java::tool_fed(self.kafka.version(), main, &arguments, &input);
    }
}

fn nothing_that_kafkas_own_clients_keep_secret_is_told_anywhere(version: Version) {
    let kafka = kafka(version);
    let mut told = Told::default();

    // By hand: each connection of a program that has said all it had to say.
    let rig = Rig::start(&kafka, "BEYOND");
    let hold = place::room("hold").join("go");
    let program = program(&kafka, &hold);
    let open = rig.klamp.debug_page("/connections");
    let open = open["connections"].as_array().expect("it is a list");
    for connection in open {
        let peer = connection["peer"].as_str().expect("it has a peer");
        rig.klamp.capture_by_hand(peer.parse().expect("an address"));
    }
    std::fs::write(&hold, "").expect("a room can be written to");
    java::finish(program);
    assert!(open.len() >= 8, "four clients, each with two: {open:?}");
    let by_hand = rig.stop_with_all(open.len(), &mut told);

    // By a slow answer, as each of them is here: tools, whose connections are short.
    let tools = Tools::of(&kafka);
    let rig = Rig::start(&kafka, "slow=1ns");
    let credential = format!("SCRAM-SHA-512=[iterations=8192,password={WORD}-by-tool]");
    let users = ["--alter", "--entity-type", "users", "--entity-name", "dave"];
    tools.run(
        tools.configs(),
        &[&users[..], &["--add-config", &credential]].concat(),
    );
    let hmac = tools.token();
    tools.produce("SCRAM-SHA-512", "dave", &format!("{WORD}-by-tool"));
    tools.run(DELEGATION_TOKENS, &Tools::expiry(&hmac));
    let connections = rig.tap.talks().len();
    let slow = rig.stop_with_all(connections, &mut told);

    // By the codes that come of what is refused.
    let rig = Rig::start(
        &kafka,
        "DELEGATION_TOKEN_NOT_FOUND,INVALID_CONFIG,SASL_AUTHENTICATION_FAILED",
    );
    tools.fail(
        DELEGATION_TOKENS,
        &Tools::expiry(&hmac),
        "DelegationTokenNotFound",
    );
    let topic = [
        "--alter",
        "--entity-type",
        "topics",
        "--entity-name",
        "secured",
    ];
    let refused = format!("retention.ms={WORD}-refused");
    let alter = [&topic[..], &["--add-config", &refused]].concat();
    tools.fail(tools.configs(), &alter, "retention.ms");
    tools.produce("SCRAM-SHA-256", "dave", &format!("{WORD}-wrong"));
    for (name, api) in [
        ("DELEGATION_TOKEN_NOT_FOUND (62)", "ExpireDelegationToken"),
        ("INVALID_CONFIG (40)", "IncrementalAlterConfigs"),
        ("SASL_AUTHENTICATION_FAILED (58)", "SaslAuthenticate"),
    ] {
        let reason = format!("{name} in {api}");
        rig.klamp
            .captured(Duration::from_secs(10), &reason, |capture| {
                capture["reason"] == reason
            });
    }
    let captures = rig.klamp.captures().len();
    let codes = rig.stop(captures, &mut told);

    let mut kinds = BTreeMap::new();
    for overheard in [&by_hand, &slow, &codes] {
        for (kind, count) in overheard.kinds() {
            *kinds.entry(kind).or_insert(0) += count;
        }
        told.assert_without(&overheard.forms());
    }
    eprintln!(
        "{kinds:?}, all of which were looked for in {} bytes",
        told.bytes()
    );
    // Each of them twice: as bytes, and as they are written.
    for (kind, least) in [
        ("password", 1),
        ("nonce", 8),
        ("salt", 6),
        ("client proof", 8),
        ("server signature", 8),
        ("salt of a credential", 6),
        ("salted password", 6),
        ("HMAC", 6),
        ("HMAC to renew", 4),
        ("HMAC to expire", 4),
    ] {
        let count = kinds.get(kind).copied().unwrap_or(0);
        assert!(count >= least, "{count} of {kind}: {kinds:?}");
    }
    for (secret, piece) in [(WORD, 6), (NUMBER, NUMBER.len())] {
        let needle = Needle::of(secret, piece);
        assert!(needle.count(&by_hand.wire) >= 4, "it is on the wire");
        told.assert_without(needle.forms());
    }
}

#[test]
fn nothing_that_clients_of_4_3_1_keep_secret_is_told_anywhere() {
    nothing_that_kafkas_own_clients_keep_secret_is_told_anywhere(V4_3_1);
}

#[test]
fn nothing_that_clients_of_4_4_0_keep_secret_is_told_anywhere() {
    nothing_that_kafkas_own_clients_keep_secret_is_told_anywhere(V4_4_0);
}
