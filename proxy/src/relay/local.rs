//! What the relays of one thread share: buffers, and the word that klamp is shutting down.
//!
//! A relay looks for that word whenever it is polled, which costs a load; the list of wakers is there
//! for those that nothing else would wake, and is touched at a connection's start and end only.

use super::pool::{HoldBudget, Pool};
use crate::timers::Timers;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

/// What the relays of one thread share.
pub(crate) struct Local {
    pub(super) pool: Pool,
    timers: Timers,
    /// How many drains have begun.
    drains: Cell<u32>,
    expired: Cell<bool>,
    members: RefCell<Slab<Waker>>,
}

impl Local {
    /// For one thread; `budget` is the process's.
    pub(crate) fn new(budget: Arc<HoldBudget>, timers: Timers) -> Rc<Self> {
        Rc::new(Self {
            pool: Pool::new(budget),
            timers,
            drains: Cell::new(0),
            expired: Cell::new(false),
            members: RefCell::default(),
        })
    }

    /// Tells every relay that is at work on this thread to end as soon as it can without harm: what
    /// is on its way to the broker goes first, answers in flight are waited for.
    ///
    /// Those that begin later work as ever, until the next drain: whoever still lets them in wants
    /// them served (an application's own shutdown may need a connection).
    pub(crate) fn drain(&self) {
        self.drains.set(self.drains.get() + 1);
        self.wake_all();
    }

    /// Ends every relay of this thread at once, as [`Ended::DrainTimeout`](super::Ended), those to
    /// come included.
    pub(crate) fn expire(&self) {
        self.expired.set(true);
        self.wake_all();
    }

    /// Has every relay of this thread polled, so that its observer looks what is asked of it
    /// ([`Meter::rests`](super::Meter::rests)).
    pub(crate) fn look(&self) {
        self.wake_all();
    }

    fn wake_all(&self) {
        for (_, waker) in self.members.borrow().iter() {
            waker.wake_by_ref();
        }
    }
}

/// A relay's part in what its thread shares.
pub(super) struct Member {
    local: Rc<Local>,
    joined: Option<Joined>,
}

struct Joined {
    waker: usize,
    drains: u32,
}

impl Member {
    pub(super) fn new(local: Rc<Local>) -> Self {
        Self {
            local,
            joined: None,
        }
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.local.pool
    }

    pub(super) fn timers(&self) -> &Timers {
        &self.local.timers
    }

    /// From the first call on, drains concern this relay, and wake the task behind `cx`.
    pub(super) fn join(&mut self, cx: &Context<'_>) {
        self.joined.get_or_insert_with(|| Joined {
            waker: (self.local.members.borrow_mut()).insert(cx.waker().clone()),
            drains: self.local.drains.get(),
        });
    }

    pub(super) fn is_drained(&self) -> bool {
        let drains = self.local.drains.get();
        (self.joined.as_ref()).is_some_and(|joined| joined.drains < drains)
    }

    pub(super) fn is_expired(&self) -> bool {
        self.local.expired.get()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(joined) = &self.joined {
            let mut members = self.local.members.borrow_mut();
            members.remove(joined.waker);
            if members.is_empty() {
                members.shrink_to_fit();
            }
        }
    }
}
