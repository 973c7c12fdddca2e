//! From the first signal to the end of the process.
//!
//! What is at work is drained: bytes on their way to a broker go first (a Produce with acks=0 is
//! never sent again), answers in flight are waited for. The trap: an application that shuts down
//! beside klamp opens new connections to say goodbye (to leave its group, to commit), often because
//! the drain has just closed its old ones. So connections are still accepted, and served like any
//! other, until
//!
//! - there has been none for a second: whoever wanted to come back has had the time, or
//! - the *last call*, two seconds before the timeout (or its last quarter): then the listeners close,
//!   and those that came late are drained too.
//!
//! What is left at the timeout is cut. With `--drain-refuse-new` the last call comes first.

use crate::accept::Dealer;
use crate::shown::rounded;
use crate::worker::Order;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

/// How long no connection may be there before the drain is over: clients come back within their
/// reconnect back-off, 50 ms to 1 s by default.
const LINGER: Duration = Duration::from_secs(1);

/// How long before the timeout no more connections are taken, at most.
const LAST_CALL: Duration = Duration::from_secs(2);

/// How long connections that are cut may take to be accounted.
const ACCOUNTS: Duration = Duration::from_secs(1);

/// The signals that end the process.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on they no longer kill.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The name of the next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// How a drain goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) timeout: Duration,
    pub(crate) refuse_new: bool,
}

/// Drains the process. `listeners` are the accepting tasks; a second signal cuts everything short.
pub(crate) async fn drain(
    terms: Terms,
    dealer: &Dealer,
    mut listeners: JoinSet<()>,
    mut signals: Signals,
) {
    let begun = Instant::now();
    let deadline = begun + terms.timeout;
    let hurried = tokio::select! {
        () = wind_down(terms, deadline, dealer, &mut listeners) => false,
        name = signals.next() => {
            warn!(signal = name, "a second signal: not waiting any longer");
            true
        }
    };
    let took_seconds = rounded(begun.elapsed()).as_secs_f64();
    match dealer.connections() {
        0 => info!(took_seconds, "drained: no connection is left"),
        cut => warn!(
            cut,
            took_seconds, "connections are cut that were still at work"
        ),
    }
    dealer.order_all(|| Order::Expire);
    if !hurried {
        let _ = timeout(ACCOUNTS, dealer.vacant()).await;
    }
}

async fn wind_down(terms: Terms, deadline: Instant, dealer: &Dealer, listeners: &mut JoinSet<()>) {
    dealer.order_all(|| Order::Drain);
    if !terms.refuse_new {
        let last_call = deadline - LAST_CALL.min(terms.timeout / 4);
        tokio::select! {
            () = deserted(dealer) => {}
            () = sleep_until(last_call) => {}
        }
    }
    listeners.shutdown().await;
    dealer.order_all(|| Order::Drain);
    tokio::select! {
        () = dealer.vacant() => {}
        () = sleep_until(deadline) => {}
    }
}

/// Until there has been no connection for [`LINGER`].
async fn deserted(dealer: &Dealer) {
    loop {
        dealer.vacant().await;
        let dealt = dealer.dealt();
        sleep(LINGER).await;
        if dealer.dealt() == dealt {
            return;
        }
    }
}
