//! A transparent protocol-inspecting Kafka proxy.

mod accept;
// Its pages come to life one by one.
#[allow(dead_code)]
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
#[allow(dead_code)]
mod relay;
mod shown;
mod table;
#[allow(dead_code)]
mod view;
mod worker;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let exit = match Cli::parse().command {
        Command::Run(args) => commands::run(*args),
        Command::Versions(args) => commands::versions(args),
    };
    ExitCode::from(exit as u8)
}
