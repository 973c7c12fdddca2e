//! What a proxy between Kafka's clients and a broker costs: CPU, memory and delay, of klamp, of bare
//! pumps that only move bytes, and of other proxies, under the same loads in alternation.
//!
//! The trap: time differs more from run to run than proxies do from each other. So contenders take
//! turns within a round, each in a process of its own, and where the difference is small the system
//! calls and instructions per exchange are what tells them apart.

pub mod contender;
pub mod count;
pub mod facts;
pub mod frames;
pub mod java;
pub mod load;
pub mod measure;
pub mod own;
pub mod pump;
pub mod report;
pub mod rivals;
pub mod rounds;
pub mod sample;
pub mod sink;
pub mod source;
pub mod stream;
pub mod trial;
