//! The tables against Kafka's own classes, those of the newest and of the oldest release: of each
//! message in each version that either knows, a walk tells what the object says that wrote it, JSON is
//! what Kafka's request log would have, and of damaged ones a walk reads what the class reads. Needs what
//! the generator needs: Maven, or the jars that it has fetched before, and a JDK.
//!
//! A failure names its seed: `KLAMP_TEST_SEED` has the same messages written again.

#[allow(dead_code, reason = "klamp-codec's own tests use more of it")]
#[path = "../../tests/differential/json.rs"]
mod json;
mod kafka_damage;
mod kafka_json;
#[allow(dead_code, reason = "klamp-codec's own tests use more of it")]
#[path = "../../tests/differential/tree.rs"]
mod tree;
#[allow(dead_code, reason = "klamp-codec's own tests use more of it")]
#[path = "../../tests/differential/walk.rs"]
mod walk;

use fastrand::Rng;
use kafka_damage::{Damaged, Verdict};
use klamp_codec::layout::Root;
use klamp_codec::observation::{Observation, Observer, Outcome};
use klamp_codec::render::{End, Form, Json, Message, Render};
use klamp_codec::session::{Clamp, Input, NonKafka, Policy, Session, Step};
use klamp_codec::versions::TableStore;
use klamp_codec::{ApiKey, Direction};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tree::{Field, Node, Struct, plain};
use walk::{End as Walked, Move, check_hot, check_offsets, walk};

/// How many messages each way there are at least of each version, and of each API.
const COUNTS: [&str; 2] = ["3", "24"];

/// ReadShareGroupStateSummary 0 was not stable before 4.1, and has become another.
const CHANGED: (i16, i16) = (87, 0);

/// What the oldest release calls an API, and the newest one.
const RENAMED: (&str, &str) = ("LIST_CLIENT_METRICS_RESOURCES", "LIST_CONFIG_RESOURCES");

#[test]
fn what_kafkas_own_objects_say_is_told_by_walks_and_json_and_what_they_refuse_is_refused() {
    let seed = seed();
    let mut rng = Rng::with_seed(seed);
    let mut kinds = BTreeSet::new();
    let mut fields = Fields::default();
    let mut withheld = BTreeSet::new();
    let mut verdicts = BTreeMap::new();
    let mut count = 0;
    let [newest, .., oldest] = klamp_layout_generator::RELEASES;
    for release in [oldest, newest] {
        let printed = frames(release, seed);
        let mut frames = printed.lines().map(Frame::read);
        while let (Some(request), Some(response)) = (frames.next(), frames.next()) {
            if release == oldest && (request.api_key, request.api_version) == CHANGED {
                continue;
            }
            let trees = [&request, &response].map(|frame| {
                count += 1;
                kinds.insert((
                    frame.direction == "Request",
                    frame.api_key,
                    frame.api_version,
                ));
                frame.check_json(&mut withheld);
                frame.check_damaged(&mut verdicts);
                frame.check(&mut fields, &mut rng)
            });
            check_session([&request, &response], &trees);
        }
    }
    assert_eq!(kinds, known());
    let listed = json::WITHHELD.map(|(key, is_request, name)| (key, is_request, name.to_owned()));
    let listed = BTreeSet::from(listed);
    let unlisted: Vec<_> = withheld.difference(&listed).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
    // Some stand so deep in messages that by chance none has them.
    assert!(withheld.len() * 10 > listed.len() * 8, "{withheld:?}");
    println!("damaged bodies by verdict: {verdicts:?}");
    let seen = |verdict| verdicts.get(&verdict).copied().unwrap_or(0);
    assert!(seen(Verdict::Read) > 1_000 && seen(Verdict::Refused) > 1_000);
    let (named, never) = (fields.named.len(), fields.never_filled());
    let layouts = kinds.len();
    println!("{count} messages of {layouts} layouts; of {named} fields none fills {never:?}");
    assert!(named > 1_500 && never.len() * 20 < named, "{named}");
}

fn seed() -> u64 {
    let given = std::env::var("KLAMP_TEST_SEED").ok();
    let seed = given.map_or_else(
        // Java's are signed.
        || fastrand::u64(..1 << 63),
        |text| text.parse().expect("KLAMP_TEST_SEED is a number"),
    );
    println!("KLAMP_TEST_SEED={seed}");
    seed
}

fn frames(release: &str, seed: u64) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/Frames.java");
    klamp_layout_generator::java::run(
        &source,
        release,
        &klamp_layout_generator::java::JACKSON,
        &[&seed.to_string(), COUNTS[0], COUNTS[1]],
    )
    .expect("Frames.java prints messages")
}

/// All messages that the tables have.
fn known() -> BTreeSet<(bool, i16, i16)> {
    let mut known = BTreeSet::new();
    for (api_key, api_version) in (0..200).flat_map(|key| (0..100).map(move |it| (key, it))) {
        for direction in [Direction::Request, Direction::Response] {
            if Root::find(direction, ApiKey(api_key), api_version).is_some() {
                known.insert((direction == Direction::Request, api_key, api_version));
            }
        }
    }
    known
}

/// A line that Frames.java has printed.
#[derive(Deserialize)]
struct Frame {
    direction: String,
    api_key: i16,
    api_version: i16,
    flexible: bool,
    /// Bytes of the header before what a walk reads.
    fixed: usize,
    /// The frame behind its length field.
    #[serde(deserialize_with = "hex")]
    frame: Vec<u8>,
    header_tags: Vec<Value>,
    said: Value,
    damaged: Vec<Damaged>,
    api_key_name: String,
    /// What Kafka's request log makes of header and body.
    json_header: Value,
    json: Value,
}

impl Frame {
    fn read(line: &str) -> Self {
        serde_json::from_str(line).expect("a frame")
    }

    /// Holds what walks tell against what the object said, and returns it.
    fn check(&self, fields: &mut Fields, rng: &mut Rng) -> Struct {
        let what = || format!("{} {} v{}", self.direction, self.api_key, self.api_version);
        let body = &self.frame[self.fixed..];
        let hex = || format!("{}: {body:02x?}", what());

        let mut said = said_struct(&self.said);
        let header_tags = self.header_tags.iter().map(said_tag);
        said.unknown.splice(0..0, header_tags);
        let read = Struct::read(self.root(Root::find_full), body);
        let read = read.unwrap_or_else(|error| panic!("{error}: {}", hex()));
        let same = read.check(&said);
        same.unwrap_or_else(|difference| panic!("{difference}: {}\n{}", hex(), self.said));
        let roles = read.check_roles(self.direction(), ApiKey(self.api_key));
        roles.unwrap_or_else(|difference| panic!("{}: {difference}", what()));
        let message = format!("{} {}", self.direction, self.api_key);
        fields.add(&message, &said, &read);

        let [full, hot] = [Root::find_full, Root::find].map(|find| {
            let root = self.root(find);
            let walk =
                |moves: &mut dyn FnMut(usize, usize) -> Move| walk(root, body, body.len(), moves);
            let whole = walk(&mut |_, _| Move::Feed(usize::MAX));
            assert_eq!(whole.end, Walked::Done(body.len()), "{}", hex());
            check_offsets(&whole, body, self.flexible);
            for largest in [1, 7, 300] {
                let cut = walk(&mut |_, _| match rng.usize(0..=largest) {
                    n if rng.bool() => Move::Feed(n),
                    n => Move::Skip(n),
                });
                assert_eq!(cut, whole, "in pieces of at most {largest}: {}", hex());
            }
            whole
        });
        check_hot(&hot, &full);
        read
    }

    /// Holds klamp's JSON against Kafka's own. Notes what is withheld.
    fn check_json(&self, withheld: &mut BTreeSet<(i16, bool, String)>) {
        let is_request = self.direction() == Direction::Request;
        // UNSUPPORTED_VERSION comes in version 0, whatever was asked for.
        let is_versions = !is_request && ApiKey(self.api_key) == ApiKey::API_VERSIONS;
        if is_versions && self.json["errorCode"] == 35 {
            return;
        }
        let message = match is_request {
            true => Message::Request,
            false => Message::Response(ApiKey(self.api_key), self.api_version),
        };
        let mut render = Render::new(message, self.frame.len() as u32, Json::default());
        render.bytes(&self.frame);
        let (end, mut form) = render.end();
        assert_eq!(end, End::Whole(0), "{:02x?}", self.frame);
        let ours: Value = serde_json::from_str(form.written()).expect("it is JSON");

        let mut header = self.json_header.clone();
        header["requestApiKeyName"] = match self.api_key_name.as_str() {
            name if name == RENAMED.0 => RENAMED.1.into(),
            name => name.into(),
        };
        let body = match is_request {
            true => "request",
            false => {
                header["requestApiKey"] = self.api_key.into();
                header["requestApiVersion"] = self.api_version.into();
                "response"
            }
        };
        let mut hidden = BTreeSet::new();
        let same = kafka_json::check_like(&ours["requestHeader"], &header, &mut hidden)
            .and_then(|()| kafka_json::check_like(&ours[body], &self.json, &mut hidden));
        same.unwrap_or_else(|difference| panic!("{difference}:\n{ours}\n{}", self.json));
        withheld.extend(hidden.into_iter().map(|it| (self.api_key, is_request, it)));
    }

    fn root(&self, find: fn(Direction, ApiKey, i16) -> Option<Root>) -> Root {
        let root = find(self.direction(), ApiKey(self.api_key), self.api_version);
        root.unwrap_or_else(|| panic!("no {} v{}", self.api_key, self.api_version))
    }

    fn direction(&self) -> Direction {
        match self.direction.as_str() {
            "Request" => Direction::Request,
            _ => Direction::Response,
        }
    }

    /// With its length field.
    fn whole(&self) -> Vec<u8> {
        let length = self.frame.len() as u32;
        [&length.to_be_bytes(), self.frame.as_slice()].concat()
    }
}

/// What somebody else says of a message.
fn said_struct(value: &Value) -> Struct {
    let mut said = Struct::default();
    for (name, value) in value.as_object().expect("a struct") {
        if name == "_unknownTaggedFields" {
            said.unknown
                .extend(value.as_array().expect("a list").iter().map(said_tag));
            continue;
        }
        said.fields.push(Field {
            name: plain(name),
            role: None,
            value: said_value(value),
        });
    }
    said
}

fn said_value(value: &Value) -> Node {
    match value {
        Value::Null => Node::Null,
        Value::Number(number) => Node::Int(number.as_i64().expect("an int64 at most")),
        Value::String(text) => Node::Bytes(bytes(text)),
        Value::Array(elements) => Node::List(elements.iter().map(said_element).collect()),
        Value::Object(_) => Node::Struct(said_struct(value)),
        Value::Bool(_) => panic!("bools are numbers"),
    }
}

fn said_element(value: &Value) -> Field {
    Field {
        name: String::new(),
        role: None,
        value: said_value(value),
    }
}

fn said_tag(pair: &Value) -> (u32, Vec<u8>) {
    let number = pair[0].as_u64().expect("a tag");
    (number as u32, bytes(pair[1].as_str().expect("hex")))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2).map(|at| &hex[at..at + 2]);
    let byte = |digits| u8::from_str_radix(digits, 16).expect("hex");
    digits.map(byte).collect()
}

fn hex<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    Ok(bytes(&String::deserialize(from)?))
}

/// Which fields there are, and which had a value other than none, 0 or empty.
#[derive(Default)]
struct Fields {
    named: BTreeSet<String>,
    filled: BTreeSet<String>,
}

impl Fields {
    fn add(&mut self, message: &str, said: &Struct, read: &Struct) {
        said.paths(message, &mut |path, _| self.named.extend([path]));
        read.paths(message, &mut |path, is_filled| {
            self.filled.extend(is_filled.then_some(path));
        });
    }

    fn never_filled(&self) -> Vec<&String> {
        self.named.difference(&self.filled).collect()
    }
}

/// Lets both pass through a session, which must understand them and tell every error code.
fn check_session([request, response]: [&Frame; 2], [asked, answered]: &[Struct; 2]) {
    let what = || format!("{} v{}", request.api_key, request.api_version);
    let mut errors = BTreeMap::new();
    count_errors(answered, &mut errors);
    let number = |tree: &Struct, name: &str| {
        let field = tree.fields.iter().find(|it| it.name == name)?;
        match field.value {
            Node::Int(n) => Some(n),
            _ => None,
        }
    };
    let api_key = ApiKey(request.api_key);
    let is_lone = api_key == ApiKey::PRODUCE && number(asked, "acks") == Some(0);
    // UNSUPPORTED_VERSION comes in version 0, whatever was asked for.
    let is_refusal = api_key == ApiKey::API_VERSIONS && errors.contains_key(&35);
    if is_lone || is_refusal {
        return;
    }
    let mut session = Session::new(Arc::new(Policy {
        clamp: Clamp::Off,
        max_request_bytes: u32::MAX,
        non_kafka: NonKafka::Close,
        request_progress: None,
        response_progress: None,
        tables: TableStore::default(),
    }));
    let mut told = Told::default();
    for frame in [request, response] {
        let whole = frame.whole();
        let mut rest = whole.as_slice();
        loop {
            let input = Input {
                shown: rest,
                eof: false,
                unpaid: 0,
                now: Duration::ZERO,
            };
            match session.poll(frame.direction(), input, &mut told) {
                Step::Pass(n) => rest = &rest[n as usize..],
                Step::Need(_) | Step::Wait if rest.is_empty() => break,
                step => panic!("{step:?} of {}", what()),
            }
        }
    }
    assert!(told.opaque.is_empty(), "{:?}: {}", told.opaque, what());
    assert_eq!(told.errors, errors, "{}", what());
    let any = errors.keys().any(|code| *code != 0);
    let outcome = if any { Outcome::Error } else { Outcome::Ok };
    assert_eq!(told.outcomes, [outcome], "{}", what());
    let throttle = number(answered, "throttletimems").filter(|time| *time > 0);
    assert_eq!(told.throttle, throttle, "{}", what());
}

fn count_errors(message: &Struct, errors: &mut BTreeMap<i16, u32>) {
    for field in &message.fields {
        let elements = match &field.value {
            Node::List(elements) => elements.iter().map(|it| &it.value).collect(),
            value => vec![value],
        };
        for value in elements {
            match value {
                Node::Int(code) if field.name.ends_with("errorcode") => {
                    *errors.entry(*code as i16).or_default() += 1;
                }
                Node::Struct(inner) => count_errors(inner, errors),
                _ => {}
            }
        }
    }
}

/// What a session tells of one exchange.
#[derive(Default)]
struct Told {
    errors: BTreeMap<i16, u32>,
    outcomes: Vec<Outcome>,
    throttle: Option<i64>,
    opaque: Vec<String>,
}

impl Observer for Told {
    fn observe(&mut self, _: Direction, _: u64, what: Observation<'_>) {
        match what {
            Observation::Errors { code, count, .. } => {
                *self.errors.entry(code.0).or_default() += count;
            }
            Observation::ResponseEnd { outcome, .. } => self.outcomes.push(outcome),
            Observation::Throttle { time, .. } => self.throttle = Some(time.as_millis() as i64),
            Observation::Opaque { .. } | Observation::Unseen(_) | Observation::Mismatch { .. } => {
                self.opaque.push(format!("{what:?}"));
            }
            _ => {}
        }
    }
}
