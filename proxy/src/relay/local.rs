//! What the relays of one thread share: buffers, and the word that klamp is shutting down.
//!
//! A relay looks at the phase whenever it is polled, which costs a load; the list of wakers is there
//! for those that nothing else would wake, and is touched at a connection's start and end only.

use super::pool::{HoldBudget, Pool};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

/// What the relays of one thread share.
pub(crate) struct Local {
    pub(super) pool: Pool,
    phase: Cell<Phase>,
    members: RefCell<Slab<Waker>>,
}

/// How far the shutdown of this thread has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Working,
    Draining,
    Expired,
}

impl Local {
    /// For one thread; `budget` is the process's.
    pub(crate) fn new(budget: Arc<HoldBudget>) -> Rc<Self> {
        Rc::new(Self {
            pool: Pool::new(budget),
            phase: Cell::new(Phase::Working),
            members: RefCell::default(),
        })
    }

    /// Tells every relay that is at work on this thread to end as soon as it can without harm: what
    /// is on its way to the broker goes first, answers in flight are waited for.
    ///
    /// Connections that begin later work as ever, until [`expire`](Self::expire): whoever lets them
    /// in during a drain (an application's own shutdown may need one) wants them served.
    pub(crate) fn drain(&self) {
        if self.phase.get() == Phase::Working {
            self.enter(Phase::Draining);
        }
    }

    /// Ends every relay of this thread at once, as [`Ended::DrainTimeout`](super::Ended).
    pub(crate) fn expire(&self) {
        self.enter(Phase::Expired);
    }

    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        for (_, waker) in self.members.borrow().iter() {
            waker.wake_by_ref();
        }
    }
}

/// A relay's part in what its thread shares.
pub(super) struct Member {
    local: Rc<Local>,
    key: Option<usize>,
}

impl Member {
    pub(super) fn new(local: Rc<Local>) -> Self {
        Self { local, key: None }
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.local.pool
    }

    pub(super) fn phase(&self) -> Phase {
        self.local.phase.get()
    }

    /// From the first call on, a change of phase wakes the task behind `cx`. Whether this was it.
    pub(super) fn join(&mut self, cx: &Context<'_>) -> bool {
        let first = self.key.is_none();
        if first {
            let waker = cx.waker().clone();
            self.key = Some(self.local.members.borrow_mut().insert(waker));
        }
        first
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.local.members.borrow_mut().remove(key);
        }
    }
}
