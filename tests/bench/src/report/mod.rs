//! The report: `RESULTS.md` and its plots, from samples alone, so that it can be written again from
//! kept ones.
//!
//! The trap: on a machine that others use, medians move. So every figure has its spread, every ratio
//! also that of runs of the same round, and figures from runs that were disturbed are marked.

mod figures;
mod limits;
mod plots;
mod svg;
mod tables;

use crate::sample::{Count, Facts, Sample};
use figures::Figures;
use std::fs;
use std::io;
use std::path::Path;

/// Writes `RESULTS.md` and its plots into the folder `out`. A plot for which nothing was measured is
/// removed.
///
/// # Errors
/// If it cannot be written to.
pub fn write(samples: &[Sample], counts: &[Count], facts: &Facts, out: &Path) -> io::Result<()> {
    fs::create_dir_all(out)?;
    let figures = Figures::of(samples);
    let mut text = HEAD.to_owned();
    text += &tables::preamble(&figures, facts);
    text += "\n## What is wanted, and what was measured\n\n";
    text += &limits::overview(&figures);
    for (file, heading, plot) in [
        ("ratios.svg", "CPU by load", plots::ratios(&figures)),
        (
            "scaling.svg",
            "CPU by connections",
            plots::scaling(&figures),
        ),
    ] {
        let path = out.join(file);
        if let Some(plot) = plot {
            fs::write(path, plot)?;
            text += &format!("\n## {heading}\n\n![{heading}]({file})\n");
        } else if path.exists() {
            fs::remove_file(path)?;
        }
    }
    if !counts.is_empty() {
        text += "\n## System calls and instructions\n\n";
        text += &tables::counts(counts);
    }
    text += "\n## Load by load\n";
    text += &tables::loads(&figures);
    fs::write(out.join("RESULTS.md"), text)
}

const HEAD: &str = "\
# What klamp costs

Written by `tests/bench/run`; README.md beside it says what the loads and contenders are. CPU is that
of the proxy's processes, user and system. A figure is the median of all rounds (least..most). A ratio
is that of the medians; behind it the median of the rounds' own ratios (least..most), each of two runs
of one round. The better bare pump is the one of `copy` and `splice` with the lower median CPU in that
load. Added delay is that of the round trip less the direct one of the same round. A dash is what was
not measured.

";

#[cfg(test)]
mod tests;
