//! The client: opens the connections of a load, sends its requests, and checks every answer's
//! correlation id and length.

use crate::frames::{Conversation, Kind};
use crate::stream::{Incoming, Outgoing, READ, number, read};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long nothing may come before a run has failed.
const PATIENCE: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// Connections that are opened before the first of them has its answer: fewer than any listener lets
/// wait.
const AT_ONCE: usize = 64;

/// An answer's length and correlation id.
const HEAD: usize = 8;

/// Open connections, each of which has had its ApiVersions and Metadata answers.
pub struct Source<'a> {
    conversation: &'a Conversation,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    events: Vec<Event>,
    buffer: Vec<u8>,
    /// Bytes of whole frames, in and out.
    bytes: u64,
}

#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    incoming: Incoming<HEAD>,
    outgoing: Outgoing,
    waiting: VecDeque<Kind>,
    /// The correlation id of the next request, and of the next answer.
    next: u32,
    expected: u32,
}

/// What an exchange of requests came to.
#[derive(Debug)]
pub struct Exchanged {
    /// Bytes moved, both directions together.
    pub bytes: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Where one request waits at a time: how long each took, in ascending order.
    pub round_trips: Vec<Duration>,
}

impl<'a> Source<'a> {
    /// Opens `count` connections to `address`, and asks on each for the versions, and for the
    /// metadata if `metadata`.
    ///
    /// # Errors
    /// Those of sockets, and if a right answer does not come in time.
    pub fn open(
        address: SocketAddr,
        count: u32,
        metadata: bool,
        conversation: &'a Conversation,
    ) -> io::Result<Self> {
        let mut source = Self {
            conversation,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            connections: Vec::new(),
            events: Vec::with_capacity(512),
            buffer: vec![0; READ],
            bytes: 0,
        };
        let count = count as usize;
        while source.connections.len() < count {
            let first = source.connections.len();
            let last = count.min(first + AT_ONCE);
            for _ in first..last {
                source.connect(address)?;
            }
            source.ask(first..last, Kind::ApiVersions)?;
            if metadata {
                source.ask(first..last, Kind::Metadata)?;
            }
        }
        Ok(source)
    }

    fn connect(&mut self, address: SocketAddr) -> io::Result<()> {
        let socket = TcpStream::connect(address)?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let data = EventData::new_u64(self.connections.len() as u64);
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&self.epoll, &socket, data, interest)?;
        self.connections.push(Connection {
            socket,
            incoming: Incoming::default(),
            outgoing: Outgoing::requests(),
            waiting: VecDeque::new(),
            next: 1,
            expected: 1,
        });
        Ok(())
    }

    /// Sends that request on each of these connections, and waits for all answers.
    fn ask(&mut self, which: std::ops::Range<usize>, kind: Kind) -> io::Result<()> {
        let mut missing = which.len();
        for index in which {
            self.send(index, kind)?;
        }
        while missing > 0 {
            self.turn(|| missing -= 1)?;
        }
        Ok(())
    }

    fn send(&mut self, index: usize, kind: Kind) -> io::Result<()> {
        let connection = &mut self.connections[index];
        connection.push(kind);
        connection
            .outgoing
            .flush(&self.conversation.requests, &connection.socket)
    }

    /// Sends `exchanges` requests, in turn over all connections, so that `window` wait at a time, and
    /// waits for all answers.
    ///
    /// # Errors
    /// Those of sockets, and if a right answer does not come in time.
    pub fn exchange(&mut self, exchanges: u64, window: u64) -> io::Result<Exchanged> {
        let singly = window == 1;
        let mut round_trips = Vec::with_capacity(if singly { exchanges as usize } else { 0 });
        let mut touched = Vec::new();
        let (mut sent, mut answered) = (0, 0);
        let bytes = self.bytes;
        let start = Instant::now();
        let mut asked = start;
        loop {
            let due = exchanges.min(answered + window);
            while sent < due {
                // In turn, whichever connection the answers came on.
                let index = (sent % self.connections.len() as u64) as usize;
                self.connections[index].push(Kind::Load);
                if touched.last() != Some(&index) {
                    touched.push(index);
                }
                sent += 1;
            }
            for index in touched.drain(..) {
                let connection = &mut self.connections[index];
                connection
                    .outgoing
                    .flush(&self.conversation.requests, &connection.socket)?;
            }
            if answered == exchanges {
                break;
            }
            let before = answered;
            self.turn(|| answered += 1)?;
            // Not after a turn that had a part of an answer only.
            if singly && answered > before {
                let now = Instant::now();
                round_trips.push(now - asked);
                asked = now;
            }
        }
        let elapsed = start.elapsed();
        round_trips.sort_unstable();
        Ok(Exchanged {
            bytes: self.bytes - bytes,
            elapsed,
            round_trips,
        })
    }

    /// Waits for events, and tells of every answer.
    fn turn(&mut self, mut answer: impl FnMut()) -> io::Result<()> {
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        if epoll::wait(&self.epoll, room, Some(&PATIENCE))? == 0 {
            let waiting: usize = self.connections.iter().map(|it| it.waiting.len()).sum();
            let connections = self.connections.len();
            let text = format!("no answer for 10 s: {waiting} wait, {connections} connections");
            return Err(io::Error::other(text));
        }
        for event in &self.events {
            let connection = &mut self.connections[event.data.u64() as usize];
            self.bytes += connection.serve(self.conversation, &mut self.buffer, &mut answer)?;
        }
        Ok(())
    }
}

impl Connection {
    fn push(&mut self, kind: Kind) {
        self.outgoing.push(kind, self.next);
        self.waiting.push_back(kind);
        self.next += 1;
    }

    /// Reads and writes what can be. Gives the bytes of the exchanges that ended.
    fn serve(
        &mut self,
        conversation: &Conversation,
        buffer: &mut [u8],
        mut answer: impl FnMut(),
    ) -> io::Result<u64> {
        self.outgoing.flush(&conversation.requests, &self.socket)?;
        let mut bytes = 0;
        while let Some(count) = read(&self.socket, buffer)? {
            if count == 0 {
                return Err(io::Error::other("the proxy closed a connection"));
            }
            let (waiting, expected) = (&mut self.waiting, &mut self.expected);
            self.incoming.take(&buffer[..count], |head, size| {
                let kind = waiting.pop_front();
                let kind = kind.ok_or_else(|| io::Error::other("an answer to no request"))?;
                let template = conversation.answers.of(kind).len();
                // A proxy may change the answer about versions, and only that.
                let right = size == template || kind == Kind::ApiVersions;
                if number(head, 4) != *expected || !right {
                    let text = format!("a wrong answer to {kind:?} {expected}: {head:?}");
                    return Err(io::Error::other(text));
                }
                *expected += 1;
                bytes += (size + conversation.requests.of(kind).len()) as u64;
                answer();
                Ok(())
            })?;
            if count < buffer.len() {
                break;
            }
        }
        Ok(bytes)
    }
}

/// Opens a connection, asks for the versions, and closes it when the answer has come; so `times`.
/// Gives the bytes moved.
///
/// # Errors
/// Those of sockets, and if a right answer does not come in time.
pub fn churn(address: SocketAddr, times: u64, conversation: &Conversation) -> io::Result<u64> {
    let request = conversation.requests.of(Kind::ApiVersions);
    let id = number(request, 8);
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    for _ in 0..times {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        socket.write_all(request)?;
        let mut incoming = Incoming::<HEAD>::default();
        let mut answered = false;
        while !answered {
            let count = socket.read(&mut buffer)?;
            if count == 0 {
                return Err(io::Error::other("the proxy closed a connection"));
            }
            incoming.take(&buffer[..count], |head, size| {
                answered = true;
                bytes += (size + request.len()) as u64;
                let right = number(head, 4) == id;
                right
                    .then_some(())
                    .ok_or_else(|| io::Error::other("a wrong answer"))
            })?;
        }
    }
    Ok(bytes)
}
