//! One look of the session: what it observes goes to the tape, where there is one, and to the record.

use super::Record;
use crate::capture::tape::Take;
use klamp_codec::Direction;
use klamp_codec::observation::{Observation, Observer};
use klamp_codec::session::{Input, Session, Step};

/// Hears what the session observes in what it is being shown.
struct Look<'l> {
    record: &'l mut Record,
    take: Option<Take<'l>>,
}

impl Observer for Look<'_> {
    // (inlined, as that of the record is)
    #[inline(always)]
    fn observe(&mut self, direction: Direction, at: u64, what: Observation<'_>) {
        if let Some(take) = &mut self.take {
            take.observe(at, &what);
        }
        self.record.observe(direction, at, what);
    }

    #[inline(always)]
    fn holes_upto(&self, _: Direction) -> u64 {
        self.take.as_ref().map_or(0, Take::holes_upto)
    }
}

impl Record {
    /// Asks the session about `input`.
    #[inline]
    pub(super) fn look(
        &mut self,
        session: &mut Session,
        direction: Direction,
        input: Input<'_>,
    ) -> Step {
        let tape = self.recorder.asked(&input);
        let take = tape.as_ref().map(|tape| Take::new(tape, direction, &input));
        let mut look = Look { record: self, take };
        let step = session.poll(direction, input, &mut look);
        if let Some(take) = &mut look.take {
            take.settle(&input, &step);
            look.record.capture_settled();
        }
        step
    }
}
