//! What the readers of the commonest messages are made of ([`crate::generated::straight`]): the plain
//! loop unrolled, so that no op is looked up and what is told has a role that the compiler knows.
//!
//! Such a reader does field by field what [`Plain`] would do, and stops where that would stop, in the same
//! place: whoever reads on cannot tell which of the two came so far. The trap: it must tell the same.

use super::cursor::Cursor;
use super::plain::Plain;
use super::state::Level;
use super::table::Length;
use super::walker::MAX_DEPTH;
use super::{Event, Listener, Role, Value};

/// A message that is read in a straight line. Its readers return `None` where they stop.
pub(crate) struct Straight<'r, 'a, L> {
    cursor: Cursor<'a>,
    /// Where it stopped: the op that is not read. Until then of no meaning.
    op: u16,
    /// The innermost level.
    depth: usize,
    levels: &'r mut [Level; MAX_DEPTH],
    on: &'r mut L,
}

/// The reader of a struct.
// (a trait, and not a function handed over, since only so all of a message is inlined in one piece)
pub(crate) trait Read {
    fn read<L: Listener>(from: &mut Straight<'_, '_, L>) -> Option<()>;
}

/// Reads a message from where `plain` stands: at its first op. `true` where all of it has been read, else
/// `plain` stands where the reader stopped.
// (not inlined, so that each message has the registers to itself)
#[inline(never)]
pub(crate) fn message<M: Read, L: Listener>(
    plain: &mut Plain<'_>,
    levels: &mut [Level; MAX_DEPTH],
    on: &mut L,
) -> bool {
    let mut straight = Straight {
        cursor: plain.cursor,
        op: 0,
        depth: 0,
        levels,
        on,
    };
    let is_done = M::read(&mut straight).is_some();
    plain.cursor = straight.cursor;
    plain.op = straight.op.into();
    plain.depth = straight.depth;
    is_done
}

/// Reads elements of an array from where `plain` stands: at the first op of one. `true` where all have been
/// read, and the last one ends; else `plain` stands where the reader stopped.
// (not inlined, for the same reason)
#[inline(never)]
pub(crate) fn elements<E: Read, L: Listener>(
    plain: &mut Plain<'_>,
    levels: &mut [Level; MAX_DEPTH],
    on: &mut L,
) -> bool {
    let depth = plain.depth;
    let mut more = levels.get(depth).map_or(0, |level| level.more);
    let mut straight = Straight {
        cursor: plain.cursor,
        op: 0,
        depth,
        levels,
        on,
    };
    let is_done = loop {
        if E::read(&mut straight).is_none() {
            break false;
        }
        match more.checked_sub(1) {
            Some(left) => more = left,
            None => break true,
        }
    };
    plain.cursor = straight.cursor;
    plain.op = straight.op.into();
    plain.depth = straight.depth;
    if let Some(level) = levels.get_mut(depth) {
        level.more = more;
    }
    is_done
}

impl<'a, L: Listener> Straight<'_, 'a, L> {
    /// Stops before this op.
    #[inline(always)]
    pub(crate) fn stop(&mut self, op: u16) -> Option<()> {
        self.op = op;
        None
    }

    /// An integer of two bytes.
    #[inline(always)]
    pub(crate) fn int16(&mut self, op: u16, before: u8, role: Role) -> Option<()> {
        let Some((value, ahead)) = self.cursor.take_after(before) else {
            return self.stop(op);
        };
        self.tell(op, role, 2, ahead, i16::from_be_bytes(*value).into())
    }

    /// An integer of four bytes.
    #[inline(always)]
    pub(crate) fn int32(&mut self, op: u16, before: u8, role: Role) -> Option<()> {
        let Some((value, ahead)) = self.cursor.take_after(before) else {
            return self.stop(op);
        };
        self.tell(op, role, 4, ahead, i32::from_be_bytes(*value).into())
    }

    /// Tells of the integer of `width` bytes before `ahead`.
    #[inline(always)]
    fn tell(
        &mut self,
        op: u16,
        role: Role,
        width: u32,
        ahead: Cursor<'a>,
        value: i64,
    ) -> Option<()> {
        self.cursor.go(ahead);
        let at = ahead.at().wrapping_sub(width);
        self.on
            .hear(Event::new(op, role, at, width, Value::Int(value)));
        Some(())
    }

    /// A uuid.
    #[inline(always)]
    pub(crate) fn uuid(&mut self, op: u16, before: u8, role: Role) -> Option<()> {
        let Some((uuid, ahead)) = self.cursor.take_after::<16>(before) else {
            return self.stop(op);
        };
        self.cursor.go(ahead);
        let at = ahead.at().wrapping_sub(16);
        self.on
            .hear(Event::new(op, role, at, 16, Value::Piece(uuid, 0)));
        Some(())
    }

    /// As many times `size` bytes as a length says.
    #[inline(always)]
    pub(crate) fn unread(&mut self, op: u16, before: u8, length: Length, size: u16) -> Option<()> {
        let behind = self.cursor.count_after(before, length);
        let behind = behind.and_then(|(n, ahead)| {
            let bytes = u64::from(n).wrapping_mul(size.into());
            ahead.after(usize::try_from(bytes).ok()?)
        });
        let Some(behind) = behind else {
            return self.stop(op);
        };
        self.cursor.go(behind);
        Some(())
    }

    /// A string or bytes.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, op: u16, before: u8, role: Role, length: Length) -> Option<()> {
        let found = self.cursor.count_after(before, length);
        let found = found.and_then(|(n, ahead)| Some((ahead, ahead.split(n as usize)?)));
        // (an empty piece may be null)
        let Some((ahead, (piece @ [_, ..], behind))) = found else {
            return self.stop(op);
        };
        let from = self.cursor.at().wrapping_add(before.into());
        let (at, width) = (ahead.at(), ahead.at().wrapping_sub(from));
        self.cursor.go(behind);
        self.on
            .hear(Event::new(op, role, at, width, Value::Piece(piece, 0)));
        Some(())
    }

    /// Bytes that are told of, where there are any, and skipped.
    #[inline(always)]
    pub(crate) fn skipped(
        &mut self,
        op: u16,
        before: u8,
        role: Role,
        length: Length,
    ) -> Option<()> {
        let found = self.cursor.count_after(before, length);
        let found = found.and_then(|(n, ahead)| Some((n, ahead, ahead.after(n as usize)?)));
        let Some((n, ahead, behind)) = found else {
            return self.stop(op);
        };
        if n > 0 {
            let from = self.cursor.at().wrapping_add(before.into());
            let (at, width) = (ahead.at(), ahead.at().wrapping_sub(from));
            self.on
                .hear(Event::new(op, role, at, width, Value::Skipped(n)));
        }
        self.cursor.go(behind);
        Some(())
    }

    /// Tagged fields: none.
    #[inline(always)]
    pub(crate) fn tags(&mut self, op: u16, before: u8) -> Option<()> {
        let Some(([0], ahead)) = self.cursor.take_after(before) else {
            return self.stop(op);
        };
        self.cursor.go(ahead);
        Some(())
    }

    /// The end of a struct.
    #[inline(always)]
    pub(crate) fn end(&mut self, op: u16, before: u8) -> Option<()> {
        let Some(behind) = self.cursor.after(before.into()) else {
            return self.stop(op);
        };
        self.cursor.go(behind);
        Some(())
    }

    /// An array of elements that begin with the op `first` and take `min` bytes at least each.
    #[inline(always)]
    pub(crate) fn array<E: Read>(
        &mut self,
        op: u16,
        before: u8,
        length: Length,
        (first, min): (u16, u16),
    ) -> Option<()> {
        let found = self.cursor.count_after(before, length);
        let Some((count, ahead)) = found else {
            return self.stop(op);
        };
        if count == 0 {
            self.cursor.go(ahead);
            return Some(());
        }
        if u64::from(count).wrapping_mul(min.into()) > ahead.len() as u64 {
            return self.stop(op);
        }
        self.cursor.go(ahead);
        let outer = self.depth;
        self.depth = outer.wrapping_add(1);
        let mut left = count;
        while let Some(more) = left.checked_sub(1) {
            if E::read(self).is_none() {
                return self.stop_in(outer, op, first, more);
            }
            left = more;
        }
        self.depth = outer;
        Some(())
    }

    /// Stops in an element of the array `op`, behind which `more` follow.
    #[inline(always)]
    fn stop_in(&mut self, outer: usize, op: u16, first: u16, more: u32) -> Option<()> {
        self.levels.get_mut(outer)?.op = op.wrapping_add(1);
        let level = self.levels.get_mut(outer.wrapping_add(1))?;
        // (its op is known to whatever stopped inside)
        *level = Level {
            op: level.op,
            more,
            ..Level::once(first)
        };
        None
    }
}
