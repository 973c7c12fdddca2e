//! The command line: what `klamp` can be told, by flag or by environment. Texts for people stand
//! here, how values are written in `values`, and what makes no sense together is refused in `config`.

mod config;
mod environment;
mod values;

pub(crate) use config::{Config, RouteConfig};
pub(crate) use environment::FromEnvironment;

use self::values::{
    TimeLimit, address, api_version, capture_memory, file_bytes, one_of, port, positive_time,
    request_bytes, some, switch, time, time_limit,
};
use crate::destination::Upstream;
use crate::log::LogFormat;
use crate::table;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use klamp_codec::ApiKey;
use klamp_codec::session::{Clamp, NonKafka};
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// How the process ends, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// `run` was stopped by a signal, whether or not connections had to be cut; `versions` printed
    /// a table, `decode` read all.
    Clean = 0,
    /// Something failed while at work: `versions` got no usable answer, `decode` found what cannot be
    /// read, a thread died.
    Failed = 1,
    /// The command line or the environment is wrong; nothing was started.
    Usage = 2,
    /// An address to listen on could not be bound.
    CannotListen = 3,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  stopped by a signal (run), the table was printed (versions), all was read (decode)
  1  failed while at work: no usable answer (versions), a cut or damaged frame (decode), a fault of
     klamp's own (run)
  2  the command line or the environment is wrong
  3  an address to listen on could not be bound";

/// A transparent, protocol-inspecting Kafka proxy.
#[derive(Debug, Parser)]
#[command(name = "klamp", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What the arguments and the environment say; ends the process where that is an error or asks for
    /// help.
    pub(crate) fn read() -> Self {
        let args: Vec<_> = std::env::args_os().collect();
        let mut command = Self::command();
        let read = command.try_get_matches_from_mut(&args).and_then(|found| {
            let mut cli = Self::from_arg_matches(&found)?;
            if let (Command::Run(run), Some((name, found))) = (&mut cli.command, found.subcommand())
                && let Some(command) = command.find_subcommand(name)
            {
                run.from_environment = FromEnvironment::of(command, found);
            }
            Ok(cli)
        });
        read.unwrap_or_else(|error| environment::name_variable(error, &command, &args).exit())
    }
}

/// What klamp can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Relay connections between clients and brokers, and tell what passes.
    #[command(after_help = EXIT_CODES)]
    Run(Box<RunArgs>),
    /// Ask a broker which versions it speaks, and compare them with what klamp speaks (--clamp encode).
    #[command(after_help = format!("{}\n{EXIT_CODES}", table::LEGEND))]
    Versions(VersionsArgs),
    /// Print the messages in a file of frames, secrets and the content of records left out.
    #[command(after_help = EXIT_CODES)]
    Decode(DecodeArgs),
}

/// Arguments of `klamp run`.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Address to accept clients on. Give it once for each --upstream; they pair in order. In the
    /// environment several are separated by commas.
    #[arg(long, env = "KLAMP_LISTEN", value_name = "IP:PORT", value_parser = address)]
    #[arg(required = true, value_delimiter = ',')]
    listen: Vec<SocketAddr>,

    /// Broker that the connections of the --listen in the same place go to. In the environment
    /// several are separated by commas.
    #[arg(long, env = "KLAMP_UPSTREAM", value_name = "HOST:PORT")]
    #[arg(required = true, value_delimiter = ',')]
    upstream: Vec<Upstream>,

    /// Address of the pages for probes and Prometheus: /metrics, /livez, /readyz. Not served unless
    /// given.
    #[arg(long, env = "KLAMP_ADMIN", value_name = "IP:PORT", value_parser = address)]
    #[arg(help_heading = "Observation")]
    admin: Option<SocketAddr>,

    /// Address of the pages for operators: /versions, /connections, /clients, /captures. Not
    /// served unless given; an address other than loopback needs --debug-token.
    #[arg(long, env = "KLAMP_DEBUG", value_name = "IP:PORT", value_parser = address)]
    #[arg(help_heading = "Observation")]
    debug: Option<SocketAddr>,

    /// Bearer token that the pages for operators ask for. Give it in the environment: arguments can
    /// be read by every user of the host.
    #[arg(
        long,
        env = "KLAMP_DEBUG_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    #[arg(help_heading = "Observation")]
    debug_token: Option<String>,

    /// What a log line looks like.
    #[arg(long, env = "KLAMP_LOG_FORMAT", default_value = "text")]
    #[arg(help_heading = "Observation")]
    log_format: LogFormat,

    /// Which lines are logged: error, warn, info, debug, trace, or directives as in
    /// `info,klamp::relay=debug`. RUST_LOG is heeded where this is not given [default: info]
    #[arg(long, env = "KLAMP_LOG_LEVEL", value_name = "FILTER")]
    #[arg(help_heading = "Observation")]
    log_level: Option<String>,

    /// What makes klamp keep what a connection said last (/captures on --debug, --capture-dir), between
    /// commas: BEYOND, an error code that kafka-protocol does not know; UNNAMED, one that nothing
    /// names; an error code by name or number, of all APIs or, as in Produce:10, of one; malformed;
    /// mismatch (of correlation ids); slow=TIME, an answer later than that beyond the wait that was asked
    /// for; close, with requests in flight or right after acks=0; none.
    #[arg(
        long,
        env = "KLAMP_CAPTURE_ON",
        value_name = "LIST",
        default_value = "BEYOND"
    )]
    #[arg(help_heading = "Captures")]
    capture_on: Vec<String>,

    /// Frames that a capture goes on for after what triggered it.
    #[arg(
        long,
        env = "KLAMP_CAPTURE_FRAMES",
        value_name = "N",
        default_value_t = 32
    )]
    #[arg(help_heading = "Captures")]
    capture_frames: u32,

    /// How long a capture goes on at most.
    #[arg(
        long,
        env = "KLAMP_CAPTURE_TIME",
        value_name = "TIME",
        default_value = "2s"
    )]
    #[arg(value_parser = time, help_heading = "Captures")]
    capture_time: Duration,

    /// Directory to write captures to, as klamp-<time>-<id>-<reason>.pcapng that only their owner can
    /// read. It must be there.
    #[arg(long, env = "KLAMP_CAPTURE_DIR", value_name = "DIR")]
    #[arg(help_heading = "Captures")]
    capture_dir: Option<PathBuf>,

    /// Files of klamp's that there may be; the oldest are removed.
    #[arg(
        long,
        env = "KLAMP_CAPTURE_DIR_MAX_FILES",
        value_name = "N",
        default_value = "100"
    )]
    #[arg(value_parser = some::<NonZeroU32>, help_heading = "Captures")]
    capture_dir_max_files: NonZeroU32,

    /// Bytes that they may have together; the oldest are removed.
    #[arg(
        long,
        env = "KLAMP_CAPTURE_DIR_MAX_BYTES",
        value_name = "SIZE",
        default_value = "256MiB"
    )]
    #[arg(value_parser = file_bytes, help_heading = "Captures")]
    capture_dir_max_bytes: u64,

    /// Which versions clients are offered: no more than kafka-protocol can encode (keys that it lacks
    /// are hidden), all that klamp can read (everything up to Kafka 4.4), or what the broker says.
    #[arg(long, env = "KLAMP_CLAMP", default_value = "encode")]
    #[arg(value_parser = one_of([
        ("encode", Clamp::Encode),
        ("inspect", Clamp::Inspect),
        ("off", Clamp::Off),
    ]))]
    #[arg(help_heading = "Protocol")]
    clamp: Clamp,

    /// What happens to a connection that opens with TLS or HTTP: relayed unseen, or named in the
    /// log and closed.
    #[arg(long, env = "KLAMP_NON_KAFKA", default_value = "close")]
    #[arg(value_parser = one_of([("pass", NonKafka::Pass), ("close", NonKafka::Close)]))]
    #[arg(help_heading = "Protocol")]
    non_kafka: NonKafka,

    /// Connections at work at the same time, on all listeners together, of two file descriptors
    /// each; further ones are closed at once [default: 10000, or as many as the descriptors allow]
    #[arg(long, env = "KLAMP_MAX_CONNECTIONS", value_name = "N")]
    #[arg(value_parser = some::<NonZeroU32>, help_heading = "Limits")]
    max_connections: Option<NonZeroU32>,

    /// Largest request let through; as large as the broker's socket.request.max.bytes, at most 2GiB.
    #[arg(
        long,
        env = "KLAMP_MAX_REQUEST_BYTES",
        value_name = "SIZE",
        default_value = "100MiB"
    )]
    #[arg(value_parser = request_bytes, help_heading = "Limits")]
    max_request_bytes: u32,

    /// Close a connection whose request has stalled half-received for so long, or `off`.
    #[arg(
        long,
        env = "KLAMP_REQUEST_PROGRESS_TIMEOUT",
        value_name = "TIME",
        default_value = "10m"
    )]
    #[arg(value_parser = time_limit, help_heading = "Limits")]
    request_progress_timeout: TimeLimit,

    /// Close a connection whose response has stalled half-received for so long, or `off`.
    #[arg(
        long,
        env = "KLAMP_RESPONSE_PROGRESS_TIMEOUT",
        value_name = "TIME",
        default_value = "off"
    )]
    #[arg(value_parser = time_limit, help_heading = "Limits")]
    response_progress_timeout: TimeLimit,

    /// Memory for the latest requests and answers of each connection (up to 128KiB of one connection,
    /// and 16KiB of one message), on all connections together, and, up to a quarter of it, for captures
    /// made of them. Taken as they come; 0 keeps none, else at least 1MiB.
    #[arg(
        long,
        env = "KLAMP_CAPTURE_MEMORY",
        value_name = "SIZE",
        default_value = "64MiB"
    )]
    #[arg(value_parser = capture_memory, help_heading = "Captures")]
    capture_memory: usize,

    /// Keep the content of records too, of which captures else have the heads of batches alone: that of
    /// messages of up to 16KiB.
    #[arg(long, env = "KLAMP_CAPTURE_RECORDS", value_parser = switch())]
    #[arg(help_heading = "Captures")]
    capture_records: bool,

    /// Keep messages of up to 16KiB that klamp cannot read, of which captures else have the header alone:
    /// nobody can say where in them secrets are. (Of one that is broken behind a field that is withheld the
    /// header alone is kept all the same.)
    #[arg(long, env = "KLAMP_CAPTURE_OPAQUE", value_parser = switch())]
    #[arg(help_heading = "Captures")]
    capture_opaque: bool,

    /// How long the look-up of a broker's name and all attempts to connect may take together.
    #[arg(
        long,
        env = "KLAMP_DIAL_TIMEOUT",
        value_name = "TIME",
        default_value = "10s"
    )]
    #[arg(value_parser = positive_time, help_heading = "Limits")]
    dial_timeout: Duration,

    /// How long klamp may take to end after SIGTERM or SIGINT. Requests in flight are waited for, and
    /// clients that come back are served until shortly before. A second signal ends it at once.
    #[arg(
        long,
        env = "KLAMP_DRAIN_TIMEOUT",
        value_name = "TIME",
        default_value = "25s"
    )]
    #[arg(value_parser = time, help_heading = "Shutdown")]
    drain_timeout: Duration,

    /// Accept no new connections after SIGTERM or SIGINT. Otherwise they are served while klamp
    /// waits, since an application's own shutdown may need one.
    #[arg(long, env = "KLAMP_DRAIN_REFUSE_NEW", value_parser = switch())]
    #[arg(help_heading = "Shutdown")]
    drain_refuse_new: bool,

    /// Threads that relay connections [default: one for each core, 4 at most]
    #[arg(long, env = "KLAMP_THREADS", value_name = "N")]
    #[arg(value_parser = some::<NonZeroUsize>, help_heading = "Limits")]
    threads: Option<NonZeroUsize>,

    #[arg(skip)]
    pub(crate) from_environment: FromEnvironment,
}

/// Arguments of `klamp versions`.
#[derive(Args, Debug)]
pub(crate) struct VersionsArgs {
    /// The broker to ask.
    #[arg(value_name = "HOST:PORT")]
    pub(crate) broker: Upstream,

    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,

    /// How long the broker's answer may take, look-up and connecting included.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = positive_time)]
    pub(crate) timeout: Duration,
}

/// Arguments of `klamp decode`.
#[derive(Args, Debug)]
pub(crate) struct DecodeArgs {
    /// A capture of klamp's, of tcpdump's or Wireshark's (pcapng or pcap), or a file of requests, each
    /// behind its length, as they follow each other on a connection; `-` for standard input. What is
    /// cut or damaged is printed as far as it can be read.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// In a capture, the port of brokers, where it is neither 9092 nor to be told from who connects
    /// or asks; connections with other ones are left out. Several are separated by commas.
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = port)]
    pub(crate) port: Vec<u16>,

    /// The file has frames of responses, which do not say what they answer: this API, by name or number, in
    /// this version, as in Fetch:12.
    #[arg(long, value_name = "API:VERSION", value_parser = api_version)]
    pub(crate) response_of: Option<(ApiKey, i16)>,

    /// Print all fields instead of a line a message.
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Print a JSON object a line, of all fields, in the shape of Kafka's own request log (KIP-673).
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
