//! The harness through which every stream of the session's tests runs.
//!
//! A [`Script`](script::Script) says which bytes arrive when; a [`Relay`](relay::Relay) plays the mover
//! of bytes and holds the session to its contract; what comes of it is a [`Trace`](trace::Trace). The
//! trap it guards: a session whose answer depends on how TCP happened to cut the bytes, or on bytes
//! which a `Pass` has already given away (`splice` moves them unseen). So
//! [`same_under_any_cut`](check::same_under_any_cut) runs one script in very many ways and wants one
//! trace.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test file compiles the harness anew and uses a part of it"
)]

pub mod chance;
pub mod check;
pub mod conversation;
pub mod frames;
pub mod raw;
pub mod relay;
pub mod script;
pub mod trace;

pub use check::{same_under_any_cut, same_under_any_interleaving, same_under_some_cuts, trace_of};
pub use conversation::Conversation;
pub use relay::{Relay, Show, Style};
pub use script::Script;
pub use trace::{Edit, End, Seen, Side, Trace};

use klamp_codec::Direction;
use klamp_codec::session::{Clamp, NonKafka, Policy};
use klamp_codec::versions::TableStore;
use std::sync::Arc;
use std::time::Duration;

/// The largest request that the tests' policies accept: small, so that streams beyond it are cheap.
pub const MAX_REQUEST: u32 = 4 << 20;

/// The policy most tests run under: clamp on, not-Kafka closed, requests may stall ten minutes.
pub fn policy() -> Policy {
    Policy {
        clamp: Clamp::Encode,
        max_request_bytes: MAX_REQUEST,
        non_kafka: NonKafka::Close,
        request_progress: Some(Duration::from_secs(600)),
        response_progress: None,
        tables: TableStore::default(),
    }
}

/// Like [`policy`], but nothing is rewritten.
pub fn watching() -> Policy {
    Policy {
        clamp: Clamp::Off,
        ..policy()
    }
}

/// A session's view of a policy.
pub fn shared(policy: Policy) -> Arc<Policy> {
    Arc::new(policy)
}

/// What klamp itself answers to an ApiVersions request that nobody here reads: the versions of key 18 that
/// it forwards.
pub fn own_answer(correlation_id: i32) -> Vec<u8> {
    raw::unsupported_version(correlation_id, 0, 5)
}
