//! Reads one input: what is plain in a loop of its own ([`Plain`]), all else step by step (`step.rs`).

use super::cursor::Cursor;
use super::plain::Plain;
use super::state::Region;
use super::walker::Walker;
use super::{Fault, FieldId, Listener, WalkError};

/// Why reading stops for now or for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// The bytes at hand end.
    Cut,
    /// The bytes do not fit the layout at this offset.
    Failed(Fault, u32),
}

impl Fault {
    pub(super) fn at(self, at: u32) -> Halt {
        Halt::Failed(self, at)
    }
}

pub(super) type On<'o> = &'o mut dyn Listener;

/// A walker at work on one input.
pub(super) struct Reading<'w, 'a> {
    pub(super) walker: &'w mut Walker,
    pub(super) input: &'a [u8],
    /// The walk's offset of the input's first byte.
    pub(super) start: u32,
    pub(super) cursor: Cursor<'a>,
    /// The next op.
    pub(super) op: u16,
    /// The op that the last step began with.
    pub(super) stepped: u16,
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
        on: &mut impl Listener,
    ) -> Result<End, WalkError> {
        let is_amid = !matches!(walker.region, Region::None);
        let reading = Self::new(walker, input);
        let is_plain = !is_amid && reading.is_plain();
        reading.go_on(is_plain, on)
    }

    /// The same for the first input, where `plain` came to a stop.
    pub(super) fn read_on(
        walker: &'w mut Walker,
        input: &'a [u8],
        plain: Plain<'a>,
        on: &mut impl Listener,
    ) -> Result<End, WalkError> {
        let mut reading = Self::new(walker, input);
        reading.take(plain);
        reading.go_on(false, on)
    }

    fn go_on(mut self, mut is_plain: bool, on: &mut impl Listener) -> Result<End, WalkError> {
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
    fn plain(&mut self, on: &mut impl Listener) -> bool {
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

    /// Whether [`Reading::plain`] may go on where no field is cut.
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
}
