//! The demo from outside: what a newcomer sees of it, how it ends, and that it does not pretend.
//!
//! The trap: the demo takes the README's ports where they are free, so two at a time would race for
//! them. The tests take turns.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

#[test]
fn once_shows_what_happened_and_ends_well() {
    let _turn = turn();
    let output = demo().arg("--once").output().expect("the demo starts");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );

    for shown in [
        "300 records produced to demo-orders",
        "was answered with error code 250",
        "hidden: no schema here",
        "klamp_unnamed_error_codes_total{api_key=\"Produce\",code=\"250\"} 1",
        "klamp_response_error_codes_total{api_key=\"Produce\",error=\"UNNAMED_250\"} 1",
        "klamp_hidden_api_keys{api_key=\"StreamsGroupHeartbeat\"} 1",
        "klamp_broker_ahead_versions{api_key=\"DescribeLogDirs\"} 1",
        "/connections",
        "/captures\n",
        "UNNAMED_250 in Produce",
        "/captures/1.pcapng ",
        "exit code 0, no connection cut",
    ] {
        assert!(stdout.contains(shown), "no {shown:?} in\n{stdout}");
    }
    let log_line = stdout
        .lines()
        .find(|line| line.contains("WARN"))
        .unwrap_or_else(|| panic!("no log line in\n{stdout}"));
    for told in ["demo-payments", "Produce", "250"] {
        assert!(log_line.contains(told), "no {told:?} in {log_line:?}");
    }
    assert!(stdout.lines().count() <= 85, "too long to read:\n{stdout}");
    assert!(
        !stdout.contains('\x1b'),
        "escape codes though this is no terminal:\n{stdout}"
    );
}

#[test]
fn ctrl_c_ends_it_well_with_klamp_drained() {
    let _turn = turn();
    // A terminal sends the signal to its whole foreground group, of which the demo is one.
    let mut child = demo()
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the demo starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut seen = String::new();
    while !seen.contains("Going on") {
        let read = stdout.read_line(&mut seen).expect("text");
        assert!(read > 0, "it ended early:\n{seen}");
    }
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process_group(group.expect("a process id"), Signal::INT).expect("it is there");

    stdout.read_to_string(&mut seen).expect("text");
    let status = child.wait().expect("a child can be waited for");
    assert!(status.success(), "{status}\n{seen}");
    assert!(seen.contains("exit code 0, no connection cut"), "{seen}");
}

#[test]
fn a_klamp_that_does_not_work_is_told_and_is_exit_code_1() {
    let _turn = turn();
    let output = demo()
        .arg("--once")
        .env("KLAMP_BIN", "false")
        .output()
        .expect("the demo starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("The demo failed: klamp ended by itself"),
        "{stderr}"
    );
}

fn demo() -> Command {
    Command::new(env!("CARGO_BIN_EXE_klamp-demo"))
}

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // That another test has failed is no reason to fail this one.
    TURN.lock().unwrap_or_else(|failed| failed.into_inner())
}
