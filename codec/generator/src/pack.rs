//! Packs the ops of a struct: fewer of them to read, each of which does more. Bytes that nobody asks
//! for stand before the next op instead of being one, and a struct ends with its tagged fields.

use crate::compile::{Named, Op, Step};
use anyhow::{Context, Result};

/// An op, the bytes of no interest before it, and in the full table whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Packed {
    pub(crate) before: u8,
    pub(crate) op: Op,
    pub(crate) field: Option<Named>,
}

impl Packed {
    /// Before the ops of an element that can be read as one.
    pub(crate) fn row(row: u16) -> Self {
        Self {
            before: 0,
            op: Op::Row(row),
            field: None,
        }
    }
}

/// Packs all ops of a struct and ends it.
pub(crate) fn pack(steps: Vec<Step>) -> Result<Vec<Packed>> {
    let mut packed = Vec::new();
    let mut before = 0;
    for Step { op, field } in steps {
        if let Op::Skip(n) = op {
            before = u8::try_from(n).context("more bytes than can stand before an op")?;
            continue;
        }
        packed.push(Packed { before, op, field });
        before = 0;
    }
    match packed.last_mut().map(|last| &mut last.op) {
        Some(Op::Tags { last, .. }) if before == 0 => *last = true,
        _ => packed.push(Packed {
            before,
            op: Op::End,
            field: None,
        }),
    }
    Ok(packed)
}
