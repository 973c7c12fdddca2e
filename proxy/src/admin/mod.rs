//! The listener for probes and Prometheus (`--admin`), and the one for operators (`--debug`).
//!
//! Anybody who reaches them may be hostile: a connection serves one request, has a time limit as a
//! whole, and there is a bounded number of them. The trap: a crowd of silent connections that took all
//! places would keep probes out, and whoever probes kills what does not answer. So the oldest connection
//! makes room for a new one: a probe needs its place for a moment only. Pages are made on a thread of their own, so that a
//! large one holds up neither accepting nor draining.

mod captures;
mod clients;
mod connections;
mod metrics;
mod pages;
#[cfg(test)]
mod tests;
mod versions;

use crate::log::{self, Admitted, RateLimit};
use crate::record::Watch;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use klamp_codec::session::Policy;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tracing::{Level, debug, error};

/// Connections to one of the listeners that are served at once; for each one more the oldest is cut.
const CONNECTIONS: usize = 128;
/// How long a request's header may take.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// How long a connection may take as a whole: a scrape of everything, over a slow network.
const WHOLE_TIME: Duration = Duration::from_secs(30);
/// Bytes of a request's header.
const HEADER_BYTES: usize = 16 << 10;
/// After a failed accept, most likely for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Which pages a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `/metrics`, `/livez`, `/readyz`.
    Admin,
    /// The same, and what tells about clients and connections.
    Debug,
}

/// How far the process is, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    Starting,
    /// All listeners are bound.
    Ready,
    Draining,
}

/// What the pages are made of.
pub(crate) struct AdminState {
    watch: Arc<Watch>,
    policy: Arc<Policy>,
    /// Bearer token that [`Surface::Debug`] asks for.
    token: Option<String>,
    /// A [`Stage`].
    stage: AtomicU8,
    /// Has every connection look whether something is asked of it.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl AdminState {
    /// Starting until told otherwise.
    pub(crate) fn new(
        watch: Arc<Watch>,
        policy: Arc<Policy>,
        token: Option<String>,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            watch,
            policy,
            token,
            stage: AtomicU8::new(Stage::Starting as u8),
            wake: Box::new(wake),
        })
    }

    /// The process is that far.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    fn stage(&self) -> Stage {
        let stage = self.stage.load(Ordering::Relaxed);
        let is = |known: &Stage| *known as u8 == stage;
        let known = [Stage::Starting, Stage::Ready].into_iter().find(is);
        known.unwrap_or(Stage::Draining)
    }
}

/// Serves `surface` on `listener` until dropped.
pub(crate) async fn serve(listener: TcpListener, surface: Surface, state: Arc<AdminState>) {
    static REFUSED: LazyLock<Arc<RateLimit>> = LazyLock::new(|| {
        log::limit(
            Level::ERROR,
            "connections for pages that cannot be accepted",
            3,
        )
    });
    let mut serving = JoinSet::new();
    let mut places = VecDeque::with_capacity(CONNECTIONS);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    places.retain(|place: &AbortHandle| !place.is_finished());
                    if places.len() >= CONNECTIONS && let Some(oldest) = places.pop_front() {
                        oldest.abort();
                        debug!(%peer, "many connections for pages: the oldest has made room");
                    }
                    places.push_back(serving.spawn(converse(stream, surface, state.clone())));
                }
                Err(error) => {
                    if let Some(Admitted { suppressed }) = REFUSED.admit() {
                        error!(suppressed, %error, "cannot accept connections for pages");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = serving.join_next() => {}
        }
    }
}

/// One connection, one request.
async fn converse(stream: TcpStream, surface: Surface, state: Arc<AdminState>) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(pages::answer(request, surface, state).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADER_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(WHOLE_TIME, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection for pages has failed"),
        Err(_) => debug!("a connection for pages took too long"),
    }
}
