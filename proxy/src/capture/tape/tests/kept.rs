//! What is kept of frames, and what is not.

use super::*;
use crate::relay::tests::Random;
use klamp_codec::ApiKey;
use klamp_codec::kept::{Change, Reading};

#[test]
fn a_tape_tells_each_frame_as_it_was_received_with_what_became_of_it() {
    let mut rig = Rig::new();
    let script = everything();
    play(&mut rig, &script);
    let snapshot = rig.tape().snapshot();
    assert_eq!(snapshot.lost_frames, 0);
    let frames = snapshot.frames;
    assert_eq!(frames.len(), script.len());
    let mut at = [0, 0];
    for (frame, (direction, bytes)) in frames.iter().zip(&script) {
        assert_eq!(frame.direction, *direction);
        let at = &mut at[*direction as usize];
        assert_eq!((frame.at, frame.bytes), (*at, bytes.len() as u64));
        *at += frame.bytes;
        let kept = bytes_of(frame);
        for (kept, sent) in kept.iter().zip(bytes) {
            assert!(kept == sent || *kept == b'.', "{frame:?}");
        }
        if frame.reading == Reading::Whole {
            assert_eq!(kept.len(), bytes.len());
        }
        let has_secret = bytes.windows(6).any(|bytes| bytes == b"secret");
        assert_eq!(kept == *bytes, !has_secret, "{frame:?}");
        assert!(!kept.windows(6).any(|bytes| bytes == b"secret"));
    }
}

#[test]
fn of_records_the_heads_of_batches_are_kept_and_their_content_where_that_is_asked_for() {
    let batches = [batch(b"secret"), batch(b""), batch(b"secret secret")].concat();
    let script = produce(1, &batches);
    let mut rig = Rig::new();
    play(&mut rig, &script);
    let frame = &rig.frames()[0];
    let start = script[0].1.len() - batches.len();
    let expected = [
        Part::Bytes(script[0].1[..start + 61].to_vec()),
        Part::Hole(6),
        Part::Bytes([batch(b""), batch(b"secret secret")[..61].to_vec()].concat()),
        Part::Hole(13),
    ];
    assert_eq!(frame.parts, expected);

    let settings = Settings {
        records: true,
        ..NOTHING_ELSE
    };
    let mut rig = Rig::with(settings, Clamp::Encode);
    play(&mut rig, &script);
    assert_eq!(rig.frames()[0].parts, [Part::Bytes(script[0].1.clone())]);
}

#[test]
fn what_follows_a_batch_of_few_bytes_is_kept() {
    let other = b"\0\0\0\x01\xff\xff\xff\xff";
    let asked = produced(1, &[&partition(0, &batch(b"")), other]);
    let mut rig = Rig::new();
    rig.sends(Request, &asked);
    assert_eq!(rig.frames()[0].parts, [Part::Bytes(asked)]);
}

#[test]
fn what_follows_a_batch_that_tells_of_more_than_there_is_is_kept() {
    let mut lying = batch(b"secret");
    lying[8..12].copy_from_slice(&1_000_u32.to_be_bytes());
    let batches = [batch(b"x"), lying.clone()].concat();
    let other = b"\0\0\0\x01\xff\xff\xff\xff";
    let asked = produced(1, &[&partition(0, &batches), other]);
    let mut rig = Rig::new();
    rig.sends(Request, &asked);
    let first = asked.len() - other.len() - lying.len() - 1;
    let expected = [
        Part::Bytes(asked[..first].to_vec()),
        Part::Hole(1),
        Part::Bytes(lying[..61].to_vec()),
        Part::Hole(6),
        Part::Bytes(other.to_vec()),
    ];
    assert_eq!(rig.frames()[0].parts, expected);
}

#[test]
fn what_turns_out_malformed_behind_records_is_wiped_out_though_all_of_it_came_at_once() {
    let whole = batch(b"secret");
    let length = (whole.len() as u32).to_be_bytes();
    let head = b"\xff\xff\0\x01\0\0\0\x09\0\0\0\x01\0\x06hidden\0\0\0\x02\0\0\0\0";
    let asked = request(
        0,
        3,
        1,
        &[head, &length[..], &whole, b"\0\0\0\x01\x7f"].concat(),
    );
    let mut rig = Rig::new();
    rig.sends(Request, &asked);
    let frame = &rig.frames()[0];
    assert_eq!(frame.reading, Reading::Opaque(OpaqueReason::Malformed));
    let reel = rig.tape().reel.borrow();
    let has_word = |bytes: &[u8]| bytes.windows(6).any(|bytes| bytes == b"hidden");
    assert!(!reel.chunks().any(|chunk| has_word(&chunk.bytes)));
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
            let (whole, cut) = (bytes_of(whole), bytes_of(cut));
            let before_records = whole.iter().position(|byte| *byte == b'.').unwrap() - 61;
            assert_eq!(cut.len(), whole.len(), "cut to {size}");
            assert_eq!(cut[..before_records], whole[..before_records]);
            for (whole, cut) in whole.iter().zip(cut) {
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

/// A FindCoordinator of a group whose name is so long that not all of it is kept.
fn find_of_many_letters(id: u8) -> [(Direction, Vec<u8>); 2] {
    let group = [&[0x4e, 0x20][..], &[b'g'; 20_000]].concat();
    let [_, answer] = find(id);
    [(Request, request(10, 0, id, &group)), answer]
}

#[test]
fn of_frames_that_come_together_the_same_is_kept_as_of_each_alone() {
    let secret = batch(b"secret");
    let script: [&[_]; 12] = [
        &find_of_many_letters(1),
        &malformed(2),
        &produce(3, &[&secret[..], &secret].concat()),
        &find_of_many_letters(4),
        &find_of_many_letters(5),
        &unheard_of(6),
        &malformed(7),
        &find(8),
        &trailing(9),
        &produce(10, &secret),
        &unheard_of(11),
        &find(12),
    ];
    let script = script.concat();
    let mut alone = Rig::new();
    play(&mut alone, &script);
    let mut together = Rig::new();
    for direction in [Request, Response] {
        let frames = script.iter().filter(|(of, _)| *of == direction);
        let bytes: Vec<_> = frames.map(|(_, bytes)| bytes.clone()).collect();
        together.sends(direction, &bytes.concat());
    }
    let sorted = |rig: &Rig| {
        let mut frames = without_times(rig);
        frames.sort_by_key(|frame| (frame.direction as u8, frame.at));
        frames
    };
    let (alone, together) = (sorted(&alone), sorted(&together));
    assert_eq!(alone.len(), script.len());
    for (alone, together) in alone.iter().zip(&together) {
        assert!(alone == together, "{:?}", alone.exchange);
    }
}

#[test]
fn of_very_many_records_the_heads_of_the_first_are_kept_and_none_of_their_content() {
    let partitions = 500_u32;
    let secret = batch(&b"secret".repeat(20));
    let length = (secret.len() as u32).to_be_bytes();
    let all: Vec<_> = (0..partitions)
        .flat_map(|n| [&n.to_be_bytes()[..], &length, &secret].concat())
        .collect();
    let head = b"\xff\xff\0\x01\0\0\0\x09\0\0\0\x01\0\x01t";
    let body = [&head[..], &partitions.to_be_bytes(), &all].concat();
    let asked = [request(0, 3, 1, &body), find(2)[0].1.clone()].concat();
    let mut rig = Rig::new();
    rig.sends(Request, &asked);
    let frames = rig.frames();
    assert_eq!(frames[0].reading, Reading::Whole);
    let kept = bytes_of(&frames[0]);
    let heads = (kept.windows(61)).filter(|bytes| *bytes == &secret[..61]);
    let heads = heads.count();
    assert!((20..100).contains(&heads), "{heads}");
    assert!(!kept.windows(6).any(|bytes| bytes == b"secret"));
    assert_eq!(kept.len(), asked.len() - find(2)[0].1.len());
    assert_eq!(bytes_of(&frames[1]), find(2)[0].1);
}

#[test]
fn of_answers_to_one_kind_of_request_each_is_told_with_its_own_and_its_latency() {
    let mut rig = Rig::new();
    let (finds, produces) = (find(1), produce(2, &batch(b"")));
    for (direction, bytes) in [&finds[0], &find(3)[0], &produces[0], &find(4)[0]] {
        rig.sends(*direction, bytes);
        rig.now += Duration::from_millis(100);
    }
    let answers = [&finds[1].1, &find(3)[1].1, &produces[1].1, &find(4)[1].1];
    rig.sends(Response, &answers.map(Clone::clone).concat());
    let told: Vec<_> = (rig.frames().iter())
        .filter(|frame| frame.direction == Response)
        .map(|frame| {
            let exchange = frame.exchange.unwrap();
            let latency = frame.latency.unwrap().as_millis();
            (exchange.api_key, exchange.correlation_id.0, latency)
        })
        .collect();
    let (find, produce) = (ApiKey(10), ApiKey::PRODUCE);
    let expected = [
        (find, 1, 400),
        (find, 3, 300),
        (produce, 2, 200),
        (find, 4, 100),
    ];
    assert_eq!(told, expected);
}

#[test]
fn of_an_answer_that_is_not_kept_to_its_end_all_error_codes_are_told() {
    let mut rig = Rig::new();
    let partitions = 2_000_u32;
    let rows = (0..partitions).flat_map(|n| {
        let code = if n == 1_900 { 250_u16 } else { 6 };
        [&n.to_be_bytes()[..], &code.to_be_bytes(), &[0; 16]].concat()
    });
    let head = [&b"\0\0\0\x01\0\x01t"[..], &partitions.to_be_bytes()].concat();
    let body = [&head[..], &rows.collect::<Vec<_>>(), &[0; 4]].concat();
    rig.sends(Request, &produce(1, &batch(b""))[0].1);
    for piece in response(1, &body).chunks(7_000) {
        rig.sends(Response, piece);
    }
    let frame = &rig.frames()[1];
    assert_eq!(frame.reading, Reading::Whole);
    assert!(matches!(frame.parts.last(), Some(Part::Hole(_))));
    assert_eq!(frame.errors, [(ErrorCode(6), 1_999), (ErrorCode(250), 1)]);
}

#[test]
fn behind_one_large_batch_many_small_ones_of_a_message_are_kept() {
    let batches = [&[b'x'; 40_000][..], b"x", b"y", b"z"].map(batch);
    let all: Vec<_> = (0..)
        .zip(&batches)
        .map(|(n, it)| partition(n, it))
        .collect();
    let all: Vec<_> = all.iter().map(Vec::as_slice).collect();
    let mut rig = Rig::new();
    rig.sends(Request, &produced(1, &all));
    let frame = &rig.frames()[0];
    let holes = frame.parts.iter().filter_map(|part| match part {
        Part::Hole(bytes) => Some(*bytes),
        Part::Bytes(_) => None,
    });
    assert_eq!(holes.collect::<Vec<_>>(), [40_000, 1, 1, 1]);
}

/// Frames of all kinds stand next to each other in any order, and are cut wherever: what is to be left out
/// is nowhere in memory, and but for what turns out late to be malformed not even for a moment.
#[test]
fn no_secret_stands_in_the_memory_of_a_tape_however_frames_come_and_are_cut() {
    let secret = batch(&b"secret".repeat(5));
    let large = batch(&b"secret".repeat(3_000));
    let kinds = |kind: usize, id: u8| match kind {
        0 => find_of_many_letters(id),
        1 => malformed(id),
        2 => produce(id, &[&secret[..], &secret, b"secret of no batch"].concat()),
        3 => produce(id, &large),
        4 => unheard_of(id),
        5 => trailing(id),
        6 => produce(id, &secret),
        // (that is known of it only when its word has passed)
        7 => malformed_late(id, b"hidden"),
        _ => find(id),
    };
    for seed in 1..40 {
        let mut random = Random(seed);
        let mut rig = Rig::new();
        rig.splices = random.up_to(1) == 0;
        let mut exchanges: Vec<_> = (0..20).map(|id| kinds(random.up_to(9), id)).collect();
        if random.up_to(1) == 0 {
            let [asked, answered, token, reply] = plain(30);
            exchanges.splice(..0, [[asked, answered], [token, reply]]);
        }
        let mut alone = Rig::new();
        exchanges.iter().for_each(|both| play(&mut alone, both));
        let alone = alone.frames();
        let [requests, responses] = [0, 1].map(|side| {
            let bytes = exchanges.iter().map(|both| both[side].1.clone());
            bytes.collect::<Vec<_>>().concat()
        });
        let mut left = [&requests[..], &responses];
        // (the broker does not answer before it was asked)
        let most = [300, 3_000, 30_000][random.up_to(2)];
        while let Some(side) = left.iter().position(|bytes| !bytes.is_empty()) {
            let piece = left[side].len().min(1 + random.up_to(most));
            let (piece, rest) = left[side].split_at(piece);
            left[side] = rest;
            rig.sends([Request, Response][side], piece);
            let reel = rig.tape().reel.borrow();
            // (what came before was looked at when it came)
            let chunks: Vec<_> = reel.chunks().map(|chunk| &chunk.bytes).collect();
            let latest = &chunks[chunks.len().saturating_sub(5)..];
            let has_secret = |bytes: &[u8]| bytes.windows(6).any(|bytes| bytes == b"secret");
            assert!(!latest.iter().any(|bytes| has_secret(bytes)), "seed {seed}");
        }
        let frames = rig.frames();
        for frame in &frames {
            let is_word = |bytes: &[u8]| bytes == b"secret" || bytes == b"hidden";
            assert!(!bytes_of(frame).windows(6).any(is_word), "seed {seed}");
        }
        for chunk in rig.tape().reel.borrow().chunks() {
            let has_word = chunk.bytes.windows(6).any(|bytes| bytes == b"hidden");
            assert!(!has_word, "seed {seed}");
        }
        for frame in &frames {
            let is_it = |it: &&Kept| (it.direction, it.at) == (frame.direction, frame.at);
            let Some(alone) = alone.iter().find(is_it) else {
                continue; // given up
            };
            let told = |it: &Kept| (it.exchange, it.bytes, it.reading, it.change);
            assert_eq!(told(frame), told(alone), "seed {seed}");
            let (cut, whole) = (bytes_of(frame), bytes_of(alone));
            assert_eq!(cut.len(), whole.len(), "seed {seed}");
            for (cut, whole) in cut.iter().zip(&whole) {
                assert!(
                    cut == whole || *cut == b'.' || *whole == b'.',
                    "seed {seed}"
                );
            }
        }
        let last = frames.last().unwrap();
        assert_eq!(last.at + last.bytes, responses.len() as u64, "seed {seed}");
        assert!(frames.len() > 10, "seed {seed}: {}", frames.len());
    }
}
