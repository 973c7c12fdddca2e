//! Real Kafka clusters in KRaft mode, from the jars of a version.
//!
//! Each broker has four listeners: KLAMP and SASL, whose advertised addresses are ports left free
//! for klamp to listen on; DIRECT, which advertises itself and which brokers use among themselves;
//! and CONTROLLER. So one broker serves clients that come through klamp and tests that look past
//! it. The trap: the server fails in silence where slf4j finds no binding, so its exit is watched.

use crate::peer::Client;
use crate::process::Process;
use crate::records::topic_name;
use crate::{java, place, wait};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use kafka_protocol::messages::delete_topics_request::DeleteTopicsRequest;
use kafka_protocol::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// A release of Kafka.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub &'static str);

/// The older of the releases under test.
pub const V4_3_1: Version = Version("4.3.1");
/// The newest release: its clients open with ApiVersions v5.
pub const V4_4_0: Version = Version("4.4.0");

/// The user that the SASL listeners know, and its password.
pub const SASL_USER: (&str, &str) = ("alice", "alice-secret");

/// The id of every cluster that this harness formats.
pub const CLUSTER_ID: &str = "kl4mpKl4mpKl4mpKl4mpKg";

/// A boot takes four seconds alone on a machine and many more beside a build.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running cluster; it ends with this value, or with the process at the latest.
#[derive(Debug)]
pub struct Kafka {
    version: Version,
    brokers: Vec<Broker>,
}

/// One broker of a cluster.
#[derive(Debug)]
pub struct Broker {
    /// The id by which Metadata names it.
    pub node_id: i32,
    /// The plain listener that clients of klamp reach through it: klamp's upstream.
    pub upstream: SocketAddr,
    /// What `upstream` advertises: where klamp has to listen.
    pub klamp: SocketAddr,
    /// The listener that asks for SASL PLAIN: klamp's upstream.
    pub sasl_upstream: SocketAddr,
    /// What `sasl_upstream` advertises: where klamp has to listen.
    pub sasl_klamp: SocketAddr,
    /// The plain listener that advertises itself: past klamp.
    pub direct: SocketAddr,
    controller: SocketAddr,
    process: Option<Process>,
}

impl Kafka {
    /// The one-broker cluster that the tests of a file share; booted by the first that asks.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn shared(version: Version) -> &'static Self {
        static OLDER: OnceLock<Kafka> = OnceLock::new();
        static NEWER: OnceLock<Kafka> = OnceLock::new();
        let shared = if version == V4_3_1 { &OLDER } else { &NEWER };
        let kafka = shared.get_or_init(|| Self::start(version));
        assert_eq!(kafka.version, version, "only two releases are shared");
        // Shown with the output of a test that fails.
        eprintln!("{}", kafka.broker().last_words());
        kafka
    }

    /// Boots a cluster of one broker.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start(version: Version) -> Self {
        Self::start_with(version, 1, &[])
    }

    /// Boots a cluster of `brokers`, numbered from 1, with `overrides` in their properties.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start_with(version: Version, brokers: i32, overrides: &[(&str, &str)]) -> Self {
        Self::start_in(java::command, version, brokers, overrides)
    }

    /// Boots a cluster of one broker that is slower to start and then as fast as it gets.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn to_measure(version: Version, overrides: &[(&str, &str)]) -> Self {
        Self::start_in(java::steady, version, 1, overrides)
    }

    fn start_in(
        java: fn(Version) -> Command,
        version: Version,
        brokers: i32,
        overrides: &[(&str, &str)],
    ) -> Self {
        let mut brokers: Vec<Broker> = (1..=brokers).map(Broker::planned).collect();
        let controller = brokers[0].controller;
        for broker in &mut brokers {
            broker.boot(java(version), version, controller, overrides);
        }
        for broker in &mut brokers {
            broker.await_started();
        }
        Self { version, brokers }
    }

    /// The release that runs.
    pub fn version(&self) -> Version {
        self.version
    }

    /// All brokers, by node id.
    pub fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// The first broker, or the only one.
    pub fn broker(&self) -> &Broker {
        &self.brokers[0]
    }

    /// Stops a broker as an operator does: its partitions move to others first.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn stop_broker(&mut self, node_id: i32) {
        let broker = self
            .brokers
            .iter_mut()
            .find(|broker| broker.node_id == node_id);
        broker.expect("there is such a broker").stop();
    }

    /// Creates a topic, past klamp, and waits until each partition has a leader. Every broker has a
    /// replica of each partition.
    ///
    /// # Panics
    /// If the broker refuses.
    #[track_caller]
    pub fn create_topic(&self, name: &str, partitions: i32) {
        let topic = topic_name(name);
        let replicas = i16::try_from(self.brokers.len()).expect("tests make small clusters");
        let mut client = Client::connect(self.broker().direct);
        let request = CreateTopicsRequest::default()
            .with_timeout_ms(30_000)
            .with_topics(vec![
                CreatableTopic::default()
                    .with_name(topic.clone())
                    .with_num_partitions(partitions)
                    .with_replication_factor(replicas),
            ]);
        let response = client.call(5, &request);
        assert_eq!(
            response.topics[0].error_code, 0,
            "CreateTopics {name}: {response:?}"
        );
        let request = MetadataRequest::default().with_topics(Some(vec![
            MetadataRequestTopic::default().with_name(Some(topic)),
        ]));
        wait::until_holds(PATIENCE, &format!("{name} has leaders"), || {
            let topic = &client.call(9, &request).topics[0];
            topic.partitions.len() == usize::try_from(partitions).expect("not negative")
                && topic
                    .partitions
                    .iter()
                    .all(|partition| partition.error_code == 0)
        });
    }

    /// Deletes a topic, past klamp.
    ///
    /// # Panics
    /// If the broker refuses.
    #[track_caller]
    pub fn delete_topic(&self, name: &str) {
        let request = DeleteTopicsRequest::default()
            .with_timeout_ms(30_000)
            .with_topic_names(vec![topic_name(name)]);
        let response = Client::connect(self.broker().direct).call(5, &request);
        assert_eq!(
            response.responses[0].error_code, 0,
            "DeleteTopics {name}: {response:?}"
        );
    }
}

impl Broker {
    fn planned(node_id: i32) -> Self {
        Self {
            node_id,
            upstream: place::free_address(),
            klamp: place::free_address(),
            sasl_upstream: place::free_address(),
            sasl_klamp: place::free_address(),
            direct: place::free_address(),
            controller: place::free_address(),
            process: None,
        }
    }

    fn boot(
        &mut self,
        mut server: Command,
        version: Version,
        controller: SocketAddr,
        overrides: &[(&str, &str)],
    ) {
        let room = place::room(&format!("kafka-{}-{}", version.0, self.node_id));
        let data = room.join("data");
        let properties = room.join("server.properties");
        std::fs::write(&properties, self.properties(controller, &data, overrides))
            .expect("a room can be written to");

        let file = properties.to_str().expect("cargo's folders are UTF-8");
        let format = ["format", "-t", CLUSTER_ID, "-c", file];
        java::tool(version, "kafka.tools.StorageTool", &format);

        server.arg("kafka.Kafka").arg(&properties);
        let name = format!("Kafka {} broker {}", version.0, self.node_id);
        self.process = Some(Process::spawn(
            &name,
            server,
            Stdio::null(),
            &room,
            Some(&data),
        ));
    }

    fn properties(
        &self,
        controller: SocketAddr,
        data: &Path,
        overrides: &[(&str, &str)],
    ) -> String {
        let Self {
            node_id,
            upstream,
            klamp,
            sasl_upstream,
            sasl_klamp,
            direct,
            ..
        } = self;
        let (roles, own_controller) = if self.controller == controller {
            ("broker,controller", format!(",CONTROLLER://{controller}"))
        } else {
            ("broker", String::new())
        };
        let (user, password) = SASL_USER;
        let mut text = format!(
            "process.roles={roles}
node.id={node_id}
controller.quorum.voters=1@{controller}
controller.listener.names=CONTROLLER
listeners=KLAMP://{upstream},SASL://{sasl_upstream},DIRECT://{direct}{own_controller}
advertised.listeners=KLAMP://{klamp},SASL://{sasl_klamp},DIRECT://{direct}
listener.security.protocol.map=KLAMP:PLAINTEXT,SASL:SASL_PLAINTEXT,DIRECT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=DIRECT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}=\"{password}\";
log.dirs={}
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=3
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
",
            data.display()
        );
        for (name, value) in overrides {
            // A property that stands twice has its last value.
            writeln!(text, "{name}={value}").expect("a string takes all");
        }
        text
    }

    fn await_started(&mut self) {
        let process = self.process.as_mut().expect("it has been booted");
        let mut ended = None;
        wait::until_holds(PATIENCE, "Kafka starts", || {
            ended = process.ended();
            ended.is_some() || process.err().contains("Kafka Server started")
        });
        if let Some(status) = ended {
            panic!("the broker ended: {status}:\n{}", process.last_words());
        }
    }

    /// Its process id.
    ///
    /// # Panics
    /// If it has been stopped.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").pid()
    }

    /// The end of its log and where the rest is, for a panic's message.
    pub fn last_words(&self) -> String {
        self.process
            .as_ref()
            .map(Process::last_words)
            .unwrap_or_default()
    }

    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.stop(PATIENCE);
        }
    }
}
