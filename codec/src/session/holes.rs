//! Of every layout: where a session says that something is withheld, under any cut, against where the
//! full table has it, and that nothing of it is anywhere else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

use super::{Clamp, Input, NonKafka, Policy, Session, Step};
use crate::layout::tests::written::{Planted, message};
use crate::layout::{Progress, Root, Value, Walker, versions};
use crate::observation::{Observation, Observer};
use crate::types::{ApiKey, Direction};
use crate::versions::TableStore;
use fastrand::Rng;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// In which fields of which API's messages something is withheld, in some version.
const OF_REQUESTS: [(i16, &str); 17] = [
    (0, "Records"),
    (8, "CommittedMetadata"),
    (11, "Metadata"),
    (14, "Assignment"),
    (19, "Value"),
    (28, "CommittedMetadata"),
    (33, "Value"),
    (36, "AuthBytes"),
    (39, "Hmac"),
    (40, "Hmac"),
    (44, "Value"),
    (51, "Salt"),
    (51, "SaltedPassword"),
    (58, "RequestData"),
    (58, "RequestPrincipal"),
    (72, "Metrics"),
    (88, "Value"),
];
const OF_RESPONSES: [(i16, &str); 18] = [
    (1, "Records"),
    (9, "Metadata"),
    (11, "Metadata"),
    (14, "Assignment"),
    (15, "MemberAssignment"),
    (15, "MemberMetadata"),
    (19, "ErrorMessage"),
    (19, "Value"),
    (32, "Value"),
    (33, "ErrorMessage"),
    (36, "AuthBytes"),
    (38, "Hmac"),
    (41, "Hmac"),
    (44, "ErrorMessage"),
    (58, "ResponseData"),
    (59, "UnalignedRecords"),
    (78, "Records"),
    (89, "Value"),
];

/// What is planted.
const SECRET: &[u8] = b"a secret that nobody is to find";

/// Offset in the stream, bytes, and whether it is records.
type Hole = (u64, u32, bool);

#[derive(Default)]
struct Told {
    direction: Option<Direction>,
    holes: Vec<Hole>,
    is_opaque: bool,
}

impl Observer for Told {
    fn observe(&mut self, direction: Direction, at: u64, what: Observation<'_>) {
        match what {
            Observation::Hole { bytes, records } => {
                assert_eq!(Some(direction), self.direction);
                self.holes.push((at, bytes, records));
            }
            Observation::Opaque { .. } | Observation::Unseen(_) => self.is_opaque = true,
            _ => {}
        }
    }
}

/// Lets a frame pass, of which so much as `window` says is shown, and more where it must be.
fn pass(
    session: &mut Session,
    direction: Direction,
    frame: &[u8],
    mut window: impl FnMut() -> usize,
) -> Vec<Hole> {
    let mut told = Told {
        direction: Some(direction),
        ..Told::default()
    };
    let (mut at, mut shown) = (0, window());
    while at < frame.len() {
        let end = frame.len().min(at + shown);
        let input = Input {
            shown: &frame[at..end],
            eof: false,
            unpaid: 0,
            now: Duration::ZERO,
        };
        match session.poll(direction, input, &mut told) {
            Step::Pass(n) => {
                at += n as usize;
                shown = window();
            }
            Step::Need(n) if end < frame.len() => shown = n.max(shown + 1),
            step => panic!("{step:?} at {at} of {frame:02x?}"),
        }
    }
    // What is behind the last hole need not be shown.
    let input = Input {
        shown: &[],
        eof: false,
        unpaid: 0,
        now: Duration::ZERO,
    };
    let step = session.poll(direction, input, &mut told);
    assert!(
        !told.is_opaque && at == frame.len(),
        "{step:?} {frame:02x?}"
    );
    told.holes
}

/// A frame, and how long its header is up to what is walked.
pub(crate) fn frame(
    direction: Direction,
    api_key: ApiKey,
    api_version: i16,
    body: &[u8],
) -> (Vec<u8>, usize) {
    let mut head = Vec::new();
    if direction == Direction::Request {
        head.extend(api_key.0.to_be_bytes());
        head.extend(api_version.to_be_bytes());
    }
    head.extend(7_i32.to_be_bytes());
    // The only request without a client id.
    let has_none = (api_key, api_version) == (ApiKey::CONTROLLED_SHUTDOWN, 0);
    if direction == Direction::Request && !has_none {
        head.extend(b"\0\x04test");
    }
    let length = (head.len() + body.len()) as u32;
    let frame = [&length.to_be_bytes(), head.as_slice(), body].concat();
    (frame, 4 + head.len())
}

/// What is withheld of a body that begins at offset `start`, and in which fields.
fn withheld(root: Root, body: &[u8], start: usize) -> Vec<(Hole, &'static str)> {
    let mut holes = Vec::new();
    let mut on = |event: crate::layout::Event<'_>| {
        let (len, records) = match event.value {
            Value::Piece(piece, 0) => (piece.len(), false),
            Value::Skipped(len) => (len as usize, true),
            _ => return,
        };
        if len > 0 && event.role.is_withheld() {
            let name = root.field(event.field).unwrap().name;
            let at = start as u64 + u64::from(event.at);
            holes.push(((at, len as u32, records), name));
        }
    };
    let end = Walker::new(root, body.len() as u32).feed(body, &mut on);
    assert_eq!(end, Ok((body.len(), Progress::Done)));
    holes
}

#[test]
fn a_session_tells_of_all_that_is_withheld_and_of_nothing_else_however_the_bytes_come() {
    let policy = Arc::new(Policy {
        clamp: Clamp::Off,
        max_request_bytes: u32::MAX,
        non_kafka: NonKafka::Close,
        request_progress: None,
        response_progress: None,
        tables: TableStore::default(),
    });
    let mut rng = Rng::with_seed(30);
    let mut seen = [BTreeSet::new(), BTreeSet::new()];
    let mut layouts = 0;
    for api_key in (0..95).map(ApiKey) {
        let range = versions(api_key).unwrap();
        for api_version in range.min()..=range.max() {
            let [asked, answered] = [Direction::Request, Direction::Response]
                .map(|direction| Root::find_full(direction, api_key, api_version).unwrap());
            layouts += 2;
            for _ in 0..12 {
                let planted = Planted {
                    withheld: Some(SECRET),
                    unknown: None,
                };
                let largest = 1 << rng.u8(0..9);
                let mut session = Session::new(Arc::clone(&policy));
                for (direction, root) in
                    [(Direction::Request, asked), (Direction::Response, answered)]
                {
                    let mut body = message(root, planted, &mut rng);
                    if (direction, api_key) == (Direction::Response, ApiKey::API_VERSIONS) {
                        // No error, or it might have another shape.
                        body[..2].fill(0);
                    }
                    let (frame, start) = frame(direction, api_key, api_version, &body);
                    let found = withheld(root, &body, start);
                    let wanted = found.iter().map(|it| it.0).collect::<Vec<_>>();
                    let told = pass(&mut session, direction, &frame, || rng.usize(1..=largest));
                    assert_eq!(told, wanted, "{direction:?} {api_key:?} v{api_version}");
                    seen[direction as usize].extend(found.iter().map(|it| (api_key.0, it.1)));

                    let mut rest = frame;
                    for (at, bytes, _) in told.iter().rev() {
                        rest.drain(*at as usize..*at as usize + *bytes as usize);
                    }
                    let found = rest.windows(SECRET.len()).any(|it| it == SECRET);
                    assert!(!found, "{direction:?} {api_key:?} v{api_version}");
                }
            }
        }
    }
    assert_eq!(layouts, 2 * 368);
    let listed =
        [OF_REQUESTS.as_slice(), OF_RESPONSES.as_slice()].map(|it| it.iter().copied().collect());
    assert_eq!(seen, listed);
}
