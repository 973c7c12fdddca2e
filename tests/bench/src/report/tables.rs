//! The tables of `RESULTS.md`, in Markdown.

use super::figures::{Figures, Measure, OTHERS, Ratio, Spread, Unit};
use crate::sample::{Count, Facts};
use std::fmt::Write;

/// What a cell shows that was not measured.
pub(super) const NOTHING: &str = "—";
/// What stands behind a figure with a run in which other processes took the machine.
const MARK: &str = " \\*";

const MEASURES: [Measure; 8] = [
    Measure::Cpu,
    Measure::User,
    Measure::Throughput,
    Measure::P50,
    Measure::P99,
    Measure::Idle,
    Measure::Peak,
    Measure::After,
];

/// The measures that are compared, and how the columns name them.
const COMPARED: [(Measure, &str); 3] = [
    (Measure::Cpu, "CPU"),
    (Measure::Throughput, "throughput"),
    (Measure::Idle, "idle memory"),
];

/// The other proxy that ratios are given to.
pub(super) const HAPROXY: &str = "haproxy";

/// How it was measured, and whether it can be trusted.
pub(super) fn preamble(figures: &Figures, facts: &Facts) -> String {
    let mut rows: Vec<Vec<String>> = facts
        .iter()
        .map(|(label, value)| vec![label.clone(), value.clone()])
        .collect();
    rows.push(vec!["rounds".to_owned(), figures.rounds().to_string()]);
    let mut text = table(&["what", "is"], &rows);
    let (all, doubtful) = figures.doubtful();
    if doubtful > 0 {
        let share = OTHERS * 100.0;
        let _ = write!(
            text,
            "\n**Other processes took more than {share} % of the machine during {doubtful} of {all} runs. \
             Figures with \\* contain such a run.**\n"
        );
    }
    text
}

/// For each load the figures of all contenders, and their ratios.
pub(super) fn loads(figures: &Figures) -> String {
    let mut text = String::new();
    for load in figures.loads() {
        let _ = write!(text, "\n### {load}\n\n");
        text += &absolute(figures, load);
        text.push('\n');
        text += &ratios(figures, load);
    }
    text
}

fn absolute(figures: &Figures, load: &str) -> String {
    let columns = MEASURES.into_iter().map(|measure| {
        let heading = measure.heading(Unit::of(load)).to_owned();
        let cells = figures.contenders().into_iter().map(|contender| {
            let spread = figures.spread(contender, load, measure);
            spread.map(|spread| spread_cell(&spread))
        });
        (heading, cells.collect())
    });
    by_contender(figures, columns.collect())
}

fn ratios(figures: &Figures, load: &str) -> String {
    let mut bases = Vec::new();
    if let Some(pump) = figures.better_pump(load) {
        bases.push((pump, format!("{pump}, the better pump")));
    }
    bases.push((HAPROXY, HAPROXY.to_owned()));
    let mut columns = Vec::new();
    for (measure, name) in COMPARED {
        for (base, title) in &bases {
            let cells = figures.contenders().into_iter().map(|contender| {
                let ratio = figures.ratio(contender, base, load, measure);
                ratio
                    .filter(|_| contender != *base)
                    .map(|ratio| ratio_cell(&ratio))
            });
            columns.push((format!("{name} / {title}"), cells.collect()));
        }
    }
    by_contender(figures, columns)
}

/// A table with a row per contender, less the columns and rows in which nothing was measured.
fn by_contender(figures: &Figures, columns: Vec<(String, Vec<Option<String>>)>) -> String {
    let measured = columns
        .into_iter()
        .filter(|(_, cells)| cells.iter().any(Option::is_some));
    let (headings, columns): (Vec<String>, Vec<Vec<Option<String>>>) = measured.unzip();
    if columns.is_empty() {
        return String::new();
    }
    let mut rows = Vec::new();
    for (index, contender) in figures.contenders().into_iter().enumerate() {
        let cells = columns.iter().map(|cells| {
            let cell = cells.get(index).cloned().flatten();
            cell.unwrap_or_else(|| NOTHING.to_owned())
        });
        let mut row = vec![contender.to_owned()];
        row.extend(cells);
        rows.push(row);
    }
    let mut head = vec!["contender"];
    head.extend(headings.iter().map(String::as_str));
    table(&head, &rows)
}

/// System calls and instructions per exchange: what time is too noisy to tell apart.
pub(super) fn counts(counts: &[Count]) -> String {
    let rows: Vec<Vec<String>> = counts
        .iter()
        .map(|count| {
            let all: f64 = count.system_calls.iter().map(|(_, number)| number).sum();
            let frequent: Vec<String> = count
                .system_calls
                .iter()
                .take(4)
                .map(|(name, calls)| format!("{name} {}", number(*calls)))
                .collect();
            let calls = (!frequent.is_empty()).then(|| number(all));
            vec![
                count.load.clone(),
                count.contender.clone(),
                calls.unwrap_or_else(|| NOTHING.to_owned()),
                frequent.join(", "),
                count
                    .instructions
                    .map_or_else(|| NOTHING.to_owned(), number),
            ]
        })
        .collect();
    table(
        &[
            "load",
            "contender",
            "system calls per exchange",
            "the most frequent",
            "instructions per exchange",
        ],
        &rows,
    )
}

/// A table in Markdown.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

pub(super) fn spread_cell(spread: &Spread) -> String {
    let mark = if spread.doubtful { MARK } else { "" };
    format!("{}{mark}", within(spread))
}

/// Ratio of the medians; median of the rounds' ratios, and between what they lie.
pub(super) fn ratio_cell(ratio: &Ratio) -> String {
    let mark = if ratio.doubtful { MARK } else { "" };
    let paired = ratio.paired.as_ref().map_or(NOTHING.to_owned(), within);
    format!("{}; {paired}{mark}", number(ratio.of_medians))
}

fn within(spread: &Spread) -> String {
    let Spread {
        median, min, max, ..
    } = spread;
    if min == max {
        return number(*median);
    }
    format!("{} ({}..{})", number(*median), number(*min), number(*max))
}

/// Three figures that mean something, and thousands set apart.
pub(super) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    let plain = format!("{value:.decimals$}");
    // -0.00 is how a tiny negative difference prints.
    let plain = match plain.strip_prefix('-') {
        Some(rest) if rest.chars().all(|digit| "0.".contains(digit)) => rest.to_owned(),
        _ => plain,
    };
    if decimals > 0 {
        return plain;
    }
    let digits = plain.trim_start_matches('-');
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{}{grouped}", &plain[..plain.len() - digits.len()])
}
