//! The names of error codes: Kafka has them only in its class `Errors`, so Java is asked.

use crate::java;
use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::Path;

/// Each code and its name, as `release` has them.
pub(crate) fn names(release: &str) -> Result<BTreeMap<i16, String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("PrintErrors.java");
    let printed = java::run(&source, release, &[], &[])?;
    let mut names = BTreeMap::new();
    for line in printed.lines() {
        let Some((code, name)) = line.split_once(' ') else {
            bail!("not a code and a name: {line:?}");
        };
        names.insert(code.parse()?, name.to_owned());
    }
    ensure!(
        names.get(&0).is_some_and(|it| it == "NONE"),
        "0 is not NONE"
    );
    Ok(names)
}
