//! The benchmark's command line.

use clap::{Args, Parser, Subcommand};
use klamp_bench::contender::Contender;
use klamp_bench::load::{self, Load, Traffic};
use klamp_bench::own::Own;
use klamp_bench::pump::{self, How};
use klamp_bench::sample::{Count, Sample};
use klamp_bench::{count, facts, java, report, rivals, rounds};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The files beside a report that it can be made from again.
const SAMPLES: &str = "samples.jsonl";
const COUNTS: &str = "counts.jsonl";

/// What klamp costs, beside bare pumps and other proxies, under the same loads.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run loads through contenders, and report.
    Run(RunArgs),
    /// Report on what was measured before, in several runs together.
    Report {
        /// Folders of reports, with their samples and counts.
        #[arg(required = true)]
        from: Vec<PathBuf>,
        #[command(flatten)]
        place: Place,
    },
    /// Be a proxy that only moves bytes.
    Pump {
        how: How,
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        upstream: SocketAddr,
        #[arg(long, default_value_t = 1)]
        threads: usize,
    },
}

#[derive(Args)]
struct RunArgs {
    /// Rounds. Some loads run in fewer.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Only these loads.
    #[arg(long, value_delimiter = ',')]
    loads: Vec<String>,
    /// Only these contenders.
    #[arg(long, value_delimiter = ',')]
    contenders: Vec<String>,
    /// Further proxies to compare with, as `tests/bench/rivals.example` says.
    #[arg(long)]
    rivals: Option<PathBuf>,
    /// One round of short loads, to see that it works.
    #[arg(long)]
    quick: bool,
    /// Then count system calls and instructions per exchange (needs strace and valgrind). With
    /// `--runs 0` nothing else.
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
struct Place {
    /// Threads of each proxy [default: as many as there are cores]
    #[arg(long)]
    threads: Option<usize>,
    /// Folder for the report.
    #[arg(long)]
    out: PathBuf,
    /// klamp's binary.
    #[arg(long, env = "KLAMP_BIN")]
    klamp: PathBuf,
}

impl Place {
    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cores)
    }
}

fn main() -> ExitCode {
    match start(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("klamp-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Run(args) => run(&args),
        Command::Report { from, place } => {
            let (mut samples, mut counts): (Vec<Sample>, Vec<Count>) = Default::default();
            for folder in from {
                samples.extend(lines(&folder.join(SAMPLES))?);
                counts.extend(lines(&folder.join(COUNTS))?);
            }
            let facts = facts::gather(&place.klamp, place.threads());
            report::write(&samples, &counts, &facts, &place.out)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Pump {
            how,
            listen,
            upstream,
            threads,
        } => {
            pump::run(how, listen, upstream, threads)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run(args: &RunArgs) -> Result<ExitCode, Box<dyn Error>> {
    let limit = raise_descriptors()?;
    let place = &args.place;
    let threads = place.threads();
    fs::create_dir_all(&place.out)?;
    let wanted = |name: &str| {
        let names = &args.contenders;
        names.is_empty() || names.iter().any(|wanted| wanted == name)
    };
    let mut own = Own::all(&place.klamp)?;
    own.retain(|own| wanted(own.name()));
    let mut others = rivals::all();
    let mut further = Vec::new();
    if let Some(file) = &args.rivals {
        let named = rivals::from_file(file)?;
        further.extend(named.iter().map(|rival| rival.name().to_owned()));
        others.extend(named);
    }
    others.retain(|other| wanted(other.name()));
    let mut loads = load::all(args.quick, limit);
    loads.retain(|load| args.loads.is_empty() || args.loads.iter().any(|name| name == load.name));
    check_names(args, &own, &others, &loads)?;

    let logs = place.out.join("logs");
    let facts = facts::gather(&place.klamp, threads);
    for (label, value) in &facts {
        println!("{label}: {value}");
    }
    let mut failures = Vec::new();
    let runs = if args.quick { 1 } else { args.runs };
    let all: Vec<&dyn Contender> = own.iter().map(|own| own as &dyn Contender).collect();
    let all: Vec<&dyn Contender> = all
        .into_iter()
        .chain(others.iter().map(Box::as_ref))
        .collect();
    let mut samples = rounds::run(&all, &loads, runs, threads, &logs, &mut failures);
    let named = |names: &[String], name: &str| names.iter().any(|named| named == name);
    let mut with_broker = java::LOADS.to_vec();
    with_broker.retain(|load| named(&args.loads, load) || (args.loads.is_empty() && !args.quick));
    if runs > 0 && !with_broker.is_empty() {
        let mut all = all.clone();
        all.retain(|contender| {
            let usual = args.contenders.is_empty() && java::CONTENDERS.contains(&contender.name());
            usual || named(&args.contenders, contender.name()) || named(&further, contender.name())
        });
        let plan = java::Plan {
            loads: with_broker,
            rounds: runs.min(3),
            quick: args.quick,
            threads,
            dir: &logs,
        };
        samples.extend(java::run(&all, &plan, &mut failures));
    }
    keep(&place.out.join(SAMPLES), &samples)?;
    let mut counts = Vec::new();
    if args.count {
        // Many connections are slow to trace, and cost no other calls than few.
        loads.retain(|load| {
            let few = load.connections <= 8 || !args.loads.is_empty();
            match load.traffic {
                Traffic::Exchanges { .. } => few,
                Traffic::Churn => true,
                Traffic::Idle(_) => false,
            }
        });
        counts = count::run(&own, &others, &loads, threads, &logs, &mut failures);
    }
    keep(&place.out.join(COUNTS), &counts)?;
    report::write(&samples, &counts, &facts, &place.out)?;
    println!("{}", place.out.join("RESULTS.md").display());
    if failures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} FAILED:\n{}", failures.len(), failures.join("\n"));
    Ok(ExitCode::FAILURE)
}

/// Each a line of JSON.
fn keep<T: Serialize>(file: &Path, all: &[T]) -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    for one in all {
        text.push_str(&serde_json::to_string(one)?);
        text.push('\n');
    }
    Ok(fs::write(file, text)?)
}

/// What [`keep`] has kept.
fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    text.lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// A name that is nowhere would otherwise be a load that nobody misses.
fn check_names(
    args: &RunArgs,
    own: &[Own],
    others: &[Box<dyn Contender>],
    loads: &[Load],
) -> Result<(), String> {
    let mut known: Vec<&str> = own.iter().map(Contender::name).collect();
    known.extend(others.iter().map(|other| other.name()));
    known.extend(loads.iter().map(|load| load.name));
    known.extend(java::LOADS);
    let mut named = args.contenders.iter().chain(&args.loads);
    match named.find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("no contender here and no load is called {name}")),
        None => Ok(()),
    }
}

/// As many as this process may have, for the proxies that it starts as well. Gives how many.
fn raise_descriptors() -> Result<u64, Box<dyn Error>> {
    let mut limit = getrlimit(Resource::Nofile);
    limit = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current.unwrap_or(u64::MAX))
}
