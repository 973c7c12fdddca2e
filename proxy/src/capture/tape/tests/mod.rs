//! Tapes beside a session, and what can be read from them.
//!
//! The session and what moves its bytes are the real thing and a small one: bytes that are owed come in
//! as the relay's do, unless they are to be spliced, so that nobody sees them.

mod kept;
mod memory;
mod model;

use super::*;
use klamp_codec::ErrorCode;
use klamp_codec::kept::{Kept, Part};
use klamp_codec::observation::{Observation, Observer, OpaqueReason};
use klamp_codec::session::{Clamp, Input, NonKafka, Policy, Session, Step};
use klamp_codec::versions::TableStore;
use std::sync::Arc;
use std::time::Duration;

use Direction::{Request, Response};

const NOTHING_ELSE: Settings = Settings {
    memory: 64 << 20,
    records: false,
    opaque: false,
};

/// A connection that is recorded.
struct Rig {
    arena: Rc<Arena>,
    recorder: Recorder,
    session: Session,
    clamp: Clamp,
    lanes: [Lane; 2],
    now: Duration,
    splices: bool,
    closed: bool,
}

#[derive(Default)]
struct Lane {
    shown: Vec<u8>,
    owed: u64,
}

/// Hears nothing.
struct Nobody;

impl Observer for Nobody {
    fn observe(&mut self, _: Direction, _: u64, _: Observation<'_>) {}
}

/// Hears what the session tells of what it is shown.
struct Ears<'a>(Take<'a>);

impl Observer for Ears<'_> {
    fn holes_upto(&self, _: Direction) -> u64 {
        self.0.holes_upto()
    }

    fn observe(&mut self, _: Direction, at: u64, what: Observation<'_>) {
        self.0.observe(at, &what);
    }
}

impl Rig {
    fn new() -> Self {
        Self::with(NOTHING_ELSE, Clamp::Encode)
    }

    fn with(settings: Settings, clamp: Clamp) -> Self {
        let arena = Arena::new(settings, 1, Arc::default()).unwrap();
        Self::in_arena(&arena, clamp)
    }

    fn in_arena(arena: &Rc<Arena>, clamp: Clamp) -> Self {
        Self {
            arena: arena.clone(),
            recorder: Recorder::new(Some(arena)),
            session: Session::new(Arc::new(Policy {
                clamp,
                max_request_bytes: 100 << 20,
                non_kafka: NonKafka::Pass,
                request_progress: None,
                response_progress: None,
                tables: TableStore::default(),
            })),
            clamp,
            lanes: Default::default(),
            now: Duration::ZERO,
            splices: false,
            closed: false,
        }
    }

    /// The same, from the start.
    fn again(&self) -> Self {
        let settings = self.arena.settings;
        Self {
            splices: self.splices,
            ..Self::with(settings, self.clamp)
        }
    }

    fn tape(&self) -> &Rc<Tape> {
        self.recorder.tape().unwrap()
    }

    fn frames(&self) -> Vec<Kept> {
        self.tape().snapshot().frames
    }

    fn sends(&mut self, direction: Direction, bytes: &[u8]) {
        let lane = &mut self.lanes[direction as usize];
        let paid = bytes
            .len()
            .min(usize::try_from(lane.owed).unwrap_or(usize::MAX));
        let (mine, shown) = bytes.split_at(paid);
        if !self.splices {
            self.recorder.came(direction, lane.owed, mine);
        }
        lane.owed -= paid as u64;
        lane.shown.extend_from_slice(shown);
        while !self.closed && (self.polls(Request) | self.polls(Response)) {}
    }

    /// Whether anything happened.
    fn polls(&mut self, direction: Direction) -> bool {
        let lane = &mut self.lanes[direction as usize];
        if lane.owed > 0 {
            return false;
        }
        let input = Input {
            shown: &lane.shown,
            eof: false,
            unpaid: 0,
            now: self.now,
        };
        let step = match self.recorder.asked(&input) {
            None => self.session.poll(direction, input, &mut Nobody),
            Some(tape) => {
                let mut ears = Ears(Take::new(&tape, direction, &input));
                let step = self.session.poll(direction, input, &mut ears);
                ears.0.settle(&input, &step);
                step
            }
        };
        match step {
            Step::Pass(n) => {
                let at_hand = usize::try_from(n)
                    .unwrap_or(usize::MAX)
                    .min(lane.shown.len());
                lane.shown.drain(..at_hand);
                lane.owed = n - at_hand as u64;
            }
            Step::Replace { drop, .. } => drop_front(&mut lane.shown, drop),
            Step::Close(_) => self.closed = true,
            Step::Need(_) | Step::Wait | Step::Finish => return false,
        }
        true
    }
}

fn drop_front(bytes: &mut Vec<u8>, n: usize) {
    bytes.drain(..n);
}

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let length = i32::try_from(body.len()).unwrap();
    [&length.to_be_bytes()[..], &body].concat()
}

/// A request of the client `c`.
fn request(api_key: u8, version: u8, id: u8, body: &[u8]) -> Vec<u8> {
    framed(&[&[0, api_key, 0, version, 0, 0, 0, id, 0, 1, b'c'], body])
}

fn response(id: u8, body: &[u8]) -> Vec<u8> {
    framed(&[&[0, 0, 0, id], body])
}

/// FindCoordinator v0, and its answer.
fn find(id: u8) -> [(Direction, Vec<u8>); 2] {
    [
        (Request, request(10, 0, id, b"\0\x05group")),
        (
            Response,
            response(id, b"\0\x16\0\0\0\x01\0\x04host\0\0\0\x09"),
        ),
    ]
}

/// ApiVersions v0, and an answer that is rewritten: key 0 up to 99.
fn versions(id: u8) -> [(Direction, Vec<u8>); 2] {
    let rows = [0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 99, 0, 18, 0, 0, 0, 3];
    [
        (Request, request(18, 0, id, &[])),
        (Response, response(id, &rows)),
    ]
}

/// ApiVersions in a version of the future: klamp answers it.
fn versions_of_the_future(id: u8) -> [(Direction, Vec<u8>); 1] {
    [(Request, request(18, 127, id, b"\0secret"))]
}

/// A batch of magic 2 with this content.
fn batch(content: &[u8]) -> Vec<u8> {
    let mut batch = [0; 61];
    batch[8..12].copy_from_slice(&(49 + content.len() as u32).to_be_bytes());
    batch[16] = 2;
    batch[57..61].copy_from_slice(&[0, 0, 0, 1]);
    [&batch[..], content].concat()
}

/// Of a Produce request.
fn partition(n: u32, records: &[u8]) -> Vec<u8> {
    let length = u32::try_from(records.len()).unwrap();
    [&n.to_be_bytes()[..], &length.to_be_bytes(), records].concat()
}

/// Produce v3 to a topic `t`.
fn produced(id: u8, partitions: &[&[u8]]) -> Vec<u8> {
    let head = b"\xff\xff\0\x01\0\0\0\x09\0\0\0\x01\0\x01t";
    let number = u32::try_from(partitions.len()).unwrap().to_be_bytes();
    let body = [&head[..], &number, &partitions.concat()].concat();
    request(0, 3, id, &body)
}

/// Produce v3 with these records, and its answer.
fn produce(id: u8, records: &[u8]) -> [(Direction, Vec<u8>); 2] {
    let topic = b"\0\0\0\x01\0\x01t\0\0\0\x01";
    let answer = [&[0; 4][..], &[0, 0], &[0; 8], &[255; 8], &[0; 4]].concat();
    [
        (Request, produced(id, &[&partition(0, records)])),
        (Response, response(id, &[&topic[..], &answer].concat())),
    ]
}

/// SaslHandshake v0 for PLAIN, and its answer; then a token, and the broker's.
fn plain(id: u8) -> [(Direction, Vec<u8>); 4] {
    [
        (Request, request(17, 0, id, b"\0\x05PLAIN")),
        (Response, response(id, b"\0\0\0\0\0\x01\0\x05PLAIN")),
        (Request, framed(&[b"\0user\0secret"])),
        (Response, framed(&[b"secret"])),
    ]
}

/// A malformed FindCoordinator, whose string is longer than the frame, with an answer.
fn malformed(id: u8) -> [(Direction, Vec<u8>); 2] {
    [
        (Request, request(10, 0, id, b"\x7f\xffsecret")),
        (Response, response(id, b"\0\0\0\0\0\x01\x7f\xffsecret")),
    ]
}

/// FindCoordinator v1 that is malformed behind a string, as is its answer.
fn malformed_late(id: u8, word: &[u8; 6]) -> [(Direction, Vec<u8>); 2] {
    let answer = [b"\0\0\0\0\0\0\0\x06", &word[..], b"\0\0"].concat();
    [
        (
            Request,
            request(10, 1, id, &[b"\0\x06", &word[..]].concat()),
        ),
        (Response, response(id, &answer)),
    ]
}

/// An API that nobody has heard of, with an answer.
fn unheard_of(id: u8) -> [(Direction, Vec<u8>); 2] {
    [
        (Request, request(120, 0, id, b"secret")),
        (Response, response(id, b"secret")),
    ]
}

/// A message with bytes behind it.
fn trailing(id: u8) -> [(Direction, Vec<u8>); 2] {
    let [(_, request), (_, response)] = find(id);
    let longer = |frame: &[u8]| framed(&[&frame[4..], b"secret"]);
    [(Request, longer(&request)), (Response, longer(&response))]
}

/// All of it in one conversation.
fn everything() -> Vec<(Direction, Vec<u8>)> {
    let batches = [batch(b"secret"), batch(b""), batch(&b"secret".repeat(9))].concat();
    let script: [&[_]; 12] = [
        &versions(1),
        &find(2),
        &plain(3),
        &produce(4, &batches),
        &produce(12, &batch(b"secret secret")),
        &malformed(5),
        &malformed_late(11, b"secret"),
        &unheard_of(6),
        &trailing(7),
        &find(8),
        &versions_of_the_future(9),
        &find(10),
    ];
    script.concat()
}

fn bytes_of(frame: &Kept) -> Vec<u8> {
    let parts = frame.parts.iter().map(|part| match part {
        Part::Bytes(bytes) => bytes.clone(),
        Part::Hole(n) => vec![b'.'; *n as usize],
    });
    parts.collect::<Vec<_>>().concat()
}

fn play(rig: &mut Rig, script: &[(Direction, Vec<u8>)]) {
    for (direction, bytes) in script {
        rig.sends(*direction, bytes);
    }
}
