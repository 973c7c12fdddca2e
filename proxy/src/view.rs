//! The live connections, as `/connections` and `/clients` show them.

/// All live connections.
#[derive(Debug, Default)]
pub(crate) struct Views {}
