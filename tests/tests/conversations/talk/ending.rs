//! Ends a connection, at times amid frames, and sees to it that klamp ends it at the other side too.

use super::{PATIENCE, Talk};
use crate::apis::SASL_HANDSHAKE;
use crate::frame::{Direction, Kind};
use socket2::SockRef;
use std::io::Write;
use std::time::Duration;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All is said.
    Quiet,
    /// The client closes amid what it says.
    Client,
    /// The same by RST.
    ClientReset,
    /// The broker closes meanwhile.
    Broker,
    /// The broker answers what nobody asked.
    Stray,
}

impl Ending {
    pub(crate) const ALL: [Self; 6] = [
        Self::Quiet,
        Self::Quiet,
        Self::Client,
        Self::ClientReset,
        Self::Broker,
        Self::Stray,
    ];
}

impl Talk {
    /// Ends it.
    pub(crate) fn end(&mut self, how: Ending) {
        self.is_ending = true;
        match how {
            Ending::Quiet => {}
            Ending::Stray => {
                let mut broker = self.ends[1].as_ref().expect("it is open");
                let sent = broker.write(b"\0\0\0\x0c\x05\xa5\xa5\xa5Xk5^Xk5^");
                sent.expect("klamp takes it");
                self.drain(Direction::Response);
            }
            Ending::Client | Ending::ClientReset | Ending::Broker => {
                let count = self.script.rng.usize(1..6);
                self.plan(count);
                let more = self.cuts.usize(1..=self.bytes_to_come().max(1));
                let stop = self.sent(Direction::Request) + more;
                self.pump(|talk| talk.sent(Direction::Request) >= stop);
                self.close(how);
            }
        }
        self.check_what_the_broker_got();
        self.ends = [None, None];
        for stream in &mut self.streams {
            (stream.bytes, stream.got) = Default::default();
        }
    }

    fn close(&mut self, how: Ending) {
        let (end, other) = match how {
            Ending::Broker => (&mut self.ends[1], Direction::Response),
            _ => (&mut self.ends[0], Direction::Request),
        };
        if how == Ending::ClientReset
            && let Some(client) = end.as_ref()
        {
            let linger = SockRef::from(client).set_linger(Some(Duration::ZERO));
            linger.expect("a socket takes options");
        }
        *end = None;
        self.drain(other);
    }

    /// Takes what still comes, until that is over.
    fn drain(&mut self, direction: Direction) {
        // What follows a handshake whose tokens have no header waits for its answer.
        let requests = &self.stream(Direction::Request).frames;
        let mut handshakes = requests.iter().filter(|it| {
            let head = it.frame.head.map(|head| (head.api_key, head.api_version));
            head == Some((SASL_HANDSHAKE, 0))
        });
        let responses = &self.stream(Direction::Response).frames;
        let is_answered = |it: Option<usize>| it.is_some_and(|it| responses[it].began.is_some());
        if handshakes.any(|it| !is_answered(it.partner)) {
            return;
        }
        while !self.stream(direction).is_over {
            if !self.receive(direction) && !self.stream(direction).is_over {
                assert!(self.is_ready(PATIENCE), "klamp does not end the connection");
            }
        }
    }

    fn check_what_the_broker_got(&self) {
        let requests = self.stream(Direction::Request);
        let mut sent = Vec::new();
        for it in &requests.frames {
            let bytes = &it.frame.bytes;
            let is_there = bytes.len().min(requests.sent.saturating_sub(it.start));
            // Of a request that klamp would have answered, cut in its header, the broker gets what there is.
            if it.frame.kind != Kind::AnsweredHere || is_there < it.frame.header {
                sent.extend(&bytes[..is_there]);
            }
        }
        let got = &requests.got;
        assert!(
            sent.starts_with(got),
            "the broker got other bytes than were sent"
        );
    }
}
