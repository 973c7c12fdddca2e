//! What brokers of each release speak, held against what real ones told.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use klamp_codec::ApiKey;
use klamp_codec::clamp::clamp;
use klamp_codec::releases::{Release, dropped_in, spoken_by};
use klamp_codec::session::Clamp;

fn release(name: &str) -> Release {
    Release::all().find(|it| it.to_string() == name).unwrap()
}

fn names(releases: impl Iterator<Item = Release>) -> String {
    let names: Vec<_> = releases.map(|it| it.to_string()).collect();
    names.join(" ")
}

#[test]
fn a_broker_tells_what_its_release_speaks() {
    let answers: [(&str, &[u8], i16); 2] = [
        ("4.3", include_bytes!("clamp/captured/4.3.1-v4.bin"), 4),
        ("4.4", include_bytes!("clamp/captured/4.4.0-v5.bin"), 5),
    ];
    for (name, answer, version) in answers {
        let table = clamp(answer, version, Clamp::Off).unwrap().table.unwrap();
        assert!(table.entries().len() > 60);
        for row in table.entries() {
            let mut told = row.broker;
            if row.api_key == ApiKey::PRODUCE {
                assert_eq!(told.min, 0, "it lists what it refuses (KAFKA-18659)");
                told.min = 3;
            }
            let spoken = release(name).speaks(row.api_key);
            assert_eq!(told.range(), spoken, "{} of {name}", row.api_key);
        }
        for key in (0..200).map(ApiKey) {
            // The two of telemetry are told only where somebody receives it.
            let spoken = release(name).speaks(key).is_some() && ![71, 72].contains(&key.0);
            assert_eq!(spoken, table.row(key).is_some(), "{key} of {name}");
        }
    }
}

#[test]
fn a_version_is_dropped_by_the_first_release_that_none_speaks_it_from() {
    let dropped = |key, version| dropped_in(ApiKey(key), version).map(|it| it.to_string());
    assert_eq!(dropped(0, 2).as_deref(), Some("4.0"), "Produce 2 (KIP-896)");
    assert_eq!(dropped(1, 3).as_deref(), Some("4.0"), "Fetch 3 (KIP-896)");
    assert_eq!(
        dropped(4, 7).as_deref(),
        Some("4.0"),
        "LeaderAndIsr, of ZooKeeper"
    );
    // Back since 4.0.1.
    assert_eq!(dropped(11, 0), None, "JoinGroup 0");
    assert_eq!(dropped(0, 3), None);
    assert_eq!(dropped(18, 0), None);
    // Never there, or only when told to.
    for (key, version) in [(0, 99), (0, -1), (0, i16::MIN), (9999, 0), (-1, 0), (76, 0)] {
        assert_eq!(dropped(key, version), None, "{key} {version}");
    }
}

#[test]
fn a_version_is_spoken_by_those_releases_that_have_it_stable() {
    let spoken = |key, version| names(spoken_by(ApiKey(key), version));
    assert_eq!(names(Release::all()), "3.9 4.0 4.1 4.2 4.3 4.4");
    assert_eq!(spoken(0, 2), "3.9");
    assert_eq!(spoken(0, 13), "4.1 4.2 4.3 4.4");
    assert_eq!(spoken(18, 5), "4.4");
    // OffsetCommit 10 was there in 4.1, but unstable; InitProducerId 6 still is.
    assert_eq!(spoken(8, 10), "4.2 4.3 4.4");
    assert_eq!(spoken(22, 6), "");
    assert_eq!(spoken(88, 0), "4.2 4.3 4.4");
    assert_eq!(spoken(94, 0), "4.4");
    // For controllers only.
    assert_eq!(spoken(52, 0), "");
}
