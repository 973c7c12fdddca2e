//! The few things of a message that a line has room for: who and what, error codes, topics, batches.
//!
//! The trap: all of it comes from a peer, so of each there is a most, and how many more came is counted.

use klamp_codec::observation::Exchange;
use klamp_codec::render::{Batch, ClientId, End, Form, Head, Scope, Shown, UnknownTag};
use klamp_codec::{ApiKey, CorrelationId, Direction, ErrorCode};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Topics, batches, and different error codes that are kept of one message.
const MOST: usize = 8;

/// What a message was about.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// `None` for a raw SASL token, and where the frame ends before.
    pub(crate) head: Option<Of>,
    /// It is a raw SASL token.
    pub(crate) is_token: bool,
    /// How often each error code came, but 0.
    pub(crate) errors: Bounded<ErrorCode>,
    /// Of a Produce.
    pub(crate) acks: Option<i64>,
    /// Names or ids of topics.
    pub(crate) topics: Bounded<Topic>,
    /// Heads of record batches.
    pub(crate) batches: Vec<String>,
    /// Batches beyond those.
    pub(crate) more_batches: u64,
    /// ClientSoftwareName and ClientSoftwareVersion.
    pub(crate) software: [Option<String>; 2],
    /// How it ended.
    pub(crate) end: Option<End>,
    scopes: Vec<&'static str>,
    written: String,
}

/// Which message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) struct Of {
    pub(crate) direction: Direction,
    pub(crate) api_key: ApiKey,
    pub(crate) api_version: i16,
    pub(crate) correlation_id: CorrelationId,
    /// As it is to be printed.
    pub(crate) client_id: Option<String>,
    /// Whether the layout table reads it.
    pub(crate) has_body: bool,
}

/// What a topic is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// By its name.
    Name(String),
    /// By its id.
    Id([u8; 16]),
}

/// The first few different things, how often each came, and how many others did.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    /// What came, and how often.
    pub(crate) kept: BTreeMap<T, u64>,
    /// How many came that have no room.
    pub(crate) others: u64,
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self {
            kept: BTreeMap::new(),
            others: 0,
        }
    }
}

impl<T: Ord> Bounded<T> {
    fn note(&mut self, what: T) {
        if let Some(count) = self.kept.get_mut(&what) {
            *count += 1;
        } else if self.kept.len() < MOST {
            self.kept.insert(what, 1);
        } else {
            self.others += 1;
        }
    }
}

impl Facts {
    /// The error codes in words, and whether there may be more; `None` where the message was not read, or
    /// cannot have any.
    pub(crate) fn outcome(&self) -> Option<String> {
        let of = self.head.as_ref()?;
        if of.direction == Direction::Request || !of.has_body {
            return None;
        }
        let whole = matches!(self.end, Some(End::Whole(_)));
        if self.errors.kept.is_empty() {
            return whole.then(|| "no error".to_owned());
        }
        let errors = self
            .errors
            .kept
            .iter()
            .map(|(code, count)| times(*code, *count));
        let mut out = errors.collect::<Vec<_>>().join(", ");
        if self.errors.others > 0 {
            let _ = write!(out, ", {} other error codes", self.errors.others);
        }
        if !whole {
            out.push_str(" in what was read");
        }
        Some(out)
    }
}

impl Form for Facts {
    fn head(&mut self, head: &Head<'_>) {
        self.head = Some(Of {
            direction: head.direction,
            api_key: head.api_key,
            api_version: head.api_version,
            correlation_id: head.correlation_id,
            client_id: match head.client_id {
                ClientId::Is(id) => Some(shown(id)),
                ClientId::None | ClientId::Null => None,
            },
            has_body: head.has_body,
        });
    }

    fn token(&mut self, _: u32) {
        self.is_token = true;
    }

    fn value(&mut self, name: &'static str, value: Shown<'_>) {
        match (name, value) {
            (_, Shown::ErrorCode(code)) if code != ErrorCode::NONE => self.errors.note(code),
            ("Acks", Shown::Int(acks)) => self.acks = Some(acks),
            ("ClientSoftwareName", Shown::Text(text, _)) => self.software[0] = Some(plain(text)),
            ("ClientSoftwareVersion", Shown::Text(text, _)) => self.software[1] = Some(plain(text)),
            (_, Shown::Text(text, _)) if is_topic_name(name, self.scopes.last()) => {
                self.topics.note(Topic::Name(plain(text)));
            }
            ("TopicId", Shown::Uuid(id)) if id != [0; 16] => self.topics.note(Topic::Id(id)),
            _ => {}
        }
    }

    fn begin(&mut self, name: &'static str, _: Scope) {
        self.scopes.push(name);
    }

    fn element(&mut self) {}

    fn end(&mut self) {
        self.scopes.pop();
    }

    fn batch(&mut self, batch: &Batch) {
        match self.batches.len() < MOST {
            true => self.batches.push(batch.to_string()),
            false => self.more_batches += 1,
        }
    }

    fn other_batches(&mut self, _: u32) {}

    fn unknown_tag(&mut self, _: &UnknownTag) {}

    fn finish(&mut self, end: &End) {
        self.end = Some(end.clone());
    }

    fn written(&mut self) -> &mut String {
        &mut self.written
    }
}

/// An error code in words, and how often it came.
pub(crate) fn times(code: ErrorCode, count: u64) -> String {
    match count {
        1 => format!("{code} ({})", code.0),
        _ => format!("{count} times {code} ({})", code.0),
    }
}

/// Whether a string is a topic's name: `Name` and elements without one are, inside what is called so.
fn is_topic_name(name: &str, scope: Option<&&str>) -> bool {
    let of_topics = || scope.is_some_and(|scope| scope.starts_with("Topic"));
    matches!(name, "Topic" | "TopicName") || matches!(name, "Name" | "") && of_topics()
}

/// A string of a peer's in quotes, fit for a terminal.
pub(crate) fn shown(text: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(text))
}

/// A string of a peer's, no longer than any name of Kafka's is.
fn plain(text: &[u8]) -> String {
    String::from_utf8_lossy(text.get(..255).unwrap_or(text)).into_owned()
}

/// A message by what it is: `Fetch (1) v13 response, correlation id 7`.
pub(crate) struct Named(pub(crate) Direction, pub(crate) Exchange);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(direction, of) = self;
        let direction = direction.name();
        let name = of.api_key.name().unwrap_or("unknown API");
        let (key, version, id) = (of.api_key.0, of.api_version, of.correlation_id);
        write!(
            f,
            "{name} ({key}) v{version} {direction}, correlation id {id}"
        )
    }
}

impl fmt::Display for Of {
    /// Which message it is, and a request's client id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exchange = Exchange {
            api_key: self.api_key,
            api_version: self.api_version,
            correlation_id: self.correlation_id,
        };
        write!(f, "{}", Named(self.direction, exchange))?;
        match &self.client_id {
            Some(id) => write!(f, ", client id {id}"),
            None => Ok(()),
        }
    }
}
