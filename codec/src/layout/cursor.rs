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

/// A place in the bytes at hand, cut off at the innermost limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    /// All bytes at hand, and the walk's offset of the first.
    input: &'a [u8],
    start: u32,
    /// What is left of them before the limit, and the walk's offset of its end.
    rest: &'a [u8],
    end: u32,
}

impl<'a> Cursor<'a> {
    /// At the start of `input`, which is at offset `start` of the walk, with nothing to see from
    /// offset `limit` on.
    pub(super) fn new(input: &'a [u8], start: u32, limit: u32) -> Self {
        let mut cursor = Self {
            input,
            start,
            rest: input,
            end: start,
        };
        cursor.set_limit(start, limit);
        cursor
    }

    /// Stands at offset `at`, with nothing to see from offset `limit` on.
    pub(super) fn set_limit(&mut self, at: u32, limit: u32) {
        let from = at.saturating_sub(self.start) as usize;
        let rest = self.input.get(from..).unwrap_or_default();
        let room = limit.saturating_sub(at) as usize;
        self.rest = rest.get(..room).unwrap_or(rest);
        self.end = at.saturating_add(self.rest.len() as u32);
    }

    /// The walk's offset of the next byte.
    pub(super) fn at(&self) -> u32 {
        self.end.wrapping_sub(self.rest.len() as u32)
    }

    /// The walk's offset at which what can be seen ends.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// How many bytes lie behind.
    pub(super) fn used(&self) -> usize {
        self.at().wrapping_sub(self.start) as usize
    }

    /// The next `n` bytes, or as many as there are.
    pub(super) fn take_up_to(&mut self, n: u32) -> &'a [u8] {
        let (taken, rest) = self
            .rest
            .split_at_checked(n as usize)
            .unwrap_or((self.rest, &[]));
        self.rest = rest;
        taken
    }

    /// The next `N` bytes.
    pub(super) fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Halt> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Halt::Cut)?;
        self.rest = rest;
        Ok(taken)
    }

    /// An integer, and how many bytes it has.
    pub(super) fn int(&mut self, int: Int) -> Result<(i64, u32), Halt> {
        Ok(match int {
            Int::Int8 => (i8::from_be_bytes(*self.take()?).into(), 1),
            Int::Int16 => (i16::from_be_bytes(*self.take()?).into(), 2),
            Int::Int32 => (i32::from_be_bytes(*self.take()?).into(), 4),
            Int::Int64 => (i64::from_be_bytes(*self.take()?), 8),
        })
    }

    /// A length or count; `None` for null.
    pub(super) fn length(&mut self, length: Length, nullable: bool) -> Result<Option<u32>, Halt> {
        let at = self.at();
        let value = match length {
            Length::Int16 => u32::try_from(i16::from_be_bytes(*self.take()?)).ok(),
            Length::Int32 => u32::try_from(i32::from_be_bytes(*self.take()?)).ok(),
            Length::Compact => self.uvarint()?.checked_sub(1),
        };
        if value.is_none() && !nullable {
            return Err(WalkError::Null { at }.into());
        }
        Ok(value)
    }

    /// An unsigned varint. Like Kafka's own reader it drops what a fifth byte has beyond 32 bits.
    pub(super) fn uvarint(&mut self) -> Result<u32, Halt> {
        let (&first, rest) = self.rest.split_first().ok_or(Halt::Cut)?;
        if first < 0x80 {
            self.rest = rest;
            return Ok(first.into());
        }
        self.long_uvarint()
    }

    fn long_uvarint(&mut self) -> Result<u32, Halt> {
        let mut value = 0;
        let mut bytes = self.rest;
        for shift in [0, 7, 14, 21, 28] {
            let (&byte, rest) = bytes.split_first().ok_or(Halt::Cut)?;
            bytes = rest;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                self.rest = bytes;
                return Ok(value);
            }
        }
        Err(WalkError::Varint { at: self.at() }.into())
    }
}
