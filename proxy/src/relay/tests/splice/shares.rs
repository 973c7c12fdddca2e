//! What the connections of a thread share: its time, its pipes, and what the kernel grants.

use super::super::super::splice::{MAX_PIPES, PIPE_BYTES, Pipes, SPARES};
use super::super::super::{Meter, Relay};
use super::super::tcp::{Line, pair, run};
use super::super::{Random, local, session};
use super::{produce, receive, send};
use klamp_codec::Direction;
use klamp_codec::observation::{Observation, Observer};
use std::cell::Cell;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use tokio::net::TcpStream;

/// Counts the bytes of both directions where a test can see them.
#[derive(Clone, Default)]
struct Gauge(Rc<Cell<u64>>);

impl Observer for Gauge {
    fn observe(&mut self, _: Direction, _: u64, _: Observation<'_>) {}
}

impl Meter for Gauge {
    fn moved(&mut self, _: Direction, bytes: u64) {
        self.0.set(self.0.get() + bytes);
    }
}

#[test]
fn a_busy_splice_lets_other_connections_have_their_turn() {
    const FRAMES: i32 = 32;
    run(async {
        let local = local();
        let (client, accepted) = pair(None).await;
        let (dialled, broker) = pair(None).await;
        let (mut client, mut broker) = (blocking(client), blocking(broker));
        let frame = produce(1, 8 << 20);
        let length = FRAMES as usize * frame.len();
        // Threads of their own, so that both ends are at work while the relay is.
        let sending = std::thread::spawn(move || {
            (0..FRAMES).for_each(|_| client.write_all(&frame).unwrap());
            client
        });
        let receiving = std::thread::spawn(move || {
            let (mut piece, mut left) = (vec![0; 1 << 20], length);
            while left > 0 {
                left -= broker.read(&mut piece).unwrap();
            }
        });
        let gauge = Gauge::default();
        let mut relay = Relay::new(accepted, dialled, session(), gauge.clone(), local.clone());
        let mut most = 0;
        poll_fn(|cx| {
            let before = gauge.0.get();
            let polled = Pin::new(&mut relay).poll(cx);
            most = (gauge.0.get() - before).max(most);
            match polled.is_ready() || gauge.0.get() == length as u64 {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        let most_allowed = 2 * (1 << 20) + PIPE_BYTES as u64;
        assert!(
            (1 << 20..=most_allowed).contains(&most),
            "{most} bytes in one go"
        );
        receiving.join().unwrap();
        drop((sending.join().unwrap(), relay));
        assert_eq!(local.pool.lent(), 0);
    });
}

/// The same socket for those who may wait for it.
fn blocking(socket: TcpStream) -> std::net::TcpStream {
    let socket = socket.into_std().unwrap();
    socket.set_nonblocking(false).unwrap();
    socket
}

#[test]
fn where_the_kernel_refuses_to_splice_large_frames_are_copied() {
    run(async {
        let local = local();
        local.pool.pipes.spoil();
        let mut line = Line::open(&local, None).await;
        let frames: Vec<_> = (0..5).flat_map(|id| produce(id, 1 << 20)).collect();
        tokio::join!(
            send(&mut line.client, &frames, Random(1), false),
            receive(&mut line.broker, &frames, Random(2), false),
        );
        assert_eq!(
            local.pool.pipes.loans(),
            1,
            "it is tried once, and then not for a while"
        );
        assert_eq!(local.pool.lent(), 0);
    });
}

#[test]
fn a_thread_lends_no_more_pipes_than_it_may_and_keeps_few() {
    let pipes = Pipes::default();
    let lent: Vec<_> = std::iter::from_fn(|| pipes.lend()).collect();
    assert_eq!((lent.len(), pipes.lent()), (MAX_PIPES, MAX_PIPES));
    lent.into_iter().for_each(|pipe| pipes.take_back(pipe));
    assert_eq!((pipes.lent(), pipes.spares()), (0, SPARES));
}
