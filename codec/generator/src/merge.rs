//! One layout for each message that any release has, from the newest release that has it.
//!
//! The trap: releases might disagree on a version that both define. They are held against each
//! other, and all but the known exceptions fail the run.

use crate::definition::{Definition, Kind};
use crate::jars::Release;
use crate::message::{Direction, Key, Message};
use crate::role::Roles;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;

/// Where a later release changed a version that was there: only in what was never stable.
const CHANGED: [Key; 1] = [
    // ReadShareGroupStateSummary, unstable until 4.1, got a field in between.
    Key {
        api_key: 87,
        direction: Direction::Response,
        version: 0,
    },
];

pub(crate) fn merge(releases: &[Release], roles: &mut Roles) -> Result<Vec<Message>> {
    let mut messages = BTreeMap::<Key, (Message, &str)>::new();
    let mut changed = Vec::new();
    for release in releases {
        check_headers(release)?;
        for definition in &release.definitions {
            let Some((api_key, direction)) = names(definition)? else {
                continue;
            };
            for version in definition.valid_versions.iter() {
                let key = Key {
                    api_key,
                    direction,
                    version,
                };
                let message = Message::new(definition, key, roles)
                    .with_context(|| format!("in Kafka {}", release.version))?;
                match messages.get(&key) {
                    None => {
                        messages.insert(key, (message, release.version));
                    }
                    Some((newer, _)) if newer.same_wire(&message) => {}
                    Some(_) if CHANGED.contains(&key) => changed.push(key),
                    Some((_, newer)) => bail!(
                        "{} version {version} of Kafka {newer} differs from that of {}",
                        definition.name,
                        release.version
                    ),
                }
            }
        }
    }
    for key in CHANGED {
        ensure!(changed.contains(&key), "all releases agree on {key:?}");
    }
    check_versions(&messages)?;
    Ok(messages.into_values().map(|(message, _)| message).collect())
}

/// Which request or response a definition is of, if any.
pub(crate) fn names(definition: &Definition) -> Result<Option<(i16, Direction)>> {
    let direction = match definition.kind {
        Kind::Request => Direction::Request,
        Kind::Response => Direction::Response,
        _ => return Ok(None),
    };
    let api_key = definition.api_key;
    let api_key = api_key.with_context(|| format!("{} has no API key", definition.name))?;
    Ok(Some((api_key, direction)))
}

/// The table has one run of versions for each API, the same for both directions.
fn check_versions(messages: &BTreeMap<Key, (Message, &str)>) -> Result<()> {
    let mut runs = BTreeMap::<i16, [Vec<i16>; 2]>::new();
    for key in messages.keys() {
        runs.entry(key.api_key).or_default()[key.direction as usize].push(key.version);
    }
    for (api_key, [request, response]) in runs {
        let run: Vec<_> = (request[0]..).take(request.len()).collect();
        ensure!(request == run, "a version is missing of key {api_key}");
        ensure!(response == run, "the response of key {api_key} has others");
    }
    Ok(())
}

/// The session reads headers by itself, so they must stay as it knows them: a request's ends with a
/// classic client id and then, where flexible, tagged fields; a response's is a correlation id and the
/// like. No tagged field of a header is known.
fn check_headers(release: &Release) -> Result<()> {
    for (name, flexible, fields) in [
        (
            "RequestHeader",
            2,
            "RequestApiKey int16, RequestApiVersion int16, CorrelationId int32, ClientId string",
        ),
        ("ResponseHeader", 1, "CorrelationId int32"),
    ] {
        let header = release
            .definitions
            .iter()
            .find(|definition| definition.kind == Kind::Header && definition.name == name)
            .with_context(|| format!("Kafka {} has no {name}", release.version))?;
        let found: Vec<_> = header
            .fields
            .iter()
            .map(|field| format!("{} {}", field.name, field.type_name))
            .collect();
        let classic = |field: &crate::definition::Field| {
            let flexible = field.flexible_versions;
            flexible.is_some_and(|versions| versions.iter().next().is_none())
        };
        ensure!(
            found.join(", ") == fields
                && header.flexible_versions.first == flexible
                && header.valid_versions.last == flexible
                && header
                    .fields
                    .iter()
                    .all(|it| it.type_name != "string" || classic(it)),
            "{name} of Kafka {} is not as the session reads it",
            release.version
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A release with one request, of one field.
    fn release(version: &'static str, field: &str) -> Release {
        let definitions = [
            r#"{ "type": "header", "name": "RequestHeader", "validVersions": "1-2",
                 "flexibleVersions": "2+", "fields": [
                { "name": "RequestApiKey", "type": "int16", "versions": "0+" },
                { "name": "RequestApiVersion", "type": "int16", "versions": "0+" },
                { "name": "CorrelationId", "type": "int32", "versions": "0+" },
                { "name": "ClientId", "type": "string", "versions": "1+",
                  "nullableVersions": "1+", "flexibleVersions": "none" }] }"#,
            r#"{ "type": "header", "name": "ResponseHeader", "validVersions": "0-1",
                 "flexibleVersions": "1+", "fields": [
                { "name": "CorrelationId", "type": "int32", "versions": "0+" }] }"#,
            &format!(
                r#"{{ "type": "request", "apiKey": 0, "name": "XRequest", "validVersions": "0",
                      "flexibleVersions": "0+", "fields": [{{ {field} }}] }}"#
            ),
        ];
        let definitions = definitions.map(|text| Definition::read(text).expect("it is one"));
        Release {
            version,
            definitions: definitions.into(),
        }
    }

    fn failure(older: &str) -> String {
        let newer = r#""name": "A", "type": "int32", "versions": "0+""#;
        let releases = [release("4.4.0", newer), release("3.9.2", older)];
        let error = merge(&releases, &mut Roles::default()).expect_err("it is no whole release");
        format!("{error:#}")
    }

    #[test]
    fn releases_that_disagree_on_a_version_fail() {
        for older in [
            r#""name": "A", "type": "int64", "versions": "0+""#,
            r#""name": "A", "type": "[]int32", "versions": "0+""#,
            r#""name": "A", "type": "string", "versions": "0+", "nullableVersions": "0+""#,
            r#""name": "A", "type": "int32", "versions": "0+", "tag": 0, "taggedVersions": "0+""#,
            r#""name": "A", "type": "int32", "versions": "1+""#,
        ] {
            let told = failure(older);
            assert!(
                told.contains("of Kafka 4.4.0 differs from that of 3.9.2"),
                "{told}"
            );
        }
    }

    #[test]
    fn only_the_names_of_fields_may_change() {
        let told = failure(r#""name": "B", "type": "int32", "versions": "0+""#);
        assert!(!told.contains("differs"), "{told}");
    }
}
