//! The threads that relay: each has a runtime of its own and owns its connections from their accept
//! to their end, so that nothing on the path of the data is shared or locked.
//!
//! The traps: what a connection needs only while its broker is dialled must not stay with it for
//! hours (it lives in a box of its own), and a fault in one connection must end that one alone (each
//! is a task, and tasks end their panics themselves).

use crate::accept::Place;
use crate::capture::tape::{Arena, Settings, Usage};
use crate::destination::{OwnAddresses, Route};
use crate::dial;
use crate::log::Admitted;
use crate::record::{Record, Watch};
use crate::relay::{Ended, HoldBudget, Local, Relay};
use crate::shown::rounded;
use crate::timers::Timers;
use klamp_codec::observation::CloseReason;
use klamp_codec::session::{Policy, Session};
use klamp_metrics::{DialResult, Shard};
use std::io;
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::{error, info, warn};

/// Names that one thread looks up at the same time; each takes a thread while it lasts.
const LOOK_UPS: usize = 32;

type TcpRelay = Relay<TcpStream, TcpStream, Record>;

/// What all connections of the process share.
pub(crate) struct Service {
    pub(crate) policy: Arc<Policy>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) budget: Arc<HoldBudget>,
    pub(crate) own: OwnAddresses,
    pub(crate) dial_timeout: Duration,
    pub(crate) recorder: Settings,
    /// What the tapes of all threads take.
    pub(crate) tapes: Arc<Usage>,
    /// How many threads there are.
    pub(crate) threads: usize,
    pub(crate) timers: Timers,
}

/// What a thread is told.
pub(crate) enum Order {
    /// Serve this connection.
    Adopt(Arrival),
    /// End the connections there are now as soon as that does no harm; serve later ones as ever,
    /// until the next such order.
    Drain,
    /// End all connections at once.
    Expire,
    /// Have each connection look whether something is asked of it.
    Look,
}

/// A connection that has been accepted.
pub(crate) struct Arrival {
    /// Set up for relaying.
    pub(crate) stream: StdTcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) route: Arc<Route>,
    pub(crate) place: Place,
}

/// A thread, from outside.
pub(crate) struct Worker {
    /// Without a bound of its own: every arrival in it has a place, and those are limited.
    orders: UnboundedSender<Order>,
    load: Arc<AtomicUsize>,
}

impl Worker {
    /// Starts the thread. It lasts as long as the process.
    pub(crate) fn start(number: usize, service: Arc<Service>) -> io::Result<Self> {
        let (orders, inbox) = unbounded_channel();
        std::thread::Builder::new()
            .name(format!("klamp-worker-{number}"))
            .spawn(move || work(inbox, service))?;
        Ok(Self {
            orders,
            load: Arc::default(),
        })
    }

    /// Connections of this thread.
    pub(crate) fn connections(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Counts the connections of this thread, by their [`Place`]s.
    pub(crate) fn load(&self) -> &Arc<AtomicUsize> {
        &self.load
    }

    /// To a thread that has died orders are void; [`Worker::died`] tells.
    pub(crate) fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Until the thread has died.
    pub(crate) fn died(&self) -> impl Future<Output = ()> + Send + use<> {
        let orders = self.orders.clone();
        async move { orders.closed().await }
    }
}

/// The life of a thread.
fn work(inbox: UnboundedReceiver<Order>, service: Arc<Service>) {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .max_blocking_threads(LOOK_UPS)
        .build_local(LocalOptions::default());
    match runtime {
        Ok(runtime) => follow(&runtime, inbox, &service),
        Err(error) => error!(%error, "cannot set up a thread's event loop"),
    }
}

fn follow(runtime: &LocalRuntime, mut inbox: UnboundedReceiver<Order>, service: &Arc<Service>) {
    let shard = service.watch.metrics.shard();
    let local = Local::new(service.budget.clone(), service.timers.clone());
    let arena = Arena::new(service.recorder, service.threads, service.tapes.clone());
    runtime.block_on(async {
        while let Some(order) = inbox.recv().await {
            match order {
                Order::Adopt(arrival) => adopt(arrival, service, &shard, &local, arena.as_ref()),
                Order::Drain => local.drain(),
                Order::Expire => local.expire(),
                Order::Look => local.look(),
            }
        }
    });
}

/// Makes a task of the connection.
fn adopt(
    arrival: Arrival,
    service: &Arc<Service>,
    shard: &Arc<Shard>,
    local: &Rc<Local>,
    arena: Option<&Rc<Arena>>,
) {
    let Arrival {
        stream,
        peer,
        route,
        place,
    } = arrival;
    let mut record = Record::new(
        service.watch.clone(),
        shard.clone(),
        peer,
        route.name.clone(),
    );
    record.keep_in(arena);
    let opening = open(stream, peer, route, record, service.clone(), local.clone());
    tokio::task::spawn_local(life(Box::pin(opening), place));
}

/// The task of a connection, which lasts for hours: no more than its relay and a few words, so each
/// step is a statement of its own. (Awaited by value, or in the head of an `if let`, the relay would
/// have room for two.)
async fn life(opening: Pin<Box<impl Future<Output = Option<TcpRelay>>>>, place: Place) {
    let _place = place;
    let Some(mut relay) = opening.await else {
        return;
    };
    let (ended, mut record) = (&mut relay).await;
    record.ended(ended);
}

/// Connects to the broker. `None`: the connection is over, and accounted.
async fn open(
    stream: StdTcpStream,
    peer: SocketAddr,
    route: Arc<Route>,
    mut record: Record,
    service: Arc<Service>,
    local: Rc<Local>,
) -> Option<TcpRelay> {
    let client = match TcpStream::from_std(stream) {
        Ok(client) => client,
        Err(error) => {
            error!(%peer, %error, "cannot watch a connection");
            return None;
        }
    };
    let started = Instant::now();
    let dialled = tokio::select! {
        biased;
        dialled = dial::dial(&route.upstream, &route.look_ups, service.dial_timeout, &service.own, &service.timers) => dialled,
        () = dial::gone(&client) => {
            record.ended(Ended::Session(CloseReason::Client));
            return None;
        }
    };
    let took = started.elapsed();
    let result = dialled
        .as_ref()
        .map_or_else(|error| error.result(), |_| DialResult::Ok);
    service.watch.metrics.dialled(&route.name, result, took);
    match dialled {
        Ok(broker) => {
            if route.down.swap(false, Ordering::Relaxed) {
                info!(upstream = %route.name, "the broker can be reached again");
            }
            if let Ok(address) = broker.peer_addr() {
                record.reached(address);
            }
            let session = Session::new(service.policy.clone());
            Some(Relay::new(client, broker, session, record, local))
        }
        Err(cause) => {
            route.down.store(true, Ordering::Relaxed);
            record.ended(Ended::DialFailed);
            if let Some(Admitted { suppressed }) = route.failures.admit() {
                warn!(suppressed, upstream = %route.name, %peer, took_seconds = rounded(took).as_secs_f64(), %cause,
                    "cannot reach the broker: the client's connection is closed");
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_of_a_connection_is_hardly_larger_than_its_relay() {
        let place = Place::take(&Arc::default(), &Arc::default());
        let task = life(Box::pin(std::future::pending()), place);
        let beside = size_of_val(&task) - size_of::<TcpRelay>();
        assert!(beside <= 64, "{beside} bytes beside the relay");
    }

    #[test]
    fn a_panic_ends_its_own_connection_and_gives_its_place_back() {
        let load = Arc::new(AtomicUsize::new(0));
        let runtime = Builder::new_current_thread()
            .build_local(LocalOptions::default())
            .unwrap();
        runtime.block_on(async {
            let place = || Place::take(&load, &Arc::default());
            let sound = tokio::task::spawn_local(life(Box::pin(async { None }), place()));
            let faulty = async { panic!("a fault that this test is about") };
            let faulty = tokio::task::spawn_local(life(Box::pin(faulty), place()));
            assert!(faulty.await.unwrap_err().is_panic());
            sound.await.unwrap();
        });
        assert_eq!(load.load(Ordering::Relaxed), 0);
    }
}
