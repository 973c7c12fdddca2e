//! The broker: answers every request at once from templates, on one thread, and counts.

use crate::frames::{Conversation, Kind};
use crate::stream::{Incoming, Outgoing, READ, is_gone, number, read};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The event of the file descriptor that tells the thread to end.
const END: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

/// What a request's key, version and correlation id end with, the length included.
const HEAD: usize = 12;

/// A running sink. Dropped, it closes all connections.
#[derive(Debug)]
pub struct Sink {
    address: SocketAddr,
    answered: Arc<AtomicU64>,
    end: OwnedFd,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Sink {
    /// Listens on a port of the kernel's choice, and answers as `conversation` has it.
    ///
    /// # Errors
    /// Those of sockets.
    pub fn start(conversation: Conversation) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        socket.listen(4096)?;
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from(socket);
        let address = listener.local_addr()?;
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &end, EventData::new_u64(END), EventFlags::IN)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        let answered = Arc::new(AtomicU64::new(0));
        let mut serving = Serving {
            conversation,
            epoll,
            listener,
            connections: Vec::new(),
            answered: answered.clone(),
            buffer: vec![0; READ],
        };
        Ok(Self {
            address,
            answered,
            end,
            thread: Some(std::thread::spawn(move || serving.run())),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests of the load that have come whole and unchanged so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Ends it.
    ///
    /// # Errors
    /// If a request came that the source did not send, or a socket failed.
    pub fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        // Fails only once 2^64 - 1 is written.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(()), |ended| {
            ended.unwrap_or_else(|_| Err(io::Error::other("the sink panicked")))
        })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// What the thread has.
struct Serving {
    conversation: Conversation,
    epoll: OwnedFd,
    listener: TcpListener,
    /// By file descriptor.
    connections: Vec<Option<Connection>>,
    answered: Arc<AtomicU64>,
    buffer: Vec<u8>,
}

struct Connection {
    socket: TcpStream,
    incoming: Incoming<HEAD>,
    outgoing: Outgoing,
}

impl Serving {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(512);
        loop {
            events.clear();
            epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                None,
            )?;
            for event in &events {
                match event.data.u64() {
                    END => return Ok(()),
                    LISTENER => self.accept()?,
                    // It fits: it was made from a file descriptor.
                    descriptor => {
                        let last = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
                        // The fields of an event stand packed.
                        let flags = event.flags;
                        self.serve(descriptor as usize, flags.intersects(last))?;
                    }
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => continue,
                Err(e) => return Err(e),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let descriptor = socket.as_raw_fd() as usize;
            let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let data = EventData::new_u64(descriptor as u64);
            epoll::add(&self.epoll, &socket, data, interest)?;
            if self.connections.len() <= descriptor {
                self.connections.resize_with(descriptor + 1, || None);
            }
            self.connections[descriptor] = Some(Connection {
                socket,
                incoming: Incoming::default(),
                outgoing: Outgoing::answers(),
            });
        }
    }

    fn serve(&mut self, descriptor: usize, ended: bool) -> io::Result<()> {
        let slot = &mut self.connections[descriptor];
        let Some(connection) = slot else {
            return Ok(());
        };
        let served = connection.serve(&self.conversation, &self.answered, &mut self.buffer, ended);
        match served {
            Ok(true) => {}
            Ok(false) => *slot = None,
            // A proxy may close a connection as it likes; the source notices where it should not.
            Err(e) if is_gone(&e) => *slot = None,
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

impl Connection {
    /// Whether it goes on.
    fn serve(
        &mut self,
        conversation: &Conversation,
        answered: &AtomicU64,
        buffer: &mut [u8],
        ended: bool,
    ) -> io::Result<bool> {
        loop {
            let count = match read(&self.socket, buffer)? {
                Some(0) => return Ok(false),
                Some(count) => count,
                None => break,
            };
            let mut whole = 0;
            let outgoing = &mut self.outgoing;
            self.incoming.take(&buffer[..count], |head, size| {
                let kind = match i16::from_be_bytes([head[4], head[5]]) {
                    18 => Kind::ApiVersions,
                    3 => Kind::Metadata,
                    _ => Kind::Load,
                };
                let sent = conversation.requests.of(kind);
                if size != sent.len() || head[..8] != sent[..8] {
                    return Err(io::Error::other(format!(
                        "a request came that was not sent so: {head:?}, {size} bytes"
                    )));
                }
                whole += u64::from(kind == Kind::Load);
                outgoing.push(kind, number(head, 8));
                Ok(())
            })?;
            answered.fetch_add(whole, Ordering::Relaxed);
            self.outgoing.flush(&conversation.answers, &self.socket)?;
            // What comes later is a new event; a FIN that came with these bytes is in this one.
            if count < buffer.len() && !ended {
                break;
            }
        }
        self.outgoing.flush(&conversation.answers, &self.socket)?;
        Ok(true)
    }
}
