//! What is known of a frame beyond its bytes, as the comment on its first packet, a line a thing.
//!
//! Two traps. `klamp decode` reads these lines again, so what is written here is what it looks for.
//! And a comment has at most 65,535 bytes, while a peer decides how much there is to say.

use crate::capture::facts::{Facts, Named, times};
use crate::shown;
use klamp_codec::kept::{Change, Kept, Part, Reading};
use klamp_codec::mend::{Mended, WithheldList};
use klamp_codec::observation::OpaqueReason;
use klamp_codec::render::{End, Message, Render};
use klamp_codec::versions::{Fate, Hidden, Row, VersionTable};
use klamp_codec::{ApiKey, Direction};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

/// Bytes of a comment; the rest is cut.
const MOST: usize = 60_000;

/// How the comment on a raw SASL token begins.
const TOKEN: &str = "SASL token";

/// What was done to a request that is not the broker's to answer.
pub(crate) const ANSWERED_HERE: &str = "klamp answered, the broker never got it";

/// The comment on a frame that was mended, before which `lost` bytes of its direction were not kept, and
/// which triggered the capture if there is a reason.
pub(super) fn on(
    kept: &Kept,
    mended: &Mended,
    table: Option<&VersionTable>,
    lost: u64,
    why: Option<&str>,
) -> String {
    let facts = facts(kept);
    let mut out = String::new();
    match (&facts.head, kept.exchange) {
        (Some(of), _) => line(&mut out, format_args!("{of}")),
        (None, Some(of)) => line(&mut out, format_args!("{}", Named(kept.direction, of))),
        (None, None) => line(&mut out, format_args!("{TOKEN}, {}", kept.direction.name())),
    }
    if let Some(why) = why {
        line(&mut out, format_args!("trigger: {why}"));
    }
    line(&mut out, format_args!("received: {} bytes", kept.bytes));
    if let Some(latency) = kept.latency {
        let ms = latency.as_secs_f64() * 1e3;
        line(&mut out, format_args!("latency: {ms:.6} ms"));
    }
    if kept.reading == Reading::Whole
        && let Some(outcome) = facts.outcome()
    {
        line(&mut out, format_args!("errors: {outcome}"));
    }
    if !kept.errors.is_empty() {
        let errors = kept
            .errors
            .iter()
            .map(|(code, count)| times(*code, u64::from(*count)));
        let errors = errors.collect::<Vec<_>>().join(", ");
        line(&mut out, format_args!("errors in all of it: {errors}"));
    }
    if lost > 0 {
        line(
            &mut out,
            format_args!("lost: {lost} bytes before this frame"),
        );
    }
    if let Some(why) = shortened(kept, mended) {
        line(&mut out, format_args!("kept: {why}"));
    }
    for batch in &facts.batches {
        line(&mut out, format_args!("{batch}"));
    }
    if facts.more_batches > 0 {
        line(
            &mut out,
            format_args!("batches: {} more", facts.more_batches),
        );
    }
    changes(&mut out, kept, table);
    // Last, for it may be long.
    if !mended.withheld.is_empty() {
        line(&mut out, format_args!("withheld: {}", mended.withheld));
    }
    cut(out.trim_end(), MOST).to_owned()
}

/// The text up to its first `most` bytes, or one character less.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let end = text.floor_char_boundary(most);
    text.get(..end).unwrap_or(text)
}

fn line(out: &mut String, what: std::fmt::Arguments<'_>) {
    // A String takes all.
    let _ = writeln!(out, "{what}");
}

/// What the frame says, as far as it was kept.
pub(crate) fn facts(kept: &Kept) -> Facts {
    let length = u32::try_from(kept.bytes.saturating_sub(4)).unwrap_or(u32::MAX);
    let mut render = Render::new(message(kept), length, Facts::default());
    // The length field, which is known.
    let mut before = 4;
    for part in &kept.parts {
        match part {
            Part::Bytes(bytes) => {
                let skipped = before.min(bytes.len());
                before -= skipped;
                render.bytes(&bytes[skipped..]);
            }
            Part::Hole(n) => render.hole(*n),
        }
    }
    render.end().1
}

fn message(kept: &Kept) -> Message {
    match (kept.direction, kept.exchange) {
        (_, None) => Message::Token,
        (Direction::Request, _) => Message::Request,
        (Direction::Response, Some(of)) => Message::Response(of.api_key, of.api_version),
    }
}

/// Why a frame is cut, mostly to its header, if it is.
fn shortened(kept: &Kept, mended: &Mended) -> Option<Cow<'static, str>> {
    if mended.withheld.is_empty() {
        return None;
    }
    let why = match kept.reading {
        Reading::Whole if is_readable(kept, mended) => return None,
        Reading::Whole => {
            let bytes = mended.bytes.len();
            return Some(format!("its first {bytes} bytes, not the rest").into());
        }
        Reading::Unfinished => "header only, the frame had not come to its end",
        Reading::Token => "length only",
        Reading::Opaque(OpaqueReason::UnknownKey) => "header only, the API is not known",
        Reading::Opaque(OpaqueReason::UnknownVersion) => "header only, the version is not known",
        Reading::Opaque(OpaqueReason::NoLayout) => {
            "header only, no layout is known of this version"
        }
        Reading::Opaque(OpaqueReason::Malformed) => "header only, the body is malformed",
        Reading::Opaque(OpaqueReason::Mismatch) => "header only, it answers no request",
        Reading::Opaque(OpaqueReason::NonKafka) => "header only, it is not Kafka",
    };
    Some(why.into())
}

/// Whether what is left of a message can be read to its end.
fn is_readable(kept: &Kept, mended: &Mended) -> bool {
    let behind = mended.bytes.get(4..).unwrap_or_default();
    let mut render = Render::new(message(kept), behind.len() as u32, Facts::default());
    render.bytes(behind);
    matches!(render.end().0, End::Whole(_))
}

/// What klamp did to the frame.
fn changes(out: &mut String, kept: &Kept, table: Option<&VersionTable>) {
    match kept.change {
        None => return,
        Some(Change::AnsweredHere) => {
            return line(out, format_args!("changed: {ANSWERED_HERE}"));
        }
        Some(Change::Rewritten(bytes)) => {
            line(
                out,
                format_args!("changed: {bytes} bytes went on in its place"),
            );
        }
    }
    let is_answer = kept.direction == Direction::Response
        && kept
            .exchange
            .is_some_and(|of| of.api_key == ApiKey::API_VERSIONS);
    let Some(table) = table.filter(|_| is_answer) else {
        return;
    };
    let mut told = |what: &str, is: &dyn Fn(&Row) -> Option<String>| {
        let rows: Vec<_> = table.entries().iter().filter_map(is).collect();
        if !rows.is_empty() {
            line(out, format_args!("{what}: {}", rows.join(", ")));
        }
    };
    told("lowered", &|row| match row.fate {
        Fate::Lowered { to } => Some(format!("{} {} to {to}", row.api_key, row.broker.max)),
        _ => None,
    });
    told("hidden", &|row| match row.fate {
        Fate::Hidden(Hidden::NoSchema) => Some(format!("{} (no schema)", row.api_key)),
        Fate::Hidden(Hidden::NoOverlap) => Some(format!("{} (no version in common)", row.api_key)),
        _ => None,
    });
    told("spared", &|row| match row.fate {
        Fate::Spared(_) => Some(format!("{} {}", row.api_key, row.broker.max)),
        _ => None,
    });
}

/// What a comment of klamp's says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Note {
    /// What the frame is, if it says so.
    pub(crate) message: Option<Message>,
    /// It is a request that klamp answered.
    pub(crate) is_answered_here: bool,
    /// Bytes of the frame as it was received.
    pub(crate) received: Option<u64>,
    /// Of a response.
    pub(crate) latency: Option<Duration>,
    /// It is cut, mostly to its header, and why.
    pub(crate) header_only: Option<String>,
    /// What the frame lacks.
    pub(crate) withheld: WithheldList,
    /// All other lines but the first.
    pub(crate) lines: Vec<String>,
}

impl Note {
    /// Reads a comment that [`on`] wrote, or something else that stands in its place.
    pub(crate) fn read(comment: &str) -> Self {
        let mut note = Self::default();
        let mut lines = comment.lines();
        note.message = noted(lines.next().unwrap_or_default());
        for line in lines {
            let line = shown::line(line);
            let (key, value) = line.split_once(": ").unwrap_or(("", &line));
            note.is_answered_here |= (key, value) == ("changed", ANSWERED_HERE);
            match key {
                "received" => {
                    note.received = value.strip_suffix(" bytes").and_then(|n| n.parse().ok())
                }
                "latency" => {
                    let ms = value
                        .strip_suffix(" ms")
                        .and_then(|ms| ms.parse::<f64>().ok());
                    note.latency = ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok());
                }
                "kept" => note.header_only = Some(value.to_owned()),
                "withheld" => note.withheld = withheld(value),
                // They are read again from the frame.
                "errors" => {}
                _ => note.lines.push(line),
            }
        }
        note
    }
}

/// A list, of which the end may have been cut.
fn withheld(text: &str) -> WithheldList {
    let whole = text.parse();
    let cut = || {
        text.rsplit_once(',')
            .and_then(|(text, _)| text.parse().ok())
    };
    whole.ok().or_else(cut).unwrap_or_default()
}

/// `Fetch (1) v13 response, ...`
fn noted(line: &str) -> Option<Message> {
    if line.starts_with(TOKEN) {
        return Some(Message::Token);
    }
    let (_, rest) = line.split_once('(')?;
    let (key, rest) = rest.split_once(") v")?;
    let (version, rest) = rest.split_once(' ')?;
    let (key, version) = (ApiKey(key.parse().ok()?), version.parse().ok()?);
    if rest.starts_with("request") {
        Some(Message::Request)
    } else {
        let is_response = rest.starts_with("response");
        is_response.then_some(Message::Response(key, version))
    }
}
