//! Both directions over scripted wires: ends, losses, closing, draining, time.

use super::super::ended::{Ended, Loss, Side};
use super::super::pool::BUFFER_BYTES;
use super::super::{Local, Relay};
use super::script::{Peer, Scripted, scripted};
use super::{
    Tally, UNSEEN, answer, api_versions_of_the_future, framed, local, produce_acks0, request,
    sasl_handshake, session,
};
use klamp_codec::Direction;
use klamp_codec::observation::{CloseReason, RejectReason};
use std::io::ErrorKind;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};
use tokio::time::{Instant, advance, sleep};

const DRAINED: Ended = Ended::Session(CloseReason::Drained);

/// A relay at work in a task of its own.
pub(super) struct Talk {
    pub(super) client: Peer,
    pub(super) broker: Peer,
    local: Rc<Local>,
    relay: JoinHandle<(Ended, Tally)>,
}

impl Talk {
    pub(super) fn start() -> Self {
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

    /// One that is relayed unseen, so that any bytes may pass.
    async fn start_unseen() -> Self {
        let talk = Self::start();
        talk.client.send(UNSEEN);
        settle().await;
        assert_eq!(talk.broker.received(), UNSEEN);
        talk
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
pub(super) async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

/// Runs `test` where relays can be spawned; time stands still unless everything waits.
pub(super) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test)
}

#[test]
fn an_exchange_takes_one_read_and_one_write_each_way() {
    run(async {
        let talk = Talk::start();
        for id in 0..50 {
            talk.client.send(&request(id));
            settle().await;
            assert_eq!(talk.broker.received(), request(id));
            talk.broker.send(&answer(id));
            settle().await;
            assert_eq!(talk.client.received(), answer(id));
        }
        assert_eq!(talk.client.calls(), (50, 50));
        assert_eq!(talk.broker.calls(), (50, 50));
        talk.client.end();
        talk.broker.end();
        let (ended, tally) = talk.ended().await;
        assert_eq!(ended, Ended::Session(CloseReason::Client));
        let bytes = |frame: Vec<u8>| 50 * frame.len() as u64;
        assert_eq!(tally.request, bytes(request(0)));
        assert_eq!(tally.response, bytes(answer(0)));
    });
}

#[test]
fn an_answer_of_our_own_goes_out_though_the_broker_says_nothing() {
    run(async {
        let talk = Talk::start();
        settle().await;
        talk.client.send(&api_versions_of_the_future(7));
        settle().await;
        let answer = talk.client.received();
        assert_eq!(answer[4..10], [0, 0, 0, 7, 0, 35]);
        assert!(talk.broker.received().is_empty());
    });
}

#[test]
fn a_request_that_had_to_wait_goes_on_as_soon_as_the_answer_has_come() {
    run(async {
        let talk = Talk::start();
        talk.client.send(&sasl_handshake(1));
        talk.client.send(&framed(&[b"\0user\0secret"]));
        settle().await;
        assert_eq!(talk.broker.received(), sasl_handshake(1));
        assert_eq!(talk.local.pool.lent(), 0, "nor does it hold a buffer");
        talk.broker.send(&framed(&[b"\0\0\0\x01\0\0\0\0\0\0"]));
        settle().await;
        assert_eq!(talk.broker.received(), framed(&[b"\0user\0secret"]));
    });
}

#[test]
fn an_idle_connection_holds_no_buffer() {
    run(async {
        let talk = Talk::start();
        settle().await;
        assert_eq!(talk.local.pool.lent(), 0);
        talk.client.send(&request(1));
        talk.client.send(&request(2)[..5]);
        settle().await;
        assert_eq!(talk.local.pool.lent(), 0);
    });
}

#[test]
fn a_client_that_has_said_all_still_gets_its_answers() {
    run(async {
        let talk = Talk::start();
        talk.client.send(&request(1));
        talk.client.end();
        settle().await;
        assert_eq!(talk.broker.received(), request(1));
        assert!(talk.broker.is_shut() && !talk.client.is_shut());
        talk.broker.send(&answer(1));
        settle().await;
        assert_eq!(talk.client.received(), answer(1));
        talk.broker.end();
        let client = talk.client.clone();
        let ended = Ended::Session(CloseReason::ClientInFlight);
        assert_eq!(talk.ended().await.0, ended);
        assert!(client.is_shut());
    });
}

#[test]
fn a_broker_that_has_said_all_still_gets_requests() {
    run(async {
        let talk = Talk::start();
        talk.client.send(&request(1));
        settle().await;
        talk.broker.send(&answer(1));
        talk.broker.end();
        settle().await;
        assert_eq!(talk.client.received(), answer(1));
        assert!(talk.client.is_shut() && !talk.broker.is_shut());
        talk.client.send(&request(2));
        settle().await;
        assert_eq!(talk.broker.received(), [request(1), request(2)].concat());
        talk.client.end();
        assert_eq!(talk.ended().await.0, Ended::Session(CloseReason::Broker));
    });
}

#[test]
fn a_lost_client_is_named_and_the_broker_gets_what_was_sent_and_an_end() {
    run(async {
        let talk = Talk::start();
        talk.client.send(&produce_acks0(1));
        talk.client.fail_reads(ErrorKind::ConnectionReset);
        talk.client.fail_writes(ErrorKind::BrokenPipe);
        let broker = talk.broker.clone();
        settle().await;
        assert_eq!(broker.received(), produce_acks0(1));
        assert!(broker.is_shut(), "an end, and no reset");
        broker.end();
        let ended = Ended::Lost(Side::Client, Loss::Reset);
        assert_eq!(talk.ended().await.0, ended);
    });
}

#[test]
fn a_lost_broker_is_named_and_the_client_gets_what_was_sent_and_an_end() {
    run(async {
        let talk = Talk::start();
        talk.client.send(&request(1));
        settle().await;
        talk.broker.send(&answer(1));
        talk.broker.fail_reads(ErrorKind::TimedOut);
        let client = talk.client.clone();
        settle().await;
        assert_eq!(client.received(), answer(1));
        assert!(client.is_shut());
        client.end();
        let ended = Ended::Lost(Side::Broker, Loss::TimedOut);
        assert_eq!(talk.ended().await.0, ended);
    });
}

#[test]
fn a_broker_that_ends_or_resets_upon_acks0_is_said_to_have_done_so() {
    run(async {
        for how in ["end", "reset", "broken pipe, then end"] {
            let talk = Talk::start();
            talk.client.send(&produce_acks0(1));
            settle().await;
            match how {
                "end" => talk.broker.end(),
                "reset" => talk.broker.fail_reads(ErrorKind::ConnectionReset),
                _ => {
                    talk.broker.fail_writes(ErrorKind::BrokenPipe);
                    talk.client.send(&produce_acks0(2));
                    talk.broker.end();
                }
            }
            settle().await;
            talk.client.end();
            let ended = Ended::Session(CloseReason::BrokerAfterAcks0);
            assert_eq!(talk.ended().await.0, ended, "{how}");
        }
    });
}

#[test]
fn answers_that_came_before_a_write_failed_still_reach_the_client() {
    run(async {
        let talk = Talk::start_unseen().await;
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
        let talk = Talk::start_unseen().await;
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
        let before = Instant::now();
        talk.ended().await;
        assert_eq!(before.elapsed().as_millis() / 100, 10);
    });
}

#[test]
fn a_close_does_not_read_on_for_ever() {
    run(async {
        let talk = Talk::start();
        for _ in 0..1_000 {
            talk.client.send(&[255; BUFFER_BYTES]);
        }
        talk.broker.end();
        let before = Instant::now();
        let client = talk.client.clone();
        let ended = talk.ended().await.0;
        let reason = RejectReason::NegativeLength;
        let rejected = CloseReason::Rejected(Direction::Request, reason);
        assert_eq!(ended, Ended::Session(rejected));
        assert!(client.is_shut() && client.unread() > 900);
        assert!(before.elapsed().is_zero());
    });
}

#[test]
fn a_request_that_stops_arriving_ends_the_connection_after_its_time_and_no_sooner() {
    run(async {
        let talk = Talk::start();
        let request = request(1);
        let before = Instant::now();
        talk.client.send(&request[..6]);
        sleep(Duration::from_secs(599)).await;
        talk.client.send(&request[6..7]);
        sleep(Duration::from_secs(599)).await;
        assert!(!talk.relay.is_finished(), "it arrives, if slowly");
        let ended = Ended::Session(CloseReason::Stalled(Direction::Request));
        assert_eq!(talk.ended().await.0, ended);
        let waited = before.elapsed().as_secs();
        assert!((599 + 600..=599 + 602).contains(&waited), "{waited} s");
    });
}

#[test]
fn a_client_that_cannot_go_on_since_the_broker_takes_nothing_is_not_blamed() {
    run(async {
        let talk = Talk::start();
        let mut large = request(1);
        large[..4].copy_from_slice(&1_000_000_i32.to_be_bytes());
        talk.client.send(&large);
        settle().await;
        talk.broker.set_window(0);
        talk.client.send(&[0; BUFFER_BYTES]);
        sleep(Duration::from_secs(100_000)).await;
        assert!(!talk.relay.is_finished());
        talk.broker.set_window(usize::MAX);
        sleep(Duration::from_secs(590)).await;
        assert!(
            !talk.relay.is_finished(),
            "its time begins when there is room"
        );
        sleep(Duration::from_secs(20)).await;
        talk.broker.end();
        let ended = Ended::Session(CloseReason::Stalled(Direction::Request));
        assert_eq!(talk.ended().await.0, ended);
    });
}

#[test]
fn an_idle_connection_is_drained_at_once() {
    run(async {
        let talk = Talk::start();
        settle().await;
        talk.local.drain();
        settle().await;
        assert!(talk.client.is_shut() && talk.broker.is_shut());
        talk.client.end();
        talk.broker.end();
        assert_eq!(talk.ended().await.0, DRAINED);
    });
}

#[test]
fn a_drain_lets_what_has_arrived_go_first_and_waits_for_answers() {
    run(async {
        let talk = Talk::start();
        settle().await;
        let frames = [produce_acks0(1), request(2), produce_acks0(3)];
        frames.iter().for_each(|frame| talk.client.send(frame));
        talk.local.drain();
        sleep(Duration::from_secs(20)).await;
        assert_eq!(talk.broker.received(), frames.concat());
        talk.client.send(&request(4));
        settle().await;
        assert!(talk.broker.received().is_empty(), "what comes later stays");
        assert!(!talk.relay.is_finished(), "an answer is on its way");
        talk.broker.send(&answer(2));
        settle().await;
        assert_eq!(talk.client.received(), answer(2));
        talk.client.end();
        talk.broker.end();
        assert_eq!(talk.ended().await.0, DRAINED);
    });
}

#[test]
fn a_client_that_never_pauses_is_drained_after_a_grace() {
    run(async {
        let talk = Talk::start();
        settle().await;
        let before = Instant::now();
        talk.local.drain();
        while !talk.client.is_shut() {
            while talk.client.unread() < 1_000 {
                talk.client.send(&produce_acks0(1));
            }
            advance(Duration::from_millis(10)).await;
        }
        let millis = before.elapsed().as_millis();
        assert!((250..350).contains(&millis), "{millis} ms");
        let received = talk.broker.received();
        assert_eq!(received.len() % produce_acks0(1).len(), 0);
        assert_eq!(talk.ended().await.0, DRAINED);
    });
}

#[test]
fn in_a_drain_nothing_is_lost_of_what_a_client_sends_with_acks0_until_it_leaves() {
    run(async {
        let talk = Talk::start();
        settle().await;
        talk.client.send(&produce_acks0(1));
        talk.local.drain();
        settle().await;
        assert!(talk.client.is_shut() && !talk.broker.is_shut());
        talk.broker.received();
        for _ in 0..10_000 {
            talk.client.send(&produce_acks0(2));
        }
        talk.client.end();
        settle().await;
        assert_eq!(
            talk.broker.received().len(),
            10_000 * produce_acks0(2).len()
        );
        assert!(talk.broker.is_shut());
        talk.broker.end();
        assert_eq!(talk.ended().await.0, DRAINED);
    });
}

#[test]
fn a_client_that_does_not_leave_though_it_was_told_the_end_is_left_when_it_is_silent() {
    run(async {
        let talk = Talk::start();
        talk.client.send(&produce_acks0(1));
        // a long silence before the drain gives it no less time to say what is on its way
        sleep(Duration::from_secs(60)).await;
        let before = Instant::now();
        talk.local.drain();
        settle().await;
        assert!(talk.client.is_shut());
        sleep(Duration::from_millis(900)).await;
        talk.client.send(&produce_acks0(2));
        talk.broker.end();
        assert_eq!(talk.ended().await.0, DRAINED);
        let millis = before.elapsed().as_millis();
        assert!((1_900..4_000).contains(&millis), "{millis} ms");
    });
}

#[test]
fn a_drain_writes_all_that_it_took_however_long_the_broker_takes() {
    run(async {
        let talk = Talk::start();
        settle().await;
        talk.broker.set_window(10);
        talk.client.send(&produce_acks0(1));
        talk.local.drain();
        sleep(Duration::from_secs(15)).await;
        assert_eq!(talk.broker.received().len(), 10);
        assert!(!talk.relay.is_finished());
        talk.broker.set_window(usize::MAX);
        settle().await;
        assert_eq!(talk.broker.received(), produce_acks0(1)[10..]);
        let before = Instant::now();
        assert_eq!(talk.ended().await.0, DRAINED);
        assert!(
            before.elapsed() < Duration::from_secs(3),
            "but listens no longer than to a silent client and then as ever"
        );
    });
}

#[test]
fn a_connection_that_begins_during_a_drain_works_until_the_next_one() {
    run(async {
        let local = local();
        local.drain();
        let talk = Talk::start_on(local.clone());
        sleep(Duration::from_secs(5)).await;
        talk.client.send(&request(1));
        settle().await;
        assert_eq!(talk.broker.received(), request(1));
        talk.broker.send(&answer(1));
        settle().await;
        local.drain();
        talk.client.end();
        talk.broker.end();
        assert_eq!(talk.client.received(), answer(1));
        talk.ended().await;
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _entered = runtime.enter();
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
    client.send(UNSEEN);
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
    assert_eq!(broker.received().len(), UNSEEN.len() + 1_000_000);
}

#[test]
fn the_end_of_the_drain_ends_every_relay_at_once_and_leaves_nothing_behind() {
    run(async {
        let local = local();
        let talks: Vec<_> = (0..100).map(|_| Talk::start_on(local.clone())).collect();
        talks.iter().for_each(|talk| talk.client.send(&request(1)));
        talks[7].broker.set_window(0);
        talks[7].client.send(&request(2).repeat(1_000));
        settle().await;
        local.drain();
        settle().await;
        assert!(talks.iter().all(|talk| !talk.relay.is_finished()));
        let before = Instant::now();
        local.expire();
        for talk in talks {
            assert_eq!(talk.ended().await.0, Ended::DrainTimeout);
        }
        assert!(before.elapsed().is_zero());
    });
}

#[test]
fn a_relay_that_is_dropped_gives_its_buffers_back() {
    run(async {
        let talk = Talk::start_unseen().await;
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
