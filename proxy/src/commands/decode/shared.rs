//! What all connections of a file share: how and where to print, the names of topics, what is held, and
//! what went wrong.

use super::budget::Budget;
use super::met::Met;
use super::print;
use super::talk::{Ends, Half};
use super::told::{Style, Told};
use super::topics::Topics;
use crate::capture::pcapng::comment::Note;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// What all connections share.
pub(super) struct Shared {
    pub(super) style: Style,
    pub(super) topics: Topics,
    pub(super) budget: Budget,
    /// What has been printed, for whoever takes it away.
    pub(super) out: RefCell<String>,
    /// What is remarked where the output is for machines.
    pub(super) remarks: RefCell<String>,
    pub(super) frames: Cell<u64>,
    /// Frames that could not be read to their end.
    pub(super) broken: Cell<u64>,
    /// Offset in the file of the packet that is being read.
    pub(super) at: Cell<u64>,
    /// That of the first that broke.
    pub(super) first_broken: Cell<Option<u64>>,
    pub(super) met: RefCell<Met>,
}

impl Shared {
    pub(super) fn new(style: Style, topics: Topics) -> Self {
        Self {
            style,
            topics,
            budget: Budget::default(),
            out: RefCell::default(),
            remarks: RefCell::default(),
            frames: Cell::new(0),
            broken: Cell::new(0),
            at: Cell::new(0),
            first_broken: Cell::new(None),
            met: RefCell::default(),
        }
    }

    /// For a message that begins.
    pub(super) fn told(&self, note: Option<&Note>) -> Told {
        Told::new(self.style, self.budget.held(), self.topics.clone(), note)
    }

    /// Counts a frame.
    pub(super) fn count_frame(&self, is_broken: bool) {
        self.frames.set(self.frames.get() + 1);
        if is_broken {
            self.broken.set(self.broken.get() + 1);
            if self.first_broken.get().is_none() {
                self.first_broken.set(Some(self.at.get()));
            }
        }
    }

    /// Prints a request and its answer, as far as they are there; without an answer why there is none.
    pub(super) fn exchange(
        &self,
        ends: &Ends,
        software: Option<&[String; 2]>,
        asked: Option<Half>,
        answer: Option<Half>,
        silence: &str,
    ) {
        let mut out = self.out.borrow_mut();
        match self.style {
            Style::Line | Style::Text => print::text(&mut out, self, ends, asked, answer, silence),
            Style::Json => print::json(&mut out, ends, software, asked, answer, silence),
        }
    }

    /// Says something of a connection.
    pub(super) fn remark(&self, ends: &Ends, time: Duration, what: &str) {
        let time = print::time(time);
        let line = format!("{time} {} -> {} {what}\n", ends.client, ends.broker);
        self.say(&line);
    }

    /// Says something of the file.
    pub(super) fn say(&self, line: &str) {
        let out = match self.style {
            Style::Line | Style::Text => &self.out,
            Style::Json => &self.remarks,
        };
        out.borrow_mut().push_str(line);
    }
}
