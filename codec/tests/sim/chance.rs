//! Conversations by chance, from a seed: valid ones, with all that must be told of them, and ones with a
//! few bytes changed.

use super::conversation::Conversation;
use super::frames::{self, CLAMPED, OFFERED, Produce};
use super::raw::{self, Raw, framed};
use super::script::{Act, Script};
use klamp_codec::Direction;
use klamp_codec::observation::Outcome;

/// Codes that answers carry, the everyday one more often than others.
const CODES: [i16; 10] = [0, 0, 0, 0, 3, 6, 7, 19, 250, -1];

/// A valid conversation, and what a session that clamps must make of it.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    /// Who says what.
    pub conversation: Conversation,
    /// What the broker gets.
    pub to_broker: Vec<u8>,
    /// What the client gets.
    pub to_client: Vec<u8>,
    /// Correlation ids of all requests.
    pub asked: Vec<i32>,
    /// Correlation ids of the broker's answers, and how they went.
    pub answered: Vec<(i32, Outcome)>,
    /// Correlation id, code and count, sorted.
    pub errors: Vec<(i32, i16, u32)>,
    /// The acks of each Produce.
    pub acks: Vec<i16>,
    /// How many requests the broker does not get.
    pub swallowed: usize,
}

impl Talk {
    /// A conversation of a few to a few dozen exchanges.
    pub fn by_chance(rng: &mut fastrand::Rng) -> Self {
        let mut talk = Self::default();
        if rng.u8(..) < 32 {
            talk.authenticate(rng);
        }
        for _ in 0..rng.usize(1..24) {
            let id = rng.i32(..);
            match rng.u8(0..12) {
                0 | 1 => talk.api_versions(id, rng),
                2 => talk.answered_by_klamp(id, rng),
                3 | 4 => talk.metadata(id, rng),
                5..8 => talk.fetch(id, rng),
                8..11 => talk.produce(id, rng),
                _ => talk.unread(id, rng),
            }
        }
        talk.errors.sort_unstable();
        talk.conversation = std::mem::take(&mut talk.conversation).end();
        talk
    }

    fn api_versions(&mut self, id: i32, rng: &mut fastrand::Rng) {
        let version = rng.i16(0..=5);
        let ask = match version {
            5 => raw::api_versions_v5(id, rng.bool().then_some("cluster"), rng.i32(..)),
            _ => frames::api_versions(version, id),
        };
        if version > 0 && rng.u8(..) < 64 {
            let refusal = raw::unsupported_version(id, 0, rng.i16(0..version));
            self.ask(id, &ask, &refusal, &refusal, &[(35, 1)]);
            return;
        }
        let mut offered = OFFERED.to_vec();
        rng.shuffle(&mut offered);
        offered.truncate(rng.usize(0..=offered.len()));
        let clamped: Vec<_> = offered
            .iter()
            .filter_map(|(key, ..)| CLAMPED.iter().find(|row| row.0 == *key))
            .copied()
            .collect();
        let error = if rng.u8(..) < 32 { 129 } else { 0 };
        let answer = frames::versions_told(version, id, error, &offered);
        let passed = match error {
            0 => frames::versions_told(version, id, 0, &clamped),
            _ => answer.clone(),
        };
        self.ask(id, &ask, &answer, &passed, &[(error, 1)]);
    }

    fn answered_by_klamp(&mut self, id: i32, rng: &mut fastrand::Rng) {
        let version = if rng.bool() {
            rng.i16(6..)
        } else {
            rng.i16(..0)
        };
        let ask = raw::api_versions_beyond(version, id);
        self.conversation = std::mem::take(&mut self.conversation).tell(&ask);
        self.to_client.extend(super::own_answer(id));
        self.swallowed += 1;
        self.asked.push(id);
    }

    fn metadata(&mut self, id: i32, rng: &mut fastrand::Rng) {
        let version = rng.i16(0..=13);
        let topics: Vec<Vec<i16>> = (0..rng.usize(0..5)).map(|_| codes(rng)).collect();
        let topics: Vec<&[i16]> = topics.iter().map(Vec::as_slice).collect();
        let answer = frames::metadata_told(version, id, &topics);
        let errors = frames::metadata_errors(version, &topics);
        self.ask(
            id,
            &frames::metadata(version, id),
            &answer,
            &answer,
            &errors,
        );
    }

    fn fetch(&mut self, id: i32, rng: &mut fastrand::Rng) {
        let version = rng.i16(0..=18);
        let wait = rng.i32(0..1000);
        if version < 4 {
            let error = code(rng);
            let records = frames::records(rng.usize(0..200));
            let answer = raw::old_fetched(version, id, error, &records);
            let ask = raw::old_fetch(version, id, wait);
            self.ask(id, &ask, &answer, &answer, &[(error, 1)]);
            return;
        }
        let partitions: Vec<_> = codes(rng)
            .into_iter()
            .map(|code| (code, size(rng)))
            .collect();
        let answer = frames::fetched(version, id, &partitions);
        let errors = frames::fetched_errors(version, &partitions);
        self.ask(
            id,
            &frames::fetch(version, id, wait),
            &answer,
            &answer,
            &errors,
        );
    }

    fn produce(&mut self, id: i32, rng: &mut fastrand::Rng) {
        let version = rng.i16(0..=13);
        let acks = rng.i16(-1..=1);
        self.acks.push(acks);
        let errors = match version {
            0..3 => vec![code(rng)],
            _ => codes(rng),
        };
        let (ask, answer) = match version {
            0..3 => {
                let records = frames::records(size(rng));
                let ask = raw::old_produce(version, id, acks, "topic", &records);
                (ask, raw::old_produced(version, id, "topic", errors[0]))
            }
            _ => {
                let produce = Produce {
                    transactional_id: rng.bool().then_some("transaction"),
                    topics: &["one", "two", "three"][..rng.usize(0..=3)],
                    bytes: size(rng),
                    ..Produce::plain(version, id, acks)
                };
                (produce.frame(), frames::produced(version, id, &errors))
            }
        };
        if acks != 0 {
            self.ask(id, &ask, &answer, &answer, &frames::tally(errors.iter()));
            return;
        }
        self.conversation = std::mem::take(&mut self.conversation).tell(&ask);
        self.to_broker.extend(ask);
        self.asked.push(id);
    }

    /// A key or version that nobody reads, answered all the same.
    fn unread(&mut self, id: i32, rng: &mut fastrand::Rng) {
        let (key, version) = [(9999, 1), (-3, -3), (1, 99), (3, 50), (17, 7)][rng.usize(0..5)];
        let body = frames::records(size(rng));
        let ask = Raw::request(key, version, id, Some("odd"))
            .bytes(&body)
            .frame();
        let answer = Raw::response(id).bytes(&body).frame();
        self.ask(id, &ask, &answer, &answer, &[]);
        self.answered.last_mut().expect("just asked").1 = Outcome::Opaque;
    }

    /// SaslHandshake v0, and a token each way.
    fn authenticate(&mut self, rng: &mut fastrand::Rng) {
        let (ask, answer) = (
            frames::handshake(0, 0, "PLAIN"),
            frames::shaken(0, 0, 0, &["PLAIN"]),
        );
        self.ask(0, &ask, &answer, &answer, &[(0, 1)]);
        let (token, good) = (framed(&frames::records(rng.usize(0..60))), framed(b""));
        self.conversation = std::mem::take(&mut self.conversation)
            .wait()
            .ask(&token, &good);
        self.to_broker.extend(token);
        self.to_client.extend(good);
    }

    fn ask(&mut self, id: i32, ask: &[u8], answer: &[u8], passed: &[u8], errors: &[(i16, u32)]) {
        self.conversation = std::mem::take(&mut self.conversation).ask(ask, answer);
        self.to_broker.extend(ask);
        self.to_client.extend(passed);
        self.asked.push(id);
        let any = errors.iter().any(|(code, _)| *code != 0);
        self.answered
            .push((id, if any { Outcome::Error } else { Outcome::Ok }));
        self.errors
            .extend(errors.iter().map(|(code, count)| (id, *code, *count)));
    }
}

/// A script with a few of its bytes changed, taken out or put in.
pub fn mutated(script: &Script, rng: &mut fastrand::Rng) -> Script {
    let mut script = script.clone();
    for _ in 0..rng.usize(1..4) {
        let which = rng.usize(0..script.events().len());
        script = script.with(which, |act| {
            if let Act::Bytes(_, bytes) = act {
                mutate(bytes, rng);
            }
        });
    }
    script
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut fastrand::Rng) {
    let at = rng.usize(0..bytes.len());
    match rng.u8(0..6) {
        0 => bytes[at] ^= 1 << rng.u8(0..8),
        1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.usize(0..5)],
        2 => {
            let _ = bytes.splice(at.., []);
        }
        3 => {
            let some: Vec<u8> = (0..rng.usize(1..12)).map(|_| rng.u8(..)).collect();
            let _ = bytes.splice(at..at, some);
        }
        4 => {
            let end = bytes.len().min(at + rng.usize(1..12));
            let _ = bytes.splice(at..end, []);
        }
        _ => {
            let word = [0, 1, -1, i32::MAX, i32::MIN, 3, 1 << 20][rng.usize(0..7)];
            let end = bytes.len().min(at + 4);
            let _ = bytes.splice(at..end, word.to_be_bytes());
        }
    }
    if bytes.is_empty() {
        bytes.push(rng.u8(..));
    }
}

/// Frames that are none but for their heads: any key, version, correlation id and body, both ways.
pub fn noise(rng: &mut fastrand::Rng) -> Script {
    let mut script = Script::new();
    let mut ids = vec![0];
    for _ in 0..rng.usize(1..40) {
        if rng.bool() {
            let id = rng.i32(0..8);
            ids.push(id);
            let key = if rng.bool() {
                [0, 1, 3, 17, 18][rng.usize(0..5)]
            } else {
                rng.i16(-2..100)
            };
            let raw = Raw::request(key, rng.i16(-1..20), id, rng.bool().then_some("client"));
            script = script.send(Direction::Request, &with_body(raw, rng));
        } else {
            let id = ids[rng.usize(0..ids.len())];
            script = script.send(Direction::Response, &with_body(Raw::response(id), rng));
        }
    }
    match rng.u8(0..3) {
        0 => script.client_eof().broker_eof(),
        1 => script.broker_eof().client_eof(),
        _ => script.drain(),
    }
}

fn with_body(raw: Raw, rng: &mut fastrand::Rng) -> Vec<u8> {
    let len = rng.usize(0..100);
    let small = rng.bool();
    let body: Vec<u8> = (0..len)
        .map(|_| if small { rng.u8(0..4) } else { rng.u8(..) })
        .collect();
    raw.bytes(&body).frame()
}

fn code(rng: &mut fastrand::Rng) -> i16 {
    CODES[rng.usize(0..CODES.len())]
}

/// Few enough different codes that each is told once.
fn codes(rng: &mut fastrand::Rng) -> Vec<i16> {
    (0..rng.usize(0..6)).map(|_| code(rng)).collect()
}

/// Mostly small, at times beyond any window, rarely beyond any buffer.
fn size(rng: &mut fastrand::Rng) -> usize {
    match rng.u8(..) {
        0 => rng.usize(0..70_000),
        1..40 => rng.usize(0..2000),
        _ => rng.usize(0..60),
    }
}
