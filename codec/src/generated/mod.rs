//! What `codec/generator` makes of Kafka's message definitions: run `cargo run -p
//! klamp-layout-generator` to write it anew. Only this file and `short.rs` are written by hand.

#[rustfmt::skip]
pub(crate) mod full;
#[rustfmt::skip]
pub(crate) mod hot;
#[rustfmt::skip]
pub(crate) mod names;
#[rustfmt::skip]
pub(crate) mod releases;
pub(crate) mod short;
#[rustfmt::skip]
pub(crate) mod straight;
