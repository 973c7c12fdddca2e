//! Holds klamp's JSON against what Kafka's own classes write of the same message.

use crate::json::SIZE;
use crate::tree::{first_name, plain};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeSet;

/// Holds JSON against what Kafka's own classes write of the same message. Notes the names of what is
/// withheld.
pub(crate) fn check_like(
    json: &Value,
    kafka: &Value,
    withheld: &mut BTreeSet<String>,
) -> Result<(), String> {
    match (json, kafka) {
        (Value::Object(json), Value::Object(kafka)) => {
            let spelled = |name: &str| first_name(&plain(name)).to_owned();
            let theirs = |key: &str| kafka.iter().find(|(it, _)| spelled(it) == spelled(key));
            let mut sizes = 0;
            for (key, value) in json {
                let tell = |difference| format!("/{key}{difference}");
                let of = key.strip_suffix(SIZE).filter(|it| json.contains_key(*it));
                let (_, theirs) = theirs(of.unwrap_or(key)).ok_or(tell(": only here".into()))?;
                if of.is_some() {
                    let text = theirs.as_str().unwrap_or_default();
                    let sizes_of = [
                        Some(text.len()),
                        STANDARD.decode(text).ok().map(|it| it.len()),
                    ];
                    if !theirs.is_string()
                        || !sizes_of.contains(&value.as_u64().map(|n| n as usize))
                    {
                        return Err(tell(format!(" is {value}, not that of {theirs}")));
                    }
                    sizes += 1;
                } else if value.is_null() && json.contains_key(&format!("{key}{SIZE}")) {
                    withheld.insert(key.clone());
                } else {
                    check_like(value, theirs, withheld).map_err(tell)?;
                }
            }
            match json.len() - sizes == kafka.len() {
                true => Ok(()),
                false => Err(": something is missing".to_owned()),
            }
        }
        (Value::Array(json), Value::Array(kafka)) if json.len() == kafka.len() => {
            let mut pairs = json.iter().zip(kafka).enumerate();
            pairs.try_for_each(|(index, (json, kafka))| {
                let tell = |difference| format!("[{index}]{difference}");
                check_like(json, kafka, withheld).map_err(tell)
            })
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(1.0));
            // Neither reads nor prints the last bit for certain.
            match (a - b).abs() <= a.abs() * 4.0 * f64::EPSILON {
                true => Ok(()),
                false => Err(format!(" is {a}, not {b}")),
            }
        }
        _ if json == kafka => Ok(()),
        _ => Err(format!(" is {json}, not {kafka}")),
    }
}
