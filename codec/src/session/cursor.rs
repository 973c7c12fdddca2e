//! The bytes shown to a direction, and how many of them are already to be passed.

use super::Step;

/// What was shown, from the first byte that is not settled.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    shown: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(shown: &'a [u8]) -> Self {
        Self {
            rest: shown,
            shown: shown.len(),
        }
    }

    /// What is not to be passed yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The step for all that was shown, where all of it is passed.
    pub(super) fn spent(&self) -> Option<Step> {
        match self.rest.is_empty() {
            true => self.owed(),
            false => None,
        }
    }

    /// Passes `n` of the shown bytes.
    pub(super) fn pass(&mut self, n: usize) {
        self.rest = self.rest.get(n..).unwrap_or_default();
    }

    /// Passes all before `rest`, which is the end of what was shown.
    pub(super) fn pass_to(&mut self, rest: &'a [u8]) {
        self.rest = rest;
    }

    /// Passes a frame of `n` bytes; returns how many of them were not shown.
    pub(super) fn pass_frame(&mut self, n: u64) -> u64 {
        let seen = usize::try_from(n).map_or(self.rest.len(), |n| n.min(self.rest.len()));
        self.pass(seen);
        n.saturating_sub(seen as u64)
    }

    /// How many bytes are passed so far.
    fn passed(&self) -> u64 {
        self.shown.saturating_sub(self.rest.len()) as u64
    }

    /// The step for the bytes passed so far, which must be settled before anything else is done.
    pub(super) fn owed(&self) -> Option<Step> {
        let passed = self.passed();
        (passed > 0).then_some(Step::Pass(passed))
    }

    /// The same with `unseen` bytes more, which follow what was shown.
    pub(super) fn owe_and(&self, unseen: u64) -> Step {
        Step::Pass(self.passed().saturating_add(unseen))
    }

    /// Passes all that was shown.
    pub(super) fn everything(&self) -> Step {
        Step::Pass(self.shown as u64)
    }

    /// The same where the direction has ended and nothing else is left of it.
    pub(super) fn owed_or_finish(&self) -> Step {
        self.owed().unwrap_or(Step::Finish)
    }

    /// What becomes of bytes that nobody looks at any more.
    pub(super) fn unseen(&self, eof: bool) -> Step {
        match (eof, self.rest.is_empty()) {
            (false, _) => Step::Pass(u64::MAX),
            (true, false) => self.everything(),
            (true, true) => self.owed_or_finish(),
        }
    }

    /// What follows when a frame has consumed what is there of its body, which is not its end:
    /// `unseen` bytes of it need not be shown.
    pub(super) fn amid_body(&self, unseen: u64, eof: bool, truncated: &mut bool) -> Step {
        match unseen {
            // What is left of it never comes.
            _ if eof && (unseen == 0 || self.shown == 0) => {
                *truncated = true;
                self.owed_or_finish()
            }
            0 => self.owed().unwrap_or(Step::Need(1)),
            _ => self.owe_and(unseen),
        }
    }
}
