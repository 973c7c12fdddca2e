//! The order in which frames are written: that of time, but no response before its request.
//!
//! The trap: what is received is stamped in pieces, so a response can carry an earlier time than the
//! request that it answers, and one whose request is no longer kept has nothing to wait for.

use klamp_codec::Direction;
use klamp_codec::kept::Kept;
use klamp_codec::observation::Exchange;
use std::collections::HashMap;

/// The same frames, each once.
pub(super) fn ordered(mut by_time: Vec<&Kept>) -> Vec<&Kept> {
    by_time.sort_by_key(|kept| kept.received);
    let mut to_come: HashMap<Key, Requests<'_>> = HashMap::new();
    for kept in &by_time {
        if let (Direction::Request, Some(exchange)) = (kept.direction, kept.exchange) {
            to_come.entry(key(exchange)).or_default().unwritten += 1;
        }
    }
    let mut ordered = Vec::with_capacity(by_time.len());
    for kept in by_time {
        let requests = kept.exchange.and_then(|it| to_come.get_mut(&key(it)));
        match (kept.direction, requests) {
            (Direction::Request, Some(requests)) => {
                requests.unwritten -= 1;
                requests.unanswered += 1;
                ordered.push(kept);
                if !requests.waiting.is_empty() {
                    requests.unanswered -= 1;
                    ordered.push(requests.waiting.remove(0));
                }
            }
            (Direction::Response, Some(requests)) if requests.unanswered > 0 => {
                requests.unanswered -= 1;
                ordered.push(kept);
            }
            (Direction::Response, Some(requests)) if requests.unwritten > 0 => {
                requests.waiting.push(kept);
            }
            _ => ordered.push(kept),
        }
    }
    // More answers than requests: nothing to wait for after all.
    ordered.extend(to_come.into_values().flat_map(|requests| requests.waiting));
    ordered
}

type Key = (i16, i16, i32);

fn key(exchange: Exchange) -> Key {
    let (api_key, id) = (exchange.api_key.0, exchange.correlation_id.0);
    (api_key, exchange.api_version, id)
}

/// The requests that go by the same name.
#[derive(Default)]
struct Requests<'a> {
    unwritten: u32,
    unanswered: u32,
    /// Responses that came before them.
    waiting: Vec<&'a Kept>,
}
