//! A message as indented text, by Kafka's own names.

use super::form::{Batch, ClientId, End, Form, Head, Scope, Shown, UnknownTag};
use base64::display::Base64Display;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt::{self, Write as _};

/// Bytes that are shown of bytes.
const MOST_HEX: usize = 32;

/// Writes indented text, a field a line.
#[derive(Debug, Default)]
pub struct Text {
    out: String,
    /// How deep the next line stands.
    depth: usize,
    open: Vec<Open>,
}

/// What has begun, and how deep it stands.
#[derive(Debug)]
enum Open {
    Struct(usize),
    Structs {
        depth: usize,
        next: u32,
    },
    /// Values on one line.
    Values {
        is_first: bool,
    },
    Empty,
}

impl Text {
    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.out.push_str("  ");
        }
    }

    /// The name of a field, where its line begins.
    fn name(&mut self, name: &str) {
        self.depth = self.depth.max(1);
        self.indent(self.depth);
        self.out.push_str(name);
        self.out.push_str(": ");
    }

    fn write(&mut self, what: fmt::Arguments<'_>) {
        // A String takes all.
        let _ = self.out.write_fmt(what);
    }
}

impl Form for Text {
    fn head(&mut self, head: &Head<'_>) {
        self.write(format_args!("{head}\n"));
    }

    fn token(&mut self, bytes: u32) {
        self.write(format_args!("SASL token {}\n", Shown::Withheld(bytes)));
    }

    fn value(&mut self, name: &'static str, value: Shown<'_>) {
        if let Some(Open::Values { is_first }) = self.open.last_mut() {
            if !std::mem::replace(is_first, false) {
                self.out.push_str(", ");
            }
            return self.write(format_args!("{value}"));
        }
        self.name(name);
        self.write(format_args!("{value}\n"));
    }

    fn begin(&mut self, name: &'static str, scope: Scope) {
        self.name(name);
        let depth = self.depth;
        let open = match scope {
            Scope::Struct => {
                self.out.pop();
                self.out.push('\n');
                self.depth = depth.saturating_add(1);
                Open::Struct(depth)
            }
            Scope::Structs(0) | Scope::Values(0) => {
                self.out.push_str("[]\n");
                Open::Empty
            }
            Scope::Structs(count) => {
                self.write(format_args!("{count}\n"));
                Open::Structs { depth, next: 0 }
            }
            Scope::Values(_) => {
                self.out.push('[');
                Open::Values { is_first: true }
            }
        };
        self.open.push(open);
    }

    fn element(&mut self) {
        if let Some(Open::Structs { depth, next }) = self.open.last_mut() {
            let (depth, index) = (*depth, *next);
            *next = index.saturating_add(1);
            self.indent(depth.saturating_add(1));
            self.write(format_args!("[{index}]\n"));
            self.depth = depth.saturating_add(2);
        }
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some(Open::Struct(depth) | Open::Structs { depth, .. }) => self.depth = depth,
            Some(Open::Values { .. }) => self.out.push_str("]\n"),
            Some(Open::Empty) | None => {}
        }
    }

    fn batch(&mut self, batch: &Batch) {
        self.indent(self.depth.saturating_add(1));
        self.write(format_args!("{batch}\n"));
    }

    fn other_batches(&mut self, bytes: u32) {
        self.indent(self.depth.saturating_add(1));
        self.write(format_args!(
            "more batches, {bytes} bytes in all, were not kept\n"
        ));
    }

    fn unknown_tag(&mut self, tag: &UnknownTag) {
        self.depth = self.depth.max(1);
        self.indent(self.depth);
        self.write(format_args!("{tag}\n"));
    }

    fn finish(&mut self, end: &End) {
        if let Some(Open::Values { .. }) = self.open.last() {
            self.out.push('\n');
        }
        match end {
            End::Whole(0) => {}
            End::Whole(trailing) => {
                self.write(format_args!("  {trailing} bytes follow the message\n"));
            }
            End::Broken(broken) => self.write(format_args!("  {broken}\n")),
        }
    }

    fn written(&mut self) -> &mut String {
        &mut self.out
    }
}

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = self.direction.name();
        match self.api_key.name() {
            Some(name) => write!(f, "{name}")?,
            None => write!(f, "api key {}", self.api_key)?,
        }
        let (version, id) = (self.api_version, self.correlation_id);
        write!(f, " v{version} {direction}, correlation id {id}")?;
        match self.client_id {
            ClientId::None => {}
            ClientId::Null => f.write_str(", no client id")?,
            ClientId::Is(id) => write!(f, ", client id {}", Quoted(id))?,
        }
        write!(f, ", {} bytes", self.bytes)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Null => f.write_str("null"),
            Self::Bool(is) => write!(f, "{is}"),
            Self::Int(n) => write!(f, "{n}"),
            Self::Float(n) => write!(f, "{n:?}"),
            Self::Uuid(uuid) => write!(f, "{}", Base64Display::new(&uuid, &URL_SAFE_NO_PAD)),
            Self::ErrorCode(code) => write!(f, "{code} ({})", code.0),
            Self::ApiKey(key) => match key.name() {
                Some(name) => write!(f, "{name} ({})", key.0),
                None => write!(f, "{}", key.0),
            },
            Self::Text(text, len) => {
                write!(f, "{}", Quoted(text))?;
                match text.len() == len as usize {
                    true => Ok(()),
                    false => write!(f, "… ({len} bytes)"),
                }
            }
            Self::Bytes(bytes, len) => write!(f, "{len} bytes {}", Hex(bytes, len)),
            Self::Records(len) => write!(f, "{len} bytes"),
            Self::Withheld(len) => write!(f, "({len} bytes, not kept)"),
        }
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, bytes) = (self.base_offset, self.bytes);
        let codec = match self.codec {
            0 => "none",
            1 => "gzip",
            2 => "snappy",
            3 => "lz4",
            4 => "zstd",
            _ => "unknown",
        };
        let kind = match &self.kind {
            Ok(kind) => kind,
            Err(magic) => {
                return write!(
                    f,
                    "message: magic {magic}, offset {offset}, {bytes} bytes, codec {codec}"
                );
            }
        };
        write!(
            f,
            "batch: base offset {offset}, leader epoch {}, {} records, {bytes} bytes, codec {codec}, \
             producer id {}, producer epoch {}, base sequence {}",
            kind.leader_epoch,
            kind.records,
            kind.producer_id,
            kind.producer_epoch,
            kind.base_sequence
        )?;
        if kind.is_transactional {
            f.write_str(", transactional")?;
        }
        match kind.is_control {
            true => f.write_str(", control"),
            false => Ok(()),
        }
    }
}

impl fmt::Display for UnknownTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.in_header { " of the header" } else { "" };
        let what = Shown::Withheld(self.size);
        write!(f, "unknown tagged field {}{of}: {what}", self.tag)
    }
}

/// The first of so many bytes in hexadecimal digits.
struct Hex<'a>(&'a [u8], u32);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..MOST_HEX).unwrap_or(self.0);
        for byte in shown {
            write!(f, "{byte:02x}")?;
        }
        match shown.len() < self.1 as usize {
            true => f.write_char('…'),
            false => Ok(()),
        }
    }
}

/// A string of a peer's, fit for a terminal.
struct Quoted<'a>(&'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) => write!(f, "{text:?}"),
            Err(_) => write!(f, "b\"{}\"", self.0.escape_ascii()),
        }
    }
}
