//! A message definition as Kafka writes it, in JSON with comments.
//!
//! The trap: an attribute that is new in Kafka may change how a message looks on the wire. So an
//! attribute that is not listed here, be it to ignore it, fails the run.

use anyhow::Result;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};

/// One file of `common/message`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Definition {
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    pub(crate) api_key: Option<i16>,
    pub(crate) name: String,
    pub(crate) valid_versions: Versions,
    /// Not there where no version is valid.
    #[serde(default)]
    pub(crate) flexible_versions: Versions,
    /// Brokers do not speak the last version unless they are told to.
    #[serde(default)]
    pub(crate) latest_version_unstable: bool,
    #[serde(default)]
    pub(crate) listeners: Vec<String>,
    #[serde(default)]
    pub(crate) fields: Vec<Field>,
    #[serde(default)]
    pub(crate) common_structs: Vec<CommonStruct>,
    #[serde(rename = "deprecatedVersions")]
    _deprecated_versions: Option<IgnoredAny>,
}

impl Definition {
    pub(crate) fn read(text: &str) -> Result<Self> {
        // Of an attribute that is there twice (in 3.9) the last counts, as it does for Kafka.
        let json: serde_json::Value = json5::from_str(text)?;
        Ok(serde_json::from_value(json)?)
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    Request,
    Response,
    Header,
    /// No message but a record's key or value.
    Data,
    Metadata,
    CoordinatorKey,
    CoordinatorValue,
}

/// A field of a message or struct.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Field {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) versions: Versions,
    #[serde(default)]
    pub(crate) nullable_versions: Versions,
    #[serde(default)]
    pub(crate) tagged_versions: Versions,
    #[serde(default, deserialize_with = "number")]
    pub(crate) tag: Option<u32>,
    /// Only in headers: a field that stays classic in flexible versions.
    pub(crate) flexible_versions: Option<Versions>,
    pub(crate) entity_type: Option<String>,
    /// The fields of the struct that is defined where it is used; else it is a common one.
    pub(crate) fields: Option<Vec<Field>>,
    #[serde(rename = "about")]
    _about: Option<IgnoredAny>,
    #[serde(rename = "default")]
    _default: Option<IgnoredAny>,
    #[serde(rename = "ignorable")]
    _ignorable: Option<IgnoredAny>,
    #[serde(rename = "mapKey")]
    _map_key: Option<IgnoredAny>,
    #[serde(rename = "zeroCopy")]
    _zero_copy: Option<IgnoredAny>,
}

/// A struct that several fields may have as their type.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommonStruct {
    pub(crate) name: String,
    pub(crate) versions: Versions,
    pub(crate) fields: Vec<Field>,
}

/// The first and the last version that something is in; none where the first is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) first: i16,
    pub(crate) last: i16,
}

impl Versions {
    const NONE: Self = Self { first: 0, last: -1 };

    pub(crate) fn contains(self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }

    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = i16> {
        self.first..=self.last
    }

    /// `none`, an empty string, `3`, `0-4` or `3+`.
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "none" | "" => Self::NONE,
            _ => match (text.strip_suffix('+'), text.split_once('-')) {
                (Some(first), _) => Self {
                    first: first.parse().ok()?,
                    last: i16::MAX,
                },
                (None, Some((first, last))) => Self {
                    first: first.parse().ok()?,
                    last: last.parse().ok()?,
                },
                (None, None) => Self {
                    first: text.parse().ok()?,
                    last: text.parse().ok()?,
                },
            },
        })
    }
}

impl Default for Versions {
    fn default() -> Self {
        Self::NONE
    }
}

impl<'de> Deserialize<'de> for Versions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("no versions: {text:?}")))
    }
}

/// A tag, which some definitions write as a string.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Tag {
        Number(u32),
        Text(String),
    }
    match Tag::deserialize(from)? {
        Tag::Number(number) => Ok(Some(number)),
        Tag::Text(text) => text.parse().map(Some).map_err(D::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_every_form() {
        let parse = |text| Versions::parse(text).map(|it| (it.first, it.last));
        assert_eq!(parse("none"), Some((0, -1)));
        assert_eq!(parse(""), Some((0, -1)));
        assert_eq!(parse("3"), Some((3, 3)));
        assert_eq!(parse("0-4"), Some((0, 4)));
        assert_eq!(parse("3+"), Some((3, i16::MAX)));
        assert_eq!(parse("all"), None);
    }

    #[test]
    fn comments_are_skipped_but_not_inside_strings() {
        let text = r#"// before the brace
            { "type": "request", "apiKey": 1, "name": "XRequest", "validVersions": "0", // behind
              "fields": [
                { "name": "A", "type": "int8", "versions": "0+", "tag": "3", "taggedVersions": "0+",
                  "default": "0x7f", "about": "as in http://example.com" },
                { "name": "B", "type": "bool", "versions": "0+", "default": false }
              ] }"#;
        let definition = Definition::read(text).expect("it is a definition");
        let names = definition.fields.iter().map(|field| field.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!(definition.fields[0].tag, Some(3));
    }

    #[test]
    fn an_attribute_that_nobody_knows_fails() {
        let text = r#"{ "type": "data", "name": "X", "validVersions": "0", "packed": true }"#;
        let error = Definition::read(text).expect_err("packed is not known");
        assert!(error.to_string().contains("packed"), "{error}");
    }
}
