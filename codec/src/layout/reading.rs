//! Reads one input: what is plain in a loop of its own, all else step by step.

use super::cursor::{Cursor, MAX_VARINT};
use super::plain::Plain;
use super::state::{Bytes, Level, Region};
use super::table::{Length, Op, Tag};
use super::walker::Walker;
use super::{Event, Fault, FieldId, Role, Value, WalkError};

/// Why reading stops for now or for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// The bytes at hand end.
    Cut,
    /// The bytes do not fit the layout at this offset.
    Failed(Fault, u32),
}

impl Fault {
    fn at(self, at: u32) -> Halt {
        Halt::Failed(self, at)
    }
}

type On<'o> = &'o mut dyn FnMut(Event<'_>);

/// A walker at work on one input.
pub(super) struct Reading<'w, 'a> {
    walker: &'w mut Walker,
    input: &'a [u8],
    /// The walk's offset of the input's first byte.
    start: u32,
    cursor: Cursor<'a>,
    /// The next op.
    op: u16,
    /// The op that the last step began with.
    stepped: u16,
}

/// Where an input ended, after so many bytes.
pub(super) enum End {
    /// With the message, or before the input did.
    Done(usize),
    /// Before a scalar that is not there whole, or amid what need not be.
    Cut(usize),
}

impl<'w, 'a> Reading<'w, 'a> {
    /// Reads `input`, which begins where `walker` stands, up to the first scalar that is not there
    /// whole.
    pub(super) fn read(
        walker: &'w mut Walker,
        input: &'a [u8],
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<End, WalkError> {
        let reading = Self::new(walker, input);
        reading.go_on(false, on)
    }

    /// The same for the first input, where `plain` came to a stop.
    pub(super) fn read_on(
        walker: &'w mut Walker,
        input: &'a [u8],
        plain: Plain<'a>,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<End, WalkError> {
        let mut reading = Self::new(walker, input);
        reading.take(plain);
        reading.go_on(false, on)
    }

    fn go_on(
        mut self,
        mut is_plain: bool,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<End, WalkError> {
        let end = loop {
            if is_plain && self.plain(on) {
                break Ok(());
            }
            match self.step(on) {
                Ok(false) => is_plain = self.is_plain(),
                Ok(true) => break Ok(()),
                Err(halt) => break Err(halt),
            }
        };
        self.finish(end)
    }

    /// Reads what is plain. `true` where the message has been read.
    fn plain(&mut self, on: &mut impl FnMut(Event<'_>)) -> bool {
        let mut plain = Plain {
            cursor: self.cursor,
            op: self.op.into(),
            depth: self.walker.depth.into(),
        };
        let is_done = plain.run(self.walker.table, &mut self.walker.levels, on);
        self.take(plain);
        is_done
    }

    /// Goes on where `plain` stands.
    fn take(&mut self, plain: Plain<'a>) {
        self.cursor = plain.cursor;
        self.op = plain.op as u16;
        self.walker.depth = plain.depth as u8;
    }

    /// The same for a few bytes, without the haste.
    pub(super) fn read_slowly(
        walker: &'w mut Walker,
        input: &'a [u8],
        on: On<'_>,
    ) -> Result<End, WalkError> {
        let mut reading = Self::new(walker, input);
        let end = loop {
            match reading.step(on) {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(halt) => break Err(halt),
            }
        };
        reading.finish(end)
    }

    fn new(walker: &'w mut Walker, input: &'a [u8]) -> Self {
        let (start, depth) = (walker.at, usize::from(walker.depth));
        Self {
            cursor: Cursor::new(input, start, walker.limit),
            op: walker.levels.get(depth).map_or(0, |level| level.op),
            stepped: 0,
            walker,
            input,
            start,
        }
    }

    /// Whether [`Reading::plain`] may go on after a step.
    fn is_plain(&self) -> bool {
        let walker = &self.walker;
        let level = walker.levels.get(usize::from(walker.depth));
        !walker.passed && !walker.in_tags && level.is_some_and(|level| !level.tag)
    }

    fn finish(self, end: Result<(), Halt>) -> Result<End, WalkError> {
        let at = self.cursor.at();
        let used = at.wrapping_sub(self.start) as usize;
        match end {
            Ok(()) => {
                self.walker.region = Region::Done;
                self.walker.at = at;
                Ok(End::Done(used))
            }
            Err(halt) => {
                self.stop(halt)?;
                Ok(End::Cut(used))
            }
        }
    }

    #[cold]
    fn stop(self, halt: Halt) -> Result<(), WalkError> {
        let at = self.cursor.at();
        let failed = |fault, at| WalkError {
            fault,
            at,
            field: FieldId(self.stepped),
        };
        match halt {
            Halt::Failed(fault, at) => return Err(failed(fault, at)),
            // What does not fit before the limit never comes.
            Halt::Cut if self.cursor.end() == self.walker.limit => {
                return Err(failed(Fault::Short, at));
            }
            Halt::Cut => {}
        }
        let depth = usize::from(self.walker.depth);
        if let Some(level) = self.walker.levels.get_mut(depth) {
            level.op = self.op;
        }
        self.walker.at = at;
        Ok(())
    }

    /// Reads the rest of what an input was too short for, or an op, whatever it is. `true` where the
    /// message has been read.
    #[cold]
    #[inline(never)]
    fn step(&mut self, on: On<'_>) -> Result<bool, Halt> {
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

    /// Reads the tagged fields of `op` up to the next known one, into which it goes, or to their end:
    /// then it is `true`.
    fn tags<'t>(
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
    fn told_struct(&mut self, field: u16, first: u16, on: On<'_>) -> Result<(), Halt> {
        let at = self.cursor.at();
        on(Event::new(field, Role::Other, at, 0, Value::Struct));
        self.enter(Level {
            field,
            role: Some(Role::Other),
            ..Level::once(first)
        })
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
            on(Event::new(field, role, self.cursor.at(), 0, value));
        }
    }

    /// Fails unless `count` elements of `size` bytes each fit, which take the bytes that it returns.
    /// The count is at `at`.
    fn elements(&self, at: u32, count: u32, size: u16) -> Result<u32, Halt> {
        let room = self.walker.limit.saturating_sub(self.cursor.at());
        let bytes = u64::from(count).saturating_mul(size.into());
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= room => Ok(bytes),
            _ => Err(Fault::Count(count).at(at)),
        }
    }

    /// Fails unless `n` bytes can still come before the limit.
    fn holds(&self, n: u32) -> Result<(), Halt> {
        let at = self.cursor.at();
        if n > self.walker.limit.saturating_sub(at) {
            return Err(Fault::Short.at(at));
        }
        Ok(())
    }

    /// The innermost level.
    fn level(&mut self) -> Result<&mut Level, Halt> {
        let broken = self.broken();
        let depth = usize::from(self.walker.depth);
        self.walker.levels.get_mut(depth).ok_or(broken)
    }

    /// The table refers to what is not there.
    fn broken(&self) -> Halt {
        Fault::Table.at(self.cursor.at())
    }

    /// Reads `inner` next, then what comes next here.
    fn enter(&mut self, inner: Level) -> Result<(), Halt> {
        self.level()?.op = self.op;
        self.op = inner.first;
        self.walker.depth = self.walker.depth.saturating_add(1);
        *self.level()? = inner;
        Ok(())
    }

    /// A struct ends: goes on to the next element, or to what is around. `true` where that is all.
    fn end(&mut self, on: On<'_>) -> Result<bool, Halt> {
        let at = self.cursor.at();
        let level = self.level()?;
        let Level {
            field, role, tag, ..
        } = *level;
        if let Some(more) = level.more.checked_sub(1) {
            level.more = more;
            self.op = level.first;
            if let Some(role) = role {
                on(Event::new(field, role, at, 0, Value::Element));
            }
            return Ok(false);
        }
        if let Some(role) = role {
            on(Event::new(field, role, at, 0, Value::End));
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

    /// Goes `n` bytes forward, past what is at hand if need be.
    fn pass(&mut self, n: u32) -> Result<(), Halt> {
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
            on(Event::new(field, role, bytes.at, width.into(), value));
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
        on(Event::new(field, role, at, width, value));
    }

    /// Tells what the length, count or size says that stands from `from` to here.
    fn tell_prefix(&self, field: u16, role: Role, from: u32, value: Value<'_>, on: On<'_>) {
        let at = self.cursor.at();
        on(Event::new(field, role, at, at.wrapping_sub(from), value));
    }
}

/// Why there is no varint at `cursor`.
fn varint_cut(cursor: Cursor<'_>) -> Halt {
    if cursor.len() < MAX_VARINT {
        return Halt::Cut;
    }
    Fault::Varint.at(cursor.at())
}
