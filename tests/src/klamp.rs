//! klamp itself, run as an operator runs it: arguments, JSON log, `/metrics`, SIGTERM.

use crate::process::Process;
use crate::scrape::{self, Scrape};
use crate::{place, wait};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long klamp may take for what takes it milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running klamp. Killed on drop; its log is named if the thread is panicking.
#[derive(Debug)]
pub struct Klamp {
    process: Process,
    listens: Vec<SocketAddr>,
    admin: SocketAddr,
    debug: SocketAddr,
}

impl Klamp {
    /// Runs klamp on a free port in front of `upstream`.
    ///
    /// # Panics
    /// If it does not get ready.
    #[track_caller]
    pub fn start(upstream: SocketAddr) -> Self {
        Self::start_with(upstream, &[])
    }

    /// As [`Klamp::start`], with more arguments.
    ///
    /// # Panics
    /// If it does not get ready.
    #[track_caller]
    pub fn start_with(upstream: SocketAddr, arguments: &[&str]) -> Self {
        Self::between(&[(place::free_address(), upstream)], arguments)
    }

    /// Runs klamp with pairs of an address to listen on and its upstream.
    ///
    /// # Panics
    /// If it does not get ready.
    #[track_caller]
    pub fn between(pairs: &[(SocketAddr, SocketAddr)], arguments: &[&str]) -> Self {
        Self::under(Command::new(place::klamp_binary()), pairs, arguments)
    }

    /// As [`Klamp::between`], by a command that becomes klamp when it is given klamp's arguments.
    ///
    /// # Panics
    /// If it does not get ready.
    #[track_caller]
    pub fn under(
        mut command: Command,
        pairs: &[(SocketAddr, SocketAddr)],
        arguments: &[&str],
    ) -> Self {
        let (admin, debug) = (place::free_address(), place::free_address());
        command.arg("run");
        for (listen, upstream) in pairs {
            command.arg("--listen").arg(listen.to_string());
            command.arg("--upstream").arg(upstream.to_string());
        }
        command
            .args(["--admin", &admin.to_string(), "--debug", &debug.to_string()])
            .args(["--log-format", "json"])
            .args(arguments);
        let process = Process::spawn("klamp", command, Stdio::null(), &place::room("klamp"), None);
        let listens = pairs.iter().map(|(listen, _)| *listen).collect();
        let mut klamp = Self {
            process,
            listens,
            admin,
            debug,
        };
        klamp.await_ready();
        klamp
    }

    #[track_caller]
    fn await_ready(&mut self) {
        wait::until_holds(PATIENCE, "klamp gets ready", || {
            if let Some(status) = self.process.ended() {
                panic!("klamp ended: {status}:\n{}", self.process.last_words());
            }
            std::net::TcpStream::connect(self.admin).is_ok()
                && scrape::get(self.admin, "/readyz").0 == 200
        });
    }

    /// Where it listens for clients; the first address if there are several.
    pub fn address(&self) -> SocketAddr {
        self.listens[0]
    }

    /// The process: its memory, its descriptors.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Where `/metrics` is.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Where the pages for operators are.
    pub fn debug(&self) -> SocketAddr {
        self.debug
    }

    /// `/metrics` as it is now.
    #[track_caller]
    pub fn scrape(&self) -> Scrape {
        Scrape::of(self.admin)
    }

    /// Scrapes until `condition` holds, and returns that scrape. Counters are written a moment
    /// after the bytes that they count.
    ///
    /// # Panics
    /// With `what` and the last scrape's samples of klamp's own if it never holds.
    #[track_caller]
    pub fn scrape_until(&self, what: &str, condition: impl FnMut(&Scrape) -> bool) -> Scrape {
        self.scrape_within(PATIENCE, what, condition)
    }

    /// As [`Klamp::scrape_until`], with a time limit.
    ///
    /// # Panics
    /// With `what` and the last scrape's samples of klamp's own if it never holds.
    #[track_caller]
    pub fn scrape_within(
        &self,
        within: Duration,
        what: &str,
        mut condition: impl FnMut(&Scrape) -> bool,
    ) -> Scrape {
        let start = std::time::Instant::now();
        loop {
            let scrape = self.scrape();
            if condition(&scrape) {
                return scrape;
            }
            if start.elapsed() > within {
                let own = scrape.text.lines().filter(|line| {
                    line.starts_with("klamp_") && !line.contains("_bucket") && !line.ends_with(" 0")
                });
                let own: Vec<&str> = own.collect();
                panic!(
                    "waited {within:?} in vain: {what}; what klamp counted:\n{}",
                    own.join("\n")
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A page of the debug listener, as JSON.
    ///
    /// # Panics
    /// If the page is not there.
    #[track_caller]
    pub fn debug_page(&self, path: &str) -> Value {
        let (status, body) = scrape::get(self.debug, &format!("{path}?format=json"));
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|e| panic!("{path}: {e}: {body}"))
    }

    /// The log's lines so far.
    ///
    /// # Panics
    /// If a line is no JSON object.
    #[track_caller]
    pub fn log(&self) -> Vec<Value> {
        let text = self.process.err();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON: {e}: {line}"))
            })
            .collect()
    }

    /// Waits for a line of the log that has these fields with these values; lines are written a
    /// moment after what they tell of. Returns all such lines.
    ///
    /// # Panics
    /// If none comes.
    #[track_caller]
    pub fn logged(&self, fields: &[(&str, &str)]) -> Vec<Value> {
        wait::until(PATIENCE, &format!("a line with {fields:?}"), || {
            Some(with_fields(self.log(), fields)).filter(|lines| !lines.is_empty())
        })
    }

    /// Ends it as an operator does (SIGTERM), checks that it says goodbye properly, and returns its
    /// whole log.
    ///
    /// # Panics
    /// If it does not end with exit code 0, or has panicked before.
    #[track_caller]
    pub fn stop(mut self) -> Vec<Value> {
        let status = self.process.stop(PATIENCE);
        assert_eq!(status.code(), Some(0), "{}", self.process.last_words());
        self.check_no_panic();
        self.log()
    }

    /// Checks that it still runs and no task of its own has panicked.
    ///
    /// # Panics
    /// If that is not so.
    #[track_caller]
    pub fn check_alive(&mut self) {
        if let Some(status) = self.process.ended() {
            panic!("klamp ended: {status}:\n{}", self.process.last_words());
        }
        self.check_no_panic();
    }

    #[track_caller]
    fn check_no_panic(&self) {
        assert!(
            !self.process.err().contains("panicked"),
            "{}",
            self.process.last_words()
        );
    }
}

/// The lines that have these fields with these values, among others; numbers and strings alike.
pub fn with_fields(lines: Vec<Value>, fields: &[(&str, &str)]) -> Vec<Value> {
    let fits = |line: &Value| {
        fields.iter().all(|(name, value)| match line.get(name) {
            Some(Value::String(own)) => own == value,
            own => own.map(Value::to_string).as_deref() == Some(*value),
        })
    };
    lines.into_iter().filter(fits).collect()
}

/// Runs `klamp` with `arguments` to its end: exit code, standard output, standard error.
///
/// # Panics
/// If it cannot be started.
#[track_caller]
pub fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(place::klamp_binary())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("cannot run klamp: {e}"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}
