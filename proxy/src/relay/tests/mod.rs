//! The relay's tests: lanes against a scripted session, conversations against scripted wires, and
//! the whole relay over loopback TCP.

mod conversation;
mod lane;
mod recorded;
mod script;
mod splice;
mod tcp;
mod turns;

use super::lane::Judge;
use super::pool::HoldBudget;
use super::{Local, Meter};
use crate::timers::Timers;
use klamp_codec::Direction;
use klamp_codec::observation::{Observation, Observer};
use klamp_codec::session::{Clamp, Input, NonKafka, Policy, Session, Step};
use klamp_codec::versions::TableStore;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Counts the bytes that went on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    request: u64,
    response: u64,
}

impl Observer for Tally {
    fn observe(&mut self, _: Direction, _: u64, _: Observation<'_>) {}
}

impl Meter for Tally {
    fn moved(&mut self, direction: Direction, bytes: u64) {
        match direction {
            Direction::Request => self.request += bytes,
            Direction::Response => self.response += bytes,
        }
    }
}

/// A session that is a closure: what it answers next is never known.
impl<F: FnMut(Input<'_>) -> Step> Judge for F {
    fn ask(&mut self, input: Input<'_>) -> Step {
        self(input)
    }

    fn awaits_bytes(&self) -> bool {
        false
    }
}

fn local() -> Rc<Local> {
    Local::new(HoldBudget::new(1 << 20), Timers::here())
}

fn session() -> Session {
    Session::new(Arc::new(Policy {
        clamp: Clamp::Encode,
        max_request_bytes: 100 << 20,
        non_kafka: NonKafka::Pass,
        request_progress: Some(Duration::from_secs(600)),
        response_progress: None,
        tables: TableStore::default(),
    }))
}

/// A client that opens with this is relayed unseen: what follows may be anything.
const UNSEEN: &[u8] = b"GET ";

/// FindCoordinator v0, for the group "g": a request that expects an answer.
fn request(id: i32) -> Vec<u8> {
    framed(&[&[0, 10, 0, 0], &id.to_be_bytes(), &[0, 1, b'c', 0, 1, b'g']])
}

/// An answer to it: ILLEGAL_GENERATION, or whatever is read in it.
fn answer(id: i32) -> Vec<u8> {
    framed(&[&id.to_be_bytes(), &[0, 22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]])
}

/// ApiVersions in a version that nobody has heard of: klamp answers it itself.
fn api_versions_of_the_future(id: i32) -> Vec<u8> {
    framed(&[
        &[0, 18, 0, 127],
        &id.to_be_bytes(),
        &[0, 1, b'c', 0, 2, b'x', 2, b'1', 0],
    ])
}

/// SaslHandshake v0 for PLAIN: what follows its answer is a token.
fn sasl_handshake(id: i32) -> Vec<u8> {
    framed(&[&[0, 17, 0, 0], &id.to_be_bytes(), b"\0\x01c\0\x05PLAIN"])
}

/// Produce v3 with acks=0, to no partition: nobody answers it.
fn produce_acks0(id: i32) -> Vec<u8> {
    let head: &[u8] = &[0, 0, 0, 3];
    framed(&[
        head,
        &id.to_be_bytes(),
        &[0, 1, b'c', 255, 255, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0],
    ])
}

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let length = i32::try_from(body.len()).unwrap();
    [&length.to_be_bytes()[..], &body].concat()
}

/// Random numbers that are the same in every run (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 to `most`.
    pub(crate) fn up_to(&mut self, most: usize) -> usize {
        (self.next() >> 16) as usize % (most + 1)
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(n + 8);
        while bytes.len() < n {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(n);
        bytes
    }
}
