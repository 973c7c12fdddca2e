//! `/metrics` and the JSON pages, fetched and read.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One scrape of `/metrics`.
#[derive(Clone, Debug)]
pub struct Scrape {
    /// The text itself.
    pub text: String,
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// Fetches `path` by HTTP: status and body.
///
/// # Panics
/// If nothing answers there, or what answers is no HTTP or no text.
#[track_caller]
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let (status, body) = ask(address, "GET", path);
    let body = String::from_utf8(body).unwrap_or_else(|e| panic!("{path}: {e}"));
    (status, body)
}

/// Asks for `path` by HTTP with this method: status and body.
///
/// # Panics
/// If nothing answers there, or what answers is no HTTP.
#[track_caller]
pub fn ask(address: SocketAddr, method: &str, path: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(address)
        .unwrap_or_else(|e| panic!("cannot connect to {address} for {path}: {e}"));
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a socket takes options");
    // 1.0, so that the answer is neither chunked nor kept alive.
    let request = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .expect("a request is taken");
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .unwrap_or_else(|e| panic!("{path}: {e}"));
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("{path}: no HTTP answer: {answer:02x?}"));
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head
        .split_whitespace()
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("{path}: no HTTP status: {head}"));
    (status, answer[end + 4..].to_vec())
}

impl Scrape {
    /// Scrapes `/metrics`.
    ///
    /// # Panics
    /// If it does not answer with samples.
    #[track_caller]
    pub fn of(address: SocketAddr) -> Self {
        let (status, text) = get(address, "/metrics");
        assert_eq!(status, 200, "/metrics: {text}");
        Self::parse(text)
    }

    /// Reads Prometheus' text format.
    #[track_caller]
    fn parse(text: String) -> Self {
        let samples = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|line| sample(line).unwrap_or_else(|| panic!("no sample: {line}")))
            .collect();
        Self { text, samples }
    }

    /// The sum of all samples of `name` that have these labels, among others; `None` if there are none.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.samples(name, labels)
            .map(|(_, value)| value)
            .reduce(|a, b| a + b)
    }

    /// As [`Scrape::get`], with 0 for what has not been counted yet.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.get(name, labels).unwrap_or(0.0)
    }

    /// The samples of `name` that have these labels, among others.
    pub fn samples<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = (&'a BTreeMap<String, String>, f64)> {
        self.samples.iter().filter_map(move |(sample, own, value)| {
            let fits = sample == name
                && labels
                    .iter()
                    .all(|(k, v)| own.get(*k).is_some_and(|own| own == v));
            fits.then_some((own, *value))
        })
    }
}

/// Name, labels and value of a line. Label values in klamp's metrics hold no braces.
fn sample(line: &str) -> Option<(String, BTreeMap<String, String>, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    let Some((name, labels)) = series.split_once('{') else {
        return Some((series.to_owned(), BTreeMap::new(), value));
    };
    let mut rest = labels.strip_suffix('}')?;
    let mut own = BTreeMap::new();
    while !rest.is_empty() {
        let (key, after) = rest.split_once("=\"")?;
        let (label, after) = quoted(after)?;
        own.insert(key.to_owned(), label);
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    Some((name.to_owned(), own, value))
}

/// The value up to its closing quote, escapes undone, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Scrape;

    #[test]
    fn samples_are_found_by_some_of_their_labels_and_summed() {
        let text = "# HELP a x\n# TYPE a counter\na{k=\"one\",v=\"q\\\"\\\\u\"} 1\na{k=\"two\",v=\"\"} 2.5\nb 7\n";
        let scrape = Scrape::parse(text.to_owned());
        assert_eq!(scrape.get("a", &[]), Some(3.5));
        assert_eq!(scrape.get("a", &[("k", "two")]), Some(2.5));
        assert_eq!(scrape.get("a", &[("v", "q\"\\u")]), Some(1.0));
        assert_eq!(scrape.get("a", &[("k", "three")]), None);
        assert_eq!(scrape.sum("b", &[]), 7.0);
    }
}
