//! Answers that no broker should give: an error or a sensible value, never a panic.

use super::answer::{VERSIONS, answer, frame};
use super::{FEATURES, newer_broker};
use klamp_codec::clamp::{Malformed, clamp};
use klamp_codec::session::Clamp;
use klamp_codec::versions::VersionTable;

const POLICIES: [Clamp; 2] = [Clamp::Encode, Clamp::Off];

#[test]
fn a_frame_cut_short_anywhere_is_malformed() {
    for version in VERSIONS {
        let whole = answer(version, &newer_broker(), &FEATURES);
        for end in 0..whole.len() {
            for policy in POLICIES {
                let told = format!("version {version} cut at {end}");
                let cut = &whole[..end];
                assert_eq!(
                    clamp(cut, version, policy),
                    Err(Malformed::Length),
                    "{told}"
                );
                // The same with a length that fits.
                if end >= 8 {
                    let cut = frame(&whole[8..end]);
                    assert!(clamp(&cut, version, policy).is_err(), "{told}");
                }
            }
        }
    }
}

#[test]
fn a_length_that_is_not_the_frames_is_malformed() {
    let mut frame = answer(3, &[(1, 4, 18)], &[]);
    for length in [0, 3, -1, i32::MIN, i32::MAX, frame.len() as i32] {
        frame[..4].copy_from_slice(&length.to_be_bytes());
        assert_eq!(clamp(&frame, 3, Clamp::Encode), Err(Malformed::Length));
    }
    assert_eq!(clamp(b"", 3, Clamp::Encode), Err(Malformed::Length));
    assert_eq!(clamp(b"\0\0\0\0", 3, Clamp::Encode), Err(Malformed::Length));
}

#[test]
fn an_answer_of_a_version_that_nobody_reads_is_malformed() {
    let answer = answer(4, &[(1, 4, 18)], &[]);
    for version in [6, 127, i16::MAX, -1, i16::MIN] {
        assert_eq!(
            clamp(&answer, version, Clamp::Off),
            Err(Malformed::Version { version })
        );
    }
}

#[test]
fn a_count_that_cannot_be_is_malformed() {
    for count in [i32::MAX, 1 << 20, 2] {
        let mut body = vec![0, 0];
        body.extend(count.to_be_bytes());
        body.extend([0, 1, 0, 0, 0, 1]);
        assert!(matches!(
            clamp(&frame(&body), 0, Clamp::Encode),
            Err(Malformed::Layout(_))
        ));
    }
    for count in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff; 6], &[0x80; 6]] {
        let mut body = vec![0, 0];
        body.extend(count);
        body.extend([0; 16]);
        assert!(matches!(
            clamp(&frame(&body), 3, Clamp::Encode),
            Err(Malformed::Layout(_))
        ));
    }
}

#[test]
fn as_many_rows_as_there_are_keys_are_read_and_not_one_more() {
    let mut rows: Vec<_> = (i16::MIN..=i16::MAX).map(|key| (key, 0, 0)).collect();
    for version in [0, 3] {
        let clamped = clamp(&answer(version, &rows, &[]), version, Clamp::Encode).unwrap();
        let table = clamped.table.unwrap();
        assert_eq!(table.entries().len(), 1 << 16);
        let shown = table.entries().iter().filter_map(|row| row.shown()).count();
        let again = clamp(&clamped.frame.unwrap(), version, Clamp::Encode).unwrap();
        assert_eq!(again.table.unwrap().entries().len(), shown);
    }
    rows.push((0, 0, 0));
    for policy in POLICIES {
        assert_eq!(
            clamp(&answer(0, &rows, &[]), 0, policy),
            Err(Malformed::Rows)
        );
        assert_eq!(
            clamp(&answer(3, &rows, &[]), 3, policy),
            Err(Malformed::Rows)
        );
    }
}

/// What the client is shown.
fn shown(table: &VersionTable) -> Vec<(i16, i16, i16)> {
    let entries = table.entries().iter();
    entries
        .filter_map(|row| row.shown().map(|it| (row.api_key.0, it.min, it.max)))
        .collect()
}

#[test]
fn a_damaged_answer_is_an_error_or_is_clamped_for_good() {
    let mut random = fastrand::Rng::with_seed(18);
    let mut read = 0;
    for round in 0..12_000 {
        let version = random.i16(VERSIONS);
        let rows = newer_broker();
        let rows = &rows[random.usize(..rows.len())..];
        let mut frame = answer(version, rows, &FEATURES);
        for _ in 0..random.usize(1..4) {
            let at = random.usize(8..frame.len());
            let odd = [0, 1, 0x7f, 0x80, 0xff, random.u8(..)];
            frame[at] = odd[random.usize(..odd.len())];
        }
        let clamped = clamp(&frame, version, Clamp::Encode);
        let Ok(clamped) = clamped else { continue };
        let (Some(table), Some(frame)) = (clamped.table, clamped.frame) else {
            continue;
        };
        read += 1;
        let again = clamp(&frame, version, Clamp::Encode).unwrap();
        assert_eq!(again.frame, None, "round {round}");
        // Of keys that the damage made twins, an earlier row may show once the last is hidden.
        let shows = shown(&again.table.unwrap());
        for row in shown(&table) {
            assert!(shows.contains(&row), "round {round}: {row:?} is gone");
        }
    }
    assert!(read > 3_000, "{read} damaged answers could still be read");
}
