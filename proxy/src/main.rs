//! A transparent protocol-inspecting Kafka proxy.

mod accept;
mod admin;
mod cli;
mod columns;
mod commands;
mod descriptors;
mod destination;
mod dial;
mod drain;
mod log;
mod record;
mod relay;
mod shown;
mod table;
mod view;
mod worker;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let exit = match Cli::parse().command {
        Command::Run(args) => commands::run(*args),
        Command::Versions(args) => commands::versions(args),
        Command::Decode(args) => commands::decode(&args),
    };
    ExitCode::from(exit as u8)
}
