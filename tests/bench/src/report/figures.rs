//! From samples to figures: medians with their spread, and ratios between contenders.
//!
//! The trap: what was not measured must never look like a zero. A figure is an `Option` all the way
//! to the table, and the direct run, which has no proxy, has neither CPU nor memory.

use crate::sample::Sample;

/// The contender that is no proxy at all.
pub(super) const DIRECT: &str = "direct";
/// The bare pumps: they move bytes and look at nothing.
pub(super) const PUMPS: [&str; 2] = ["copy", "splice"];
/// The share of the machine from which on other processes make a sample doubtful.
pub(super) const OTHERS: f64 = 0.05;

/// What a figure tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// The proxy's CPU per unit of work, in ms.
    Cpu,
    /// Share of that CPU spent outside the kernel, in percent.
    User,
    /// Work per second.
    Throughput,
    /// Median round trip less that of the direct run in the same round, in µs.
    P50,
    /// 99th percentile of the round trip, likewise.
    P99,
    /// Resident memory that an idle connection adds, in KiB.
    Idle,
    /// Peak resident memory, in MiB.
    Peak,
    /// Resident memory after the load as a multiple of that before it.
    After,
}

/// What a load's CPU and throughput are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Large frames: CPU per GiB, throughput in MiB/s.
    Bytes,
    /// Small ones: CPU per 100,000 requests, throughput in requests/s.
    Requests,
}

impl Unit {
    /// The unit of a load.
    pub(super) fn of(load: &str) -> Self {
        let large = ["-1m", "-64k"].iter().any(|end| load.ends_with(end));
        if large || load.starts_with("java-") {
            Self::Bytes
        } else {
            Self::Requests
        }
    }
}

impl Measure {
    /// The heading of its column.
    pub(super) fn heading(self, unit: Unit) -> &'static str {
        match (self, unit) {
            (Self::Cpu, Unit::Bytes) => "CPU, ms per GiB",
            (Self::Cpu, Unit::Requests) => "CPU, ms per 100,000 requests",
            (Self::User, _) => "of it in user mode, %",
            (Self::Throughput, Unit::Bytes) => "throughput, MiB/s",
            (Self::Throughput, Unit::Requests) => "throughput, requests/s",
            (Self::P50, _) => "added p50, µs",
            (Self::P99, _) => "added p99, µs",
            (Self::Idle, _) => "memory per idle connection, KiB",
            (Self::Peak, _) => "peak RSS, MiB",
            (Self::After, _) => "RSS after / before",
        }
    }
}

/// The median of some runs, and between what they lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// Other processes took the machine in one of the runs.
    pub(super) doubtful: bool,
}

/// One contender's figure as a multiple of another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    /// Of the two medians.
    pub(super) of_medians: f64,
    /// Of the two runs of each round; nothing if they share no round.
    pub(super) paired: Option<Spread>,
    pub(super) doubtful: bool,
}

/// All samples, and what follows from them.
pub(super) struct Figures<'a> {
    samples: &'a [Sample],
}

/// One run's figure.
#[derive(Clone, Copy)]
struct Run {
    number: u32,
    value: f64,
    doubtful: bool,
}

impl<'a> Figures<'a> {
    pub(super) fn of(samples: &'a [Sample]) -> Self {
        Self { samples }
    }

    /// The loads, in the order in which they were run.
    pub(super) fn loads(&self) -> Vec<&'a str> {
        distinct(self.samples.iter().map(|sample| sample.load.as_str()))
    }

    /// The contenders, in the order in which they were run.
    pub(super) fn contenders(&self) -> Vec<&'a str> {
        distinct(self.samples.iter().map(|sample| sample.contender.as_str()))
    }

    /// How many rounds there were.
    pub(super) fn rounds(&self) -> usize {
        let mut rounds: Vec<u32> = self.samples.iter().map(|sample| sample.run).collect();
        rounds.sort_unstable();
        rounds.dedup();
        rounds.len()
    }

    /// How many samples there are, and in how many of them other processes took the machine.
    pub(super) fn doubtful(&self) -> (usize, usize) {
        let doubtful = self.samples.iter().filter(|sample| is_doubtful(sample));
        (self.samples.len(), doubtful.count())
    }

    /// The median and spread of a measure.
    pub(super) fn spread(&self, contender: &str, load: &str, measure: Measure) -> Option<Spread> {
        Spread::of(&self.runs(contender, load, measure))
    }

    /// A contender's measure as a multiple of that of `base`.
    pub(super) fn ratio(
        &self,
        contender: &str,
        base: &str,
        load: &str,
        measure: Measure,
    ) -> Option<Ratio> {
        let (own, other) = (
            self.runs(contender, load, measure),
            self.runs(base, load, measure),
        );
        let (median, base_median) = (Spread::of(&own)?, Spread::of(&other)?);
        let pairs: Vec<Run> = own
            .iter()
            .filter_map(|run| {
                let base = other.iter().find(|base| base.number == run.number)?;
                Some(Run {
                    value: quotient(run.value, base.value)?,
                    doubtful: run.doubtful || base.doubtful,
                    ..*run
                })
            })
            .collect();
        Some(Ratio {
            of_medians: quotient(median.median, base_median.median)?,
            paired: Spread::of(&pairs),
            doubtful: median.doubtful || base_median.doubtful,
        })
    }

    /// The bare pump that took less CPU for this load.
    pub(super) fn better_pump(&self, load: &str) -> Option<&'static str> {
        let cpu = |pump: &str| Some(self.spread(pump, load, Measure::Cpu)?.median);
        let measured = PUMPS
            .into_iter()
            .filter_map(|pump| Some((pump, cpu(pump)?)));
        measured
            .min_by(|(_, one), (_, other)| one.total_cmp(other))
            .map(|(pump, _)| pump)
    }

    /// CPU per unit of work in the `scale-` loads, by their number of connections, ascending.
    pub(super) fn scaling(&self, contender: &str) -> Vec<(u32, Spread)> {
        let mut costs: Vec<(u32, Spread)> = self
            .loads()
            .into_iter()
            .filter_map(|load| {
                let connections = load.strip_prefix("scale-")?.parse().ok()?;
                Some((connections, self.spread(contender, load, Measure::Cpu)?))
            })
            .collect();
        costs.sort_by_key(|(connections, _)| *connections);
        costs
    }

    fn runs(&self, contender: &str, load: &str, measure: Measure) -> Vec<Run> {
        self.samples
            .iter()
            .filter(|sample| sample.contender == contender && sample.load == load)
            .filter_map(|sample| {
                Some(Run {
                    number: sample.run,
                    value: self.value(sample, measure)?,
                    doubtful: is_doubtful(sample),
                })
            })
            .collect()
    }

    fn value(&self, sample: &Sample, measure: Measure) -> Option<f64> {
        let proxied = sample.contender != DIRECT;
        let work = match Unit::of(&sample.load) {
            Unit::Bytes => count(sample.bytes) / count(1 << 30),
            Unit::Requests => count(sample.requests) / 100_000.0,
        };
        let direct = || {
            self.samples.iter().find(|direct| {
                direct.contender == DIRECT
                    && direct.load == sample.load
                    && direct.run == sample.run
                    && proxied
            })
        };
        match measure {
            Measure::Cpu if proxied => quotient(millis(sample.cpu), work),
            Measure::User if proxied => {
                quotient(millis(sample.user), millis(sample.user + sample.system))
                    .map(|share| share * 100.0)
            }
            Measure::Throughput if work > 0.0 => {
                let work = match Unit::of(&sample.load) {
                    Unit::Bytes => work * 1024.0,
                    Unit::Requests => count(sample.requests),
                };
                quotient(work, sample.elapsed.as_secs_f64())
            }
            Measure::P50 => Some((millis(sample.p50?) - millis(direct()?.p50?)) * 1000.0),
            Measure::P99 => Some((millis(sample.p99?) - millis(direct()?.p99?)) * 1000.0),
            Measure::Idle => Some(sample.idle_rss_per_connection? / 1024.0),
            Measure::Peak if sample.peak_rss > 0 => Some(count(sample.peak_rss) / count(1 << 20)),
            Measure::After => sample.rss_after,
            Measure::Cpu | Measure::User | Measure::Throughput | Measure::Peak => None,
        }
    }
}

impl Spread {
    fn of(runs: &[Run]) -> Option<Self> {
        let mut values: Vec<f64> = runs.iter().map(|run| run.value).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self {
            median,
            min,
            max,
            doubtful: runs.iter().any(|run| run.doubtful),
        })
    }
}

fn is_doubtful(sample: &Sample) -> bool {
    sample.others_cpu > OTHERS
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// Nothing where there is nothing to divide by.
fn quotient(dividend: f64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| dividend / divisor)
}

fn millis(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn count(number: u64) -> f64 {
    number as f64
}
