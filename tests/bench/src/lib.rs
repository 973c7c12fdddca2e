//! What a proxy between Kafka's clients and a broker costs: CPU, memory and delay, of klamp, of bare
//! pumps that only move bytes, and of other proxies, under the same loads in alternation.
//!
//! The trap: time differs more from run to run than proxies do from each other. So contenders take
//! turns within a round, each in a process of its own, and where the difference is small the system
//! calls and instructions per exchange are what tells them apart.

pub mod contender;
pub mod java;
pub mod report;
pub mod rivals;
pub mod sample;
