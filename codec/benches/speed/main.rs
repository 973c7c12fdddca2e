//! How much faster the walker and the session are than `kafka-protocol` on the same frames, in one run:
//! criterion measures both sides of each pair in turn, and a table has the medians, their ratio, and,
//! where valgrind is installed, the instructions of both.
//!
//! `cargo bench -p klamp-codec [-- FILTER]`

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a benchmark may fail loudly, and its arithmetic is on its own numbers"
)]

mod edits;
mod frames;
mod instructions;
mod pair;
mod sessions;
mod walks;

use criterion::Criterion;
use pair::Pair;
use std::env;

fn main() {
    let pairs = [walks::pairs(), vec![edits::pair()], sessions::pairs()].concat();
    if let Some(task) = instructions::Task::given() {
        return task.run(&pairs);
    }
    let filter = env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let wanted = |pair: &&Pair| filter.as_ref().is_none_or(|word| pair.name.contains(word));
    let mut criterion = Criterion::default().configure_from_args().without_plots();
    let mut rows = Vec::new();
    for pair in pairs.iter().filter(wanted) {
        rows.push(pair.measure(&mut criterion));
    }
    criterion.final_summary();
    if env::args().any(|arg| arg == "--test") {
        return;
    }
    println!("\n{}", pair::HEAD);
    for row in rows {
        println!("{row}");
    }
}
