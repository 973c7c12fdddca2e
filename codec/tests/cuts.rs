//! Every kind of stream that klamp reads gives the same trace however TCP cuts it, and whichever bytes
//! a `Pass` moved unseen; and what it tells is what the bytes say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly, and its arithmetic is on its own numbers"
)]

mod sim;

use klamp_codec::observation::{CloseReason, Outcome};
use klamp_codec::{ApiKey, Direction};
use sim::frames::{CLAMPED, OFFERED, Produce};
use sim::{Conversation, End, Script, Seen, frames, raw};
use std::time::Duration;

/// Errors in a trace's form, for one request.
fn of(correlation_id: i32, errors: &[(i16, u32)]) -> Vec<(i32, i16, u32)> {
    errors
        .iter()
        .map(|(code, count)| (correlation_id, *code, *count))
        .collect()
}

#[test]
fn every_version_of_api_versions_is_clamped_and_nothing_else_changes() {
    for version in 0..=5 {
        let ask = match version {
            5 => raw::api_versions_v5(1, Some("a-cluster"), 3),
            _ => frames::api_versions(version, 1),
        };
        let topics: &[&[i16]] = &[&[0, 5], &[]];
        let metadata = frames::metadata_told(9, 2, topics);
        let talk = Conversation::new()
            .ask(&ask, &frames::versions_told(version, 1, 0, OFFERED))
            .ask(&frames::metadata(9, 2), &metadata)
            .end();
        let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
        let clamped = frames::versions_told(version, 1, 0, CLAMPED);
        assert_eq!(trace.request.output, talk.asked(), "v{version}");
        assert_eq!(
            trace.response.output,
            [clamped, metadata].concat(),
            "v{version}"
        );
        assert_eq!(trace.request.heads(), [1, 2]);
        assert_eq!(trace.request.requests(), [1, 2]);
        assert_eq!(trace.response.heads(), [1, 2]);
        assert_eq!(
            trace.response.responses(),
            [(1, Outcome::Ok), (2, Outcome::Error)]
        );
        let errors = [of(1, &[(0, 1)]), of(2, &frames::metadata_errors(9, topics))].concat();
        assert_eq!(trace.response.errors(), errors);
        assert_eq!(trace.end, End::Finished(CloseReason::Client));
        assert_eq!(trace.in_flight, 0);
    }
}

#[test]
fn what_an_api_versions_exchange_says_is_told_once() {
    for (version, software) in [
        (0, None),
        (2, None),
        (3, Some("1.0")),
        (4, Some("1.0")),
        (5, Some("5.0")),
    ] {
        let ask = match version {
            5 => raw::api_versions_v5(1, None, -1),
            _ => frames::api_versions(version, 1),
        };
        let script = Script::new()
            .client(&ask)
            .broker(&frames::versions_told(version, 1, 0, OFFERED));
        for policy in [sim::policy(), sim::watching()] {
            let trace = sim::same_under_any_cut(&sim::shared(policy), &script);
            let told: Vec<_> = trace
                .request
                .what()
                .filter(|it| matches!(it, Seen::Software { .. }))
                .collect();
            let wanted = software.map(|version| Seen::Software {
                name: b"tests".to_vec(),
                version: version.as_bytes().to_vec(),
            });
            assert_eq!(told, wanted.iter().collect::<Vec<_>>(), "v{version}");
            let learned = trace
                .response
                .what()
                .filter(|it| matches!(it, Seen::Learned(_)))
                .count();
            assert_eq!(learned, 1, "v{version}");
            let throttle = Seen::Throttle {
                api_key: ApiKey::API_VERSIONS,
                time: Duration::from_millis(250),
            };
            assert_eq!(trace.response.saw(&throttle), version >= 1, "v{version}");
        }
    }
}

#[test]
fn with_the_clamp_off_the_answer_passes_as_it_is() {
    for version in 0..=5 {
        let ask = match version {
            5 => raw::api_versions_v5(1, None, -1),
            _ => frames::api_versions(version, 1),
        };
        let answer = frames::versions_told(version, 1, 0, OFFERED);
        let script = Script::new().client(&ask).broker(&answer);
        let trace = sim::same_under_any_cut(&sim::shared(sim::watching()), &script);
        assert_eq!(trace.response.output, answer);
        assert!(trace.response.edits.is_empty());
        assert_eq!(trace.response.responses(), [(1, Outcome::Ok)]);
    }
}

#[test]
fn an_answer_whose_rows_are_all_ours_passes_without_an_edit() {
    let answer = frames::versions_told(3, 1, 0, CLAMPED);
    let script = Script::new()
        .client(&frames::api_versions(3, 1))
        .broker(&answer);
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.response.output, answer);
    assert!(trace.response.edits.is_empty());
}

#[test]
fn an_api_versions_error_passes_and_teaches_nothing() {
    let wrong_cluster = frames::versions_told(5, 1, 129, &[]);
    let with_rows = frames::versions_told(5, 2, 129, OFFERED);
    let script = Script::new()
        .client(&raw::api_versions_v5(1, Some("elsewhere"), 3))
        .broker(&wrong_cluster)
        .client(&raw::api_versions_v5(2, Some("elsewhere"), 3))
        .broker(&with_rows);
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    assert_eq!(trace.response.output, [wrong_cluster, with_rows].concat());
    assert!(trace.response.edits.is_empty());
    assert_eq!(
        trace.response.responses(),
        [(1, Outcome::Error), (2, Outcome::Error)]
    );
    assert_eq!(trace.response.errors(), [(1, 129, 1), (2, 129, 1)]);
    assert!(
        !trace
            .response
            .what()
            .any(|it| matches!(it, Seen::Learned(_)))
    );
}

#[test]
fn a_v0_body_with_error_35_passes_and_the_next_answer_is_clamped() {
    for refused in [1, 2, 3, 4, 5] {
        let ask = match refused {
            5 => raw::api_versions_v5(1, None, -1),
            _ => frames::api_versions(refused, 1),
        };
        let refusal = raw::unsupported_version(1, 0, 2);
        let talk = Conversation::new().ask(&ask, &refusal).ask(
            &frames::api_versions(0, 2),
            &frames::versions_told(0, 2, 0, OFFERED),
        );
        let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
        let clamped = frames::versions_told(0, 2, 0, CLAMPED);
        assert_eq!(
            trace.response.output,
            [refusal, clamped].concat(),
            "v{refused}"
        );
        assert_eq!(
            trace.response.errors(),
            [(1, 35, 1), (2, 0, 1)],
            "v{refused}"
        );
        assert_eq!(
            trace.response.responses(),
            [(1, Outcome::Error), (2, Outcome::Ok)]
        );
    }
}

#[test]
fn every_fetch_version_tells_codes_behind_record_sets() {
    let partitions: &[(i16, usize)] = &[(0, 0), (6, 100), (0, 300), (3, 17), (250, 1)];
    let mut talk = Conversation::new();
    let mut errors = Vec::new();
    for version in 0..=3 {
        let id = i32::from(version);
        talk = talk.ask(
            &raw::old_fetch(version, id, 500),
            &raw::old_fetched(version, id, 6, &frames::records(90)),
        );
        errors.extend(of(id, &[(6, 1)]));
    }
    for version in 4..=18 {
        let id = i32::from(version);
        talk = talk.ask(
            &frames::fetch(version, id, 500),
            &frames::fetched(version, id, partitions),
        );
        errors.extend(of(id, &frames::fetched_errors(version, partitions)));
    }
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk.clone().end());
    assert_eq!(trace.request.output, talk.asked());
    assert_eq!(trace.response.output, talk.answered());
    assert_eq!(trace.response.errors(), errors);
    let wanted: Vec<_> = (0..=18).map(|id| (id, Outcome::Error)).collect();
    assert_eq!(trace.response.responses(), wanted);
    for seen in trace.response.what() {
        if let Seen::ResponseHead { wait, exchange, .. } = seen {
            assert_eq!(*wait, Some(Duration::from_millis(500)), "{exchange:?}");
        }
    }
}

#[test]
fn record_sets_beyond_any_buffer_pass_and_the_codes_between_are_told() {
    let partitions: &[(i16, usize)] = &[(0, 70_000), (6, 66_000), (0, 3), (1, 0), (250, 65_537)];
    for version in [4, 11, 12, 18] {
        let answer = frames::fetched(version, 1, partitions);
        let script = Script::new()
            .client(&frames::fetch(version, 1, 500))
            .broker(&answer)
            .client(&frames::metadata(1, 2))
            .broker(&frames::metadata_told(1, 2, &[]));
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        assert_eq!(
            trace.response.output,
            [answer, frames::metadata_told(1, 2, &[])].concat()
        );
        assert_eq!(
            trace.response.errors(),
            of(1, &frames::fetched_errors(version, partitions))
        );
        assert_eq!(trace.in_flight, 0);
    }
}

#[test]
fn every_produce_version_tells_its_acks_and_only_acks_0_awaits_nothing() {
    let mut talk = Conversation::new();
    let (mut acks, mut answered, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let mut id = 0;
    for version in 0..=13 {
        for transactional_id in [None, Some("txn")] {
            for one in [-1, 0, 1] {
                if version < 3 && transactional_id.is_some() {
                    continue;
                }
                id += 1;
                let produce = Produce {
                    transactional_id,
                    ..Produce::plain(version, id, one)
                };
                let (ask, answer) = match version {
                    0..=2 => (
                        raw::old_produce(version, id, one, "t", b"records"),
                        raw::old_produced(version, id, "t", 19),
                    ),
                    _ => (produce.frame(), frames::produced(version, id, &[0, 19])),
                };
                acks.push(one);
                if one == 0 {
                    talk = talk.tell(&ask);
                    continue;
                }
                talk = talk.ask(&ask, &answer);
                answered.push((id, Outcome::Error));
                errors.extend(of(
                    id,
                    if version < 3 {
                        &[(19, 1)]
                    } else {
                        &[(0, 1), (19, 1)]
                    },
                ));
            }
        }
    }
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk.clone().end());
    assert_eq!(trace.request.output, talk.asked());
    assert_eq!(trace.response.output, talk.answered());
    let told: Vec<_> = trace
        .request
        .what()
        .filter_map(|it| {
            if let Seen::Acks(acks) = it {
                Some(*acks)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(told, acks);
    assert_eq!(trace.response.responses(), answered);
    assert_eq!(trace.response.errors(), errors);
    assert_eq!(trace.in_flight, 0);
    assert_eq!(trace.end, End::Finished(CloseReason::Client));
}

#[test]
fn records_of_a_produce_beyond_any_buffer_pass_unseen() {
    let produce = |id, acks| Produce {
        bytes: 200_000,
        topics: &["a", "b"],
        ..Produce::plain(9, id, acks)
    };
    let talk = Conversation::new()
        .tell(&produce(1, 0).frame())
        .ask(&produce(2, -1).frame(), &frames::produced(9, 2, &[0]));
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &talk.pipelined());
    assert_eq!(trace.request.output, talk.asked());
    assert_eq!(trace.request.requests(), [1, 2]);
    assert_eq!(trace.response.responses(), [(2, Outcome::Ok)]);
}

#[test]
fn a_fetch_by_another_broker_is_told_in_every_version_and_a_consumers_is_not() {
    let mut talk = Conversation::new();
    for version in 4..=18 {
        let id = i32::from(version);
        talk = talk
            .ask(
                &frames::replica_fetch(version, id, 100 + id),
                &frames::fetched(version, id, &[]),
            )
            .ask(
                &frames::fetch(version, id, 500),
                &frames::fetched(version, id, &[]),
            );
    }
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &talk.end().pipelined());
    let told: Vec<_> = trace
        .request
        .what()
        .filter_map(|seen| match seen {
            Seen::ReplicaFetch { replica_id } => Some(*replica_id),
            _ => None,
        })
        .collect();
    assert_eq!(told, (104..=118).collect::<Vec<_>>());
}

#[test]
fn every_metadata_version_tells_its_codes_and_brokers() {
    let topics: &[&[i16]] = &[&[0, 5, 5], &[], &[9]];
    let mut talk = Conversation::new();
    let mut errors = Vec::new();
    for version in 0..=13 {
        let id = i32::from(version);
        talk = talk.ask(
            &frames::metadata(version, id),
            &frames::metadata_told(version, id, topics),
        );
        errors.extend(of(id, &frames::metadata_errors(version, topics)));
    }
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
    assert_eq!(trace.response.output, talk.answered());
    assert_eq!(trace.response.errors(), errors);
    let broker = Seen::BrokerAddress {
        node_id: 1,
        host: b"broker-1.example.com".to_vec(),
        port: 9092,
    };
    assert_eq!(
        trace.response.what().filter(|it| **it == broker).count(),
        14
    );
}

#[test]
fn a_hundred_requests_at_once_keep_their_order() {
    let mut talk = Conversation::new();
    for id in 0..100 {
        talk = match id % 4 {
            0 => talk.ask(
                &frames::metadata(9, id),
                &frames::metadata_told(9, id, &[&[0]]),
            ),
            1 => talk.tell(&Produce::plain(9, id, 0).frame()),
            2 => talk.ask(
                &Produce::plain(9, id, -1).frame(),
                &frames::produced(9, id, &[0]),
            ),
            _ => talk.ask(
                &frames::fetch(12, id, 10),
                &frames::fetched(12, id, &[(0, 64)]),
            ),
        };
    }
    let trace = sim::same_under_any_interleaving(&sim::shared(sim::policy()), &talk);
    assert_eq!(trace.request.heads(), (0..100).collect::<Vec<_>>());
    assert_eq!(trace.request.requests(), (0..100).collect::<Vec<_>>());
    let answered: Vec<_> = (0..100)
        .filter(|id| id % 4 != 1)
        .map(|id| (id, Outcome::Ok))
        .collect();
    assert_eq!(trace.response.responses(), answered);
    assert_eq!(trace.in_flight, 0);
}

#[test]
fn offsets_are_those_of_the_stream_as_received() {
    let clamped = frames::versions_told(3, 1, 0, OFFERED);
    let script = Script::new()
        .client(&frames::api_versions(3, 1))
        .client(&frames::metadata(9, 2))
        .broker(&clamped)
        .broker(&frames::metadata_told(9, 2, &[]));
    let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
    let heads = |direction: Direction| -> Vec<u64> {
        trace
            .side(direction)
            .seen
            .iter()
            .filter(|(_, it)| matches!(it, Seen::RequestHead { .. } | Seen::ResponseHead { .. }))
            .map(|(at, _)| *at)
            .collect()
    };
    assert_eq!(
        heads(Direction::Request),
        [0, frames::api_versions(3, 1).len() as u64]
    );
    assert_eq!(
        heads(Direction::Response),
        [0, clamped.len() as u64],
        "before the clamp, not after"
    );
}

#[test]
fn client_ids_may_be_null_empty_long_or_no_utf8() {
    let long = "x".repeat(32_767);
    let ids: [Option<&[u8]>; 4] = [
        None,
        Some(b""),
        Some(b"\xff\xfe\x00"),
        Some(long.as_bytes()),
    ];
    for id in ids {
        let header = raw::Raw::new().i16(3).i16(1).i32(5);
        let header = match id {
            None => header.i16(-1),
            Some(id) => header.i16(i16::try_from(id.len()).unwrap()).bytes(id),
        };
        let script = Script::new()
            .client(&header.i32(-1).frame())
            .broker(&frames::metadata_told(1, 5, &[]));
        let trace = sim::same_under_any_cut(&sim::shared(sim::policy()), &script);
        let told = trace.request.what().find_map(|it| match it {
            Seen::RequestHead { client_id, .. } => Some(client_id.as_deref()),
            _ => None,
        });
        assert_eq!(told, Some(id));
        assert_eq!(trace.response.responses().len(), 1);
    }
}

#[test]
fn an_end_at_any_byte_passes_on_all_that_came_and_shuts_that_half_down() {
    let talk = Conversation::new()
        .ask(
            &frames::metadata(9, 1),
            &frames::metadata_told(9, 1, &[&[0]]),
        )
        .tell(&Produce::plain(9, 2, 0).frame())
        .ask(
            &frames::fetch(12, 3, 10),
            &frames::fetched(12, 3, &[(0, 64), (6, 30)]),
        );
    let (asked, answered) = (talk.asked(), talk.answered());
    let policy = sim::shared(sim::policy());
    for cut in 0..asked.len() {
        let script = Script::new().client(&asked[..cut]).client_eof();
        let trace = sim::same_under_some_cuts(&policy, &script);
        assert_eq!(trace.request.output, &asked[..cut]);
        assert!(
            trace.request.finished && !trace.response.finished,
            "after {cut} bytes"
        );
    }
    for cut in 0..answered.len() {
        let script = Script::new()
            .client(asked)
            .broker(&answered[..cut])
            .broker_eof();
        let trace = sim::same_under_some_cuts(&policy, &script);
        assert_eq!(trace.response.output, &answered[..cut]);
        assert_eq!(trace.request.output, asked);
        assert!(trace.response.finished, "after {cut} bytes");
    }
}
