//! What is said on one connection: frames become messages, and a response finds its request.
//!
//! The trap: not every connection in a capture is Kafka's, and not every request has its answer there.
//! What cannot be read as Kafka from its first frame on is left alone unless it was asked for.

use super::frames::Frames;
use super::shared::Shared;
use super::stream::Stamp;
use super::told::Told;
use crate::capture::pcapng::comment::{ANSWERED_HERE, Note};
use klamp_codec::layout::Root;
use klamp_codec::observation::Exchange;
use klamp_codec::render::{Cause, End, Message, Render, Requests};
use klamp_codec::{ApiKey, CorrelationId, Direction};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

/// Requests that may wait for their answers on one connection.
const MOST_WAITING: usize = 4096;
/// Bytes that a waiting request is counted as, beside its text.
const OVERHEAD: usize = 4096;

/// The ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) client: SocketAddr,
    pub(super) broker: SocketAddr,
    /// Which connection of the file it is, from 0 on.
    pub(super) number: u64,
}

/// A message and what is known of it.
pub(super) struct Half {
    pub(super) told: Told,
    /// When its first byte came.
    pub(super) began: Duration,
    /// When its last byte came.
    pub(super) ended: Duration,
    /// Bytes of its frame, the length field included.
    pub(super) bytes: u64,
    /// What klamp noted on it.
    pub(super) note: Option<Note>,
    /// Which request it is, or answers; `None` for a raw SASL token, and what is no request.
    pub(super) of: Option<Exchange>,
}

/// A message that is not there whole.
struct Open {
    render: Render<Told>,
    bytes: u64,
    began: Duration,
    about: About,
}

/// What is known of a message before it is read.
struct About {
    note: Option<Note>,
    /// Which request it is, or answers.
    of: Option<Exchange>,
    /// Of a response: the request.
    answers: Option<Half>,
}

impl About {
    fn is_header_only(&self) -> bool {
        let note = self.note.as_ref();
        note.is_some_and(|note| note.header_only.is_some())
    }
}

/// One connection.
pub(super) struct Talk {
    pub(super) ends: Ends,
    shared: Rc<Shared>,
    requests: Requests,
    waiting: VecDeque<Half>,
    open: [Option<Open>; 2],
    /// It is Kafka's: its port is, or a frame was.
    is_kafka: bool,
    /// It is not Kafka's.
    pub(super) is_foreign: bool,
    /// ClientSoftwareName and ClientSoftwareVersion.
    software: Option<[String; 2]>,
}

impl Talk {
    pub(super) fn new(ends: Ends, is_kafka: bool, shared: Rc<Shared>) -> Self {
        Self {
            ends,
            shared,
            requests: Requests::default(),
            waiting: VecDeque::new(),
            open: [None, None],
            is_kafka,
            is_foreign: false,
            software: None,
        }
    }

    /// Nothing follows: what waits for an answer will not get it, for this reason.
    pub(super) fn finish(&mut self, why: &str) {
        while let Some(asked) = self.waiting.pop_front() {
            self.unanswered(asked, why);
        }
    }

    fn unanswered(&mut self, asked: Half, why: &str) {
        let software = self.software.as_ref();
        let asked = Some(asked);
        self.shared.exchange(&self.ends, software, asked, None, why);
    }

    /// Takes the first request that a response may answer. Those before it are not answered any more:
    /// brokers answer in order.
    fn asked(&mut self, is_answered: impl Fn(&Half) -> bool) -> Option<Half> {
        let index = self.waiting.iter().position(is_answered)?;
        for _ in 0..index {
            if let Some(asked) = self.waiting.pop_front() {
                self.unanswered(asked, "no answer in the file");
            }
        }
        self.waiting.pop_front()
    }

    fn begin_request(&mut self, length: u32, head: &[u8], stamp: &Stamp) {
        if !self.is_kafka {
            let head = [&length.to_be_bytes(), head].concat();
            self.is_foreign = !is_request(&head);
            self.is_kafka = !self.is_foreign;
            if self.is_foreign {
                return;
            }
        }
        let note = self.note(stamp);
        let guessed = self.requests.next(head);
        let noted = note.as_ref().and_then(|note| note.message);
        let message = match noted {
            Some(message @ (Message::Request | Message::Token)) => message,
            _ => guessed,
        };
        let of = match message {
            Message::Token => None,
            _ => exchange(head),
        };
        self.open(
            Direction::Request,
            message,
            length,
            stamp,
            About {
                note,
                of,
                answers: None,
            },
        );
    }

    fn begin_response(&mut self, length: u32, head: &[u8], stamp: &Stamp) {
        if !self.is_kafka {
            // Whoever speaks first here is no Kafka broker.
            self.is_foreign = true;
            return;
        }
        let note = self.note(stamp);
        let id = head.first_chunk().copied().map(i32::from_be_bytes);
        let noted = note.as_ref().and_then(|note| note.message);
        let noted_of = match (noted, id) {
            (Some(Message::Response(api_key, api_version)), Some(id)) => Some(Exchange {
                api_key,
                api_version,
                correlation_id: CorrelationId(id),
            }),
            _ => None,
        };
        let is_noted = noted_of.is_some() || noted == Some(Message::Token);
        let follows_token = self.waiting.front().is_some_and(|asked| asked.of.is_none());
        let asked = match is_noted {
            // (ids may repeat, and not every request is answered)
            true => self.asked(|asked| asked.of == noted_of),
            false if follows_token => self.waiting.pop_front(),
            false => self.asked(|asked| answers(asked, id)),
        };
        let of = match &asked {
            Some(asked) => asked.of,
            None if is_noted => noted_of,
            None => {
                let id = id.map_or(String::new(), |id| format!(" with correlation id {id}"));
                let what = format!("a response{id} answers no request in the file, {length} bytes");
                return self.shared.remark(&self.ends, stamp.time, &what);
            }
        };
        let message = of.map_or(Message::Token, |of| {
            Message::Response(of.api_key, of.api_version)
        });
        let about = About {
            note,
            of,
            answers: asked,
        };
        self.open(Direction::Response, message, length, stamp, about);
    }

    fn note(&self, stamp: &Stamp) -> Option<Note> {
        let comment = stamp.comment.as_ref();
        comment.map(|comment| Note::read(comment))
    }

    fn open(
        &mut self,
        direction: Direction,
        message: Message,
        length: u32,
        stamp: &Stamp,
        about: About,
    ) {
        let told = self.shared.told(about.note.as_ref());
        let withheld = about.note.as_ref().map(|note| note.withheld.clone());
        let withheld = withheld.unwrap_or_default();
        self.open[direction as usize] = Some(Open {
            render: Render::new(message, length, told).withheld(withheld),
            bytes: u64::from(length) + 4,
            began: stamp.time,
            about,
        });
    }

    fn end_request(&mut self, mut half: Half) {
        if let [Some(name), Some(version)] = &half.told.facts.software {
            self.software = Some([name.clone(), version.clone()]);
        }
        if half.note.as_ref().is_some_and(|note| note.is_answered_here) {
            return self.unanswered(half, ANSWERED_HERE);
        }
        let is_produce = half.of.is_some_and(|of| of.api_key == ApiKey::PRODUCE);
        if is_produce && half.told.facts.acks == Some(0) {
            return self.unanswered(half, "no answer wanted (acks=0)");
        }
        if half.of.is_none() && !half.told.facts.is_token {
            return self.unanswered(half, "no answer to look for");
        }
        half.told.count(OVERHEAD);
        self.waiting.push_back(half);
        while self.waiting.len() > MOST_WAITING
            || self.shared.budget.is_spent() && !self.waiting.is_empty()
        {
            if let Some(asked) = self.waiting.pop_front() {
                self.unanswered(asked, "no answer yet, and no room to wait for it");
            }
        }
    }
}

impl Frames for Talk {
    fn is_plausible(&self, direction: Direction, bytes: &[u8]) -> bool {
        match direction {
            Direction::Request => is_request(bytes),
            Direction::Response => {
                let id = bytes.get(4..).and_then(|id| id.first_chunk());
                let id = id.copied().map(i32::from_be_bytes);
                let length = bytes.first_chunk().copied().map(i32::from_be_bytes);
                length.is_some_and(|length| (4..1 << 30).contains(&length))
                    && self.waiting.iter().any(|asked| answers(asked, id))
            }
        }
    }

    fn begin(&mut self, direction: Direction, length: u32, head: &[u8], stamp: &Stamp) {
        match direction {
            _ if self.is_foreign => {}
            Direction::Request => self.begin_request(length, head, stamp),
            Direction::Response => self.begin_response(length, head, stamp),
        }
    }

    fn bytes(&mut self, direction: Direction, bytes: &[u8]) {
        if let Some(open) = &mut self.open[direction as usize] {
            open.render.bytes(bytes);
        }
    }

    fn hole(&mut self, direction: Direction, n: u32) {
        if let Some(open) = &mut self.open[direction as usize] {
            open.render.hole(n);
        }
    }

    fn end(&mut self, direction: Direction, stamp: &Stamp) {
        let Some(open) = self.open[direction as usize].take() else {
            return;
        };
        let (end, told) = open.render.end();
        // (what nobody here knows may well be whole)
        let is_damage = |end| matches!(end, End::Broken(broken) if broken.cause != Cause::NoLayout);
        let is_broken = is_damage(end) && !open.about.is_header_only();
        self.shared.count_frame(is_broken);
        let half = Half {
            told,
            began: open.began,
            ended: stamp.time,
            bytes: open.bytes,
            note: open.about.note,
            of: open.about.of,
        };
        match direction {
            Direction::Request => self.end_request(half),
            Direction::Response => {
                let (asked, software) = (open.about.answers, self.software.as_ref());
                self.shared
                    .exchange(&self.ends, software, asked, Some(half), "");
            }
        }
    }

    fn broken(&mut self, direction: Direction, why: String, stamp: &Stamp) {
        if !self.is_kafka {
            self.is_foreign = true;
        }
        if !self.is_foreign {
            self.shared.count_frame(true);
            let what = format!("{}: {why}", name(direction));
            self.shared.remark(&self.ends, stamp.time, &what);
        }
    }

    fn skipped(&mut self, direction: Direction, bytes: u64, stamp: &Stamp) {
        if !self.is_foreign {
            let what = format!(
                "{}: {bytes} bytes were skipped, in which no frame was found",
                name(direction)
            );
            self.shared.remark(&self.ends, stamp.time, &what);
        }
    }

    fn missing(&mut self, direction: Direction, bytes: u64, stamp: &Stamp) {
        if !self.is_foreign {
            let what = format!("{}: {bytes} bytes are not in the capture", name(direction));
            self.shared.remark(&self.ends, stamp.time, &what);
        }
    }
}

/// Whether a response with this correlation id is a request's.
fn answers(asked: &Half, id: Option<i32>) -> bool {
    let of = asked.of.map(|of| of.correlation_id.0);
    of.is_some() && of == id
}

fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Request => "requests",
        Direction::Response => "responses",
    }
}

/// What a request says of itself in its first bytes, behind the length.
fn exchange(head: &[u8]) -> Option<Exchange> {
    let head: [u8; 8] = *head.first_chunk()?;
    Some(Exchange {
        api_key: ApiKey(i16::from_be_bytes([head[0], head[1]])),
        api_version: i16::from_be_bytes([head[2], head[3]]),
        correlation_id: CorrelationId(i32::from_be_bytes([head[4], head[5], head[6], head[7]])),
    })
}

/// Whether a request could begin so: an API and a version that are known, and a client id of a length
/// that is not zero, so that what is full of zeros does not look like one.
pub(super) fn is_request(bytes: &[u8]) -> bool {
    let Some(bytes) = bytes.first_chunk::<14>() else {
        return false;
    };
    let int16 = |at: usize| i16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let length = i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let client_id = int16(12);
    let has_layout = Root::find_full(Direction::Request, ApiKey(int16(4)), int16(6)).is_some();
    let fits = client_id != 0 && i32::from(client_id) <= length - 10;
    has_layout && (10..1 << 30).contains(&length) && (-1..=1024).contains(&client_id) && fits
}
