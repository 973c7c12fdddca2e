//! klamp's captures from outside: `/captures`, files, `klamp decode`.

use crate::klamp::{self, Klamp};
use crate::{place, scrape};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

impl Klamp {
    /// What `/captures` lists, the oldest first.
    ///
    /// # Panics
    /// If the page is not there.
    #[track_caller]
    pub fn captures(&self) -> Vec<Value> {
        let page = self.debug_page("/captures");
        let captures = page["captures"].as_array();
        captures
            .unwrap_or_else(|| panic!("no list: {page}"))
            .clone()
    }

    /// Waits until one capture is as it is wanted.
    ///
    /// # Panics
    /// If none is `within` that time.
    #[track_caller]
    pub fn captured(
        &self,
        within: Duration,
        what: &str,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let start = Instant::now();
        loop {
            let all = self.captures();
            if let Some(wanted) = all.iter().find(|capture| is_wanted(capture)) {
                return wanted.clone();
            }
            assert!(
                start.elapsed() < within,
                "waited {within:?} in vain for a capture, {what}, but: {all:#?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Has what the connection of a client said captured now, and returns the capture's id.
    ///
    /// # Panics
    /// If there is no such connection, or no capture of it.
    #[track_caller]
    pub fn capture_by_hand(&self, client: std::net::SocketAddr) -> u64 {
        let page = self.debug_page("/connections");
        let all = page["connections"].as_array().expect("it is a list");
        let mine = all.iter().find(|it| it["peer"] == client.to_string());
        let id = &mine.unwrap_or_else(|| panic!("no {client}: {page}"))["id"];
        let path = format!("/captures?connection={id}&format=json");
        let (status, body) = scrape::ask(self.debug(), "POST", &path);
        let body = String::from_utf8_lossy(&body);
        assert_eq!(status, 201, "{path}: {body}");
        let report: Value = serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}"));
        report["id"]
            .as_u64()
            .unwrap_or_else(|| panic!("no id: {body}"))
    }

    /// A capture's file, downloaded to a room of its own.
    ///
    /// # Panics
    /// If it is not there.
    #[track_caller]
    pub fn download(&self, capture: &Value) -> PathBuf {
        let path = format!("/captures/{}.pcapng", capture["id"]);
        let (status, body) = scrape::ask(self.debug(), "GET", &path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        let file = place::room("capture").join("it.pcapng");
        std::fs::write(&file, body).expect("a room can be written to");
        file
    }
}

/// What `klamp decode` prints of a file.
///
/// # Panics
/// If it does not find all of it readable.
#[track_caller]
pub fn decoded(file: &Path, arguments: &[&str]) -> String {
    let file = file.to_str().expect("cargo's folders are UTF-8");
    let (code, out, err) = klamp::run(&[&["decode", file], arguments].concat());
    // With JSON, what klamp wrote of the file as a whole stands there.
    let mut words = err.lines().filter(|line| !line.starts_with("# "));
    assert_eq!((code, words.next()), (Some(0), None), "{out}");
    out
}

/// The exchanges that `klamp decode --json` prints of a file.
///
/// # Panics
/// If it does not find all of it readable.
#[track_caller]
pub fn exchanges(file: &Path, arguments: &[&str]) -> Vec<Value> {
    let out = decoded(file, &[&["--json"], arguments].concat());
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}
