//! Runs `klamp` and reads its log.
//!
//! The trap: ports are chosen by the kernel, so that tests run side by side; the log is the only
//! place that tells which. Every wait has an end, and no process outlives its test.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// For what should take no time at all, on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// `klamp` with these arguments and nothing in its environment that could change them.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_klamp"));
    command.args(args).env_clear().stdin(Stdio::null());
    command
}

/// Runs `klamp` to its end. For runs that end by themselves.
pub(crate) fn output(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// A running `klamp run`.
pub(crate) struct Klamp {
    process: Child,
    log: Receiver<Value>,
    listens: Vec<SocketAddr>,
    admin: Option<SocketAddr>,
    debug: Option<SocketAddr>,
}

impl Klamp {
    /// In front of these upstreams, each behind a listener on a port of its own, and ready.
    pub(crate) fn before(upstreams: &[&str], more: &[&str]) -> Self {
        let listens = vec!["127.0.0.1:0"; upstreams.len()].join(",");
        let upstreams = upstreams.join(",");
        let mut args = vec!["run", "--log-format=json", "--threads=2"];
        args.extend(["--listen", &listens, "--upstream", &upstreams]);
        args.extend(more);
        Self::spawn(command(&args))
    }

    /// Runs a command that logs in JSON, and waits until it is ready.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let (tell, log) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let mut klamp = Self {
            process,
            log,
            listens: Vec::new(),
            admin: None,
            debug: None,
        };
        loop {
            let line = klamp.next_line();
            match line["message"].as_str() {
                Some("listening") => klamp.listens.push(address(&line)),
                Some("pages for probes and Prometheus") => klamp.admin = Some(address(&line)),
                Some("pages for operators") => klamp.debug = Some(address(&line)),
                Some("ready") => return klamp,
                _ => {}
            }
        }
    }

    /// The address of the first listener.
    pub(crate) fn listen(&self) -> SocketAddr {
        self.listens[0]
    }

    /// The addresses of all listeners, in the order given.
    pub(crate) fn listens(&self) -> &[SocketAddr] {
        &self.listens
    }

    /// What `--admin` serves at `path`: the status and the page.
    pub(crate) fn page(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin.unwrap()).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: klamp\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap();
        (status.parse().unwrap(), page.to_owned())
    }

    /// What `--debug` answers to a request of this method: the status and the page.
    pub(crate) fn debug_page(&self, method: &str, path: &str, body: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(self.debug.unwrap()).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
        let page = answer.split_off(end + 4);
        let head = String::from_utf8(answer).unwrap();
        let status = head.split(' ').nth(1).unwrap();
        (status.parse().unwrap(), page)
    }

    /// Waits until `/metrics` has this line.
    pub(crate) fn wait_for_metric(&self, line: &str) {
        let started = Instant::now();
        loop {
            let (_, page) = self.page("/metrics");
            if page.lines().any(|is| is == line) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "{line:?} is not in\n{page}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a log line whose message contains `part`.
    pub(crate) fn wait_for(&self, part: &str) -> Value {
        loop {
            let line = self.next_line();
            if line["message"].as_str().is_some_and(|m| m.contains(part)) {
                return line;
            }
        }
    }

    /// The next log line; one that is not JSON is a string.
    pub(crate) fn next_line(&self) -> Value {
        let line = self.log.recv_timeout(PATIENCE);
        line.expect("klamp neither said what is waited for nor ended")
    }

    /// The process's id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Asks for the end, and gives the exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.ended().code()
    }

    /// Waits for the end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "klamp does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Klamp {
    fn drop(&mut self) {
        // Fails where the process has ended, as it should have.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn address(line: &Value) -> SocketAddr {
    line["listen"].as_str().unwrap().parse().unwrap()
}
