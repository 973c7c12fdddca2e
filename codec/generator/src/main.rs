//! Writes `codec/src/generated` anew: `cargo run -p klamp-layout-generator`. Needs Maven (once per
//! Kafka release) and a JDK.

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let generated = klamp_layout_generator::generate()?;
    for file in &generated.files {
        std::fs::write(&file.path, &file.text)
            .with_context(|| format!("cannot write {}", file.path.display()))?;
        println!("wrote {}", file.path.display());
    }
    print!("{}", generated.summary);
    Ok(())
}
