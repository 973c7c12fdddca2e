//! What is nobody's business but the client's and the broker's is nowhere in what klamp tells: its captures,
//! their files and pages, its log, and what `klamp decode` prints of them, and of what tcpdump saw.
//!
//! The trap: a test that looks for what was never sent, or where nothing was kept, finds nothing and is
//! content. So it also looks at the wire, where all must be found, and counts the frames of captures.

mod broker;
mod clients;
mod messages;
mod overheard;
mod told;

use self::broker::{Exchange, Script};
use self::told::Told;
use crate::dumped::Dump;
use klamp_tests::klamp::Klamp;
use klamp_tests::needle::Needle;
use klamp_tests::place;
use std::time::Duration;

/// How long a capture may go on.
const LONG: [&str; 2] = ["--capture-time=10m", "--capture-frames=100000"];

/// Sends all of each script over a connection of its own through klamp, in the end something that
/// triggers a capture of it. Returns what klamp told, and what passed as tcpdump saw it.
fn told_of(scripts: &[Script], arguments: &[&str]) -> (Told, Vec<u8>) {
    let broker = broker::start(scripts);
    let dump = Dump::start(broker.address().port());
    let directory = place::room("captures");
    let flag = format!("--capture-dir={}", directory.display());
    // (each has to be there in the end, whatever triggers it)
    let on = "--capture-on=BEYOND,mismatch,close";
    let own = [on, &flag, "--log-level=trace", "--capture-memory=256MiB"];
    let klamp = Klamp::start_with(broker.address(), &[&LONG, &own[..], arguments].concat());
    for (number, script) in scripts.iter().enumerate() {
        let local = broker::play(klamp.address(), number, script);
        let expected = script.frames() as u64;
        let what = format!("of {expected} frames of {}", script.name);
        let capture = klamp.captured(Duration::from_secs(20), &what, |capture| {
            let frames = capture["frames"].as_u64().expect("it has frames");
            capture["client"] == local.to_string() && frames >= expected
        });
        assert_eq!(capture["lost_frames"], 0, "{}", script.name);
    }
    let mut told = Told::default();
    klamp.scrape_until("all files are written", |scrape| {
        let captured = scrape.sum("klamp_captures_total", &[]);
        captured >= scripts.len() as f64
            && scrape.sum("klamp_captures_dropped_total", &[]) == 0.0
            && klamp.captures().iter().all(|it| it["file"].is_string())
    });
    told.add_pages(&klamp);
    let log = klamp.process().err();
    klamp.stop();
    told.add("the log".to_owned(), log);
    told.add_files(&directory);
    let dumped = dump.stop();
    let port = broker.address().port().to_string();
    told.add_decoded("tcpdump's file", &dumped, &["--port", &port]);
    let wire = std::fs::read(&dumped).expect("tcpdump wrote it");
    (told, wire)
}

/// A connection for so many exchanges of an API as its tape holds.
fn scripts(exchanges: &[Exchange]) -> Vec<Script> {
    let apis = exchanges.chunk_by(|one, next| one.name == next.name);
    apis.flat_map(|same| same.chunks(150))
        .map(|some| Script::of(some[0].name, some.to_vec()))
        .collect()
}

/// Of each API the messages of some versions: about so many, the first and the last among them.
fn some(exchanges: &[Exchange], most: usize) -> Vec<&Exchange> {
    let apis = exchanges.chunk_by(|one, next| one.name == next.name);
    apis.flat_map(|same| {
        let steps = same.iter().step_by(same.len().div_ceil(most));
        steps.chain(same.last())
    })
    .collect()
}

#[test]
fn no_secret_of_any_message_is_told_anywhere() {
    let needle = Needle::new("Pl4ntedS3cret");
    let mut all = messages::with_records(&needle);
    all.extend(messages::with_secrets(&needle));
    let (places, mut scripts) = (all.len(), scripts(&all));
    assert!(places > 200, "{places}");
    scripts.extend(messages::tokens(&needle));
    let (told, wire) = told_of(&scripts, &[]);
    assert!(needle.count(&wire) > places, "it is on the wire");
    told.assert_without(needle.forms());
}

#[test]
fn no_secret_of_a_message_that_is_damaged_or_of_no_known_layout_is_told_anywhere() {
    let needle = Needle::new("Pl4ntedS3cret");
    let mut all = messages::with_records(&needle);
    all.extend(messages::with_secrets(&needle));
    let whole = some(&all, 6).into_iter();
    let damaged: Vec<_> = whole.flat_map(|it| it.damaged(&needle)).collect();
    let places = damaged.len();
    assert!(places > 500, "{places}");
    let mut scripts = scripts(&damaged);
    scripts.extend(messages::cut(&needle));
    let (told, wire) = told_of(&scripts, &[]);
    assert!(needle.count(&wire) > places / 2, "it is on the wire");
    told.assert_without(needle.forms());
}

#[test]
fn where_records_are_asked_for_they_are_told_and_nothing_else_is() {
    let (records, secret) = (Needle::new("R3cordsC0ntent"), Needle::new("Pl4ntedS3cret"));
    let mut all = messages::with_records(&records);
    all.extend(messages::with_secrets(&secret));
    let mut scripts = scripts(&all);
    scripts.extend(messages::tokens(&secret));
    let (told, wire) = told_of(&scripts, &["--capture-records"]);
    assert!(secret.count(&wire) > 100, "it is on the wire");
    told.assert_without(secret.forms());
    let kept = told.count(&records, "capture ");
    assert!(
        kept >= 2,
        "records of Produce and Fetch, in {kept} captures"
    );
}
