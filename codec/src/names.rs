//! The names of API keys and error codes, in Kafka's own spelling.
//!
//! The trap: a code without a name is not an error and not one big `other`. It keeps its number
//! wherever it is shown (`UNNAMED_250`), and no name of Kafka's can collide with that form.

use crate::types::{ApiKey, ErrorCode};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiKey as Schema;
use std::fmt;
use std::sync::LazyLock;

impl ApiKey {
    /// The API's name as in Kafka's message definitions, without `Request` (`Fetch`); `None` where
    /// nobody here knows the key.
    pub fn name(self) -> Option<&'static str> {
        API_NAMES.get(usize::try_from(self.0).ok()?)?.as_deref()
    }

    /// Every key that has a name, in ascending order.
    pub fn named() -> impl Iterator<Item = Self> {
        Schema::iter().map(|key| Self(key as i16))
    }
}

impl fmt::Display for ApiKey {
    /// The name, or the number where there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => self.0.fmt(f),
        }
    }
}

impl ErrorCode {
    /// The code's name as in Kafka's `Errors` (`NOT_LEADER_OR_FOLLOWER`, `NONE` for 0); `None` where
    /// nobody here knows the code.
    pub fn name(self) -> Option<&'static str> {
        let index = i32::from(self.0).checked_sub(i32::from(LOWEST_CODE))?;
        ERROR_NAMES.get(usize::try_from(index).ok()?)?.as_deref()
    }

    /// Every code that has a name, in ascending order, `NONE` included.
    pub fn named() -> impl Iterator<Item = Self> {
        (LOWEST_CODE..=i16::MAX)
            .take(ERROR_NAMES.len())
            .map(Self)
            .filter(|code| code.name().is_some())
    }
}

impl fmt::Display for ErrorCode {
    /// The name, or `UNNAMED_` and the number where there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&format!("UNNAMED_{}", self.0)),
        }
    }
}

/// The lowest code that Kafka defines: `UNKNOWN_SERVER_ERROR`.
const LOWEST_CODE: i16 = -1;

/// By key; made once, so that a name costs an index on the hot path.
static API_NAMES: LazyLock<Box<[Option<Box<str>>]>> = LazyLock::new(|| {
    trimmed((0..=i16::MAX).map(|key| {
        let key = Schema::try_from(key).ok()?;
        Some(format!("{key:?}").into())
    }))
});

/// By code, from [`LOWEST_CODE`] up.
static ERROR_NAMES: LazyLock<Box<[Option<Box<str>>]>> = LazyLock::new(|| {
    trimmed(
        (LOWEST_CODE..=i16::MAX).map(|code| match ResponseError::try_from_code(code) {
            None => Some("NONE".into()),
            Some(ResponseError::Unknown(_)) => None,
            Some(error) => Some(kafka_spelling(&format!("{error:?}"))),
        }),
    )
});

/// All names up to the last one that there is.
fn trimmed(names: impl DoubleEndedIterator<Item = Option<Box<str>>>) -> Box<[Option<Box<str>>]> {
    let mut last_first: Vec<_> = names.rev().skip_while(Option::is_none).collect();
    last_first.reverse();
    last_first.into()
}

/// `NotLeaderOrFollower` to `NOT_LEADER_OR_FOLLOWER`.
fn kafka_spelling(variant: &str) -> Box<str> {
    let mut name = String::with_capacity(variant.len().saturating_mul(2));
    for letter in variant.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name.into()
}
