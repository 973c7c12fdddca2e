//! What `klamp run` is to do, checked as a whole before anything starts.
//!
//! Guards against a start that looks right and is not: lists that do not pair up, a loop onto klamp
//! itself, an operator's page open to everybody. The rest of the process takes [`Config`] as sound.

use super::{FromEnvironment, RunArgs};
use crate::capture::tape::Settings;
use crate::capture::{CaptureTerms, DirectoryBounds};
use crate::destination::{OwnAddresses, Upstream};
use crate::log::LogFormat;
use klamp_codec::session::{Clamp, NonKafka};
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};

/// What `klamp run` does; sound in itself.
#[derive(Debug)]
pub(crate) struct Config {
    /// At least one.
    pub(crate) routes: Vec<RouteConfig>,
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) debug: Option<SocketAddr>,
    /// Present where `debug` is not a loopback address; never empty.
    pub(crate) debug_token: Option<String>,
    pub(crate) captures: CaptureTerms,
    pub(crate) log_format: LogFormat,
    pub(crate) log_filter: Targets,
    pub(crate) clamp: Clamp,
    pub(crate) non_kafka: NonKafka,
    /// `None`: as many as is usual and possible.
    pub(crate) max_connections: Option<NonZeroU32>,
    /// At most `i32::MAX`.
    pub(crate) max_request_bytes: u32,
    pub(crate) request_progress: Option<Duration>,
    pub(crate) response_progress: Option<Duration>,
    pub(crate) dial_timeout: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) drain_refuse_new: bool,
    pub(crate) threads: NonZeroUsize,
    pub(crate) recorder: Settings,
    pub(crate) from_environment: FromEnvironment,
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
    #[error("--capture-dir with --capture-memory 0: the recorder is off, nothing would be written")]
    NothingToWrite,
    #[error("--capture-on: {0}")]
    CaptureOn(String),
    #[error("{by}: the log level {directives:?}: {cause}")]
    LogLevel {
        /// The flag, or RUST_LOG.
        by: &'static str,
        directives: String,
        cause: String,
    },
}

impl ConfigError {
    /// The flags whose values make no sense.
    pub(crate) fn flags(&self) -> &'static [&'static str] {
        match self {
            Self::Unpaired { .. } | Self::Loop { .. } => &["--listen", "--upstream"],
            Self::ListenTwice(_) => &["--listen"],
            Self::OpenDebug(_) => &["--debug"],
            Self::EmptyToken => &["--debug-token"],
            Self::NothingToWrite => &["--capture-dir", "--capture-memory"],
            Self::CaptureOn(_) => &["--capture-on"],
            Self::LogLevel { .. } => &["--log-level"],
        }
    }
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
        if self.capture_memory == 0 && self.capture_dir.is_some() {
            return Err(ConfigError::NothingToWrite);
        }
        // (a quarter for what was captured, the rest for what may be)
        let captures_memory = self.capture_memory / 4;
        Ok(Config {
            routes: pair(self.listen, self.upstream)?,
            admin: self.admin,
            debug: self.debug,
            debug_token: self.debug_token,
            log_format: self.log_format,
            log_filter: log_filter(self.log_level, rust_log)?,
            captures: CaptureTerms {
                on: (self.capture_on.join(",").parse()).map_err(ConfigError::CaptureOn)?,
                frames: self.capture_frames,
                time: self.capture_time,
                memory: captures_memory,
                has_pages: self.debug.is_some(),
                directory: self.capture_dir.map(|path| {
                    let bounds = DirectoryBounds {
                        files: self.capture_dir_max_files.get() as usize,
                        bytes: self.capture_dir_max_bytes,
                    };
                    (path, bounds)
                }),
            },
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
            recorder: Settings {
                memory: self.capture_memory - captures_memory,
                records: self.capture_records,
                opaque: self.capture_opaque,
            },
            from_environment: self.from_environment,
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

/// The trap: a lone word that is no level is a target to [`Targets`], so that a typo would silence all.
fn log_filter(level: Option<String>, rust_log: Option<String>) -> Result<Targets, ConfigError> {
    let (by, given) = match level {
        Some(given) => ("--log-level", Some(given)),
        None => ("RUST_LOG", rust_log),
    };
    let directives = given.filter(|given| !given.is_empty());
    let directives = directives.unwrap_or_else(|| "info".to_owned());
    let is_lone = |word: &&str| !word.contains('=') && word.parse::<LevelFilter>().is_err();
    let parsed = match directives.split(',').map(str::trim).find(is_lone) {
        Some(word) => Err(format!(
            "{word:?} is neither off, error, warn, info, debug, trace nor TARGET=LEVEL"
        )),
        None => (directives.parse()).map_err(|error: ParseError| error.to_string()),
    };
    parsed.map_err(|cause| ConfigError::LogLevel {
        by,
        directives,
        cause,
    })
}

fn default_threads() -> NonZeroUsize {
    const MOST: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    std::thread::available_parallelism().map_or(NonZeroUsize::MIN, |cores| cores.min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    const ROUTE: [&str; 4] = ["--listen", "127.0.0.1:9192", "--upstream", "broker:9092"];

    fn run(args: &[&str]) -> Result<RunArgs, clap::Error> {
        let cli = Cli::try_parse_from(["klamp", "run"].iter().chain(args))?;
        match cli.command {
            Command::Run(args) => Ok(*args),
            Command::Versions(_) | Command::Decode(_) => unreachable!("run was asked for"),
        }
    }

    fn config(more: &[&str]) -> Result<Config, ConfigError> {
        run(&[&ROUTE, more].concat()).unwrap().check(None)
    }

    fn routes(args: &[&str]) -> Result<Vec<RouteConfig>, ConfigError> {
        Ok(run(args).unwrap().check(None)?.routes)
    }

    #[test]
    fn a_listener_and_an_upstream_are_enough_and_the_rest_has_defaults() {
        let config = config(&[]).unwrap();
        assert_eq!(config.clamp, Clamp::Encode);
        assert_eq!(config.non_kafka, NonKafka::Close);
        assert_eq!(config.max_connections, None);
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
    fn policies_are_given_as_words() {
        for (word, clamp) in [("off", Clamp::Off), ("inspect", Clamp::Inspect)] {
            let config = config(&[&format!("--clamp={word}"), "--non-kafka=pass"]).unwrap();
            assert_eq!(config.clamp, clamp);
            assert_eq!(config.non_kafka, NonKafka::Pass);
        }
        assert!(run(&[&ROUTE[..], &["--clamp=decode"]].concat()).is_err());
    }

    #[test]
    fn triggers_are_a_list_or_several_flags() {
        let on = |args: &[&str]| config(args).map(|config| config.captures.on.to_string());
        assert_eq!(on(&[]), Ok("BEYOND".to_owned()));
        let both = ["--capture-on=UNNAMED,Produce:10", "--capture-on=close"];
        assert_eq!(
            on(&both),
            Ok("UNNAMED,Produce:MESSAGE_TOO_LARGE,close".to_owned())
        );
        let wrong = on(&["--capture-on=UNNAMED", "--capture-on=SOMETHING"]);
        assert!(matches!(wrong, Err(ConfigError::CaptureOn(_))), "{wrong:?}");
    }

    #[test]
    fn a_directory_of_captures_has_bounds() {
        assert_eq!(config(&[]).unwrap().captures.directory, None);
        let given = [
            "--capture-dir=d",
            "--capture-dir-max-files=7",
            "--capture-dir-max-bytes=1MiB",
        ];
        let bounds = DirectoryBounds {
            files: 7,
            bytes: 1 << 20,
        };
        let expected = Some(("d".into(), bounds));
        assert_eq!(config(&given).unwrap().captures.directory, expected);
        assert!(run(&[&ROUTE[..], &["--capture-dir-max-files=0"]].concat()).is_err());
        let off = config(&["--capture-dir=d", "--capture-memory=0"]);
        assert_eq!(off.unwrap_err(), ConfigError::NothingToWrite);
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
        let several = filter(&["--log-level=info,klamp::relay=debug"], None);
        assert_eq!(several, Ok("klamp::relay=debug,info".to_owned()));
        for (args, rust_log, named) in [
            (&["--log-level=klamp=loud"][..], None, "--log-level"),
            (&["--log-level=inof"], Some("info"), "--log-level"),
            (&["--log-level=info,klamp"], None, "--log-level"),
            (&[], Some("bogus"), "RUST_LOG"),
        ] {
            let wrong = filter(args, rust_log);
            assert!(
                matches!(&wrong, Err(ConfigError::LogLevel { by, .. }) if *by == named),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn nothing_of_which_there_must_be_some_can_be_zero() {
        for flag in ["--max-connections=0", "--threads=0", "--dial-timeout=off"] {
            assert!(run(&[&ROUTE[..], &[flag]].concat()).is_err(), "{flag}");
        }
    }
}
