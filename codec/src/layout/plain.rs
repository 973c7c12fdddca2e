//! The loop that reads what is plain: fields that are at hand whole, no tagged fields.
//!
//! Nearly all that passes is read here, so this loop decides what looking at a message costs. It
//! holds no more than fits in registers, and leaves whatever is rare or incomplete to
//! [`Reading::step`], which reads every op there is. The trap: the two must tell the same.

use super::cursor::Cursor;
use super::reading::Reading;
use super::state::Level;
use super::table::{Length, Op};
use super::walker::MAX_DEPTH;
use super::{Event, Value};

/// Where the loop stands.
struct Plain<'a> {
    cursor: Cursor<'a>,
    /// The next op.
    op: usize,
    /// The innermost level.
    depth: usize,
}

impl Reading<'_, '_> {
    /// Reads ops up to one that is not plain, or to the content of a tagged field. `true` where the
    /// message has been read.
    #[inline(always)]
    pub(super) fn plain(&mut self, on: &mut impl FnMut(Event<'_>)) -> bool {
        let mut plain = Plain {
            cursor: self.cursor,
            op: self.op.into(),
            depth: self.walker.depth.into(),
        };
        let ops = self.walker.table.ops;
        let levels = &mut self.walker.levels;
        let mut is_done = false;
        while let Some(op) = ops.get(plain.op)
            && let Some(ends) = plain.read(op, levels, on)
        {
            if ends && let Some(done) = plain.end(levels, on) {
                is_done = done;
                break;
            }
        }
        self.cursor = plain.cursor;
        self.op = plain.op as u16;
        self.walker.depth = plain.depth as u8;
        is_done
    }
}

impl<'a> Plain<'a> {
    /// Reads an op. `None` where it is not plain: then it is not read; else whether its struct ends.
    #[inline(always)]
    fn read(
        &mut self,
        op: &Op,
        levels: &mut [Level; MAX_DEPTH],
        on: &mut impl FnMut(Event<'_>),
    ) -> Option<bool> {
        let field = self.op;
        let mut ends = false;
        match *op {
            Op::Int16 { before, role } => {
                let (value, ahead) = self.cursor.take_after(before)?;
                self.cursor.go(ahead);
                let value = Value::Int(i16::from_be_bytes(*value).into());
                let at = ahead.at().wrapping_sub(2);
                on(Event::new(field as u16, role, at, 2, value));
            }
            Op::Int32 { before, role } => {
                let (value, ahead) = self.cursor.take_after(before)?;
                self.cursor.go(ahead);
                let value = Value::Int(i32::from_be_bytes(*value).into());
                let at = ahead.at().wrapping_sub(4);
                on(Event::new(field as u16, role, at, 4, value));
            }
            Op::Unread {
                before,
                length,
                size,
            } => {
                let (n, ahead) = self.length(before, length)?;
                let bytes = u64::from(n).wrapping_mul(size.into());
                self.cursor.go(ahead.after(usize::try_from(bytes).ok()?)?);
            }
            Op::Bytes {
                before,
                role,
                length,
            } => {
                let (n, ahead) = self.length(before, length)?;
                let (piece, behind) = ahead.split(n as usize)?;
                if piece.is_empty() {
                    return None; // or null
                }
                let from = self.cursor.at().wrapping_add(before.into());
                let (at, width) = (ahead.at(), ahead.at().wrapping_sub(from));
                self.cursor.go(behind);
                let value = Value::Piece(piece, 0);
                on(Event::new(field as u16, role, at, width, value));
            }
            Op::Array {
                before,
                role: None,
                length,
                element,
                min,
            } => {
                let (count, ahead) = self.length(before, length)?;
                if let Some(more) = count.checked_sub(1) {
                    let least = u64::from(count).wrapping_mul(min.get().into());
                    if least > ahead.len() as u64 {
                        return None;
                    }
                    let depth = self.depth.wrapping_add(1);
                    *levels.get_mut(depth)? = Level {
                        more,
                        ..Level::once(element)
                    };
                    levels.get_mut(self.depth)?.op = field.wrapping_add(1) as u16;
                    self.depth = depth;
                    self.cursor.go(ahead);
                    self.op = element.into();
                    return Some(false);
                }
                self.cursor.go(ahead);
            }
            Op::Tags { before, last, .. } => {
                let ([0], ahead) = self.cursor.take_after(before)? else {
                    return None;
                };
                self.cursor.go(ahead);
                ends = last;
            }
            Op::End { before } => {
                self.cursor.go(self.cursor.after(before.into())?);
                ends = true;
            }
            Op::Int8 { .. }
            | Op::Uint16 { .. }
            | Op::Int64 { .. }
            | Op::Uuid { .. }
            | Op::Skipped { .. }
            | Op::Array { .. }
            | Op::NullableStruct { .. }
            | Op::Struct { .. } => return None,
        }
        self.op = field.wrapping_add(1);
        Some(ends)
    }

    /// A length or count, 0 where null, and what is behind it.
    #[inline(always)]
    fn length(&self, before: u8, length: Length) -> Option<(u32, Cursor<'a>)> {
        let (n, ahead) = match length.is_compact() {
            true => {
                let (n, ahead) = self.cursor.uvarint_after(before)?;
                (n.checked_sub(1), ahead)
            }
            false => {
                let (n, ahead) = self.cursor.after(before.into())?.length(length)?;
                (u32::try_from(n).ok(), ahead)
            }
        };
        match n {
            Some(n) => Some((n, ahead)),
            None => length.is_nullable().then_some((0, ahead)),
        }
    }

    /// A struct ends: goes on to the next element, or to what is around. `None` where that is plain,
    /// else whether it was the message.
    #[inline(always)]
    fn end(
        &mut self,
        levels: &mut [Level; MAX_DEPTH],
        on: &mut impl FnMut(Event<'_>),
    ) -> Option<bool> {
        let level = levels.get_mut(self.depth)?;
        let (field, role, at) = (level.field, level.role, self.cursor.at());
        if let Some(more) = level.more.checked_sub(1) {
            level.more = more;
            self.op = level.first.into();
            if let Some(role) = role {
                on(Event::new(field, role, at, 0, Value::Element));
            }
            return None;
        }
        if let Some(role) = role {
            on(Event::new(field, role, at, 0, Value::End));
        }
        let Some(depth) = self.depth.checked_sub(1) else {
            return Some(true);
        };
        self.depth = depth;
        let outer = levels.get(depth)?;
        self.op = outer.op.into();
        outer.tag.then_some(false)
    }
}
