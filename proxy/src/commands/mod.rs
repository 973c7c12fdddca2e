//! What the subcommands do.

mod run;
mod versions;

pub(crate) use run::run;
pub(crate) use versions::versions;
