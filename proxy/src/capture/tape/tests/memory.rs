//! How much is kept, and what becomes of the rest.

use super::super::reel::{CHUNK, CHUNKS};
use super::*;
use klamp_codec::kept::Reading;

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
    let connection = |_| Rig::in_arena(&arena, Clamp::Encode);
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
    drop(rigs);
    assert_eq!((arena.used(), usage.bytes()), (0, 0));
}

#[test]
fn the_oldest_chunk_is_given_up_first_whoever_came_first() {
    let settings = Settings {
        memory: 512 << 10,
        ..NOTHING_ELSE
    };
    let usage = Arc::new(Usage::default());
    let arena = Arena::new(settings, 1, usage.clone()).unwrap();
    let [mut first, mut second, mut third] = [(); 3].map(|()| Rig::in_arena(&arena, Clamp::Encode));
    play(&mut first, &find(1));
    play(&mut second, &find(2));
    // What the first said then is gone in favour of what it says now.
    (0..5_000_u32).for_each(|n| play(&mut first, &find(n as u8)));
    let (others, before) = (first.frames().len(), arena.used());
    assert!(before > CHUNK * (CHUNKS - 1));
    let mut talkers: Vec<_> = (0..40)
        .map(|_| Rig::in_arena(&arena, Clamp::Encode))
        .collect();
    for n in 0.. {
        let number = talkers.len();
        play(&mut talkers[n % number], &find(3));
        assert!(arena.used() <= 512 << 10);
        if usage.given_up() == 0 {
            continue;
        }
        match (first.frames().len(), second.frames().len()) {
            (kept, _) if kept == others => {}
            (kept, 0) => {
                assert!(kept > others / 2, "{kept} of {others}");
                break;
            }
            _ => panic!("it goes after that of the second"),
        }
    }
    // Nothing is known of what has been given up, and all of what comes.
    for rig in [&mut first, &mut second, &mut third] {
        play(rig, &find(9));
        assert_eq!(bytes_of(rig.frames().last().unwrap()), find(9)[1].1);
    }
}

#[test]
fn connections_that_come_and_go_leave_nothing() {
    let arena = Arena::new(NOTHING_ELSE, 1, Arc::default()).unwrap();
    for _ in 0..10_000 {
        let mut rig = Rig::in_arena(&arena, Clamp::Encode);
        play(&mut rig, &find(1));
    }
    assert_eq!(arena.used(), 0);
    assert!(arena.ages() <= 10, "{}", arena.ages());
}

#[test]
fn connections_that_have_said_hardly_more_than_that_they_are_there_take_little() {
    let arena = Arena::new(NOTHING_ELSE, 1, Arc::default()).unwrap();
    let mut rigs = Vec::new();
    for n in 0..100 {
        let mut rig = Rig::in_arena(&arena, Clamp::Encode);
        let script = long_versions(n, 1);
        play(&mut rig, &script);
        let kept: Vec<_> = rig.frames().iter().map(bytes_of).collect();
        assert_eq!(kept, script.map(|(_, bytes)| bytes));
        rigs.push(rig);
    }
    let each = arena.used() / rigs.len();
    assert!(each <= 512, "{each}");
    for rig in &mut rigs {
        play(rig, &find(1));
        assert_eq!(bytes_of(&rig.frames()[3]), find(1)[1].1);
    }
    let each = arena.used() / rigs.len();
    assert!(each <= 768, "{each}");
}

/// ApiVersions v0 of a client with a name of so many letters, and an answer of 60 keys.
fn long_versions(id: u8, letters: usize) -> [(Direction, Vec<u8>); 2] {
    let name = [&(letters as u16).to_be_bytes()[..], &vec![b'c'; letters]].concat();
    let asked = framed(&[&[0, 18, 0, 0, 0, 0, 0, id], &name]);
    let rows: Vec<_> = (0..60_u8).flat_map(|key| [0, key, 0, 0, 0, 2]).collect();
    let told = response(id, &[&[0, 0, 0, 0, 0, 60][..], &rows].concat());
    [(Request, asked), (Response, told)]
}

#[test]
fn an_answer_that_many_get_alike_is_kept_wherever_in_a_chunk_it_comes() {
    for letters in 0..460 {
        let mut rig = Rig::with(NOTHING_ELSE, Clamp::Off);
        let script = [long_versions(1, letters), long_versions(2, 0)].concat();
        play(&mut rig, &script);
        // In one read with others, one of which has bytes behind it.
        let [asked, told] = long_versions(3, 0);
        let [trailing_asked, (_, trailing)] = trailing(4);
        let [find_asked, (_, found)] = find(5);
        play(&mut rig, &[asked, trailing_asked, find_asked]);
        rig.sends(Response, &[&told.1[..], &trailing, &found].concat());
        let frames = rig.frames();
        let sent = script.iter().map(|(_, bytes)| bytes);
        for (frame, sent) in frames.iter().zip(sent) {
            assert_eq!(bytes_of(frame), *sent, "{letters} letters");
        }
        assert_eq!(bytes_of(&frames[7]), told.1, "{letters} letters");
        assert_eq!(bytes_of(&frames[9]), found, "{letters} letters");
    }
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
