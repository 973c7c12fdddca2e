//! The loads: what is sent, over how many connections, and how many requests wait at a time.

use crate::frames::Conversation;
use std::time::Duration;

/// What is done with the connections of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// `exchanges` requests and answers over all connections together, in turn; `window` of them wait
    /// at a time.
    Exchanges {
        /// How many, over all connections.
        exchanges: u64,
        /// How many wait for their answer, over all connections.
        window: u64,
    },
    /// The connections are opened, do nothing for that time, and are closed.
    Idle(Duration),
    /// Each connection is opened, asks for the versions, and is closed before the next is opened.
    Churn,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Its name in tables.
    pub name: &'static str,
    /// How many connections there are.
    pub connections: u32,
    /// What is done with them.
    pub traffic: Traffic,
    /// The most rounds in which it is run: fewer where a run is long, or its figure does not vary.
    pub rounds: u32,
    make: fn() -> Conversation,
}

impl Load {
    /// Its frames, encoded.
    pub fn conversation(&self) -> Conversation {
        (self.make)()
    }

    /// How many requests are answered.
    pub fn requests(&self) -> u64 {
        match self.traffic {
            Traffic::Exchanges { exchanges, .. } => exchanges,
            Traffic::Idle(_) | Traffic::Churn => self.connections.into(),
        }
    }

    /// How many of so many exchanges are more than an ApiVersions request, which the sink does not
    /// count.
    pub fn reaches_sink(&self, exchanges: u64) -> u64 {
        match self.traffic {
            Traffic::Exchanges { .. } => exchanges,
            Traffic::Idle(_) | Traffic::Churn => 0,
        }
    }

    /// The same, but short: to see that it works, not what it costs.
    fn quick(mut self) -> Self {
        match &mut self.traffic {
            Traffic::Exchanges { exchanges, .. } => *exchanges = (*exchanges / 100).max(10),
            Traffic::Idle(time) => *time = Duration::from_millis(50),
            Traffic::Churn => {}
        }
        if self.connections > 100 {
            self.connections = 100;
        }
        self
    }
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const ALL: u32 = u32::MAX;

/// All loads; `quick` ones are to see that they work. A process may have `descriptors` files open,
/// and source and sink, like a proxy, have two for each connection.
pub fn all(quick: bool, descriptors: u64) -> Vec<Load> {
    let room = u32::try_from(descriptors.saturating_sub(600) / 2).unwrap_or(u32::MAX);
    let scale = |name, connections| {
        let make = || Conversation::produce(KIB);
        exchanges(name, connections, 40_000, 10, make).at_most(3)
    };
    let mut loads = vec![
        exchanges("produce-1m", 1, 1_024, 4, || Conversation::produce(MIB)),
        exchanges("fetch-1m", 1, 1_024, 4, || Conversation::fetch(1, MIB)),
        exchanges("produce-64k", 1, 8_192, 8, || {
            Conversation::produce(64 * KIB)
        }),
        exchanges("fetch-64k", 1, 8_192, 8, || {
            Conversation::fetch(1, 64 * KIB)
        }),
        exchanges("ping-200", 1, 20_000, 1, small),
        exchanges("pipe-200-c1", 1, 200_000, 64, small),
        exchanges("pipe-200-c8", 8, 200_000, 128, small),
        exchanges("fetch-1000p", 1, 3_000, 4, || {
            Conversation::fetch_partitions(1_000, 38)
        }),
        Load {
            name: "idle-10k",
            connections: room.min(10_000),
            traffic: Traffic::Idle(Duration::from_secs(2)),
            rounds: 2,
            make: small,
        },
        Load {
            name: "churn",
            connections: 5_000,
            traffic: Traffic::Churn,
            rounds: ALL,
            make: small,
        },
        scale("scale-10", 10),
        scale("scale-100", 100),
        scale("scale-1000", 1_000),
        scale("scale-5000", 5_000),
    ];
    if quick {
        loads = loads.into_iter().map(Load::quick).collect();
    }
    loads
}

/// A consumer that asks for four partitions and is told of one with one record, 200 bytes both ways.
fn small() -> Conversation {
    Conversation::fetch(4, 200)
}

fn exchanges(
    name: &'static str,
    connections: u32,
    exchanges: u64,
    window: u64,
    make: fn() -> Conversation,
) -> Load {
    Load {
        name,
        connections,
        traffic: Traffic::Exchanges { exchanges, window },
        rounds: ALL,
        make,
    }
}

impl Load {
    fn at_most(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Kind;

    #[test]
    fn frames_are_as_large_as_the_load_is_named() {
        let size = |name: &str| {
            let load = all(false, 1 << 20)
                .into_iter()
                .find(|load| load.name == name);
            let conversation = load.expect("there is that load").conversation();
            let size = |frames: &crate::frames::Frames| frames.of(Kind::Load).len();
            (size(&conversation.requests), size(&conversation.answers))
        };
        assert_eq!(size("produce-1m").0, MIB);
        assert_eq!(size("fetch-1m").1, MIB);
        assert_eq!(size("produce-64k").0, 64 * KIB);
        assert_eq!(size("fetch-64k").1, 64 * KIB);
        let (request, answer) = size("ping-200");
        assert!(request.abs_diff(200) < 20, "{request}");
        assert!(answer.abs_diff(200) < 5, "{answer}");
        assert!(size("fetch-1000p").1 > 100_000);
    }
}
