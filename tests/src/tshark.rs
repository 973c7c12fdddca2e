//! Debian's tshark, which says what others see in a capture.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// A packet as tshark tells of it: the values of the fields that were asked for.
#[derive(Clone, Debug)]
pub struct Packet(Value);

impl Packet {
    /// All values of a field in this packet.
    pub fn all(&self, field: &str) -> Vec<&str> {
        let values = self.0[field].as_array();
        values
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// The first value of a field.
    pub fn first(&self, field: &str) -> Option<&str> {
        self.all(field).first().copied()
    }

    /// A field that is a number.
    ///
    /// # Panics
    /// If the packet does not have it.
    #[track_caller]
    pub fn number(&self, field: &str) -> i64 {
        let value = self.first(field).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("no number {field}: {self:?}"))
    }
}

/// These fields of each packet of a file that `filter` lets through; an empty one lets all.
///
/// # Panics
/// If tshark cannot be started, or does not read the file to its end without a word.
#[track_caller]
pub fn packets(file: &Path, filter: &str, fields: &[&str]) -> Vec<Packet> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-n", "-T", "json"]);
    tshark.args(["-Y", filter]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("cannot run tshark: {e}"));
    let err = String::from_utf8_lossy(&output.stderr);
    // It warns of root, which it does not need.
    let words = err
        .lines()
        .filter(|line| !line.starts_with("Running as user"));
    assert_eq!(words.collect::<Vec<_>>(), [""; 0], "{}", file.display());
    assert!(output.status.success(), "{}: {err}", file.display());
    let packets: Vec<Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stdout)));
    packets
        .into_iter()
        .map(|packet| Packet(packet["_source"]["layers"].clone()))
        .collect()
}
