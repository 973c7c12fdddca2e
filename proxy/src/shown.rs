//! What peers call themselves, made fit for a log line or a page: no control characters, no bytes
//! that fool a terminal, no length that a peer chooses.

use std::fmt::{self, Write};

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
