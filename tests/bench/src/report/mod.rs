//! Tables and plots of the samples.

use crate::sample::{Count, Facts, Sample};
use std::io;
use std::path::Path;

/// Writes `RESULTS.md` and its plots into the folder `out`.
///
/// # Errors
/// If it cannot be written to.
pub fn write(
    _samples: &[Sample],
    _counts: &[Count],
    _facts: &Facts,
    _out: &Path,
) -> io::Result<()> {
    Ok(())
}
