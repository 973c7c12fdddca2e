//! Reads bytes by the layout table: resumable at any byte, in constant memory, without the heap.
//!
//! Two traps. A count or length is a promise of the peer's: nothing is reserved or looped by it before
//! it is held against what is left of the frame. And input may end inside a scalar: its first bytes
//! are kept until the rest comes, since whoever feeds has let go of them.

use super::reading::Reading;
use super::state::{Level, Region};
use super::table::{Root, Table};
use super::{Event, Progress, WalkError};

/// How many structs, arrays and tagged fields may stand inside each other, the message included.
pub(super) const MAX_DEPTH: usize = 9;

/// The most bytes that are read as one: a uuid.
const MAX_SCALAR: usize = 16;

/// A walk in progress. After an error it is over.
#[derive(Clone, Debug)]
pub struct Walker {
    pub(super) table: &'static Table,
    /// What is being read.
    pub(super) level: Level,
    /// What that stands in, the message first; `depth` of them are in use.
    pub(super) outer: [Level; MAX_DEPTH - 1],
    pub(super) depth: u8,
    /// Offset of the next byte to read, kept ones included.
    pub(super) at: u32,
    pub(super) region: Region,
    /// The first bytes of a scalar that was cut.
    kept: [u8; MAX_SCALAR - 1],
    kept_len: u8,
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
            kept: [0; MAX_SCALAR - 1],
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
            // Room for the rest of the cut scalar, however much of it is there.
            let mut joined = [0; 2 * MAX_SCALAR];
            let kept_len = usize::from(self.kept_len);
            let kept = self.kept.iter().take(kept_len);
            for (to, from) in joined.iter_mut().zip(kept.chain(bytes)) {
                *to = *from;
            }
            let filled = kept_len.saturating_add(bytes.len()).min(joined.len());
            let joined = joined.get(..filled).unwrap_or_default();
            let used = Reading::read(self, joined, on)?;
            if used == 0 {
                self.keep(joined);
                return Ok((bytes.len(), Progress::NeedBytes));
            }
            self.kept_len = 0;
            consumed = used.saturating_sub(kept_len);
        }

        if !self.is_done() {
            let rest = bytes.get(consumed..).unwrap_or_default();
            let used = Reading::read(self, rest, on)?;
            consumed = consumed.saturating_add(used);
        }
        if !self.is_done() {
            self.keep(bytes.get(consumed..).unwrap_or_default());
            consumed = bytes.len();
        }
        let progress = match self.region {
            Region::Done => Progress::Done,
            Region::Skip(left) => Progress::Skippable(left),
            Region::None | Region::Bytes(_) => Progress::NeedBytes,
        };
        Ok((consumed, progress))
    }

    /// Goes `n` bytes forward, at most what `Skippable` said. [`Walker::feed`] tells what comes next,
    /// also when fed nothing.
    ///
    /// # Errors
    /// [`WalkError::Skip`] where fewer bytes are skippable.
    pub fn skip(&mut self, n: u32) -> Result<(), WalkError> {
        let skippable = match self.region {
            Region::Skip(left) => left,
            _ => 0,
        };
        self.region = match skippable.checked_sub(n) {
            None => return Err(WalkError::Skip { at: self.at }),
            Some(_) if n == 0 => return Ok(()),
            Some(0) => Region::None,
            Some(left) => Region::Skip(left),
        };
        self.at = self.at.saturating_add(n);
        Ok(())
    }

    fn is_done(&self) -> bool {
        matches!(self.region, Region::Done)
    }

    /// Keeps the first bytes of a scalar.
    fn keep(&mut self, bytes: &[u8]) {
        for (to, from) in self.kept.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.kept_len = bytes.len().min(self.kept.len()) as u8;
    }
}
