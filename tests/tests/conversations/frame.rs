//! A frame that is sent, and what a capture may have of it: whoever wrote it knows.

/// Bytes that are kept of a frame, withheld ones not counted.
pub(crate) const FRAME: usize = 16 << 10;

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    Request,
    Response,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Request, Self::Response];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }
}

/// The length in front of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Int16,
    Int32,
    /// One more than it is, as in flexible versions.
    Compact,
    /// Of a tagged field.
    Varint,
}

impl Length {
    pub(crate) fn of(self, content: usize) -> Vec<u8> {
        let number = u32::try_from(content).expect("a field is small");
        match self {
            Self::Int16 => u16::try_from(content)
                .expect("a string is small")
                .to_be_bytes()
                .to_vec(),
            Self::Int32 => number.to_be_bytes().to_vec(),
            Self::Compact => varint(number + 1),
            Self::Varint => varint(number),
        }
    }
}

/// An UNSIGNED_VARINT.
pub(crate) fn varint(mut number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A part of a frame, by what may be kept of it.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// All.
    Plain(Vec<u8>),
    /// A length that becomes that of what is kept: of records the heads of batches, else nothing.
    Withheld {
        length: Length,
        content: Vec<u8>,
        heads: Option<Vec<Vec<u8>>>,
    },
    /// Nothing: what stands behind a message, or takes the place of one.
    Trailing(Vec<u8>),
}

impl Piece {
    /// Bytes of it that are withheld, if not kept all the same.
    pub(crate) fn withheld(&self) -> Option<usize> {
        match self {
            Self::Plain(_) => None,
            Self::Withheld { content, .. } | Self::Trailing(content) => Some(content.len()),
        }
    }

    fn append_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Plain(content) | Self::Trailing(content) => bytes.extend(content),
            Self::Withheld {
                length, content, ..
            } => {
                bytes.extend(length.of(content.len()));
                bytes.extend(content);
            }
        }
    }
}

/// What klamp can make of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Whole,
    /// It cannot be read to its end: its header is kept.
    Malformed,
    /// Nobody knows its layout: its header is kept.
    Unknown,
    /// A request that klamp answers itself.
    AnsweredHere,
    /// A raw SASL token.
    Token,
}

/// What tells one frame from others, but for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Head {
    pub(crate) api_key: i16,
    pub(crate) api_version: i16,
    pub(crate) correlation_id: i32,
}

/// A frame that is sent.
pub(crate) struct Frame {
    pub(crate) direction: Direction,
    pub(crate) what: String,
    /// `None` of a token.
    pub(crate) head: Option<Head>,
    pub(crate) kind: Kind,
    pub(crate) pieces: Vec<Piece>,
    /// Bytes of its length and its header, up to the client id.
    pub(crate) header: usize,
    /// An error code stands in it that no library knows.
    pub(crate) has_unnamed_code: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    /// Of these pieces, which are all but the length.
    pub(crate) fn new(
        direction: Direction,
        what: String,
        head: Option<Head>,
        kind: Kind,
        pieces: Vec<Piece>,
        header: usize,
    ) -> Self {
        let body = joined(&pieces);
        let mut bytes = Length::Int32.of(body.len());
        bytes.extend(body);
        Self {
            direction,
            what,
            head,
            kind,
            pieces,
            header,
            has_unnamed_code: false,
            bytes,
        }
    }

    /// What fields are withheld, with their sizes.
    pub(crate) fn withheld(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(Piece::withheld)
    }

    /// Bytes that are kept if all is that may be.
    pub(crate) fn plain(&self) -> usize {
        if self.kind != Kind::Whole {
            return self.header;
        }
        let heads = self.pieces.iter().map(|piece| match piece {
            Piece::Withheld {
                heads: Some(heads), ..
            } => heads.iter().map(Vec::len).sum(),
            _ => 0,
        });
        self.bytes.len() - self.withheld().sum::<usize>() + heads.sum::<usize>()
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, bytes, kind) = (self.direction.name(), self.bytes.len(), self.kind);
        write!(f, "{name} {} of {bytes} bytes, {kind:?}", self.what)?;
        if let Some(head) = self.head {
            let (key, version) = (head.api_key, head.api_version);
            write!(f, ", key {key} v{version} id {}", head.correlation_id)?;
        }
        write!(f, ", {} withheld fields", self.withheld().count())
    }
}

/// The bytes of these pieces.
pub(crate) fn joined(pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        piece.append_to(&mut bytes);
    }
    bytes
}
