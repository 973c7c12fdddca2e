//! The loop that reads what is plain: fields that are at hand whole, no tagged fields.
//!
//! Nearly all that passes is read here, so this loop decides what looking at a message costs. It
//! holds no more than fits in registers, and leaves whatever is rare or incomplete to
//! [`Reading::step`](super::reading::Reading), which reads every op there is. The trap: the two must tell the same.

use super::cursor::Cursor;
use super::state::Level;
use super::table::{Op, Table};
use super::walker::MAX_DEPTH;
use super::{Event, Listener, Root, Value};
use crate::generated::straight;

/// Where the loop stands.
pub(crate) struct Plain<'a> {
    pub(super) cursor: Cursor<'a>,
    /// The next op.
    pub(super) op: usize,
    /// The innermost level.
    pub(super) depth: usize,
}

impl<'a> Plain<'a> {
    /// At the start of a message of `len` bytes, of which the first are at hand.
    #[inline(always)]
    pub(super) fn begin(root: Root, len: u32, bytes: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(bytes, 0, len),
            op: root.first.into(),
            depth: 0,
        }
    }

    /// Reads ops up to one that is not plain, or to the content of a tagged field. `true` where the
    /// message has been read.
    // (not inlined, lest it share registers with what is rare, and on a copy, lest it stay in memory)
    #[inline(never)]
    pub(super) fn run(
        &mut self,
        table: &Table,
        levels: &mut [Level; MAX_DEPTH],
        on: &mut impl Listener,
    ) -> bool {
        let mut plain = Plain { ..*self };
        let mut is_done = false;
        while let Some(op) = table.ops.get(plain.op)
            && let Some(ends) = plain.read(op, table, levels, on)
        {
            if ends && let Some(done) = plain.end(levels, on) {
                is_done = done;
                break;
            }
        }
        *self = plain;
        is_done
    }

    /// Reads an op. `None` where it is not plain: then it is not read; else whether its struct ends.
    #[inline(always)]
    fn read(
        &mut self,
        op: &Op,
        table: &Table,
        levels: &mut [Level; MAX_DEPTH],
        on: &mut impl Listener,
    ) -> Option<bool> {
        let field = self.op;
        let mut ends = false;
        match *op {
            Op::Int16 { before, role } => {
                let (value, ahead) = self.cursor.take_after(before)?;
                self.cursor.go(ahead);
                let value = Value::Int(i16::from_be_bytes(*value).into());
                let at = ahead.at().wrapping_sub(2);
                on.hear(Event::new(field as u16, role, at, 2, value));
            }
            Op::Int32 { before, role } => {
                let (value, ahead) = self.cursor.take_after(before)?;
                self.cursor.go(ahead);
                let value = Value::Int(i32::from_be_bytes(*value).into());
                let at = ahead.at().wrapping_sub(4);
                on.hear(Event::new(field as u16, role, at, 4, value));
            }
            Op::Unread {
                before,
                length,
                size,
            } => {
                let (n, ahead) = self.cursor.count_after(before, length)?;
                let bytes = u64::from(n).wrapping_mul(size.into());
                self.cursor.go(ahead.after(usize::try_from(bytes).ok()?)?);
            }
            Op::Bytes {
                before,
                role,
                length,
            } => {
                let (n, ahead) = self.cursor.count_after(before, length)?;
                let (piece, behind) = ahead.split(n as usize)?;
                if piece.is_empty() {
                    return None; // or null
                }
                let from = self.cursor.at().wrapping_add(before.into());
                let (at, width) = (ahead.at(), ahead.at().wrapping_sub(from));
                self.cursor.go(behind);
                let value = Value::Piece(piece, 0);
                on.hear(Event::new(field as u16, role, at, width, value));
            }
            Op::Skipped {
                before,
                role,
                length,
            } => {
                let (n, ahead) = self.cursor.count_after(before, length)?;
                let behind = ahead.after(n as usize)?;
                match n {
                    0 if table.fields.is_some() => return None, // or null
                    0 => {}
                    _ => {
                        let from = self.cursor.at().wrapping_add(before.into());
                        let (at, width) = (ahead.at(), ahead.at().wrapping_sub(from));
                        on.hear(Event::new(field as u16, role, at, width, Value::Skipped(n)));
                    }
                }
                self.cursor.go(behind);
            }
            Op::Array {
                before,
                role: None,
                length,
                element,
                min,
            } => {
                let (count, ahead) = self.cursor.count_after(before, length)?;
                let Some(more) = count.checked_sub(1) else {
                    self.cursor.go(ahead);
                    self.op = field.wrapping_add(1);
                    return Some(false);
                };
                let least = u64::from(count).wrapping_mul(min.get().into());
                if least > ahead.len() as u64 {
                    return None;
                }
                let depth = self.depth.wrapping_add(1);
                levels.get_mut(self.depth)?.op = field.wrapping_add(1) as u16;
                let level = levels.get_mut(depth)?;
                let mut inner = Level {
                    more,
                    ..Level::once(element)
                };
                let mut next = usize::from(element);
                match table.ops.get(next) {
                    Some(Op::Row { row }) => {
                        *level = inner;
                        let mut plain = Plain {
                            cursor: ahead,
                            op: next,
                            depth,
                        };
                        if let Some(ends) = plain.straight(table, levels, on) {
                            *self = plain;
                            return Some(ends);
                        }
                        next = next.wrapping_add(1);
                        if self.rows(*row, ahead, &mut inner.more, next, table, on)? {
                            self.op = field.wrapping_add(1);
                            return Some(false);
                        }
                    }
                    _ => self.cursor.go(ahead),
                }
                *levels.get_mut(depth)? = inner;
                self.depth = depth;
                self.op = next;
                return Some(false);
            }
            Op::Tags { before, last, .. } => {
                let ([0], ahead) = self.cursor.take_after(before)? else {
                    return None;
                };
                self.cursor.go(ahead);
                ends = last;
            }
            Op::Row { row } => {
                if let Some(ends) = self.straight(table, levels, on) {
                    return Some(ends);
                }
                let more = &mut levels.get_mut(self.depth)?.more;
                let first = field.wrapping_add(1);
                ends = self.rows(row, self.cursor, more, first, table, on)?;
            }
            Op::End { before } => {
                self.cursor.go(self.cursor.after(before.into())?);
                ends = true;
            }
            Op::Int8 { .. }
            | Op::Uint16 { .. }
            | Op::Int64 { .. }
            | Op::Uuid { .. }
            | Op::Array { .. }
            | Op::NullableStruct { .. }
            | Op::Struct { .. } => return None,
        }
        self.op = field.wrapping_add(1);
        Some(ends)
    }

    /// Reads the elements that begin here by code made for them. `None` where there is none, else whether
    /// the last one ends.
    #[inline(always)]
    fn straight(
        &mut self,
        table: &Table,
        levels: &mut [Level; MAX_DEPTH],
        on: &mut impl Listener,
    ) -> Option<bool> {
        if !table.is_hot() {
            return None;
        }
        // (on a copy, for the same reason)
        let mut plain = Plain { ..*self };
        let ends = straight::elements(plain.op as u16, &mut plain, levels, on)?;
        *self = plain;
        Some(ends)
    }

    /// Reads rows at `from`, of which `more` follow the first and whose first field has the op `first`,
    /// as long as they are plain. Whether that was all; else `more` follow the one that is not.
    #[inline(always)]
    fn rows(
        &mut self,
        row: u16,
        from: Cursor<'a>,
        more: &mut u32,
        first: usize,
        table: &Table,
        on: &mut impl Listener,
    ) -> Option<bool> {
        let row = table.rows.get(usize::from(row))?;
        let mut left = more.wrapping_add(1);
        let behind = row.read_all(from.rest(), from.end(), &mut left, first as u16, on);
        self.cursor = from.at_rest(behind);
        *more = left.saturating_sub(1);
        Some(left == 0)
    }

    /// A struct ends: goes on to the next element, or to what is around. `None` where that is plain,
    /// else whether it was the message.
    #[inline(always)]
    fn end(&mut self, levels: &mut [Level; MAX_DEPTH], on: &mut impl Listener) -> Option<bool> {
        let level = levels.get_mut(self.depth)?;
        let (field, role, at) = (level.field, level.role, self.cursor.at());
        if let Some(more) = level.more.checked_sub(1) {
            level.more = more;
            self.op = level.first.into();
            if let Some(role) = role {
                on.hear(Event::new(field, role, at, 0, Value::Element));
            }
            return None;
        }
        if let Some(role) = role {
            on.hear(Event::new(field, role, at, 0, Value::End));
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
