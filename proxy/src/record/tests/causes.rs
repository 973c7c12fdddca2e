//! Which of its frames a capture was taken for, where others are like it: a session hears the bytes.

use super::*;
use crate::capture::pcapng::tests::{METADATA, metadata, request, response};
use klamp_codec::kept::{Kept, Part};
use klamp_codec::session::{Clamp, NonKafka, Policy};
use klamp_codec::versions::TableStore;

/// A connection whose bytes pass a session, and what triggers.
struct Wire {
    rig: Rig,
    record: Record,
    session: Session,
    now: Duration,
}

impl Wire {
    fn on(list: &str) -> Self {
        let rig = Rig::new();
        rig.watch.captures.set_on(list.parse().unwrap());
        Self {
            record: rig.record(),
            rig,
            session: Session::new(Arc::new(Policy {
                clamp: Clamp::Off,
                max_request_bytes: 100 << 20,
                non_kafka: NonKafka::Pass,
                request_progress: None,
                response_progress: None,
                tables: TableStore::default(),
            })),
            now: Duration::ZERO,
        }
    }

    /// These come at once.
    fn pass(&mut self, direction: Direction, frames: &[Vec<u8>]) {
        let bytes = frames.concat();
        let mut shown = bytes.as_slice();
        while !shown.is_empty() {
            match self.ask(direction, shown, false) {
                Step::Pass(n) => shown = &shown[shown.len().min(n as usize)..],
                Step::Need(_) => break,
                step => panic!("{step:?}"),
            }
        }
    }

    fn ask(&mut self, direction: Direction, shown: &[u8], eof: bool) -> Step {
        let input = Input {
            shown,
            eof,
            unpaid: 0,
            now: self.now,
        };
        self.record.ask(&mut self.session, direction, input)
    }

    /// The direction, the correlation id and the place among those of its direction of the frame that the
    /// only capture was taken for, and how many of each direction there are.
    fn cause(&self) -> (Option<(Direction, i32, usize)>, [usize; 2]) {
        let all = self.rig.watch.captures.all();
        let [found] = all.as_slice() else {
            panic!("{} captures", all.len());
        };
        let frames = found.capture.frames.all();
        let before = |upto: usize, direction| {
            let those = frames[..upto].iter();
            those.filter(|kept| kept.direction == direction).count()
        };
        let cause = found.capture.cause.map(|cause| {
            let index = cause.among(&frames).expect("it is kept");
            let id = cause.exchange.correlation_id.0;
            (cause.direction, id, before(index, cause.direction))
        });
        let both = [Request, Response].map(|direction| before(frames.len(), direction));
        (cause, both)
    }
}

fn bytes(kept: Kept) -> Vec<u8> {
    match kept.parts.as_slice() {
        [Part::Bytes(bytes)] => bytes.clone(),
        parts => panic!("{parts:?}"),
    }
}

fn asking(id: i32) -> Vec<u8> {
    bytes(request(3, 1, id, 0, METADATA))
}

fn answering(id: i32, code: i16) -> Vec<u8> {
    bytes(response(3, 1, id, 0, &metadata(code)))
}

/// As many clients count, and as some do.
const IDS: [[i32; 3]; 2] = [[1, 2, 3], [7, 7, 7]];

#[test]
fn of_late_answers_the_first_is_the_one() {
    for ids in IDS {
        let mut wire = Wire::on("slow=2s");
        wire.pass(Request, &ids.map(asking));
        wire.now = Duration::from_secs(1);
        wire.pass(Response, &[answering(ids[0], 0)]);
        wire.now = Duration::from_secs(5);
        wire.pass(Response, &[answering(ids[1], 0), answering(ids[2], 0)]);
        assert_eq!(wire.cause(), (Some((Response, ids[1], 1)), [3, 3]));
    }
}

#[test]
fn of_answers_with_the_same_code_the_one_that_triggers_is_the_one() {
    for ids in IDS {
        let mut wire = Wire::on("UNNAMED");
        wire.pass(Request, &ids.map(asking));
        let codes = [(ids[0], 0), (ids[1], 250), (ids[2], 250)];
        wire.pass(Response, &codes.map(|(id, code)| answering(id, code)));
        assert_eq!(wire.cause(), (Some((Response, ids[1], 1)), [3, 3]));
    }
}

#[test]
fn of_malformed_messages_the_one_that_triggers_is_the_one() {
    for ids in IDS {
        // Without a body, it ends where its body should begin.
        let mut wire = Wire::on("malformed");
        wire.pass(Request, &ids.map(asking));
        let empty = |id| bytes(response(3, 1, id, 0, b""));
        let answers = [answering(ids[0], 0), empty(ids[1]), answering(ids[2], 0)];
        wire.pass(Response, &answers);
        assert_eq!(wire.cause(), (Some((Response, ids[1], 1)), [3, 3]));

        let mut wire = Wire::on("malformed");
        wire.pass(Request, &ids.map(asking));
        let answers = [answering(ids[0], 0), empty(ids[1]), empty(ids[2])];
        wire.pass(Response, &answers);
        assert_eq!(wire.cause(), (Some((Response, ids[1], 1)), [3, 3]));

        // A client id that goes beyond its frame is told of where that begins.
        let mut wire = Wire::on("malformed");
        let mut overrun = asking(ids[1]);
        overrun[12] = 0x7f;
        wire.pass(Request, &[asking(ids[0]), overrun, asking(ids[2])]);
        assert_eq!(wire.cause(), (Some((Request, ids[1], 1)), [3, 0]));
    }
}

#[test]
fn an_answer_that_no_request_waits_for_is_no_frame_of_its_capture() {
    let mut wire = Wire::on("mismatch");
    wire.pass(Request, &[asking(1), asking(2)]);
    wire.pass(Response, &[answering(1, 0), answering(5, 0)]);
    assert_eq!(wire.cause(), (None, [2, 1]));
}

#[test]
fn a_request_upon_which_the_broker_closes_is_the_latest_of_those_like_it() {
    // Produce v3 of nothing, with acks=0.
    let produce = |id| bytes(request(0, 3, id, 0, &[&[0xff; 2][..], &[0; 10]].concat()));
    for ids in IDS {
        let mut wire = Wire::on("close");
        let unfinished = produce(ids[2])[..20].to_vec();
        wire.pass(Request, &[produce(ids[0]), produce(ids[1]), unfinished]);
        wire.ask(Response, b"", true);
        let why = Ended::Session(CloseReason::BrokerAfterAcks0);
        wire.record.ended(why);
        let (cause, [requests, _]) = wire.cause();
        assert_eq!((cause, requests), (Some((Request, ids[1], 1)), 3));
    }
    let mut wire = Wire::on("close");
    wire.pass(Request, &[produce(1)]);
    wire.ask(Response, b"", true);
    wire.record
        .ended(Ended::Session(CloseReason::BrokerInFlight));
    assert_eq!(wire.cause(), (None, [1, 0]), "it did not close for that");
}
