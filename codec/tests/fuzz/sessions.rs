//! Conversations of any frames.

use crate::damage::damage;
use crate::grown::grown;
use crate::sim::conversation::Conversation;
use crate::sim::raw::Raw;
use crate::sim::script::Act;
use crate::sim::{self, Script, Seen};
use crate::{Kind, pairs, run};
use allocation_counter::measure;
use fastrand::Rng;
use klamp_codec::observation::{Observation, Observer};
use klamp_codec::session::{Clamp, Input, NonKafka, Policy, Session, Step};
use klamp_codec::{ApiKey, Direction};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn sessions_do_no_harm_and_hold_little_whatever_comes() {
    let pairs = pairs();
    let policies = policies();
    let mut understood = 0;
    let mut bytes = 0;
    let cases = run(|seed, rng| {
        let policy = &policies[rng.usize(0..policies.len())];
        let mut script = conversation(seed, &pairs, rng).mingled(rng);
        if rng.u8(..) > 50 {
            script = damaged(&script, rng);
        }
        bytes += script.len();
        weigh(policy, &script);

        let trace = sim::trace_of(policy, &script);
        understood += trace.response.responses().len();
        let may_see_tokens = trace.request.what().any(|it| match it {
            Seen::RequestHead { exchange, .. } => {
                exchange.api_key == ApiKey::SASL_HANDSHAKE && exchange.api_version == 0
            }
            _ => false,
        });
        for _ in 0..2 {
            let what = format!("seed {seed}");
            if may_see_tokens {
                // What comes ahead of its raw token is judged by when it is looked at.
                sim::check::harmless_again(policy, &script, rng, &what);
            } else {
                sim::check::compatible_again(policy, &trace, &script, rng, &what);
            }
        }
    });
    println!("{cases} cases, {bytes} bytes, {understood} responses read");
    assert!(understood > 100, "{understood}");
}

/// A few requests and their answers, the first of the kind that the seed says.
fn conversation(seed: u64, pairs: &[[Kind; 2]], rng: &mut Rng) -> Conversation {
    let mut conversation = Conversation::new();
    for exchange in 0..rng.usize(1..10) {
        let pair = match exchange {
            0 => seed as usize % pairs.len(),
            _ => rng.usize(0..pairs.len()),
        };
        let ids = 1 << rng.u8(1..20);
        let id = rng.i32(0..ids);
        let [ask, answer] = pairs[pair].map(|kind| frame(kind, id, rng));
        conversation = match rng.u8(..) {
            0..10 => conversation.tell(&ask),
            _ => conversation.ask(&ask, &answer),
        };
    }
    conversation.end()
}

fn policies() -> Vec<Arc<Policy>> {
    let mut policies = Vec::new();
    for clamp in [Clamp::Off, Clamp::Encode, Clamp::Inspect] {
        for non_kafka in [NonKafka::Pass, NonKafka::Close] {
            policies.push(sim::shared(Policy {
                clamp,
                non_kafka,
                ..sim::policy()
            }));
        }
    }
    policies
}

fn frame(kind: Kind, id: i32, rng: &mut Rng) -> Vec<u8> {
    let body = grown(kind.full(), rng);
    let header = match kind.direction {
        Direction::Response => Raw::response(id),
        // The only request without a client id.
        Direction::Request if (kind.api_key, kind.api_version) == (ApiKey(7), 0) => {
            Raw::new().i16(7).i16(0).i32(id)
        }
        Direction::Request => {
            let client_id = rng.bool().then_some("fuzz");
            Raw::request(kind.api_key.0, kind.api_version, id, client_id)
        }
    };
    header.bytes(&body).frame()
}

fn damaged(script: &Script, rng: &mut Rng) -> Script {
    let mut script = script.clone();
    for _ in 0..rng.u8(1..4) {
        let which = rng.usize(0..script.events().len());
        script = script.with(which, |act| {
            if let Act::Bytes(_, bytes) = act {
                damage(bytes, rng);
                bytes.push(rng.u8(..));
            }
        });
    }
    script
}

/// Holds what a session allocates against what it was shown.
fn weigh(policy: &Arc<Policy>, script: &Script) {
    let mut session = Session::new(Arc::clone(policy));
    let mut lanes = [Lane::default(), Lane::default()];
    let (mut held, mut most) = (0, 0);
    for (_, act) in script.events() {
        let Act::Bytes(direction, bytes) = act else {
            continue;
        };
        lanes[*direction as usize].arrived.extend_from_slice(bytes);
        for direction in [*direction, Direction::Request, Direction::Response] {
            let lane = &mut lanes[direction as usize];
            while lane.pay() {
                let mut step = Turn::Rest;
                let memory = measure(|| step = lane.turn(direction, &mut session));
                most = most.max(held + memory.bytes_max as i64);
                held += memory.bytes_current;
                match step {
                    Turn::Owe(n) => lane.owed = n,
                    Turn::Rest => break,
                    Turn::Close => return,
                }
            }
        }
    }
    let allowed = (16 << 10) + 16 * script.len() as i64;
    assert!(most <= allowed, "{most} bytes held of {}", script.len());
}

#[derive(Default)]
struct Lane {
    arrived: Vec<u8>,
    owed: u64,
}

enum Turn {
    /// So many bytes are to go.
    Owe(u64),
    /// Until more comes.
    Rest,
    Close,
}

impl Lane {
    /// Whether no debt is left.
    fn pay(&mut self) -> bool {
        let n = self.owed.min(self.arrived.len() as u64);
        self.arrived.drain(..n as usize);
        self.owed -= n;
        self.owed == 0
    }

    fn turn(&self, direction: Direction, session: &mut Session) -> Turn {
        let input = Input {
            shown: &self.arrived,
            eof: false,
            unpaid: 0,
            now: Duration::ZERO,
        };
        match session.poll(direction, input, &mut Deaf) {
            Step::Pass(n) => Turn::Owe(n),
            Step::Replace { drop, .. } => Turn::Owe(drop as u64),
            Step::Need(_) | Step::Wait | Step::Finish => Turn::Rest,
            Step::Close(_) => Turn::Close,
        }
    }
}

/// Nobody listens.
struct Deaf;

impl Observer for Deaf {
    fn observe(&mut self, _: Direction, _: u64, _: Observation<'_>) {}
}
