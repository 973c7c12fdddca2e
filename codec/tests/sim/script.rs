//! Which bytes arrive from whom, and when.

use klamp_codec::Direction;
use std::time::Duration;

/// Something that happens to a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Bytes arrive from the peer that sends this direction.
    Bytes(Direction, Vec<u8>),
    /// That peer closes its half.
    Eof(Direction),
    /// That peer is gone without an end: reset, timed out.
    Lost(Direction),
    /// The process wants to stop.
    Drain,
}

/// A connection's life, in order; times are from its start and never fall.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    events: Vec<(Duration, Act)>,
    now: Duration,
}

impl Script {
    /// Nothing happens yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The client sends bytes.
    #[must_use]
    pub fn client(self, bytes: &[u8]) -> Self {
        self.then(Act::Bytes(Direction::Request, bytes.to_vec()))
    }

    /// The broker sends bytes.
    #[must_use]
    pub fn broker(self, bytes: &[u8]) -> Self {
        self.then(Act::Bytes(Direction::Response, bytes.to_vec()))
    }

    /// Whoever sends this direction sends bytes.
    #[must_use]
    pub fn send(self, direction: Direction, bytes: &[u8]) -> Self {
        self.then(Act::Bytes(direction, bytes.to_vec()))
    }

    /// The client closes its half.
    #[must_use]
    pub fn client_eof(self) -> Self {
        self.then(Act::Eof(Direction::Request))
    }

    /// The broker closes its half.
    #[must_use]
    pub fn broker_eof(self) -> Self {
        self.then(Act::Eof(Direction::Response))
    }

    /// The broker is gone without an end.
    #[must_use]
    pub fn broker_lost(self) -> Self {
        self.then(Act::Lost(Direction::Response))
    }

    /// The process wants to stop.
    #[must_use]
    pub fn drain(self) -> Self {
        self.then(Act::Drain)
    }

    /// Time passes; what follows happens later.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Self {
        self.now += time;
        self
    }

    /// What happens, and when.
    pub fn events(&self) -> &[(Duration, Act)] {
        &self.events
    }

    /// When the script ends: time may pass after its last event.
    pub fn end(&self) -> Duration {
        self.now
    }

    /// Bytes in all, both directions.
    pub fn len(&self) -> usize {
        self.events.iter().map(|(_, act)| act.bytes().len()).sum()
    }

    /// What arrives in one direction, in one piece.
    pub fn stream(&self, direction: Direction) -> Vec<u8> {
        self.events
            .iter()
            .filter_map(|(_, act)| match act {
                Act::Bytes(whose, bytes) if *whose == direction => Some(bytes.as_slice()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .concat()
    }

    /// The same life, its bytes cut by `cut`: given an event's offset among all bytes of the script and
    /// its length, it answers where to cut, ascending, each more than 0 and less than the length.
    #[must_use]
    pub fn cut(&self, mut cut: impl FnMut(usize, usize) -> Vec<usize>) -> Self {
        let mut events = Vec::new();
        let mut offset = 0;
        for (at, act) in &self.events {
            let Act::Bytes(direction, bytes) = act else {
                events.push((*at, act.clone()));
                continue;
            };
            let mut from = 0;
            for to in cut(offset, bytes.len()).into_iter().chain([bytes.len()]) {
                assert!(
                    from < to && to <= bytes.len(),
                    "a cut of {} at {to} after {from}",
                    bytes.len()
                );
                events.push((*at, Act::Bytes(*direction, bytes[from..to].to_vec())));
                from = to;
            }
            offset += bytes.len();
        }
        Self {
            events,
            now: self.now,
        }
    }

    /// The same life, with one event changed.
    #[must_use]
    pub fn with(mut self, which: usize, change: impl FnOnce(&mut Act)) -> Self {
        change(&mut self.events[which].1);
        self
    }

    /// The same life, with neighbouring bytes of one direction and one moment arriving at once.
    #[must_use]
    pub fn joined(&self) -> Self {
        let mut events: Vec<(Duration, Act)> = Vec::new();
        for (at, act) in &self.events {
            match (events.last_mut(), act) {
                (Some((before, Act::Bytes(one, held))), Act::Bytes(two, bytes))
                    if before == at && one == two =>
                {
                    held.extend_from_slice(bytes);
                }
                _ => events.push((*at, act.clone())),
            }
        }
        Self {
            events,
            now: self.now,
        }
    }

    fn then(mut self, act: Act) -> Self {
        if act != Act::Bytes(Direction::Request, Vec::new())
            && act != Act::Bytes(Direction::Response, Vec::new())
        {
            self.events.push((self.now, act));
        }
        self
    }
}

impl Act {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(_, bytes) => bytes,
            Self::Eof(_) | Self::Lost(_) | Self::Drain => &[],
        }
    }
}
