//! What must hold for the generated tables.

use super::super::table::{Length, Op, Roots, Table};
use super::super::walker::MAX_DEPTH;
use super::super::{
    Event, Fault, FieldId, Kind, Progress, Role, Root, Row, Walker, full, hot, versions,
};
use crate::ours;
use crate::types::{ApiKey, Direction};
use kafka_protocol::messages::ApiKey as Schema;

#[test]
fn what_the_table_does_not_have_is_not_found() {
    let find = |key, version| Root::find(Direction::Request, ApiKey(key), version).is_some();
    assert!(find(0, 0) && find(0, 13) && find(18, 0) && find(18, 5));
    for (key, version) in [
        (0, -1),
        (0, i16::MIN),
        (0, i16::MAX),
        (95, 0),
        (-1, 0),
        (9999, 0),
        (i16::MIN, 0),
        (i16::MAX, 0),
    ] {
        assert!(!find(key, version), "{key} v{version}");
    }
}

#[test]
fn every_layout_is_whole_and_fits_the_walker() {
    for table in [hot(), full()] {
        let mut layouts = 0;
        for api in table.apis {
            for Roots { first_ops, .. } in [&api.request, &api.response] {
                for first in *first_ops {
                    check(table, *first, 1);
                    layouts += 1;
                }
            }
        }
        // Versions that Kafka 3.9 to 4.4 have, in both directions.
        assert_eq!(layouts, 2 * 368);
    }
}

#[test]
fn every_key_of_kafkas_has_layouts_in_the_versions_that_are_told() {
    for key in (-1..=100).map(ApiKey) {
        let told = versions(key);
        assert_eq!(told.is_some(), (0..=94).contains(&key.0), "{key}");
        for version in -1..=50 {
            for direction in [Direction::Request, Direction::Response] {
                let read = told.is_some_and(|told| told.contains(version));
                let root = Root::find(direction, key, version);
                assert_eq!(root.is_some(), read, "{key} {version}");
                let root = Root::find_full(direction, key, version);
                assert_eq!(root.is_some(), read, "{key} {version}");
            }
        }
    }
}

#[test]
fn all_that_kafka_protocol_encodes_can_be_read() {
    for key in ApiKey::named() {
        if let Some(ours) = ours(key) {
            assert_eq!(versions(key).unwrap().intersect(ours), Some(ours), "{key}");
        }
    }
}

/// A flexible request has header 2, a flexible response header 1: both begin with tagged fields. But
/// the answer to ApiVersions has header 0 in every version (KIP-511).
#[test]
fn a_flexible_message_begins_with_the_tagged_fields_of_its_header() {
    let mut compared = 0;
    for key in Schema::iter() {
        for version in key.valid_versions().min..=key.valid_versions().max {
            let has_tags = |direction| {
                let root = Root::find(direction, ApiKey(key as i16), version).unwrap();
                matches!(first(root), Op::Tags { count: 0, .. })
            };
            let expected = key.request_header_version(version) == 2;
            assert_eq!(has_tags(Direction::Request), expected, "{key:?} {version}");
            let expected = key.response_header_version(version) == 1;
            assert_eq!(has_tags(Direction::Response), expected, "{key:?} {version}");
            compared += 1;
        }
    }
    assert!(compared > 250, "{compared}");
}

/// The keys that `kafka-protocol` does not have, by their definitions.
#[test]
fn so_do_messages_of_other_keys() {
    let first_flexible = [
        (4, 4),
        (5, 2),
        (6, 6),
        (7, 3),
        (88, 0),
        (89, 0),
        (93, 0),
        (94, 0),
    ];
    for (key, flexible) in first_flexible {
        for direction in [Direction::Request, Direction::Response] {
            let roots = (0..).map_while(|it| Root::find(direction, ApiKey(key), it));
            for (version, root) in (0..).zip(roots) {
                let has_tags = matches!(first(root), Op::Tags { count: 0, .. });
                assert_eq!(has_tags, version >= flexible, "{key} {version}");
            }
        }
    }
}

fn first(root: Root) -> Op {
    root.table.ops[usize::from(root.first)]
}

#[test]
fn the_full_table_tells_of_every_field_by_its_name() {
    let root = Root::find_full(Direction::Response, ApiKey(60), 2).unwrap();
    #[rustfmt::skip]
    let body = [
        0, // the header's tagged fields
        0, 0, 0, 5,  0, 0,  0,  1,  2, b'c',  0, 0, 0, 7,
        2,  0, 0, 0, 7,  2, b'h',  0, 0, 0x23, 0x84,  0,  1,  0,
        0, 0, 0, 1,
        1, 0xc8, 0x01, 2, 9, 9, // one that nobody knows
    ];
    let mut told = Vec::new();
    let mut on = |event: Event<'_>| {
        let field = root.field(event.field);
        let named = field.map(|it| format!("{} {:?} ", it.name, it.kind));
        let named = named.unwrap_or_default();
        told.push(format!("{named}{:?} {:?}", event.role, event.value));
    };
    let end = Walker::new(root, body.len() as u32).feed(&body, &mut on);
    assert_eq!(end, Ok((body.len(), Progress::Done)));
    assert_eq!(
        told,
        [
            "ThrottleTimeMs Int32 ThrottleTime Int(5)",
            "ErrorCode Int16 ErrorCode Int(0)",
            "ErrorMessage String Other Null",
            "EndpointType Int8 Other Int(1)",
            "ClusterId String Other Piece([99], 0)",
            "ControllerId Int32 Other Int(7)",
            "Brokers Array Other Count(1)",
            "Brokers Array Other Element",
            "BrokerId Int32 NodeId Int(7)",
            "Host String Host Piece([104], 0)",
            "Port Int32 Port Int(9092)",
            "Rack String Other Null",
            "IsFenced Bool Other Int(1)",
            "Brokers Array Other End",
            "ClusterAuthorizedOperations Int32 Other Int(1)",
            "Other UnknownTag(200, 2)",
        ]
    );
}

#[test]
fn an_error_of_a_full_walk_names_the_field() {
    let root = Root::find_full(Direction::Response, ApiKey(60), 2).unwrap();
    #[rustfmt::skip]
    let body = [
        0,
        0, 0, 0, 5,  0, 0,  0,  1,  2, b'c',  0, 0, 0, 7,
        2,  0, 0, 0, 7,  30, b'h',  0, 0, 0x23, 0x84,  0,  1,  0,
        0, 0, 0, 1,
        0,
    ];
    let error = Walker::new(root, body.len() as u32)
        .feed(&body, &mut |_| {})
        .unwrap_err();
    assert_eq!((error.fault, error.at), (Fault::Short, 21));
    assert_eq!(root.field(error.field).unwrap().name, "Host");
    assert_eq!(
        error.to_string(),
        "the message ends inside the field at offset 21"
    );
}

#[test]
fn only_the_full_table_has_names_and_it_has_them_for_every_op_of_a_field() {
    assert!(hot().fields.is_none());
    let fields = full().fields.unwrap();
    assert_eq!(fields.by_op.len(), full().ops.len());
    for (op, stored) in full().ops.iter().zip(fields.by_op) {
        assert_eq!(
            stored.is_some(),
            !matches!(op, Op::Tags { .. } | Op::End { .. })
        );
        if let Some(stored) = stored {
            let start = usize::from(stored.start);
            let name = &fields.names[start..start + usize::from(stored.len)];
            assert!(
                name.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{name}"
            );
        }
    }
}

/// Follows a struct through all that stands in it. Returns the least bytes that it takes.
fn check(table: &Table, first: u16, depth: usize) -> u32 {
    assert!(depth <= MAX_DEPTH);
    let mut least = 0;
    for op in ops(table, first) {
        let (before, own) = match *op {
            Op::Row { row } => {
                let row = &table.rows[usize::from(row)];
                let rest = check(table, first + 1, depth);
                assert_eq!(least_of(row), rest, "{row:?} before {op:?}");
                (0, 0)
            }
            Op::Int8 { before, .. } => (before, 1),
            Op::Int16 { before, .. } | Op::Uint16 { before, .. } => (before, 2),
            Op::Int32 { before, .. } => (before, 4),
            Op::Int64 { before, .. } => (before, 8),
            Op::Uuid { before, .. } => (before, 16),
            Op::Unread { before, length, .. }
            | Op::Bytes { before, length, .. }
            | Op::Skipped { before, length, .. } => (before, width(length)),
            Op::Array {
                before,
                length,
                element,
                min,
                ..
            } => {
                assert_eq!(check(table, element, depth + 1), min.get().into());
                (before, width(length))
            }
            Op::Struct { first } => (0, check(table, first, depth + 1)),
            Op::NullableStruct { before, first, .. } => {
                check(table, first, depth + 1);
                (before, 1)
            }
            Op::Tags {
                before,
                first,
                count,
                ..
            } => {
                let first = usize::from(first);
                for tag in &table.tags[first..first + usize::from(count)] {
                    check(table, tag.first, depth + 1);
                }
                (before, 1)
            }
            Op::End { before } => (before, 0),
        };
        least += u32::from(before) + own;
    }
    least
}

/// The least bytes that a row takes.
fn least_of(row: &Row) -> u32 {
    let parts = row.parts.iter();
    let parts = parts.map(|part| u32::from(part.before) + width(part.length));
    let code = row.code.map_or(0, |before| u32::from(before) + 2);
    code + parts.sum::<u32>() + u32::from(row.behind) + u32::from(row.tags)
}

/// The ops of a struct.
pub(super) fn ops(table: &Table, first: u16) -> &[Op] {
    let ops = &table.ops[usize::from(first)..];
    let is_last = |op: &Op| matches!(op, Op::End { .. } | Op::Tags { last: true, .. });
    &ops[..=ops.iter().position(is_last).unwrap()]
}

/// The least bytes of a length.
fn width(length: Length) -> u32 {
    match length {
        Length::Compact | Length::NullableCompact => 1,
        Length::Int16 | Length::NullableInt16 => 2,
        Length::Int32 | Length::NullableInt32 => 4,
    }
}

/// Every key and direction that has a field of this role in some version.
fn keys_with(table: &Table, role: Role) -> Vec<(i16, Direction)> {
    let mut keys = Vec::new();
    for (key, api) in (0..).zip(table.apis) {
        let directions = [
            (Direction::Request, &api.request),
            (Direction::Response, &api.response),
        ];
        for (direction, roots) in directions {
            let has_it = |first: &u16| has_role(table, *first, role);
            if roots.first_ops.iter().any(has_it) {
                keys.push((key, direction));
            }
        }
    }
    keys
}

fn has_role(table: &Table, first: u16, role: Role) -> bool {
    ops(table, first).iter().any(|op| match *op {
        Op::Int8 { role: it, .. }
        | Op::Int16 { role: it, .. }
        | Op::Uint16 { role: it, .. }
        | Op::Int32 { role: it, .. }
        | Op::Int64 { role: it, .. }
        | Op::Uuid { role: it, .. }
        | Op::Bytes { role: it, .. }
        | Op::Skipped { role: it, .. } => it == role,
        Op::Array {
            role: it, element, ..
        } => it == Some(role) || has_role(table, element, role),
        Op::Struct { first } | Op::NullableStruct { first, .. } => has_role(table, first, role),
        Op::Tags { first, count, .. } => table.tags[usize::from(first)..][..usize::from(count)]
            .iter()
            .any(|tag| has_role(table, tag.first, role)),
        Op::Unread { .. } | Op::Row { .. } | Op::End { .. } => false,
    })
}

#[test]
fn roles_stand_where_kafka_has_their_fields() {
    use Direction::{Request, Response};
    let requests = |keys: &[i16]| keys.iter().map(|key| (*key, Request)).collect::<Vec<_>>();
    let responses = |keys: &[i16]| keys.iter().map(|key| (*key, Response)).collect::<Vec<_>>();
    for table in [hot(), full()] {
        let all: Vec<_> = (0..95).collect();
        assert_eq!(keys_with(table, Role::ErrorCode), responses(&all));
        // Whom clients are sent to: not what controllers tell each other, nor Streams' own endpoints.
        let addresses = responses(&[0, 1, 3, 10, 60, 78, 79]);
        for role in [Role::NodeId, Role::Host, Role::Port] {
            assert_eq!(keys_with(table, role), addresses, "{role:?}");
        }
        let waiting = [0, 1, 2, 11, 19, 20, 21, 37, 43, 45, 46, 57, 78, 80];
        assert_eq!(keys_with(table, Role::Wait), requests(&waiting));
    }
    let secrets = [
        (Role::SaslBytes, requests(&[36]), responses(&[36])),
        (
            Role::Credential,
            requests(&[39, 40, 51]),
            responses(&[38, 41]),
        ),
        (
            Role::ConfigValue,
            requests(&[19, 33, 44, 88]),
            responses(&[19, 32, 33, 44, 89]),
        ),
        (Role::Telemetry, requests(&[72]), responses(&[])),
        (Role::Envelope, requests(&[58]), responses(&[58])),
        (
            Role::GroupData,
            requests(&[8, 11, 14, 28]),
            responses(&[9, 11, 14, 15]),
        ),
    ];
    for (role, requests, responses) in secrets {
        assert!(role.is_secret() && role.is_withheld());
        let mut keys = [requests, responses].concat();
        keys.sort_by_key(|(key, direction)| (*key, *direction == Response));
        for table in [hot(), full()] {
            assert_eq!(keys_with(table, role), keys, "{role:?}");
        }
    }
    let records = [(0, Request), (1, Response), (59, Response), (78, Response)];
    for table in [hot(), full()] {
        assert_eq!(keys_with(table, Role::Records), records);
    }
}

/// Whoever keeps frames is told of what he must not keep by the hot table, and what is told again later
/// is told by the full one.
#[test]
fn bytes_and_records_are_withheld_but_for_one_and_the_hot_table_gives_none_of_them() {
    let all = full().ops.iter().zip(0..);
    let seen = all.filter_map(|(op, index)| {
        let field = full().fields?.field(FieldId(index))?;
        let (Op::Bytes { role, .. } | Op::Skipped { role, .. }) = *op else {
            return None;
        };
        let is_blob = matches!(field.kind, Kind::Bytes | Kind::Records);
        (is_blob && !role.is_withheld()).then_some(field.name)
    });
    // Whose address no other message hides either.
    assert_eq!(seen.collect::<Vec<_>>(), ["ClientHostAddress"]);
    for op in hot().ops {
        match *op {
            Op::Bytes { role, .. } => assert!(!role.is_withheld(), "{op:?}"),
            Op::Skipped { role, .. } => assert!(role.is_withheld(), "{op:?}"),
            _ => {}
        }
    }
}
