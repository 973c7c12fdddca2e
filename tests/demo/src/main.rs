//! The demo: an embedded broker, the real `klamp` in front of it, clients that go through it, and an
//! error code that no library names. It shows what klamp made of that, and then goes on until Ctrl-C.
//!
//! The trap: a demo that prints what ought to have happened. So each thing that it tells is one that
//! it has checked; as in the tests that it shares its parts with, a check that fails panics, and
//! [`main`] turns that into one clear line and exit code 1.

mod binary;
mod klamp;
mod metrics;
mod mystery;
mod page;
mod ports;
mod traffic;

use crate::klamp::Klamp;
use crate::page::Page;
use crate::ports::Ports;
use crate::traffic::Traffic;
use klamp_tests::mock::MockKafka;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::panic;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = "\
Starts an embedded Kafka broker and klamp in front of it, sends traffic through,
and shows what klamp saw. Goes on until Ctrl-C.

Usage: klamp-demo [--once]

  --once  end after the first look instead, with exit code 0

The ports are 9192 (clients), 9644 (metrics) and 9645 (for operators), or free
ones where those are taken. KLAMP_BIN names a klamp to run instead of building
this one.";

/// What the traffic is about.
const TOPIC: &str = "demo-orders";

/// Rows that Kafka 4.4 lists and the embedded broker does not: a version beyond what klamp's clients
/// can be sure of (DescribeLogDirs 5), and keys that have no schema there (the streams groups).
const ROWS_OF_KAFKA_4_4: [(i16, std::ops::RangeInclusive<i16>); 3] =
    [(35, 1..=5), (88, 0..=1), (89, 0..=1)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let once = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--once"] => true,
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    panic::set_hook(Box::new(|failure| {
        let cause = failure.payload_as_str().unwrap_or("for no reason given");
        eprintln!("\nThe demo failed: {cause}");
    }));
    match panic::catch_unwind(|| demo(once)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn demo(once: bool) {
    let stop = stop_on_signals().expect("signals can be caught");
    let page = Page::new();
    let binary = binary::klamp();
    let ports = Ports::choose();
    let broker = MockKafka::start(ports.clients);
    broker.create_topic(TOPIC, 1);
    broker.create_topic(mystery::TOPIC, 1);
    for (api_key, versions) in ROWS_OF_KAFKA_4_4 {
        broker.also_list(api_key, versions);
    }
    let klamp = Klamp::start(binary, &ports, broker.address());

    page.title("klamp demo");
    page.text(&format!(
        "clients -> klamp {} -> embedded broker {}",
        ports.clients,
        broker.address()
    ));
    page.text(
        "(librdkafka's mock cluster; its rows 35, 88 and 89 below are added, from Kafka 4.4)",
    );
    for note in ports.notes() {
        page.text(&note);
    }

    page.heading("What the broker speaks, beside what klamp can encode");
    page.text(&format!(
        "$ klamp versions {} | grep -v 'does not offer'",
        broker.address()
    ));
    page.quote(&klamp.versions_of(broker.address()));

    page.heading("Traffic through klamp");
    let mut traffic = Traffic::start(ports.clients, TOPIC);
    traffic.send_and_receive(300);
    page.text(&format!(
        "300 records produced to {TOPIC}, acknowledged, and consumed in the same order."
    ));

    page.heading("An error code that no library names");
    let code = mystery::provoke(&broker, ports.clients);
    page.text(&format!(
        "Client {} produced a record and was answered with error code {code}. klamp's log:",
        mystery::CLIENT_ID
    ));
    page.quote(&klamp.log_line_about(&[mystery::CLIENT_ID, "Produce", &code.to_string()]));

    page.text("What was said on that connection before and after has been kept:");
    page.text(&format!("$ curl -s {}/captures", ports.debug));
    page.quote(&klamp.captures());

    page.heading("Metrics that matter");
    page.text(&format!("$ curl -s {}/metrics", ports.admin));
    page.quote(&metrics::that_matter(&klamp, code));

    page.heading("Where to look next");
    where_to_look(&page, &ports);

    if once {
        page.heading("The end");
    } else {
        page.heading("Going on");
        page.text("A record a second goes through klamp until Ctrl-C.");
        while !stop.load(Ordering::Relaxed) {
            traffic.send_and_receive(1);
            page.progress(&format!("{} records so far", traffic.received()));
            wait_a_second(&stop);
        }
        page.end_of_progress();
    }
    let drained = klamp.drain(|| drop(traffic));
    page.text(&format!(
        "klamp got SIGTERM, let its clients say goodbye, and ended after {:.1} s: exit code 0, no \
         connection cut.",
        drained.as_secs_f64()
    ));
}

/// Set by the first Ctrl-C or SIGTERM; a second one ends the process at once.
fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

fn wait_a_second(stop: &AtomicBool) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn where_to_look(page: &Page, ports: &Ports) {
    let (clients, admin, debug) = (ports.clients, ports.admin, ports.debug);
    page.columns(&[
        (format!("http://{admin}/metrics"), "for Prometheus"),
        (
            format!("http://{debug}/versions"),
            "the broker's table, and why a row was lowered or hidden",
        ),
        (
            format!("http://{debug}/clients"),
            "who uses which version of what",
        ),
        (
            format!("http://{debug}/connections"),
            "who is connected now",
        ),
        (
            format!("http://{debug}/captures/1"),
            "the error that nobody can name, a line a message",
        ),
        (
            format!("http://{debug}/captures/1.pcapng"),
            "the same for Wireshark and `klamp decode`",
        ),
    ]);
    page.text("With a client of your own:");
    page.quote(&format!(
        "kcat -b {clients} -t {TOPIC} -C -o beginning\n\
         kafka-console-consumer.sh --bootstrap-server {clients} --topic {TOPIC} --from-beginning\n\
         kafka-console-producer.sh --bootstrap-server {clients} --topic demo-yours"
    ));
}
