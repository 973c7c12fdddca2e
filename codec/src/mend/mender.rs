//! Walks what was kept of a message by the full table, and writes it anew: all that is not withheld as it
//! was, and around what is missing the lengths that fit.

use super::Mended;
use super::heads::Heads;
use crate::edit::uvarint;
use crate::kept::Part;
use crate::layout::{Event, Progress, Role, Root, Value, WalkError, Walker};

/// What the walker is shown of a withheld field that was not kept.
static FILLER: [u8; 1024] = [0; 1024];

/// A message being mended. Offsets are the walk's.
pub(super) struct Mender {
    walker: Walker,
    /// Bytes that the walker need not see.
    skippable: u32,
    /// Bytes of the frame that were not looked at yet.
    left: u64,
    /// Bytes of the header.
    header: usize,
    writer: Writer,
}

/// What has been written.
struct Writer {
    root: Root,
    mended: Mended,
    /// Whether records may be seen.
    records: bool,
    /// Offset of the next byte of the message as it was.
    at: u32,
    /// What is to get a length that fits, the outermost first.
    open: Vec<Open>,
}

/// A tagged field or the content of one that is withheld.
struct Open {
    /// Where its length stands in what has been written, and in how many bytes.
    prefix: usize,
    width: usize,
    form: Form,
    /// Its length as it was, and where it ends.
    len: u32,
    end: u32,
    /// What it is, if it is withheld.
    hidden: Option<Hidden>,
}

/// How a length stands on the wire.
#[derive(Clone, Copy)]
enum Form {
    /// An unsigned varint.
    Size,
    /// One more than it is.
    Compact,
    /// In as many bytes as before.
    Classic,
}

/// A field that is withheld.
struct Hidden {
    name: &'static str,
    heads: Heads,
}

/// What is next is neither at hand nor what may be missing.
struct Cut;

impl Mender {
    /// A message from `root` on, in a frame of `total` bytes that begins with `header`.
    pub(super) fn new(root: Root, header: &[u8], total: u64, records: bool) -> Self {
        let left = total.saturating_sub(header.len() as u64);
        let mended = Mended {
            bytes: header.to_vec(),
            ..Mended::default()
        };
        Self {
            walker: Walker::new(root, u32::try_from(left).unwrap_or(u32::MAX)),
            skippable: 0,
            left,
            header: header.len(),
            writer: Writer {
                root,
                mended,
                records,
                at: 0,
                open: Vec::new(),
            },
        }
    }

    /// Mends the frame that is made up of `parts`. Tells too whether it had to be cut.
    ///
    /// # Errors
    /// Where it does not fit its layout.
    pub(super) fn mend(mut self, parts: &[Part]) -> Result<(Mended, bool), WalkError> {
        let mut header = self.header;
        let mut end = Ok(false);
        for part in parts {
            end = match part {
                Part::Bytes(bytes) => {
                    let behind = bytes.get(header..).unwrap_or_default();
                    header = header.saturating_sub(bytes.len());
                    self.feed(behind).map(Ok)?
                }
                Part::Hole(n) => self.hole(*n)?,
            };
            if !matches!(end, Ok(false)) {
                break;
            }
        }
        let is_whole = match end {
            Ok(true) => true,
            Ok(false) => self.feed(&[])?,
            Err(Cut) => false,
        };
        Ok((self.writer.end(self.left), !is_whole))
    }

    /// The next bytes. Whether the message has ended.
    fn feed(&mut self, bytes: &[u8]) -> Result<bool, WalkError> {
        let base = self.writer.at;
        let writer = &mut self.writer;
        let read = self.walker.feed(bytes, &mut |event| {
            writer.take(&event, base, bytes);
        })?;
        let (used, progress) = read;
        writer.go(base.saturating_add(used as u32), base, bytes);
        self.left = self.left.saturating_sub(used as u64);
        self.skippable = match progress {
            Progress::Skippable(n) => n,
            Progress::NeedBytes | Progress::Done => 0,
        };
        Ok(progress == Progress::Done)
    }

    /// The next `n` bytes were not kept. Whether the message has ended.
    fn hole(&mut self, n: u32) -> Result<Result<bool, Cut>, WalkError> {
        let mut left = n;
        let mut is_done = false;
        while left > 0 && !is_done {
            let room = self.writer.room();
            let most = match room {
                // (its length is known, and none of it has been told)
                0 if self.skippable == 0 && self.begins_hidden() => 1,
                0 => return Ok(Err(Cut)),
                _ => left.min(room),
            };
            let passed = if self.skippable > 0 {
                let passed = most.min(self.skippable);
                self.walker.skip(passed)?;
                self.writer.lose(passed);
                self.skippable = self.skippable.saturating_sub(passed);
                self.left = self.left.saturating_sub(passed.into());
                if self.skippable == 0 {
                    is_done = self.feed(&[])?;
                }
                passed
            } else {
                let filler = FILLER.get(..most as usize).unwrap_or(&FILLER);
                is_done = self.feed(filler)?;
                filler.len() as u32
            };
            left = left.saturating_sub(passed);
        }
        Ok(Ok(is_done))
    }

    /// Whether the next byte is the first of the content of a field that is withheld.
    fn begins_hidden(&self) -> bool {
        let mut begins = false;
        let at = self.writer.at;
        let read = self.walker.clone().feed(&[0], &mut |event| {
            let is_first = event.at == at && matches!(event.value, Value::Piece([_], _));
            begins |= is_first && event.role.is_withheld();
        });
        read.is_ok() && begins
    }
}

impl Writer {
    /// Takes in an event of a walk over `bytes`, of which the first is at offset `base`.
    fn take(&mut self, event: &Event<'_>, base: u32, bytes: &[u8]) {
        self.go(event.at, base, bytes);
        let hidden = |name: &'static str, heads| Some(Hidden { name, heads });
        let name = self.root.field(event.field).map_or("", |it| it.name);
        match event.value {
            Value::TagSize(size) => self.open(event, size, Form::Size, None),
            // Nobody here knows what it is, and so not that it may be seen.
            Value::UnknownTag(_, size) => {
                self.open(event, size, Form::Size, hidden(name, Heads::none()));
            }
            // (the next piece of one finds it open)
            Value::Piece(piece, rest) if event.role.is_withheld() && self.room() == 0 => {
                let len = rest.saturating_add(piece.len() as u32);
                self.open(event, len, self.form(event), hidden(name, Heads::none()));
            }
            Value::Skipped(len) if event.role.is_withheld() && !self.may_be_seen(event.role) => {
                let heads = match name {
                    "Records" => Heads::of(len),
                    // (FetchSnapshot's need not begin with a batch)
                    _ => Heads::none(),
                };
                self.open(event, len, self.form(event), hidden(name, heads));
            }
            _ => {}
        }
    }

    fn may_be_seen(&self, role: Role) -> bool {
        self.records && role == Role::Records
    }

    fn form(&self, event: &Event<'_>) -> Form {
        match self.root.is_compact(event.field) {
            true => Form::Compact,
            false => Form::Classic,
        }
    }

    /// Begins what stands behind the length that has been written last.
    fn open(&mut self, event: &Event<'_>, len: u32, form: Form, hidden: Option<Hidden>) {
        let width = event.width as usize;
        self.open.push(Open {
            prefix: self.mended.bytes.len().saturating_sub(width),
            width,
            form,
            len,
            end: self.at.saturating_add(len),
            hidden,
        });
    }

    /// Goes on to offset `to`, and writes what is there and may be seen: `bytes` begin at offset `base`.
    fn go(&mut self, to: u32, base: u32, bytes: &[u8]) {
        self.close();
        while self.at < to {
            let end = self.open.last().map_or(to, |open| open.end.min(to));
            let range = self.at.saturating_sub(base) as usize..end.saturating_sub(base) as usize;
            let bytes = bytes.get(range).unwrap_or_default();
            match self.open.last_mut().and_then(|open| open.hidden.as_mut()) {
                None => self.mended.bytes.extend_from_slice(bytes),
                Some(hidden) => hidden.heads.bytes(bytes, &mut self.mended, hidden.name),
            }
            self.at = end;
            self.close();
        }
    }

    /// How many bytes follow of a field that is withheld.
    fn room(&self) -> u32 {
        let hidden = self.open.last().filter(|open| open.hidden.is_some());
        hidden.map_or(0, |open| open.end.saturating_sub(self.at))
    }

    /// The next `n` bytes of a field that is withheld were not kept.
    fn lose(&mut self, n: u32) {
        if let Some(hidden) = self.open.last_mut().and_then(|open| open.hidden.as_mut()) {
            hidden.heads.hole(n.into());
        }
        self.at = self.at.saturating_add(n);
        self.close();
    }

    /// Ends what ends here.
    fn close(&mut self) {
        while let Some(open) = self.open.pop_if(|open| open.end <= self.at) {
            self.mend_length(open);
        }
    }

    /// Gives what ends here the length that it has now.
    fn mend_length(&mut self, open: Open) {
        if let Some(Hidden { name, heads }) = open.hidden {
            heads.end(&mut self.mended, name);
        }
        let content = open.prefix.saturating_add(open.width);
        let len = self.mended.bytes.len().saturating_sub(content) as u32;
        if len == open.len {
            return;
        }
        let prefix = match (open.form, open.width) {
            (Form::Size, _) => uvarint(len),
            (Form::Compact, _) => uvarint(len.saturating_add(1)),
            (Form::Classic, 2) => (len as u16).to_be_bytes().into(),
            (Form::Classic, _) => len.to_be_bytes().into(),
        };
        let by = (prefix.len() as i64).saturating_sub(open.width as i64);
        let old = open.prefix..content;
        self.mended.bytes.splice(old, prefix);
        self.mended.withheld.shift(content, by);
    }

    /// Nothing follows but `left` bytes that are not looked at.
    fn end(mut self, left: u64) -> Mended {
        self.close();
        while let Some(open) = self.open.pop() {
            self.mend_length(open);
        }
        let at = self.mended.bytes.len();
        self.mended.withheld.add_rest(at, left);
        self.mended.mend_length();
        self.mended
    }
}
