//! An exchange as it is printed: a line, a line and both messages, or an object of JSON in the shape of
//! Kafka's own request log (`RequestConvertToJson`), beside whose fields stand those of a capture.

use super::shared::Shared;
use super::talk::{Ends, Half};
use super::told::Style;
use super::topics::Topics;
use crate::capture::facts::{Bounded, Topic};
use crate::shown::{self, rounded};
use base64::display::Base64Display;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use klamp_codec::render::End;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// The end of the year 9999.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// A time in a capture, since 1970.
pub(super) fn time(time: Duration) -> String {
    match SystemTime::UNIX_EPOCH.checked_add(time) {
        Some(at) if time < LAST => humantime::format_rfc3339_nanos(at).to_string(),
        _ => format!("{}s", time.as_secs()),
    }
}

/// An exchange in text.
pub(super) fn text(
    out: &mut String,
    shared: &Shared,
    ends: &Ends,
    mut asked: Option<Half>,
    mut answer: Option<Half>,
    silence: &str,
) {
    let (first, second) = (asked.as_ref(), answer.as_ref());
    line(out, &shared.topics, ends, first, second, silence);
    if shared.style == Style::Text {
        for half in asked.iter_mut().chain(&mut answer) {
            out.push_str(&half.told.text());
            if half.told.is_too_large {
                out.push_str("  too large to be printed\n");
            }
            if let Some(note) = &half.note {
                // (heads of batches stand among the fields)
                let lines = note
                    .lines
                    .iter()
                    .filter(|line| !line.starts_with("batch: "));
                for line in note.header_only.iter().chain(lines) {
                    let _ = writeln!(out, "  klamp: {line}");
                }
            }
        }
        out.push('\n');
    }
}

fn line(
    out: &mut String,
    topics: &Topics,
    ends: &Ends,
    asked: Option<&Half>,
    answer: Option<&Half>,
    silence: &str,
) {
    let Some(first) = asked.or(answer) else {
        return;
    };
    let began = time(first.began);
    // A String takes all.
    let _ = write!(out, "{began} {} -> {} ", ends.client, ends.broker);
    match first.of {
        None if first.told.facts.is_token => out.push_str("SASL token"),
        None => out.push_str("a frame too short for a header"),
        Some(of) => {
            let _ = match of.api_key.name() {
                Some(name) => write!(out, "{name}"),
                None => write!(out, "api key {}", of.api_key),
            };
            let (version, id) = (of.api_version, of.correlation_id);
            let _ = write!(out, " v{version}, correlation id {id}");
        }
    }
    let head = first.told.facts.head.as_ref();
    if let Some(id) = head.and_then(|head| head.client_id.as_ref()) {
        let _ = write!(out, ", client id {id}");
    }
    match asked {
        Some(asked) => {
            let _ = write!(out, ", {} bytes", received(asked));
            write_topics(out, &asked.told.facts.topics, topics);
            trouble(out, asked);
        }
        None => out.push_str(", the request was not kept"),
    }
    let _ = match answer {
        None => write!(out, ": {silence}"),
        Some(answer) => {
            let _ = write!(out, ": {} bytes", received(answer));
            if let Some(latency) = latency(asked, answer) {
                let _ = write!(out, " after {:?}", rounded(latency));
            }
            trouble(out, answer);
            match answer.told.facts.outcome() {
                Some(outcome) => write!(out, ", {outcome}"),
                None => Ok(()),
            }
        }
    };
    out.push('\n');
}

/// What could not be read of a message.
fn trouble(out: &mut String, half: &Half) {
    let header_only = half
        .note
        .as_ref()
        .and_then(|note| note.header_only.as_ref());
    let _ = match (header_only, &half.told.facts.end) {
        (Some(why), _) => write!(out, " ({why})"),
        (None, Some(End::Broken(broken))) => write!(out, ", {broken}"),
        (None, Some(End::Whole(trailing @ 1..))) => {
            write!(out, ", {trailing} bytes follow the message")
        }
        _ => Ok(()),
    };
}

fn write_topics(out: &mut String, told: &Bounded<Topic>, topics: &Topics) {
    let names = told.kept.keys().map(|topic| match topic {
        Topic::Name(name) => format!("{name:?}"),
        Topic::Id(id) => match topics.name(id) {
            Some(name) => format!("{name:?}"),
            None => uuid(id),
        },
    });
    let names: Vec<_> = names.collect();
    if !names.is_empty() {
        let s = if names.len() == 1 { "" } else { "s" };
        let _ = write!(out, ", topic{s} {}", names.join(", "));
        if told.others > 0 {
            let _ = write!(out, ", ... ({} more)", told.others);
        }
    }
}

fn uuid(id: &[u8; 16]) -> String {
    Base64Display::new(id, &URL_SAFE_NO_PAD).to_string()
}

/// Bytes as they were received, not as they are in the file.
fn received(half: &Half) -> u64 {
    let noted = half.note.as_ref().and_then(|note| note.received);
    noted.unwrap_or(half.bytes)
}

/// From the request's last byte to the response's first.
fn latency(asked: Option<&Half>, answer: &Half) -> Option<Duration> {
    let noted = answer.note.as_ref().and_then(|note| note.latency);
    noted.or_else(|| answer.began.checked_sub(asked?.ended))
}

/// A message as [`klamp_codec::render::Json`] writes it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Message<'a> {
    #[serde(borrow)]
    request_header: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    broken: Option<&'a RawValue>,
    trailing_bytes: Option<u64>,
    sasl_token_size_in_bytes: Option<u64>,
}

/// An exchange: first what Kafka's request log has, then what it has not.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exchange<'a> {
    request_header: Option<&'a RawValue>,
    request: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    connection: String,
    total_time_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_information: Option<Software<'a>>,
    time: String,
    request_bytes: Option<u64>,
    response_bytes: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    topic_names: BTreeMap<String, &'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    no_answer: &'a str,
    #[serde(skip_serializing_if = "Beside::is_empty")]
    beside_request: Beside<'a>,
    #[serde(skip_serializing_if = "Beside::is_empty")]
    beside_response: Beside<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Software<'a> {
    software_name: &'a str,
    software_version: &'a str,
}

/// What is known of a message beyond its fields.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Beside<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trailing_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sasl_token_size_in_bytes: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    too_large: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'a str>,
}

impl Beside<'_> {
    fn is_empty(&self) -> bool {
        self.broken.is_none()
            && self.trailing_bytes.is_none()
            && self.sasl_token_size_in_bytes.is_none()
            && !self.too_large
            && self.kept.is_none()
            && self.notes.is_empty()
    }
}

/// An exchange in JSON.
pub(super) fn json(
    out: &mut String,
    ends: &Ends,
    software: Option<&[String; 2]>,
    mut asked: Option<Half>,
    mut answer: Option<Half>,
    silence: &str,
) {
    let texts = [&mut asked, &mut answer].map(|half| {
        half.as_mut()
            .map_or_else(String::new, |half| half.told.text())
    });
    // Nothing where there was no room.
    let [request, response] = texts
        .each_ref()
        .map(|text| serde_json::from_str::<Message<'_>>(text).unwrap_or_default());
    let (asked, answer) = (asked.as_ref(), answer.as_ref());
    let began = asked.or(answer).map(|first| first.began);
    let total = answer.and_then(|answer| latency(asked, answer));
    let names = [asked, answer].into_iter().flatten();
    let names = names.flat_map(|half| &half.told.names);
    let exchange = Exchange {
        request_header: request.request_header.or(response.request_header),
        request: request.request,
        response: response.response,
        connection: format!("{}-{}-{}", ends.broker, ends.client, ends.number),
        total_time_ms: total.map(|total| total.as_secs_f64() * 1e3),
        client_information: software.map(|[name, version]| Software {
            software_name: name,
            software_version: version,
        }),
        time: time(began.unwrap_or_default()),
        request_bytes: asked.map(received),
        response_bytes: answer.map(received),
        topic_names: names.map(|(id, name)| (uuid(id), name.as_str())).collect(),
        no_answer: silence,
        beside_request: beside(asked, &request),
        beside_response: beside(answer, &response),
    };
    // Maps and numbers that JSON has.
    if let Ok(line) = serde_json::to_string(&exchange) {
        out.push_str(&shown::json(line));
        out.push('\n');
    }
}

fn beside<'a>(half: Option<&'a Half>, message: &Message<'a>) -> Beside<'a> {
    let note = half.and_then(|half| half.note.as_ref());
    Beside {
        broken: message.broken,
        trailing_bytes: message.trailing_bytes,
        sasl_token_size_in_bytes: message.sasl_token_size_in_bytes,
        too_large: half.is_some_and(|half| half.told.is_too_large),
        kept: note.and_then(|note| note.header_only.as_deref()),
        notes: note.map_or_else(Vec::new, |note| {
            note.lines.iter().map(String::as_str).collect()
        }),
    }
}
