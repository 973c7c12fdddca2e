//! A transparent protocol-inspecting Kafka proxy.

fn main() {}
