//! Both directions over scripted wires: ends, losses, closing, draining, time.

use super::super::ended::{Ended, Loss, Side};
use super::super::pool::BUFFER_BYTES;
use super::super::{Local, Relay};
use super::script::{Peer, Scripted, scripted};
use super::{Tally, local, session};
use std::io::ErrorKind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};

/// A relay at work in a task of its own.
struct Talk {
    client: Peer,
    broker: Peer,
    local: Rc<Local>,
    relay: JoinHandle<(Ended, Tally)>,
}

impl Talk {
    fn start() -> Self {
        Self::start_on(local())
    }

    fn start_on(local: Rc<Local>) -> Self {
        let ((client_wire, client), (broker_wire, broker)) = (scripted(), scripted());
        let relay = Relay::<Scripted, Scripted, Tally>::new(
            client_wire,
            broker_wire,
            session(),
            Tally::default(),
            local.clone(),
        );
        Self {
            client,
            broker,
            local,
            relay: spawn_local(relay),
        }
    }

    /// How it ended; all memory is back then, and both wires are closed.
    async fn ended(self) -> (Ended, Tally) {
        let ended = self.relay.await.unwrap();
        assert_eq!(self.local.pool.lent(), 0);
        assert!(self.client.is_dropped() && self.broker.is_dropped());
        ended
    }
}

/// Lets every task run until it has nothing to do.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

/// Runs `test` where relays can be spawned; time stands still unless everything waits.
fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test)
}

#[test]
fn bytes_pass_both_ways_with_one_write_for_each_read() {
    run(async {
        let talk = Talk::start();
        for i in 0..50 {
            talk.client.send(&[i; 100]);
            settle().await;
            assert_eq!(talk.broker.received(), [i; 100]);
            talk.broker.send(&[i; 300]);
            settle().await;
            assert_eq!(talk.client.received(), [i; 300]);
        }
        assert_eq!(talk.client.calls(), (50, 50));
        assert_eq!(talk.broker.calls(), (50, 50));
        talk.client.end();
        talk.broker.end();
        let (_, tally) = talk.ended().await;
        assert_eq!((tally.request, tally.response), (5_000, 15_000));
    });
}

#[test]
fn an_idle_connection_holds_no_buffer_and_no_timer() {
    run(async {
        let talk = Talk::start();
        settle().await;
        assert_eq!(talk.local.pool.lent(), 0);
        talk.client.send(b"something");
        settle().await;
        assert_eq!(talk.local.pool.lent(), 0);
    });
}

#[test]
fn a_client_that_has_said_all_still_gets_its_answers() {
    run(async {
        let talk = Talk::start();
        talk.client.send(b"request");
        talk.client.end();
        settle().await;
        assert_eq!(talk.broker.received(), b"request");
        assert!(talk.broker.is_shut() && !talk.client.is_shut());
        talk.broker.send(b"answer");
        settle().await;
        assert_eq!(talk.client.received(), b"answer");
        talk.broker.end();
        settle().await;
        assert!(talk.client.is_shut());
        assert!(matches!(talk.ended().await.0, Ended::Session(_)));
    });
}

#[test]
fn a_broker_that_has_said_all_still_gets_requests() {
    run(async {
        let talk = Talk::start();
        talk.broker.send(b"last answer");
        talk.broker.end();
        settle().await;
        assert_eq!(talk.client.received(), b"last answer");
        assert!(talk.client.is_shut() && !talk.broker.is_shut());
        talk.client.send(b"request");
        settle().await;
        assert_eq!(talk.broker.received(), b"request");
        talk.client.end();
        assert!(matches!(talk.ended().await.0, Ended::Session(_)));
    });
}

#[test]
fn a_lost_peer_is_named_and_the_other_one_gets_what_was_sent_and_an_end() {
    run(async {
        let talk = Talk::start();
        talk.client.send(b"produce without acks");
        talk.client.fail_reads(ErrorKind::ConnectionReset);
        talk.broker.send(b"too late");
        talk.client.fail_writes(ErrorKind::BrokenPipe);
        let broker = talk.broker.clone();
        settle().await;
        assert_eq!(broker.received(), b"produce without acks");
        assert!(broker.is_shut(), "an end, and no reset");
        broker.end();
        assert_eq!(talk.ended().await.0, Ended::Lost(Side::Client, Loss::Reset));

        let talk = Talk::start();
        talk.broker.send(b"answer");
        talk.broker.fail_reads(ErrorKind::TimedOut);
        let client = talk.client.clone();
        settle().await;
        assert_eq!(client.received(), b"answer");
        assert!(client.is_shut());
        client.end();
        assert_eq!(
            talk.ended().await.0,
            Ended::Lost(Side::Broker, Loss::TimedOut)
        );
    });
}

#[test]
fn answers_that_came_before_a_write_failed_still_reach_the_client() {
    run(async {
        let talk = Talk::start();
        settle().await;
        talk.broker.fail_writes(ErrorKind::BrokenPipe);
        for _ in 0..40 {
            talk.broker.send(&[1; 1_000]);
        }
        talk.client.send(b"one more");
        settle().await;
        assert_eq!(talk.client.received().len(), 40_000);
        talk.client.end();
        assert_eq!(talk.ended().await.0, Ended::Lost(Side::Broker, Loss::Reset));
    });
}

#[test]
fn a_close_reads_on_for_a_short_while_so_that_no_reset_destroys_what_was_sent() {
    run(async {
        let talk = Talk::start();
        talk.client.set_window(5);
        talk.broker.send(b"a long answer");
        talk.broker.fail_reads(ErrorKind::ConnectionReset);
        settle().await;
        let (client, local) = (talk.client.clone(), talk.local.clone());
        assert_eq!(client.received(), b"a lon");
        client.set_window(usize::MAX);
        settle().await;
        assert_eq!(client.received(), b"g answer");
        assert!(client.is_shut() && !client.is_dropped());
        client.send(&[0; 100]);
        settle().await;
        assert_eq!(client.unread(), 0);
        assert_eq!(local.pool.lent(), 0, "nothing is held while it listens");
        let before = tokio::time::Instant::now();
        talk.ended().await;
        assert_eq!(before.elapsed().as_millis() / 100, 10);
    });
}

#[test]
fn a_close_does_not_read_on_for_ever() {
    run(async {
        let talk = Talk::start();
        talk.broker.fail_reads(ErrorKind::ConnectionReset);
        for _ in 0..1_000 {
            talk.client.send(&[0; BUFFER_BYTES]);
        }
        talk.broker.fail_writes(ErrorKind::BrokenPipe);
        let before = tokio::time::Instant::now();
        let client = talk.client.clone();
        talk.ended().await;
        assert!(client.unread() > 900);
        assert!(before.elapsed().is_zero());
    });
}

#[test]
fn a_busy_connection_lets_others_have_their_turn_and_wakes_itself() {
    struct Woken(AtomicUsize);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let ((client_wire, client), (broker_wire, broker)) = (scripted(), scripted());
    let mut relay = Relay::new(
        client_wire,
        broker_wire,
        session(),
        Tally::default(),
        local(),
    );
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let cx = &mut Context::from_waker(&waker);
    for _ in 0..1_000 {
        client.send(&[1; 1_000]);
    }
    let mut polls = 0;
    while client.unread() > 0 {
        let before = client.unread();
        assert!(Pin::new(&mut relay).poll(cx).is_pending());
        assert!((1..=100).contains(&(before - client.unread())));
        polls += 1;
        assert!(woken.0.load(Ordering::Relaxed) >= polls || client.unread() == 0);
    }
    assert_eq!(broker.received().len(), 1_000_000);
}

#[test]
fn the_end_of_the_drain_ends_every_relay_at_once_and_leaves_nothing_behind() {
    run(async {
        let local = local();
        let talks: Vec<_> = (0..100).map(|_| Talk::start_on(local.clone())).collect();
        talks[7].broker.set_window(0);
        talks[7].client.send(&[1; 100_000]);
        settle().await;
        local.drain();
        settle().await;
        assert!(talks.iter().all(|talk| !talk.relay.is_finished()));
        local.expire();
        for talk in talks {
            assert_eq!(talk.ended().await.0, Ended::DrainTimeout);
        }
    });
}

#[test]
fn a_relay_that_is_dropped_gives_its_buffers_back() {
    run(async {
        let talk = Talk::start();
        talk.broker.set_window(0);
        talk.client.send(&[1; 100_000]);
        settle().await;
        assert_eq!(talk.local.pool.lent(), 1);
        talk.relay.abort();
        settle().await;
        assert_eq!(talk.local.pool.lent(), 0);
        talk.local.drain();
    });
}

#[test]
fn a_relay_is_small() {
    let relay = size_of::<Relay<tokio::net::TcpStream, tokio::net::TcpStream, Tally>>();
    let session = size_of::<klamp_codec::session::Session>();
    let own = relay - session;
    assert!(own <= 448, "{own} bytes beside the session's {session}");
}
