//! A message of a capture as it is told: to the form that is printed, and for what the exchange, and
//! those after it, want to know of it.
//!
//! The trap: a message waits for its answer as text, which can be many times its bytes. There is a most
//! to that, for all together; a message beyond it is printed without its fields.

use super::budget::Held;
use super::topics::{Learner, Topics};
use crate::capture::facts::Facts;
use crate::capture::pcapng::comment::Note;
use klamp_codec::Direction;
use klamp_codec::render::{Batch, End, Form, Head, Json, Scope, Shown, Text, UnknownTag};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How messages are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A line an exchange.
    Line,
    /// Both messages in full.
    Text,
    /// An object an exchange.
    Json,
}

/// Ids of topics in one message that are resolved for JSON.
const MOST_NAMES: usize = 256;

/// A message being told.
pub(super) struct Told {
    pub(super) facts: Facts,
    /// `None` for a line, and once there is no room.
    form: Option<Box<dyn Form>>,
    style: Style,
    held: Held,
    topics: Topics,
    learner: Option<Learner>,
    /// It is known to have no more than a header.
    header_only: bool,
    /// Bytes of its frame, if that is known better than by what is there.
    received: Option<u64>,
    /// The names of topics that are told of by their ids.
    pub(super) names: BTreeMap<[u8; 16], String>,
    /// There was no room for it.
    pub(super) is_too_large: bool,
}

impl Told {
    pub(super) fn new(style: Style, held: Held, topics: Topics, note: Option<&Note>) -> Self {
        Self {
            facts: Facts::default(),
            form: match style {
                Style::Line => None,
                Style::Text => Some(Box::new(Text::default())),
                Style::Json => Some(Box::new(Json::default())),
            },
            style,
            held,
            topics,
            learner: None,
            header_only: note.is_some_and(|note| note.header_only.is_some()),
            received: note.and_then(|note| note.received),
            names: BTreeMap::new(),
            is_too_large: false,
        }
    }

    /// What has been written of it; nothing is left.
    pub(super) fn text(&mut self) -> String {
        let form = self.form.as_mut();
        form.map_or_else(String::new, |form| std::mem::take(form.written()))
    }

    /// Counts as so many bytes more, beside its text.
    pub(super) fn count(&mut self, bytes: usize) {
        self.held.add(bytes);
    }

    /// Counts what has been written.
    fn settle(&mut self) {
        let Some(form) = &mut self.form else {
            return;
        };
        let more = form.written().capacity().saturating_sub(self.held.bytes());
        if more > 0 {
            self.held.add(more);
        }
        if self.held.is_too_much() {
            self.form = None;
            self.is_too_large = true;
            self.held.remove(usize::MAX);
        }
    }

    fn each(&mut self, tell: impl Fn(&mut dyn Form)) {
        tell(&mut self.facts);
        if let Some(form) = &mut self.form {
            tell(form.as_mut());
        }
        self.settle();
    }

    /// The name of a topic behind its id.
    fn name_topic(&mut self, id: [u8; 16]) {
        let Some(name) = self.topics.name(&id) else {
            return;
        };
        if let (Style::Text, Some(form)) = (self.style, &mut self.form) {
            let out = form.written();
            let ends_line = out.ends_with('\n');
            if ends_line {
                out.pop();
            }
            let _ = write!(out, " ({name:?})");
            if ends_line {
                out.push('\n');
            }
        }
        if self.names.len() < MOST_NAMES {
            self.names.insert(id, name);
        }
    }
}

impl Form for Told {
    fn head(&mut self, head: &Head<'_>) {
        if head.direction == Direction::Response {
            self.learner = Some(Learner::default());
        }
        let bytes = self.received.unwrap_or(head.bytes);
        self.each(|form| form.head(&Head { bytes, ..*head }));
    }

    fn token(&mut self, bytes: u32) {
        self.each(|form| form.token(bytes));
    }

    fn value(&mut self, name: &'static str, value: Shown<'_>) {
        self.each(|form| form.value(name, value));
        if let Some(learner) = &mut self.learner {
            learner.value(name, value, &self.topics);
        }
        if let Shown::Uuid(id) = value {
            self.name_topic(id);
        }
    }

    fn begin(&mut self, name: &'static str, scope: Scope) {
        self.each(|form| form.begin(name, scope));
        if let Some(learner) = &mut self.learner {
            learner.begin();
        }
    }

    fn element(&mut self) {
        self.each(|form| form.element());
        if let Some(learner) = &mut self.learner {
            learner.element();
        }
    }

    fn end(&mut self) {
        self.each(|form| form.end());
        if let Some(learner) = &mut self.learner {
            learner.end();
        }
    }

    fn batch(&mut self, batch: &Batch) {
        self.each(|form| form.batch(batch));
    }

    fn other_batches(&mut self, bytes: u32) {
        self.each(|form| form.other_batches(bytes));
    }

    fn unknown_tag(&mut self, tag: &UnknownTag) {
        self.each(|form| form.unknown_tag(tag));
    }

    fn finish(&mut self, end: &End) {
        self.facts.finish(end);
        // That it breaks off behind its header is no news.
        let end = match self.header_only {
            true => &End::Whole(0),
            false => end,
        };
        if let Some(form) = &mut self.form {
            form.finish(end);
        }
        self.settle();
    }

    fn written(&mut self) -> &mut String {
        self.facts.written()
    }
}
