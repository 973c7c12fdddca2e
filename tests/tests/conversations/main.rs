//! Conversations made up at random through klamp itself: what its flight recorder keeps of them is what was
//! said, byte by byte, without what is withheld; what is withheld stands nowhere, neither in captures nor on
//! pages nor in the log nor in what `klamp decode` prints; and that pairs the answers with their requests.
//!
//! A conversation has a client, a broker and a seed, from which all follows that they say (`script`, `apis`):
//! messages of several APIs in their versions, broken ones, unknown ones, SASL, batches of records that lie.
//! They say it in pieces of any size (`talk`), and one of them may close amid it. Whoever writes a message
//! notes which bytes of it are withheld (`writer`, `frame`), and fills those with words that stand nowhere
//! else. So nothing here needs to read a message, and no reading of klamp's is trusted.
//!
//! Each test tells conversations with the same seeds each time. Others, or more:
//!
//!     KLAMP_TEST_SEED=1000 KLAMP_TEST_CONVERSATIONS=500 cargo test -p klamp-tests --test conversations
//!
//! tells those with the seeds from 1000 to 1499. A failure says which seed it was.

mod apis;
mod batches;
mod decoded;
mod frame;
mod judge;
mod matching;
mod pcapng;
mod run;
mod script;
mod talk;
mod words;
mod writer;

use run::{Mode, Run};

/// Conversations of a test.
const CONVERSATIONS: u64 = 130;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// Tells all conversations of a test, which begin with this seed unless another is given.
fn tell(mode: &Mode, first: u64) {
    let first = number("KLAMP_TEST_SEED").unwrap_or(first);
    let count = number("KLAMP_TEST_CONVERSATIONS").unwrap_or(CONVERSATIONS);
    let mut run = Run::start(mode, first);
    for seed in first..first + count {
        run.converse(seed);
    }
    let counts = run.finish();
    eprintln!("{}: {counts:?}", mode.name);
    // Where nothing is kept nothing is wrong.
    let is_much = counts.frames as u64 > 10 * count && counts.pairs as u64 > 4 * count;
    assert!(
        count < 20 || is_much && counts.triggered > 0,
        "too little was looked at"
    );
}

#[test]
fn captures_are_what_was_said_without_what_is_withheld() {
    let mode = Mode {
        name: "captures_are_what_was_said_without_what_is_withheld",
        arguments: &[],
        keeps_records: false,
        keeps_unread: false,
        is_small: false,
    };
    tell(&mode, 1000);
}

#[test]
fn records_are_kept_where_they_are_asked_for() {
    let mode = Mode {
        name: "records_are_kept_where_they_are_asked_for",
        arguments: &["--capture-records"],
        keeps_records: true,
        keeps_unread: false,
        is_small: false,
    };
    tell(&mode, 2000);
}

#[test]
fn what_cannot_be_read_is_kept_where_that_is_asked_for() {
    let mode = Mode {
        name: "what_cannot_be_read_is_kept_where_that_is_asked_for",
        arguments: &["--capture-opaque"],
        keeps_records: false,
        keeps_unread: true,
        is_small: false,
    };
    tell(&mode, 3000);
}

#[test]
fn with_little_memory_connections_lose_what_they_said_first() {
    let mode = Mode {
        name: "with_little_memory_connections_lose_what_they_said_first",
        arguments: &["--capture-memory=1MiB"],
        keeps_records: false,
        keeps_unread: false,
        is_small: true,
    };
    tell(&mode, 4000);
}
