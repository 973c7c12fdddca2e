//! Rounds: in each, every load through every contender in turn, so that a change of the machine's
//! mood hits all alike. The contender that begins is another one in each round.

use crate::contender::Contender;
use crate::load::Load;
use crate::sample::Sample;
use crate::trial;
use std::path::Path;

/// Runs them all, and adds to `failures` what went wrong: such a run gives no sample.
pub fn run(
    contenders: &[&dyn Contender],
    loads: &[Load],
    rounds: u32,
    threads: usize,
    dir: &Path,
    failures: &mut Vec<String>,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    for round in 0..rounds {
        for load in loads.iter().filter(|load| round < load.rounds) {
            for turn in 0..contenders.len() {
                let contender = contenders[(turn + round as usize) % contenders.len()];
                match trial::run(contender, load, round, threads, dir) {
                    Ok(sample) => {
                        tell(&sample);
                        samples.push(sample);
                    }
                    Err(error) => {
                        let name = contender.name();
                        let text = format!("round {round}, {}, {name}: {error}", load.name);
                        eprintln!("FAILED: {text}");
                        failures.push(text);
                    }
                }
            }
        }
    }
    samples
}

pub(crate) fn tell(sample: &Sample) {
    let per_request = sample.cpu.as_secs_f64() * 1e6 / sample.requests as f64;
    print!(
        "{} {:<12} {:<12} cpu {:>7.1} ms, {per_request:>8.2} us each, {:>6.2} s, peak {:>6.1} MiB",
        sample.run,
        sample.load,
        sample.contender,
        sample.cpu.as_secs_f64() * 1e3,
        sample.elapsed.as_secs_f64(),
        sample.peak_rss as f64 / 1_048_576.0,
    );
    if let (Some(p50), Some(p99)) = (sample.p50, sample.p99) {
        print!(", p50 {p50:.1?}, p99 {p99:.1?}");
    }
    if let (Some(idle), Some(after)) = (sample.idle_rss_per_connection, sample.rss_after) {
        print!(", {idle:.0} B a connection, {after:.2} times the memory afterwards");
    }
    if sample.others_cpu > 0.05 {
        print!(", others took {:.0} %", sample.others_cpu * 100.0);
    }
    println!();
}
