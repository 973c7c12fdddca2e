//! What klamp is wanted to cost at most, and what it was measured to cost.

use super::figures::{Figures, Measure};
use super::tables::{HAPROXY, NOTHING, number, ratio_cell, spread_cell, table};

/// The contender that the limits are for: klamp as it is run.
const KLAMP: &str = "klamp";

/// To what a figure is compared.
#[derive(Clone, Copy)]
enum Base {
    /// This contender.
    Of(&'static str),
    /// The bare pump that took less CPU.
    BetterPump,
    /// Nothing: the figure is taken as it is.
    Itself,
}
use Base::{BetterPump, Itself, Of};

#[derive(Clone, Copy)]
enum Bound {
    Most(f64),
    Least(f64),
}
use Bound::{Least, Most};

/// One limit on one load.
struct Limit {
    load: &'static str,
    measure: Measure,
    base: Base,
    bound: Bound,
}

const fn cpu(load: &'static str, base: Base, most: f64) -> Limit {
    Limit {
        load,
        measure: Measure::Cpu,
        base,
        bound: Most(most),
    }
}

const fn of(load: &'static str, measure: Measure, base: Base, bound: Bound) -> Limit {
    Limit {
        load,
        measure,
        base,
        bound,
    }
}

const LIMITS: [Limit; 21] = [
    cpu("produce-1m", Of("splice"), 1.0),
    cpu("produce-1m", Of(HAPROXY), 0.4),
    cpu("produce-1m", Of("envoy"), 0.8),
    cpu("fetch-1m", Of("splice"), 1.0),
    cpu("fetch-1m", Of(HAPROXY), 0.4),
    cpu("fetch-1m", Of("envoy"), 0.8),
    cpu("produce-64k", BetterPump, 1.1),
    cpu("produce-64k", Of(HAPROXY), 0.75),
    cpu("produce-64k", Of("envoy"), 1.0),
    cpu("fetch-64k", BetterPump, 1.1),
    cpu("fetch-64k", Of(HAPROXY), 0.75),
    cpu("fetch-64k", Of("envoy"), 1.0),
    cpu("ping-200", Of("copy"), 1.05),
    cpu("ping-200", Of(HAPROXY), 1.0),
    cpu("pipe-200-c1", Of("copy"), 1.4),
    cpu("pipe-200-c8", Of("copy"), 1.4),
    cpu("fetch-1000p", Of("copy"), 1.3),
    of("idle-10k", Measure::Idle, Itself, Most(3.3)),
    of("idle-10k", Measure::After, Itself, Most(1.2)),
    of("java-produce", Measure::Throughput, Of("copy"), Least(0.97)),
    of("java-consume", Measure::Throughput, Of("copy"), Least(0.97)),
];

/// How much more a request may cost over any number of connections than over another.
const FLAT: f64 = 1.1;

/// The overview: a row per limit.
pub(super) fn overview(figures: &Figures) -> String {
    let mut rows: Vec<Vec<String>> = LIMITS.iter().map(|limit| limit.row(figures)).collect();
    rows.push(flatness(figures));
    table(&["load", "wanted", "measured", "met"], &rows)
}

impl Limit {
    fn row(&self, figures: &Figures) -> Vec<String> {
        let (subject, measured) = self.measured(figures);
        let (sign, bound) = match self.bound {
            Most(most) => ("≤", most),
            Least(least) => ("≥", least),
        };
        let (value, cell) = measured.unzip();
        vec![
            self.load.to_owned(),
            format!("{subject} {sign} {}", number(bound)),
            cell.unwrap_or_else(|| NOTHING.to_owned()),
            verdict(value.map(|value| self.bound.holds(value))),
        ]
    }

    /// What is bounded, its value, and how that is shown.
    fn measured(&self, figures: &Figures) -> (String, Option<(f64, String)>) {
        let base = match self.base {
            Itself => {
                let subject = match self.measure {
                    Measure::After => "RSS after all have closed / before",
                    _ => "memory per idle connection, KiB",
                };
                let spread = figures.spread(KLAMP, self.load, self.measure);
                let measured = spread.map(|spread| (spread.median, spread_cell(&spread)));
                return (subject.to_owned(), measured);
            }
            Of(base) => Some(base),
            BetterPump => figures.better_pump(self.load),
        };
        let name = match (self.base, base) {
            (BetterPump, Some(pump)) => format!("better bare pump ({pump})"),
            (BetterPump, None) => "better bare pump".to_owned(),
            (_, base) => base.unwrap_or_default().to_owned(),
        };
        let what = match self.measure {
            Measure::Throughput => "throughput",
            _ => "CPU",
        };
        let ratio = base.and_then(|base| figures.ratio(KLAMP, base, self.load, self.measure));
        let measured = ratio.map(|ratio| (ratio.of_medians, ratio_cell(&ratio)));
        (format!("{what} / {name}"), measured)
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Most(most) => value <= most,
            Least(least) => value >= least,
        }
    }
}

fn verdict(holds: Option<bool>) -> String {
    holds
        .map_or(NOTHING, |holds| if holds { "yes" } else { "**no**" })
        .to_owned()
}

/// The dearest request over the cheapest, whatever the number of connections.
fn flatness(figures: &Figures) -> Vec<String> {
    let own = dearest_over_cheapest(figures, KLAMP);
    let cell = own.map_or_else(
        || NOTHING.to_owned(),
        |own| {
            let pump = dearest_over_cheapest(figures, "copy");
            let pump = pump.map_or_else(|| NOTHING.to_owned(), number);
            format!("{} (copy: {pump})", number(own))
        },
    );
    vec![
        "scale-…".to_owned(),
        format!(
            "CPU per request, dearest / cheapest number of connections ≤ {}",
            number(FLAT)
        ),
        cell,
        verdict(own.map(|own| own <= FLAT)),
    ]
}

fn dearest_over_cheapest(figures: &Figures, contender: &str) -> Option<f64> {
    let costs = figures.scaling(contender);
    let medians = || costs.iter().map(|(_, cost)| cost.median);
    let (cheapest, dearest) = (
        medians().min_by(f64::total_cmp)?,
        medians().max_by(f64::total_cmp)?,
    );
    (costs.len() > 1 && cheapest > 0.0).then(|| dearest / cheapest)
}
