//! What stands inside what, as a step goes into it and out of it: structs, elements of arrays, tagged
//! fields.

use super::cursor::Cursor;
use super::reading::{Halt, On, Reading};
use super::state::Level;
use super::step::varint_cut;
use super::table::Tag;
use super::{Event, Fault, Role, Value};

impl<'a> Reading<'_, 'a> {
    /// Reads the tagged fields of `op` up to the next known one, into which it goes, or to their end:
    /// then it is `true`.
    pub(super) fn tags<'t>(
        &mut self,
        op: u16,
        known: impl Iterator<Item = &'t Tag> + Clone,
        on: On<'_>,
    ) -> Result<bool, Halt> {
        self.op = op;
        self.walker.in_tags = true;
        while self.level()?.tags > 0 {
            // All or nothing, since nothing would remember the number.
            let ahead = self.cursor;
            let (number, ahead) = ahead.uvarint().ok_or_else(|| varint_cut(ahead))?;
            let size_at = ahead.at();
            let (size, ahead) = ahead.uvarint().ok_or_else(|| varint_cut(ahead))?;
            self.cursor = ahead;
            let level = self.level()?;
            level.tags = level.tags.saturating_sub(1);
            if let Some(tag) = known.clone().find(|tag| tag.number == number) {
                self.tag(tag, size_at, size, on)?;
                return Ok(false);
            }
            if self.walker.table.fields.is_some() {
                self.holds(size)?;
                let value = Value::UnknownTag(number, size);
                self.tell_prefix(op, Role::Other, size_at, value, on);
            }
            self.pass(size)?;
        }
        self.walker.in_tags = false;
        self.op = op.wrapping_add(1);
        Ok(true)
    }

    /// Goes into a tagged field behind its size.
    fn tag(&mut self, tag: &Tag, size_at: u32, size: u32, on: On<'_>) -> Result<(), Halt> {
        self.holds(size)?;
        let value = Value::TagSize(size);
        self.tell_prefix(tag.first, Role::TagSize, size_at, value, on);
        self.enter(Level {
            tag: true,
            ..Level::once(tag.first)
        })?;
        let at = self.cursor.at();
        let limit = at.saturating_add(size);
        let broken = self.broken();
        let depth = usize::from(self.walker.depth);
        let outer_limit = self.walker.outer_limits.get_mut(depth).ok_or(broken)?;
        *outer_limit = std::mem::replace(&mut self.walker.limit, limit);
        self.walker.in_tags = false;
        self.cursor = self.cursor_at(at, limit);
        Ok(())
    }

    /// A struct that is told of: of its begin here, of its end when it comes.
    pub(super) fn told_struct(&mut self, field: u16, first: u16, on: On<'_>) -> Result<(), Halt> {
        let at = self.cursor.at();
        on.hear(Event::new(field, Role::Other, at, 0, Value::Struct));
        self.enter(Level {
            field,
            role: Some(Role::Other),
            ..Level::once(first)
        })
    }

    /// The innermost level.
    pub(super) fn level(&mut self) -> Result<&mut Level, Halt> {
        let broken = self.broken();
        let depth = usize::from(self.walker.depth);
        self.walker.levels.get_mut(depth).ok_or(broken)
    }

    /// The table refers to what is not there.
    pub(super) fn broken(&self) -> Halt {
        Fault::Table.at(self.cursor.at())
    }

    /// Reads `inner` next, then what comes next here.
    pub(super) fn enter(&mut self, inner: Level) -> Result<(), Halt> {
        self.level()?.op = self.op;
        self.op = inner.first;
        self.walker.depth = self.walker.depth.saturating_add(1);
        *self.level()? = inner;
        Ok(())
    }

    /// A struct ends: goes on to the next element, or to what is around. `true` where that is all.
    pub(super) fn end(&mut self, on: On<'_>) -> Result<bool, Halt> {
        let at = self.cursor.at();
        let level = self.level()?;
        let Level {
            field, role, tag, ..
        } = *level;
        if let Some(more) = level.more.checked_sub(1) {
            level.more = more;
            self.op = level.first;
            if let Some(role) = role {
                on.hear(Event::new(field, role, at, 0, Value::Element));
            }
            return Ok(false);
        }
        if let Some(role) = role {
            on.hear(Event::new(field, role, at, 0, Value::End));
        }
        if tag {
            self.leave_tag(at)?;
        }
        let Some(depth) = self.walker.depth.checked_sub(1) else {
            return Ok(true);
        };
        self.walker.depth = depth;
        self.op = self.level()?.op;
        Ok(false)
    }

    /// The content of a tagged field has ended at `at`: goes on to the next one.
    fn leave_tag(&mut self, at: u32) -> Result<(), Halt> {
        if at != self.walker.limit {
            return Err(Fault::TagSize.at(at));
        }
        let depth = usize::from(self.walker.depth);
        let outer_limit = self.walker.outer_limits.get(depth);
        self.walker.limit = *outer_limit.ok_or(self.broken())?;
        self.walker.in_tags = true;
        self.cursor = self.cursor_at(at, self.walker.limit);
        Ok(())
    }

    /// The cursor at offset `at` of the walk, blind from offset `limit` on.
    fn cursor_at(&self, at: u32, limit: u32) -> Cursor<'a> {
        let from = at.saturating_sub(self.start) as usize;
        Cursor::new(self.input.get(from..).unwrap_or_default(), at, limit)
    }
}
