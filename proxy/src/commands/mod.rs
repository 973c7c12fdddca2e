//! What the subcommands do.

mod decode;
mod run;
mod versions;

pub(crate) use decode::decode;
pub(crate) use run::run;
pub(crate) use versions::versions;
