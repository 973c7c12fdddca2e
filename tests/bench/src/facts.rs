//! What a reader must know of the machine and the setting to judge the figures.

use crate::rivals;
use crate::sample::Facts;
use rustix::net::sockopt::tcp_congestion;
use rustix::process::{Resource, getrlimit};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

/// As they are now. `klamp` is klamp's binary.
pub fn gather(klamp: &Path, threads: usize) -> Facts {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let read = |path| fs::read_to_string(path).unwrap_or_else(|_| "not known".to_owned());
    let cpuinfo = read("/proc/cpuinfo");
    let field = |name: &str| {
        let line = cpuinfo.lines().find_map(|line| line.strip_prefix(name));
        line.map_or("not known", |rest| {
            rest.trim_start_matches([':', ' ', '\t'])
        })
        .to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let interfaces = read("/proc/net/dev").lines().skip(2).count();
    let alone = if interfaces == 1 {
        "of its own"
    } else {
        "of the host"
    };
    let memory = read("/proc/meminfo");
    let total = memory.lines().next().and_then(|line| {
        let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?;
        kib.parse::<u64>().ok()
    });
    let facts = [
        ("Date", said("date", &["-u", "+%Y-%m-%d"])),
        (
            "Processor",
            format!("{cores} cores, {}", field("model name")),
        ),
        (
            "Memory",
            total.map_or("not known".to_owned(), |kib| format!("{} MiB", kib / 1024)),
        ),
        (
            "Kernel",
            format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        ),
        (
            "Network",
            format!("loopback, in a network namespace {alone}"),
        ),
        (
            "Congestion control",
            congestion_control().unwrap_or_else(|error| error.to_string()),
        ),
        ("File descriptors of a process", descriptors.to_string()),
        ("Threads of each proxy", threads.to_string()),
        ("klamp", format!("{}, {}", version(klamp), build(klamp))),
        ("Commit", commit()),
    ];
    let own = facts
        .into_iter()
        .map(|(label, value)| (label.to_owned(), value));
    own.chain(rivals::versions()).collect()
}

/// As a connection here gets it: a route may say another one than is usual for the namespace.
fn congestion_control() -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (accepted, _) = listener.accept()?;
    let (one, other) = (tcp_congestion(&client)?, tcp_congestion(&accepted)?);
    Ok(if one == other {
        one
    } else {
        format!("{one} to and {other} from a listener")
    })
}

fn version(klamp: &Path) -> String {
    said(klamp, &["--version"])
}

/// That of the folder in which the benchmark was built.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let here = ["-C", env!("CARGO_MANIFEST_DIR")];
        said("git", &[&here, arguments].concat())
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    let suffix = if changed.is_empty() { "" } else { ", changed" };
    git(&["rev-parse", "--short", "HEAD"]) + suffix
}

/// What a command writes.
fn said(program: impl AsRef<OsStr>, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let good = output.ok().filter(|output| output.status.success());
    good.map_or("not known".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}

/// How it was built: a program without an interpreter is linked statically.
fn build(klamp: &Path) -> &'static str {
    let file = fs::read(klamp).unwrap_or_default();
    let head = &file[..file.len().min(4096)];
    let dynamic = head.windows(4).any(|word| word == b"/ld-");
    if dynamic {
        "linked to the host's glibc"
    } else {
        "static (musl), as it ships"
    }
}
