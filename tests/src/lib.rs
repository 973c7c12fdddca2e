//! What the end-to-end tests and the demo share: brokers, clients, and klamp itself, each started
//! and stopped; and scripted peers that send what no well-behaved one would.
//!
//! Nothing here skips: where a broker or client cannot start, the caller panics with the path of
//! its log.

pub mod captures;
pub mod java;
pub mod kafka;
pub mod klamp;
pub mod mock;
pub mod needle;
pub mod peer;
pub mod place;
pub mod process;
pub mod records;
pub mod scrape;
pub mod seed;
pub mod tap;
pub mod tshark;
pub mod wait;
pub mod wire;
