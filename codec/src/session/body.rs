//! Where a body that is being read stands in the stream, and which of its holes are told.

use crate::layout::Role;
use crate::observation::{Observation, Observer};
use crate::types::Direction;

/// Before this offset there are so few holes that it is not asked whether anybody wants to hear of more.
const FEW: u32 = 1024;

/// A body, or what follows of it.
pub(super) struct Body {
    direction: Direction,
    /// Where in the stream it begins.
    at: u64,
    /// Up to this offset of it holes are told.
    holes: u32,
}

impl Body {
    #[inline(always)]
    pub(super) fn new(direction: Direction, at: u64) -> Self {
        Self {
            direction,
            at,
            holes: u32::MAX,
        }
    }

    /// Where in the stream offset `at` of the body is.
    #[inline(always)]
    pub(super) fn place(&self, at: u32) -> u64 {
        self.at.wrapping_add(at.into())
    }

    /// A field of `bytes` that is withheld begins at offset `at`: told as far as anybody wants to know.
    #[inline(always)]
    pub(super) fn hole(&mut self, role: Role, at: u32, bytes: u32, to: &mut impl Observer) {
        if at < self.holes {
            let records = role == Role::Records;
            let hole = Observation::Hole { bytes, records };
            to.observe(self.direction, self.place(at), hole);
            if at > FEW {
                let upto = to.holes_upto(self.direction).saturating_sub(self.at);
                self.holes = u32::try_from(upto).unwrap_or(u32::MAX);
            }
        }
    }
}
