//! A transparent protocol-inspecting Kafka proxy.

// Until the command line wires the rooms together.
#[allow(dead_code)]
mod admin;
#[allow(dead_code)]
mod cli;
#[allow(dead_code)]
mod columns;
#[allow(dead_code)]
mod destination;
#[allow(dead_code)]
mod dial;
#[allow(dead_code)]
mod log;
#[allow(dead_code)]
mod record;
#[allow(dead_code)]
mod relay;
#[allow(dead_code)]
mod table;
#[allow(dead_code)]
mod view;

fn main() {}
