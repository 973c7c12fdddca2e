//! Reads what is not plain, one op at a time: whatever is rare, and whatever is not at hand whole.
//!
//! The trap: [`Plain`](super::plain::Plain) and this must tell the same.

use super::cursor::{Cursor, MAX_VARINT};
use super::reading::{Halt, On, Reading};
use super::state::{Bytes, Level, Region};
use super::table::{Length, Op};
use super::{Event, Fault, Role, Value};

impl<'a> Reading<'_, 'a> {
    /// Reads the rest of what an input was too short for, or an op, whatever it is. `true` where the
    /// message has been read.
    #[cold]
    #[inline(never)]
    pub(super) fn step(&mut self, on: On<'_>) -> Result<bool, Halt> {
        self.stepped = self.op;
        match std::mem::replace(&mut self.walker.region, Region::None) {
            Region::None => {}
            Region::Done => return Ok(true),
            Region::Skip(left) => return self.pass(left).map(|()| false),
            Region::Bytes(bytes) => return self.tell(bytes, on).map(|()| false),
        }
        let op = self.walker.table.ops.get(usize::from(self.op));
        let mut op = *op.ok_or(self.broken())?;
        if std::mem::take(&mut self.walker.passed) {
            op = op.after(0);
        }
        let field = self.op;
        self.op = field.wrapping_add(1);
        match op {
            Op::Int8 { before, role } => {
                let value = i8::from_be_bytes(*self.scalar(before)?);
                self.tell_scalar(field, role, 1, Value::Int(value.into()), on);
            }
            Op::Int16 { before, role } => {
                let value = i16::from_be_bytes(*self.scalar(before)?);
                self.tell_scalar(field, role, 2, Value::Int(value.into()), on);
            }
            Op::Uint16 { before, role } => {
                let value = u16::from_be_bytes(*self.scalar(before)?);
                self.tell_scalar(field, role, 2, Value::Int(value.into()), on);
            }
            Op::Int32 { before, role } => {
                let value = i32::from_be_bytes(*self.scalar(before)?);
                self.tell_scalar(field, role, 4, Value::Int(value.into()), on);
            }
            Op::Int64 { before, role } => {
                let value = i64::from_be_bytes(*self.scalar(before)?);
                self.tell_scalar(field, role, 8, Value::Int(value), on);
            }
            Op::Uuid { before, role } => {
                let uuid = self.scalar::<16>(before)?;
                self.tell_scalar(field, role, 16, Value::Piece(uuid, 0), on);
            }
            Op::Unread {
                before,
                length,
                size,
            } => {
                let (from, n) = self.length(before, length)?;
                let bytes = match size {
                    1 => n.unwrap_or(0),
                    _ => self.elements(from, n.unwrap_or(0), size)?,
                };
                self.pass(bytes)?;
            }
            Op::Bytes {
                before,
                role,
                length,
            } => {
                let (from, n) = self.length(before, length)?;
                match n {
                    None => self.tell_prefix(field, role, from, Value::Null, on),
                    Some(left) => {
                        let at = self.cursor.at();
                        let bytes = Bytes {
                            field,
                            role,
                            width: at.wrapping_sub(from) as u8,
                            at,
                            left,
                        };
                        self.tell(bytes, on)?;
                    }
                }
            }
            Op::Skipped {
                before,
                role,
                length,
            } => {
                let (from, n) = self.length(before, length)?;
                self.holds(n.unwrap_or(0))?;
                if n.unwrap_or(0) > 0 || self.walker.table.fields.is_some() {
                    let value = n.map_or(Value::Null, Value::Skipped);
                    self.tell_prefix(field, role, from, value, on);
                }
                self.pass(n.unwrap_or(0))?;
            }
            Op::Array {
                before,
                role,
                length,
                element,
                min,
            } => {
                let (from, count) = self.length(before, length)?;
                self.elements(from, count.unwrap_or(0), min.get())?;
                if let Some(role) = role {
                    self.tell_array(field, role, from, count, on);
                }
                if let Some(more) = count.unwrap_or(0).checked_sub(1) {
                    self.enter(Level {
                        more,
                        field,
                        role,
                        ..Level::once(element)
                    })?;
                }
            }
            Op::NullableStruct {
                before,
                told,
                first,
            } => {
                let [marker] = *self.scalar(before)?;
                // Null is any negative byte.
                let is_null = marker >= 0x80;
                match (told, is_null) {
                    (true, true) => {
                        let from = self.cursor.at().wrapping_sub(1);
                        self.tell_prefix(field, Role::Other, from, Value::Null, on);
                    }
                    (true, false) => self.told_struct(field, first, on)?,
                    (false, true) => {}
                    (false, false) => self.enter(Level::once(first))?,
                }
            }
            Op::Struct { first } => self.told_struct(field, first, on)?,
            Op::Tags {
                before,
                first,
                count,
                last,
            } => {
                let tags = self.walker.table.tags;
                let known = tags.iter().skip(first.into()).take(count.into());
                if !self.walker.in_tags {
                    self.tag_count(before)?;
                }
                if self.tags(field, known, on)? && last {
                    return self.end(on);
                }
            }
            Op::Row { .. } => {}
            Op::End { before } => {
                let [] = *self.scalar(before)?;
                return self.end(on);
            }
        }
        Ok(false)
    }

    /// The `N` bytes behind the `before` bytes before them, all or nothing.
    fn scalar<const N: usize>(&mut self, before: u8) -> Result<&'a [u8; N], Halt> {
        let ahead = self.cursor.after(before.into());
        match ahead.and_then(Cursor::take) {
            Some((taken, ahead)) => {
                self.cursor = ahead;
                Ok(taken)
            }
            None => Err(self.cut(before, false)),
        }
    }

    /// A length or count and where it begins; `None` for null.
    fn length(&mut self, before: u8, length: Length) -> Result<(u32, Option<u32>), Halt> {
        if let Some(ahead) = self.cursor.after(before.into()) {
            let from = ahead.at();
            if let Some((n, ahead)) = ahead.length(length) {
                self.cursor = ahead;
                return match u32::try_from(n) {
                    Ok(n) => Ok((from, Some(n))),
                    Err(_) if length.is_nullable() => Ok((from, None)),
                    Err(_) => Err(Fault::Null.at(from)),
                };
            }
        }
        Err(self.cut(before, length.is_compact()))
    }

    /// Reads how many tagged fields there are.
    fn tag_count(&mut self, before: u8) -> Result<(), Halt> {
        if let Some(ahead) = self.cursor.after(before.into()) {
            let from = ahead.at();
            if let Some((count, ahead)) = ahead.uvarint() {
                self.cursor = ahead;
                // Each has a tag and a size, both of a byte at least.
                self.elements(from, count, 2)?;
                self.level()?.tags = count;
                return Ok(());
            }
        }
        Err(self.cut(before, true))
    }

    /// Tells of an array whose count stands from `from` to here, and where its first element begins.
    fn tell_array(&self, field: u16, role: Role, from: u32, count: Option<u32>, on: On<'_>) {
        let value = count.map_or(Value::Null, Value::Count);
        self.tell_prefix(field, role, from, value, on);
        if let Some(count) = count {
            let value = match count {
                0 => Value::End,
                _ => Value::Element,
            };
            on.hear(Event::new(field, role, self.cursor.at(), 0, value));
        }
    }

    /// Fails unless `count` elements of `size` bytes each fit, which take the bytes that it returns.
    /// The count is at `at`.
    pub(super) fn elements(&self, at: u32, count: u32, size: u16) -> Result<u32, Halt> {
        let room = self.walker.limit.saturating_sub(self.cursor.at());
        let bytes = u64::from(count).saturating_mul(size.into());
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= room => Ok(bytes),
            _ => Err(Fault::Count(count).at(at)),
        }
    }

    /// Fails unless `n` bytes can still come before the limit.
    pub(super) fn holds(&self, n: u32) -> Result<(), Halt> {
        let at = self.cursor.at();
        if n > self.walker.limit.saturating_sub(at) {
            return Err(Fault::Short.at(at));
        }
        Ok(())
    }

    /// Goes `n` bytes forward, past what is at hand if need be.
    pub(super) fn pass(&mut self, n: u32) -> Result<(), Halt> {
        self.holds(n)?;
        let passed = self.cursor.take_up_to(n).len() as u32;
        if passed == n {
            return Ok(());
        }
        self.walker.region = Region::Skip(n.saturating_sub(passed));
        Err(Halt::Cut)
    }

    /// What the op, which has `before` bytes before it, begins with is not at hand whole. Those bytes
    /// are passed on their own, so that nobody need show them, and the op is read again.
    fn cut(&mut self, before: u8, is_varint: bool) -> Halt {
        self.op = self.op.wrapping_sub(1);
        self.walker.passed = true;
        match self.pass(before.into()) {
            Ok(()) if is_varint => varint_cut(self.cursor),
            Ok(()) => Halt::Cut,
            Err(halt) => halt,
        }
    }

    /// Tells what is at hand of `bytes`.
    fn tell(&mut self, bytes: Bytes, on: On<'_>) -> Result<(), Halt> {
        self.holds(bytes.left)?;
        let piece = self.cursor.take_up_to(bytes.left);
        let left = bytes.left.saturating_sub(piece.len() as u32);
        if !piece.is_empty() || left == 0 {
            let value = Value::Piece(piece, left);
            let Bytes {
                field, role, width, ..
            } = bytes;
            on.hear(Event::new(field, role, bytes.at, width.into(), value));
        }
        if left == 0 {
            return Ok(());
        }
        self.walker.region = Region::Bytes(Bytes { left, ..bytes });
        Err(Halt::Cut)
    }

    /// Tells of the value of `width` bytes before here.
    fn tell_scalar(&self, field: u16, role: Role, width: u32, value: Value<'_>, on: On<'_>) {
        let at = self.cursor.at().wrapping_sub(width);
        on.hear(Event::new(field, role, at, width, value));
    }

    /// Tells what the length, count or size says that stands from `from` to here.
    pub(super) fn tell_prefix(
        &self,
        field: u16,
        role: Role,
        from: u32,
        value: Value<'_>,
        on: On<'_>,
    ) {
        let at = self.cursor.at();
        on.hear(Event::new(field, role, at, at.wrapping_sub(from), value));
    }
}

/// Why there is no varint at `cursor`.
pub(super) fn varint_cut(cursor: Cursor<'_>) -> Halt {
    if cursor.len() < MAX_VARINT {
        return Halt::Cut;
    }
    Fault::Varint.at(cursor.at())
}
