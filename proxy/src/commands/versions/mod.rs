//! `klamp versions`: asks a broker which versions it speaks, and prints them beside ours.

mod ask;
mod print;

use crate::cli::{Exit, VersionsArgs};
use crate::record;
use std::io::{self, Write};
use tokio::runtime::Builder;

/// Asks and prints.
pub(crate) fn versions(args: VersionsArgs) -> Exit {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start: {error}")),
    };
    let asked = runtime.block_on(ask::ask(&args.broker, args.timeout));
    // A look-up that hangs must not keep the process.
    runtime.shutdown_background();
    let answer = match asked {
        Ok(answer) => answer,
        Err(error) => return failed(&format!("{}: {error}", args.broker)),
    };
    if let Some(trouble) = &answer.trouble {
        eprintln!("warning: {}: {trouble}", args.broker);
    }
    let broker = args.broker.to_string();
    let print = if args.json { print::json } else { print::text };
    let text = print(&broker, record::catalog().kafka_schema, &answer);
    match io::stdout().write_all(text.as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Clean,
        Err(error) => failed(&format!("cannot print: {error}")),
        Ok(()) => Exit::Clean,
    }
}

fn failed(why: &str) -> Exit {
    eprintln!("error: {why}");
    Exit::Failed
}
