//! The relay: one hand-polled future per connection that moves the bytes of both directions and
//! does what its session says.
//!
//! It owns everything that belongs to the connection, and runs on a current_thread runtime, so
//! nothing on the path of the data is locked or shared.

mod ended;

pub(crate) use ended::Ended;

use klamp_codec::Direction;
use klamp_codec::observation::{CloseReason, Observer};
use klamp_codec::session::Session;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};

/// One end of a connection: TCP, TLS over it, or a test's script.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire for T {}

/// An observer that is also told how many bytes went on.
pub(crate) trait Meter: Observer {
    /// `bytes` have been written on, in `direction`. Called once per turn of a lane, not per write.
    fn moved(&mut self, direction: Direction, bytes: u64);
}

/// How many bytes all connections of the process may hold together beyond their pooled buffers,
/// while their sessions need more of a frame at once.
#[derive(Debug)]
pub(crate) struct HoldBudget {
    left: AtomicUsize,
}

impl HoldBudget {
    /// `bytes` in all.
    pub(crate) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(bytes),
        })
    }
}

/// What the relays of one thread share.
pub(crate) struct Local {
    budget: Arc<HoldBudget>,
}

impl Local {
    /// For one thread; `budget` is the process's.
    pub(crate) fn new(budget: Arc<HoldBudget>) -> Rc<Self> {
        Rc::new(Self { budget })
    }

    /// Tells every relay of this thread, those to come included, to end as soon as it can without
    /// harm: what is on its way goes first, answers in flight are waited for.
    pub(crate) fn drain(&self) {}

    /// Ends every relay of this thread at once, as [`Ended::DrainTimeout`].
    pub(crate) fn expire(&self) {}
}

/// Moves the bytes of one connection until it ends; gives why, and the observer back.
///
/// Poll it from one task only: a drain wakes the task that polled it first.
pub(crate) struct Relay<C, U, O> {
    client: C,
    upstream: U,
    session: Session,
    observer: Option<O>,
    shared: Rc<Local>,
}

impl<C: Wire, U: Wire, O: Meter> Relay<C, U, O> {
    /// A connection whose two ends are both open.
    pub(crate) fn new(
        client: C,
        upstream: U,
        session: Session,
        observer: O,
        shared: Rc<Local>,
    ) -> Self {
        Self {
            client,
            upstream,
            session,
            observer: Some(observer),
            shared,
        }
    }
}

impl<C, U, O> Unpin for Relay<C, U, O> {}

impl<C: Wire, U: Wire, O: Meter> Future for Relay<C, U, O> {
    type Output = (Ended, O);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.get_mut();
        let _ = (
            cx,
            &me.client,
            &me.upstream,
            &me.session,
            &me.shared.budget.left,
        );
        match me.observer.take() {
            Some(observer) => Poll::Ready((Ended::Session(CloseReason::Client), observer)),
            None => Poll::Pending,
        }
    }
}
