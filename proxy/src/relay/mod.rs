//! The relay: one hand-polled future per connection that moves the bytes of both directions and
//! does what its session says.
//!
//! It owns all that belongs to the connection and runs on a current_thread runtime, so nothing on
//! the path of the data is locked or shared. From the outside in: [`Conversation`] lets two [lanes]
//! take turns, a lane moves bytes between [`Wire`]s through a buffer that the thread's [`Local`]
//! lends it while there are any, and [`farewell`] closes what has ended.
//!
//! [lanes]: lane

mod buffer;
mod conversation;
mod ended;
mod farewell;
mod lane;
mod local;
mod pool;
mod splice;
#[cfg(test)]
pub(crate) mod tests;
mod timer;
mod wire;

pub(crate) use ended::Ended;
pub(crate) use local::Local;
pub(crate) use pool::HoldBudget;
pub(crate) use splice::MAX_PIPES;
pub(crate) use wire::Wire;

use conversation::Conversation;
use klamp_codec::Direction;
use klamp_codec::observation::Observer;
use klamp_codec::session::{Input, Session, Step};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// An observer that is also told how many bytes went on.
pub(crate) trait Meter: Observer {
    /// `bytes` have been written on, in `direction`. Called once per turn of a lane, not per write.
    fn moved(&mut self, direction: Direction, bytes: u64);

    /// Asks the session about `input`, and hears what it observes.
    #[inline]
    fn ask(&mut self, session: &mut Session, direction: Direction, input: Input<'_>) -> Step
    where
        Self: Sized,
    {
        session.poll(direction, input, self)
    }

    /// Bytes have been read that were passed before they were there: the first of `owed`.
    #[inline]
    fn came(&mut self, _: Direction, _owed: u64, _bytes: &[u8]) {}

    /// The connection's task has done what it could, and nobody is being asked anything.
    fn rests(&mut self) {}
}

/// Moves the bytes of one connection until it has ended; gives why, and the observer back.
///
/// To be polled by one task only: a drain wakes the task that polled it first.
pub(crate) struct Relay<C, U, O> {
    conversation: Conversation<C, U>,
    /// Gone once the relay has ended.
    observer: Option<O>,
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
            conversation: Conversation::new(client, upstream, session, shared),
            observer: Some(observer),
        }
    }
}

/// Nothing in it is pinned.
impl<C, U, O> Unpin for Relay<C, U, O> {}

impl<C: Wire, U: Wire, O: Meter> Future for Relay<C, U, O> {
    type Output = (Ended, O);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.get_mut();
        let Some(observer) = &mut me.observer else {
            return Poll::Pending;
        };
        let ended = me.conversation.poll(observer, cx);
        observer.rests();
        let ended = ready!(ended);
        me.observer
            .take()
            .map_or(Poll::Pending, |observer| Poll::Ready((ended, observer)))
    }
}
