//! Captures that lose, repeat, reorder and cut.

use super::*;
use crate::commands::decode::budget::Budget;
use crate::commands::decode::segment::Segment;
use crate::commands::decode::stream::{Piece, Stream};

/// A conversation of small exchanges, two packets each behind the handshake's three.
fn small(count: i32) -> Vec<(Duration, Vec<u8>)> {
    let mut frames = Vec::new();
    for id in 1..=count {
        let at = id as u64 * 1000;
        frames.push(request(3, 1, id, at, METADATA));
        frames.push(response(3, 1, id, at + 500, &metadata(0)));
    }
    packets(&own(frames))
}

fn ids(lines: &[String]) -> Vec<i32> {
    let ids = lines.iter().filter_map(|line| {
        let (_, rest) = line.split_once("correlation id ")?;
        let is_whole = line.ends_with("no error");
        let (id, _) = rest.split_once(',')?;
        is_whole.then(|| id.parse().unwrap())
    });
    ids.collect()
}

#[test]
fn segments_out_of_order_and_repeated_change_nothing() {
    let given = small(4);
    let expected = exchange_lines(&tcpdump(1, &given));
    assert_eq!(ids(&expected), [1, 2, 3, 4]);
    // Packets 3 and 5 are requests, 4 and 6 responses.
    let mut twice: Vec<_> = given
        .iter()
        .flat_map(|packet| [packet; 2])
        .cloned()
        .collect();
    assert_eq!(exchange_lines(&tcpdump(1, &twice)), expected);
    twice.truncate(3);
    let mut swapped = given.clone();
    swapped.swap(4, 6);
    assert_eq!(ids(&exchange_lines(&tcpdump(1, &swapped))), [1, 2, 3, 4]);
}

#[test]
fn a_stream_is_the_same_however_it_was_cut_and_sent() {
    let bytes: Vec<u8> = (0..=255).collect();
    let address = CLIENT.parse().unwrap();
    // Numbers that wrap amid them.
    let first = u32::MAX - 100;
    for step in [1, 7, 60] {
        for back in [0, 3, 50] {
            let mut segments: Vec<(usize, usize)> = (0..bytes.len())
                .step_by(step)
                .map(|at| (at.saturating_sub(back), (at + step).min(bytes.len())))
                .collect();
            for turn in 0..3 {
                let mut stream = Stream::new(Budget::default().held());
                stream.begin(first);
                let mut whole = Vec::new();
                for (from, to) in &segments {
                    let segment = Segment {
                        from: address,
                        to: address,
                        sequence: first.wrapping_add(*from as u32),
                        syn: false,
                        ack: true,
                        fin: false,
                        rst: false,
                        bytes: &bytes[*from..*to],
                        missing: 0,
                    };
                    stream.take(&segment, &Stamp::default(), &mut |piece| match piece {
                        Piece::Bytes(bytes, _) => whole.extend_from_slice(bytes),
                        Piece::Missing(n) => panic!("{n} bytes are said to be missing"),
                    });
                }
                assert_eq!(whole, bytes, "{step} {back} {turn}");
                match turn {
                    0 => segments.reverse(),
                    _ => segments.sort_by_key(|(from, _)| from % 13),
                }
            }
        }
    }
}

#[test]
fn a_lost_segment_is_said_to_be_lost_and_frames_are_found_again() {
    let mut given = small(6);
    // The second response, and all of the third exchange's request.
    given.remove(7);
    given.remove(6);
    let (out, read) = decoded(&tcpdump(1, &given), Style::Line);
    assert_eq!(read, Ok(()), "{out}");
    let lines: Vec<_> = out.lines().map(str::to_owned).collect();
    assert_eq!(ids(&lines), [1, 4, 5, 6], "{out}");
    assert!(
        out.contains(" requests: 26 bytes are not in the capture\n"),
        "{out}"
    );
    assert!(
        out.contains(" responses: 48 bytes are not in the capture\n"),
        "{out}"
    );
    assert!(
        out.contains(" correlation id 2, client id \"app\", 26 bytes, topic \"top\": no answer")
    );
}

#[test]
fn a_capture_that_begins_amid_a_frame_finds_the_next() {
    let mut given = small(5);
    given.drain(..3);
    // The end of a frame that began before, in front of the first request and its answer.
    for packet in &mut given[..2] {
        let number = u32::from_be_bytes(*packet.1[38..].first_chunk().unwrap()).wrapping_sub(9);
        packet.1[38..42].copy_from_slice(&number.to_be_bytes());
        packet.1.splice(54..54, *b"\0\0\0\0\0\0\x01\0\0");
        let length = packet.1.len() as u16 - 14;
        packet.1[16..18].copy_from_slice(&length.to_be_bytes());
    }
    let (out, read) = decoded(&tcpdump(1, &given), Style::Line);
    assert_eq!(read, Ok(()), "{out}");
    let lines: Vec<_> = out.lines().map(str::to_owned).collect();
    assert_eq!(ids(&lines), [1, 2, 3, 4, 5], "{out}");
    for direction in ["requests", "responses"] {
        let skipped = format!("{direction}: 9 bytes were skipped, in which no frame was found");
        assert!(out.contains(&skipped), "{out}");
    }
}

#[test]
fn of_many_connections_those_that_are_over_give_way_before_one_that_waits_for_an_answer() {
    let mut given = small(1);
    let expected = exchange_lines(&tcpdump(1, &given));
    let answer = given.pop().unwrap();
    for n in 0..5000 {
        let client = format!("10.1.{}.{}:50000", n / 250, n % 250);
        let syn = packets(&file(&capture(&client, BROKER, Vec::new()))).swap_remove(0);
        let mut reset = syn.clone();
        // (the flags, behind the headers of Ethernet and IP)
        reset.1[14 + 20 + 13] = 0x04;
        given.extend([syn, reset]);
    }
    given.push(answer);
    assert_eq!(exchange_lines(&tcpdump(1, &given)), expected);
}

#[test]
fn packets_that_were_cut_are_read_as_far_as_they_go() {
    let mut given = small(3);
    // `tcpdump -s 70`: 16 bytes of what was sent, a request's header or most of it.
    for packet in &mut given {
        packet.1.truncate(70);
    }
    let (out, read) = decoded(&tcpdump(1, &given), Style::Line);
    assert_eq!(read, Err("6 broken".to_owned()), "{out}");
    let metadata = out
        .lines()
        .filter(|line| line.contains(" Metadata v1, correlation id "));
    assert_eq!(metadata.count(), 3, "{out}");
    assert!(out.contains("bytes were not kept here"), "{out}");
}

#[test]
fn of_a_cut_file_all_that_is_there_is_printed_and_where_it_broke() {
    for file in [own(exchanges()), tcpdump(1, &small(2))] {
        let lines = decoded(&file, Style::Line).0.lines().count();
        let mut clean = 0;
        for cut in (4..file.len()).step_by(if file.len() > 5_000 { 997 } else { 1 }) {
            let (out, read) = decoded(&file[..cut], Style::Line);
            assert!(out.lines().count() <= lines + 2, "{cut} {out}");
            match read {
                Ok(()) => clean += 1,
                Err(why) => assert!(
                    why.contains("byte") || why.contains("broken"),
                    "{cut} {why}"
                ),
            }
        }
        // Only where a packet ends.
        assert!(clean < 10, "{clean}");
    }
}

#[test]
fn no_damage_to_a_file_does_more_than_spoil_what_is_printed() {
    let files = [own(by_id()), tcpdump(1, &small(2))];
    let mut state = 1_u64;
    let mut chance = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for turn in 0..500 {
        let mut file = files[turn % 2].clone();
        for _ in 0..=chance(4) {
            let at = 4 + chance(file.len() - 4);
            file[at] = match chance(3) {
                0 => 0xff,
                1 => 0,
                _ => chance(256) as u8,
            };
        }
        for style in [Style::Line, Style::Text, Style::Json] {
            let _ = decoded(&file, style);
        }
    }
}

#[test]
fn a_length_that_promises_more_than_there_is_costs_nothing() {
    let mut file = own(small_frames());
    // The total length of the interface's block.
    let at = file.windows(4).rposition(|it| it == [6, 0, 0, 0]).unwrap();
    file[at + 4..at + 8].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    let (_, read) = decoded(&file, Style::Line);
    assert!(read.unwrap_err().contains("larger than any packet is"));
}

fn small_frames() -> Vec<Kept> {
    vec![
        request(3, 1, 1, 0, METADATA),
        response(3, 1, 1, 1, &metadata(0)),
    ]
}
