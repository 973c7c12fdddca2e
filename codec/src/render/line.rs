//! A message as one line: its head, its error codes, and where it broke.

use super::form::{Batch, End, Form, Head, Scope, Shown, UnknownTag};
use crate::types::{Direction, ErrorCode};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Writes one line.
#[derive(Debug, Default)]
pub struct Line {
    out: String,
    /// Something stands in the line already, though it may have been taken away.
    has_begun: bool,
    has_codes: bool,
    /// How often each error code came, but 0.
    errors: BTreeMap<ErrorCode, u64>,
}

impl Form for Line {
    fn head(&mut self, head: &Head<'_>) {
        let _ = write!(self.out, "{head}");
        self.has_begun = true;
        self.has_codes = head.direction == Direction::Response && head.has_body;
    }

    fn token(&mut self, bytes: u32) {
        let _ = write!(self.out, "SASL token {}", Shown::Withheld(bytes));
        self.has_begun = true;
    }

    fn value(&mut self, _: &'static str, value: Shown<'_>) {
        if let Shown::ErrorCode(code) = value
            && code != ErrorCode::NONE
        {
            let count = self.errors.entry(code).or_default();
            *count = count.saturating_add(1);
        }
    }

    fn begin(&mut self, _: &'static str, _: Scope) {}

    fn element(&mut self) {}

    fn end(&mut self) {}

    fn batch(&mut self, _: &Batch) {}

    fn other_batches(&mut self, _: u32) {}

    fn unknown_tag(&mut self, _: &UnknownTag) {}

    fn finish(&mut self, end: &End) {
        if self.errors.is_empty() && self.has_codes && matches!(end, End::Whole(_)) {
            self.out.push_str(", no error");
        }
        for (&code, count) in &self.errors {
            let _ = match count {
                1 => write!(self.out, ", {}", Shown::ErrorCode(code)),
                _ => write!(self.out, ", {count} times {}", Shown::ErrorCode(code)),
            };
        }
        let _ = match end {
            End::Whole(0) => writeln!(self.out),
            End::Whole(trailing) => writeln!(self.out, ", {trailing} bytes follow the message"),
            End::Broken(broken) if !self.has_begun => writeln!(self.out, "{broken}"),
            End::Broken(broken) => writeln!(self.out, ", {broken}"),
        };
    }

    fn written(&mut self) -> &mut String {
        &mut self.out
    }
}
