//! System calls and instructions per exchange: what tells contenders apart whose times differ by less
//! than they vary.
//!
//! The trap: a traced process is slow, so that more requests wait for it at a time than otherwise, and
//! it needs fewer system calls for each. Only where one request waits at a time is a count exact; the
//! others compare contenders that are slowed down alike.

use crate::contender::Contender;
use crate::load::Load;
use crate::own::Own;
use crate::sample::Count;
use crate::trial::Trial;
use klamp_tests::process::Process;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Exchanges whose system calls are counted: so many that a timer's do not show.
fn traced(load: &Load) -> u64 {
    (load.requests() / 50).clamp(200, 4_000)
}

/// Exchanges that the larger of two runs under valgrind has more.
fn more(load: &Load) -> u64 {
    (load.requests() / 10).clamp(200, 4_000)
}

/// So often instructions are counted, of which the median is told: how many exchanges a read brings, which
/// decides what each takes, varies from run to run by a tenth.
const TIMES: usize = 5;

/// The system calls of an exchange.
///
/// # Errors
/// If strace is not there or may not trace, or the load fails.
pub fn system_calls(
    contender: &dyn Contender,
    load: &Load,
    threads: usize,
    dir: &Path,
) -> io::Result<Vec<(String, f64)>> {
    let traced = traced(load);
    let trial = Trial::start(contender, load, threads, dir)?;
    let mut work = trial.prepare(load)?;
    let pids = trial.pids();
    let dir = dir.join(contender.name()).join(load.name).join("strace");
    fs::create_dir_all(&dir)?;
    let table = dir.join("table");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-c", "-U", "calls,name", "-o"])
        .arg(&table);
    for pid in &pids {
        command.args(["-p", &pid.to_string()]);
    }
    let mut strace = Process::spawn("strace", command, Stdio::null(), &dir, None);
    await_tracer(&pids, &mut strace)?;
    work.run(traced)?;
    strace.signal(Signal::INT);
    strace.wait(Duration::from_secs(10));
    drop(work);
    trial.finish(load.reaches_sink(traced))?;
    let mut calls: Vec<(String, f64)> = read_table(&fs::read_to_string(&table)?)
        .into_iter()
        .map(|(name, count)| (name, count as f64 / traced as f64))
        // A timer's, or one of the moment of attaching.
        .filter(|(_, each)| *each >= 0.005)
        .collect();
    calls.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    Ok(calls)
}

/// Waits until every thread is traced.
fn await_tracer(pids: &[u32], strace: &mut Process) -> io::Result<()> {
    let start = Instant::now();
    let traced = || {
        for pid in pids {
            for task in fs::read_dir(format!("/proc/{pid}/task"))? {
                let status = fs::read_to_string(task?.path().join("status"))?;
                if status.lines().any(|line| line == "TracerPid:\t0") {
                    return Ok(false);
                }
            }
        }
        io::Result::Ok(true)
    };
    while !traced()? {
        if strace.ended().is_some() || start.elapsed() > Duration::from_secs(10) {
            return Err(io::Error::other(strace.last_words()));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What strace counted, by name: its table has a head, a line of dashes above and below, and a sum.
fn read_table(text: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let count = words.next()?.parse().ok()?;
        Some((words.next()?.to_owned(), count))
    });
    rows.filter(|(name, _)| name != "total").collect()
}

/// The user-mode instructions of an exchange, by callgrind: what a larger run took more than a smaller
/// one, the median of several such pairs. `None` for no proxy at all.
///
/// # Errors
/// If valgrind is not there, or the load fails.
pub fn instructions(
    contender: &Own,
    load: &Load,
    threads: usize,
    dir: &Path,
) -> io::Result<Option<f64>> {
    let valgrind = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
    ];
    let Some(contender) = contender.under(valgrind.map(Into::into).to_vec()) else {
        return Ok(None);
    };
    let exchanges = more(load);
    let one = |_| {
        let few = collected(&contender, load, exchanges, threads, dir)?;
        let more = collected(&contender, load, 2 * exchanges, threads, dir)?;
        Ok((more as f64 - few as f64) / exchanges as f64)
    };
    let mut counts = (0..TIMES).map(one).collect::<io::Result<Vec<_>>>()?;
    counts.sort_by(f64::total_cmp);
    Ok(counts.get(TIMES / 2).copied())
}

fn collected(
    contender: &Own,
    load: &Load,
    times: u64,
    threads: usize,
    dir: &Path,
) -> io::Result<u64> {
    let trial = Trial::start(contender, load, threads, dir)?;
    trial.prepare(load)?.run(times)?;
    let told = trial.stop(load.reaches_sink(times))?;
    let collected = told.split_once("Collected :").map(|(_, rest)| rest);
    let number = collected.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("valgrind does not say a number: {told}")))
}

/// Counts for these loads, and adds to `failures` what went wrong.
pub fn run(
    own: &[Own],
    others: &[Box<dyn Contender>],
    loads: &[Load],
    threads: usize,
    dir: &Path,
    failures: &mut Vec<String>,
) -> Vec<Count> {
    let mut counts = Vec::new();
    for load in loads {
        let all = own.iter().map(|own| (own as &dyn Contender, Some(own)));
        let all = all.chain(others.iter().map(|other| (other.as_ref(), None)));
        for (contender, own) in all.filter(|(contender, _)| contender.name() != "direct") {
            match one(contender, own, load, threads, dir) {
                Ok(count) => {
                    tell(&count);
                    counts.push(count);
                }
                Err(error) => {
                    let text = format!("counting {}, {}: {error}", load.name, contender.name());
                    eprintln!("FAILED: {text}");
                    failures.push(text);
                }
            }
        }
    }
    counts
}

fn one(
    contender: &dyn Contender,
    own: Option<&Own>,
    load: &Load,
    threads: usize,
    dir: &Path,
) -> io::Result<Count> {
    Ok(Count {
        contender: contender.name().to_owned(),
        load: load.name.to_owned(),
        system_calls: system_calls(contender, load, threads, dir)?,
        instructions: match own {
            Some(own) => instructions(own, load, threads, dir)?,
            None => None,
        },
    })
}

fn tell(count: &Count) {
    let sum: f64 = count.system_calls.iter().map(|(_, each)| each).sum();
    print!(
        "{:<12} {:<12} {sum:>6.2} system calls",
        count.load, count.contender
    );
    if let Some(instructions) = count.instructions {
        print!(", {instructions:>7.0} instructions");
    }
    for (name, each) in &count.system_calls {
        print!(", {name} {each:.2}");
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_strace_is_read_without_its_sum() {
        let text = "    calls syscall\n--------- ----------------\n     4123 epoll_wait\n       12 write\n--------- ----------------\n     4135 total\n";
        let table = read_table(text);
        assert_eq!(table.len(), 2);
        assert_eq!(table["epoll_wait"], 4123);
    }
}
