//! The log: one line on standard error for each thing an operator must know, as text or as JSON.
//! What a peer can cause goes through a [`RateLimit`].

mod kept_back;
mod limit;
mod lines;

pub(crate) use kept_back::{limit, tell as tell_kept_back, tell_all as tell_all_kept_back};
pub(crate) use limit::{Admitted, RateLimit};
pub(crate) use lines::Flush;

use std::io::IsTerminal;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What a log line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// One readable line, coloured on a terminal.
    Text,
    /// One JSON object a line, with the fields of the event at its top level.
    Json,
}

/// Sends everything that `filter` lets through to standard error, panics included. The last lines
/// are written when the answer is dropped.
pub(crate) fn start(format: LogFormat, filter: Targets) -> std::io::Result<Flush> {
    let (lines, flush) = lines::start()?;
    let layer = tracing_subscriber::fmt::layer().with_writer(lines);
    let layer = match format {
        LogFormat::Text => layer.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry()
        .with(layer)
        .with(filter)
        .init();
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        tracing::error!(
            thread = thread.name().unwrap_or("unnamed"),
            at = panic.location().map(tracing::field::display),
            cause = panic.payload_as_str().unwrap_or("not told"),
            "a task panicked: this is a fault of klamp's own"
        );
    }));
    Ok(flush)
}
