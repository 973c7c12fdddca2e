//! What is told of captures: a line each, or one with a line for each of its frames.

use crate::capture::{Captures, Found, InFlight, pcapng};
use crate::columns::Columns;
use crate::shown::{Shown, rounded};
use bytesize::ByteSize;
use klamp_codec::kept::{Change, Kept, Reading};
use klamp_codec::observation::Exchange;
use klamp_codec::{ApiKey, Direction};
use serde::{Serialize, Serializer};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What is said where there never will be a capture.
pub(super) const OFF: &str = "the recorder is off (--capture-memory 0): there are no captures\n";

/// All captures, the oldest first.
#[derive(Serialize)]
pub(super) struct Report {
    /// `on` or `off`.
    recorder: &'static str,
    captures: Vec<Summary>,
}

impl Report {
    pub(super) fn of(captures: &Captures) -> Self {
        Self {
            recorder: if captures.is_off { "off" } else { "on" },
            captures: captures.all().iter().map(Summary::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct Summary {
    id: u64,
    /// RFC 3339, UTC.
    taken: String,
    /// As metrics label it.
    kind: &'static str,
    reason: String,
    /// The message that triggered it, where one did.
    trigger: Option<Message>,
    /// Requests that had no answer when the connection ended, or somebody asked.
    in_flight: Vec<Message>,
    /// How many more there were.
    more_in_flight: usize,
    /// As at `/connections`.
    connection: u64,
    client: SocketAddr,
    upstream: Arc<str>,
    broker: Option<SocketAddr>,
    client_id: Option<String>,
    software_name: Option<String>,
    software_version: Option<String>,
    /// `recording` or `complete`.
    state: &'static str,
    frames: usize,
    /// Frames that passed before and were not kept any more.
    lost_frames: u64,
    /// Of memory.
    bytes: usize,
    /// In `--capture-dir`.
    file: Option<Arc<str>>,
}

impl Summary {
    fn of(found: &Found) -> Self {
        let capture = &found.capture;
        let (software_name, software_version) = capture.software.clone().unzip();
        let InFlight { requests, more } = InFlight::of(capture);
        Self {
            id: capture.id,
            taken: time(capture.taken),
            kind: capture.kind.label(),
            reason: capture.reason.clone(),
            trigger: (capture.cause).map(|cause| Message::of(cause.direction, cause.exchange)),
            in_flight: (requests.into_iter())
                .map(|of| Message::of(Direction::Request, of))
                .collect(),
            more_in_flight: more,
            connection: found.connection,
            client: capture.client,
            upstream: capture.upstream.clone(),
            broker: capture.broker,
            client_id: capture.client_id.clone(),
            software_name,
            software_version,
            state: if found.is_recording() {
                "recording"
            } else {
                "complete"
            },
            frames: capture.frames.len(),
            lost_frames: capture.lost_frames,
            bytes: found.bytes,
            file: found.file.clone(),
        }
    }

    /// What it was about.
    fn about(&self) -> String {
        let mut about: Vec<_> = self.trigger.iter().map(Message::told).collect();
        if !self.in_flight.is_empty() {
            let waiting: Vec<_> = self.in_flight.iter().map(Message::told).collect();
            about.push(format!("in flight: {}", waiting.join("; ")));
        }
        if self.more_in_flight > 0 {
            about.push(format!("{} more", self.more_in_flight));
        }
        match about.is_empty() {
            true => "-".to_owned(),
            false => about.join("; "),
        }
    }

    fn software(&self) -> String {
        match (&self.software_name, &self.software_version) {
            (None, _) => "-".to_owned(),
            (name, version) => format!("{} {}", shown(name), shown(version)),
        }
    }
}

/// A message by what it is.
#[derive(Serialize)]
struct Message {
    /// `request` or `response`.
    direction: &'static str,
    api_key: i16,
    name: Option<&'static str>,
    api_version: i16,
    correlation_id: i32,
}

impl Message {
    fn of(direction: Direction, of: Exchange) -> Self {
        Self {
            direction: direction.name(),
            api_key: of.api_key.0,
            name: of.api_key.name(),
            api_version: of.api_version,
            correlation_id: of.correlation_id.0,
        }
    }

    fn told(&self) -> String {
        let Self {
            direction,
            api_version,
            correlation_id,
            ..
        } = self;
        let name = ApiKey(self.api_key);
        format!("{name} v{api_version} {direction}, correlation id {correlation_id}")
    }
}

/// What finds a capture, in the width of a terminal; the page of each has the rest.
pub(super) fn text(report: &Report) -> String {
    if report.recorder == "off" {
        return OFF.to_owned();
    }
    if report.captures.is_empty() {
        return "no captures\n".to_owned();
    }
    let mut columns = Columns::new([
        "id",
        "taken",
        "reason",
        "connection",
        "client id",
        "frames",
        "state",
    ]);
    for capture in &report.captures {
        columns.row([
            capture.id.to_string(),
            capture.taken.clone(),
            capture.reason.clone(),
            capture.connection.to_string(),
            shown(&capture.client_id),
            capture.frames.to_string(),
            capture.state.to_owned(),
        ]);
    }
    columns.text()
}

/// A capture and its frames.
#[derive(Serialize)]
pub(super) struct Detail {
    #[serde(flatten)]
    summary: Summary,
    /// The frames in it, in order of time.
    exchanges: Vec<Frame>,
}

#[derive(Serialize)]
struct Frame {
    received: String,
    /// `request` or `response`.
    direction: &'static str,
    api_key: Option<i16>,
    name: Option<&'static str>,
    api_version: Option<i16>,
    correlation_id: Option<i32>,
    /// As received, length field included.
    bytes: u64,
    #[serde(rename = "latency_seconds", serialize_with = "in_seconds")]
    latency: Option<Duration>,
    /// The error codes in it.
    errors: Option<String>,
    /// How far it was understood, and what was done to it.
    note: &'static str,
}

fn in_seconds<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(to)
}

impl Detail {
    pub(super) fn of(found: &Found) -> Self {
        Self {
            summary: Summary::of(found),
            exchanges: found
                .capture
                .frames
                .all()
                .into_iter()
                .map(Frame::of)
                .collect(),
        }
    }
}

impl Frame {
    fn of(kept: &Kept) -> Self {
        let api_key = kept.exchange.map(|exchange| exchange.api_key);
        Self {
            received: time(kept.received),
            direction: kept.direction.name(),
            api_key: api_key.map(|key| key.0),
            name: api_key.and_then(ApiKey::name),
            api_version: kept.exchange.map(|exchange| exchange.api_version),
            correlation_id: kept.exchange.map(|exchange| exchange.correlation_id.0),
            bytes: kept.bytes,
            latency: kept.latency,
            errors: errors(kept),
            note: match (kept.reading, kept.change) {
                (Reading::Opaque(_), _) => "not understood",
                (Reading::Unfinished, _) => "unfinished",
                (Reading::Token, _) => "SASL token",
                (Reading::Whole, Some(Change::Rewritten(_))) => "rewritten on its way",
                (Reading::Whole, Some(Change::AnsweredHere)) => "answered by klamp",
                (Reading::Whole, None) => "",
            },
        }
    }
}

/// The error codes in a response that was read, where it has some.
fn errors(kept: &Kept) -> Option<String> {
    let is_read = kept.direction == Direction::Response && kept.reading == Reading::Whole;
    let outcome = is_read.then(|| pcapng::comment::facts(kept).outcome());
    outcome.flatten().filter(|outcome| outcome != "no error")
}

pub(super) fn detail_text(detail: &Detail) -> String {
    let Detail { summary, exchanges } = detail;
    let mut text = String::new();
    let broker = summary.broker.map(|broker| broker.to_string());
    let broker = broker.filter(|broker| **broker != *summary.upstream);
    for (name, value) in [
        ("capture", format!("{} ({})", summary.id, summary.state)),
        ("reason", summary.reason.clone()),
        ("about", summary.about()),
        ("taken", summary.taken.clone()),
        (
            "connection",
            format!("{} of {}", summary.connection, summary.client),
        ),
        ("client id", shown(&summary.client_id)),
        ("software", summary.software()),
        (
            "upstream",
            format!("{} {}", summary.upstream, broker.unwrap_or_default()),
        ),
        ("memory", ByteSize(summary.bytes as u64).to_string()),
        ("lost frames", summary.lost_frames.to_string()),
        ("file", summary.file.as_deref().unwrap_or("-").to_owned()),
    ] {
        let _ = writeln!(text, "{name:<14}{}", value.trim_end());
    }
    let mut columns = Columns::new([
        "received",
        "direction",
        "api key",
        "version",
        "correlation id",
        "bytes",
        "latency",
        "errors",
        "note",
    ]);
    let number = |number: Option<i32>| number.map_or("-".to_owned(), |number| number.to_string());
    for frame in exchanges {
        columns.row([
            frame.received.clone(),
            frame.direction.to_owned(),
            frame
                .api_key
                .map_or("-".to_owned(), |key| ApiKey(key).to_string()),
            number(frame.api_version.map(i32::from)),
            number(frame.correlation_id),
            frame.bytes.to_string(),
            frame
                .latency
                .map_or("-".to_owned(), |latency| format!("{:?}", rounded(latency))),
            frame.errors.clone().unwrap_or_default(),
            frame.note.to_owned(),
        ]);
    }
    text + "\n" + &columns.text()
}

fn shown(name: &Option<String>) -> String {
    Shown(name.as_deref().map(str::as_bytes)).to_string()
}

fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_micros(time).to_string()
}
