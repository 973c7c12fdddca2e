//! Elements of arrays that are read as one: a look at the whole of an element costs little more than
//! one at a field of it.
//!
//! The trap: what is told cannot be taken back. So a row is read to its end before anything is told of
//! it, and where it is not all at hand, or has something rare in it, the ops behind it read the element.

use super::cursor::Cursor;
use super::table::Length;
use super::{Event, Listener, Role, Value};

/// An element in a straight line: an error code perhaps, then what is of no interest but for where one
/// string, bytes or record set stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Bytes before the error code that it may begin with.
    pub(crate) code: Option<u8>,
    /// Strings, bytes and arrays, one behind the other.
    pub(crate) parts: &'static [Part],
    /// Bytes behind those.
    pub(crate) behind: u8,
    /// Whether it ends with tagged fields: without any it can be read as one.
    pub(crate) tags: bool,
}

/// A string, bytes or array, and the bytes before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) before: u8,
    pub(crate) length: Length,
    pub(crate) of: Of,
}

/// What there are as many of as a length says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    /// Bytes, or elements of so many bytes each.
    Size(u16),
    /// Bytes that are told of, where there are any.
    Skipped(Role),
    /// Elements that are rows of no interest themselves.
    Rows(&'static Row),
}

impl Row {
    /// Reads up to `count` elements at `from` whose first field has the op `field`. Returns how many it
    /// did not, where one comes that is not so plain, and what is behind those that it did.
    // (not inlined, so that it has the registers to itself)
    #[inline(never)]
    pub(super) fn read_all<'a>(
        &self,
        bytes: &'a [u8],
        end: u32,
        count: &mut u32,
        field: u16,
        on: &mut impl Listener,
    ) -> &'a [u8] {
        let mut from = Cursor::until(end, bytes);
        let mut more = *count;
        while let Some(left) = more.checked_sub(1)
            && let Some(ahead) = self.read(from, field, on)
        {
            from = ahead;
            more = left;
        }
        *count = more;
        from.rest()
    }

    /// Reads an element and tells of it. `None` where that is not so plain: then nothing is told.
    #[inline(always)]
    fn read<'a>(&self, from: Cursor<'a>, field: u16, on: &mut impl Listener) -> Option<Cursor<'a>> {
        let mut skipped = None;
        let end = match self.code {
            None => self.pass(from, field, &mut skipped)?,
            Some(before) => {
                let (value, ahead) = from.take_after(before)?;
                let at = ahead.at().wrapping_sub(2);
                let value = Value::Int(i16::from_be_bytes(*value).into());
                let end = self.pass(ahead, field.wrapping_add(1), &mut skipped)?;
                on.hear(Event::new(field, Role::ErrorCode, at, 2, value));
                end
            }
        };
        if let Some(event) = skipped {
            on.hear(event);
        }
        Some(end)
    }

    /// Passes what is behind the code, of which the first has the op `field`. Notes what is skipped and
    /// told of.
    #[inline(always)]
    fn pass<'a>(
        &self,
        from: Cursor<'a>,
        field: u16,
        skipped: &mut Option<Event<'static>>,
    ) -> Option<Cursor<'a>> {
        let mut ahead = from;
        for (part, field) in self.parts.iter().zip(field..) {
            let (n, behind) = ahead.count_after(part.before, part.length)?;
            let from = ahead;
            ahead = match part.of {
                Of::Size(size) => {
                    let bytes = u64::from(n).wrapping_mul(size.into());
                    behind.after(usize::try_from(bytes).ok()?)?
                }
                Of::Skipped(role) => {
                    if n > 0 {
                        let from = from.at().wrapping_add(part.before.into());
                        let width = behind.at().wrapping_sub(from);
                        let value = Value::Skipped(n);
                        *skipped = Some(Event::new(field, role, behind.at(), width, value));
                    }
                    behind.after(n as usize)?
                }
                Of::Rows(_) if n == 0 => behind,
                Of::Rows(row) => behind.at_rest(row.pass_all(n, behind.rest())?),
            };
        }
        if !self.tags {
            return ahead.after(self.behind.into());
        }
        match ahead.take_after(self.behind)? {
            ([0], behind) => Some(behind),
            _ => None,
        }
    }

    /// Passes so many elements of which nothing is told.
    #[inline(never)]
    fn pass_all<'a>(&self, count: u32, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let mut ahead = Cursor::until(0, bytes);
        for _ in 0..count {
            ahead = self.pass(ahead, 0, &mut None)?;
        }
        Some(ahead.rest())
    }
}
