//! The bytes at hand, and the scalars in them. A read that finds too few bytes reads nothing, so that
//! it can be tried again when there are more.

use super::WalkError;
use super::table::{Int, Length};

/// Why reading stops for now or for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The bytes at hand end.
    Cut,
    /// The bytes do not fit the layout.
    Failed(WalkError),
}

impl From<WalkError> for Halt {
    fn from(error: WalkError) -> Self {
        Self::Failed(error)
    }
}

/// What is left of the bytes at hand, up to the limit. It stays in registers: whoever takes it by
/// reference is inlined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// The walk's offset of the end of `rest`.
    end: u32,
}

impl<'a> Cursor<'a> {
    /// At offset `at` of the walk in `input`, which is at offset `start`, and blind from offset
    /// `limit` on.
    pub(super) fn new(input: &'a [u8], start: u32, at: u32, limit: u32) -> Self {
        let from = at.saturating_sub(start) as usize;
        let rest = input.get(from..).unwrap_or_default();
        let room = limit.saturating_sub(at) as usize;
        let rest = rest.get(..room).unwrap_or(rest);
        let end = at.saturating_add(rest.len() as u32);
        Self { rest, end }
    }

    /// The walk's offset of the next byte.
    #[inline(always)]
    pub(super) fn at(&self) -> u32 {
        self.end.wrapping_sub(self.rest.len() as u32)
    }

    /// The walk's offset at which what can be seen ends.
    #[inline(always)]
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// The next `n` bytes, or as many as there are.
    #[inline(always)]
    pub(super) fn take_up_to(&mut self, n: u32) -> &'a [u8] {
        let (taken, rest) = self
            .rest
            .split_at_checked(n as usize)
            .unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    /// The next `N` bytes.
    #[inline(always)]
    pub(super) fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(taken)
    }

    /// An integer.
    #[inline(always)]
    pub(super) fn int(&mut self, int: Int) -> Option<i64> {
        Some(match int {
            Int::Int8 => i8::from_be_bytes(*self.take()?).into(),
            Int::Int16 => i16::from_be_bytes(*self.take()?).into(),
            Int::Uint16 => u16::from_be_bytes(*self.take()?).into(),
            Int::Int32 => i32::from_be_bytes(*self.take()?).into(),
            Int::Int64 => i64::from_be_bytes(*self.take()?),
        })
    }

    /// A length or count, negative for null; [`Cursor::cut`] tells why there is none.
    #[inline(always)]
    pub(super) fn length(&mut self, length: Length) -> Option<i64> {
        Some(match length {
            Length::Int16 => i16::from_be_bytes(*self.take()?).into(),
            Length::Int32 => i32::from_be_bytes(*self.take()?).into(),
            Length::Compact => i64::from(self.uvarint()?).wrapping_sub(1),
        })
    }

    /// An unsigned varint; [`Cursor::cut`] tells why there is none.
    #[inline(always)]
    pub(super) fn uvarint(&mut self) -> Option<u32> {
        let (&first, rest) = self.rest.split_first()?;
        if first < 0x80 {
            self.rest = rest;
            return Some(first.into());
        }
        let (value, len) = long_uvarint(self.rest)?;
        self.rest = self.rest.get(len..)?;
        Some(value)
    }

    /// Why there is no length or varint here: a whole one has five bytes at most.
    #[cold]
    pub(super) fn cut(self) -> Halt {
        if self.rest.len() < 5 {
            return Halt::Cut;
        }
        WalkError::Varint { at: self.at() }.into()
    }
}

/// A varint and how many bytes it has. Like Kafka's own reader it drops what a fifth byte has beyond
/// 32 bits.
fn long_uvarint(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(5).enumerate() {
        let shift = (index as u32).wrapping_mul(7);
        value |= u32::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            return Some((value, index.wrapping_add(1)));
        }
    }
    None
}
