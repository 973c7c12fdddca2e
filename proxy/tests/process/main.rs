//! The binary as a process: what it reads, prints, serves and returns, seen from outside. Its peers
//! are scripted here; real brokers and clients are elsewhere.

mod broker;
mod captures;
mod client;
mod decode;
mod dialling;
mod draining;
mod idle;
mod klamp;
mod relaying;
mod start;
mod versions;
