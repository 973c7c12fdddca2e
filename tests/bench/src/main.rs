//! The benchmark's command line.

fn main() {}
