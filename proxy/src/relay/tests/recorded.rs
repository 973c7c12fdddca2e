//! A crowd of connections that all say much and all trigger: what the recorder takes for them, and that
//! each gets its answers all the same.

use super::script::scripted;
use super::*;
use crate::capture::tape::{Arena, Settings, Usage};
use crate::capture::tests::captures_within;
use crate::record::{Record, Watch, catalog};
use crate::relay::Relay;
use klamp_metrics::Metrics;
use tokio::runtime::{Builder, LocalOptions};

const CROWD: usize = 5_000;
/// For all tapes.
const TAPES: usize = 4 << 20;
/// For all captures.
const CAPTURES: usize = 1 << 20;
/// Bytes of an answer.
const ANSWER: usize = 16 << 10;

/// FindCoordinator v0, answered with this code and a host of a name that is too long.
fn long_answer(id: i32, code: i16) -> Vec<u8> {
    let host = vec![b'h'; ANSWER];
    let length = (host.len() as i16).to_be_bytes();
    framed(&[
        &id.to_be_bytes(),
        &code.to_be_bytes(),
        &[0; 4],
        &length,
        &host,
        &[0; 4],
    ])
}

#[test]
fn a_crowd_that_triggers_on_each_connection_stays_within_the_budget() {
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.build_local(LocalOptions::default()).unwrap();
    let metrics = Metrics::new(catalog());
    let shard = metrics.shard();
    let captures = captures_within(CAPTURES, "UNNAMED", metrics.clone());
    let watch = Watch::new(metrics, Vec::new(), captures);
    let usage = Arc::<Usage>::default();
    let settings = Settings {
        memory: TAPES,
        records: false,
        opaque: false,
    };
    let arena = Arena::new(settings, 1, usage.clone());
    let mut most = [0, 0];
    runtime.block_on(async {
        let local = local();
        let mut open = Vec::new();
        for n in 0..CROWD {
            let peer = "10.0.0.1:4000".parse().unwrap();
            let mut record = Record::new(watch.clone(), shard.clone(), peer, "broker:9092".into());
            record.keep_in(arena.as_ref());
            let ((client, at_client), (upstream, at_upstream)) = (scripted(), scripted());
            let relay = Relay::new(client, upstream, session(), record, local.clone());
            tokio::task::spawn_local(relay);
            for id in 0..3 {
                at_client.send(&request(id));
                tokio::task::yield_now().await;
                // (each another trouble, as far as they can be told apart)
                let code = if id == 2 { 1_000 + n as i16 } else { 0 };
                at_upstream.send(&long_answer(id, code));
                tokio::task::yield_now().await;
            }
            let sent = 3 * long_answer(0, 0).len();
            assert_eq!(at_client.received().len(), sent, "connection {n}");
            let held: usize = watch.captures.all().iter().map(|found| found.bytes).sum();
            most = [most[0].max(usage.bytes()), most[1].max(held)];
            open.push((at_client, at_upstream));
        }
    });
    let (taken, kept) = (watch.metrics.render().unwrap(), watch.captures.all());
    assert!(most[0] <= TAPES && most[1] <= CAPTURES, "{most:?}");
    assert!(
        most[0] > TAPES / 2 && most[1] > CAPTURES / 2,
        "{most:?}: hardly filled"
    );
    assert!(kept.iter().all(|found| found.capture.frames.len() > 0));
    assert!(taken.contains("klamp_captures_dropped_total{reason=\"memory\"}"));
    drop(runtime);
    assert_eq!(
        usage.bytes(),
        0,
        "memory is given back with the connections"
    );
}
