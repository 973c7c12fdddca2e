//! Tells how many lines were kept back by a flood that is over.
//!
//! As a rule the next line that passes tells it. The trap: when a flood ends, no line may come for hours,
//! and its count would stay untold just when somebody reads the log to see how bad it was.

use super::RateLimit;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::{Level, debug, error, info, warn};

/// Over which lines are counted.
const INTERVAL: Duration = Duration::from_secs(10);

/// Every limit that there ever was, of which a process makes all but a few when it starts. They stay, so
/// that what one kept back is told though whoever used it has gone.
static KINDS: Mutex<Vec<Kind>> = Mutex::new(Vec::new());

struct Kind {
    level: Level,
    about: String,
    limit: Arc<RateLimit>,
}

/// Told when a limit begins to keep back.
pub(super) static FLOOD: Notify = Notify::const_new();

/// Lets lines of one kind pass, at most so many in ten seconds.
///
/// `about` names them for people where a count of them stands alone; `level` is theirs.
pub(crate) fn limit(level: Level, about: impl Into<String>, most: u32) -> Arc<RateLimit> {
    let limit = Arc::new(RateLimit::new(most, INTERVAL));
    let (about, of_kind) = (about.into(), limit.clone());
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    kinds.push(Kind {
        level,
        about,
        limit: of_kind,
    });
    limit
}

/// Tells what is kept back once its flood is over. Sleeps while nothing is.
pub(crate) async fn tell() {
    loop {
        FLOOD.notified().await;
        loop {
            sleep(INTERVAL / 2).await;
            if !tell_of_each(RateLimit::kept_back) {
                break;
            }
        }
    }
}

/// Tells what is kept back, though its flood may go on: at the end of the process.
pub(crate) fn tell_all() {
    tell_of_each(RateLimit::take);
}

/// Tells what `kept_back` takes, and returns whether it left some.
fn tell_of_each(kept_back: impl Fn(&RateLimit) -> Option<NonZeroU64>) -> bool {
    let mut is_more = false;
    for kind in &*KINDS.lock().unwrap_or_else(PoisonError::into_inner) {
        if let Some(suppressed) = kept_back(&kind.limit) {
            line(kind.level, &kind.about, suppressed);
        }
        is_more |= kind.limit.is_keeping_back();
    }
    is_more
}

fn line(level: Level, about: &str, suppressed: NonZeroU64) {
    macro_rules! at {
        ($level:ident) => {
            $level!(
                suppressed,
                about,
                "log lines of one kind were kept back: more like the last one"
            )
        };
    }
    match level {
        Level::ERROR => at!(error),
        Level::WARN => at!(warn),
        Level::INFO => at!(info),
        _ => at!(debug),
    }
}
