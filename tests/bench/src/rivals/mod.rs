//! The proxies of others.

use crate::contender::Contender;

/// All that are installed.
pub fn installed() -> Vec<Box<dyn Contender>> {
    Vec::new()
}
