//! One klamp and the conversations through it, one after the other, while some go on in the background; and
//! what it captures of them, by hand and by itself.

mod blame;
mod look;

use self::blame::Blame;
use super::judge::Taken;
use super::talk::{Ending, Talk};
use super::words::{Word, forms_without};
use super::writer::pick;
use klamp_tests::klamp::Klamp;
use klamp_tests::needle::Forms;
use klamp_tests::{place, scrape, wait};
use serde_json::Value;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long klamp may take for what takes it milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How klamp is run.
pub(crate) struct Mode {
    /// The test.
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static [&'static str],
    /// Of messages of up to 16 KiB.
    pub(crate) keeps_records: bool,
    /// Of messages of up to 16 KiB.
    pub(crate) keeps_unread: bool,
    /// Connections that are quiet may lose what they said to others.
    pub(crate) is_small: bool,
}

/// How much was looked at.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) conversations: usize,
    pub(crate) by_hand: usize,
    pub(crate) triggered: usize,
    pub(crate) frames: usize,
    pub(crate) pairs: usize,
    pub(crate) bytes: usize,
}

/// A klamp under test.
pub(crate) struct Run<'m> {
    mode: &'m Mode,
    first_seed: u64,
    klamp: Klamp,
    broker: TcpListener,
    /// The capture that was looked at last.
    file: PathBuf,
    /// What must not stand in captures, in what is printed of them, and in the log.
    not_kept: Forms,
    not_shown: Forms,
    not_logged: Forms,
    /// How much of the log was looked at.
    logged: usize,
    open: Vec<Talk>,
    /// The latest that have ended: what klamp captures of that is there a moment later.
    ended: VecDeque<Talk>,
    pub(crate) counts: Counts,
}

impl<'m> Run<'m> {
    pub(crate) fn start(mode: &'m Mode, first_seed: u64) -> Self {
        let broker = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
        let address = broker.local_addr().expect("it is bound");
        let own = [
            "--threads=2",
            "--capture-on=BEYOND,malformed,mismatch,close",
        ];
        let klamp = Klamp::start_with(address, &[&own, mode.arguments].concat());
        let if_any = |is_kept: bool, word| is_kept.then_some(word);
        let text = if_any(mode.keeps_unread, Word::UnreadText);
        let unread = if_any(mode.keeps_unread, Word::UnreadSecret);
        let records = if_any(mode.keeps_records, Word::Records);
        let kept: Vec<_> = [text, unread, records].into_iter().flatten().collect();
        Self {
            mode,
            first_seed,
            klamp,
            broker,
            file: place::room("conversation").join("capture.pcapng"),
            not_kept: forms_without(&kept),
            not_shown: forms_without(text.as_slice()),
            not_logged: forms_without(&[]),
            logged: 0,
            open: Vec::new(),
            ended: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// The conversation that this seed tells.
    pub(crate) fn converse(&mut self, seed: u64) {
        let _blame = self.blame(seed);
        let mut talk = Talk::open(seed, self.klamp.address(), &self.broker);
        let id = self.connection(&talk);
        for _ in 0..pick(&mut talk.script.rng, &[1, 1, 2]) {
            self.round(&mut talk, id);
        }
        match talk.script.rng.f64() < 0.25 {
            true => self.open.push(talk),
            false => self.end(talk, id),
        }
        // (of many connections some lose what they said to others)
        let most = if self.mode.is_small { 12 } else { 3 };
        if self.open.len() > most {
            self.go_on_with_another();
        }
        self.look_at_triggered();
        self.forget_all_but(8);
        self.look_at_log();
        self.counts.conversations += 1;
    }

    /// Ends all that is open, and klamp.
    pub(crate) fn finish(mut self) -> Counts {
        while !self.open.is_empty() {
            self.go_on_with_another();
        }
        self.klamp
            .scrape_until("all connections are closed", |scrape| {
                scrape.get("klamp_connections_active", &[]) == Some(0.0)
            });
        self.look_at_triggered();
        self.forget_all_but(0);
        self.look_at_log();
        self.klamp.stop();
        self.counts
    }

    /// Of those that have ended, whose captures are there by now.
    fn forget_all_but(&mut self, latest: usize) {
        while self.ended.len() > latest
            && let Some(talk) = self.ended.pop_front()
        {
            let _blame = self.blame(talk.seed);
            let is_right = talk.is_captured || self.mode.is_small || !talk.has_triggered();
            assert!(
                is_right,
                "an answer had a code that nobody knows, and nothing was captured"
            );
        }
    }

    fn blame(&self, seed: u64) -> Blame {
        Blame::new(self.mode.name, self.first_seed, seed)
    }

    /// Goes on with what has been quiet for a while, and ends it.
    fn go_on_with_another(&mut self) {
        let mut talk = self.open.remove(0);
        let _blame = self.blame(talk.seed);
        let id = self.connection(&talk);
        match talk.script.rng.bool() {
            true => self.round(&mut talk, id),
            false => self.capture_at_rest(&mut talk, id),
        }
        self.end(talk, id);
    }

    /// Some exchanges, at times with a capture taken amid them.
    fn round(&mut self, talk: &mut Talk, id: u64) {
        let count = pick(&mut talk.script.rng, &[1, 3, 8, 20, 60]);
        talk.plan(count);
        let mut amid = None;
        if talk.script.rng.f64() < 0.4 {
            let stop = talk.script.rng.usize(..=talk.to_come());
            talk.pump(|talk| {
                let is_there = talk.to_come() <= stop;
                is_there && (talk.to_come() == 0 || talk.cuts.f64() < 0.3)
            });
            let debug = self.klamp.debug();
            talk.asked.get_or_insert_with(Instant::now);
            let answer = std::thread::scope(|scope| {
                let asking = scope.spawn(|| take(debug, id));
                talk.pump(|_| false);
                asking.join().expect("klamp answers")
            });
            amid = self.taken(answer);
        }
        talk.pump(|_| false);
        if let Some(number) = amid {
            self.look_at(number, talk, Taken::Amid);
            self.delete(number);
        }
        if talk.script.rng.f64() < 0.85 {
            self.capture_at_rest(talk, id);
        }
    }

    fn capture_at_rest(&mut self, talk: &mut Talk, id: u64) {
        talk.asked.get_or_insert_with(Instant::now);
        let answer = take(self.klamp.debug(), id);
        if let Some(number) = self.taken(answer) {
            self.look_at(number, talk, Taken::AtRest);
            self.delete(number);
        }
    }

    /// Ends a conversation, of which a capture goes on meanwhile.
    fn end(&mut self, mut talk: Talk, id: u64) {
        let how = pick(&mut talk.script.rng, &Ending::ALL);
        if how == Ending::Quiet {
            talk.end(how);
            return self.ended.push_back(talk);
        }
        talk.asked.get_or_insert_with(Instant::now);
        let answer = take(self.klamp.debug(), id);
        let number = self.taken(answer);
        talk.end(how);
        if let Some(number) = number {
            self.look_at(number, &talk, Taken::Amid);
            self.delete(number);
        }
        self.ended.push_back(talk);
    }

    /// The number that klamp has for a connection.
    fn connection(&self, talk: &Talk) -> u64 {
        wait::until(PATIENCE, "it is among /connections", || {
            let page = self.klamp.debug_page("/connections");
            let all = page["connections"].as_array().expect("it is a list");
            let mine = all.iter().find(|it| it["peer"] == talk.peer.to_string());
            mine?["id"].as_u64()
        })
    }

    /// What klamp says to whoever asks for a capture.
    fn taken(&mut self, (status, body): (u16, String)) -> Option<u64> {
        if self.mode.is_small && status == 503 {
            return None;
        }
        assert_eq!(status, 201, "{body}");
        self.counts.by_hand += 1;
        let answer: Value = serde_json::from_str(&body).expect("it is JSON");
        answer["id"].as_u64()
    }

    fn delete(&self, number: u64) {
        let (status, _) = scrape::ask(self.klamp.debug(), "DELETE", &format!("/captures/{number}"));
        assert!(
            status < 300 || self.mode.is_small && status == 404,
            "{status}"
        );
    }
}

/// Asks for a capture of a connection: status and answer.
fn take(debug: SocketAddr, id: u64) -> (u16, String) {
    let path = format!("/captures?connection={id}&format=json");
    let (status, body) = scrape::ask(debug, "POST", &path);
    (status, String::from_utf8_lossy(&body).into_owned())
}
