//! What peers call themselves, made fit for a log line or a page: no control characters, no bytes
//! that fool a terminal, no length that a peer chooses. And times, without digits that tell nothing.

use klamp_codec::render::is_plain;
use std::fmt::{self, Write};
use std::time::Duration;

/// Characters of a name that are shown.
const MOST: usize = 128;

/// Bytes from a peer, escaped and cut; `-` where there are none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a>(pub(crate) Option<&'a [u8]>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bytes) = self.0 else {
            return f.write_char('-');
        };
        match std::str::from_utf8(bytes) {
            Ok(text) => cut(f, text.chars().flat_map(char::escape_debug)),
            Err(_) => cut(f, bytes.escape_ascii().map(char::from)),
        }
    }
}

fn cut(f: &mut fmt::Formatter<'_>, mut escaped: impl Iterator<Item = char>) -> fmt::Result {
    for char in escaped.by_ref().take(MOST) {
        f.write_char(char)?;
    }
    match escaped.next() {
        Some(_) => f.write_char('…'),
        None => Ok(()),
    }
}

/// A measured time to three significant digits, for people.
pub(crate) fn rounded(time: Duration) -> Duration {
    let nanos = time.as_nanos();
    let mut unit = 1;
    while nanos / unit >= 1000 {
        unit *= 10;
    }
    Duration::from_nanos_u128((nanos + unit / 2) / unit * unit)
}

/// A line of which some may be of a peer's choosing, escaped where it would fool a terminal.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        match is_plain(char) {
            true => line.push(char),
            false => line.extend(char.escape_debug()),
        }
    }
    line
}

/// The same JSON: what would fool a terminal can only stand in its strings, and is escaped there.
pub(crate) fn json(text: String) -> String {
    let is_shown = |char: char| is_plain(char) || char == '\n';
    if text.chars().all(is_shown) {
        return text;
    }
    let mut json = String::with_capacity(text.len());
    for char in text.chars() {
        if is_shown(char) {
            json.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            // A String takes all.
            let _ = write!(json, "\\u{unit:04x}");
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_they_are_where_that_is_safe() {
        let shown = |bytes: &[u8]| Shown(Some(bytes)).to_string();
        assert_eq!(shown(b"my-app 1"), "my-app 1");
        assert_eq!(shown("café".as_bytes()), "café");
        assert_eq!(shown(b""), "");
        assert_eq!(Shown(None).to_string(), "-");
    }

    #[test]
    fn a_line_and_json_have_nothing_that_could_fool_a_terminal_and_lose_nothing() {
        let hostile = "caf\u{e9} \u{9b}31m\u{202e}\u{1b}[2J\u{7f}\u{e0001}\"\\";
        let safe = "caf\u{e9} \\u{9b}31m\\u{202e}\\u{1b}[2J\\u{7f}\\u{e0001}\"\\";
        assert_eq!(line(hostile), safe);
        let value = serde_json::json!({"name": hostile, hostile: [hostile]});
        for text in [value.to_string(), format!("{value:#}")] {
            let safe = json(text);
            let is_shown = |char: char| is_plain(char) || char == '\n';
            assert!(safe.chars().all(is_shown), "{safe}");
            let back: serde_json::Value = serde_json::from_str(&safe).unwrap();
            assert_eq!(back, value);
        }
    }

    #[test]
    fn times_have_three_digits_that_count() {
        for (nanos, shown) in [
            (0, "0ns"),
            (7, "7ns"),
            (1_002, "1µs"),
            (1_095_412, "1.1ms"),
            (13_106_788, "13.1ms"),
            (508_945_000, "509ms"),
            (999_499_999, "999ms"),
            (999_500_000, "1s"),
            (2_456_549_640, "2.46s"),
            (98_765_432_100_000, "98800s"),
        ] {
            let rounded = rounded(Duration::from_nanos(nanos));
            assert_eq!(format!("{rounded:?}"), shown, "{nanos}");
        }
        assert_eq!(
            rounded(Duration::from_nanos(2_456_549_640)).as_secs_f64(),
            2.46
        );
        assert!(rounded(Duration::from_secs(1 << 40)) > Duration::from_secs(1 << 39));
    }

    #[test]
    fn what_could_fool_a_terminal_or_a_log_is_escaped_and_cut() {
        let shown = |bytes: &[u8]| Shown(Some(bytes)).to_string();
        assert_eq!(shown(b"a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
        assert_eq!(shown("\u{202e}x".as_bytes()), "\\u{202e}x");
        assert_eq!(shown(b"\xff\x00"), "\\xff\\x00");
        for hostile in [vec![b'x'; 1 << 20], vec![0xff; 1 << 20], vec![0; 1 << 20]] {
            assert_eq!(shown(&hostile).chars().count(), MOST + 1);
        }
    }
}
