//! The relay over loopback TCP.

use super::super::ended::{Ended, Loss, Side};
use super::super::pool::BUFFER_BYTES;
use super::super::{Local, Relay};
use super::{Random, Tally, UNSEEN, answer, local, request, session};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

/// A client, a broker, and a relay between them.
pub(super) struct Line {
    pub(super) client: TcpStream,
    pub(super) broker: TcpStream,
    local: Rc<Local>,
    pub(super) relay: JoinHandle<(Ended, Tally)>,
}

impl Line {
    /// All sockets have buffers of about `socket_buffer` bytes where that is given.
    pub(super) async fn open(local: &Rc<Local>, socket_buffer: Option<u32>) -> Self {
        let (client, accepted) = pair(socket_buffer).await;
        let (dialled, broker) = pair(socket_buffer).await;
        let relay = Relay::new(
            accepted,
            dialled,
            session(),
            Tally::default(),
            local.clone(),
        );
        Self {
            client,
            broker,
            local: local.clone(),
            relay: spawn_local(relay),
        }
    }

    /// The same, relayed unseen, so that any bytes may pass.
    async fn open_unseen(local: &Rc<Local>, socket_buffer: Option<u32>) -> Self {
        let mut line = Self::open(local, socket_buffer).await;
        line.client.write_all(UNSEEN).await.unwrap();
        let mut unseen = [0; UNSEEN.len()];
        line.broker.read_exact(&mut unseen).await.unwrap();
        line
    }
}

/// Two ends of a connection.
pub(super) async fn pair(socket_buffer: Option<u32>) -> (TcpStream, TcpStream) {
    let socket = || {
        let socket = TcpSocket::new_v4().unwrap();
        if let Some(bytes) = socket_buffer {
            socket.set_send_buffer_size(bytes).unwrap();
            socket.set_recv_buffer_size(bytes).unwrap();
        }
        socket
    };
    let listener: TcpListener = {
        let socket = socket();
        socket
            .bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .unwrap();
        socket.listen(1).unwrap()
    };
    let dialled = socket().connect(listener.local_addr().unwrap());
    let (dialled, accepted) = tokio::join!(dialled, listener.accept());
    let (dialled, accepted) = (dialled.unwrap(), accepted.unwrap().0);
    dialled.set_nodelay(true).unwrap();
    accepted.set_nodelay(true).unwrap();
    (dialled, accepted)
}

/// Runs `test` where relays can be spawned, for a minute at most.
pub(super) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let test = async { timeout(Duration::from_secs(60), test).await };
    LocalSet::new().block_on(&runtime, test).expect("in time")
}

/// Sends `length` random bytes in random pieces, then the end.
async fn send(mut to: impl AsyncWriteExt + Unpin, seed: u64, length: usize) {
    let mut random = Random(seed);
    let bytes = Random(seed).bytes(1 << 20);
    let mut sent = 0;
    while sent < length {
        let n = (1 + random.up_to(100_000)).min(length - sent);
        let at = sent % (bytes.len() - 100_000);
        to.write_all(&bytes[at..at + n]).await.unwrap();
        sent += n;
    }
    to.shutdown().await.unwrap();
}

/// Receives until the end, and checks that it is what [`send`] sends.
async fn receive(mut from: impl AsyncReadExt + Unpin, seed: u64, length: usize) {
    let mut random = Random(seed);
    let bytes = Random(seed).bytes(1 << 20);
    let mut piece = vec![0; 100_001];
    let mut received = 0;
    while received < length {
        let n = (1 + random.up_to(100_000)).min(length - received);
        let at = received % (bytes.len() - 100_000);
        from.read_exact(&mut piece[..n]).await.unwrap();
        assert!(
            piece[..n] == bytes[at..at + n],
            "wrong bytes before {received}"
        );
        received += n;
    }
    assert_eq!(from.read(&mut piece).await.unwrap(), 0);
}

#[test]
fn a_hundred_megabytes_each_way_arrive_whole_and_in_order_through_tiny_socket_buffers() {
    const LENGTH: usize = 100_000_000;
    run(async {
        let line = Line::open_unseen(&local(), Some(8 * 1024)).await;
        let (client_reads, client_writes) = line.client.into_split();
        let (broker_reads, broker_writes) = line.broker.into_split();
        tokio::join!(
            send(client_writes, 1, LENGTH),
            receive(broker_reads, 1, LENGTH),
            send(broker_writes, 2, LENGTH),
            receive(client_reads, 2, LENGTH),
        );
        let (ended, tally) = line.relay.await.unwrap();
        assert!(matches!(ended, Ended::Session(_)));
        let length = LENGTH as u64;
        assert_eq!(tally.request, length + UNSEEN.len() as u64);
        assert_eq!(tally.response, length);
        assert_eq!(line.local.pool.lent(), 0);
    });
}

#[test]
fn a_reset_by_either_side_ends_both() {
    run(async {
        for lost in [Side::Client, Side::Broker] {
            let line = Line::open_unseen(&local(), None).await;
            let (resets, mut other) = match lost {
                Side::Client => (line.client, line.broker),
                Side::Broker => (line.broker, line.client),
            };
            resets.set_zero_linger().unwrap();
            drop(resets);
            assert_eq!(
                other.read(&mut [0; 8]).await.unwrap(),
                0,
                "an end, and no reset"
            );
            drop(other);
            let (ended, _) = line.relay.await.unwrap();
            assert_eq!(ended, Ended::Lost(lost, Loss::Reset));
        }
    });
}

#[test]
fn requests_before_a_reset_reach_the_broker() {
    run(async {
        let mut line = Line::open_unseen(&local(), None).await;
        line.broker
            .write_all(b"an answer that the client does not read")
            .await
            .unwrap();
        sleep(Duration::from_millis(20)).await;
        line.client.write_all(b"the last request").await.unwrap();
        // Closing with unread bytes resets.
        drop(line.client);
        let mut received = Vec::new();
        line.broker.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"the last request");
        drop(line.broker);
        assert_eq!(
            line.relay.await.unwrap().0,
            Ended::Lost(Side::Client, Loss::Reset)
        );
    });
}

#[test]
fn a_client_that_stops_reading_costs_one_buffer_or_pipe_and_keeps_its_connection() {
    run(async {
        let line = Line::open_unseen(&local(), Some(8 * 1024)).await;
        let (client_reads, mut client_writes) = line.client.into_split();
        let (mut broker_reads, broker_writes) = line.broker.into_split();
        let sender = spawn_local(send(broker_writes, 3, 10_000_000));
        sleep(Duration::from_millis(200)).await;
        assert_eq!(line.local.pool.lent(), 1);
        assert!(!sender.is_finished(), "the broker is held back");
        // The other direction is as quick as ever.
        for _ in 0..100 {
            client_writes.write_all(b"request").await.unwrap();
            broker_reads.read_exact(&mut [0; 7]).await.unwrap();
        }
        assert!(line.local.pool.lent() <= 1);
        receive(client_reads, 3, 10_000_000).await;
        sender.await.unwrap();
        drop((client_writes, broker_reads));
        line.relay.await.unwrap();
        assert_eq!(line.local.pool.lent(), 0);
    });
}

#[test]
fn a_hundred_idle_connections_hold_no_buffer() {
    run(async {
        let local = local();
        let mut lines = Vec::new();
        for _ in 0..100 {
            let mut line = Line::open_unseen(&local, None).await;
            line.client.write_all(&[1; BUFFER_BYTES]).await.unwrap();
            line.broker
                .read_exact(&mut [0; BUFFER_BYTES])
                .await
                .unwrap();
            lines.push(line);
        }
        assert_eq!(local.pool.lent(), 0);
        for line in lines {
            drop((line.client, line.broker));
            line.relay.await.unwrap();
        }
    });
}

#[test]
fn a_client_that_is_cut_off_can_still_read_what_was_answered_before() {
    run(async {
        let mut line = Line::open(&local(), Some(32 * 1024)).await;
        line.client.write_all(&request(1)).await.unwrap();
        let mut received = vec![0; request(1).len()];
        line.broker.read_exact(&mut received).await.unwrap();
        let mut long = answer(1);
        long.resize(60_000, 0);
        long[..4].copy_from_slice(&59_996_i32.to_be_bytes());
        line.broker.write_all(&long).await.unwrap();
        // No frame: klamp closes upon the first of these. On a socket that is closed already the
        // second would provoke a reset, and what has not reached the client yet were lost.
        for _ in 0..2 {
            sleep(Duration::from_millis(50)).await;
            line.client.write_all(&[255; 1_000]).await.unwrap();
        }
        sleep(Duration::from_millis(50)).await;
        let mut received = Vec::new();
        line.client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, long);
        drop((line.client, line.broker));
        assert_eq!(line.relay.await.unwrap().0.label(), "rejected_request");
    });
}

#[test]
fn connections_that_end_at_any_moment_in_any_way_leave_nothing_behind() {
    /// Sends and receives for a random while, then ends in a random way.
    async fn behave(mut socket: TcpStream, mut random: Random) {
        for _ in 0..random.up_to(20) {
            let n = 1 + random.up_to(50_000);
            let bytes = [1; 50_001];
            let patience = Duration::from_millis(random.up_to(10) as u64);
            let _ = match random.up_to(2) {
                0 => timeout(patience, socket.write_all(&bytes[..n]))
                    .await
                    .is_ok(),
                1 => timeout(patience, socket.read(&mut [0; 50_001][..n]))
                    .await
                    .is_ok(),
                _ => timeout(patience, socket.shutdown()).await.is_ok(),
            };
        }
        if random.up_to(1) == 0 {
            socket.set_zero_linger().unwrap();
        }
    }
    run(async {
        let local = local();
        let mut relays = Vec::new();
        for seed in 1..=500 {
            let line = Line::open_unseen(&local, None).await;
            spawn_local(behave(line.client, Random(seed)));
            spawn_local(behave(line.broker, Random(seed << 32)));
            relays.push(line.relay);
        }
        for relay in relays {
            relay.await.unwrap();
        }
        assert_eq!(local.pool.lent(), 0);
        assert_eq!(Rc::strong_count(&local), 1, "no relay is left");
    });
}
