//! Cold reading: a frame told field by field, by the names that Kafka's definitions have, as a line,
//! as indented text, or as JSON.
//!
//! Two traps. A frame may be cut, damaged, or have holes where a recorder kept nothing: what can be
//! read is told, then where it broke. And frames hold secrets: whether a value may be seen is decided
//! in one place ([`Role::is_withheld`](crate::layout::Role::is_withheld)) before any form gets to know of
//! it, and by default bytes may not.

mod form;
mod json;
mod line;
mod plain;
mod reading;
pub(crate) mod records;
mod text;

pub use form::{
    Batch, BatchKind, Broken, Cause, ClientId, End, Form, Head, Scope, Shown, UnknownTag,
};
pub use json::Json;
pub use line::Line;
pub use plain::is_plain;
pub use records::{HEAD as BATCH_HEAD, batch_bytes};
pub use text::Text;

use crate::layout::Root;
use crate::mend::WithheldList;
use crate::session::header::{self, ReadHeader};
use crate::types::{ApiKey, CorrelationId, Direction, ErrorCode};
use reading::Body;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A request, which says itself what it asks.
    Request,
    /// The response to a request, which does not.
    Response(ApiKey, i16),
    /// A raw SASL token, of which nothing is told but its size.
    Token,
}

/// Tells what the frames are that a client sends on one connection, one after the other.
///
/// After SaslHandshake v0 come raw tokens, which have no header and are secrets: until there is an
/// ordinary request again, what has no layout is one.
#[derive(Debug, Default)]
pub struct Requests {
    tokens_may_follow: bool,
}

impl Requests {
    /// The next frame, which begins so behind its length field; all of it, where it is that short.
    pub fn next(&mut self, frame: &[u8]) -> Message {
        let exchange = header::api_key_and_version(frame);
        let has_layout = exchange.is_some_and(|(api_key, api_version)| {
            Root::find_full(Direction::Request, api_key, api_version).is_some()
        });
        if self.tokens_may_follow && !has_layout {
            return Message::Token;
        }
        self.tokens_may_follow = exchange == Some((ApiKey::SASL_HANDSHAKE, 0));
        Message::Request
    }
}

/// One frame being told to a form. It holds no more than a header, or one string.
#[derive(Debug)]
pub struct Render<F> {
    form: F,
    message: Message,
    /// Bytes behind the length field, as that field says.
    length: u32,
    /// Offset in the frame of the next byte, the length field included.
    at: u64,
    withheld: WithheldList,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The first bytes, the length field included.
    Header(Vec<u8>),
    Body(Box<Body>),
    /// Of a token nothing is looked at.
    Token,
    /// The message has ended at this offset of the frame.
    Behind(u64),
    Broken(Broken),
}

impl<F: Form> Render<F> {
    /// A frame whose length field says `length`.
    pub fn new(message: Message, length: u32, form: F) -> Self {
        let stage = match message {
            Message::Request | Message::Response(..) => {
                Stage::Header(length.to_be_bytes().to_vec())
            }
            Message::Token => Stage::Token,
        };
        Self {
            form,
            message,
            length,
            at: 4,
            withheld: WithheldList::default(),
            stage,
        }
    }

    /// The frame has been mended, and this is what it lacks: told is how long each field was, and what
    /// followed the message.
    #[must_use]
    pub fn withheld(self, withheld: WithheldList) -> Self {
        Self { withheld, ..self }
    }

    /// The next bytes of the frame. What lies beyond its end is left alone.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
        let mut rest = bytes.get(..left).unwrap_or(bytes);
        while let Stage::Header(head) = &mut self.stage {
            let Some(missing) = missing(self.message, head, self.length) else {
                self.read_header();
                continue;
            };
            let (taken, behind) = rest.split_at_checked(missing).unwrap_or((rest, &[]));
            head.extend_from_slice(taken);
            self.pass(taken.len());
            rest = behind;
            if taken.len() < missing {
                return;
            }
        }
        if let Stage::Body(body) = &mut self.stage {
            let read = body.bytes(rest, &mut self.form);
            self.settle(read);
        }
        self.pass(rest.len());
    }

    /// The next `n` bytes of the frame were not kept.
    pub fn hole(&mut self, n: u32) {
        let n = u32::try_from(self.left()).unwrap_or(u32::MAX).min(n);
        match &mut self.stage {
            Stage::Header(_) if n > 0 => self.broke(self.at, Cause::NotKept(n)),
            Stage::Body(body) => {
                let read = body.hole(n, &mut self.form);
                self.settle(read);
            }
            _ => {}
        }
        self.pass(n as usize);
    }

    /// No more bytes follow. Tells how it ended, and gives the form back.
    pub fn end(mut self) -> (End, F) {
        // A header or body may end without a byte of its own.
        self.bytes(&[]);
        let left = self.left();
        if let Stage::Token = self.stage {
            let withheld = u32::try_from(self.withheld.bytes()).unwrap_or(u32::MAX);
            self.form.token(self.length.saturating_add(withheld));
        }
        let end = match self.stage {
            Stage::Broken(broken) => End::Broken(broken),
            Stage::Token if left == 0 => End::Whole(0),
            Stage::Behind(at) if left == 0 => {
                let there = u32::try_from(self.at.saturating_sub(at)).unwrap_or(u32::MAX);
                End::Whole(there.saturating_add(self.withheld.rest()))
            }
            stage => End::Broken(Broken {
                at: self.at,
                path: match stage {
                    Stage::Body(body) => body.next_path(),
                    _ => String::new(),
                },
                cause: Cause::Ends(left),
            }),
        };
        self.form.finish(&end);
        (end, self.form)
    }

    /// The form, for what has been written so far.
    pub fn form(&mut self) -> &mut F {
        &mut self.form
    }

    /// Bytes of the frame that have not come.
    fn left(&self) -> u64 {
        header::frame_bytes(self.length).saturating_sub(self.at)
    }

    fn pass(&mut self, n: usize) {
        self.at = self.at.saturating_add(n as u64);
    }

    fn broke(&mut self, at: u64, cause: Cause) {
        self.stage = Stage::Broken(Broken {
            at,
            path: String::new(),
            cause,
        });
    }

    fn settle(&mut self, read: Result<Option<u64>, Broken>) {
        match read {
            Ok(None) => {}
            Ok(Some(at)) => self.stage = Stage::Behind(at),
            Err(broken) => self.stage = Stage::Broken(broken),
        }
    }

    /// Tells of the header, all of which is there, and goes on to the body.
    fn read_header(&mut self) {
        let Stage::Header(bytes) = std::mem::replace(&mut self.stage, Stage::Behind(0)) else {
            return;
        };
        let (direction, mut head, read) = match self.message {
            Message::Request => match header::read_request(&bytes, self.length) {
                ReadHeader::Whole(header) => {
                    let exchange = header.exchange;
                    let client_id = match header.client_id {
                        Ok(Some(id)) => ClientId::Is(id),
                        // (header v0)
                        Ok(None) if header.read == 12 => ClientId::None,
                        Ok(None) => ClientId::Null,
                        Err(_) => ClientId::None,
                    };
                    let id = exchange.correlation_id;
                    let head = self.head(exchange.api_key, exchange.api_version, id, client_id);
                    let read = header.client_id.is_ok().then_some(header.read);
                    (Direction::Request, head, read)
                }
                _ => return self.broke(self.at, Cause::TooShort),
            },
            Message::Response(api_key, api_version) => {
                let Some(id) = header::response_correlation_id(&bytes) else {
                    return self.broke(self.at, Cause::TooShort);
                };
                let head = self.head(api_key, api_version, id, ClientId::None);
                (Direction::Response, head, Some(8))
            }
            Message::Token => return,
        };
        head.direction = direction;
        let version = match is_refusal(&head, &bytes) {
            true => 0,
            false => head.api_version,
        };
        let root = Root::find_full(direction, head.api_key, version);
        let root = root.filter(|_| read.is_some());
        head.has_body = root.is_some();
        self.form.head(&head);
        let Some((root, read)) = root.zip(read) else {
            let cause = read.map_or(Cause::ClientId, |_| Cause::NoLayout);
            return self.broke(self.at, cause);
        };
        // A header may end before the bytes that it took to find its end.
        let behind = bytes.get(read..).unwrap_or_default();
        let start = self.at.saturating_sub(behind.len() as u64);
        let left = header::frame_bytes(self.length).saturating_sub(start);
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let mut body = Body::new(root, start, left, self.withheld.clone());
        let read = body.bytes(behind, &mut self.form);
        self.stage = Stage::Body(Box::new(body));
        self.settle(read);
    }

    fn head<'a>(
        &self,
        api_key: ApiKey,
        api_version: i16,
        correlation_id: CorrelationId,
        client_id: ClientId<'a>,
    ) -> Head<'a> {
        Head {
            direction: Direction::Request,
            api_key,
            api_version,
            correlation_id,
            client_id,
            bytes: header::frame_bytes(self.length).saturating_add(self.withheld.bytes()),
            has_body: false,
        }
    }
}

/// Whether it is a broker's answer to an ApiVersions version that it does not speak: error 35 in the shape
/// of version 0, whatever was asked for (KIP-511).
fn is_refusal(head: &Head<'_>, bytes: &[u8]) -> bool {
    head.direction == Direction::Response
        && head.api_key == ApiKey::API_VERSIONS
        && bytes.get(8..) == Some(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes())
}

/// How many bytes the header lacks, of which `head` are there; `None` where it can be read or refused.
fn missing(message: Message, head: &[u8], length: u32) -> Option<usize> {
    let need = match message {
        Message::Request => match header::read_request(head, length) {
            ReadHeader::Need(need) => need,
            _ => return None,
        },
        Message::Response(api_key, _) => {
            // With the error code, which tells which version it is.
            let most = if api_key == ApiKey::API_VERSIONS {
                10
            } else {
                8
            };
            usize::try_from(header::frame_bytes(length)).map_or(most, |bytes| most.min(bytes))
        }
        Message::Token => return None,
    };
    need.checked_sub(head.len()).filter(|missing| *missing > 0)
}
