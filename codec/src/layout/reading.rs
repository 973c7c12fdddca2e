//! The loop that reads bytes op by op, over one input.
//!
//! Its parts are inlined into one function on purpose: what is read next depends on what was read
//! last, so where the walk stands must stay in registers.

use super::cursor::{Cursor, Halt};
use super::state::{Bytes, Level, Region};
use super::table::{Length, Op, Tag};
use super::walker::Walker;
use super::{Event, Role, Value, WalkError};

/// A walker at work on one input.
pub(super) struct Reading<'w, 'a> {
    walker: &'w mut Walker,
    input: &'a [u8],
    /// The walk's offset of the input's first byte.
    start: u32,
    cursor: Cursor<'a>,
    level: Level,
}

impl<'w, 'a> Reading<'w, 'a> {
    /// Reads `input`, which begins where `walker` stands, up to the first scalar that is not there
    /// whole. Returns how many bytes it used.
    pub(super) fn read(
        walker: &'w mut Walker,
        input: &'a [u8],
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<usize, WalkError> {
        let (start, level) = (walker.at, walker.level);
        let mut reading = Self {
            cursor: Cursor::new(input, start, start, level.limit),
            walker,
            input,
            start,
            level,
        };
        let at = match reading.region(on).and_then(|()| reading.ops(on)) {
            Ok(()) => {
                reading.walker.region = Region::Done;
                reading.cursor.at()
            }
            Err(Halt::Failed(error)) => return Err(error),
            Err(Halt::Cut) => {
                let at = reading.cursor.at();
                // What does not fit before the limit never comes.
                if reading.cursor.end() == reading.level.limit {
                    return Err(WalkError::Short { at });
                }
                at
            }
        };
        reading.walker.level = reading.level;
        reading.walker.at = at;
        Ok(at.wrapping_sub(start) as usize)
    }

    /// Goes on with what the last input was too short for.
    #[inline(always)]
    fn region(&mut self, on: &mut impl FnMut(Event<'_>)) -> Result<(), Halt> {
        match std::mem::replace(&mut self.walker.region, Region::None) {
            Region::None | Region::Done => Ok(()),
            Region::Skip(left) => self.pass(left),
            Region::Bytes(bytes) => self.tell(bytes, on),
        }
    }

    /// Reads ops until the message is done.
    #[inline(always)]
    fn ops(&mut self, on: &mut impl FnMut(Event<'_>)) -> Result<(), Halt> {
        let ops = self.walker.table.ops;
        let tags = self.walker.table.tags;
        loop {
            let at = self.cursor.at();
            let field = self.level.op;
            let op = ops.get(usize::from(field));
            match *op.ok_or(WalkError::Table)? {
                Op::Skip(n) => {
                    self.level.next_op();
                    self.pass(n.into())?;
                }
                Op::Int(role, int) => {
                    let value = self.cursor.int(int).ok_or(Halt::Cut)?;
                    self.level.next_op();
                    on(Event::new(field, role, at, int.width(), Value::Int(value)));
                }
                Op::Uuid(role) => {
                    let uuid = self.cursor.take::<16>().ok_or(Halt::Cut)?;
                    self.level.next_op();
                    on(Event::new(field, role, at, 16, Value::Piece(uuid, 0)));
                }
                Op::Bytes {
                    role,
                    length,
                    nullable,
                } => {
                    let left = self.length(length, nullable)?;
                    self.level.next_op();
                    match (left, role) {
                        (None, None) => {}
                        (None, Some(role)) => self.tell_prefix(field, role, at, Value::Null, on),
                        (Some(left), None) => self.pass(left)?,
                        (Some(left), Some(role)) => {
                            let start = self.cursor.at();
                            let bytes = Bytes {
                                field,
                                role,
                                width: start.wrapping_sub(at) as u8,
                                at: start,
                                left,
                            };
                            self.tell(bytes, on)?;
                        }
                    }
                }
                Op::Skipped {
                    role,
                    length,
                    nullable,
                } => {
                    let left = self.length(length, nullable)?;
                    self.level.next_op();
                    match left {
                        None => self.tell_prefix(field, role, at, Value::Null, on),
                        Some(left) => {
                            self.level.holds(self.cursor.at(), left)?;
                            self.tell_prefix(field, role, at, Value::Skipped(left), on);
                            self.pass(left)?;
                        }
                    }
                }
                Op::FixedArray {
                    length,
                    nullable,
                    size,
                } => {
                    let count = self.length(length, nullable)?.unwrap_or(0);
                    self.level.next_op();
                    let left = self.elements(at, count, size)?;
                    self.pass(left)?;
                }
                Op::Array {
                    role,
                    length,
                    nullable,
                    element,
                    min,
                } => {
                    let count = self.length(length, nullable)?;
                    self.level.next_op();
                    self.elements(at, count.unwrap_or(0), min.get())?;
                    if let Some(role) = role {
                        let value = count.map_or(Value::Null, Value::Count);
                        self.tell_prefix(field, role, at, value, on);
                        let at = self.cursor.at();
                        match count {
                            None => {}
                            Some(0) => on(Event::new(field, role, at, 0, Value::End)),
                            Some(_) => on(Event::new(field, role, at, 0, Value::Element)),
                        }
                    }
                    if let Some(more) = count.unwrap_or(0).checked_sub(1) {
                        let element = Level::once(element, self.level.limit);
                        self.enter(Level {
                            more,
                            field,
                            role,
                            ..element
                        })?;
                    }
                }
                Op::NullableStruct { told, first } => {
                    let [marker] = *self.cursor.take().ok_or(Halt::Cut)?;
                    self.level.next_op();
                    // Null is any negative byte.
                    let is_null = marker >= 0x80;
                    match (told, is_null) {
                        (true, true) => self.tell_prefix(field, Role::Other, at, Value::Null, on),
                        (true, false) => self.told_struct(field, first, on)?,
                        (false, true) => {}
                        (false, false) => self.enter(Level::once(first, self.level.limit))?,
                    }
                }
                Op::Struct { first } => {
                    self.level.next_op();
                    self.told_struct(field, first, on)?;
                }
                Op::Tags { first, count } => match self.level.tags {
                    0 => {
                        let fields = self.uvarint()?;
                        if fields == 0 {
                            self.level.next_op();
                            continue;
                        }
                        // Each has a tag and a size, both of a byte at least.
                        self.elements(at, fields, 2)?;
                        self.level.tags = fields.saturating_add(1);
                    }
                    1 => {
                        self.level.tags = 0;
                        self.level.next_op();
                    }
                    left => {
                        let known = tags.iter().skip(first.into()).take(count.into());
                        let (number, size_at, size) = self.tag_head()?;
                        self.level.tags = left.saturating_sub(1);
                        self.tag(known, number, size_at, size, on)?;
                    }
                },
                Op::End => {
                    if let Some(more) = self.level.more.checked_sub(1) {
                        self.level.more = more;
                        self.level.op = self.level.first;
                        if let Some(role) = self.level.role {
                            on(Event::new(self.level.field, role, at, 0, Value::Element));
                        }
                        continue;
                    }
                    if let Some(role) = self.level.role {
                        on(Event::new(self.level.field, role, at, 0, Value::End));
                    }
                    if self.level.tag && at != self.level.limit {
                        return Err(WalkError::TagSize { at }.into());
                    }
                    if !self.leave()? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The number of a tagged field, where its size stands, and its size: all or nothing, since
    /// nothing would remember the first of them.
    #[inline(always)]
    fn tag_head(&mut self) -> Result<(u32, u32, u32), Halt> {
        let mut ahead = self.cursor;
        let number = ahead.uvarint().ok_or_else(|| ahead.cut())?;
        let size_at = ahead.at();
        let size = ahead.uvarint().ok_or_else(|| ahead.cut())?;
        self.cursor = ahead;
        Ok((number, size_at, size))
    }

    /// A tagged field behind its size: a known one is read by its layout, another is skipped.
    #[inline(always)]
    fn tag<'t>(
        &mut self,
        mut known: impl Iterator<Item = &'t Tag>,
        number: u32,
        size_at: u32,
        size: u32,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Halt> {
        let at = self.cursor.at();
        let Some(tag) = known.find(|tag| tag.number == number) else {
            if self.walker.table.fields.is_some() {
                self.level.holds(at, size)?;
                let (field, value) = (self.level.op, Value::UnknownTag(number, size));
                self.tell_prefix(field, Role::Other, size_at, value, on);
            }
            return self.pass(size);
        };
        self.level.holds(at, size)?;
        let value = Value::TagSize(size);
        self.tell_prefix(tag.first, Role::TagSize, size_at, value, on);
        let limit = at.saturating_add(size);
        self.enter(Level {
            tag: true,
            ..Level::once(tag.first, limit)
        })?;
        self.cursor = Cursor::new(self.input, self.start, at, limit);
        Ok(())
    }

    /// A struct that is told of: of its begin here, of its end when it comes.
    #[inline(always)]
    fn told_struct(
        &mut self,
        field: u16,
        first: u16,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), WalkError> {
        let at = self.cursor.at();
        on(Event::new(field, Role::Other, at, 0, Value::Struct));
        self.enter(Level {
            field,
            role: Some(Role::Other),
            ..Level::once(first, self.level.limit)
        })
    }

    #[inline(always)]
    fn uvarint(&mut self) -> Result<u32, Halt> {
        self.cursor.uvarint().ok_or_else(|| self.cursor.cut())
    }

    /// A length or count; `None` for null.
    #[inline(always)]
    fn length(&mut self, length: Length, nullable: bool) -> Result<Option<u32>, Halt> {
        let at = self.cursor.at();
        let n = self.cursor.length(length);
        let n = u32::try_from(n.ok_or_else(|| self.cursor.cut())?).ok();
        if n.is_none() && !nullable {
            return Err(WalkError::Null { at }.into());
        }
        Ok(n)
    }

    /// The bytes of `count` elements of `size` each; fails unless they fit. The count is at `at`.
    #[inline(always)]
    fn elements(&self, at: u32, count: u32, size: u16) -> Result<u32, WalkError> {
        let room = self.level.limit.saturating_sub(self.cursor.at());
        let bytes = u64::from(count).saturating_mul(size.into());
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= room => Ok(bytes),
            _ => Err(WalkError::Count { at, count }),
        }
    }

    /// Reads `inner` next, then what comes next here.
    #[inline(always)]
    fn enter(&mut self, inner: Level) -> Result<(), WalkError> {
        let slot = self.walker.outer.get_mut(usize::from(self.walker.depth));
        *slot.ok_or(WalkError::Table)? = std::mem::replace(&mut self.level, inner);
        self.walker.depth = self.walker.depth.saturating_add(1);
        Ok(())
    }

    /// Goes back to the level around; `false` where there is none.
    #[inline(always)]
    fn leave(&mut self) -> Result<bool, WalkError> {
        let Some(depth) = self.walker.depth.checked_sub(1) else {
            return Ok(false);
        };
        self.walker.depth = depth;
        let outer = self.walker.outer.get(usize::from(depth));
        let inner = std::mem::replace(&mut self.level, *outer.ok_or(WalkError::Table)?);
        if inner.tag {
            let at = self.cursor.at();
            self.cursor = Cursor::new(self.input, self.start, at, self.level.limit);
        }
        Ok(true)
    }

    /// Goes `n` bytes forward, past what is at hand if need be.
    #[inline(always)]
    fn pass(&mut self, n: u32) -> Result<(), Halt> {
        let at = self.cursor.at();
        let passed = self.cursor.take_up_to(n).len() as u32;
        if passed == n {
            return Ok(());
        }
        self.level.holds(at, n)?;
        self.walker.region = Region::Skip(n.saturating_sub(passed));
        Err(Halt::Cut)
    }

    /// Tells what is at hand of `bytes`.
    #[inline(always)]
    fn tell(&mut self, bytes: Bytes, on: &mut impl FnMut(Event<'_>)) -> Result<(), Halt> {
        let at = self.cursor.at();
        self.level.holds(at, bytes.left)?;
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

    /// Tells what the length, count or size says that stands from `from` to here.
    #[inline(always)]
    fn tell_prefix(
        &self,
        field: u16,
        role: Role,
        from: u32,
        value: Value<'_>,
        on: &mut impl FnMut(Event<'_>),
    ) {
        let at = self.cursor.at();
        on(Event::new(field, role, at, at.wrapping_sub(from), value));
    }
}
