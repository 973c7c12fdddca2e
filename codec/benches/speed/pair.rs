//! The same work by two hands, and how it is measured.

use crate::instructions::{Side, count};
use criterion::Criterion;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Does the work so many times.
type Work = Rc<dyn Fn(u64)>;

/// One piece of work, as klamp does it and as `kafka-protocol` does.
#[derive(Clone)]
pub struct Pair {
    pub name: String,
    pub klamp: Work,
    pub other: Work,
    /// How many messages the work is for.
    pub messages: u64,
    /// The ratio that is wanted.
    pub wanted: f64,
}

pub const HEAD: &str = "\
per message                                                            klamp ns   other ns  ratio  wanted | instructions      other  ratio";

/// What came of it, per message.
pub struct Row {
    name: String,
    wanted: f64,
    nanoseconds: [f64; 2],
    instructions: Option<[f64; 2]>,
}

impl Pair {
    pub fn work(&self, side: Side) -> &Work {
        match side {
            Side::Klamp => &self.klamp,
            Side::Other => &self.other,
        }
    }

    pub fn measure(&self, criterion: &mut Criterion) -> Row {
        let mut group = criterion.benchmark_group(&self.name);
        group.sample_size(30);
        group.warm_up_time(Duration::from_millis(300));
        group.measurement_time(Duration::from_secs(1));
        let nanoseconds = Side::BOTH.map(|side| {
            let spans = RefCell::new(Vec::new());
            let work = self.work(side);
            group.bench_function(side.name(), |bencher| {
                bencher.iter_custom(|times| in_spans(work, times, &mut spans.borrow_mut()));
            });
            self.per_message(median(spans.into_inner()))
        });
        group.finish();
        let instructions = Side::BOTH.map(|side| count(self, side));
        Row {
            name: self.name.clone(),
            wanted: self.wanted,
            nanoseconds,
            instructions: match instructions {
                [Some(klamp), Some(other)] => Some([klamp, other].map(|n| self.per_message(n))),
                _ => None,
            },
        }
    }

    fn per_message(&self, n: f64) -> f64 {
        n / self.messages as f64
    }
}

/// Does the work so many times, and notes the nanoseconds that it takes once, for each span of time that
/// is so short that most of them pass before a busy machine takes the core away.
fn in_spans(work: &Work, times: u64, spans: &mut Vec<f64>) -> Duration {
    const SPAN: Duration = Duration::from_micros(100);
    let mut total = Duration::ZERO;
    let (mut done, mut next) = (0, 1);
    while done < times {
        let start = Instant::now();
        work(next);
        let taken = start.elapsed();
        total += taken;
        done += next;
        if taken < SPAN / 2 {
            next *= 2;
        } else {
            spans.push(taken.as_nanos() as f64 / next as f64);
        }
        next = next.min(times - done).max(1);
    }
    total
}

fn median(mut spans: Vec<f64>) -> f64 {
    spans.sort_by(f64::total_cmp);
    spans.get(spans.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, wanted, .. } = self;
        let [klamp, other] = self.nanoseconds;
        let ratio = other / klamp;
        write!(
            f,
            "{name:68} {klamp:10.1} {other:10.1} {ratio:6.1} {wanted:7.1} | "
        )?;
        match self.instructions {
            Some([klamp, other]) => {
                write!(f, "{klamp:12.0} {other:10.0} {:6.1}", other / klamp)
            }
            None => write!(f, "no valgrind"),
        }
    }
}
