//! What the demo prints, laid out for a person at a terminal.

use std::io::{IsTerminal, Write};

/// Standard output.
#[derive(Debug)]
pub(crate) struct Page {
    /// Whether a person sees it as it is printed.
    terminal: bool,
}

impl Page {
    /// Bold headings and progress only on a terminal.
    pub(crate) fn new() -> Self {
        Self {
            terminal: std::io::stdout().is_terminal(),
        }
    }

    /// The first line.
    pub(crate) fn title(&self, text: &str) {
        self.bold(text);
    }

    /// The start of a section.
    pub(crate) fn heading(&self, text: &str) {
        println!();
        self.bold(text);
    }

    /// A line of a section.
    pub(crate) fn text(&self, line: &str) {
        println!("  {line}");
    }

    /// What something else has said, as it said it.
    pub(crate) fn quote(&self, lines: &str) {
        for line in lines.lines() {
            println!("{}", format!("    {line}").trim_end());
        }
    }

    /// Lines of two columns.
    pub(crate) fn columns(&self, rows: &[(String, &str)]) {
        let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
        for (left, right) in rows {
            println!("    {left:width$}  {right}");
        }
    }

    /// A line that replaces the last one of this kind; for people only.
    pub(crate) fn progress(&self, line: &str) {
        if self.terminal {
            print!("\r  {line}");
            // A terminal that has gone is found out by the next println.
            let _ = std::io::stdout().flush();
        }
    }

    /// After the last [`Page::progress`].
    pub(crate) fn end_of_progress(&self) {
        if self.terminal {
            println!();
        }
    }

    fn bold(&self, text: &str) {
        if self.terminal {
            println!("\x1b[1m{text}\x1b[0m");
        } else {
            println!("{text}");
        }
    }
}
