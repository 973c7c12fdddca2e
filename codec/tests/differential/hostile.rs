//! Bytes that no well-meaning peer writes: a walk over them ends soon, without a panic, and tells the
//! same however they come.

use crate::samples::{Sample, one_of_each};
use crate::tree::Struct;
use crate::walk::{End, Move, walk};
use fastrand::Rng;
use klamp_codec::layout::{Fault, Root};
use klamp_codec::{ApiKey, Direction};

/// Walks `bytes` whole and in pieces. Every step must have cost bytes.
fn check(root: Root, bytes: &[u8], rng: &mut Rng) -> End {
    let whole = walk(root, bytes, bytes.len(), |_, _| Move::Feed(usize::MAX));
    let steps = whole.told.len() + whole.tags.len();
    assert!(
        steps <= 3 * bytes.len() + 2,
        "{steps} events of {bytes:02x?}"
    );

    let largest = 1 << rng.u8(0..6);
    let pieces = walk(root, bytes, bytes.len(), |_, _| {
        match rng.usize(0..=largest) {
            n if rng.bool() => Move::Feed(n),
            n => Move::Skip(n),
        }
    });
    assert_eq!(pieces, whole, "{bytes:02x?}");
    whole.end
}

#[test]
fn mutated_messages_never_panic_and_take_bounded_steps() {
    let mut rng = Rng::with_seed(11);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..2 {
        for sample in one_of_each(&mut rng) {
            for _ in 0..20 {
                let mut bytes = sample.bytes.clone();
                bytes.truncate(800);
                mutate(&mut bytes, &mut rng);
                match check(sample.root(), &bytes, &mut rng) {
                    End::Done(_) => read += 1,
                    End::Failed(_) => refused += 1,
                    End::Hungry => panic!("{bytes:02x?} is a whole frame, and not over"),
                }
            }
        }
    }
    assert!(
        read > 3_000 && refused > 10_000,
        "{read} read, {refused} refused"
    );
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.u8(1..4) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.usize(..bytes.len());
        match rng.u8(0..6) {
            0 => bytes[at] ^= 1 << rng.u8(0..8),
            1 => bytes[at] = *rng.choice(&[0, 1, 0x7f, 0x80, 0xff]).unwrap(),
            2 => bytes[at..].iter_mut().take(5).for_each(|byte| *byte = 0xff),
            3 => bytes.truncate(at),
            4 => bytes.insert(at, rng.u8(..)),
            _ => drop(bytes.remove(at)),
        }
    }
}

#[test]
fn random_bytes_never_panic_and_take_bounded_steps() {
    let mut rng = Rng::with_seed(12);
    let roots = one_of_each(&mut rng);
    for _ in 0..10 {
        for sample in &roots {
            let small = rng.bool();
            let len = rng.usize(0..200);
            let mut byte = || if small { rng.u8(0..4) } else { rng.u8(..) };
            let bytes = (0..len).map(|_| byte()).collect::<Vec<_>>();
            check(sample.root(), &bytes, &mut rng);
        }
    }
}

/// Fails at the count, whatever the frame promises to bring.
fn refused(direction: Direction, api_key: ApiKey, api_version: i16, bytes: &[u8]) -> (Fault, u32) {
    let root = Root::find(direction, api_key, api_version).unwrap();
    let walked = walk(root, bytes, bytes.len() + 100, |_, _| {
        Move::Feed(usize::MAX)
    });
    failed(walked.end)
}

/// What was wrong, and where.
fn failed(end: End) -> (Fault, u32) {
    match end {
        End::Failed(error) => (error.fault, error.at),
        end => panic!("{end:?}"),
    }
}

#[test]
fn a_count_that_cannot_fit_is_refused_before_its_elements_come() {
    let response = Direction::Response;
    let brokers = |count: u32| count.to_be_bytes();
    for count in [13, 0x7fff_ffff] {
        assert_eq!(
            refused(response, ApiKey::METADATA, 0, &brokers(count)),
            (Fault::Count(count), 0),
        );
    }
    // An array of strings, and one in the compact form.
    let mechanisms = [0, 0, 0x7f, 0xff, 0xff, 0xff];
    assert_eq!(
        refused(response, ApiKey::SASL_HANDSHAKE, 1, &mechanisms),
        (Fault::Count(0x7fff_ffff), 2),
    );
    assert_eq!(
        refused(
            response,
            ApiKey::METADATA,
            12,
            &[0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]
        ),
        (Fault::Count(0xffff_fffe), 5),
    );
}

#[test]
fn null_where_there_is_no_null_is_refused() {
    for count in [0x8000_0000_u32, 0xffff_ffff] {
        assert_eq!(
            refused(
                Direction::Response,
                ApiKey::METADATA,
                0,
                &count.to_be_bytes()
            ),
            (Fault::Null, 0),
        );
    }
    assert_eq!(
        refused(Direction::Request, ApiKey::API_VERSIONS, 3, &[0, 0]),
        (Fault::Null, 1),
    );
}

#[test]
fn varints_have_five_bytes_at_most() {
    let request = |bytes: &[u8]| refused(Direction::Request, ApiKey::API_VERSIONS, 3, bytes);
    // The header's tagged fields.
    assert_eq!(request(&[0x80, 0x80, 0x80, 0x80, 0x80]), (Fault::Varint, 0),);
    assert_eq!(
        request(&[1, 0x80, 0x80, 0x80, 0x80, 0x80, 0]),
        (Fault::Varint, 1),
    );
    // Bits beyond 32 are dropped, as Kafka does: none, then two names of three bytes.
    let root = Root::find(Direction::Request, ApiKey::API_VERSIONS, 3).unwrap();
    let bytes = b"\x80\x80\x80\x80\x70\x84\x80\x80\x80\x10abc\x84\x00abc\x80\x00";
    for next in [Move::Feed(usize::MAX), Move::Feed(1)] {
        let walked = walk(root, bytes, bytes.len(), |_, _| next);
        assert_eq!(walked.end, End::Done(bytes.len()));
        assert_eq!(walked.told.len(), 2);
    }
}

/// A response of ApiVersions 3 with no rows, and these tagged fields.
fn features(tags: &[u8]) -> Sample {
    Sample {
        direction: Direction::Response,
        api_key: ApiKey::API_VERSIONS,
        api_version: 3,
        flexible: true,
        bytes: [&[0, 0, 1, 0, 0, 0, 0], tags].concat(),
        said: Struct::default(),
    }
}

#[test]
fn a_tagged_field_must_end_where_its_size_says() {
    // Tag 2: one finalized feature "f", 7, 1, no tagged fields.
    let good = features(&[1, 2, 8, 2, 2, b'f', 0, 7, 0, 1, 0]);
    assert_eq!(good.walk().end, End::Done(good.bytes.len()));

    let long = features(&[1, 2, 9, 2, 2, b'f', 0, 7, 0, 1, 0, 0]);
    assert_eq!(failed(long.walk().end), (Fault::TagSize, 18));

    let short = features(&[1, 2, 7, 2, 2, b'f', 0, 7, 0, 1, 0]);
    assert_eq!(failed(short.walk().end), (Fault::Short, 17));

    let behind = features(&[1, 2, 9, 2, 2, b'f', 0, 7, 0, 1, 0]);
    assert_eq!(failed(behind.walk().end), (Fault::Short, 10));
}

#[test]
fn tagged_fields_may_be_out_of_order_and_come_twice() {
    let feature = [2, 8, 2, 2, b'f', 0, 7, 0, 1, 0];
    let sample = features(&[&[3, 9, 1, 0xaa], feature.as_slice(), &feature].concat());
    let walked = sample.walk();
    assert_eq!(walked.end, End::Done(sample.bytes.len()));
    assert_eq!(walked.tags.len(), 2);
}

#[test]
fn more_tagged_fields_than_can_fit_are_refused() {
    let sample = features(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1]);
    assert_eq!(failed(sample.walk().end), (Fault::Count(u32::MAX), 7));
}

#[test]
fn an_empty_body_is_done_without_bytes() {
    let root = Root::find(Direction::Request, ApiKey::API_VERSIONS, 0).unwrap();
    let walked = walk(root, &[], 0, |_, _| Move::Feed(usize::MAX));
    assert_eq!(walked.end, End::Done(0));
}
