//! The same bytes and the same observations by pipes and by buffers, whatever the sizes and the pace.

use super::super::super::ended::Ended;
use super::super::super::lane::{Io, Lane};
use super::super::super::pool::{BUFFER_BYTES, HoldBudget, Pool};
use super::super::super::splice::{PIPE_BYTES, SPLICE_BYTES};
use super::super::super::timer::Clock;
use super::super::super::{Meter, Relay};
use super::super::lane::Gambler;
use super::super::tcp::{pair, run};
use super::super::{Random, Tally, local, session};
use super::{fetch, fetched, produce, receive, send};
use klamp_codec::Direction;
use klamp_codec::observation::{CloseReason, Observation, Observer};
use klamp_codec::session::{Input, Step};
use std::future::poll_fn;
use std::task::Poll;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_local;

const THRESHOLD: usize = SPLICE_BYTES as usize;

/// Sizes around all that makes a difference, and small ones between them.
fn sizes(random: &mut Random) -> Vec<usize> {
    let edges = [
        THRESHOLD,
        2 * THRESHOLD,
        BUFFER_BYTES,
        PIPE_BYTES,
        PIPE_BYTES + THRESHOLD,
    ];
    let mut sizes = Vec::new();
    for edge in edges {
        let near = 1 + random.up_to(200);
        sizes.extend([edge - 1, edge, edge + 1, edge - near, edge + near]);
        sizes.push(random.up_to(300));
    }
    for _ in 0..4 {
        let at = random.up_to(sizes.len() - 1);
        sizes.push(sizes[at]);
    }
    for i in (1..sizes.len()).rev() {
        sizes.swap(i, random.up_to(i));
    }
    sizes
}

#[test]
fn random_steps_over_sockets_are_paid_to_the_last_byte() {
    run(async {
        let mut loans = 0;
        for seed in 1..=30 {
            let mut random = Random(seed);
            let ((mut sender, mut from), (mut to, mut receiver)) =
                (pair(None).await, pair(None).await);
            let pool = Pool::new(HoldBudget::new(1 << 20));
            let stream = random.bytes(1 << [12, 21, 23][seed as usize % 3]);
            let mut gambler = Gambler::new(stream.clone(), Random(seed << 32));
            let sending = spawn_local(async move {
                send(&mut sender, &stream, random, true).await;
                sender.shutdown().await.unwrap();
                sender
            });
            let receiving = spawn_local(async move {
                let mut received = Vec::new();
                receiver.read_to_end(&mut received).await.unwrap();
                received
            });
            let mut lane = Lane::default();
            poll_fn(|cx| {
                let (clock, pool) = (&mut Clock::default(), &pool);
                let io = &mut Io { cx, pool, clock };
                let turned = lane.turn(&mut from, &mut to, io, |input: Input<'_>| {
                    gambler.step(input)
                });
                turned.unwrap();
                lane.rest(pool);
                if gambler.need == 0 {
                    lane.reconsider(false);
                }
                cx.waker().wake_by_ref();
                match lane.is_done() {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            })
            .await;
            let received = receiving.await.unwrap();
            assert!(received == gambler.output, "seed {seed}: wrong output");
            assert_eq!(lane.moved(), received.len() as u64);
            assert_eq!(pool.lent(), 0, "seed {seed}");
            loans += pool.pipes.loans();
            drop(sending.await.unwrap());
        }
        assert!(loans > 50, "{loans}");
    });
}

/// What one look at bytes that are still in the socket showed, and what came of its step.
async fn look(step: Step) -> (Vec<u8>, usize) {
    let (from, to) = (pair(None).await, pair(None).await);
    let ((mut sender, mut from), (mut to, mut receiver)) = (from, to);
    let pool = Pool::new(HoldBudget::new(1 << 20));
    let large = 3 * BUFFER_BYTES;
    sender.write_all(&vec![1; 10 + large]).await.unwrap();
    sender.write_all(b"abcdef").await.unwrap();
    sender.shutdown().await.unwrap();
    let (mut step, mut looked) = (Some(step), 0);
    let mut lane = Lane::default();
    let mut ask = |input: Input<'_>| match input.shown {
        [] if input.eof => Step::Finish,
        [] => Step::Need(1),
        [1, ..] if input.shown.len() <= 10 + large => Step::Pass(10 + large as u64),
        [1, ..] => panic!("all that was sent fits into no buffer"),
        b"abcdef" => {
            looked += 1;
            step.take().unwrap_or(Step::Pass(6))
        }
        rest => Step::Pass(rest.len() as u64),
    };
    poll_fn(|cx| {
        let (clock, pool) = (&mut Clock::default(), &pool);
        let io = &mut Io { cx, pool, clock };
        lane.turn(&mut from, &mut to, io, &mut ask).unwrap();
        lane.reconsider(false);
        cx.waker().wake_by_ref();
        match lane.is_done() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    lane.release(&pool);
    assert_eq!(pool.lent(), 0);
    assert!(pool.pipes.loans() > 0);
    drop(to);
    let mut received = Vec::new();
    receiver.read_to_end(&mut received).await.unwrap();
    (received.split_off(10 + large), looked)
}

#[test]
fn whatever_is_said_of_bytes_that_are_still_in_the_socket_is_done_once() {
    run(async {
        let replace = |drop, with: &[u8]| Step::Replace {
            drop,
            with: with.to_vec(),
        };
        assert_eq!(look(Step::Pass(6)).await, (b"abcdef".to_vec(), 1));
        assert_eq!(look(Step::Pass(2)).await, (b"abcdef".to_vec(), 1));
        assert_eq!(look(Step::Pass(1 << 20)).await, (b"abcdef".to_vec(), 1));
        assert_eq!(look(Step::Need(7)).await, (b"abcdef".to_vec(), 2));
        assert_eq!(look(Step::Wait).await, (b"abcdef".to_vec(), 2));
        assert_eq!(look(replace(2, b"XYZ")).await, (b"XYZcdef".to_vec(), 1));
        assert_eq!(look(replace(6, b"")).await, (b"".to_vec(), 1));
        assert_eq!(look(replace(0, b"X")).await, (b"Xabcdef".to_vec(), 2));
    });
}

/// Tells what a session said, apart from times and from what depends on how bytes came, which differ.
#[derive(Clone, Debug, Default)]
struct Trace {
    lines: [Vec<String>; 2],
    tally: Tally,
}

impl Observer for Trace {
    fn observe(&mut self, direction: Direction, at: u64, mut what: Observation<'_>) {
        match &mut what {
            Observation::InFlight(_) => return,
            Observation::ResponseHead {
                latency,
                is_like_last,
                ..
            } => (*latency, *is_like_last) = (None, false),
            _ => {}
        }
        self.lines[direction as usize].push(format!("{at} {what:?}"));
    }
}

impl Meter for Trace {
    fn moved(&mut self, direction: Direction, bytes: u64) {
        self.tally.moved(direction, bytes);
    }
}

/// Which way large regions go.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Pipes,
    /// The thread has lent all its pipes.
    NoPipes,
}

/// The same talk, by that way: requests of all sizes, then answers of all sizes.
async fn talk(seed: u64, way: Way, slow_sender: bool, slow_reader: bool) -> Trace {
    let random = &mut Random(seed);
    let small_buffers = [None, Some(64 * 1024)][random.up_to(1)];
    let mut requests = Vec::new();
    for (i, bytes) in sizes(random).into_iter().enumerate() {
        requests.extend(produce(i as i32, bytes));
    }
    let mut answers = Vec::new();
    for (i, bytes) in sizes(random).into_iter().enumerate() {
        requests.extend(fetch(i as i32));
        answers.extend(fetched(i as i32, bytes, 1 + random.up_to(2)));
    }
    let local = local();
    let taken: Vec<_> = match way {
        Way::Pipes => Vec::new(),
        Way::NoPipes => std::iter::from_fn(|| local.pool.pipes.lend()).collect(),
    };
    let loans = local.pool.pipes.loans();
    let (mut client, accepted) = pair(small_buffers).await;
    let (dialled, mut broker) = pair(small_buffers).await;
    let relay = Relay::new(
        accepted,
        dialled,
        session(),
        Trace::default(),
        local.clone(),
    );
    let relay = spawn_local(relay);
    let (one, other) = (Random(seed << 8), Random(seed << 16));
    tokio::join!(
        send(&mut client, &requests, one, slow_sender),
        receive(&mut broker, &requests, other, slow_reader),
    );
    let (one, other) = (Random(seed << 24), Random(seed << 32));
    tokio::join!(
        send(&mut broker, &answers, one, slow_sender),
        receive(&mut client, &answers, other, slow_reader),
    );
    client.shutdown().await.unwrap();
    assert_eq!(broker.read(&mut [0]).await.unwrap(), 0);
    drop(broker);
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    let (ended, trace) = relay.await.unwrap();
    assert_eq!(ended, Ended::Session(CloseReason::Client));
    assert_eq!(trace.tally.request, requests.len() as u64);
    assert_eq!(trace.tally.response, answers.len() as u64);
    assert_eq!(local.pool.pipes.loans() > loans, way == Way::Pipes);
    taken
        .into_iter()
        .for_each(|pipe| local.pool.pipes.take_back(pipe));
    assert_eq!(local.pool.lent(), 0);
    trace
}

#[test]
fn frames_of_all_sizes_pass_unchanged_and_are_observed_alike_with_pipes_and_without() {
    run(async {
        for seed in 1..=4 {
            let slow_sender = seed % 2 == 0;
            let slow_reader = seed % 3 == 0;
            let spliced = talk(seed, Way::Pipes, slow_sender, slow_reader).await;
            let copied = talk(seed, Way::NoPipes, slow_sender, slow_reader).await;
            assert!(spliced.lines[0].len() > 50);
            assert!(spliced.lines[1].len() > 50);
            assert_eq!(spliced.lines, copied.lines);
        }
    });
}
