//! Tapes beside a session, and what can be read from them.
//!
//! The session and what moves its bytes are the real thing and a small one: bytes that are owed come in
//! as the relay's do, unless they are to be spliced, so that nobody sees them.

use super::reel::{CHUNK, CHUNKS};
use super::*;
use klamp_codec::kept::{Change, Kept, Part, Reading};
use klamp_codec::observation::Observer;
use klamp_codec::session::{Clamp, NonKafka, Policy, Session};
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
    now: Instant,
    id: u64,
    splices: bool,
    closed: bool,
}

#[derive(Default)]
struct Lane {
    shown: Vec<u8>,
    owed: u64,
}

/// Hears what the session tells of what it is shown.
struct Ears<'a>(&'a Recorder, &'a [u8]);

impl Observer for Ears<'_> {
    fn observe(&mut self, direction: Direction, at: u64, what: Observation<'_>) {
        self.0.observe(direction, at, &what, self.1);
    }
}

impl Rig {
    fn new() -> Self {
        Self::with(NOTHING_ELSE, Clamp::Encode)
    }

    fn with(settings: Settings, clamp: Clamp) -> Self {
        let arena = Arena::new(settings, 1, Arc::default()).unwrap();
        Self::in_arena(&arena, 1, clamp)
    }

    fn in_arena(arena: &Rc<Arena>, id: u64, clamp: Clamp) -> Self {
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
            now: arena.start,
            id,
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
        self.recorder.asked(self.id, &input);
        let mut ears = Ears(&self.recorder, input.shown);
        let step = self.session.poll(direction, input, &mut ears);
        self.recorder.settled(direction, &input, &step);
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

/// Produce v3 with these records, and its answer.
fn produce(id: u8, records: &[u8]) -> [(Direction, Vec<u8>); 2] {
    let length = u32::try_from(records.len()).unwrap().to_be_bytes();
    let head = b"\xff\xff\0\x01\0\0\0\x09\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0";
    let topic = b"\0\0\0\x01\0\x01t\0\0\0\x01";
    let partition = [&[0; 4][..], &[0, 0], &[0; 8], &[255; 8], &[0; 4]].concat();
    [
        (
            Request,
            request(0, 3, id, &[head, &length[..], records].concat()),
        ),
        (Response, response(id, &[&topic[..], &partition].concat())),
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
    let script: [&[_]; 10] = [
        &versions(1),
        &find(2),
        &plain(3),
        &produce(4, &batches),
        &malformed(5),
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

#[test]
fn what_is_not_understood_is_kept_up_to_its_header() {
    let mut rig = Rig::new();
    play(&mut rig, &[&malformed(1)[..], &unheard_of(2)].concat());
    play(&mut rig, &versions_of_the_future(3));
    let told: Vec<_> = (rig.frames().iter())
        .map(|frame| (frame.reading, frame.change, bytes_of(frame).len()))
        .collect();
    let (header, answer) = (15, 8);
    assert_eq!(
        told,
        [
            (Reading::Opaque(OpaqueReason::Malformed), None, header),
            (Reading::Opaque(OpaqueReason::Malformed), None, answer),
            (Reading::Opaque(OpaqueReason::UnknownKey), None, header),
            (Reading::Opaque(OpaqueReason::UnknownKey), None, answer),
            (
                Reading::Opaque(OpaqueReason::UnknownVersion),
                Some(Change::AnsweredHere),
                header
            ),
        ]
    );
}

#[test]
fn what_is_not_understood_is_kept_whole_where_that_is_asked_for() {
    let settings = Settings {
        opaque: true,
        ..NOTHING_ELSE
    };
    let mut rig = Rig::with(settings, Clamp::Encode);
    let script = [
        &malformed(1)[..],
        &unheard_of(2),
        &versions_of_the_future(3),
    ]
    .concat();
    play(&mut rig, &script);
    let kept: Vec<_> = rig.frames().iter().map(bytes_of).collect();
    let sent: Vec<_> = script.into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(kept, sent);
}

#[test]
fn an_answer_that_was_rewritten_is_kept_as_the_broker_sent_it() {
    let mut rig = Rig::new();
    let script = versions(1);
    play(&mut rig, &script);
    let frames = rig.frames();
    assert_eq!(frames[0].change, None);
    assert_eq!(
        frames[1].change,
        Some(Change::Rewritten(script[1].1.len() as u64))
    );
    assert_eq!(frames[1].parts, [Part::Bytes(script[1].1.clone())]);
}

#[test]
fn of_an_answer_that_klamp_closes_upon_the_header_is_kept() {
    let mut rig = Rig::new();
    let [asked, _] = versions(1);
    play(
        &mut rig,
        &[asked, (Response, response(1, b"\0\0\x7f\0\0\0secret"))],
    );
    assert!(rig.closed);
    let frame = &rig.frames()[1];
    assert_eq!(frame.reading, Reading::Opaque(OpaqueReason::Malformed));
    assert_eq!(bytes_of(frame).len(), 8);
}

#[test]
fn a_frame_under_way_is_kept_up_to_its_header_and_whole_in_a_later_snapshot() {
    let mut rig = Rig::new();
    let [(_, asked), answered] = find(1);
    play(&mut rig, &find(0));
    rig.sends(Request, &asked[..asked.len() - 1]);
    let first = rig.tape().snapshot();
    assert_eq!(first.frames[2].reading, Reading::Unfinished);
    assert_eq!(bytes_of(&first.frames[2]), asked[..15]);
    rig.sends(Request, &asked[asked.len() - 1..]);
    rig.sends(answered.0, &answered.1);
    let later = rig.tape().snapshot_since(&first.mark);
    let kept: Vec<_> = later.frames.iter().map(bytes_of).collect();
    assert_eq!(kept, [asked, answered.1]);
    assert_eq!(later.lost_frames, 0);
    assert!(rig.tape().snapshot_since(&later.mark).frames.is_empty());
}

#[test]
fn times_are_those_at_which_the_first_byte_was_seen() {
    let mut rig = Rig::new();
    for frame in find(1) {
        rig.now += Duration::from_millis(1500);
        play(&mut rig, &[frame]);
    }
    let frames = rig.frames();
    let between = frames[1].received.duration_since(frames[0].received);
    assert_eq!(between.unwrap(), Duration::from_millis(1500));
    assert_eq!(frames[1].latency, Some(Duration::from_millis(1500)));
}

#[test]
fn a_conversation_leaves_the_same_frames_however_it_is_cut() {
    for (settings, clamp) in [
        (NOTHING_ELSE, Clamp::Encode),
        (NOTHING_ELSE, Clamp::Off),
        (
            Settings {
                records: true,
                opaque: true,
                ..NOTHING_ELSE
            },
            Clamp::Encode,
        ),
    ] {
        let script = everything();
        let mut rig = Rig::with(settings, clamp);
        play(&mut rig, &script);
        let whole = without_times(&rig);
        for size in 1..40 {
            let mut cut = rig.again();
            for (direction, bytes) in &script {
                for piece in bytes.chunks(size) {
                    cut.sends(*direction, piece);
                }
            }
            assert_alike(&whole, &without_times(&cut), settings.records, size);
        }
    }
}

fn without_times(rig: &Rig) -> Vec<Kept> {
    let mut frames = rig.frames();
    for frame in &mut frames {
        frame.received = std::time::UNIX_EPOCH;
    }
    frames
}

/// Heads of batches may be lost where they were cut, since nobody looks at what follows.
fn assert_alike(whole: &[Kept], cut: &[Kept], strictly: bool, size: usize) {
    assert_eq!(whole.len(), cut.len());
    for (whole, cut) in whole.iter().zip(cut) {
        let has_records = whole
            .exchange
            .is_some_and(|it| it.api_key == ApiKey::PRODUCE);
        if has_records && whole.direction == Request && !strictly {
            for (whole, cut) in bytes_of(whole).iter().zip(bytes_of(cut)) {
                assert!(*whole == cut || cut == b'.', "cut to {size}: {cut:?}");
            }
        } else {
            assert_eq!(whole, cut, "cut to {size}");
        }
    }
}

#[test]
fn frames_that_come_together_are_told_apart() {
    let mut rig = Rig::new();
    let asked: Vec<_> = (0..200).map(|id| find(id)[0].1.clone()).collect();
    let answered: Vec<_> = (0..200).map(|id| find(id)[1].1.clone()).collect();
    rig.sends(Request, &asked.concat());
    rig.sends(Response, &answered.concat());
    let kept: Vec<_> = rig.frames().iter().map(bytes_of).collect();
    assert_eq!(kept, [asked, answered].concat());
}

#[test]
fn of_a_large_frame_the_start_is_kept_and_of_a_spliced_one_what_was_seen() {
    for splices in [false, true] {
        let mut rig = Rig::new();
        rig.splices = splices;
        let group = vec![b'g'; 30_000];
        let large = request(10, 0, 1, &[b"\x75\x30", &group[..]].concat());
        for piece in large.chunks(5_000) {
            rig.sends(Request, piece);
        }
        play(&mut rig, &[find(1)[1].clone()]);
        let frames = rig.frames();
        assert_eq!(frames[0].reading, Reading::Whole);
        let start = if splices { 5_000 } else { FRAME as usize };
        let expected = [
            Part::Bytes(large[..start].to_vec()),
            Part::Hole((large.len() - start) as u32),
        ];
        assert_eq!(frames[0].parts, expected);
        assert_eq!(bytes_of(&frames[1]), find(1)[1].1);
    }
}

#[test]
fn a_connection_keeps_its_latest_frames_and_counts_the_others() {
    let mut rig = Rig::new();
    for n in 0..5_000_u32 {
        play(&mut rig, &find(n as u8));
        assert!(rig.arena.used() <= CHUNK * CHUNKS + size_of::<Tape>());
    }
    let snapshot = rig.tape().snapshot();
    let number = snapshot.frames.len() as u64;
    assert_eq!(number + snapshot.lost_frames, 10_000);
    assert!(number > 1_000, "{number}");
    let last = snapshot.frames.last().unwrap();
    assert_eq!(bytes_of(last), find(4_999_u32 as u8)[1].1);
    for frame in &snapshot.frames {
        assert_eq!(frame.reading, Reading::Whole);
        assert!(matches!(frame.parts[..], [Part::Bytes(_)]), "{frame:?}");
    }
}

#[test]
fn at_the_budget_the_oldest_history_of_the_thread_is_given_up() {
    let usage = Arc::new(Usage::default());
    let settings = Settings {
        memory: 256 << 10,
        ..NOTHING_ELSE
    };
    let arena = Arena::new(settings, 1, usage.clone()).unwrap();
    let connection = |id| Rig::in_arena(&arena, id, Clamp::Encode);
    let mut rigs: Vec<_> = (0..200).map(connection).collect();
    for round in 0..40 {
        for rig in &mut rigs {
            play(rig, &find(round));
            assert!(arena.used() <= 256 << 10);
            assert_eq!(arena.used(), usage.bytes());
        }
    }
    assert!(usage.given_up() > 0);
    for rig in &rigs {
        let snapshot = rig.tape().snapshot();
        assert_eq!(snapshot.frames.len() as u64 + snapshot.lost_frames, 80);
    }
    let latest = rigs[199].frames();
    assert_eq!(bytes_of(latest.last().unwrap()), find(39)[1].1);
    assert!(Rc::ptr_eq(&arena.find(7).unwrap(), rigs[7].tape()));
    drop(rigs);
    assert!(arena.find(7).is_none());
    assert_eq!((arena.used(), usage.bytes()), (0, 0));
}

#[test]
fn connections_that_come_and_go_leave_nothing() {
    let arena = Arena::new(NOTHING_ELSE, 1, Arc::default()).unwrap();
    for id in 0..10_000 {
        let mut rig = Rig::in_arena(&arena, id, Clamp::Encode);
        play(&mut rig, &find(1));
    }
    assert_eq!(arena.used(), 0);
    assert!(arena.ages() <= 200, "{}", arena.ages());
}

#[test]
fn nothing_is_taken_before_the_first_byte_or_without_memory() {
    let mut rig = Rig::new();
    rig.sends(Request, b"");
    assert!(rig.recorder.tape().is_none());
    assert_eq!(rig.arena.used(), 0);
    let none = Settings {
        memory: 0,
        ..NOTHING_ELSE
    };
    assert!(Arena::new(none, 1, Arc::default()).is_none());
}
