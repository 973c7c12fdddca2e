//! What is committed is what the generator makes of Kafka's jars. Needs what the generator needs:
//! Maven, or the jars that it has fetched before, and a JDK.

#[test]
fn the_committed_files_are_what_the_generator_writes() {
    let generated = klamp_layout_generator::generate().expect("it runs");
    for file in generated.files {
        let committed = std::fs::read_to_string(&file.path).unwrap_or_default();
        assert!(
            committed == file.text,
            "{} is not what the generator makes of Kafka's jars: run `cargo run -p klamp-layout-generator`",
            file.path.display()
        );
    }
}
