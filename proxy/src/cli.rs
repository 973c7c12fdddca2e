//! The command line: what `klamp` can be told, by flag or by environment, and what is refused before
//! anything starts.
//!
//! Guards against a start that looks right and is not: lists that do not pair up, limits of zero, an
//! operator's page open to everybody. [`RunArgs::check`] turns arguments into [`Config`], which the
//! rest of the process takes as sound.

use crate::destination::{OwnAddresses, Upstream};
use crate::log::LogFormat;
use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand};
use klamp_codec::session::{Clamp, NonKafka};
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;
use tracing_subscriber::filter::{ParseError, Targets};

/// How the process ends, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// `run` was stopped by a signal, whether or not connections had to be cut; `versions` printed
    /// a table.
    Clean = 0,
    /// Something failed while at work: `versions` got no usable answer, a thread died.
    Failed = 1,
    /// The command line or the environment is wrong; nothing was started.
    Usage = 2,
    /// An address to listen on could not be bound.
    CannotListen = 3,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  stopped by a signal (run), or the table was printed (versions)
  1  failed while at work: no usable answer (versions), a fault of klamp's own (run)
  2  the command line or the environment is wrong
  3  an address to listen on could not be bound";

/// A transparent, protocol-inspecting Kafka proxy.
#[derive(Debug, Parser)]
#[command(name = "klamp", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What klamp can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Relay connections between clients and brokers, and tell what passes.
    #[command(after_help = EXIT_CODES)]
    Run(Box<RunArgs>),
    /// Ask a broker which versions it speaks, and compare them with what klamp speaks.
    #[command(after_help = EXIT_CODES)]
    Versions(VersionsArgs),
}

/// Arguments of `klamp run`.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Address to accept clients on. Give it once for each --upstream; they pair in order.
    #[arg(long, env = "KLAMP_LISTEN", value_name = "IP:PORT")]
    #[arg(required = true, value_delimiter = ',')]
    listen: Vec<SocketAddr>,

    /// Broker that the connections of the --listen in the same place go to.
    #[arg(long, env = "KLAMP_UPSTREAM", value_name = "HOST:PORT")]
    #[arg(required = true, value_delimiter = ',')]
    upstream: Vec<Upstream>,

    /// Address of the pages for probes and Prometheus: /metrics, /livez, /readyz. Not served unless
    /// given.
    #[arg(long, env = "KLAMP_ADMIN", value_name = "IP:PORT")]
    #[arg(help_heading = "Observation")]
    admin: Option<SocketAddr>,

    /// Address of the pages for operators: /versions, /connections, /clients. Not served unless
    /// given; an address other than loopback needs --debug-token.
    #[arg(long, env = "KLAMP_DEBUG", value_name = "IP:PORT")]
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

    /// Whether the broker's version table is cut down for clients: to what kafka-protocol can
    /// encode, or not at all.
    #[arg(long, env = "KLAMP_CLAMP", default_value = "encode")]
    #[arg(value_parser = one_of([("encode", Clamp::Encode), ("off", Clamp::Off)]))]
    #[arg(help_heading = "Protocol")]
    clamp: Clamp,

    /// What happens to a connection that opens with TLS or HTTP: relayed unseen, or named in the
    /// log and closed.
    #[arg(long, env = "KLAMP_NON_KAFKA", default_value = "close")]
    #[arg(value_parser = one_of([("pass", NonKafka::Pass), ("close", NonKafka::Close)]))]
    #[arg(help_heading = "Protocol")]
    non_kafka: NonKafka,

    /// Connections at work at the same time, on all listeners together; further ones are closed
    /// at once. Each takes two file descriptors.
    #[arg(
        long,
        env = "KLAMP_MAX_CONNECTIONS",
        value_name = "N",
        default_value = "10000"
    )]
    #[arg(help_heading = "Limits")]
    max_connections: NonZeroU32,

    /// Largest request let through; as large as the broker's socket.request.max.bytes, at most 2GiB.
    #[arg(
        long,
        env = "KLAMP_MAX_REQUEST_BYTES",
        value_name = "SIZE",
        default_value = "100MiB"
    )]
    #[arg(value_parser = request_bytes, help_heading = "Limits")]
    max_request_bytes: u32,

    /// How long a request may stop arriving in its middle while klamp waits for it, or `off`.
    #[arg(
        long,
        env = "KLAMP_REQUEST_PROGRESS_TIMEOUT",
        value_name = "TIME",
        default_value = "10m"
    )]
    #[arg(value_parser = time_limit, help_heading = "Limits")]
    request_progress_timeout: TimeLimit,

    /// How long a response may stop arriving in its middle while klamp waits for it, or `off`.
    #[arg(
        long,
        env = "KLAMP_RESPONSE_PROGRESS_TIMEOUT",
        value_name = "TIME",
        default_value = "off"
    )]
    #[arg(value_parser = time_limit, help_heading = "Limits")]
    response_progress_timeout: TimeLimit,

    /// How long the look-up of a broker's name and all attempts to connect may take together.
    #[arg(
        long,
        env = "KLAMP_DIAL_TIMEOUT",
        value_name = "TIME",
        default_value = "10s"
    )]
    #[arg(value_parser = positive_time, help_heading = "Limits")]
    dial_timeout: Duration,

    /// How long after SIGTERM or SIGINT requests in flight are waited for. A second signal ends the
    /// wait.
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
    #[arg(long, env = "KLAMP_DRAIN_REFUSE_NEW", help_heading = "Shutdown")]
    drain_refuse_new: bool,

    /// Threads that relay connections [default: one for each core, 4 at most]
    #[arg(long, env = "KLAMP_THREADS", value_name = "N", help_heading = "Limits")]
    threads: Option<NonZeroUsize>,
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

/// What `klamp run` does; sound in itself.
#[derive(Debug)]
pub(crate) struct Config {
    /// At least one.
    pub(crate) routes: Vec<RouteConfig>,
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) debug: Option<SocketAddr>,
    /// Present where `debug` is not a loopback address; never empty.
    pub(crate) debug_token: Option<String>,
    pub(crate) log_format: LogFormat,
    pub(crate) log_filter: Targets,
    pub(crate) clamp: Clamp,
    pub(crate) non_kafka: NonKafka,
    pub(crate) max_connections: NonZeroU32,
    /// At most `i32::MAX`.
    pub(crate) max_request_bytes: u32,
    pub(crate) request_progress: Option<Duration>,
    pub(crate) response_progress: Option<Duration>,
    pub(crate) dial_timeout: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) drain_refuse_new: bool,
    pub(crate) threads: NonZeroUsize,
}

/// A listener and the broker behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteConfig {
    /// Port 0 lets the kernel choose one.
    pub(crate) listen: SocketAddr,
    pub(crate) upstream: Upstream,
}

/// Arguments that are each well-formed and together make no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error(
        "{listens} times --listen and {upstreams} times --upstream: each --listen needs the one \
         broker that its connections go to, in the same order (a list of bootstrap servers is not \
         an upstream)"
    )]
    Unpaired { listens: usize, upstreams: usize },
    #[error("--listen {0} is given twice")]
    ListenTwice(SocketAddr),
    #[error(
        "--upstream {upstream} is klamp's own --listen {listen}: connections would go in a loop"
    )]
    Loop {
        upstream: Upstream,
        listen: SocketAddr,
    },
    #[error(
        "--debug {0} can be reached from other hosts and shows who connects: give --debug-token \
         too, or a loopback address"
    )]
    OpenDebug(SocketAddr),
    #[error("--debug-token is empty")]
    EmptyToken,
    #[error("log level {directives:?}: {cause}")]
    LogLevel { directives: String, cause: String },
}

impl RunArgs {
    /// `rust_log`: RUST_LOG, heeded where no log level is given.
    pub(crate) fn check(self, rust_log: Option<String>) -> Result<Config, ConfigError> {
        if self.debug_token.as_deref() == Some("") {
            return Err(ConfigError::EmptyToken);
        }
        if let Some(debug) = self.debug
            && !debug.ip().to_canonical().is_loopback()
            && self.debug_token.is_none()
        {
            return Err(ConfigError::OpenDebug(debug));
        }
        Ok(Config {
            routes: pair(self.listen, self.upstream)?,
            admin: self.admin,
            debug: self.debug,
            debug_token: self.debug_token,
            log_format: self.log_format,
            log_filter: log_filter(self.log_level.or(rust_log))?,
            clamp: self.clamp,
            non_kafka: self.non_kafka,
            max_connections: self.max_connections,
            max_request_bytes: self.max_request_bytes,
            request_progress: self.request_progress_timeout.0,
            response_progress: self.response_progress_timeout.0,
            dial_timeout: self.dial_timeout,
            drain_timeout: self.drain_timeout,
            drain_refuse_new: self.drain_refuse_new,
            threads: self.threads.unwrap_or_else(default_threads),
        })
    }
}

fn pair(
    listens: Vec<SocketAddr>,
    upstreams: Vec<Upstream>,
) -> Result<Vec<RouteConfig>, ConfigError> {
    if listens.len() != upstreams.len() {
        return Err(ConfigError::Unpaired {
            listens: listens.len(),
            upstreams: upstreams.len(),
        });
    }
    for (n, listen) in listens.iter().enumerate() {
        if listen.port() > 0 && listens[..n].contains(listen) {
            return Err(ConfigError::ListenTwice(*listen));
        }
    }
    for upstream in &upstreams {
        // A name may resolve to anything by the time it is dialled, and is checked then.
        let Ok(ip) = upstream.host().parse::<IpAddr>() else {
            continue;
        };
        let address = SocketAddr::new(ip, upstream.port());
        let leads_to = |listen: &&SocketAddr| OwnAddresses::new(vec![**listen]).contain(address);
        if let Some(listen) = listens.iter().find(leads_to) {
            return Err(ConfigError::Loop {
                upstream: upstream.clone(),
                listen: *listen,
            });
        }
    }
    let routes = listens.into_iter().zip(upstreams);
    Ok(routes
        .map(|(listen, upstream)| RouteConfig { listen, upstream })
        .collect())
}

fn log_filter(directives: Option<String>) -> Result<Targets, ConfigError> {
    let directives = match directives {
        Some(given) if !given.is_empty() => given,
        _ => "info".to_owned(),
    };
    directives
        .parse::<Targets>()
        .map_err(|error: ParseError| ConfigError::LogLevel {
            directives,
            cause: error.to_string(),
        })
}

fn default_threads() -> NonZeroUsize {
    const MOST: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    std::thread::available_parallelism().map_or(NonZeroUsize::MIN, |cores| cores.min(MOST))
}

/// A time limit that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeLimit(Option<Duration>);

fn time_limit(text: &str) -> Result<TimeLimit, String> {
    if text == "off" {
        return Ok(TimeLimit(None));
    }
    positive_time(text)
        .map(|time| TimeLimit(Some(time)))
        .map_err(|error| format!("{error}, or `off`"))
}

fn positive_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("expected more than no time at all".to_owned()),
        time => Ok(time),
    }
}

/// Up to a year, so that no deadline overflows a clock.
fn time(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    match humantime::parse_duration(text) {
        Ok(time) if time <= YEAR => Ok(time),
        Ok(_) => Err("expected a year at most".to_owned()),
        Err(_) => Err("expected a time with its unit, as in 500ms, 10s or 1h 30m".to_owned()),
    }
}

/// From a byte to what a frame's length can say.
fn request_bytes(text: &str) -> Result<u32, String> {
    let size: bytesize::ByteSize = text
        .parse()
        .map_err(|_| "expected a size, as in 104857600, 100MiB or 100MB".to_owned())?;
    match u32::try_from(size.as_u64()) {
        Ok(bytes) if bytes > 0 && i32::try_from(bytes).is_ok() => Ok(bytes),
        // The length of a frame is an int32, so that 2GiB itself is one byte too many.
        Ok(bytes) if bytes == 1 << 31 => Ok(i32::MAX as u32),
        _ => Err("expected at least 1 byte and at most 2GiB".to_owned()),
    }
}

/// A parser for a few words, each with its value.
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    clap::builder::PossibleValuesParser::new(words.map(|(word, _)| word)).try_map(move |given| {
        let value = words.iter().find(|(word, _)| *word == given);
        value.map(|(_, value)| *value).ok_or("not one of the words")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    const ROUTE: [&str; 4] = ["--listen", "127.0.0.1:9192", "--upstream", "broker:9092"];

    fn run(args: &[&str]) -> Result<RunArgs, clap::Error> {
        let cli = Cli::try_parse_from(["klamp", "run"].iter().chain(args))?;
        match cli.command {
            Command::Run(args) => Ok(*args),
            Command::Versions(_) => unreachable!("run was asked for"),
        }
    }

    fn config(more: &[&str]) -> Result<Config, ConfigError> {
        run(&[&ROUTE, more].concat()).unwrap().check(None)
    }

    fn routes(args: &[&str]) -> Result<Vec<RouteConfig>, ConfigError> {
        Ok(run(args).unwrap().check(None)?.routes)
    }

    #[test]
    fn the_definition_of_the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_listener_and_an_upstream_are_enough_and_the_rest_has_defaults() {
        let config = config(&[]).unwrap();
        assert_eq!(config.clamp, Clamp::Encode);
        assert_eq!(config.non_kafka, NonKafka::Close);
        assert_eq!(config.max_connections.get(), 10_000);
        assert_eq!(config.max_request_bytes, 100 << 20);
        assert_eq!(config.request_progress, Some(Duration::from_secs(600)));
        assert_eq!(config.response_progress, None);
        assert_eq!(config.dial_timeout, Duration::from_secs(10));
        assert_eq!(config.drain_timeout, Duration::from_secs(25));
        assert!(!config.drain_refuse_new);
        assert!((1..=4).contains(&config.threads.get()));
        assert_eq!(config.log_filter.to_string(), "info");
        assert_eq!((config.admin, config.debug), (None, None));
    }

    #[test]
    fn listeners_and_upstreams_pair_in_order() {
        let repeated = routes(&[
            "--listen=127.0.0.1:9192",
            "--upstream=a:1",
            "--listen=[::]:9193",
            "--upstream=b:2",
        ]);
        let listed = routes(&["--listen=127.0.0.1:9192,[::]:9193", "--upstream=a:1,b:2"]);
        let expected = [("127.0.0.1:9192", "a:1"), ("[::]:9193", "b:2")];
        let expected = expected.map(|(listen, upstream)| RouteConfig {
            listen: listen.parse().unwrap(),
            upstream: upstream.parse().unwrap(),
        });
        assert_eq!(repeated, Ok(expected.to_vec()));
        assert_eq!(listed, Ok(expected.to_vec()));
    }

    #[test]
    fn lists_that_do_not_pair_up_are_refused() {
        let lists = ["--listen=127.0.0.1:9192", "--upstream=a:1,b:2"];
        let expected = ConfigError::Unpaired {
            listens: 1,
            upstreams: 2,
        };
        assert_eq!(routes(&lists), Err(expected));
        assert!(run(&["--listen=127.0.0.1:9192"]).is_err());
        assert!(run(&["--upstream=a:1"]).is_err());
    }

    #[test]
    fn a_listener_given_twice_is_refused_save_where_the_kernel_chooses_the_port() {
        let twice = ["--listen=127.0.0.1:1,127.0.0.1:1", "--upstream=a:1,b:2"];
        let listen = "127.0.0.1:1".parse().unwrap();
        assert_eq!(routes(&twice), Err(ConfigError::ListenTwice(listen)));
        assert!(routes(&["--listen=127.0.0.1:0,127.0.0.1:0", "--upstream=a:1,b:2"]).is_ok());
    }

    #[test]
    fn an_upstream_that_is_a_listener_is_refused() {
        for (listen, upstream) in [
            ("127.0.0.1:9192", "127.0.0.1:9192"),
            ("0.0.0.0:9192", "127.0.0.1:9192"),
            ("[::]:9192", "[::1]:9192"),
        ] {
            let result = routes(&["--listen", listen, "--upstream", upstream]);
            assert!(
                matches!(result, Err(ConfigError::Loop { .. })),
                "{result:?}"
            );
        }
        assert!(routes(&["--listen=127.0.0.1:9192", "--upstream=127.0.0.1:9092"]).is_ok());
    }

    #[test]
    fn operators_pages_open_to_other_hosts_need_a_token() {
        let open = "0.0.0.0:9645".parse().unwrap();
        let result = config(&["--debug=0.0.0.0:9645"]);
        assert_eq!(result.unwrap_err(), ConfigError::OpenDebug(open));
        assert!(config(&["--debug=127.0.0.1:9645"]).is_ok());
        assert!(config(&["--debug=[::1]:9645"]).is_ok());
        assert!(config(&["--debug=0.0.0.0:9645", "--debug-token=secret"]).is_ok());
        let empty = config(&["--debug=0.0.0.0:9645", "--debug-token="]);
        assert_eq!(empty.unwrap_err(), ConfigError::EmptyToken);
    }

    #[test]
    fn sizes_and_times_are_given_as_people_write_them() {
        assert_eq!(request_bytes("100MiB"), Ok(104_857_600));
        assert_eq!(request_bytes("100MB"), Ok(100_000_000));
        assert_eq!(request_bytes("512"), Ok(512));
        assert_eq!(request_bytes("2GiB"), Ok(i32::MAX as u32));
        assert_eq!(time("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(time_limit("off"), Ok(TimeLimit(None)));
        let half_a_second = TimeLimit(Some(Duration::from_millis(500)));
        assert_eq!(time_limit("500ms"), Ok(half_a_second));
    }

    #[test]
    fn sizes_and_times_that_make_no_sense_are_refused() {
        for size in ["0", "-1", "3GiB", "16EiB", "many", ""] {
            assert!(request_bytes(size).is_err(), "{size}");
        }
        for limit in ["0s", "10", "never", "-1s", "300years", ""] {
            assert!(time_limit(limit).is_err(), "{limit}");
        }
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        for flag in ["--max-connections=0", "--threads=0", "--dial-timeout=off"] {
            assert!(run(&[&ROUTE[..], &[flag]].concat()).is_err(), "{flag}");
        }
    }

    #[test]
    fn policies_are_given_as_words() {
        let config = config(&["--clamp=off", "--non-kafka=pass"]).unwrap();
        assert_eq!(config.clamp, Clamp::Off);
        assert_eq!(config.non_kafka, NonKafka::Pass);
        assert!(run(&[&ROUTE[..], &["--clamp=inspect"]].concat()).is_err());
    }

    #[test]
    fn rust_log_is_heeded_where_no_level_is_given() {
        let filter = |args: &[&str], rust_log: Option<&str>| {
            let args = run(&[&ROUTE, args].concat()).unwrap();
            args.check(rust_log.map(str::to_owned))
                .map(|config| config.log_filter.to_string())
        };
        assert_eq!(filter(&[], Some("debug")), Ok("debug".to_owned()));
        assert_eq!(filter(&[], Some("")), Ok("info".to_owned()));
        let both = filter(&["--log-level=warn"], Some("debug"));
        assert_eq!(both, Ok("warn".to_owned()));
        let wrong = filter(&["--log-level=klamp=loud"], None);
        assert!(
            matches!(wrong, Err(ConfigError::LogLevel { .. })),
            "{wrong:?}"
        );
    }
}
