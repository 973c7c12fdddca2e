//! `klamp run`: puts the parts together, in an order in which nothing is promised before it is there
//! (`/readyz` is green only once every listener is bound), and takes them down again.

use crate::accept::{self, Dealer, Listener};
use crate::admin::{self, AdminState, Stage, Surface};
use crate::capture::{Captures, pcapng};
use crate::cli::{Config, Exit, RunArgs};
use crate::descriptors;
use crate::destination::{OwnAddresses, Route};
use crate::drain::{self, Signals, Terms};
use crate::log;
use crate::record::{self, Watch};
use crate::relay::HoldBudget;
use crate::timers::Timers;
use crate::worker::{Order, Service, Worker};
use klamp_codec::session::{Clamp, Policy};
use klamp_codec::versions::TableStore;
use klamp_metrics::Metrics;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tracing::{error, info};

/// Bytes that all connections may hold together beyond their buffers, while a message is rewritten.
const HOLD_BUDGET: usize = 64 << 20;

/// How long the end of the process waits for captures to be written.
const LAST_CAPTURES: Duration = Duration::from_secs(1);

/// Runs until a signal ends it.
pub(crate) fn run(args: RunArgs) -> Exit {
    let from_environment = args.from_environment.clone();
    let config = match args.check(std::env::var("RUST_LOG").ok()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("error: {error}{}", from_environment.note(error.flags()));
            return Exit::Usage;
        }
    };
    let _last_lines = match log::start(config.log_format, config.log_filter.clone()) {
        Ok(flush) => flush,
        Err(error) => {
            eprintln!("error: cannot start a thread for the log: {error}");
            return Exit::Failed;
        }
    };
    let served = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Trouble::Start)
        // (as long as the process: the workers go by its timers)
        .map(|runtime| Box::leak(Box::new(runtime)))
        .and_then(|runtime| runtime.block_on(serve(config)));
    match served {
        Ok(()) => Exit::Clean,
        Err(trouble) => {
            error!("{trouble}");
            trouble.exit()
        }
    }
}

/// Why `run` ends without having been told to.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("cannot listen on {address} ({flag}): {cause}")]
    Listen {
        /// And the variable that it came from.
        flag: String,
        address: SocketAddr,
        cause: io::Error,
    },
    #[error("cannot write captures to {} ({flag}): {cause}", path.display())]
    CaptureDirectory {
        flag: String,
        path: PathBuf,
        cause: io::Error,
    },
    #[error("cannot start: {0}")]
    Start(io::Error),
    #[error("a thread that relays connections has died: this is a fault of klamp's own")]
    WorkerDied,
}

impl Trouble {
    fn exit(&self) -> Exit {
        match self {
            Self::Listen { .. } => Exit::CannotListen,
            Self::CaptureDirectory { .. } => Exit::Usage,
            Self::Start(_) | Self::WorkerDied => Exit::Failed,
        }
    }
}

async fn serve(config: Config) -> Result<(), Trouble> {
    let mut signals = Signals::install().map_err(Trouble::Start)?;
    let max_connections = descriptors::provide(config.max_connections, config.threads.get());
    let watch_for = record::catalog();
    info!(
        version = watch_for.version,
        kafka_schema = watch_for.kafka_schema,
        clamp = match config.clamp {
            Clamp::Encode => "encode",
            Clamp::Inspect => "inspect",
            Clamp::Off => "off",
        },
        threads = config.threads,
        max_connections,
        "klamp starts"
    );
    let listeners = bind_listeners(&config)?;
    let bound: Vec<_> = listeners.iter().map(Listener::address).collect();
    let admin = bind_pages(&config, "--admin", config.admin)?;
    let debug = bind_pages(&config, "--debug", config.debug)?;

    let metrics = Metrics::new(watch_for);
    metrics.limit_connections(max_connections.get().into());
    let own = bound.iter().map(|own| (own.ip().to_string(), own.port()));
    let captures = Captures::new(
        config.captures.clone(),
        match config.recorder.records {
            true => |capture, out| pcapng::write(capture, true, out),
            false => |capture, out| pcapng::write(capture, false, out),
        },
        metrics.clone(),
    );
    let captures = captures.map_err(|cause| {
        let directory = config.captures.directory.as_ref();
        Trouble::CaptureDirectory {
            flag: config.from_environment.named("--capture-dir"),
            path: directory.map(|(path, _)| path.clone()).unwrap_or_default(),
            cause,
        }
    })?;
    let watch = Watch::new(metrics, own.collect(), captures);
    let service = Arc::new(Service {
        policy: Arc::new(policy(&config)),
        watch: watch.clone(),
        budget: HoldBudget::new(HOLD_BUDGET),
        own: OwnAddresses::new(bound),
        dial_timeout: config.dial_timeout,
        recorder: config.recorder,
        tapes: watch.captures.tapes.clone(),
        threads: config.threads.get(),
        timers: Timers::here(),
    });
    let workers = (0..config.threads.get())
        .map(|number| Worker::start(number, service.clone()))
        .collect::<Result<_, _>>()
        .map_err(Trouble::Start)?;
    let shard = watch.metrics.shard();
    let dealer = Dealer::new(workers, max_connections, watch.clone(), shard);

    let wake = {
        let dealer = dealer.clone();
        move || dealer.order_all(|| Order::Look)
    };
    let policy = service.policy.clone();
    let state = AdminState::new(watch.clone(), policy, config.debug_token, wake);
    for (pages, surface, what) in [
        (admin, Surface::Admin, "pages for probes and Prometheus"),
        (debug, Surface::Debug, "pages for operators"),
    ] {
        if let Some((listener, address)) = pages {
            info!(listen = %address, "{what}");
            tokio::spawn(admin::serve(listener, surface, state.clone()));
        }
    }
    let mut accepting = JoinSet::new();
    for listener in listeners {
        info!(listen = %listener.address(), upstream = %listener.route().name, "listening");
        accepting.spawn(listener.run(dealer.clone()));
    }
    tokio::spawn(log::tell_kept_back());
    state.set_stage(Stage::Ready);
    info!("ready");

    let signal = tokio::select! {
        name = signals.next() => name,
        () = dealer.worker_died() => return Err(Trouble::WorkerDied),
    };
    state.set_stage(Stage::Draining);
    let terms = Terms {
        timeout: config.drain_timeout,
        refuse_new: config.drain_refuse_new,
    };
    info!(
        signal,
        connections = dealer.connections(),
        timeout_seconds = terms.timeout.as_secs_f64(),
        new_connections = match terms.refuse_new {
            true => "refused",
            false => "served until shortly before the timeout",
        },
        "draining"
    );
    drain::drain(terms, &dealer, accepting, signals).await;
    watch.captures.finish(LAST_CAPTURES);
    log::tell_all_kept_back();
    Ok(())
}

fn bind_listeners(config: &Config) -> Result<Vec<Listener>, Trouble> {
    let bind = |route: &crate::cli::RouteConfig| {
        let address = route.listen;
        Listener::bind(address, Route::new(route.upstream.clone())).map_err(|cause| {
            Trouble::Listen {
                flag: config.from_environment.named("--listen"),
                address,
                cause,
            }
        })
    };
    config.routes.iter().map(bind).collect()
}

/// A listener for pages, with its real address.
fn bind_pages(
    config: &Config,
    flag: &str,
    address: Option<SocketAddr>,
) -> Result<Option<(TcpListener, SocketAddr)>, Trouble> {
    let bind = |address| {
        let listener = accept::bind(address)?;
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    let Some(address) = address else {
        return Ok(None);
    };
    bind(address).map(Some).map_err(|cause| Trouble::Listen {
        flag: config.from_environment.named(flag),
        address,
        cause,
    })
}

fn policy(config: &Config) -> Policy {
    Policy {
        clamp: config.clamp,
        max_request_bytes: config.max_request_bytes,
        non_kafka: config.non_kafka,
        request_progress: config.request_progress,
        response_progress: config.response_progress,
        tables: TableStore::default(),
    }
}
