//! One run of one load through one contender, in a process of its own.

use crate::contender::{Contender, Running};
use crate::frames::Conversation;
use crate::load::{Load, Traffic};
use crate::measure::{Machine, Used, resident};
use crate::sample::Sample;
use crate::sink::Sink;
use crate::source::{Exchanged, Source, churn};
use klamp_tests::place;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Exchanges that warm a contender up.
const WARM: u64 = 2;

/// How long closed connections may take to be gone from a proxy.
const SETTLE: Duration = Duration::from_millis(1_000);

/// A contender between source and sink, warm.
pub struct Trial {
    running: Running,
    sink: Sink,
    listen: SocketAddr,
    conversation: Conversation,
}

impl Trial {
    /// Starts sink and contender, and sends some requests through.
    ///
    /// # Errors
    /// If the contender does not start, or does not answer.
    pub fn start(
        contender: &dyn Contender,
        load: &Load,
        threads: usize,
        dir: &Path,
    ) -> io::Result<Self> {
        let dir = dir.join(contender.name()).join(load.name);
        fs::create_dir_all(&dir)?;
        let mut listen = place::free_address();
        let conversation = load.conversation().advertised(listen);
        let sink = Sink::start(conversation.clone())?;
        let running = contender.start(listen, sink.address(), threads, &dir)?;
        if running.pids().is_empty() {
            listen = sink.address();
        }
        Source::open(listen, 1, true, &conversation)?.exchange(WARM, 1)?;
        // The proxy has heard of the end.
        thread::sleep(Duration::from_millis(20));
        Ok(Self {
            running,
            sink,
            listen,
            conversation,
        })
    }

    /// The contender's processes.
    pub fn pids(&self) -> Vec<u32> {
        self.running.pids()
    }

    /// Opens the load's connections, where it has some that stay.
    ///
    /// # Errors
    /// If a right answer does not come in time.
    pub fn prepare(&self, load: &Load) -> io::Result<Work<'_>> {
        let open =
            |metadata| Source::open(self.listen, load.connections, metadata, &self.conversation);
        Ok(match load.traffic {
            Traffic::Exchanges { window, .. } => Work::Exchanges(open(true)?, window),
            Traffic::Idle(time) => Work::Idle(open(false)?, time),
            Traffic::Churn => Work::Churn(self.listen, &self.conversation),
        })
    }

    /// Ends the sink, and checks that it saw `requests` of the load and nothing else.
    ///
    /// # Errors
    /// If that is not so.
    pub fn finish(self, requests: u64) -> io::Result<()> {
        // Those that warmed it up.
        let answered = self.sink.answered() - WARM;
        self.sink.finish()?;
        if answered != requests {
            let text = format!("the sink had {answered} requests, not {requests}");
            return Err(io::Error::other(text));
        }
        Ok(())
    }

    /// The same, after the contender has been asked to end: gives what it wrote to standard error.
    ///
    /// # Errors
    /// If the sink saw something else.
    pub fn stop(mut self, requests: u64) -> io::Result<String> {
        let words = std::mem::replace(&mut self.running, Running::nothing()).stop();
        self.finish(requests)?;
        Ok(words)
    }
}

/// A load that can begin. The connections stay open until it is dropped.
pub enum Work<'a> {
    /// On these connections, with so many requests waiting at a time.
    Exchanges(Source<'a>, u64),
    /// With these connections, for so long.
    Idle(Source<'a>, Duration),
    /// With a connection for each exchange.
    Churn(SocketAddr, &'a Conversation),
}

impl Work<'_> {
    /// Does it, with so many exchanges.
    ///
    /// # Errors
    /// If a right answer does not come in time.
    pub fn run(&mut self, exchanges: u64) -> io::Result<Exchanged> {
        let start = Instant::now();
        let bytes = match self {
            Self::Exchanges(source, window) => return source.exchange(exchanges, *window),
            Self::Idle(_, time) => {
                thread::sleep(*time);
                0
            }
            Self::Churn(address, conversation) => churn(*address, exchanges, conversation)?,
        };
        Ok(Exchanged {
            bytes,
            elapsed: start.elapsed(),
            round_trips: Vec::new(),
        })
    }
}

/// Runs it.
///
/// # Errors
/// If not every request got its right answer, or the contender ended.
pub fn run(
    contender: &dyn Contender,
    load: &Load,
    round: u32,
    threads: usize,
    dir: &Path,
) -> io::Result<Sample> {
    let trial = Trial::start(contender, load, threads, dir)?;
    let pids = trial.pids();
    let me = [std::process::id()];
    let (at_rest, _) = resident(&pids)?;
    let mut work = trial.prepare(load)?;
    let mut idle_rss_per_connection = None;
    let mut rss_after = None;
    let idle = matches!(load.traffic, Traffic::Idle(_)) && !pids.is_empty();
    if idle {
        let added = resident(&pids)?.0.saturating_sub(at_rest) as f64;
        idle_rss_per_connection = Some(added / f64::from(load.connections));
    }
    let (used, own, machine) = (Used::by(&pids)?, Used::by(&me)?, Machine::now()?);
    let exchanged = work.run(load.requests())?;
    let used_now = Used::by(&pids)?.since(used);
    let ours = used_now.cpu() + Used::by(&me)?.since(own).cpu();
    let others_cpu = Machine::now()?.others_since(machine, ours);
    drop(work);
    if idle {
        thread::sleep(SETTLE);
        rss_after = Some(resident(&pids)?.0 as f64 / at_rest as f64);
    }
    let (_, peak_rss) = resident(&pids)?;
    let percentile = |share: f64| {
        let last = exchanged.round_trips.len().checked_sub(1)?;
        Some(exchanged.round_trips[(last as f64 * share) as usize])
    };
    let sample = Sample {
        contender: contender.name().to_owned(),
        load: load.name.to_owned(),
        run: round,
        cpu: used_now.cpu(),
        user: used_now.user,
        system: used_now.system,
        bytes: exchanged.bytes,
        requests: load.requests(),
        elapsed: exchanged.elapsed,
        p50: percentile(0.5),
        p99: percentile(0.99),
        peak_rss,
        idle_rss_per_connection,
        rss_after,
        connections: load.connections,
        others_cpu,
    };
    trial.finish(load.reaches_sink(load.requests()))?;
    Ok(sample)
}
