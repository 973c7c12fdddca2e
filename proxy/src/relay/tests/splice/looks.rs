//! When the next bytes are looked at before they are read: often where frames are large, hardly ever
//! where they are small.

use super::super::super::lane::{Io, Lane};
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
    let ((mut sender, mut from), (mut to, mut receiver)) = (pair(None).await, pair(None).await);
    let total = frames * bytes;
    let sending = spawn_local(async move {
        sender.write_all(&vec![1; total]).await.unwrap();
    });
    let receiving = spawn_local(async move {
        let mut received = Vec::new();
        receiver.read_to_end(&mut received).await.unwrap();
        received.len()
    });
    let pool = Pool::new(HoldBudget::new(1 << 20));
    let (mut lane, mut passed, mut looks, mut asks) = (Lane::default(), 0, 0, 0);
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
    poll_fn(|cx| {
        let (clock, pool) = (&mut Clock::default(), &pool);
        let io = &mut Io { cx, pool, clock };
        let moved = lane.turn(&mut from, &mut to, io, &mut ask).unwrap();
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
    assert_eq!(receiving.await.unwrap(), total);
    assert_eq!(pool.lent(), 0);
    let loans = pool.pipes.loans();
    Work { looks, asks, loans }
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
