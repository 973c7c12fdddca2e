//! Reads bytes by the layout table: resumable at any byte, in constant memory, without the heap.
//!
//! Two traps. A count or length is a promise of the peer's: nothing is reserved or looped by it before
//! it is held against what is left of the frame. And input may end inside a scalar: its first bytes
//! are kept until the rest comes, since whoever feeds has let go of them.

use super::cursor::{Cursor, Halt};
use super::table::{Op, Root, Table};
use super::{Event, Progress, Role, Value, WalkError};

/// Structs, arrays and tagged fields that may stand inside each other, the message itself included.
pub(super) const MAX_DEPTH: usize = 9;

/// More bytes than a cut scalar can leave behind (15 of a uuid's 16), and room for as many again.
const JOIN: usize = 32;

/// A walk in progress. After an error it is over.
#[derive(Clone, Debug)]
pub struct Walker {
    table: &'static Table,
    /// The level being read, and those around it from the outermost on.
    level: Level,
    outer: [Level; MAX_DEPTH - 1],
    depth: u8,
    /// Offset of the next byte to read, kept ones included.
    at: u32,
    region: Region,
    /// The first bytes of a scalar that was cut.
    kept: [u8; 15],
    kept_len: u8,
}

/// A struct being read, an element of an array, or the content of a tagged field.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The next op.
    op: u16,
    /// The first op, at which the next element begins.
    first: u16,
    /// How many more elements follow this one.
    more: u32,
    /// Tagged fields still to be read and one more; 0 while their number is not known.
    tags: u32,
    /// Where the message ends, or the innermost tagged field.
    limit: u32,
    /// The role of the array.
    role: Option<Role>,
    /// Whether it is the content of a tagged field, and so must end at its limit.
    tag: bool,
}

/// What is left of a field that the input was too short for.
#[derive(Clone, Copy, Debug)]
enum Region {
    /// Nothing: the next op is to be read.
    None,
    /// So many bytes without interest.
    Skip(u32),
    /// A string or bytes with a role.
    Bytes(Bytes),
    /// The message has been read.
    Done,
}

/// A string or bytes with a role.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    role: Role,
    /// Bytes of its length.
    width: u8,
    /// Offset of its first byte.
    at: u32,
    /// Bytes still to be told.
    left: u32,
}

impl Walker {
    /// Starts at `root`, with `len` bytes of the frame left.
    pub fn new(root: Root, len: u32) -> Self {
        let level = Level::once(root.first, len);
        Self {
            table: root.table,
            level,
            outer: [level; MAX_DEPTH - 1],
            depth: 0,
            at: 0,
            region: Region::None,
            kept: [0; 15],
            kept_len: 0,
        }
    }

    /// Reads on. Returns how many bytes of `bytes` are consumed and why it stopped. It consumes all
    /// it is fed unless the message is done (or failed): a value cut in two is kept inside.
    ///
    /// # Errors
    /// Where the bytes do not fit the layout.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(usize, Progress), WalkError> {
        let mut consumed = 0;
        if self.kept_len > 0 {
            let kept_len = usize::from(self.kept_len);
            let mut joined = [0; JOIN];
            let filled = kept_len.saturating_add(bytes.len());
            let kept = self.kept.iter().take(kept_len);
            for (to, from) in joined.iter_mut().zip(kept.chain(bytes)) {
                *to = *from;
            }
            let joined = joined.get(..filled.min(JOIN)).unwrap_or_default();
            let used = self.read(joined, on)?;
            if used == 0 {
                self.keep(joined);
                return Ok((bytes.len(), self.progress()));
            }
            self.kept_len = 0;
            consumed = used.saturating_sub(kept_len);
        }

        let rest = bytes.get(consumed..).unwrap_or_default();
        consumed = consumed.saturating_add(self.read(rest, on)?);
        if !matches!(self.region, Region::Done) {
            self.keep(bytes.get(consumed..).unwrap_or_default());
            consumed = bytes.len();
        }
        Ok((consumed, self.progress()))
    }

    /// Goes `n` bytes forward, at most what `Skippable` said. [`Walker::feed`] tells what comes next,
    /// also when fed nothing.
    ///
    /// # Errors
    /// [`WalkError::Skip`] where fewer bytes are skippable.
    pub fn skip(&mut self, n: u32) -> Result<(), WalkError> {
        let left = match self.region {
            Region::Skip(left) => left,
            _ => 0,
        };
        let left = left.checked_sub(n).ok_or(WalkError::Skip { at: self.at })?;
        if n > 0 {
            self.at = self.at.saturating_add(n);
            self.region = if left == 0 {
                Region::None
            } else {
                Region::Skip(left)
            };
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match self.region {
            Region::Done => Progress::Done,
            Region::Skip(left) => Progress::Skippable(left),
            Region::None | Region::Bytes(_) => Progress::NeedBytes,
        }
    }

    /// Keeps the first bytes of a scalar.
    fn keep(&mut self, bytes: &[u8]) {
        for (to, from) in self.kept.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.kept_len = bytes.len().min(self.kept.len()) as u8;
    }

    /// Reads `input`, which begins at `self.at`, up to the first scalar that is not there whole.
    /// Returns how much it used.
    fn read(&mut self, input: &[u8], on: &mut impl FnMut(Event<'_>)) -> Result<usize, WalkError> {
        let mut level = self.level;
        let mut cursor = Cursor::new(input, self.at, level.limit);
        let halt = match std::mem::replace(&mut self.region, Region::None) {
            Region::None => Ok(()),
            Region::Skip(left) => self.pass(&level, &mut cursor, left),
            Region::Bytes(bytes) => self.tell(&level, &mut cursor, bytes, on),
            Region::Done => {
                self.region = Region::Done;
                return Ok(0);
            }
        };
        match halt.and_then(|()| self.ops(&mut level, &mut cursor, on)) {
            Ok(()) => self.region = Region::Done,
            Err(Halt::Failed(error)) => return Err(error),
            // What does not fit before the limit never comes.
            Err(Halt::Cut) if cursor.end() == level.limit => {
                return Err(WalkError::Short { at: cursor.at() });
            }
            Err(Halt::Cut) => {}
        }
        self.level = level;
        self.at = cursor.at();
        Ok(cursor.used())
    }

    /// Reads ops until the message is done, or the input is cut.
    fn ops(
        &mut self,
        level: &mut Level,
        cursor: &mut Cursor<'_>,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Halt> {
        loop {
            let op = self.table.ops.get(usize::from(level.op));
            match *op.ok_or(WalkError::Table)? {
                Op::Skip(n) => {
                    level.next_op();
                    self.pass(level, cursor, n.into())?;
                }
                Op::Int(role, int) => {
                    let at = cursor.at();
                    let (value, width) = cursor.int(int)?;
                    level.next_op();
                    on(Event::new(role, at, width, Value::Int(value)));
                }
                Op::Uuid(role) => {
                    let at = cursor.at();
                    let uuid = cursor.take::<16>()?;
                    level.next_op();
                    on(Event::new(role, at, 16, Value::Piece(uuid, 0)));
                }
                Op::Bytes {
                    role,
                    length,
                    nullable,
                } => {
                    let start = cursor.at();
                    let left = cursor.length(length, nullable)?;
                    level.next_op();
                    let at = cursor.at();
                    let width = at.wrapping_sub(start);
                    match (left, role) {
                        (None, None) => {}
                        (None, Some(role)) => on(Event::new(role, at, width, Value::Null)),
                        (Some(left), None) => self.pass(level, cursor, left)?,
                        (Some(left), Some(role)) => {
                            let bytes = Bytes {
                                role,
                                width: width as u8,
                                at,
                                left,
                            };
                            self.tell(level, cursor, bytes, on)?;
                        }
                    }
                }
                Op::Skipped {
                    role,
                    length,
                    nullable,
                } => {
                    let start = cursor.at();
                    let left = cursor.length(length, nullable)?;
                    level.next_op();
                    let at = cursor.at();
                    let width = at.wrapping_sub(start);
                    match left {
                        None => on(Event::new(role, at, width, Value::Null)),
                        Some(left) => {
                            level.holds(at, left)?;
                            on(Event::new(role, at, width, Value::Skipped(left)));
                            self.pass(level, cursor, left)?;
                        }
                    }
                }
                Op::FixedArray {
                    length,
                    nullable,
                    size,
                } => {
                    let start = cursor.at();
                    let count = cursor.length(length, nullable)?.unwrap_or(0);
                    level.next_op();
                    let left = level.holds_elements(start, cursor.at(), count, size)?;
                    self.pass(level, cursor, left)?;
                }
                Op::Array {
                    role,
                    length,
                    nullable,
                    element,
                    min,
                } => {
                    let start = cursor.at();
                    let count = cursor.length(length, nullable)?;
                    level.next_op();
                    let at = cursor.at();
                    level.holds_elements(start, at, count.unwrap_or(0), min.get())?;
                    if let Some(role) = role {
                        let value = count.map_or(Value::Null, Value::Count);
                        on(Event::new(role, at, at.wrapping_sub(start), value));
                        match count {
                            None => {}
                            Some(0) => on(Event::new(role, at, 0, Value::End)),
                            Some(_) => on(Event::new(role, at, 0, Value::Element)),
                        }
                    }
                    if let Some(more) = count.unwrap_or(0).checked_sub(1) {
                        let limit = level.limit;
                        self.enter(level)?;
                        *level = Level {
                            more,
                            role,
                            ..Level::once(element, limit)
                        };
                    }
                }
                Op::NullableStruct { first } => {
                    let [marker] = *cursor.take()?;
                    level.next_op();
                    // A negative byte is null.
                    if marker < 0x80 {
                        let limit = level.limit;
                        self.enter(level)?;
                        *level = Level::once(first, limit);
                    }
                }
                Op::Struct { first } => {
                    level.next_op();
                    let limit = level.limit;
                    self.enter(level)?;
                    *level = Level::once(first, limit);
                }
                Op::Tags { first, count } => {
                    if level.tags == 0 {
                        let start = cursor.at();
                        let count = cursor.uvarint()?;
                        // Each takes a tag and a size, both of a byte at least.
                        level.holds_elements(start, cursor.at(), count, 2)?;
                        level.tags = count.saturating_add(1);
                    }
                    if level.tags == 1 {
                        level.tags = 0;
                        level.next_op();
                    } else {
                        self.tag(level, cursor, first, count, on)?;
                    }
                }
                Op::End => {
                    let at = cursor.at();
                    if let Some(more) = level.more.checked_sub(1) {
                        level.more = more;
                        level.op = level.first;
                        if let Some(role) = level.role {
                            on(Event::new(role, at, 0, Value::Element));
                        }
                        continue;
                    }
                    if let Some(role) = level.role {
                        on(Event::new(role, at, 0, Value::End));
                    }
                    if level.tag && at != level.limit {
                        return Err(WalkError::TagSize { at }.into());
                    }
                    let Some(depth) = self.depth.checked_sub(1) else {
                        return Ok(());
                    };
                    self.depth = depth;
                    let tag = level.tag;
                    *level = *self.outer.get(usize::from(depth)).ok_or(WalkError::Table)?;
                    if tag {
                        cursor.set_limit(at, level.limit);
                    }
                }
            }
        }
    }

    /// Reads the head of a tagged field. A known one is read by its layout, another is skipped.
    fn tag(
        &mut self,
        level: &mut Level,
        cursor: &mut Cursor<'_>,
        first: u16,
        count: u8,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Halt> {
        // Both or neither, since nothing remembers the first.
        let start = cursor.at();
        let mut ahead = *cursor;
        let number = ahead.uvarint()?;
        let size_at = ahead.at();
        let size = ahead.uvarint()?;
        *cursor = ahead;

        let at = cursor.at();
        level.tags = level.tags.saturating_sub(1);
        let known = self.table.tags.iter().skip(first.into());
        let known = known.take(count.into()).find(|tag| tag.number == number);
        let Some(tag) = known else {
            return self.pass(level, cursor, size);
        };
        level.holds(start, size)?;
        let width = at.wrapping_sub(size_at);
        on(Event::new(Role::TagSize, at, width, Value::TagSize(size)));
        self.enter(level)?;
        let limit = at.saturating_add(size);
        *level = Level {
            tag: true,
            ..Level::once(tag.first, limit)
        };
        cursor.set_limit(at, limit);
        Ok(())
    }

    /// Keeps `level` to come back to.
    fn enter(&mut self, level: &Level) -> Result<(), WalkError> {
        let slot = self.outer.get_mut(usize::from(self.depth));
        *slot.ok_or(WalkError::Table)? = *level;
        self.depth = self.depth.saturating_add(1);
        Ok(())
    }

    /// Goes `n` bytes forward, past what is at hand if need be.
    fn pass(&mut self, level: &Level, cursor: &mut Cursor<'_>, n: u32) -> Result<(), Halt> {
        let at = cursor.at();
        let passed = cursor.take_up_to(n).len() as u32;
        if passed == n {
            return Ok(());
        }
        level.holds(at, n)?;
        self.region = Region::Skip(n.saturating_sub(passed));
        Err(Halt::Cut)
    }

    /// Tells what is at hand of `bytes`.
    fn tell(
        &mut self,
        level: &Level,
        cursor: &mut Cursor<'_>,
        bytes: Bytes,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Halt> {
        level.holds(cursor.at(), bytes.left)?;
        let piece = cursor.take_up_to(bytes.left);
        let left = bytes.left.saturating_sub(piece.len() as u32);
        if !piece.is_empty() || left == 0 {
            let value = Value::Piece(piece, left);
            on(Event::new(bytes.role, bytes.at, bytes.width.into(), value));
        }
        if left == 0 {
            return Ok(());
        }
        self.region = Region::Bytes(Bytes { left, ..bytes });
        Err(Halt::Cut)
    }
}

impl Level {
    /// A struct that is read once.
    fn once(first: u16, limit: u32) -> Self {
        Self {
            op: first,
            first,
            more: 0,
            tags: 0,
            limit,
            role: None,
            tag: false,
        }
    }

    fn next_op(&mut self) {
        self.op = self.op.wrapping_add(1);
    }

    /// Fails unless `n` bytes from `at` on are within the limit.
    fn holds(&self, at: u32, n: u32) -> Result<(), WalkError> {
        if n > self.limit.saturating_sub(at) {
            return Err(WalkError::Short { at });
        }
        Ok(())
    }

    /// The bytes of `count` elements of `size` each, which begin at `at`; fails unless they are
    /// within the limit. The count is at `start`.
    fn holds_elements(&self, start: u32, at: u32, count: u32, size: u16) -> Result<u32, WalkError> {
        let bytes = u64::from(count).saturating_mul(size.into());
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= self.limit.saturating_sub(at) => Ok(bytes),
            _ => Err(WalkError::Count { at: start, count }),
        }
    }
}
