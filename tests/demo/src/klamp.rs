//! The real `klamp`, run as an operator runs it, and what it says: log, metrics, exit code.

use crate::ports::Ports;
use klamp_tests::process::Process;
use klamp_tests::scrape::{self, Scrape};
use klamp_tests::{place, wait};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a thing may take that takes an idle machine some milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running klamp.
#[derive(Debug)]
pub(crate) struct Klamp {
    binary: PathBuf,
    process: Process,
    admin: SocketAddr,
    debug: SocketAddr,
}

impl Klamp {
    /// Runs it in front of `upstream`, and waits until it is ready.
    ///
    /// # Panics
    /// If it does not get ready.
    pub(crate) fn start(binary: PathBuf, ports: &Ports, upstream: SocketAddr) -> Self {
        let mut command = Command::new(&binary);
        command
            .arg("run")
            .args(["--listen", &ports.clients.to_string()])
            .args(["--upstream", &upstream.to_string()])
            .args(["--admin", &ports.admin.to_string()])
            .args(["--debug", &ports.debug.to_string()])
            // Ctrl-C reaches all processes of the terminal's group. It is the demo that ends klamp.
            .process_group(0);
        let room = place::room("klamp");
        let process = Process::spawn("klamp", command, Stdio::null(), &room, None);
        let mut klamp = Self {
            binary,
            process,
            admin: ports.admin,
            debug: ports.debug,
        };
        klamp.await_ready();
        klamp
    }

    fn await_ready(&mut self) {
        wait::until_holds(PATIENCE, "klamp gets ready", || {
            if let Some(status) = self.process.ended() {
                panic!("klamp ended by itself: {status}");
            }
            TcpStream::connect(self.admin).is_ok() && scrape::get(self.admin, "/readyz").0 == 200
        });
    }

    /// What `klamp versions` prints about a broker, but for the rows of what that does not offer.
    ///
    /// # Panics
    /// If it fails.
    pub(crate) fn versions_of(&self, broker: SocketAddr) -> String {
        let output = Command::new(&self.binary)
            .args(["versions", &broker.to_string()])
            .output()
            .expect("klamp has run before");
        assert!(
            output.status.success(),
            "klamp versions {broker}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let table = String::from_utf8_lossy(&output.stdout);
        let is_offered = |line: &&str| !line.contains("does not offer");
        let lines = table.lines().filter(is_offered);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The line of its log that has all these words.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn log_line_about(&self, words: &[&str]) -> String {
        wait::until(
            PATIENCE,
            &format!("klamp logs a line with {words:?}"),
            || {
                let log = self.process.err();
                let line = log
                    .lines()
                    .find(|line| words.iter().all(|word| line.contains(word)));
                line.map(str::to_owned)
            },
        )
    }

    /// `/captures`, once there is one.
    ///
    /// # Panics
    /// If there never is.
    pub(crate) fn captures(&self) -> String {
        wait::until(PATIENCE, "klamp keeps a capture", || {
            let (status, page) = scrape::get(self.debug, "/captures");
            Some(page).filter(|page| status == 200 && page.lines().count() > 1)
        })
    }

    /// `/metrics`, once `condition` holds: klamp counts a moment after the bytes have gone.
    ///
    /// # Panics
    /// With `what` if it never holds.
    pub(crate) fn scrape_until(&self, what: &str, condition: impl Fn(&Scrape) -> bool) -> Scrape {
        wait::until(PATIENCE, what, || {
            Some(Scrape::of(self.admin)).filter(&condition)
        })
    }

    /// Sends SIGTERM, lets the clients go with `say_goodbye`, and waits for the end: how long it took.
    ///
    /// # Panics
    /// If klamp does not end properly, or had to cut a connection.
    pub(crate) fn drain(mut self, say_goodbye: impl FnOnce()) -> Duration {
        let start = Instant::now();
        self.process.signal(rustix::process::Signal::TERM);
        say_goodbye();
        let status = self.process.wait(PATIENCE);
        assert!(status.success(), "klamp ended with {status}");
        assert!(
            self.process.err().contains("no connection is left"),
            "klamp ended without having drained"
        );
        start.elapsed()
    }
}
