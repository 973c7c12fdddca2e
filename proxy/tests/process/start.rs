//! How it starts, and how it says that it cannot.

use crate::broker::{broker, read_request};
use crate::client::{connect, exchange};
use crate::klamp::{Klamp, PATIENCE, command, output};
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

const LISTEN: &str = "--listen=127.0.0.1:0";

fn code_and_stderr(output: Output) -> (Option<i32>, String) {
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), stderr)
}

#[test]
fn a_wrong_command_line_ends_with_code_2_and_the_cause() {
    let wrong: [(&[&str], &str); 8] = [
        (&["run"], "--listen"),
        (&["run", LISTEN, "--upstream=broker"], "HOST:PORT"),
        (
            &["run", LISTEN, "--upstream=a:1,b:2"],
            "each --listen needs",
        ),
        (
            &["run", "--listen=127.0.0.1:9", "--upstream=127.0.0.1:9"],
            "loop",
        ),
        (
            &["run", LISTEN, "--upstream=a:1", "--debug=0.0.0.0:9645"],
            "--debug-token",
        ),
        (
            &["run", LISTEN, "--upstream=a:1", "--log-level=klamp=loud"],
            "log level",
        ),
        (
            &["run", LISTEN, "--upstream=a:1", "--log-level=inof"],
            "--log-level",
        ),
        (&["versions"], "HOST:PORT"),
    ];
    for (args, cause) in wrong {
        let (code, stderr) = code_and_stderr(output(args));
        assert_eq!(code, Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(cause), "{args:?}: {stderr}");
    }
}

#[test]
fn an_address_in_use_ends_with_code_3_and_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--admin", "--debug"] {
        let mut args = vec!["run", "--upstream=127.0.0.1:1", flag, &taken];
        if flag != "--listen" {
            args.push(LISTEN);
        }
        let (code, stderr) = code_and_stderr(output(&args));
        assert_eq!(code, Some(3), "{flag}: {stderr}");
        let cause = format!("cannot listen on {taken} ({flag})");
        assert!(stderr.contains(&cause), "{flag}: {stderr}");
    }
}

#[test]
fn an_error_names_the_variable_that_a_wrong_value_came_from_and_no_other() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let wrong = [
        ("KLAMP_LISTEN", "localhost:9192", "--listen"),
        ("KLAMP_UPSTREAM", "broker", "--upstream"),
        ("KLAMP_CLAMP", "decode", "--clamp"),
        ("KLAMP_LOG_FORMAT", "xml", "--log-format"),
        ("KLAMP_THREADS", "", "--threads"),
        ("KLAMP_DRAIN_REFUSE_NEW", "maybe", "--drain-refuse-new"),
        ("KLAMP_UPSTREAM", "a:1,b:2", "--upstream"),
        ("KLAMP_DEBUG", "0.0.0.0:9645", "--debug"),
        ("KLAMP_DEBUG_TOKEN", "", "--debug-token"),
        ("KLAMP_LOG_LEVEL", "inof", "--log-level"),
        ("KLAMP_CAPTURE_ON", "SOMETHING", "--capture-on"),
        ("KLAMP_ADMIN", &taken, "--admin"),
        ("KLAMP_CAPTURE_DIR", "/no/such/directory", "--capture-dir"),
    ];
    for (variable, value, flag) in wrong {
        let run = |args: &[&str], environment: &[(&str, &str)]| {
            let mut command = command(&["run"]);
            command.args(args).envs(environment.iter().copied());
            let (code, stderr) = code_and_stderr(command.output().unwrap());
            assert!(matches!(code, Some(2 | 3)), "{variable}: {code:?} {stderr}");
            assert!(stderr.contains(flag), "{variable}: {stderr}");
            stderr
        };
        let sound = ["--listen=127.0.0.1:0", "--upstream=127.0.0.1:1"];
        let sound: Vec<_> = sound
            .into_iter()
            .filter(|it| !it.starts_with(&format!("{flag}=")))
            .collect();
        let told = run(&sound, &[(variable, value)]);
        assert!(told.contains(variable), "{variable}: {told}");
        if flag != "--drain-refuse-new" {
            // (which takes no value)
            let argument = format!("{flag}={value}");
            let told = run(
                &[&sound[..], &[&argument]].concat(),
                &[(variable, "127.0.0.1:0")],
            );
            assert!(!told.contains("KLAMP_"), "{variable}: {told}");
        }
    }
}

#[test]
fn a_flag_is_switched_on_in_the_environment_by_any_usual_word() {
    for word in ["true", "1", "yes", "on"] {
        let mut command = command(&["run", "--log-format=json", LISTEN, "--upstream=127.0.0.1:1"]);
        command.env("KLAMP_DRAIN_REFUSE_NEW", word);
        let klamp = Klamp::spawn(command);
        klamp.signal(rustix::process::Signal::TERM);
        assert_eq!(
            klamp.wait_for("draining")["new_connections"],
            "refused",
            "{word}"
        );
    }
}

#[test]
fn the_environment_configures_as_flags_do_and_flags_win() {
    let mut command = command(&["run", "--log-format=json"]);
    command
        .env("KLAMP_LISTEN", "127.0.0.1:0,127.0.0.1:0")
        .env("KLAMP_UPSTREAM", "127.0.0.1:1,127.0.0.1:2")
        .env("KLAMP_LOG_FORMAT", "text")
        .env("KLAMP_MAX_CONNECTIONS", "7")
        .env("KLAMP_DRAIN_TIMEOUT", "0s");
    let klamp = Klamp::spawn(command);
    assert_eq!(klamp.listens().len(), 2);
    klamp.signal(rustix::process::Signal::TERM);
    assert_eq!(klamp.wait_for("draining")["timeout_seconds"], 0.0);
    assert_eq!(klamp.terminate(), Some(0));

    let (code, stderr) = code_and_stderr(
        crate::klamp::command(&["run", LISTEN, "--upstream=a:1"])
            .env("KLAMP_MAX_CONNECTIONS", "0")
            .output()
            .unwrap(),
    );
    assert_eq!(code, Some(2));
    assert!(stderr.contains("max-connections"), "{stderr}");
}

#[test]
fn a_token_in_the_environment_is_not_shown_in_the_help() {
    let help = command(&["run", "--help"])
        .env("KLAMP_DEBUG_TOKEN", "s3cret")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("KLAMP_DEBUG_TOKEN"));
    assert!(!help.contains("s3cret"));
    assert!(help.contains("Exit codes:"));
}

#[test]
fn a_log_that_nobody_reads_any_more_does_not_end_the_process() {
    let mut process = command(&["run", LISTEN, "--upstream=127.0.0.1:1"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closed before the first line is written, or soon after: either way most writes fail.
    drop(process.stderr.take());
    std::thread::sleep(Duration::from_millis(300));
    assert!(process.try_wait().unwrap().is_none());
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn a_log_reader_that_hangs_holds_up_no_connection() {
    let upstream = broker(|stream| {
        while let Some(request) = read_request(&stream) {
            request.answer(&stream);
        }
    });
    let listen = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    // A pipe that is full to the last byte.
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let size = rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    rustix::io::write(&writer, &vec![b'x'; size]).unwrap();
    let listen_at = listen.to_string();
    let mut process = command(&["run", "--listen", &listen_at, "--upstream", &upstream])
        .stderr(Stdio::from(writer))
        .spawn()
        .unwrap();
    let started = Instant::now();
    while TcpStream::connect(listen).is_err() {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    exchange(&connect(listen), 7);
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
    drop(reader);
}
