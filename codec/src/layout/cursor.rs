//! The bytes at hand, and the scalars in them. A read that finds too few bytes reads nothing, so that
//! it can be tried again when there are more.

use super::table::Length;

/// What is left of the bytes at hand, up to the limit. It stays in registers: whoever takes it by
/// reference is inlined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    /// The walk's offset of the end of `rest`.
    end: u32,
}

impl<'a> Cursor<'a> {
    /// At offset `at` of the walk, where `rest` begins, and blind from offset `limit` on.
    #[inline(always)]
    pub(super) fn new(rest: &'a [u8], at: u32, limit: u32) -> Self {
        let room = limit.saturating_sub(at);
        let rest = rest.get(..room as usize).unwrap_or(rest);
        let end = at.wrapping_add(rest.len() as u32);
        Self { rest, end }
    }

    /// Over `rest`, which ends at offset `end` of the walk.
    #[inline(always)]
    pub(super) fn until(end: u32, rest: &'a [u8]) -> Self {
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

    /// All that can be seen.
    #[inline(always)]
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The cursor further on, where only `rest` is left of what can be seen.
    #[inline(always)]
    pub(super) fn at_rest(self, rest: &'a [u8]) -> Self {
        Self { rest, ..self }
    }

    /// How many bytes can be seen.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// The cursor `n` bytes further on, if there are so many.
    #[inline(always)]
    pub(super) fn after(self, n: usize) -> Option<Self> {
        Some(Self {
            rest: self.rest.get(n..)?,
            end: self.end,
        })
    }

    /// The next `n` bytes and the cursor behind them, if there are so many.
    #[inline(always)]
    pub(super) fn split(self, n: usize) -> Option<(&'a [u8], Self)> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        Some((taken, Self { rest, ..self }))
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

    /// The next `N` bytes and the cursor behind them.
    #[inline(always)]
    pub(super) fn take<const N: usize>(self) -> Option<(&'a [u8; N], Self)> {
        self.take_after(0)
    }

    /// The `N` bytes behind the next `before`, and the cursor behind them: one look at the length.
    #[inline(always)]
    pub(super) fn take_after<const N: usize>(self, before: u8) -> Option<(&'a [u8; N], Self)> {
        let n = usize::from(before).wrapping_add(N);
        let (taken, rest) = self.rest.split_at_checked(n)?;
        Some((taken.last_chunk()?, Self { rest, ..self }))
    }

    /// Goes on where `ahead` stands, which came of this cursor and so has the same end.
    #[inline(always)]
    pub(super) fn go(&mut self, ahead: Self) {
        self.rest = ahead.rest;
    }

    /// A length or count, negative for null, and the cursor behind it.
    #[inline(always)]
    pub(super) fn length(self, length: Length) -> Option<(i64, Self)> {
        Some(match length {
            Length::Compact | Length::NullableCompact => {
                let (n, ahead) = self.uvarint()?;
                (i64::from(n).wrapping_sub(1), ahead)
            }
            Length::Int16 | Length::NullableInt16 => {
                let (n, ahead) = self.take()?;
                (i16::from_be_bytes(*n).into(), ahead)
            }
            Length::Int32 | Length::NullableInt32 => {
                let (n, ahead) = self.take()?;
                (i32::from_be_bytes(*n).into(), ahead)
            }
        })
    }

    /// A length or count behind the next `before` bytes, 0 where it is null and may be, and the cursor
    /// behind it.
    #[inline(always)]
    pub(super) fn count_after(self, before: u8, length: Length) -> Option<(u32, Self)> {
        let (n, ahead) = match length.is_compact() {
            true => {
                let (n, ahead) = self.uvarint_after(before)?;
                (n.checked_sub(1), ahead)
            }
            false => {
                let (n, ahead) = self.after(before.into())?.length(length)?;
                (u32::try_from(n).ok(), ahead)
            }
        };
        match n {
            Some(n) => Some((n, ahead)),
            None => length.is_nullable().then_some((0, ahead)),
        }
    }

    /// An unsigned varint and the cursor behind it. A whole one has five bytes at most: where there
    /// is none in so many, there never will be.
    #[inline(always)]
    pub(super) fn uvarint(self) -> Option<(u32, Self)> {
        self.uvarint_after(0)
    }

    /// The same behind the next `before` bytes.
    #[inline(always)]
    pub(super) fn uvarint_after(self, before: u8) -> Option<(u32, Self)> {
        let ([first], ahead) = self.take_after(before)?;
        let first = u32::from(*first);
        if first < 0x80 {
            return Some((first, ahead));
        }
        let ([second], behind) = ahead.take()?;
        let second = u32::from(*second);
        if second < 0x80 {
            return Some((first & 0x7f | second << 7, behind));
        }
        let start = self.after(before.into())?;
        let (value, len) = long_uvarint(start.rest)?;
        Some((value, start.after(len)?))
    }
}

/// The most bytes of a varint of 32 bits.
pub(super) const MAX_VARINT: usize = 5;

/// A varint and how many bytes it has. Like Kafka's own reader it drops what a fifth byte has beyond
/// 32 bits.
#[inline(never)]
fn long_uvarint(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(MAX_VARINT).enumerate() {
        let shift = (index as u32).wrapping_mul(7);
        value |= u32::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            return Some((value, index.wrapping_add(1)));
        }
    }
    None
}
