//! Turns the events of a walk into what a form is told: strings put together, secrets left out, heads
//! of batches found, and the path kept for when it breaks.

use super::form::{Batch, Broken, Cause, Form, Scope, Shown, UnknownTag};
use super::records::Batches;
use crate::layout::{Event, Field, FieldId, Kind, Progress, Role, Root, Value, Walker};
use crate::mend::WithheldList;
use crate::types::{ApiKey, ErrorCode};

/// Bytes of a string or bytes that are kept to be shown: no broker and no client of Kafka's own reads
/// a longer string.
const MOST: usize = i16::MAX as usize;

/// What stands for bytes that were not kept.
static FILLER: [u8; 1024] = [0; 1024];

/// A body being told.
#[derive(Debug)]
pub(super) struct Body {
    walker: Walker,
    /// Bytes that the walker has been given.
    at: u32,
    /// Offset in the frame of the first of them.
    start: u64,
    /// Bytes that the walker need not see.
    skippable: u32,
    teller: Teller,
}

impl Body {
    /// A body of `length` bytes, header's tagged fields included, from offset `start` of the frame on.
    pub(super) fn new(root: Root, start: u64, length: u32, withheld: WithheldList) -> Self {
        Self {
            walker: Walker::new(root, length),
            at: 0,
            start,
            skippable: 0,
            teller: Teller {
                root,
                start,
                withheld,
                hidden: false,
                scopes: Vec::new(),
                text: None,
                region: None,
            },
        }
    }

    /// Reads on. Where the message has ended, at which offset of the frame it did.
    ///
    /// # Errors
    /// Where it breaks.
    pub(super) fn bytes(
        &mut self,
        bytes: &[u8],
        form: &mut dyn Form,
    ) -> Result<Option<u64>, Broken> {
        self.teller.fill_region(bytes, form);
        let (teller, start) = (&mut self.teller, self.at);
        let read = self.walker.feed(bytes, &mut |event| {
            let from = event.at.saturating_sub(start) as usize;
            teller.take(event, bytes.get(from..).unwrap_or_default(), form);
        });
        match read {
            Ok((used, Progress::Done)) => {
                self.pass(used as u32);
                Ok(Some(self.offset(self.at)))
            }
            Ok((_, progress)) => {
                self.pass(bytes.len() as u32);
                self.skippable = match progress {
                    Progress::Skippable(n) => n,
                    _ => 0,
                };
                Ok(None)
            }
            Err(error) => Err(Broken {
                at: self.offset(error.at),
                path: self.teller.path(error.field),
                cause: Cause::Fault(error.fault),
            }),
        }
    }

    /// The next `n` bytes were not kept. That does no harm inside a string, bytes, records, or a
    /// tagged field that nobody knows.
    ///
    /// # Errors
    /// Where it breaks.
    pub(super) fn hole(&mut self, n: u32, form: &mut dyn Form) -> Result<Option<u64>, Broken> {
        let mut left = n;
        let mut end = None;
        while left > 0 {
            if self.skippable > 0 {
                let skipped = self.skippable.min(left);
                self.teller.hide_region(skipped, form);
                if self.walker.skip(skipped).is_err() {
                    return Err(self.not_kept(left));
                }
                self.skippable = self.skippable.saturating_sub(skipped);
                self.pass(skipped);
                left = left.saturating_sub(skipped);
                continue;
            }
            let filler = FILLER.get(..left as usize).unwrap_or(&FILLER);
            if !self.is_all_content(filler) {
                return Err(self.not_kept(left));
            }
            self.teller.hidden = true;
            let read = self.bytes(filler, form);
            self.teller.hidden = false;
            end = read?;
            left = left.saturating_sub(filler.len() as u32);
        }
        match end {
            Some(end) => Ok(Some(end)),
            // What has been skipped may have been the last.
            None => self.bytes(&[], form),
        }
    }

    /// Whether the next bytes, if they were these, would be the content of a field: no length, no
    /// count, no number.
    fn is_all_content(&self, filler: &[u8]) -> bool {
        let mut content = 0_usize;
        let read = self.walker.clone().feed(filler, &mut |event| {
            if let Value::Piece(piece, _) = event.value {
                content = content.saturating_add(piece.len());
            }
        });
        read.is_ok() && content == filler.len()
    }

    /// The path of what comes next.
    pub(super) fn next_path(&self) -> String {
        let amid = self.teller.amid();
        self.teller
            .path(amid.unwrap_or_else(|| self.walker.next_field()))
    }

    fn not_kept(&self, n: u32) -> Broken {
        Broken {
            at: self.offset(self.at),
            path: self.next_path(),
            cause: Cause::NotKept(n),
        }
    }

    fn pass(&mut self, n: u32) {
        self.at = self.at.saturating_add(n);
    }

    fn offset(&self, at: u32) -> u64 {
        self.start.saturating_add(at.into())
    }
}

/// Tells of events.
#[derive(Debug)]
struct Teller {
    root: Root,
    /// Offset in the frame of the walk's first byte.
    start: u64,
    /// What has been taken out of the frame.
    withheld: WithheldList,
    /// The bytes at hand are none.
    hidden: bool,
    scopes: Vec<Open>,
    text: Option<Text>,
    region: Option<Region>,
}

/// A struct or array that has begun.
#[derive(Debug)]
struct Open {
    name: &'static str,
    /// Of an array: how many elements have begun.
    elements: Option<u32>,
}

/// A string or bytes that is not there whole.
#[derive(Debug)]
struct Text {
    field: FieldId,
    len: u32,
    kept: Vec<u8>,
    hidden: bool,
}

/// What the walk skips, of which something may be shown.
#[derive(Debug)]
struct Region {
    field: FieldId,
    /// Offset in the frame of its first byte.
    at: u64,
    left: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Records; of some the batches are not looked for.
    Records(Option<Batches>),
    /// An unknown tagged field.
    Tag { tag: u32, size: u32 },
}

impl Teller {
    /// `behind` are the bytes at hand from the event's offset on.
    fn take(&mut self, event: Event<'_>, behind: &[u8], form: &mut dyn Form) {
        let field = self.root.field(event.field);
        let name = field.map_or("", |field| field.name);
        match event.value {
            Value::Int(n) => form.value(name, int(field, event.role, n)),
            Value::Null => form.value(name, Shown::Null),
            Value::Piece(piece, left) => self.piece(&event, field, piece, left, form),
            Value::Skipped(len) => {
                form.value(name, Shown::Records(self.with_withheld(event.at, len)));
                // Others need not begin with a batch (FetchSnapshot's).
                let batches = (name == "Records").then(|| Batches::new(len));
                self.begin_region(&event, len, What::Records(batches), behind, form);
            }
            Value::UnknownTag(tag, size) => {
                let left = size;
                let size = self.with_withheld(event.at, size);
                let what = What::Tag { tag, size };
                self.begin_region(&event, left, what, behind, form);
            }
            Value::Count(count) => {
                self.open(name, Some(0));
                form.begin(
                    name,
                    match self.root.has_plain_elements(event.field) {
                        true => Scope::Values(count),
                        false => Scope::Structs(count),
                    },
                );
            }
            Value::Element => {
                if let Some(elements) = self.scopes.last_mut().and_then(|it| it.elements.as_mut()) {
                    *elements = elements.saturating_add(1);
                }
                if !self.root.has_plain_elements(event.field) {
                    form.element();
                }
            }
            Value::Struct => {
                self.open(name, None);
                form.begin(name, Scope::Struct);
            }
            Value::End => {
                self.scopes.pop();
                form.end();
            }
            Value::TagSize(_) => {}
        }
    }

    fn open(&mut self, name: &'static str, elements: Option<u32>) {
        self.scopes.push(Open { name, elements });
    }

    fn piece(
        &mut self,
        event: &Event<'_>,
        field: Option<Field>,
        piece: &[u8],
        left: u32,
        form: &mut dyn Form,
    ) {
        let (name, kind) = field.map_or(("", Kind::Bytes), |field| (field.name, field.kind));
        let text = self.text.get_or_insert_with(|| Text {
            field: event.field,
            len: left.saturating_add(piece.len() as u32),
            kept: Vec::new(),
            hidden: event.role.is_withheld(),
        });
        text.hidden |= self.hidden;
        if !text.hidden {
            let room = MOST.saturating_sub(text.kept.len());
            text.kept
                .extend_from_slice(piece.get(..room).unwrap_or(piece));
        }
        if left > 0 {
            return;
        }
        if let Some(text) = self.text.take() {
            let kept = text.kept.as_slice();
            let shown = match (kind, kept.first_chunk()) {
                _ if text.hidden => Shown::Withheld(self.with_withheld(event.at, text.len)),
                (Kind::Uuid, Some(uuid)) => Shown::Uuid(*uuid),
                (Kind::String, _) => Shown::Text(kept, text.len),
                _ => Shown::Bytes(kept, text.len),
            };
            form.value(name, shown);
        }
    }

    /// How long the content was that begins at offset `at` of the walk and of which `len` bytes are there.
    fn with_withheld(&self, at: u32, len: u32) -> u32 {
        let from = self.start.saturating_add(at.into());
        let withheld = self.withheld.within(from, from.saturating_add(len.into()));
        len.saturating_add(withheld)
    }

    fn begin_region(
        &mut self,
        event: &Event<'_>,
        left: u32,
        what: What,
        behind: &[u8],
        form: &mut dyn Form,
    ) {
        self.region = Some(Region {
            field: event.field,
            at: self.start.saturating_add(event.at.into()),
            left,
            what,
        });
        self.fill_region(behind, form);
    }

    /// Takes what of `bytes` is still lacking of a region.
    fn fill_region(&mut self, bytes: &[u8], form: &mut dyn Form) {
        let Some(region) = &mut self.region else {
            return;
        };
        let mine = bytes.get(..region.left as usize).unwrap_or(bytes);
        region.left = region.left.saturating_sub(mine.len() as u32);
        match &mut region.what {
            What::Records(Some(batches)) => batches.bytes(mine, &mut |batch, behind_head| {
                let at = region.at.saturating_add(behind_head);
                let (own, others) = self.withheld.of_batches(at);
                let bytes = batch.bytes.saturating_add(own.into());
                form.batch(&Batch { bytes, ..*batch });
                if others > 0 {
                    form.other_batches(others);
                }
            }),
            What::Records(None) | What::Tag { .. } => {}
        }
        self.end_region(form);
    }

    /// The next `n` bytes of a region were not kept.
    fn hide_region(&mut self, n: u32, form: &mut dyn Form) {
        let Some(region) = &mut self.region else {
            return;
        };
        region.left = region.left.saturating_sub(n);
        match &mut region.what {
            What::Records(Some(batches)) => batches.hole(n),
            What::Records(None) | What::Tag { .. } => {}
        }
        self.end_region(form);
    }

    fn end_region(&mut self, form: &mut dyn Form) {
        if let Some(Region { what, field, .. }) = self.region.take_if(|region| region.left == 0)
            && let What::Tag { tag, size } = what
        {
            form.unknown_tag(&UnknownTag {
                tag,
                size,
                in_header: self.root.is_of_header(field),
            });
        }
    }

    /// What has begun and is not there whole, if it is neither struct nor array.
    fn amid(&self) -> Option<FieldId> {
        let text = self.text.as_ref().map(|text| text.field);
        text.or(self.region.as_ref().map(|region| region.field))
    }

    /// The path of `field`, of which nothing has been told yet.
    fn path(&self, field: FieldId) -> String {
        let mut path = String::new();
        for Open { name, elements } in &self.scopes {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
            if let Some(index) = elements.and_then(|elements| elements.checked_sub(1)) {
                path.push_str(&format!("[{index}]"));
            }
        }
        let name = self.root.field(field).map_or("", |field| field.name);
        if !path.is_empty() && !name.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        path
    }
}

fn int<'a>(field: Option<Field>, role: Role, n: i64) -> Shown<'a> {
    match (role, field.map(|field| field.kind)) {
        _ if role.is_secret() => Shown::Withheld(size_of::<i64>() as u32),
        (Role::ErrorCode, _) => Shown::ErrorCode(ErrorCode(n as i16)),
        (Role::RowKey, _) => Shown::ApiKey(ApiKey(n as i16)),
        (_, Some(Kind::Bool)) => Shown::Bool(n != 0),
        (_, Some(Kind::Float64)) => Shown::Float(f64::from_bits(n as u64)),
        _ => Shown::Int(n),
    }
}
