//! Holds rendered JSON against what somebody else says of the same message, and text against JSON.

use crate::tree::{Node, Struct, plain};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What must not be seen, and is null in JSON with its size beside it: api key, whether of a request,
/// field.
pub(crate) const WITHHELD: [(i16, bool, &str); 31] = [
    (8, true, "committedMetadata"),
    (9, false, "metadata"),
    (11, false, "metadata"),
    (11, true, "metadata"),
    (14, false, "assignment"),
    (14, true, "assignment"),
    (15, false, "memberAssignment"),
    (15, false, "memberMetadata"),
    (19, false, "errorMessage"),
    (19, false, "value"),
    (19, true, "value"),
    (28, true, "committedMetadata"),
    (32, false, "value"),
    (33, false, "errorMessage"),
    (33, true, "value"),
    (36, false, "authBytes"),
    (36, true, "authBytes"),
    (38, false, "hmac"),
    (39, true, "hmac"),
    (40, true, "hmac"),
    (41, false, "hmac"),
    (44, false, "errorMessage"),
    (44, true, "value"),
    (51, true, "salt"),
    (51, true, "saltedPassword"),
    (58, false, "responseData"),
    (58, true, "requestData"),
    (58, true, "requestPrincipal"),
    (72, true, "metrics"),
    (88, true, "value"),
    (89, false, "value"),
];

/// What follows the name of a field where its size stands for it, or beside it.
pub(crate) const SIZE: &str = "SizeInBytes";

/// Holds a struct against what was `read` of it, every field of which must be there, and what somebody
/// `said`. Notes the names of what is withheld.
pub(crate) fn check(
    json: &Value,
    read: &Struct,
    said: &Struct,
    withheld: &mut BTreeSet<String>,
) -> Result<(), String> {
    let json = json
        .as_object()
        .ok_or_else(|| format!("{json} is no struct"))?;
    for field in &read.fields {
        let is = |key: &String| plain(key.strip_suffix(SIZE).unwrap_or(key)) == field.name;
        if !json.keys().any(is) {
            return Err(format!("{} is missing", field.name));
        }
    }
    let find = |name: &str| {
        let pair = read.field(name).zip(said.field(name));
        pair.map(|(read, said)| (&read.value, &said.value))
    };
    for (key, value) in json {
        let tell = |difference| format!("/{key}{difference}");
        let (read, said) = match find(&plain(key)) {
            Some(found) => found,
            None => {
                let name = key.strip_suffix(SIZE).unwrap_or_default();
                let (_, said) = find(&plain(name)).ok_or_else(|| tell(": nobody has it".into()))?;
                match (said, value.as_u64()) {
                    (Node::Bytes(bytes), Some(len)) if bytes.len() as u64 == len => continue,
                    _ => return Err(tell(format!(" is {value}, not that of {said:?}"))),
                }
            }
        };
        if value.is_null() && json.contains_key(&format!("{key}{SIZE}")) {
            withheld.insert(key.clone());
            continue;
        }
        check_value(value, read, said, withheld).map_err(tell)?;
    }
    Ok(())
}

fn check_value(
    json: &Value,
    read: &Node,
    said: &Node,
    withheld: &mut BTreeSet<String>,
) -> Result<(), String> {
    let same = match (json, read, said) {
        (Value::Null, _, Node::Null) => true,
        (Value::Bool(is), _, Node::Int(n)) => i64::from(*is) == *n,
        (Value::Number(number), _, Node::Int(n)) => match number.as_i64() {
            Some(number) => number == *n,
            None => number.as_f64().map(f64::to_bits) == Some(*n as u64),
        },
        (Value::String(text), _, Node::Bytes(bytes)) => {
            text.as_bytes() == bytes
                || *text == URL_SAFE_NO_PAD.encode(bytes)
                || *text == STANDARD.encode(bytes)
        }
        (Value::Array(values), Node::List(read), Node::List(said)) => {
            let all = values.iter().zip(read.iter().zip(said)).enumerate();
            for (index, (value, (read, said))) in all {
                let tell = |difference| format!("[{index}]{difference}");
                check_value(value, &read.value, &said.value, withheld).map_err(tell)?;
            }
            values.len() == read.len() && values.len() == said.len()
        }
        (Value::Object(_), Node::Struct(read), Node::Struct(said)) => {
            return check(json, read, said, withheld);
        }
        _ => false,
    };
    match same {
        true => Ok(()),
        false => Err(format!(" is {json}, not {said:?}")),
    }
}

/// Whether `part` is `whole` up to some place.
pub(crate) fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(a, b)| is_part(a, b))
        }
        (Value::Object(part), Value::Object(whole)) => {
            let in_whole = |(key, part): (&String, &Value)| {
                let whole = whole.get(key);
                whole.is_some_and(|whole| is_part(part, whole))
            };
            part.iter().all(in_whole)
        }
        (part, whole) => part == whole,
    }
}

/// Holds text against JSON: the same fields in the same order with the same values.
pub(crate) fn check_text(text: &str, json: &Value) {
    let is_field = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("batch: ") && !line.starts_with("unknown tagged field ")
    };
    let mut lines = text.lines().skip(1).filter(is_field);
    check_fields(&mut lines, 1, json.as_object().unwrap());
    assert_eq!(lines.next(), None, "{text}");
}

fn check_fields(lines: &mut dyn Iterator<Item = &str>, depth: usize, fields: &Map<String, Value>) {
    for (key, value) in fields {
        let sized = key.strip_suffix(SIZE).filter(|_| value.is_u64());
        if sized.is_some_and(|name| fields.contains_key(name)) {
            continue;
        }
        let line = lines.next().unwrap_or_default();
        let indent = "  ".repeat(depth);
        let name = sized.unwrap_or(key);
        let (first, rest) = name.split_at(1);
        let start = format!("{indent}{}{rest}:", first.to_uppercase());
        let lower = format!("{indent}{name}:");
        let told = line.strip_prefix(&start).or(line.strip_prefix(&lower));
        let told = told.unwrap_or_else(|| panic!("{line:?} is not of {key}"));
        let told = told.strip_prefix(' ').unwrap_or(told);
        match (value, fields.get(&format!("{key}{SIZE}"))) {
            (Value::Null, Some(len)) => assert_eq!(told, format!("({len} bytes, not kept)")),
            _ if sized.is_some() => assert_eq!(told, format!("{value} bytes")),
            (Value::Object(inner), _) => {
                assert_eq!(told, "", "{line}");
                check_fields(lines, depth + 1, inner);
            }
            (Value::Array(elements), _) => match elements.first() {
                None => assert_eq!(told, "[]", "{line}"),
                Some(Value::Object(_)) => {
                    assert_eq!(told, elements.len().to_string(), "{line}");
                    for (index, element) in elements.iter().enumerate() {
                        let begin = format!("{indent}  [{index}]");
                        assert_eq!(lines.next(), Some(begin.as_str()));
                        check_fields(lines, depth + 2, element.as_object().unwrap());
                    }
                }
                Some(_) => {
                    let inner = told.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
                    let told = inner.unwrap_or_else(|| panic!("{line}")).split(", ");
                    let told = told.collect::<Vec<_>>();
                    assert_eq!(told.len(), elements.len(), "{line}");
                    for (told, element) in told.into_iter().zip(elements) {
                        check_leaf(told, element);
                    }
                }
            },
            (value, _) => check_leaf(told, value),
        }
    }
}

fn check_leaf(told: &str, value: &Value) {
    let printed = value.to_string();
    let same = match value {
        // With a name before it, if it has one.
        Value::Number(_) => told == printed || told.ends_with(&format!(" ({printed})")),
        // A uuid stands without quotes, bytes are in hexadecimal digits.
        Value::String(text) => {
            told == format!("{text:?}") || told == text || told.contains(" bytes ")
        }
        _ => told == printed,
    };
    assert!(same, "{told}, not {value}");
}
