//! The admin listener (probes and Prometheus) and the debug listener (operators).

use crate::record::Watch;
use klamp_codec::session::Policy;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// Which pages a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `/metrics`, `/livez`, `/readyz`.
    Admin,
    /// The same, and what tells about clients and connections.
    Debug,
}

/// What the pages are made of.
pub(crate) struct AdminState {
    watch: Arc<Watch>,
    policy: Arc<Policy>,
    /// Bearer token that the debug pages ask for.
    token: Option<String>,
    ready: AtomicBool,
}

impl AdminState {
    /// Not ready until told so.
    pub(crate) fn new(watch: Arc<Watch>, policy: Arc<Policy>, token: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            watch,
            policy,
            token,
            ready: AtomicBool::new(false),
        })
    }

    /// `true` once all listeners are bound, `false` from the start of a drain.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }
}

/// Serves `surface` on `listener` until dropped.
pub(crate) async fn serve(listener: TcpListener, surface: Surface, state: Arc<AdminState>) {
    let _ = (listener, surface, &state.watch, &state.policy, &state.token);
    std::future::pending().await
}
