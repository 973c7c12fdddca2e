//! When the next bytes are looked at before they are read: often where frames are large, hardly ever
//! where they are small.

use super::super::super::lane::{Io, Judge, Lane};
use super::super::super::pool::{BUFFER_BYTES, HoldBudget, Pool};
use super::super::super::splice::PEEK_BYTES;
use super::super::super::timer::Clock;
use super::super::tcp::{pair, run};
use klamp_codec::session::{Input, Step};
use std::future::poll_fn;
use std::task::Poll;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_local;

/// What a lane did with a stream.
struct Work {
    /// How often a few bytes were shown that are all a look shows.
    looks: usize,
    /// How often the session was asked in all.
    asks: usize,
    loans: usize,
}

/// Moves `frames` frames of `bytes` each, all there before the lane begins. As a session does, it passes
/// whatever it is shown, and the rest of the last frame with it.
async fn work(frames: usize, bytes: usize) -> Work {
    let pool = Pool::new(HoldBudget::new(1 << 20));
    let (mut passed, mut looks, mut asks) = (0, 0, 0);
    let mut ask = |input: Input<'_>| {
        asks += 1;
        let shown = input.shown.len();
        looks += usize::from(shown == PEEK_BYTES);
        match shown {
            0 if input.eof => Step::Finish,
            0 => Step::Need(1),
            _ => {
                let whole = (passed + shown).next_multiple_of(bytes) - passed;
                passed += whole;
                Step::Pass(whole as u64)
            }
        }
    };
    relay(frames * bytes, &pool, &mut ask).await;
    let loans = pool.pipes.loans();
    Work { looks, asks, loans }
}

/// Moves so many bytes, all there before the lane begins.
async fn relay<J>(bytes: usize, pool: &Pool, judge: &mut J)
where
    for<'j> &'j mut J: Judge,
{
    let ((mut sender, mut from), (mut to, mut receiver)) = (pair(None).await, pair(None).await);
    let sending = spawn_local(async move {
        sender.write_all(&vec![1; bytes]).await.unwrap();
    });
    let receiving = spawn_local(async move {
        let mut received = Vec::new();
        receiver.read_to_end(&mut received).await.unwrap();
        received.len()
    });
    let mut lane = Lane::default();
    poll_fn(|cx| {
        let clock = &mut Clock::default();
        let io = &mut Io { cx, pool, clock };
        let moved = lane.turn(&mut from, &mut to, io, &mut *judge).unwrap();
        lane.rest(pool);
        if moved {
            cx.waker().wake_by_ref();
        }
        match lane.is_done() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    sending.await.unwrap();
    assert_eq!(receiving.await.unwrap(), bytes);
    assert_eq!(pool.lent(), 0);
}

#[test]
fn large_frames_are_spliced_even_if_each_fits_the_buffer_to_the_last_byte() {
    run(async {
        for bytes in [BUFFER_BYTES, BUFFER_BYTES - 1, BUFFER_BYTES / 2 + 100] {
            let work = work(200, bytes).await;
            assert!(work.loans > 0, "frames of {bytes}");
            assert!(work.looks > 100, "frames of {bytes}: {} looks", work.looks);
        }
    });
}

#[test]
fn small_frames_in_great_number_are_hardly_ever_looked_at() {
    run(async {
        let work = work(60_000, 250).await;
        assert_eq!(work.loans, 0);
        assert!(work.asks > 200, "{}", work.asks);
        assert!(work.looks < 30, "{} looks", work.looks);
    });
}

/// Passes frames of these sizes, the rest of the last one with what it is shown of it.
struct Session {
    frames: Vec<usize>,
    passed: usize,
    /// What of the stream was there to be looked at, when asked or when it came later.
    seen: Vec<bool>,
}

impl Session {
    fn sees(&mut self, start: usize, bytes: usize) {
        self.seen[start..start + bytes].fill(true);
    }
}

impl Judge for &mut Session {
    fn ask(&mut self, input: Input<'_>) -> Step {
        let shown = input.shown.len();
        self.sees(self.passed, shown);
        if shown == 0 {
            return if input.eof {
                Step::Finish
            } else {
                Step::Need(1)
            };
        }
        let (mut end, start) = (0, self.passed);
        for bytes in &self.frames {
            end += if end < start + shown { *bytes } else { 0 };
        }
        self.passed = end;
        Step::Pass((end - start) as u64)
    }

    fn awaits_bytes(&self) -> bool {
        false
    }

    fn came(&mut self, owed: u64, bytes: &[u8]) {
        self.sees(self.passed - owed as usize, bytes.len());
    }
}

#[test]
fn a_frame_that_is_not_large_is_seen_even_if_others_are_passed_with_it() {
    run(async {
        const LARGE: usize = 150_000;
        let frames = vec![LARGE, 161, 16 << 10, 300, 16 << 10];
        let total = frames.iter().sum();
        let mut session = Session {
            frames,
            passed: 0,
            seen: vec![false; total],
        };
        let pool = Pool::new(HoldBudget::new(1 << 20));
        relay(total, &pool, &mut session).await;
        assert!(pool.pipes.loans() > 0, "the first is spliced");
        let missed = session.seen[LARGE..].iter().filter(|seen| !**seen);
        assert_eq!(missed.count(), 0);
    });
}
