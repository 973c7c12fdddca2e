//! Where things are: the binary under test, Kafka's jars, and rooms for logs and data. And ports.
//!
//! The trap: `CARGO_BIN_EXE_klamp` exists only in klamp's own package, and cargo does not build a
//! binary for the tests of another one. `tests/run` builds it first; whoever runs `cargo test -p
//! klamp-tests` by hand does so too (`cargo build -p klamp`), else an older binary is tested.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// The klamp binary: `KLAMP_BIN`, else the one that cargo built beside this test.
///
/// # Panics
/// If it is not there.
pub fn klamp_binary() -> PathBuf {
    let path =
        std::env::var_os("KLAMP_BIN").map_or_else(|| profile_dir().join("klamp"), PathBuf::from);
    assert!(
        path.is_file(),
        "no klamp at {}: run `cargo build -p klamp`, or name it in KLAMP_BIN",
        path.display()
    );
    path
}

/// The folder with the jars of Kafka's server and tools of `version`: in `KLAMP_KAFKA_JARS`, else
/// where `tests/run` puts them.
///
/// # Panics
/// If it is not there.
pub fn kafka_jars(version: &str) -> PathBuf {
    let all = std::env::var_os("KLAMP_KAFKA_JARS")
        .map_or_else(|| target_dir().join("kafka"), PathBuf::from);
    let path = all.join(version);
    assert!(
        path.join(format!("kafka-tools-{version}.jar")).is_file(),
        "no Kafka {version} in {}: `tests/run` fetches it, or name the folder in KLAMP_KAFKA_JARS",
        path.display()
    );
    path
}

/// Prometheus' promtool: the one on the path, else the one that `tests/run` unpacks.
///
/// # Panics
/// If there is neither.
pub fn promtool() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let unpacked = target_dir().join("prometheus/usr/bin");
    std::env::split_paths(&path)
        .chain([unpacked])
        .map(|dir| dir.join("promtool"))
        .find(|file| file.is_file())
        .expect("no promtool on the path: `tests/run` unpacks Debian's")
}

/// The librdkafka 2.0.2 that `tests/run` fetches: the last that speaks no newer versions than Wireshark of
/// Debian 12 knows.
///
/// # Panics
/// If it is not there.
pub fn old_librdkafka() -> PathBuf {
    let folder = target_dir().join("librdkafka/2.0.2");
    let files = std::fs::read_dir(&folder).into_iter().flatten();
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let is_it = |path: &PathBuf| path.to_string_lossy().contains("/librdkafka-");
    let path = paths.into_iter().find(is_it);
    path.unwrap_or_else(|| {
        panic!(
            "no librdkafka in {}: `tests/run` fetches it",
            folder.display()
        )
    })
}

/// A program of ours in Python.
pub fn python_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("python")
        .join(name)
}

/// The source of a Java program of ours.
pub fn java_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("java")
        .join(name)
}

/// A new empty folder for the logs and data of one process, under `target/klamp-tests`.
pub fn room(name: &str) -> PathBuf {
    static ROOMS: AtomicUsize = AtomicUsize::new(0);
    let number = ROOMS.fetch_add(1, Ordering::Relaxed);
    let path = target_dir()
        .join("klamp-tests")
        .join(std::process::id().to_string())
        .join(format!("{number}-{name}"));
    std::fs::create_dir_all(&path)
        .unwrap_or_else(|e| panic!("cannot make {}: {e}", path.display()));
    path
}

/// A loopback address whose port was free a moment ago and is given out once per process. Outside
/// the range that the kernel gives to outgoing connections, so that none of those takes it.
pub fn free_address() -> SocketAddr {
    const RANGE: std::ops::Range<u16> = 20_000..32_000;
    static GIVEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);
    let mut given = GIVEN.lock().expect("no holder panics");
    loop {
        let port = fastrand::u16(RANGE);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if !given.contains(&port) && TcpListener::bind(address).is_ok() {
            given.insert(port);
            return address;
        }
    }
}

/// `target/debug` or its like.
fn profile_dir() -> PathBuf {
    let exe = std::env::current_exe().expect("a process knows its executable");
    let mut dir = exe.parent().expect("an executable is in a folder");
    if dir.ends_with("deps") || dir.ends_with("examples") {
        dir = dir.parent().expect("cargo's folders are nested");
    }
    dir.to_path_buf()
}

/// Cargo's target folder: the one in which cargo keeps what it knows of rustc.
pub fn target_dir() -> PathBuf {
    let profile = profile_dir();
    profile
        .ancestors()
        .find(|dir| dir.join(".rustc_info.json").is_file())
        .unwrap_or(&profile)
        .to_path_buf()
}
