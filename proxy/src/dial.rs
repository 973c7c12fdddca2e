//! Connects to a broker: a fresh look-up of its name for each connection, then its addresses one
//! after the other, all within one time limit.
//!
//! The traps: an address looked up once goes stale when a broker moves; one dead address among
//! several must not eat the time of the others; a resolver that hangs must not leave a queue of look-ups
//! behind that nobody waits for any more, with every later one at its end; and a client that gives up meanwhile must not leave
//! a connection behind that nobody wants.

use crate::destination::{OwnAddresses, Upstream};
use crate::timers::Timers;
use klamp_metrics::DialResult;
use socket2::{SockRef, TcpKeepalive};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Addresses tried of those that a name has.
const MOST_ADDRESSES: usize = 16;

/// Look-ups of one name that run at the same time: each takes a thread for as long as the resolver likes.
const LOOK_UPS: usize = 8;

/// The turns of one name's look-ups. A turn is taken until its look-up has come back, whether or not
/// anybody still waits for it; who waits for a turn waits no longer than for a dial.
#[derive(Debug)]
pub(crate) struct LookUps(Arc<Semaphore>);

impl Default for LookUps {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOK_UPS)))
    }
}

/// Connects to `upstream` within `limit`, look-up included, by an address that is none of `own`.
pub(crate) async fn dial(
    upstream: &Upstream,
    look_ups: &LookUps,
    limit: Duration,
    own: &OwnAddresses,
    timers: &Timers,
) -> Result<TcpStream, DialError> {
    let deadline = Instant::now() + limit;
    let addresses = match (timers.timeout_at(deadline, look_up(upstream, look_ups))).await {
        Ok(found) => found.map_err(DialError::LookUp)?,
        Err(_) => return Err(DialError::LookUpTimedOut(limit)),
    };
    let mut attempts = Vec::new();
    for (tried, &address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        // What a quick refusal leaves over goes to the addresses that follow.
        let share = left / (addresses.len() - tried) as u32;
        match attempt(address, share, own, timers).await {
            Ok(stream) => return Ok(stream),
            Err(failure) => attempts.push(Attempt { address, failure }),
        }
    }
    Err(DialError::Connect(Attempts(attempts)))
}

/// The addresses of `upstream` in the order of the resolver, each once, [`MOST_ADDRESSES`] of them.
async fn look_up(upstream: &Upstream, LookUps(turns): &LookUps) -> io::Result<Vec<SocketAddr>> {
    let port = upstream.port();
    if let Ok(ip) = upstream.host().parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let turn = turns.clone().acquire_owned().await;
    let turn = turn.map_err(io::Error::other)?;
    let host = upstream.host().to_owned();
    let looking = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        (host.as_str(), port).to_socket_addrs()
    });
    let found = looking.await??;
    let mut addresses = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < MOST_ADDRESSES {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

async fn attempt(
    address: SocketAddr,
    limit: Duration,
    own: &OwnAddresses,
    timers: &Timers,
) -> Result<TcpStream, Failure> {
    if own.contain(address) {
        return Err(Failure::Loop);
    }
    let connecting = TcpStream::connect(address);
    match timers.timeout_at(Instant::now() + limit, connecting).await {
        Ok(Ok(stream)) if is_its_own_peer(&stream) => Err(Failure::Io(refused())),
        Ok(Ok(stream)) => {
            prepare(&SockRef::from(&stream));
            Ok(stream)
        }
        Ok(Err(error)) => Err(Failure::Io(error)),
        Err(_) => Err(Failure::NoAnswer(limit)),
    }
}

/// Whether a connection leads to itself. An attempt to connect to a port of this host on which nobody
/// listens does that where the kernel happens to pick the same port for this end, and would then keep
/// the broker from binding it.
fn is_its_own_peer(stream: &TcpStream) -> bool {
    (stream.local_addr().ok()).is_some_and(|own| stream.peer_addr().is_ok_and(|peer| peer == own))
}

fn refused() -> io::Error {
    io::ErrorKind::ConnectionRefused.into()
}

/// Sets up a connection to a broker, or a listener for all connections that it accepts (they inherit
/// what is set here, which saves five system calls for each), for relaying: small messages leave at once, and
/// a peer that has vanished without a word is noticed two minutes later. The first probe comes after
/// one minute, well within the idle time after which NATs and cloud balancers forget a connection
/// (four minutes at the least), so it also keeps quiet connections alive.
///
/// There is no limit on how long sent bytes may stay unread (TCP_USER_TIMEOUT): it would end the
/// connection of a consumer that rightly does not read for a while.
pub(crate) fn prepare(socket: &SockRef<'_>) {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(10))
        .with_retries(6);
    // These fail on a dead socket only, and its relay is about to find that out.
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_keepalive(&keepalive);
}

/// Comes back once the client is known to be gone: it closed without having sent anything, or its
/// connection was reset. One that has sent something and then closed its half may still want that
/// delivered (a Produce with acks=0 needs no answer), so it counts as there.
pub(crate) async fn gone(client: &TcpStream) {
    match client.peek(&mut [0]).await {
        Ok(0) | Err(_) => {}
        Ok(_) => {
            let _ = client.ready(Interest::ERROR).await;
        }
    }
}

/// Why a broker could not be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The resolver answered with an error.
    #[error("looking up its name failed: {0}")]
    LookUp(io::Error),
    /// The resolver did not answer within the limit of the whole dial.
    #[error("looking up its name took longer than {0:?}")]
    LookUpTimedOut(Duration),
    /// No address could be connected to.
    #[error("{0}")]
    Connect(Attempts),
}

impl DialError {
    /// How metrics call it; of several addresses, by the last one tried.
    pub(crate) fn result(&self) -> DialResult {
        let Self::Connect(Attempts(attempts)) = self else {
            return DialResult::NameNotFound;
        };
        match attempts.last().map(|attempt| &attempt.failure) {
            None => DialResult::NameNotFound,
            Some(Failure::Loop) => DialResult::Loop,
            Some(Failure::NoAnswer(_)) => DialResult::TimedOut,
            Some(Failure::Io(error)) => match error.kind() {
                io::ErrorKind::ConnectionRefused => DialResult::Refused,
                io::ErrorKind::TimedOut => DialResult::TimedOut,
                io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                    DialResult::Unreachable
                }
                _ => DialResult::Failed,
            },
        }
    }
}

/// The addresses tried, and what came of each.
#[derive(Debug)]
pub(crate) struct Attempts(Vec<Attempt>);

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("its name has no address");
        }
        for (n, Attempt { address, failure }) in self.0.iter().enumerate() {
            let separator = if n == 0 { "" } else { "; " };
            write!(f, "{separator}{address}: {failure}")?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Attempt {
    address: SocketAddr,
    failure: Failure,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Io(io::Error),
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    #[error("this is klamp itself, connections would go in a loop")]
    Loop,
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};
    use std::net::{Ipv4Addr, TcpListener};
    use tokio::time::timeout;

    const SECOND: Duration = Duration::from_secs(1);
    const LOCALHOST: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    fn nobody() -> OwnAddresses {
        OwnAddresses::new(Vec::new())
    }

    fn upstream(address: SocketAddr) -> Upstream {
        address.to_string().parse().unwrap()
    }

    /// An address that refuses connections as long as the socket lasts: bound, but not listening.
    fn closed() -> (SocketAddr, Socket) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(LOCALHOST).into()).unwrap();
        (socket.local_addr().unwrap().as_socket().unwrap(), socket)
    }

    /// An address that answers no attempt to connect, as long as what is returned with it lasts: a
    /// listener whose backlog is full.
    fn silent() -> (SocketAddr, impl Sized) {
        let (address, socket) = closed();
        socket.listen(0).unwrap();
        let filler = std::net::TcpStream::connect(address).unwrap();
        (address, (socket, filler))
    }

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind(LOCALHOST).await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        (client.unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn a_dialled_connection_sends_at_once_and_is_probed_when_idle() {
        let listener = TcpListener::bind(LOCALHOST).unwrap();
        let broker = upstream(listener.local_addr().unwrap());
        let stream = dial(
            &broker,
            &LookUps::default(),
            SECOND,
            &nobody(),
            &Timers::here(),
        )
        .await
        .unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.tcp_nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), SECOND * 60);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), SECOND * 10);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 6);
    }

    #[tokio::test]
    async fn a_name_whose_look_ups_hang_is_given_up_in_time_and_leaves_no_queue_behind() {
        let listener = TcpListener::bind(LOCALHOST).unwrap();
        let port = listener.local_addr().unwrap().port();
        let named: Upstream = format!("localhost:{port}").parse().unwrap();
        let look_ups = LookUps::default();
        let hanging = (look_ups.0.clone().try_acquire_many_owned(LOOK_UPS as u32)).unwrap();
        for _ in 0..3 {
            let error = dial(&named, &look_ups, SECOND / 20, &nobody(), &Timers::here()).await;
            assert!(
                matches!(error, Err(DialError::LookUpTimedOut(_))),
                "{error:?}"
            );
        }
        let by_address = upstream(listener.local_addr().unwrap());
        dial(&by_address, &look_ups, SECOND, &nobody(), &Timers::here())
            .await
            .unwrap();
        drop(hanging);
        dial(&named, &look_ups, SECOND * 5, &nobody(), &Timers::here())
            .await
            .unwrap();
        assert_eq!(look_ups.0.available_permits(), LOOK_UPS);
    }

    #[tokio::test]
    async fn a_connection_to_itself_is_no_connection_to_a_broker() {
        let (address, socket) = closed();
        socket.connect(&address.into()).unwrap();
        socket.set_nonblocking(true).unwrap();
        assert!(is_its_own_peer(
            &TcpStream::from_std(socket.into()).unwrap()
        ));
        let (client, accepted) = pair().await;
        assert!(!is_its_own_peer(&client) && !is_its_own_peer(&accepted));
    }

    #[tokio::test]
    async fn a_refusal_names_the_address() {
        let (address, _kept) = closed();
        let error = dial(
            &upstream(address),
            &LookUps::default(),
            SECOND,
            &nobody(),
            &Timers::here(),
        )
        .await;
        let error = error.unwrap_err();
        assert_eq!(error.result(), DialResult::Refused);
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }

    #[tokio::test]
    async fn a_silent_address_is_given_up_at_the_limit() {
        let (address, _kept) = silent();
        let started = Instant::now();
        let error = dial(
            &upstream(address),
            &LookUps::default(),
            SECOND / 5,
            &nobody(),
            &Timers::here(),
        )
        .await;
        let error = error.unwrap_err();
        assert_eq!(error.result(), DialResult::TimedOut);
        assert!(started.elapsed() >= SECOND / 5);
        assert!(started.elapsed() < SECOND * 5, "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn a_name_without_an_address_is_told_as_such() {
        let broker = "no-such-host.invalid:9092".parse().unwrap();
        let error = dial(
            &broker,
            &LookUps::default(),
            SECOND * 30,
            &nobody(),
            &Timers::here(),
        )
        .await
        .unwrap_err();
        assert_eq!(error.result(), DialResult::NameNotFound, "{error}");
    }

    #[tokio::test]
    async fn klamp_does_not_dial_itself() {
        let listener = TcpListener::bind(LOCALHOST).unwrap();
        let address = listener.local_addr().unwrap();
        let own = OwnAddresses::new(vec![address]);
        let error = dial(
            &upstream(address),
            &LookUps::default(),
            SECOND,
            &own,
            &Timers::here(),
        )
        .await
        .unwrap_err();
        assert_eq!(error.result(), DialResult::Loop);
        listener.set_nonblocking(true).unwrap();
        let accepted = listener.accept().map_err(|error| error.kind());
        assert_eq!(accepted.unwrap_err(), io::ErrorKind::WouldBlock);
    }

    #[tokio::test]
    async fn of_several_addresses_each_gets_its_turn() {
        // `localhost` is ::1 and 127.0.0.1 on most hosts; the listener is on the latter only.
        let listener = TcpListener::bind(LOCALHOST).unwrap();
        let port = listener.local_addr().unwrap().port();
        let broker = format!("localhost:{port}").parse().unwrap();
        let stream = dial(
            &broker,
            &LookUps::default(),
            SECOND * 5,
            &nobody(),
            &Timers::here(),
        )
        .await
        .unwrap();
        assert_eq!(stream.peer_addr().unwrap(), listener.local_addr().unwrap());
    }

    #[tokio::test]
    async fn a_client_that_closes_in_silence_is_gone() {
        let (client, here) = pair().await;
        assert!(timeout(SECOND / 20, gone(&here)).await.is_err());
        drop(client);
        timeout(SECOND * 5, gone(&here)).await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_closes_after_a_request_is_not_gone() {
        let (client, here) = pair().await;
        client.try_write(b"request").unwrap();
        drop(client);
        assert!(timeout(SECOND / 10, gone(&here)).await.is_err());
    }

    #[tokio::test]
    async fn a_client_that_resets_is_gone_whatever_it_sent() {
        let (client, here) = pair().await;
        client.try_write(b"request").unwrap();
        assert!(timeout(SECOND / 20, gone(&here)).await.is_err());
        SockRef::from(&client)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(client);
        timeout(SECOND * 5, gone(&here)).await.unwrap();
    }
}
