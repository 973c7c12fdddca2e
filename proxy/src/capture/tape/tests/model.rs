//! Messages with records of all kinds, true and lying, held against a plain model of what is kept of them.

use super::*;
use crate::relay::tests::Random;
use klamp_codec::render::batch_bytes;

/// Bytes of a batch before its records.
const HEAD: usize = 61;

/// A message, and which of its bytes are kept if it is shown in one piece.
struct Message {
    bytes: Vec<u8>,
    kept: Vec<bool>,
    /// Which bytes are not of records.
    plain: Vec<bool>,
}

impl Message {
    fn add(&mut self, bytes: &[u8], kept: &[bool], plain: bool) {
        self.bytes.extend_from_slice(bytes);
        self.kept.extend_from_slice(kept);
        self.plain.extend(std::iter::repeat_n(plain, bytes.len()));
    }

    fn plain(&mut self, bytes: &[u8]) {
        self.add(bytes, &vec![true; bytes.len()], true);
    }

    fn records(&mut self, records: &[u8]) {
        let mut kept = vec![false; records.len()];
        let mut next = 0;
        while let Some(head) = records.get(next..).and_then(<[u8]>::first_chunk::<HEAD>)
            && let Some(bytes) = batch_bytes(head)
        {
            kept[next..next + HEAD].fill(true);
            next += usize::try_from(bytes).unwrap();
        }
        self.add(records, &kept, false);
    }
}

/// One or more batches or what looks like some, or nothing.
fn records(random: &mut Random) -> Vec<u8> {
    let one = |random: &mut Random| {
        let most = [3, 40, 400][random.up_to(2)];
        let mut one = batch(&vec![b's'; random.up_to(most)]);
        match random.up_to(5) {
            // It tells of more, or of less, than there is.
            0 => one[11] = one[11].wrapping_add(1 + random.up_to(200) as u8),
            1 => one[10] = random.up_to(3) as u8,
            // It is of an older kind, or cut.
            2 => one[16] = random.up_to(1) as u8,
            3 => one.truncate(random.up_to(one.len())),
            _ => {}
        }
        one
    };
    let batches: Vec<_> = (0..random.up_to(3)).map(|_| one(random)).collect();
    batches.concat()
}

/// Produce v3, of some partitions.
fn message(random: &mut Random, id: u8) -> Message {
    let mut message = Message {
        bytes: Vec::new(),
        kept: Vec::new(),
        plain: Vec::new(),
    };
    message.plain(&[0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, id, 0, 1, b'c']);
    message.plain(b"\xff\xff\0\x01\0\0\0\x09\0\0\0\x01\0\x01t");
    let partitions = random.up_to(6) as u32;
    message.plain(&partitions.to_be_bytes());
    for n in 0..partitions {
        let records = records(random);
        message.plain(&n.to_be_bytes());
        message.plain(&(records.len() as u32).to_be_bytes());
        message.records(&records);
    }
    let length = (message.bytes.len() - 4) as u32;
    message.bytes[..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// The bytes of a frame, and which of them it has.
fn had(frame: &Kept) -> (Vec<u8>, Vec<bool>) {
    let parts = frame.parts.iter().map(|part| match part {
        Part::Bytes(bytes) => (bytes.clone(), vec![true; bytes.len()]),
        Part::Hole(n) => (vec![0; *n as usize], vec![false; *n as usize]),
    });
    let (bytes, has): (Vec<_>, Vec<_>) = parts.unzip();
    (bytes.concat(), has.concat())
}

#[test]
fn of_records_what_the_model_keeps_is_kept_and_of_what_reads_cut_no_more() {
    for seed in 1..400 {
        let mut random = Random(seed);
        let messages: Vec<_> = (0..12).map(|id| message(&mut random, id)).collect();
        let cuts = random.up_to(2);
        let stream: Vec<_> = messages.iter().flat_map(|it| it.bytes.clone()).collect();
        let mut rig = Rig::new();
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let piece = match cuts {
                0 => rest.len(),
                1 => 1 + random.up_to(300),
                _ => 1 + random.up_to(3_000),
            };
            let (piece, others) = rest.split_at(piece.min(rest.len()));
            rig.sends(Request, piece);
            rest = others;
        }
        let frames = rig.frames();
        assert_eq!(frames.len(), messages.len(), "seed {seed}");
        for (frame, message) in frames.iter().zip(&messages) {
            let (bytes, has) = had(frame);
            assert_eq!(bytes.len(), message.bytes.len(), "seed {seed}");
            for (at, has) in has.into_iter().enumerate() {
                let about = || format!("seed {seed}, {:?}, byte {at}", frame.exchange);
                let is_due = match cuts {
                    0 => message.kept[at],
                    _ => message.plain[at],
                };
                assert!(has || !is_due, "{} is not kept", about());
                assert!(!has || message.kept[at], "{} is kept", about());
                assert!(
                    !has || bytes[at] == message.bytes[at],
                    "{} is another",
                    about()
                );
            }
        }
    }
}

/// What is shown ends in the first bytes of records, and with what stands before them looks like a head.
#[test]
fn a_head_that_is_shown_in_part_is_not_mistaken_for_one_that_begins_before_it() {
    let records = &b"secret".repeat(20_000)[..20_000];
    let mut name = [b'n'; 29];
    name[8..12].copy_from_slice(&(20_000_u32 - 12).to_be_bytes());
    name[16] = 2;
    let topic = [&[0, 29][..], &name, &[0, 0, 0, 1], &partition(0, records)].concat();
    let body = [&b"\xff\xff\0\x01\0\0\0\x09\0\0\0\x01"[..], &topic].concat();
    let asked = request(0, 3, 1, &body);
    for shown in asked.len() - records.len()..asked.len() - records.len() + 61 {
        let mut rig = Rig::new();
        rig.sends(Request, &asked[..shown]);
        rig.sends(Request, &asked[shown..]);
        let frames = rig.frames();
        let kept = bytes_of(&frames[0]);
        assert!(!kept.windows(6).any(|bytes| bytes == b"secret"), "{shown}");
        let parts = &frames[0].parts;
        assert_eq!(parts.last(), Some(&Part::Hole(20_000)), "{shown}");
    }
}
