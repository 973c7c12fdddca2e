//! The two plots: what each load costs beside the better bare pump, and what a request costs over
//! more and more connections.

use super::figures::{DIRECT, Figures, Measure};
use super::svg::{Anchor, BOTTOM, Canvas, HEIGHT, LEFT, TOP};
use super::tables::number;

/// Ratios of CPU per load, as bars from the line at 1; nothing if no load has a bare pump.
pub(super) fn ratios(figures: &Figures) -> Option<String> {
    const BAR: f64 = 11.0;
    const GAP: f64 = 26.0;
    let proxies = proxies(figures);
    let groups: Vec<(&str, Vec<Option<f64>>)> = figures
        .loads()
        .into_iter()
        .filter(|load| !load.starts_with("scale-"))
        .filter_map(|load| {
            let pump = figures.better_pump(load)?;
            let ratio = |proxy: &&str| figures.ratio(proxy, pump, load, Measure::Cpu);
            let ratios = proxies
                .iter()
                .map(|proxy| ratio(proxy).map(|ratio| ratio.of_medians))
                // Nothing at all, as of an idle proxy, has no place on a log scale.
                .map(|ratio| ratio.filter(|ratio| ratio.is_normal()));
            Some((load, ratios.collect()))
        })
        .collect();
    let values = || groups.iter().flat_map(|(_, values)| values).flatten();
    let low = values().copied().min_by(f64::total_cmp)?;
    let high = values().copied().max_by(f64::total_cmp)?;
    // Whole powers of two, with 1 between them.
    let (low, high) = (low.log2().floor().min(-1.0), high.log2().ceil().max(1.0));
    let up = |ratio: f64| BOTTOM - HEIGHT * (ratio.log2() - low) / (high - low);

    let group = BAR * size(proxies.len()) + GAP;
    let width = (group * size(groups.len()) + GAP).max(560.0);
    let mut canvas = Canvas::new("CPU of each proxy beside the better bare pump", width);
    canvas.legend(&proxies);
    canvas.labels(
        "load",
        "CPU / better bare pump's (log scale, less is better)",
    );
    let mut power = low;
    while power <= high {
        let ratio = power.exp2();
        let class = if power == 0.0 { "axis" } else { "grid" };
        canvas.tick(up(ratio), &format!("{}×", plain(ratio)), class);
        power += 1.0;
    }
    let mut x = LEFT + GAP;
    for (load, ratios) in groups {
        for (series, ratio) in ratios.into_iter().enumerate() {
            let left = x + BAR * size(series);
            let Some(ratio) = ratio else { continue };
            let (y, line) = (up(ratio), up(1.0));
            let (top, height) = (y.min(line), (y - line).abs().max(1.5));
            let tip = format!("{load}, {}: {}", proxies[series], number(ratio));
            canvas.bar(left, top, BAR - 1.5, height, series, &tip);
        }
        let middle = x + (group - GAP) / 2.0;
        canvas.text(middle, BOTTOM + 24.0, Anchor::Middle, load);
        x += group;
    }
    Some(canvas.finish())
}

/// CPU per 100,000 requests against connections; nothing if there is no such load.
pub(super) fn scaling(figures: &Figures) -> Option<String> {
    let proxies = proxies(figures);
    let lines: Vec<_> = proxies.iter().map(|proxy| figures.scaling(proxy)).collect();
    let costs = || lines.iter().flatten();
    let fewest = f64::from(costs().map(|(connections, _)| *connections).min()?);
    let most = f64::from(costs().map(|(connections, _)| *connections).max()?);
    let dearest = costs().map(|(_, cost)| cost.max).max_by(f64::total_cmp)?;
    let step = step(dearest);
    let top = (dearest / step).ceil().max(1.0) * step;
    let decades = (most / fewest).log10().max(1.0);

    let mut canvas = Canvas::new("CPU per request over more and more connections", 720.0);
    let right = canvas.right();
    let inset = 30.0;
    let across = |connections: f64| {
        LEFT + inset + (right - LEFT - 2.0 * inset) * (connections / fewest).log10() / decades
    };
    let up = |cost: f64| BOTTOM - (BOTTOM - TOP) * cost / top;
    canvas.legend(&proxies);
    canvas.labels(
        "connections (log scale)",
        "CPU, ms per 100,000 requests (less is better)",
    );
    let mut tick = 0.0;
    while tick <= top + step / 2.0 {
        let class = if tick == 0.0 { "axis" } else { "grid" };
        canvas.tick(up(tick), &plain(tick), class);
        tick += step;
    }
    let mut counts: Vec<u32> = costs().map(|(connections, _)| *connections).collect();
    counts.sort_unstable();
    counts.dedup();
    for count in counts {
        let x = across(f64::from(count));
        canvas.text(x, BOTTOM + 24.0, Anchor::Middle, &number_of(count));
    }
    for (series, line) in lines.iter().enumerate() {
        let points: Vec<(f64, f64)> = line
            .iter()
            .map(|(connections, cost)| (across(f64::from(*connections)), up(cost.median)))
            .collect();
        canvas.line(&points, series);
        for ((connections, cost), (x, y)) in line.iter().zip(points) {
            let tip = format!(
                "{}, {connections} connections: {}",
                proxies[series],
                number(cost.median)
            );
            canvas.point(x, y, (up(cost.min), up(cost.max)), series, &tip);
        }
    }
    Some(canvas.finish())
}

/// The contenders that are a proxy: a series each, of the same colour in both plots.
fn proxies<'a>(figures: &Figures<'a>) -> Vec<&'a str> {
    let mut proxies = figures.contenders();
    proxies.retain(|contender| *contender != DIRECT);
    proxies
}

/// A step of 1, 2 or 5 times a power of ten that makes about five ticks.
fn step(most: f64) -> f64 {
    let rough = (most / 5.0).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let fitting = steps.into_iter().find(|step| *step >= rough);
    fitting.unwrap_or(10.0 * power)
}

/// A tick's value without decimals that say nothing.
fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn number_of(connections: u32) -> String {
    if connections < 100 {
        connections.to_string()
    } else {
        number(f64::from(connections))
    }
}

fn size(number: usize) -> f64 {
    u16::try_from(number).map_or(f64::INFINITY, f64::from)
}
