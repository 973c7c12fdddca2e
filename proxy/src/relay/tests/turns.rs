//! Whose turn it is: no lane looks at its wire in vain more often than it must, and none is forgotten
//! that waits for something else.

use super::conversation::{Talk, run, settle};
use super::{Random, answer, api_versions_of_the_future, framed, request, sasl_handshake};
use klamp_codec::session::MAX_IN_FLIGHT;
use std::collections::VecDeque;

#[test]
fn of_three_looks_at_the_wires_that_a_message_takes_one_finds_it() {
    run(async {
        let talk = Talk::start();
        settle().await;
        assert_eq!((talk.client.looks(), talk.broker.looks()), (1, 1));
        for id in 0..50 {
            talk.client.send(&request(id));
            settle().await;
            talk.broker.send(&answer(id));
            settle().await;
        }
        // Behind a message once more, which leaves the waker; and for whom the task was woken nobody
        // knows, so at the other wire too.
        assert_eq!((talk.client.looks(), talk.broker.looks()), (151, 151));
        assert_eq!(
            (talk.client.calls(), talk.broker.calls()),
            ((50, 50), (50, 50))
        );
    });
}

#[test]
fn a_request_beyond_those_in_flight_goes_on_once_an_answer_has_passed() {
    run(async {
        let talk = Talk::start();
        let most = i32::try_from(MAX_IN_FLIGHT).unwrap();
        for id in 0..=most {
            talk.client.send(&request(id));
        }
        settle().await;
        assert_eq!(
            talk.broker.received().len(),
            request(0).len() * MAX_IN_FLIGHT
        );
        talk.broker.send(&answer(0));
        settle().await;
        assert_eq!(talk.broker.received(), request(most));
        assert_eq!(talk.client.received(), answer(0));
    });
}

#[test]
fn the_start_of_an_answer_is_judged_anew_when_its_request_turns_out_to_be_a_token() {
    run(async {
        let talk = Talk::start();
        talk.client.send(&sasl_handshake(1));
        settle().await;
        talk.broker.send(&framed(&[b"\0\0\0\x01\0\0\0\0\0\0"]));
        settle().await;
        talk.client.received();
        // Half a head, which is not judged before it is whole; of a token nothing is.
        let token = framed(&[b"sure"]);
        talk.broker.send(&token[..5]);
        settle().await;
        assert!(talk.client.received().is_empty());
        talk.client.send(&framed(&[b"\0user\0secret"]));
        settle().await;
        assert_eq!(talk.client.received(), token[..5]);
    });
}

#[test]
fn answers_of_the_brokers_and_of_our_own_all_come_in_order_however_they_are_cut() {
    for seed in 1..=200 {
        run(async {
            let mut random = Random(seed);
            let talk = Talk::start();
            let (mut requests, mut due, mut expected) = (Vec::new(), VecDeque::new(), Vec::new());
            for id in 0..40 {
                match random.up_to(2) {
                    0 => {
                        requests.extend(api_versions_of_the_future(id));
                        expected.push(None);
                    }
                    _ => {
                        requests.extend(request(id));
                        due.push_back(answer(id));
                        expected.push(Some(answer(id)));
                    }
                }
            }
            let (mut sent, mut pending, mut told) = (0, Vec::new(), Vec::new());
            while sent < requests.len() || !pending.is_empty() || !due.is_empty() {
                talk.client.set_window(random.up_to(60));
                talk.broker.set_window(random.up_to(60));
                let n = random.up_to((requests.len() - sent).min(90));
                if n > 0 {
                    talk.client.send(&requests[sent..sent + n]);
                }
                sent += n;
                if random.up_to(1) == 0 {
                    settle().await;
                }
                told.extend(talk.broker.received());
                while told.len() >= request(0).len() {
                    told.drain(..request(0).len());
                    pending.extend(due.pop_front().unwrap());
                }
                let n = random.up_to(pending.len().min(50));
                if n > 0 {
                    talk.broker.send(&pending[..n]);
                }
                pending.drain(..n);
                if random.up_to(1) == 0 {
                    settle().await;
                }
            }
            talk.client.set_window(usize::MAX);
            settle().await;
            let received = talk.client.received();
            let mut rest = &received[..];
            for (id, expected) in (0_i32..).zip(expected) {
                let length = rest.first_chunk().map_or(0, |n| u32::from_be_bytes(*n));
                let (frame, behind) = rest.split_at(4 + length as usize);
                assert_eq!(frame[4..8], id.to_be_bytes(), "seed {seed}");
                assert!(
                    expected.is_none_or(|expected| expected == frame),
                    "seed {seed}"
                );
                rest = behind;
            }
            assert!(rest.is_empty(), "seed {seed}");
        });
    }
}
