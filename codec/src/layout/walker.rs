//! Reads bytes by the layout table: resumable at any byte, in constant memory, without the heap.
//!
//! Two traps. A count or length is a promise of the peer's: nothing is reserved or looped by it before
//! it is held against what is left of the frame. And input may end inside a scalar: its first bytes
//! are kept until the rest comes, since whoever feeds has let go of them.

use super::plain::Plain;
use super::reading::{End, Reading};
use super::state::{Level, Region};
use super::table::{Root, Table};
use super::{Event, Fault, FieldId, Listener, Progress, WalkError};
use crate::generated::straight;
use std::ops::ControlFlow;

/// How many structs, arrays and tagged fields may stand inside each other, the message included.
pub(crate) const MAX_DEPTH: usize = 9;

/// The most bytes that are read as one: a uuid.
const MAX_SCALAR: usize = 16;

/// A walk in progress. After an error it is over.
#[derive(Clone, Debug)]
pub struct Walker {
    pub(super) table: &'static Table,
    /// What is being read, in what it stands, the message first.
    pub(super) levels: [Level; MAX_DEPTH],
    /// For each level that is a tagged field's content, the limit of what is around.
    pub(super) outer_limits: [u32; MAX_DEPTH],
    /// The innermost level.
    pub(super) depth: u8,
    /// Whether it stopped before, and so may be amid something.
    pub(super) stopped: bool,
    /// Whether the bytes before the next op have been passed, and it alone is to be read.
    pub(super) passed: bool,
    /// Whether the next op is tagged fields of which some have been read.
    pub(super) in_tags: bool,
    /// Where the message ends, or the innermost tagged field.
    pub(super) limit: u32,
    /// Offset of the next byte to read, kept ones included.
    pub(super) at: u32,
    pub(super) region: Region,
    /// The first bytes of a scalar that was cut.
    kept: [u8; MAX_SCALAR - 1],
    kept_len: u8,
}

/// One that has nothing to read.
impl Default for Walker {
    fn default() -> Self {
        let table = super::hot();
        let mut walker = Self::new(Root { table, first: 0 }, 0);
        walker.region = Region::Done;
        walker
    }
}

/// A message that code made for it has read, as far as that goes.
pub(crate) struct Begun<'a> {
    root: Root,
    len: u32,
    plain: Plain<'a>,
    /// Whether that was all; `None` where there is no such code.
    read: Option<bool>,
}

impl<'a> Begun<'a> {
    #[inline(always)]
    fn new(root: Root, len: u32, bytes: &'a [u8]) -> Self {
        Self {
            root,
            len,
            plain: Plain::begin(root, len, bytes),
            read: None,
        }
    }

    /// Whether all of the message has been read, and all that it was said to have.
    #[inline(always)]
    pub(crate) fn has_read_all(&self) -> bool {
        self.read == Some(true) && self.plain.cursor.at() == self.len
    }
}

impl Walker {
    /// Starts at `root`, with `len` bytes of the frame left.
    #[inline]
    pub fn new(root: Root, len: u32) -> Self {
        let mut levels = [Level::UNUSED; MAX_DEPTH];
        let [message, ..] = &mut levels;
        *message = Level::once(root.first);
        Self {
            table: root.table,
            levels,
            outer_limits: [0; MAX_DEPTH],
            depth: 0,
            stopped: false,
            passed: false,
            in_tags: false,
            limit: len,
            at: 0,
            region: Region::None,
            kept: [0; MAX_SCALAR - 1],
            kept_len: 0,
        }
    }

    /// As if new: for one message after the other. What lies deeper than the first level is written
    /// before it is read, so it need not be cleared.
    #[inline]
    pub fn restart(&mut self, root: Root, len: u32) {
        let [message, ..] = &mut self.levels;
        *message = Level::once(root.first);
        self.table = root.table;
        self.depth = 0;
        self.stopped = false;
        self.passed = false;
        self.in_tags = false;
        self.limit = len;
        self.at = 0;
        self.region = Region::None;
        self.kept_len = 0;
    }

    /// Reads on. Returns how many bytes of `bytes` are consumed and why it stopped. It consumes all
    /// it is fed unless the message is done (or failed): a value cut in two is kept inside.
    ///
    /// # Errors
    /// Where the bytes do not fit the layout.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(usize, Progress), WalkError> {
        self.go_on(bytes, on)
    }

    /// [`Walker::feed`] for whoever is no closure.
    ///
    /// # Errors
    /// Where the bytes do not fit the layout.
    #[inline]
    pub fn go_on(
        &mut self,
        bytes: &[u8],
        on: &mut impl Listener,
    ) -> Result<(usize, Progress), WalkError> {
        if self.stopped {
            return self.feed_more(bytes, on);
        }
        // Most messages are all there, and have nothing rare in them.
        self.stopped = true;
        let [Level { first, .. }, ..] = self.levels;
        let table = self.table;
        let mut plain = Plain::begin(Root { table, first }, self.limit, bytes);
        let is_done = plain.run(self.table, &mut self.levels, on);
        if is_done {
            self.region = Region::Done;
            self.at = plain.cursor.at();
            return Ok((self.at as usize, Progress::Done));
        }
        self.read_on(bytes, plain, on)
    }

    /// [`Walker::restart`] and [`Walker::feed`] in one for a request: the commonest of [`Root::find`] are
    /// read by code made for them.
    ///
    /// # Errors
    /// Where the bytes do not fit the layout.
    pub fn begin_request(
        &mut self,
        root: Root,
        len: u32,
        bytes: &[u8],
        on: &mut impl Listener,
    ) -> Result<(usize, Progress), WalkError> {
        let begun = self.enter_request(root, len, bytes, on);
        self.follow(begun, bytes, on)
    }

    /// The same for a response.
    ///
    /// # Errors
    /// The same.
    pub fn begin_response(
        &mut self,
        root: Root,
        len: u32,
        bytes: &[u8],
        on: &mut impl Listener,
    ) -> Result<(usize, Progress), WalkError> {
        let begun = self.enter_response(root, len, bytes, on);
        self.follow(begun, bytes, on)
    }

    /// Reads a request as far as code goes that is made for it. Only where that was [all](Begun::has_read_all)
    /// need nobody [follow](Self::follow).
    #[inline(always)]
    pub(crate) fn enter_request<'a>(
        &mut self,
        root: Root,
        len: u32,
        bytes: &'a [u8],
        on: &mut impl Listener,
    ) -> Begun<'a> {
        let mut begun = Begun::new(root, len, bytes);
        if root.is_hot() {
            let plain = &mut begun.plain;
            begun.read = straight::request(root.first, plain, &mut self.levels, on);
        }
        begun
    }

    /// The same for a response.
    #[inline(always)]
    pub(crate) fn enter_response<'a>(
        &mut self,
        root: Root,
        len: u32,
        bytes: &'a [u8],
        on: &mut impl Listener,
    ) -> Begun<'a> {
        let mut begun = Begun::new(root, len, bytes);
        if root.is_hot() {
            let plain = &mut begun.plain;
            begun.read = straight::response(root.first, plain, &mut self.levels, on);
        }
        begun
    }

    /// Goes on with a message that has been entered, and of which these are the first bytes.
    ///
    /// # Errors
    /// Where the bytes do not fit the layout.
    #[inline(never)]
    pub(crate) fn follow<'a>(
        &mut self,
        begun: Begun<'a>,
        bytes: &'a [u8],
        on: &mut impl Listener,
    ) -> Result<(usize, Progress), WalkError> {
        // (the levels say how far a straight line came)
        let [Level { op, .. }, ..] = self.levels;
        self.restart(begun.root, begun.len);
        match begun.read {
            Some(true) => {
                self.stopped = true;
                self.region = Region::Done;
                self.at = begun.plain.cursor.at();
                Ok((self.at as usize, Progress::Done))
            }
            Some(false) => {
                let [message, ..] = &mut self.levels;
                message.op = op;
                self.stopped = true;
                self.read_on(bytes, begun.plain, on)
            }
            None => self.go_on(bytes, on),
        }
    }

    /// The first input, from where `plain` came to a stop.
    #[inline(never)]
    fn read_on<'a>(
        &mut self,
        bytes: &'a [u8],
        plain: Plain<'a>,
        on: &mut impl Listener,
    ) -> Result<(usize, Progress), WalkError> {
        let end = Reading::read_on(self, bytes, plain, on)?;
        Ok(self.ended(bytes, 0, end))
    }

    /// Any but the first input.
    #[inline(never)]
    fn feed_more(
        &mut self,
        bytes: &[u8],
        on: &mut impl Listener,
    ) -> Result<(usize, Progress), WalkError> {
        let consumed = match self.resume(bytes, on)? {
            ControlFlow::Continue(used) => used,
            ControlFlow::Break(end) => return Ok(end),
        };
        let rest = bytes.get(consumed..).unwrap_or_default();
        let end = Reading::read(self, rest, on)?;
        Ok(self.ended(bytes, consumed, end))
    }

    /// What came of `bytes`, of which the first `consumed` were read before.
    fn ended(&mut self, bytes: &[u8], consumed: usize, end: End) -> (usize, Progress) {
        match end {
            End::Done(used) => (consumed.saturating_add(used), Progress::Done),
            End::Cut(used) => {
                let read = consumed.saturating_add(used);
                self.keep(bytes.get(read..).unwrap_or_default());
                (bytes.len(), self.progress())
            }
        }
    }

    /// [`Walker::feed`] op by op: what all that is faster must tell too.
    #[cfg(test)]
    pub(super) fn feed_slowly(
        &mut self,
        bytes: &[u8],
        on: &mut impl Listener,
    ) -> Result<(usize, Progress), WalkError> {
        self.stopped = true;
        let consumed = match self.resume(bytes, on)? {
            ControlFlow::Continue(used) => used,
            ControlFlow::Break(end) => return Ok(end),
        };
        let rest = bytes.get(consumed..).unwrap_or_default();
        let end = Reading::read_slowly(self, rest, on)?;
        Ok(self.ended(bytes, consumed, end))
    }

    /// Goes on with the bytes kept, if there are any. Returns how many of `bytes` it used for them.
    #[cold]
    fn resume(
        &mut self,
        bytes: &[u8],
        on: &mut dyn Listener,
    ) -> Result<ControlFlow<(usize, Progress), usize>, WalkError> {
        if self.kept_len == 0 {
            return Ok(match self.region {
                Region::Done => ControlFlow::Break((0, Progress::Done)),
                _ => ControlFlow::Continue(0),
            });
        }
        // Room for the rest of the cut scalar, however much of it is there.
        let mut joined = [0; 2 * MAX_SCALAR];
        let kept_len = usize::from(self.kept_len);
        let kept = self.kept.iter().take(kept_len);
        for (to, from) in joined.iter_mut().zip(kept.chain(bytes)) {
            *to = *from;
        }
        let filled = kept_len.saturating_add(bytes.len()).min(joined.len());
        let joined = joined.get(..filled).unwrap_or_default();
        let (end, used) = match Reading::read_slowly(self, joined, on)? {
            End::Done(used) => (Some(Progress::Done), used),
            End::Cut(used) => (None, used),
        };
        if used == 0 {
            self.keep(joined);
            return Ok(ControlFlow::Break((bytes.len(), Progress::NeedBytes)));
        }
        self.kept_len = 0;
        let used = used.saturating_sub(kept_len);
        Ok(match end {
            Some(done) => ControlFlow::Break((used, done)),
            None => ControlFlow::Continue(used),
        })
    }

    /// Goes `n` bytes forward, at most what `Skippable` said. [`Walker::feed`] tells what comes next,
    /// also when fed nothing.
    ///
    /// # Errors
    /// [`Fault::Skip`] where fewer bytes are skippable.
    pub fn skip(&mut self, n: u32) -> Result<(), WalkError> {
        let skippable = match self.region {
            Region::Skip(left) => left,
            _ => 0,
        };
        self.region = match skippable.checked_sub(n) {
            None => {
                return Err(WalkError {
                    fault: Fault::Skip,
                    at: self.at,
                    field: FieldId::NONE,
                });
            }
            Some(_) if n == 0 => return Ok(()),
            Some(0) => Region::None,
            Some(left) => Region::Skip(left),
        };
        self.at = self.at.saturating_add(n);
        Ok(())
    }

    /// The field that is read next, or is being read if it is a string or bytes. Only where all that was
    /// fed is consumed.
    pub fn next_field(&self) -> FieldId {
        match self.region {
            Region::Bytes(bytes) => FieldId(bytes.field),
            Region::None | Region::Skip(_) | Region::Done => {
                let level = self.levels.get(usize::from(self.depth));
                level.map_or(FieldId::NONE, |level| FieldId(level.op))
            }
        }
    }

    /// Why it stopped.
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
}
