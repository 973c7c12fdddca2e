//! Counts instructions: runs this very program under callgrind, which neither a busy machine nor the
//! lack of hardware counters disturbs. Two runs that differ in how often they do the work leave out
//! what it takes to get there.

use crate::pair::Pair;
use std::env;
use std::process::Command;

/// The argument that makes this program a [`Task`].
const FLAG: &str = "--under-callgrind";

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Klamp,
    Other,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::Klamp, Self::Other];

    pub fn name(self) -> &'static str {
        match self {
            Self::Klamp => "klamp",
            Self::Other => "kafka-protocol",
        }
    }
}

/// What this program does under callgrind.
pub struct Task {
    pair: String,
    side: Side,
    times: u64,
}

impl Task {
    /// As the arguments have it, if they do.
    pub fn given() -> Option<Self> {
        let mut args = env::args().skip_while(|arg| arg != FLAG).skip(1);
        Some(Self {
            pair: args.next()?,
            side: match args.next()? {
                name if name == Side::Klamp.name() => Side::Klamp,
                _ => Side::Other,
            },
            times: args.next()?.parse().ok()?,
        })
    }

    pub fn run(self, pairs: &[Pair]) {
        let pair = pairs.iter().find(|pair| pair.name == self.pair).unwrap();
        pair.work(self.side)(self.times);
    }
}

/// Instructions of doing the work once; `None` without valgrind.
pub fn count(pair: &Pair, side: Side) -> Option<f64> {
    const TIMES: u64 = 10;
    let few = collected(pair, side, TIMES)?;
    let more = collected(pair, side, 2 * TIMES)?;
    Some((more - few) as f64 / TIMES as f64)
}

fn collected(pair: &Pair, side: Side, times: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe().ok()?)
        .args([FLAG, &pair.name, side.name(), &times.to_string()])
        .output()
        .ok()?;
    let told = String::from_utf8_lossy(&output.stderr);
    let (_, collected) = told.split_once("Collected :")?;
    collected.split_whitespace().next()?.parse().ok()
}
