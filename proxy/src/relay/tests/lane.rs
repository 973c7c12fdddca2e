//! One lane against a session that is a closure: every kind of step, paid to the last byte.

use super::super::ended::Ended;
use super::super::lane::{Fault, Io, Lane};
use super::super::pool::{BUFFER_BYTES, HoldBudget, Pool};
use super::super::timer::Clock;
use super::Random;
use super::script::{Peer, Scripted, scripted};
use klamp_codec::session::{Input, Step};
use std::io::ErrorKind;
use std::sync::Arc;
use std::task::{Context, Waker};

/// A lane between two scripted wires.
struct Bench {
    lane: Lane,
    from: Scripted,
    to: Scripted,
    sender: Peer,
    receiver: Peer,
    pool: Pool,
    budget: Arc<HoldBudget>,
}

impl Bench {
    fn new() -> Self {
        let ((from, sender), (to, receiver)) = (scripted(), scripted());
        let budget = HoldBudget::new(1 << 20);
        Self {
            lane: Lane::default(),
            from,
            to,
            sender,
            receiver,
            pool: Pool::new(budget.clone()),
            budget,
        }
    }

    /// Turns until nothing moves, then lets the lane rest.
    fn run(&mut self, mut ask: impl FnMut(Input<'_>) -> Step) -> Result<(), Fault> {
        let cx = &mut Context::from_waker(Waker::noop());
        let clock = &mut Clock::default();
        loop {
            let pool = &self.pool;
            let io = &mut Io { cx, pool, clock };
            if !self.lane.turn(&mut self.from, &mut self.to, io, &mut ask)? {
                self.lane.rest(&self.pool);
                return Ok(());
            }
        }
    }
}

/// A session that takes random steps over a stream it knows, and checks that each was paid.
pub(super) struct Gambler {
    random: Random,
    stream: Vec<u8>,
    /// How far the steps so far have come in the stream; beyond its end by what can never be paid.
    at: usize,
    pub(super) need: usize,
    pub(super) output: Vec<u8>,
    finished: bool,
}

impl Gambler {
    pub(super) fn new(stream: Vec<u8>, random: Random) -> Self {
        Self {
            random,
            stream,
            at: 0,
            need: 0,
            output: Vec::new(),
            finished: false,
        }
    }

    pub(super) fn step(&mut self, input: Input<'_>) -> Step {
        assert!(!self.finished, "asked after the end");
        let length = self.stream.len();
        let unpaid = self.at.saturating_sub(length);
        assert_eq!(input.unpaid, unpaid as u64);
        assert!(unpaid == 0 || input.eof);
        self.at = self.at.min(length);
        let shown = input.shown.len();
        assert_eq!(input.shown, &self.stream[self.at..self.at + shown]);
        assert!(shown >= self.need || input.eof);
        assert!(!input.eof || self.at + shown == length, "an end too early");
        self.need = 0;
        if input.eof && shown == 0 {
            self.finished = true;
            return Step::Finish;
        }
        let most_owed = [10, 1_000, 200_000][self.random.up_to(2)];
        match self.random.up_to(5) {
            0 | 1 if shown > 0 => {
                let n = 1 + self.random.up_to(shown - 1);
                self.pass(n)
            }
            2 if shown > 0 || !input.eof => {
                let owed = 1 + self.random.up_to(most_owed);
                self.pass(shown + owed)
            }
            3 if shown > 0 => {
                let drop = self.random.up_to(shown);
                let n = self.random.up_to(300) + usize::from(drop == 0);
                let with = self.random.bytes(n);
                self.output.extend_from_slice(&with);
                self.at += drop;
                Step::Replace { drop, with }
            }
            _ if input.eof => self.pass(shown),
            4 => Step::Wait,
            _ => {
                self.need = shown + 1 + self.random.up_to(most_owed);
                Step::Need(self.need)
            }
        }
    }

    fn pass(&mut self, n: usize) -> Step {
        let end = (self.at + n).min(self.stream.len());
        self.output.extend_from_slice(&self.stream[self.at..end]);
        self.at += n;
        Step::Pass(n as u64)
    }
}

#[test]
fn random_steps_over_a_stream_in_random_pieces_are_paid_to_the_last_byte() {
    for seed in 1..=300 {
        let mut random = Random(seed);
        let mut bench = Bench::new();
        let length = [100, 5_000, 400_000][seed as usize % 3];
        let mut gambler = Gambler::new(random.bytes(length), Random(seed << 32));
        let most = [1, 700, 70_000][random.up_to(2)].max(length / 1_000);
        let (mut received, mut sent, mut ended) = (Vec::new(), 0, false);
        let mut idle = 0;
        while !bench.lane.is_done() {
            if sent < length && random.up_to(1) == 0 {
                let n = (1 + random.up_to(most)).min(length - sent);
                bench.sender.send(&gambler.stream[sent..sent + n]);
                sent += n;
            } else if sent == length && !ended {
                bench.sender.end();
                ended = true;
            }
            bench.receiver.set_window(random.up_to(most * 2));
            bench.run(|input| gambler.step(input)).unwrap();
            // Only a Wait is called off by a move of the other direction here; a Need that is asked
            // about too early would have to be answered by the same Need.
            if gambler.need == 0 {
                bench.lane.reconsider(false);
            }
            received.extend(bench.receiver.received());
            idle += 1;
            assert!(idle < 3_000_000, "seed {seed} does not come to an end");
        }
        received.extend(bench.receiver.received());
        assert!(gambler.finished && bench.receiver.is_shut(), "seed {seed}");
        assert!(received == gambler.output, "seed {seed}: wrong output");
        assert_eq!(bench.lane.moved(), received.len() as u64);
        assert_eq!(bench.pool.lent(), 0, "seed {seed}");
        assert_eq!(bench.budget.left(), 1 << 20);
    }
}

#[test]
fn what_one_read_brought_leaves_in_one_write_however_many_steps_it_takes() {
    let mut bench = Bench::new();
    bench.sender.send(&[7; 1_000]);
    bench
        .run(|input| match input.shown.len() {
            0 => Step::Need(1),
            _ => Step::Pass(10),
        })
        .unwrap();
    assert_eq!(bench.receiver.received(), [7; 1_000]);
    assert_eq!(bench.receiver.calls().1, 1);
}

#[test]
fn bytes_owed_are_moved_without_asking_and_then_it_asks_at_once() {
    let mut bench = Bench::new();
    let mut asked = Vec::new();
    let mut ask = |input: Input<'_>| {
        asked.push(input.shown.len());
        match asked.len() {
            1 => Step::Need(1),
            2 => Step::Pass(100_000),
            _ => Step::Need(1),
        }
    };
    bench.sender.send(&[1; 10]);
    bench.run(&mut ask).unwrap();
    bench.sender.send(&[2; 60_000]);
    bench.run(&mut ask).unwrap();
    bench.sender.send(&[3; 39_990]);
    bench.run(&mut ask).unwrap();
    assert_eq!(asked, [0, 10, 0]);
    assert_eq!(bench.receiver.received().len(), 100_000);
}

#[test]
fn an_end_in_the_middle_of_a_debt_tells_what_never_came() {
    let mut bench = Bench::new();
    bench.sender.send(&[1; 10]);
    bench.sender.end();
    let mut unpaid = Vec::new();
    bench
        .run(|input| {
            unpaid.push((input.eof, input.unpaid));
            match (input.eof, input.shown.len()) {
                (true, _) => Step::Finish,
                (_, 0) => Step::Need(4),
                _ => Step::Pass(25),
            }
        })
        .unwrap();
    assert_eq!(unpaid, [(false, 0), (false, 0), (true, 15)]);
    assert_eq!(bench.receiver.received(), [1; 10]);
    assert!(bench.receiver.is_shut());
}

#[test]
fn a_reader_that_takes_nothing_stops_the_lane_from_reading() {
    let mut bench = Bench::new();
    bench.receiver.set_window(0);
    for _ in 0..100 {
        bench.sender.send(&[1; BUFFER_BYTES]);
    }
    let mut ask = |_: Input<'_>| Step::Pass(u64::MAX);
    bench.run(&mut ask).unwrap();
    assert_eq!(bench.sender.unread(), 99);
    assert_eq!(bench.pool.lent(), 1);
    assert_eq!(
        bench.lane.waiting_since(),
        None,
        "it waits for the reader, not for the sender"
    );
    assert!(!bench.lane.is_dry());
    bench.receiver.set_window(usize::MAX);
    bench.run(&mut ask).unwrap();
    assert_eq!(bench.receiver.received().len(), 100 * BUFFER_BYTES);
    assert_eq!(bench.pool.lent(), 0);
    assert!(bench.lane.waiting_since().is_some() && bench.lane.is_dry());
}

#[test]
fn a_lane_that_its_reader_holds_back_no_longer_waits_for_its_sender() {
    let mut bench = Bench::new();
    bench.run(|_| Step::Need(1)).unwrap();
    assert!(bench.lane.waiting_since().is_some());
    bench.receiver.set_window(0);
    bench.lane.reconsider(false);
    let with = b"an answer of our own".to_vec();
    bench
        .run(|_| Step::Replace {
            drop: 0,
            with: with.clone(),
        })
        .unwrap();
    assert_eq!(bench.lane.waiting_since(), None);
}

#[test]
fn a_few_bytes_that_stay_do_not_keep_a_buffer() {
    let mut bench = Bench::new();
    bench.sender.send(&[1, 2, 3]);
    bench.run(|_| Step::Need(4)).unwrap();
    assert_eq!(bench.pool.lent(), 0);
    bench.sender.send(&[4]);
    bench.receiver.set_window(0);
    bench
        .run(|input| match input.shown {
            [1, 2, 3, 4] => Step::Pass(4),
            rest => Step::Need(rest.len() + 1),
        })
        .unwrap();
    assert_eq!(bench.pool.lent(), 0, "nor do bytes that nobody takes");
    bench.receiver.set_window(usize::MAX);
    bench.run(|_| Step::Need(1)).unwrap();
    assert_eq!(bench.receiver.received(), [1, 2, 3, 4]);
}

#[test]
fn a_prefix_that_is_needed_whole_grows_with_what_comes_and_is_charged_to_the_process() {
    let mut bench = Bench::new();
    let need = 300_000;
    let mut ask = |input: Input<'_>| {
        if input.shown.len() < need {
            Step::Need(need)
        } else {
            Step::Pass(input.shown.len() as u64)
        }
    };
    bench.sender.send(&[1; 1_000]);
    bench.run(&mut ask).unwrap();
    assert_eq!(
        (bench.pool.lent(), bench.budget.left()),
        (0, 1 << 20),
        "a promise costs nothing"
    );
    bench.sender.send(&[1; 199_000]);
    bench.run(&mut ask).unwrap();
    assert_eq!(bench.budget.left(), (1 << 20) - 4 * BUFFER_BYTES);
    bench.sender.send(&[1; 100_000]);
    bench.run(&mut ask).unwrap();
    assert_eq!(bench.receiver.received(), [1; 300_000]);
    assert_eq!((bench.pool.lent(), bench.budget.left()), (0, 1 << 20));
}

#[test]
fn a_prefix_beyond_the_budget_ends_the_connection_and_gives_all_back() {
    let mut bench = Bench::new();
    bench.sender.send(&[1; 2 << 20]);
    let ended = bench.run(|_| Step::Need(2 << 20));
    assert_eq!(ended, Err(Fault::End(Ended::HoldBudget)));
    bench.lane.release(&bench.pool);
    assert_eq!((bench.pool.lent(), bench.budget.left()), (0, 1 << 20));
}

#[test]
fn a_step_that_breaks_the_contract_ends_the_connection_instead_of_spinning() {
    let broken = Err(Fault::End(Ended::Broken));
    for step in [
        Step::Pass(0),
        Step::Need(5),
        Step::Replace {
            drop: 6,
            with: vec![1],
        },
        Step::Replace {
            drop: 0,
            with: vec![],
        },
    ] {
        let mut bench = Bench::new();
        bench.sender.send(&[1; 5]);
        let ended = bench.run(|input| match input.shown {
            [] => Step::Need(5),
            _ => step.clone(),
        });
        assert_eq!(ended, broken, "{step:?}");
    }
    for step in [Step::Need(100), Step::Pass(1)] {
        let mut bench = Bench::new();
        bench.sender.end();
        let ended = bench.run(|input| match input.eof {
            false => Step::Need(1),
            true => step.clone(),
        });
        assert_eq!(ended, broken, "{step:?} at the end");
    }
}

#[test]
fn an_answer_of_our_own_goes_out_after_what_was_passed_and_before_what_follows() {
    let mut bench = Bench::new();
    bench.sender.send(b"abcd");
    let mut steps = [
        Step::Need(1),
        Step::Pass(2),
        Step::Replace {
            drop: 0,
            with: b"XY".to_vec(),
        },
        Step::Replace {
            drop: 1,
            with: vec![],
        },
        Step::Pass(1),
        Step::Need(1),
    ]
    .into_iter();
    bench.run(|_| steps.next().unwrap()).unwrap();
    assert_eq!(bench.receiver.received(), b"abXYd");
}

#[test]
fn a_wire_with_buffers_of_its_own_is_flushed_before_the_lane_rests() {
    let mut bench = Bench::new();
    bench.receiver.buffer_writes();
    bench.sender.send(b"abcd");
    bench.run(|_| Step::Pass(u64::MAX)).unwrap();
    assert_eq!(bench.receiver.received(), b"abcd");
}

#[test]
fn a_failing_wire_is_named() {
    let mut bench = Bench::new();
    bench.sender.fail_reads(ErrorKind::TimedOut);
    let failed = bench.run(|_| Step::Need(1));
    assert_eq!(failed, Err(Fault::Read(ErrorKind::TimedOut)));
    let mut bench = Bench::new();
    bench.sender.send(b"abcd");
    bench.receiver.fail_writes(ErrorKind::ConnectionReset);
    let failed = bench.run(|_| Step::Pass(u64::MAX));
    assert_eq!(failed, Err(Fault::Write(ErrorKind::ConnectionReset)));
}
