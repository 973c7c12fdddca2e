//! What a file of rivals says.

use super::from_file;
use klamp_tests::place;
use std::fs;
use std::path::Path;

#[test]
fn a_rival_that_does_not_start_is_told_with_its_own_words() {
    let dir = place::room("rivals-file");
    let file = dir.join("rivals");
    let command = "bad: echo no {listen_port} today, {upstream_port} >&2; exit 3";
    fs::write(&file, command).expect("a room can be written to");
    let rivals = from_file(&file).expect("the file is right");
    let (listen, upstream) = (place::free_address(), place::free_address());
    let error = rivals[0].start(listen, upstream, 1, &dir);
    let error = error.expect_err("it ends at once").to_string();
    assert!(error.contains("exit status: 3"), "{error}");
    assert!(
        error.contains(&format!("no {} today", listen.port())),
        "{error}"
    );
}

#[test]
fn the_example_of_further_rivals_is_right() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals.example");
    let rivals = from_file(&example).expect("the example is right");
    let names: Vec<&str> = rivals.iter().map(|rival| rival.name()).collect();
    assert_eq!(names, ["socat"]);
}
