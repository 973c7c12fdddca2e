//! Accepts connections and deals them out to the threads.
//!
//! The traps: a process without descriptors must not spin on `accept`, nor die of it; one client's
//! aborted handshake must not slow down the others; and over the limit a connection is taken and
//! closed at once, since one left in the backlog looks to its client like a broker that hangs.

use crate::destination::Route;
use crate::dial;
use crate::log::{self, Admitted, RateLimit};
use crate::record::{Record, Watch};
use crate::relay::Ended;
use crate::worker::{Arrival, Order, Worker};
use klamp_metrics::Shard;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{Level, error, warn};

/// Connections that the kernel completes on our behalf while we are busy; it caps this by
/// `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// A bound listener and where its connections go.
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    route: Arc<Route>,
}

impl Listener {
    /// Binds `address`; on `::` it takes both families. Belongs to the runtime it is called on.
    pub(crate) fn bind(address: SocketAddr, route: Arc<Route>) -> io::Result<Self> {
        let socket = bind(address)?;
        dial::prepare(&SockRef::from(&socket));
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            route,
        })
    }

    /// The address bound, with its real port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the connections go.
    pub(crate) fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// Accepts and deals out until dropped.
    pub(crate) async fn run(self, dealer: Arc<Dealer>) {
        static TROUBLE: LazyLock<Arc<RateLimit>> = LazyLock::new(|| {
            log::limit(
                Level::ERROR,
                "connections for clients that cannot be accepted",
                3,
            )
        });
        let mut back_off = BackOff::default();
        loop {
            // A flood of connections must not keep probes and signals waiting.
            tokio::task::coop::consume_budget().await;
            // Another thread's runtime is to watch the connection, not this one.
            let accepted = self.socket.accept().await;
            match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
                Ok((stream, peer)) => {
                    back_off = BackOff::default();
                    dealer.deal(stream, peer, &self.route);
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(error) => {
                    let pause = back_off.next();
                    if let Some(Admitted { suppressed }) = TROUBLE.admit() {
                        error!(suppressed, listen = %self.address, %error, ?pause,
                            "cannot accept connections; trying again after a pause");
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

/// Binds a listening socket, on the runtime that this is called on.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    // A restart must not wait for the connections of the process before it to leave TIME_WAIT.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Errors that Linux hands out with one connection, accept(2); the next one may well be sound.
fn concerns_one_connection(error: &io::Error) -> bool {
    const OF_ONE: [Errno; 13] = [
        Errno::CONNABORTED,
        Errno::CONNRESET,
        Errno::INTR,
        Errno::PERM,
        Errno::PROTO,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::NONET,
        Errno::NOPROTOOPT,
        Errno::OPNOTSUPP,
        Errno::TIMEDOUT,
    ];
    Errno::from_io_error(error).is_some_and(|errno| OF_ONE.contains(&errno))
}

/// Pauses after errors in a row: 10 ms, doubling up to one second.
#[derive(Debug, Default)]
struct BackOff {
    errors: u32,
}

impl BackOff {
    fn next(&mut self) -> Duration {
        let pause = Duration::from_millis(10) * 2u32.pow(self.errors.min(7));
        self.errors += 1;
        pause.min(Duration::from_secs(1))
    }
}

/// Deals connections out to the threads, each to the one with fewest, and knows how many there are.
pub(crate) struct Dealer {
    workers: Vec<Worker>,
    limit: usize,
    dealt: AtomicU64,
    vacated: Arc<Notify>,
    watch: Arc<Watch>,
    shard: Arc<Shard>,
}

impl Dealer {
    /// `shard`: the counters of the thread that accepts.
    pub(crate) fn new(
        workers: Vec<Worker>,
        limit: NonZeroU32,
        watch: Arc<Watch>,
        shard: Arc<Shard>,
    ) -> Arc<Self> {
        Arc::new(Self {
            workers,
            limit: limit.get() as usize,
            dealt: AtomicU64::new(0),
            vacated: Arc::new(Notify::new()),
            watch,
            shard,
        })
    }

    /// Connections at work, those that are still being dialled for included.
    pub(crate) fn connections(&self) -> usize {
        self.workers.iter().map(Worker::connections).sum()
    }

    /// Connections dealt out since the start.
    pub(crate) fn dealt(&self) -> u64 {
        self.dealt.load(Ordering::Relaxed)
    }

    /// Until there is no connection at work. For one caller at a time.
    pub(crate) async fn vacant(&self) {
        while self.connections() > 0 {
            self.vacated.notified().await;
        }
    }

    /// Gives every thread the same order.
    pub(crate) fn order_all(&self, order: fn() -> Order) {
        for worker in &self.workers {
            worker.order(order());
        }
    }

    /// Until one of the threads has died, which none does unless klamp is at fault.
    pub(crate) async fn worker_died(&self) {
        let mut deaths: JoinSet<()> = self.workers.iter().map(Worker::died).collect();
        deaths.join_next().await;
    }

    fn deal(&self, stream: TcpStream, peer: SocketAddr, route: &Arc<Route>) {
        let worker = self
            .workers
            .iter()
            .min_by_key(|worker| worker.connections());
        // Only this thread adds connections, so that nothing comes between the check and the place.
        let Some(worker) = worker.filter(|_| self.connections() < self.limit) else {
            return self.turn_away(peer, route);
        };
        self.dealt.fetch_add(1, Ordering::Relaxed);
        worker.order(Order::Adopt(Arrival {
            stream,
            peer,
            route: route.clone(),
            place: Place::take(worker.load(), &self.vacated),
        }));
    }

    fn turn_away(&self, peer: SocketAddr, route: &Arc<Route>) {
        static FULL: LazyLock<Arc<RateLimit>> =
            LazyLock::new(|| log::limit(Level::WARN, "connections beyond --max-connections", 3));
        let (watch, shard) = (self.watch.clone(), self.shard.clone());
        Record::new(watch, shard, peer, route.name.clone()).ended(Ended::Limit);
        if let Some(Admitted { suppressed }) = FULL.admit() {
            warn!(suppressed, %peer, limit = self.limit,
                "a connection was closed at once: there are as many as --max-connections allows");
        }
    }
}

/// A connection's place among those of its thread; dropping it makes room for another.
#[derive(Debug)]
pub(crate) struct Place {
    load: Arc<AtomicUsize>,
    vacated: Arc<Notify>,
}

impl Place {
    /// Takes one more of `load`; `vacated` is told when the last one is given back.
    pub(crate) fn take(load: &Arc<AtomicUsize>, vacated: &Arc<Notify>) -> Self {
        load.fetch_add(1, Ordering::Relaxed);
        Self {
            load: load.clone(),
            vacated: vacated.clone(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.load.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.vacated.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_accepted_connection_has_what_was_set_on_its_listener() {
        let upstream = "127.0.0.1:9".parse().unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(any, Route::new(upstream)).unwrap();
        let _client = TcpStream::connect(listener.address()).unwrap();
        let (accepted, _) = listener.socket.accept().await.unwrap();
        let socket = SockRef::from(&accepted);
        assert!(socket.tcp_nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        let second = Duration::from_secs(1);
        assert_eq!(socket.tcp_keepalive_time().unwrap(), second * 60);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), second * 10);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 6);
    }

    #[test]
    fn pauses_double_up_to_a_second() {
        let mut back_off = BackOff::default();
        let pauses: Vec<_> = (0..9).map(|_| back_off.next().as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
    }

    #[test]
    fn only_trouble_of_our_own_pauses_the_accepting() {
        let of_one = |errno: Errno| concerns_one_connection(&errno.into());
        for errno in [Errno::CONNABORTED, Errno::PROTO, Errno::HOSTUNREACH] {
            assert!(of_one(errno), "{errno}");
        }
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(!of_one(errno), "{errno}");
        }
    }
}
