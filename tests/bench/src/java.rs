//! Kafka's own performance tools against a real broker, directly and through each contender.
//!
//! The traps: a client goes on to the address that the broker advertises, so all contenders listen in
//! turn on the one that stands in its metadata, and the direct run takes a listener of its own. And
//! the tool's own time is taken, which leaves out how long a JVM takes to start.

use crate::contender::Contender;
use crate::measure::{Machine, Used, of_ended_children, resident};
use crate::rounds::tell;
use crate::sample::Sample;
use klamp_tests::java;
use klamp_tests::kafka::{Kafka, V4_4_0};
use klamp_tests::process::Process;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The loads' names.
pub const LOADS: [&str; 2] = ["java-produce", "java-consume"];

/// Those who run them if not said otherwise: each takes its time.
pub const CONTENDERS: [&str; 4] = ["direct", "copy", "klamp", "haproxy"];

/// Bytes of a record's value.
const RECORD: u64 = 1_000;
/// Records of a run, and of a quick one.
const RECORDS: u64 = 1_000_000;
const FEW: u64 = 20_000;
/// Partitions of each topic.
const PARTITIONS: i32 = 4;
/// How long a tool may run.
const PATIENCE: Duration = Duration::from_secs(120);
/// What is consumed, by everybody.
const CONSUMED: &str = "consumed";

/// What is to be run.
pub struct Plan<'a> {
    /// Of [`LOADS`].
    pub loads: Vec<&'static str>,
    /// How often.
    pub rounds: u32,
    /// With few records, to see that it works.
    pub quick: bool,
    /// Of each proxy.
    pub threads: usize,
    /// Where logs go.
    pub dir: &'a Path,
}

/// Boots a broker and runs the plan through all contenders in turn. Adds to `failures` what went
/// wrong: such a run gives no sample.
pub fn run(
    contenders: &[&dyn Contender],
    plan: &Plan<'_>,
    failures: &mut Vec<String>,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    let booted = attempt(|| {
        let kafka = Kafka::to_measure(V4_4_0, &[("file.delete.delay.ms", "1000")]);
        let bench = Bench { kafka, plan };
        bench.fill()?;
        Ok(bench)
    });
    let bench = match booted {
        Ok(bench) => bench,
        Err(error) => {
            failures.push(format!("Kafka, for the java loads: {error}"));
            return samples;
        }
    };
    for round in 0..plan.rounds {
        for load in &plan.loads {
            for turn in 0..contenders.len() {
                let contender = contenders[(turn + round as usize) % contenders.len()];
                match attempt(|| bench.sample(contender, load, round)) {
                    Ok(sample) => {
                        tell(&sample);
                        samples.push(sample);
                    }
                    Err(error) => {
                        let text = format!("round {round}, {load}, {}: {error}", contender.name());
                        eprintln!("FAILED: {text}");
                        failures.push(text);
                    }
                }
            }
        }
    }
    samples
}

/// The harness panics where something does not work, as tests do; here others' samples are to be
/// kept.
fn attempt<T>(what: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        Err(io::Error::other(said.unwrap_or_else(|| "a panic".into())))
    })
}

/// A broker with something to consume.
struct Bench<'a> {
    kafka: Kafka,
    plan: &'a Plan<'a>,
}

impl Bench<'_> {
    fn records(&self) -> u64 {
        if self.plan.quick { FEW } else { RECORDS }
    }

    fn fill(&self) -> io::Result<()> {
        self.kafka.create_topic(CONSUMED, PARTITIONS);
        let dir = self.plan.dir.join("kafka");
        fs::create_dir_all(&dir)?;
        self.produce(self.kafka.broker().direct, CONSUMED, &dir)?;
        Ok(())
    }

    fn sample(&self, contender: &dyn Contender, load: &str, round: u32) -> io::Result<Sample> {
        let dir = self.plan.dir.join(contender.name()).join(load);
        fs::create_dir_all(&dir)?;
        let broker = self.kafka.broker();
        let running = contender.start(broker.klamp, broker.upstream, self.plan.threads, &dir)?;
        let pids = running.pids();
        let at = if pids.is_empty() {
            broker.direct
        } else {
            broker.klamp
        };
        let topic = format!("{load}-{round}-{}", contender.name());
        let produces = load == "java-produce";
        if produces {
            self.kafka.create_topic(&topic, PARTITIONS);
        }
        let ours = [std::process::id(), broker.pid()];
        let begin = || io::Result::Ok((Used::by(&pids)?, Used::by(&ours)?, of_ended_children()?));
        let (before, machine) = (begin()?, Machine::now()?);
        let elapsed = if produces {
            self.produce(at, &topic, &dir)?
        } else {
            self.consume(at, &dir)?
        };
        let (now, since) = (begin()?, Machine::now()?);
        let used = now.0.since(before.0);
        let known = used.cpu() + now.1.since(before.1).cpu() + (now.2 - before.2);
        let (_, peak_rss) = resident(&pids)?;
        if produces {
            self.kafka.delete_topic(&topic);
        }
        Ok(Sample {
            contender: contender.name().to_owned(),
            load: load.to_owned(),
            run: round,
            cpu: used.cpu(),
            user: used.user,
            system: used.system,
            bytes: self.records() * RECORD,
            requests: self.records(),
            elapsed,
            p50: None,
            p99: None,
            peak_rss,
            idle_rss_per_connection: None,
            rss_after: None,
            connections: 2,
            others_cpu: since.others_since(machine, known),
        })
    }

    /// Produces all records, as fast as it goes, and gives how long that took.
    fn produce(&self, at: SocketAddr, topic: &str, dir: &Path) -> io::Result<Duration> {
        let (records, size) = (self.records().to_string(), RECORD.to_string());
        let out = tool(
            "org.apache.kafka.tools.ProducerPerformance",
            &[
                "--bootstrap-server",
                &at.to_string(),
                "--topic",
                topic,
                "--num-records",
                &records,
                "--record-size",
                &size,
                "--throughput",
                "-1",
            ],
            dir,
        )?;
        let rate = produced(&out, self.records());
        let rate = rate.ok_or_else(|| io::Error::other(format!("not all was produced: {out}")))?;
        Ok(Duration::from_secs_f64(self.records() as f64 / rate))
    }

    /// Consumes all records, and gives how long that took without joining the group.
    fn consume(&self, at: SocketAddr, dir: &Path) -> io::Result<Duration> {
        let records = self.records().to_string();
        let out = tool(
            "org.apache.kafka.tools.ConsumerPerformance",
            &[
                "--bootstrap-server",
                &at.to_string(),
                "--topic",
                CONSUMED,
                "--num-records",
                &records,
                "--hide-header",
            ],
            dir,
        )?;
        consumed(&out, self.records())
            .ok_or_else(|| io::Error::other(format!("not all was consumed: {out}")))
    }
}

/// Runs a tool to its end and returns what it printed.
fn tool(main: &str, arguments: &[&str], dir: &Path) -> io::Result<String> {
    let mut command = java::steady(V4_4_0);
    command.arg(main).args(arguments);
    let mut process = Process::spawn(main, command, Stdio::null(), dir, None);
    let status = process.wait(PATIENCE);
    if status.success() {
        return Ok(process.out());
    }
    let words = process.last_words();
    Err(io::Error::other(format!("{main}: {status}\n{words}")))
}

/// Records per second, from the last line of kafka-producer-perf-test: `1000 records sent, 12.3
/// records/sec (...)`.
fn produced(out: &str, records: u64) -> Option<f64> {
    let line = out.lines().rfind(|line| line.contains(" records sent, "))?;
    let (sent, rest) = line.split_once(" records sent, ")?;
    let (rate, _) = rest.split_once(" records/sec")?;
    let all = sent.trim().parse() == Ok(records);
    rate.parse().ok().filter(|rate| all && *rate > 0.0)
}

/// Time from the columns of kafka-consumer-perf-test: start, end, MB, MB/s, records, records/s, ms of
/// rebalancing, ms of fetching, ...
fn consumed(out: &str, records: u64) -> Option<Duration> {
    let line = out.lines().rfind(|line| line.matches(',').count() == 9)?;
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    let all = columns[4].parse::<u64>().ok()? >= records;
    let fetching = columns[7].parse().ok()?;
    (all && fetching > 0).then(|| Duration::from_millis(fetching))
}

#[cfg(test)]
mod tests {
    use super::{consumed, produced};
    use std::time::Duration;

    #[test]
    fn what_the_tools_print_counts_only_when_it_is_all() {
        let last = "9 records sent, 4.0 records/sec (1 MB/sec), 3 ms avg latency.\n\
                    20 records sent, 2.5 records/sec (1 MB/sec), 3 ms avg latency, 4 ms max.\n";
        assert_eq!(produced(last, 20), Some(2.5));
        assert_eq!(produced(last, 21), None);
        let columns = "2026-01-01 10:00:00:000, 2026-01-01 10:00:02:000, 19.1, 9.5, 20, 10.0, \
                       500, 1500, 12.7, 13.3\n";
        assert_eq!(consumed(columns, 20), Some(Duration::from_millis(1500)));
        assert_eq!(consumed(columns, 21), None);
    }
}
