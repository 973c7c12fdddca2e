//! The benchmark's command line.

use clap::{Args, Parser, Subcommand};
use klamp_bench::contender::Contender;
use klamp_bench::load::{self, Load, Traffic};
use klamp_bench::own::Own;
use klamp_bench::pump::{self, How};
use klamp_bench::sample::Sample;
use klamp_bench::{count, facts, report, rivals, rounds};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Report on samples that were written before.
    Report {
        /// Files of samples, as a run leaves them.
        #[arg(required = true)]
        samples: Vec<PathBuf>,
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
    /// One round of short loads, to see that it works.
    #[arg(long)]
    quick: bool,
    /// Count system calls and instructions per exchange instead of time (needs strace and valgrind).
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
        Command::Report { samples, place } => {
            let mut all: Vec<Sample> = Vec::new();
            for file in samples {
                for line in fs::read_to_string(file)?.lines() {
                    all.push(serde_json::from_str(line)?);
                }
            }
            let facts = facts::gather(&place.klamp, place.threads());
            report::write(&all, &[], &facts, &place.out)?;
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
    let mut others = rivals::installed();
    others.retain(|other| wanted(other.name()));
    let mut loads = load::all(args.quick, limit);
    loads.retain(|load| args.loads.is_empty() || args.loads.iter().any(|name| name == load.name));
    check_names(args, &own, &others, &loads)?;

    let logs = place.out.join("logs");
    let facts = facts::gather(&place.klamp, threads);
    for (label, value) in &facts {
        println!("{label}: {value}");
    }
    if args.count {
        loads.retain(|load| matches!(load.traffic, Traffic::Exchanges { .. }));
        let counts = count::run(&own, &others, &loads, threads, &logs)?;
        report::write(&[], &counts, &facts, &place.out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let runs = if args.quick { 1 } else { args.runs };
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    contenders.extend(
        own.into_iter()
            .map(|own| Box::new(own) as Box<dyn Contender>),
    );
    contenders.extend(others);
    let raw = place.out.join("samples.jsonl");
    let outcome = rounds::run(&contenders, &loads, runs, threads, &logs, &raw)?;
    report::write(&outcome.samples, &[], &facts, &place.out)?;
    if outcome.failures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "{} runs FAILED:\n{}",
        outcome.failures.len(),
        outcome.failures.join("\n")
    );
    Ok(ExitCode::FAILURE)
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
