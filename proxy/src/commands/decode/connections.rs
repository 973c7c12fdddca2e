//! The connections in a capture: which segment belongs to which, and which end is the broker.
//!
//! The trap: there may be more of them than anybody wants to hold. Those that are over give way, then
//! those that have been quiet longest: many at once, since each look at all of them takes its time.

use super::frames::Cutter;
use super::segment::Segment;
use super::shared::Shared;
use super::stream::{Stamp, Stream};
use super::talk::{Ends, Talk, is_request};
use klamp_codec::Direction;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// Connections that are held at once.
const MOST: usize = 4096;
/// Places that are free once some of so many have given way.
const FREE: usize = 256;

/// The port of Kafka's own examples, and of most brokers.
const KAFKA_PORT: u16 = 9092;

/// All that are open.
pub(super) struct Connections {
    open: HashMap<[SocketAddr; 2], Connection>,
    shared: Rc<Shared>,
    /// Ports of brokers; none is known where it is empty.
    ports: Vec<u16>,
    /// How many there have been.
    number: u64,
    /// Counts segments.
    now: u64,
}

struct Connection {
    talk: Talk,
    streams: [Stream; 2],
    cutters: [Cutter; 2],
    /// Which directions have ended.
    ended: [bool; 2],
    is_over: bool,
    /// Of the SYN, if there was one.
    first: Option<u32>,
    latest: u64,
}

impl Connections {
    pub(super) fn new(ports: Vec<u16>, shared: Rc<Shared>) -> Self {
        Self {
            open: HashMap::new(),
            shared,
            ports,
            number: 0,
            now: 0,
        }
    }

    /// Takes the next segment of the file.
    pub(super) fn take(&mut self, segment: &Segment<'_>, stamp: &Stamp) {
        self.now += 1;
        let mut key = [segment.from, segment.to];
        key.sort_unstable();
        let is_new = match self.open.get(&key) {
            Some(open) => segment.syn && !segment.ack && open.first != Some(segment.sequence),
            None => segment.syn || !segment.bytes.is_empty(),
        };
        if !segment.bytes.is_empty() || segment.missing > 0 {
            self.shared.met.borrow_mut().hear();
        }
        if is_new {
            self.shared.met.borrow_mut().meet(key);
            if let Some(mut old) = self.open.remove(&key) {
                old.finish("no answer, another connection took its place");
            }
            let Some(connection) = self.connection(segment) else {
                return;
            };
            self.make_room();
            self.open.insert(key, connection);
        }
        if let Some(connection) = self.open.get_mut(&key) {
            connection.latest = self.now;
            connection.take(segment, stamp);
        }
    }

    /// The file ends.
    pub(super) fn finish(&mut self) {
        let mut all: Vec<_> = self
            .open
            .drain()
            .map(|(_, connection)| connection)
            .collect();
        all.sort_by_key(|connection| connection.talk.ends.number);
        for mut connection in all {
            connection.finish("no answer in the file");
        }
    }

    /// A connection that begins with a segment, or is first seen by it; `None` where it is not
    /// Kafka's, as far as one can tell.
    fn connection(&mut self, segment: &Segment<'_>) -> Option<Connection> {
        let is_broker = |end: SocketAddr| match self.ports.as_slice() {
            [] => end.port() == KAFKA_PORT,
            ports => ports.contains(&end.port()),
        };
        let from_client = match (segment.syn, segment.ack) {
            (true, is_answer) => !is_answer,
            _ if is_broker(segment.to) => true,
            _ if is_broker(segment.from) => false,
            _ => is_request(segment.bytes).then_some(true)?,
        };
        let (client, broker) = match from_client {
            true => (segment.from, segment.to),
            false => (segment.to, segment.from),
        };
        if !self.ports.is_empty() && !is_broker(broker) {
            return None;
        }
        let is_kafka = is_broker(broker) || !segment.syn;
        let ends = Ends {
            client,
            broker,
            number: self.number,
        };
        self.number += 1;
        let stream = || Stream::new(self.shared.budget.held());
        let cutter = |direction| Cutter::new(direction, segment.syn);
        Some(Connection {
            talk: Talk::new(ends, is_kafka, Rc::clone(&self.shared)),
            streams: [stream(), stream()],
            cutters: [cutter(Direction::Request), cutter(Direction::Response)],
            ended: [false; 2],
            is_over: false,
            first: (segment.syn && !segment.ack).then_some(segment.sequence),
            latest: self.now,
        })
    }

    fn make_room(&mut self) {
        if self.open.len() < MOST {
            return;
        }
        self.open.retain(|_, open| !open.is_over);
        let Some(too_many) = self.open.len().checked_sub(MOST - FREE) else {
            return;
        };
        let mut quiet: Vec<_> = self
            .open
            .iter()
            .map(|(key, it)| (it.latest, *key))
            .collect();
        quiet.sort_unstable();
        for (_, key) in quiet.into_iter().take(too_many) {
            if let Some(mut quiet) = self.open.remove(&key) {
                quiet.finish("no answer yet, and no room to wait for it");
            }
        }
    }
}

impl Connection {
    fn take(&mut self, segment: &Segment<'_>, stamp: &Stamp) {
        if self.is_over || self.talk.is_foreign {
            return;
        }
        let direction = match segment.from == self.talk.ends.client {
            true => Direction::Request,
            false => Direction::Response,
        };
        let stream = &mut self.streams[direction as usize];
        if segment.syn {
            return stream.begin(segment.sequence.wrapping_add(1));
        }
        let (cutter, talk) = (&mut self.cutters[direction as usize], &mut self.talk);
        stream.take(segment, stamp, &mut |piece| cutter.take(piece, talk));
        self.ended[direction as usize] |= segment.fin;
        if segment.rst || self.ended == [true; 2] {
            self.finish(match (segment.rst, direction) {
                (true, Direction::Request) => "no answer, the client reset the connection",
                (true, Direction::Response) => "no answer, the broker reset the connection",
                // The other end has closed before.
                (false, Direction::Request) => "no answer, the broker closed the connection",
                (false, Direction::Response) => "no answer, the client closed the connection",
            });
        }
    }

    /// Nothing follows.
    fn finish(&mut self, why: &str) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        // Answers are looked for once all requests are known.
        for direction in [Direction::Request, Direction::Response] {
            let talk = &mut self.talk;
            let cutter = &mut self.cutters[direction as usize];
            self.streams[direction as usize].finish(&mut |piece| cutter.take(piece, talk));
            cutter.finish(talk);
        }
        self.talk.finish(why);
    }
}
