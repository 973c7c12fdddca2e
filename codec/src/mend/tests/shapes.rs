//! Records, what was not understood, and frames that have more or less than their message.

use super::{Frame, SECRET, check, has_secret, head, text};
use crate::kept::{Kept, Part, Reading};
use crate::mend::mend;
use crate::observation::OpaqueReason;
use crate::render::Message;
use crate::types::{ApiKey, Direction};

/// A Produce v7 request with these records.
fn produce(records: &[u8]) -> Frame {
    let mut body = b"\xff\xff\xff\xff\0\0\0\0\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0".to_vec();
    body.extend((records.len() as i32).to_be_bytes());
    body.extend(records);
    Frame::new(Direction::Request, ApiKey::PRODUCE, 7, &body)
}

#[test]
fn of_records_the_heads_of_batches_stay_and_say_what_is_left() {
    let one = [head(3, 2, SECRET.len()), SECRET.to_vec()].concat();
    let other = [head(5, 1, 2 * SECRET.len()), SECRET.repeat(2)].concat();
    let frame = produce(&[one.as_slice(), &other].concat());
    let at = frame.bytes.len() - one.len() - other.len();
    let n = SECRET.len();
    let holes = [(at + 61, n), (at + one.len() + 61, 2 * n)];
    let mended = mend(&frame.kept(&holes, Reading::Whole), false);
    check(&frame, &mended);
    let left = [head(3, 2, 0), head(5, 1, 0)].concat();
    assert!(mended.bytes.ends_with(&left));
    assert_eq!(
        mended.withheld.to_string(),
        format!("Records@{}+{n},Records@{}+{}", at + 61, at + 122, 2 * n)
    );
    let batches = mended.batches.iter();
    let batches = batches.map(|it| (it.base_offset, it.bytes, it.kind.unwrap().records));
    assert_eq!(
        batches.collect::<Vec<_>>(),
        [(3, 61 + n as u64, 2), (5, 61 + 2 * n as u64, 1)]
    );

    // The heads too may have been held back, or the records kept.
    for holes in [
        vec![],
        vec![(at, 30)],
        vec![(at, one.len() + other.len())],
        vec![(at + 70, 3)],
    ] {
        check(&frame, &mend(&frame.kept(&holes, Reading::Whole), false));
    }
    let mended = mend(&frame.kept(&[], Reading::Whole), true);
    assert_eq!(mended.bytes, frame.bytes);
    // Some of them are no records.
    check(
        &frame,
        &mend(&frame.kept(&[(at + 70, 3)], Reading::Whole), true),
    );
}

#[test]
fn where_whole_batches_are_missing_the_one_before_keeps_its_size() {
    let n = SECRET.len();
    let one = [head(3, 2, n), SECRET.to_vec()].concat();
    let empty = head(5, 0, 0);
    for (first, own) in [(&one, n), (&empty, 0)] {
        let frame = produce(&[first.as_slice(), &one, &one].concat());
        let at = frame.bytes.len() - first.len() - 2 * one.len() + 61;
        let rest = frame.bytes.len() - at;
        let mended = mend(&frame.kept(&[(at, rest)], Reading::Whole), false);
        check(&frame, &mended);
        let of_batch = match own {
            0 => String::new(),
            own => format!("Records@{at}+{own},"),
        };
        let withheld = format!("{of_batch}batches@{at}+{}", rest - own);
        assert_eq!(mended.withheld.to_string(), withheld);

        let text = text(Message::Request, &mended);
        for part in [
            format!("{} bytes\n", frame.bytes.len()),
            format!("{} bytes, codec", 61 + own),
            format!("more batches, {} bytes in all", rest - own),
        ] {
            assert!(text.contains(&part), "{part}: {text}");
        }
    }
}

#[test]
fn the_last_batch_may_be_cut_and_what_is_no_batch_goes() {
    let whole = [head(3, 2, SECRET.len()), SECRET.to_vec()].concat();
    for cut in [10, 60, 61, 70] {
        let records = [whole.as_slice(), &whole[..cut]].concat();
        let frame = produce(&records);
        let mended = mend(&frame.kept(&[], Reading::Whole), false);
        check(&frame, &mended);
        assert_eq!(mended.batches.len(), 1 + usize::from(cut >= 61), "{cut}");
    }
    for records in [
        SECRET.repeat(5),
        [b"\0".repeat(16), b"\x01".to_vec(), SECRET.repeat(3)].concat(),
    ] {
        let frame = produce(&records);
        let mended = mend(&frame.kept(&[], Reading::Whole), false);
        check(&frame, &mended);
        assert_eq!(mended.withheld.bytes(), records.len() as u64);
    }
}

#[test]
fn of_what_was_not_understood_the_header_is_left() {
    let frame = produce(&SECRET.repeat(3));
    let header = frame.start;
    let malformed = Reading::Opaque(OpaqueReason::Malformed);
    let rest = frame.bytes.len() - header;
    for reading in [malformed, Reading::Unfinished] {
        for kept in [header, header + 5] {
            let mut frame = frame.kept(&[(kept, frame.bytes.len() - kept)], reading);
            for _ in 0..2 {
                let mended = mend(&frame, false);
                assert_eq!(mended.bytes.len(), header, "{reading:?}");
                assert_eq!(mended.bytes[..4], (header as u32 - 4).to_be_bytes());
                assert_eq!(mended.withheld.to_string(), format!("rest@{header}+{rest}"));
                // Its rest was not kept at all.
                frame.parts.truncate(1);
            }
        }
    }
    // All of it was asked for.
    let mended = mend(&frame.kept(&[], malformed), false);
    assert_eq!(mended.bytes, frame.bytes);

    let token = Kept {
        exchange: None,
        parts: vec![Part::Bytes(b"\0\0\0\x10".to_vec()), Part::Hole(16)],
        bytes: 20,
        ..frame.kept(&[], Reading::Token)
    };
    let mended = mend(&token, false);
    assert_eq!(
        (
            mended.bytes.as_slice(),
            mended.withheld.to_string().as_str()
        ),
        (b"\0\0\0\0".as_slice(), "rest@4+16")
    );
    let told = "SASL token (16 bytes, not kept)\n";
    assert_eq!(text(Message::Token, &mended), told);
    // And if more was.
    let kept = frame.kept(&[], Reading::Token);
    assert_eq!(mend(&kept, false).bytes, b"\0\0\0\0");
    assert!(!has_secret(
        &mend(&frame.kept(&[], Reading::Unfinished), false).bytes
    ));
}

#[test]
fn where_more_is_missing_than_the_content_of_a_field_the_frame_ends() {
    let frame = produce(&[]);
    let at = frame.start + 9;
    let mended = mend(&frame.kept(&[(at, 3)], Reading::Whole), false);
    assert_eq!(mended.bytes[4..], frame.bytes[4..at]);
    assert_eq!(mended.bytes[..4], (at as u32 - 4).to_be_bytes());
    let lacks = frame.bytes.len() - at;
    assert_eq!(mended.withheld.bytes(), lacks as u64);
    assert_eq!(mended.withheld.to_string(), format!("rest@{at}+{lacks}"));
}

#[test]
fn where_the_frame_ends_behind_a_field_that_keeps_the_size_it_had() {
    // Two partitions.
    let n = SECRET.len();
    let batch = [head(3, 2, n), SECRET.to_vec()].concat();
    let second = [b"\0\0\0\x01\0\0\0\x5c".as_slice(), &batch].concat();
    let mut frame = produce(&batch);
    let count = frame.start + 15;
    frame.bytes[count..count + 4].copy_from_slice(b"\0\0\0\x02");
    let at = frame.bytes.len() - n;
    frame.is_followed_by(&second);
    for lost in [n + 8, n + second.len()] {
        let mended = mend(&frame.kept(&[(at, lost)], Reading::Whole), false);
        assert_eq!(
            mended.withheld.to_string(),
            format!("Records@{at}+{n},rest@{at}+{}", second.len())
        );
        let text = text(Message::Request, &mended);
        for part in [
            format!("Records: {} bytes\n", batch.len()),
            format!("2 records, {} bytes, codec", batch.len()),
            "ends".to_owned(),
        ] {
            assert!(text.contains(&part), "{part}: {text}");
        }
        assert!(!text.contains("more batches"), "{text}");
    }
    // Nothing of it is missing where nothing was there.
    let mut login = Frame::new(Direction::Request, ApiKey(36), 0, &[0; 4]);
    login.is_followed_by(SECRET);
    let text = text(
        Message::Request,
        &mend(&login.kept(&[], Reading::Whole), false),
    );
    assert!(text.contains("AuthBytes: (0 bytes, not kept)\n"), "{text}");
    assert!(
        text.ends_with(&format!("  {n} bytes follow the message\n")),
        "{text}"
    );
}

#[test]
fn what_follows_a_message_goes() {
    let mut frame = produce(&head(1, 1, 0));
    let whole = frame.bytes.len();
    frame.is_followed_by(SECRET);
    for holes in [vec![], vec![(whole, SECRET.len())]] {
        let mended = mend(&frame.kept(&holes, Reading::Whole), false);
        assert_eq!(mended.bytes.len(), whole);
        assert_eq!(
            mended.withheld.to_string(),
            format!("rest@{whole}+{}", SECRET.len())
        );
    }
}
