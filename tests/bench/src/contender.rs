//! What can stand between source and sink, and its processes while it runs.
//!
//! The trap: CPU and memory are those of a proxy's workers, which nginx forks from a master. So the
//! whole tree below the child is measured.

use klamp_tests::process::Process;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A proxy that can be put between: what starts it.
pub trait Contender {
    /// Its name in tables.
    fn name(&self) -> &str;

    /// Starts it: it listens on `listen` and forwards to `upstream`, on `threads` threads, and keeps
    /// what it writes in `dir`. Returns when it listens.
    ///
    /// # Errors
    /// If it does not come to listen.
    fn start(
        &self,
        listen: SocketAddr,
        upstream: SocketAddr,
        threads: usize,
        dir: &Path,
    ) -> io::Result<Running>;
}

/// A contender's processes. Dropped, it kills them; should this process be killed itself, the child
/// still goes.
#[derive(Debug)]
pub struct Running {
    child: Option<Process>,
}

impl Running {
    /// Starts `command` with its output in `dir`, and waits until somebody listens on `listen`.
    ///
    /// # Errors
    /// If it ends, or does not listen within 10 seconds.
    pub fn spawn(name: &str, command: Command, listen: SocketAddr, dir: &Path) -> io::Result<Self> {
        let mut child = Process::spawn(name, command, Stdio::null(), dir, None);
        let start = Instant::now();
        while !listens(listen)? {
            let ended = child.ended();
            if ended.is_some() || start.elapsed() > Duration::from_secs(10) {
                let words = child.last_words();
                let end = ended.map_or("does not listen".to_owned(), |end| end.to_string());
                return Err(io::Error::other(format!("{name}: {end}\n{words}")));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { child: Some(child) })
    }

    /// No process: source and sink are connected directly.
    pub fn nothing() -> Self {
        Self { child: None }
    }

    /// Asks the child to end (SIGTERM), waits, and gives what it wrote to standard error; nothing if
    /// there is none.
    ///
    /// # Panics
    /// If it does not end within 30 seconds.
    pub fn stop(mut self) -> String {
        let child = self.child.as_mut();
        child.map_or(String::new(), |child| {
            child.stop(Duration::from_secs(30));
            child.err()
        })
    }

    /// The child and all that descend from it now.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = self.child.iter().map(Process::pid).collect();
        let parents = parents();
        let mut next = 0;
        while let Some(&pid) = pids.get(next) {
            pids.extend(
                parents
                    .iter()
                    .filter(|(_, of)| *of == pid)
                    .map(|(child, _)| child),
            );
            next += 1;
        }
        pids
    }
}

/// Every process there is, with its parent.
fn parents() -> Vec<(u32, u32)> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        // It may end meanwhile. Its name, in brackets, may have blanks and brackets in it.
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, behind_name) = stat.rsplit_once(')')?;
        Some((pid, behind_name.split_whitespace().nth(1)?.parse().ok()?))
    })
    .collect()
}

/// Whether somebody listens there, asked without connecting: a proxy would pass a connection on.
fn listens(address: SocketAddr) -> io::Result<bool> {
    let SocketAddr::V4(v4) = address else {
        return Err(io::Error::other("the benchmark uses IPv4"));
    };
    // As /proc writes it: the address as a number in the machine's byte order, and LISTEN is 0A.
    let local = |ip: [u8; 4]| format!("{:08X}:{:04X}", u32::from_ne_bytes(ip), v4.port());
    let wanted = [local(v4.ip().octets()), local([0; 4])];
    let table = fs::read_to_string("/proc/net/tcp")?;
    Ok(table.lines().any(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let here = columns
            .next()
            .is_some_and(|local| wanted.iter().any(|wanted| wanted == local));
        here && columns.nth(1) == Some("0A")
    }))
}
