//! The report over made-up samples.

use super::figures::{Figures, Measure, Ratio, Spread};
use super::{limits, plots, tables, write};
use crate::sample::{Count, Facts, Sample};
use std::time::Duration;

/// A run that took `cpu` ms for one GiB or 100,000 requests in one second.
fn sample(contender: &str, load: &str, run: u32, cpu: u64) -> Sample {
    Sample {
        contender: contender.to_owned(),
        load: load.to_owned(),
        run,
        cpu: Duration::from_millis(cpu),
        user: Duration::from_millis(cpu / 4),
        system: Duration::from_millis(cpu - cpu / 4),
        bytes: 1 << 30,
        requests: 100_000,
        elapsed: Duration::from_secs(1),
        p50: None,
        p99: None,
        peak_rss: 3 << 20,
        idle_rss_per_connection: None,
        rss_after: None,
        connections: 1,
        others_cpu: 0.0,
    }
}

fn runs(contender: &str, load: &str, cpu: &[u64]) -> Vec<Sample> {
    (0..)
        .zip(cpu)
        .map(|(run, cpu)| sample(contender, load, run, *cpu))
        .collect()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// The cells of the first row of a table that begins with these.
fn row(text: &str, start: &[&str]) -> Vec<String> {
    let start = format!("| {} |", start.join(" | "));
    let line = text.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("no row {start} in\n{text}"));
    let cells = line.trim_matches('|').split('|');
    cells.map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn the_median_of_an_odd_number_of_runs_is_the_middle_one() {
    let samples = runs("klamp", "ping-200", &[900, 100, 300]);
    let spread = Figures::of(&samples).spread("klamp", "ping-200", Measure::Cpu);
    let expected = Spread {
        median: 300.0,
        min: 100.0,
        max: 900.0,
        doubtful: false,
    };
    assert_eq!(spread, Some(expected));
}

#[test]
fn the_median_of_an_even_number_of_runs_is_between_the_middle_two() {
    let samples = runs("klamp", "ping-200", &[900, 100, 300, 200]);
    let spread = Figures::of(&samples).spread("klamp", "ping-200", Measure::Cpu);
    assert!(near(spread.expect("it was measured").median, 250.0));
}

#[test]
fn large_frames_are_counted_by_gib_and_small_ones_by_requests() {
    let mut large = sample("klamp", "fetch-64k", 0, 100);
    large.bytes *= 2;
    let mut small = sample("klamp", "fetch-1000p", 0, 100);
    (small.requests, small.elapsed) = (50_000, Duration::from_secs(2));
    let samples = [large, small];
    let figures = Figures::of(&samples);
    let median = |load, measure| {
        let spread = figures.spread("klamp", load, measure);
        spread.expect("it was measured").median
    };
    assert!(near(median("fetch-64k", Measure::Cpu), 50.0));
    assert!(near(median("fetch-64k", Measure::Throughput), 2048.0));
    assert!(near(median("fetch-1000p", Measure::Cpu), 200.0));
    assert!(near(median("fetch-1000p", Measure::Throughput), 25_000.0));
}

#[test]
fn a_ratio_is_that_of_medians_and_beside_it_that_of_each_round() {
    let mut samples = runs("klamp", "ping-200", &[100, 200, 400]);
    samples.extend(runs("copy", "ping-200", &[200, 100, 400]));
    let ratio = Figures::of(&samples).ratio("klamp", "copy", "ping-200", Measure::Cpu);
    let expected = Ratio {
        of_medians: 1.0,
        paired: Some(Spread {
            median: 1.0,
            min: 0.5,
            max: 2.0,
            doubtful: false,
        }),
        doubtful: false,
    };
    assert_eq!(ratio, Some(expected));
}

#[test]
fn rounds_that_only_one_of_two_ran_are_in_no_paired_ratio() {
    let mut samples = runs("klamp", "ping-200", &[100, 300]);
    samples.push(sample("copy", "ping-200", 1, 100));
    let ratio = Figures::of(&samples).ratio("klamp", "copy", "ping-200", Measure::Cpu);
    let paired = ratio.expect("both were measured").paired;
    assert!(near(paired.expect("they share a round").max, 3.0));
    assert!(near(paired.expect("they share a round").min, 3.0));
}

#[test]
fn the_better_pump_is_the_one_with_less_cpu_in_that_load() {
    let mut samples = runs("copy", "ping-200", &[10, 11, 90]);
    samples.extend(runs("splice", "ping-200", &[12, 12, 12]));
    samples.extend(runs("copy", "fetch-1m", &[20]));
    samples.extend(runs("splice", "fetch-1m", &[10]));
    samples.extend(runs("klamp", "churn", &[10]));
    let figures = Figures::of(&samples);
    assert_eq!(figures.better_pump("ping-200"), Some("copy"));
    assert_eq!(figures.better_pump("fetch-1m"), Some("splice"));
    assert_eq!(figures.better_pump("churn"), None);
}

#[test]
fn added_delay_is_that_beyond_the_direct_run_of_the_same_round() {
    let delayed = |contender, run, micros| {
        let mut sample = sample(contender, "ping-200", run, 1);
        sample.p50 = Some(Duration::from_micros(micros));
        sample
    };
    let samples = [
        delayed("direct", 0, 40),
        delayed("klamp", 0, 70),
        delayed("direct", 1, 60),
        delayed("klamp", 1, 100),
        // No direct run to compare with.
        delayed("klamp", 2, 500),
    ];
    let spread = Figures::of(&samples).spread("klamp", "ping-200", Measure::P50);
    let spread = spread.expect("it was measured");
    assert!(near(spread.min, 30.0), "{spread:?}");
    assert!(near(spread.max, 40.0), "{spread:?}");
}

#[test]
fn what_was_not_measured_is_a_dash_and_never_a_zero() {
    let mut samples = runs("klamp", "ping-200", &[100]);
    samples.extend(runs("direct", "ping-200", &[0]));
    samples.extend(runs("envoy", "fetch-1m", &[100]));
    let figures = Figures::of(&samples);
    let text = tables::loads(&figures);
    let (ping, fetch) = text.split_once("### fetch-1m").expect("it has both loads");
    assert_eq!(row(ping, &["klamp"])[1], "100");
    assert_eq!(row(ping, &["direct"])[1], "—");
    assert!(row(ping, &["envoy"])[1..].iter().all(|cell| cell == "—"));
    assert!(row(fetch, &["klamp"])[1..].iter().all(|cell| cell == "—"));
    // Nobody measured memory of idle connections here.
    assert!(!text.contains("idle"), "{text}");

    let overview = limits::overview(&figures);
    assert_eq!(
        row(&overview, &["ping-200", "CPU / haproxy ≤ 1.00"])[2..],
        ["—", "—"]
    );
}

#[test]
fn figures_of_disturbed_runs_are_marked_and_no_others() {
    let mut samples = runs("klamp", "ping-200", &[100, 100]);
    samples.extend(runs("haproxy", "ping-200", &[200, 200]));
    samples.extend(runs("copy", "ping-200", &[100, 100]));
    samples[0].others_cpu = 0.06;
    samples[2].others_cpu = 0.05;
    let figures = Figures::of(&samples);
    let text = tables::loads(&figures);
    assert_eq!(row(&text, &["klamp"])[1], "100 \\*");
    assert_eq!(row(&text, &["haproxy"])[1], "200");
    let (_, ratios) = text.split_once("| contender | CPU / ").expect("ratios");
    assert_eq!(row(ratios, &["klamp"])[2], "0.50; 0.50 \\*");
    assert_eq!(row(ratios, &["copy"])[2], "0.50; 0.50");
    let preamble = tables::preamble(&figures, &Facts::new());
    assert!(preamble.contains("more than 5 % of the machine during 1 of 6 runs"));
    assert_eq!(row(&preamble, &["rounds"])[1], "2");
}

#[test]
fn an_undisturbed_report_has_no_warning() {
    let samples = runs("klamp", "ping-200", &[100]);
    let preamble = tables::preamble(&Figures::of(&samples), &Facts::new());
    assert!(!preamble.contains("Other processes"), "{preamble}");
}

#[test]
fn the_overview_tells_which_limits_are_met() {
    let mut samples = runs("klamp", "fetch-1m", &[100]);
    samples.extend(runs("splice", "fetch-1m", &[100]));
    samples.extend(runs("copy", "fetch-1m", &[300]));
    samples.extend(runs("haproxy", "fetch-1m", &[200]));
    let mut idle = sample("klamp", "idle-10k", 0, 1);
    (idle.idle_rss_per_connection, idle.rss_after) = (Some(3.0 * 1024.0), Some(1.5));
    samples.push(idle);
    let java = |contender, seconds| {
        let mut sample = sample(contender, "java-produce", 0, 100);
        sample.elapsed = Duration::from_millis(seconds);
        sample
    };
    samples.extend([java("klamp", 1000), java("copy", 980)]);
    let overview = limits::overview(&Figures::of(&samples));
    let verdict = |load, wanted| row(&overview, &[load, wanted])[3].clone();
    assert_eq!(verdict("fetch-1m", "CPU / splice ≤ 1.00"), "yes");
    assert_eq!(verdict("fetch-1m", "CPU / haproxy ≤ 0.40"), "**no**");
    assert_eq!(
        verdict("idle-10k", "memory per idle connection, KiB ≤ 3.30"),
        "yes"
    );
    let after = "RSS after all have closed / before ≤ 1.20";
    assert_eq!(verdict("idle-10k", after), "**no**");
    assert_eq!(verdict("java-produce", "throughput / copy ≥ 0.97"), "yes");
}

#[test]
fn scale_is_flat_when_no_number_of_connections_costs_a_tenth_more_than_another() {
    let verdict = |dear| {
        let mut samples = runs("klamp", "scale-1000", &[dear]);
        samples.extend(runs("klamp", "scale-10", &[1000]));
        samples.extend(runs("klamp", "scale-100", &[1050]));
        let overview = limits::overview(&Figures::of(&samples));
        row(&overview, &["scale-…"])[2..].to_vec()
    };
    assert_eq!(verdict(1090), ["1.09 (copy: —)", "yes"]);
    assert_eq!(verdict(1200), ["1.20 (copy: —)", "**no**"]);
}

#[test]
fn connections_are_ordered_as_numbers() {
    let mut samples = runs("klamp", "scale-1000", &[3]);
    samples.extend(runs("klamp", "scale-5000", &[4]));
    samples.extend(runs("klamp", "scale-10", &[1]));
    let scaling = Figures::of(&samples).scaling("klamp");
    let connections: Vec<u32> = scaling.iter().map(|(number, _)| *number).collect();
    assert_eq!(connections, [10, 1000, 5000]);
}

#[test]
fn counts_are_summed_and_the_most_frequent_calls_named() {
    let counts = [
        Count {
            contender: "klamp".to_owned(),
            load: "ping-200".to_owned(),
            system_calls: vec![("recvfrom".to_owned(), 4.0), ("sendto".to_owned(), 2.5)],
            instructions: Some(12_345.6),
        },
        Count {
            contender: "envoy".to_owned(),
            load: "ping-200".to_owned(),
            system_calls: Vec::new(),
            instructions: None,
        },
    ];
    let text = tables::counts(&counts);
    assert_eq!(
        row(&text, &["ping-200", "klamp"])[2..],
        ["6.50", "recvfrom 4.00, sendto 2.50", "12,346"]
    );
    assert_eq!(row(&text, &["ping-200", "envoy"])[2..], ["—", "", "—"]);
}

#[test]
fn numbers_have_three_figures_and_their_thousands_apart() {
    for (value, text) in [
        (0.0, "0.00"),
        (-0.001, "0.00"),
        (0.456, "0.46"),
        (9.999, "10.0"),
        (12.34, "12.3"),
        (99.96, "100"),
        (1234.5, "1,234"),
        (-1_234_567.0, "-1,234,567"),
    ] {
        assert_eq!(tables::number(value), text, "{value}");
    }
}

#[test]
fn a_plot_has_bars_only_for_what_was_measured() {
    let mut samples = runs("copy", "ping-200", &[100]);
    samples.extend(runs("klamp", "ping-200", &[90]));
    samples.extend(runs("envoy", "fetch-1m", &[90]));
    let plot = plots::ratios(&Figures::of(&samples)).expect("a pump was measured");
    for tip in ["ping-200, copy: 1.00", "ping-200, klamp: 0.90"] {
        assert!(plot.contains(tip), "{tip} in {plot}");
    }
    assert!(!plot.contains("ping-200, envoy"), "{plot}");
    assert!(!plot.contains("fetch-1m"), "{plot}");
    assert!(plots::ratios(&Figures::of(&runs("klamp", "ping-200", &[1]))).is_none());
    assert!(plots::scaling(&Figures::of(&samples)).is_none());
}

#[test]
fn a_proxy_that_used_no_cpu_has_no_bar_and_no_plot_without_end() {
    let mut samples = runs("copy", "idle-10k", &[5]);
    samples.extend(runs("klamp", "idle-10k", &[0]));
    let plot = plots::ratios(&Figures::of(&samples)).expect("a pump was measured");
    assert!(plot.contains("idle-10k, copy: 1.00"), "{plot}");
    assert!(!plot.contains("idle-10k, klamp"), "{plot}");
}

#[test]
fn a_bar_below_one_goes_down_from_the_line_and_one_above_goes_up() {
    let mut samples = runs("copy", "ping-200", &[100]);
    samples.extend(runs("klamp", "ping-200", &[50]));
    samples.extend(runs("nginx", "ping-200", &[200]));
    let plot = plots::ratios(&Figures::of(&samples)).expect("a pump was measured");
    let bar = |tip: &str| {
        let line = plot.lines().find(|line| line.contains(tip));
        let line = line.unwrap_or_else(|| panic!("no {tip} in {plot}"));
        let attribute = |name: &str| {
            let (_, rest) = line
                .split_once(&format!(" {name}=\""))
                .expect("a rectangle");
            let value = rest.split('"').next().expect("split gives one");
            value.parse::<f64>().expect("a number")
        };
        (attribute("y"), attribute("height"))
    };
    let (below, above) = (bar("klamp: 0.50"), bar("nginx: 2.00"));
    assert!(near(above.0 + above.1, below.0), "{above:?} {below:?}");
    assert!(near(above.1, below.1), "{above:?} {below:?}");
}

#[test]
fn the_report_is_written_with_its_plots_and_without_stale_ones() {
    let out = std::env::temp_dir().join(format!("klamp-report-{}", std::process::id()));
    let mut samples = runs("copy", "scale-10", &[100]);
    samples.extend(runs("klamp", "scale-10", &[90]));
    samples.extend(runs("copy", "ping-200", &[90]));
    let facts = vec![("kernel".to_owned(), "6.1".to_owned())];
    write(&samples, &[], &facts, &out).expect("a folder can be written to");
    let read = |file: &str| std::fs::read_to_string(out.join(file)).unwrap_or_default();
    assert_eq!(row(&read("RESULTS.md"), &["kernel"])[1], "6.1");
    assert!(read("RESULTS.md").contains("(scaling.svg)"));
    assert!(read("scaling.svg").contains("klamp, 10 connections: 90.0"));
    assert!(read("ratios.svg").contains("ping-200, copy: 1.00"));

    write(&samples[..0], &[], &facts, &out).expect("a folder can be written to");
    assert!(!read("RESULTS.md").contains(".svg"));
    assert!(!out.join("scaling.svg").exists());
    std::fs::remove_dir_all(&out).expect("it is ours");
}
