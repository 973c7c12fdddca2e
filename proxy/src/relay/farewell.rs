//! Closing without harm to what was sent before.
//!
//! The trap: a socket that is closed while bytes lie unread in it resets the connection, and the
//! reset destroys what the peer has not read yet: an answer that the client waits for, or a Produce
//! with acks=0 on its way to the broker, which nobody would send again. So each peer that is still
//! there gets the rest of what was passed, then the end of the stream, and what it sends in the
//! meantime is read and thrown away, for a short time and a few bytes.

use super::ended::{Ended, Side};
use super::lane::{Io, Lane};
use super::wire::{self, Wire};
use klamp_codec::observation::CloseReason;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

/// How long a farewell may take. In a drain this counts from when all is written: those who end it
/// have a limit of their own.
const LIMIT: Duration = Duration::from_secs(1);

/// How much a peer may send during it.
const DISCARDED_BYTES: usize = 64 * 1024;

/// The state of a connection that is being closed.
pub(super) struct Farewell {
    ended: Ended,
    /// When it is over in any case.
    until: Option<Instant>,
    client: Parting,
    broker: Parting,
}

/// How far one peer's part of it has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parting {
    /// Writes what was passed, then shuts down.
    Speak,
    /// Reads and throws away; so many bytes are allowed still.
    Listen(usize),
    /// Nothing more to do.
    Over,
}

impl Farewell {
    /// `lost`: a peer that needs none, since its wire has failed.
    pub(super) fn new(ended: Ended, lost: Option<Side>, now: Instant) -> Box<Self> {
        let parting = |side| match lost {
            Some(lost) if lost == side => Parting::Over,
            _ => Parting::Speak,
        };
        let is_patient = ended == Ended::Session(CloseReason::Drained);
        Box::new(Self {
            ended,
            until: (!is_patient).then_some(now + LIMIT),
            client: parting(Side::Client),
            broker: parting(Side::Broker),
        })
    }

    /// Why the connection ended.
    pub(super) fn ended(&self) -> Ended {
        self.ended
    }

    /// When it is over in any case; `None` while that is for others to say.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Ready when both peers have been served. `request` and `response` are the connection's lanes.
    pub(super) fn poll(
        &mut self,
        (client, response): (&mut impl Wire, &mut Lane),
        (broker, request): (&mut impl Wire, &mut Lane),
        io: &mut Io<'_, '_>,
    ) -> Poll<()> {
        let client = (self.client).poll(client, response, request.at_eof(), io);
        let broker = (self.broker).poll(broker, request, response.at_eof(), io);
        if self.client != Parting::Speak && self.broker != Parting::Speak {
            (self.until).get_or_insert_with(|| io.clock.now() + LIMIT);
        }
        ready!(client);
        broker
    }
}

impl Parting {
    /// `outgoing` is the lane that writes to `peer`; `at_eof` tells that `peer` will send nothing more.
    fn poll(
        &mut self,
        peer: &mut impl Wire,
        outgoing: &mut Lane,
        at_eof: bool,
        io: &mut Io<'_, '_>,
    ) -> Poll<()> {
        loop {
            match *self {
                Self::Speak => {
                    let mut spoken = Ok(());
                    if !outgoing.is_shut() {
                        spoken = ready!(outgoing.write(peer, io.cx)).map(drop);
                        if spoken.is_ok() {
                            spoken = ready!(wire::shutdown(peer, io.cx));
                        }
                    }
                    outgoing.release(io.pool);
                    *self = match spoken {
                        Ok(()) if !at_eof => Self::Listen(DISCARDED_BYTES),
                        _ => Self::Over,
                    };
                }
                Self::Listen(left) => {
                    let mut buffer = io.pool.lend();
                    let read = wire::read(peer, io.cx, &mut buffer);
                    io.pool.take_back(buffer);
                    *self = match ready!(read) {
                        Ok(n) if 0 < n && n < left => Self::Listen(left - n),
                        _ => Self::Over,
                    };
                }
                Self::Over => return Poll::Ready(()),
            }
        }
    }
}
