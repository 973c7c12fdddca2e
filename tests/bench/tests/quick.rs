//! The benchmark works: short loads get all their answers, and a wrong one is noticed.

use klamp_bench::frames::Conversation;
use klamp_bench::sample::Sample;
use klamp_bench::sink::Sink;
use klamp_bench::source::Source;
use klamp_tests::place;
use std::fs;
use std::process::Command;
use std::time::Duration;

const CONTENDERS: [&str; 4] = ["direct", "copy", "splice", "klamp"];

#[test]
fn every_load_gets_its_answers_through_every_contender_and_is_measured() {
    let out = place::room("bench");
    let output = Command::new(env!("CARGO_BIN_EXE_klamp-bench"))
        .args(["run", "--quick", "--contenders", &CONTENDERS.join(",")])
        .arg("--klamp")
        .arg(place::klamp_binary())
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let samples = fs::read_to_string(out.join("samples.jsonl")).unwrap();
    let samples: Vec<Sample> = samples
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for contender in CONTENDERS {
        let own = || {
            samples
                .iter()
                .filter(|sample| sample.contender == contender)
        };
        let loads: Vec<&str> = own().map(|sample| sample.load.as_str()).collect();
        assert_eq!(loads.len(), 14, "{contender}: {loads:?}");
        let large = own().find(|sample| sample.load == "produce-1m").unwrap();
        assert_eq!(large.requests, 10);
        assert!(large.bytes > 10 << 20, "{large:?}");
        assert_eq!(
            large.cpu > Duration::ZERO,
            contender != "direct",
            "{large:?}"
        );
        assert_eq!(large.peak_rss > 0, contender != "direct", "{large:?}");
        let one_at_a_time = own().find(|sample| sample.load == "ping-200").unwrap();
        assert!(one_at_a_time.p50.is_some_and(|p50| p50 > Duration::ZERO));
        let idle = own().find(|sample| sample.load == "idle-10k").unwrap();
        assert_eq!(idle.rss_after.is_some(), contender != "direct", "{idle:?}");
    }
}

#[test]
fn a_rival_of_a_file_is_measured_and_leaves_none_of_its_processes_behind() {
    let dir = place::room("bench-rival");
    let (file, child) = (dir.join("rivals"), dir.join("child"));
    let line = format!(
        "forks: sleep 1000 & echo $! > {}; exec {} pump copy \
         --listen {{listen_host}}:{{listen_port}} --upstream {{upstream_host}}:{{upstream_port}}",
        child.display(),
        env!("CARGO_BIN_EXE_klamp-bench"),
    );
    fs::write(&file, line).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_klamp-bench"))
        .args([
            "run",
            "--quick",
            "--contenders",
            "forks",
            "--loads",
            "ping-200",
            "--rivals",
        ])
        .arg(&file)
        .arg("--klamp")
        .arg(place::klamp_binary())
        .arg("--out")
        .arg(dir.join("out"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let samples = fs::read_to_string(dir.join("out/samples.jsonl")).unwrap();
    let sample: Sample = serde_json::from_str(samples.trim()).unwrap();
    assert_eq!((sample.contender.as_str(), sample.requests), ("forks", 200));
    let child = fs::read_to_string(child).unwrap();
    // (a process that has ended and is not waited for yet is a zombie)
    let state = fs::read_to_string(format!("/proc/{}/stat", child.trim()));
    assert!(state.is_err() || state.unwrap().contains(") Z "));
}

#[test]
fn an_answer_of_another_length_or_a_request_that_was_not_sent_fails_the_run() {
    let address = place::free_address();
    let sent = Conversation::produce(1_000).advertised(address);

    let answers_more = Conversation {
        requests: sent.requests.clone(),
        answers: Conversation::fetch(1, 500).advertised(address).answers,
    };
    let sink = Sink::start(answers_more).unwrap();
    let mut source = Source::open(sink.address(), 1, true, &sent).unwrap();
    let error = source.exchange(1, 1).unwrap_err().to_string();
    assert!(error.contains("a wrong answer to Load"), "{error}");

    let expects_more = Conversation::produce(1_001).advertised(address);
    let sink = Sink::start(expects_more).unwrap();
    let mut source = Source::open(sink.address(), 1, true, &sent).unwrap();
    source.exchange(1, 1).unwrap_err();
    let error = sink.finish().unwrap_err().to_string();
    assert!(error.contains("not sent so"), "{error}");
}
