//! A buffer that makes up what is read from it: `kafka-protocol`'s decoders ask for one value after the
//! other, and what they are told becomes a message. So neither klamp's table nor a definition has a say
//! in what is valid, and every message is filled that there is a decoder for.
//!
//! The trap: a decoder asks for a count as for any other integer, and reserves what it is told. So what
//! may be a count or length is small at first. In classic versions that is every int16 and int32; the
//! second step, `widen`, finds out which of them are mere values.

use bytes::{Buf, Bytes, TryGetError};
use fastrand::Rng;
use kafka_protocol::protocol::Decodable;
use kafka_protocol::protocol::buf::ByteBuf;
use std::ops::Range;

/// A message that a decoder was talked into.
pub fn dictate<M: Decodable>(version: i16, flexible: bool, rng: &mut Rng) -> M {
    let mut buf = Dictation {
        budget: rng.usize(50..1500),
        flexible,
        answers: Vec::new(),
        next: 0,
        rng,
    };
    let mut failed_at = 0;
    let mut failures = 0;
    let message = loop {
        let error = match buf.read(version) {
            Ok(message) => break message,
            Err(error) => error,
        };
        // A null that cannot be, or a tag that this version does not have: the last answer or one of
        // those before must be another.
        let at = buf.next;
        failures = if at > failed_at { 0 } else { failures + 1 };
        failed_at = failed_at.max(at);
        assert!(failures < 1000, "{error}");
        buf.answers.truncate(at.saturating_sub(1 + failures / 8));
    };
    buf.widen(version).unwrap_or(message)
}

struct Dictation<'a> {
    rng: &'a mut Rng,
    flexible: bool,
    /// How many bytes may be told before the message is brought to its end.
    budget: usize,
    /// What has been told; a decoder that starts again hears it again.
    answers: Vec<Answer>,
    next: usize,
}

struct Answer {
    bytes: Bytes,
    /// It was kept small since it may be a count or length.
    is_small: bool,
}

impl Dictation<'_> {
    fn read<M: Decodable>(&mut self, version: i16) -> Result<M, String> {
        self.next = 0;
        M::decode(self, version).map_err(|error| format!("{error:#}"))
    }

    /// Makes some of the small values wide: negative ones other than -1 are no length and no count,
    /// and nothing is reserved for them.
    fn widen<M: Decodable>(&mut self, version: i16) -> Option<M> {
        let mut widened = None;
        for _ in 0..24 {
            let index = self.rng.usize(0..self.answers.len().max(1));
            let Some(answer) = self.answers.get_mut(index).filter(|it| it.is_small) else {
                continue;
            };
            let wide = self.rng.i32(-30_000..-1).to_be_bytes();
            let wide = Bytes::copy_from_slice(&wide[4 - answer.bytes.len()..]);
            let small = std::mem::replace(&mut answer.bytes, wide);
            match self.read(version) {
                Ok(message) => widened = Some(message),
                Err(_) => self.answers[index].bytes = small,
            }
        }
        widened
    }

    fn answer<const N: usize>(
        &mut self,
        is_small: bool,
        new: impl FnOnce(&mut Rng, bool) -> [u8; N],
    ) -> [u8; N] {
        let told = self.told(is_small, |rng, ends| new(rng, ends).to_vec());
        told.as_ref().try_into().unwrap()
    }

    fn told(&mut self, is_small: bool, new: impl FnOnce(&mut Rng, bool) -> Vec<u8>) -> Bytes {
        if self.next == self.answers.len() {
            let told = self.answers.iter().map(|it| it.bytes.len()).sum::<usize>();
            let bytes = Bytes::from(new(self.rng, told > self.budget));
            self.answers.push(Answer { bytes, is_small });
        }
        self.next += 1;
        self.answers[self.next - 1].bytes.clone()
    }
}

/// Any value, extreme ones often.
fn wide<const N: usize>(rng: &mut Rng) -> [u8; N] {
    let mut bytes = [0; N];
    match rng.u8(0..8) {
        0 => bytes = [0xff; N],
        1 => bytes[N - 1] = rng.u8(1..),
        2 => {
            bytes = [0xff; N];
            bytes[0] = 0x7f;
        }
        3 => bytes[0] = 0x80,
        _ => rng.fill(&mut bytes),
    }
    bytes
}

/// What may be a count or length: often none or few, now and then null, or so many that a compact
/// count takes a second byte.
fn small(rng: &mut Rng, ends: bool) -> i16 {
    match rng.u8(..) {
        _ if ends => 0,
        0..3 => -1,
        3..60 => 0,
        60..120 => 1,
        120..252 => rng.i16(2..5),
        252.. => rng.i16(126..300),
    }
}

impl Buf for Dictation<'_> {
    fn remaining(&self) -> usize {
        1 << 20
    }

    fn chunk(&self) -> &[u8] {
        unreachable!("decoders ask for values")
    }

    fn advance(&mut self, _: usize) {
        unreachable!("decoders ask for values")
    }

    /// A bool, or a byte of a varint: a count, a length, or a tag.
    fn try_get_u8(&mut self) -> Result<u8, TryGetError> {
        let before = self.next.checked_sub(1).map(|it| &self.answers[it].bytes);
        let follows = before.is_some_and(|it| matches!(**it, [0x80..=0xff]));
        let [byte] = self.answer(false, |rng, ends| {
            [match rng.u8(..) {
                _ if follows => 1,
                chance if ends => u8::from(chance > 50),
                0..80 => 0,
                80..120 => 1,
                120..250 => rng.u8(2..9),
                250.. => rng.u8(0x80..0x90),
            }]
        });
        Ok(byte)
    }

    /// An int8, or whether a struct is there.
    fn try_get_i8(&mut self) -> Result<i8, TryGetError> {
        let byte = self.answer(false, |rng, _| match rng.u8(0..3) {
            0 => [1],
            1 => [0xff],
            _ => wide(rng),
        });
        Ok(i8::from_be_bytes(byte))
    }

    fn try_get_i16(&mut self) -> Result<i16, TryGetError> {
        Ok(i16::from_be_bytes(match self.flexible {
            true => self.answer(false, |rng, _| wide(rng)),
            false => self.answer(true, |rng, ends| small(rng, ends).to_be_bytes()),
        }))
    }

    fn try_get_i32(&mut self) -> Result<i32, TryGetError> {
        Ok(i32::from_be_bytes(match self.flexible {
            true => self.answer(false, |rng, _| wide(rng)),
            false => self.answer(true, |rng, ends| i32::from(small(rng, ends)).to_be_bytes()),
        }))
    }

    fn try_get_u16(&mut self) -> Result<u16, TryGetError> {
        Ok(u16::from_be_bytes(self.answer(false, |rng, _| wide(rng))))
    }

    fn try_get_i64(&mut self) -> Result<i64, TryGetError> {
        Ok(i64::from_be_bytes(self.answer(false, |rng, _| wide(rng))))
    }

    /// Those that are no number are not printed with all their bits.
    fn try_get_f64(&mut self) -> Result<f64, TryGetError> {
        let number = |rng: &mut Rng| (rng.f64() - 0.5) * 1e6;
        let bytes = self.answer(false, |rng, _| number(rng).to_be_bytes());
        Ok(f64::from_be_bytes(bytes))
    }

    /// A uuid.
    fn try_copy_to_slice(&mut self, to: &mut [u8]) -> Result<(), TryGetError> {
        to.copy_from_slice(&self.answer::<16>(false, |rng, _| wide(rng)));
        Ok(())
    }
}

impl ByteBuf for Dictation<'_> {
    fn peek_bytes(&mut self, _: Range<usize>) -> Bytes {
        unreachable!("decoders take what they look at")
    }

    /// A string, or bytes.
    fn get_bytes(&mut self, size: usize) -> Bytes {
        let text = |rng: &mut Rng, _| (0..size).map(|_| rng.alphanumeric() as u8).collect();
        self.told(false, text)
    }
}
