//! Ends of all kinds while a large frame is under way: nothing that was read is lost, nothing stays on
//! loan, and the right side is named.

use super::super::super::Local;
use super::super::super::ended::{Ended, Loss, Side};
use super::super::tcp::{Line, run};
use super::super::{Random, api_versions_of_the_future, local, request};
use super::{fetch, fetched, produce, receive};
use klamp_codec::observation::CloseReason;
use rustix::net::{SendFlags, send as send_urgent};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

/// A line on which a client is in the middle of a large frame: `sent` bytes of it have arrived.
async fn line_amid_frame(local: &Rc<Local>, sent: usize) -> (Line, Vec<u8>) {
    let mut line = Line::open(local, Some(64 * 1024)).await;
    let frame = produce(1, 8 << 20);
    let mut received = vec![0; sent];
    let arriving = line.broker.read_exact(&mut received);
    let (sending, arriving) = tokio::join!(line.client.write_all(&frame[..sent]), arriving);
    sending.unwrap();
    arriving.unwrap();
    assert!(received == frame[..sent]);
    assert!(local.pool.pipes.loans() > 0);
    (line, frame)
}

#[test]
fn a_sender_that_pauses_amid_a_frame_holds_no_pipe() {
    run(async {
        let local = local();
        let (mut line, frame) = line_amid_frame(&local, 3 << 20).await;
        sleep(Duration::from_millis(20)).await;
        assert_eq!(local.pool.lent(), 0);
        let mut rest = vec![0; frame.len() - (3 << 20)];
        let (client, broker) = (&mut line.client, &mut line.broker);
        let (sent, read) = tokio::join!(
            client.write_all(&frame[3 << 20..]),
            broker.read_exact(&mut rest)
        );
        sent.unwrap();
        read.unwrap();
        assert!(rest == frame[3 << 20..]);
        assert_eq!(local.pool.lent(), 0);
    });
}

#[test]
fn an_end_amid_a_spliced_frame_passes_and_what_came_before_it_too() {
    run(async {
        let local = local();
        let (mut line, frame) = line_amid_frame(&local, 1 << 20).await;
        let (client, broker) = (&mut line.client, &mut line.broker);
        let sending = async {
            client.write_all(&frame[1 << 20..5 << 20]).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let mut rest = Vec::new();
        let (_, read) = tokio::join!(sending, broker.read_to_end(&mut rest));
        read.unwrap();
        assert!(rest == frame[1 << 20..5 << 20]);
        line.broker.write_all(b"\0\0").await.unwrap();
        drop(line.broker);
        let mut answer = Vec::new();
        line.client.read_to_end(&mut answer).await.unwrap();
        let (ended, tally) = line.relay.await.unwrap();
        assert_eq!(ended, Ended::Session(CloseReason::ClientInFlight));
        assert_eq!((tally.request, answer), (5 << 20, b"\0\0".to_vec()));
        assert_eq!(local.pool.lent(), 0);
    });
}

#[test]
fn what_comes_behind_an_urgent_byte_passes_before_the_end() {
    run(async {
        let local = local();
        let (mut line, frame) = line_amid_frame(&local, 1 << 20).await;
        let (first, second) = frame[1 << 20..][..25_000].split_at(10_000);
        line.client.write_all(first).await.unwrap();
        assert_eq!(send_urgent(&line.client, b"!", SendFlags::OOB), Ok(1));
        line.client.write_all(second).await.unwrap();
        line.client.shutdown().await.unwrap();
        let mut rest = Vec::new();
        line.broker.read_to_end(&mut rest).await.unwrap();
        assert!(rest == [first, second].concat(), "{}", rest.len());
        drop(line.broker);
        line.relay.await.unwrap();
        assert_eq!(local.pool.lent(), 0);
    });
}

#[test]
fn a_reset_amid_a_spliced_frame_is_laid_to_the_side_that_did_it() {
    run(async {
        for lost in [Side::Client, Side::Broker] {
            for is_held_back in [false, true] {
                let local = local();
                let (mut line, frame) = line_amid_frame(&local, 1 << 20).await;
                if is_held_back {
                    // Until the pipe is full of what the broker does not take.
                    let rest = line.client.write_all(&frame[1 << 20..]);
                    let rest = timeout(Duration::from_millis(100), rest).await;
                    assert!(rest.is_err(), "the sockets' buffers are far smaller");
                    assert_eq!(local.pool.pipes.lent(), 1);
                }
                let (resets, mut other) = match lost {
                    Side::Client => (line.client, line.broker),
                    Side::Broker => (line.broker, line.client),
                };
                resets.set_zero_linger().unwrap();
                drop(resets);
                let mut rest = Vec::new();
                let read = other.read_to_end(&mut rest).await;
                assert!(read.is_ok(), "an end, and no reset");
                assert!(frame[1 << 20..].starts_with(&rest));
                drop(other);
                let (ended, _) = line.relay.await.unwrap();
                assert_eq!(ended, Ended::Lost(lost, Loss::Reset), "{is_held_back}");
                assert_eq!(local.pool.lent(), 0);
            }
        }
    });
}

/// Answers of 1 MiB each to as many requests, on their way to a client that does not read.
async fn line_to_a_client_that_stalls(local: &Rc<Local>, answers: usize) -> (Line, Vec<u8>) {
    let mut line = Line::open(local, Some(64 * 1024)).await;
    let mut requests = vec![0; fetch(0).len() * answers];
    let asked: Vec<_> = (0..answers as i32).flat_map(fetch).collect();
    line.client.write_all(&asked).await.unwrap();
    line.broker.read_exact(&mut requests).await.unwrap();
    let answers: Vec<_> = (0..answers as i32)
        .flat_map(|id| fetched(id, 1 << 20, 1))
        .collect();
    (line, answers)
}

#[test]
fn a_client_that_does_not_read_costs_one_pipe_and_holds_the_broker_back() {
    run(async {
        let local = local();
        let (line, answers) = line_to_a_client_that_stalls(&local, 20).await;
        let Line {
            mut client,
            mut broker,
            relay,
            ..
        } = line;
        let all = answers.clone();
        let sending = spawn_local(async move {
            broker.write_all(&all).await.unwrap();
            broker
        });
        sleep(Duration::from_millis(200)).await;
        assert_eq!(local.pool.lent(), 1);
        assert!(!sending.is_finished());
        receive(&mut client, &answers, Random(1), true).await;
        let broker = sending.await.unwrap();
        assert_eq!(local.pool.lent(), 0);
        drop((client, broker));
        relay.await.unwrap();
    });
}

#[test]
fn what_is_in_a_pipe_when_the_connection_is_closed_still_reaches_the_client() {
    run(async {
        let local = local();
        let (line, answers) = line_to_a_client_that_stalls(&local, 1).await;
        let Line {
            mut client,
            mut broker,
            relay,
            ..
        } = line;
        // In pieces that one splice takes whole, until the client's side takes no more.
        let mut sent = 0;
        while local.pool.pipes.lent() == 0 {
            (broker.write_all(&answers[sent..sent + 10_000]).await).unwrap();
            sent += 10_000;
            sleep(Duration::from_millis(5)).await;
        }
        client.write_all(&[255; 100]).await.unwrap(); // no frame
        sleep(Duration::from_millis(50)).await;
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert!(received == answers[..sent], "{} {sent}", received.len());
        drop((client, broker));
        assert_eq!(relay.await.unwrap().0.label(), "rejected_request");
        assert_eq!(local.pool.lent(), 0);
    });
}

#[test]
fn a_drain_amid_a_spliced_answer_waits_for_its_end() {
    run(async {
        let local = local();
        let (line, answers) = line_to_a_client_that_stalls(&local, 1).await;
        let Line {
            mut client,
            mut broker,
            relay,
            ..
        } = line;
        broker.write_all(&answers[..1 << 19]).await.unwrap();
        sleep(Duration::from_millis(50)).await;
        local.drain();
        sleep(Duration::from_millis(400)).await;
        let rest = async {
            broker.write_all(&answers[1 << 19..]).await.unwrap();
        };
        tokio::join!(rest, receive(&mut client, &answers, Random(1), false));
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        drop((client, broker));
        let (ended, _) = relay.await.unwrap();
        assert_eq!(ended, Ended::Session(CloseReason::Drained));
        assert_eq!(local.pool.lent(), 0);
    });
}

#[test]
fn a_small_request_behind_a_large_one_is_answered_by_klamp_itself_in_its_turn() {
    run(async {
        let local = local();
        let mut line = Line::open(&local, None).await;
        let large = produce(1, 1 << 20);
        let own = api_versions_of_the_future(2);
        let last = request(3);
        let sent = [&large[..], &own, &last].concat();
        let mut received = vec![0; large.len() + last.len()];
        let (sending, reading) = tokio::join!(
            line.client.write_all(&sent),
            line.broker.read_exact(&mut received),
        );
        sending.unwrap();
        reading.unwrap();
        assert!(received == [large, last].concat());
        let mut head = [0; 8];
        line.client.read_exact(&mut head).await.unwrap();
        assert_eq!(head[4..], [0, 0, 0, 2]);
        assert!(local.pool.pipes.loans() > 0);
    });
}
