//! What a message is told to, field by field, and what it is told of.
//!
//! The trap: all that is told comes from a peer. Whoever writes it down escapes it.

use crate::layout::Fault;
use crate::types::{ApiKey, CorrelationId, Direction, ErrorCode};
use std::fmt;

/// Writes a message down as it is told, in the order of the wire.
pub trait Form {
    /// What the frame says of itself: once, before all else, unless the frame ends before.
    fn head(&mut self, head: &Head<'_>);
    /// The frame is a raw SASL token of so many bytes: instead of a head.
    fn token(&mut self, bytes: u32);
    /// A field, or an element without a name of its own.
    fn value(&mut self, name: &'static str, value: Shown<'_>);
    /// A struct or an array begins. Of structs in an array each begins with [`Form::element`].
    fn begin(&mut self, name: &'static str, scope: Scope);
    /// The next struct of the innermost array begins.
    fn element(&mut self);
    /// The innermost struct or array ends.
    fn end(&mut self);
    /// The next batch in the records told of last.
    fn batch(&mut self, batch: &Batch);
    /// Behind that batch others are missing, of so many bytes in all.
    fn other_batches(&mut self, bytes: u32);
    /// A tagged field that the layout does not know: nor does anybody know whether it may be seen.
    fn unknown_tag(&mut self, tag: &UnknownTag);
    /// Nothing follows; structs and arrays may be open if it broke.
    fn finish(&mut self, end: &End);
    /// What has been written, for whoever takes it away.
    fn written(&mut self) -> &mut String;
}

/// What a frame says of itself, or is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    #[allow(missing_docs)]
    pub direction: Direction,
    /// Of a response that of its request, which it does not say itself.
    pub api_key: ApiKey,
    /// Of a response that of its request.
    pub api_version: i16,
    #[allow(missing_docs)]
    pub correlation_id: CorrelationId,
    #[allow(missing_docs)]
    pub client_id: ClientId<'a>,
    /// Bytes of the frame as its length field says, the length field and what is withheld included.
    pub bytes: u64,
    /// Whether a body follows: there is a layout for it.
    pub has_body: bool,
}

/// The client id of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientId<'a> {
    /// The header has none, or it could not be read.
    None,
    /// It is null.
    Null,
    /// UTF-8 where the peer keeps to the protocol.
    Is(&'a [u8]),
}

/// What begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A struct.
    Struct,
    /// An array of so many values without a name.
    Values(u32),
    /// An array of so many structs.
    Structs(u32),
}

/// A value, as far as it may be seen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Shown<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Uuid([u8; 16]),
    ErrorCode(ErrorCode),
    ApiKey(ApiKey),
    /// The first bytes of a string, and how many it has.
    Text(&'a [u8], u32),
    /// The first bytes of bytes that may be seen, and how many there are.
    Bytes(&'a [u8], u32),
    /// So many bytes of records.
    Records(u32),
    /// So many bytes that are not for everybody's eyes, or that nobody kept.
    Withheld(u32),
}

/// The head of a record batch; never what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Offset of its first record; of what is older than batches that of the message.
    pub base_offset: i64,
    /// All of its bytes, its head included.
    pub bytes: u64,
    /// How records are compressed: 0 for not.
    pub codec: u8,
    /// What only batches have (magic 2); else the magic, 0 or 1, of a message.
    pub kind: Result<BatchKind, u8>,
}

/// What a batch says beyond a message of older brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct BatchKind {
    pub leader_epoch: i32,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub records: i32,
    pub is_transactional: bool,
    pub is_control: bool,
}

/// A tagged field that the layout does not know: nor does anybody know whether it may be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownTag {
    #[allow(missing_docs)]
    pub tag: u32,
    /// Its size in bytes.
    pub size: u32,
    /// Whether it is the header's.
    pub in_header: bool,
}

/// How a frame ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It was read to its end, up to so many bytes behind the message.
    Whole(u32),
    /// It could not be read on.
    Broken(Broken),
}

/// Where and why a frame could not be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Offset in the frame, its length field included, of what is wrong or missing.
    pub at: u64,
    /// The field, from the message on: `Topics[1]/Partitions[0]/Index`. Empty in the header.
    pub path: String,
    #[allow(missing_docs)]
    pub cause: Cause,
}

/// Why a frame could not be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// There are no more bytes, though the frame has so many more.
    #[error("the bytes end here, {0} more belong to the frame")]
    Ends(u64),
    /// A length or count is among so many bytes that were not kept.
    #[error("{0} bytes were not kept here")]
    NotKept(u32),
    /// The frame is too short for a header.
    #[error("too short for a header")]
    TooShort,
    /// The client id is longer than its frame.
    #[error("the client id does not fit in the frame")]
    ClientId,
    /// Nobody here knows what this version of this API looks like.
    #[error("no layout is known of this version")]
    NoLayout,
    /// The body does not fit its layout.
    #[error("{0}")]
    Fault(Fault),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken at byte {}", self.at)?;
        if !self.path.is_empty() {
            write!(f, ", {}", self.path)?;
        }
        write!(f, ": {}", self.cause)
    }
}
