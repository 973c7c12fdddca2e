//! The names of API keys and error codes, in Kafka's own spelling.
//!
//! The trap: a code without a name is not an error and not one big `other`. It keeps its number
//! wherever it is shown (`UNNAMED_250`), and no name of Kafka's can collide with that form. A code
//! that has a name here may still be one that `kafka-protocol` does not know, and that matters to
//! those who use it: [`ErrorCode::is_beyond_kafka_protocol`].

use crate::generated::names::{APIS, ERRORS, FIRST_ERROR};
use crate::types::{ApiKey, ErrorCode};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiKey as Schema;
use std::fmt;

impl ApiKey {
    /// The API's name as in Kafka's message definitions, without `Request` (`Fetch`); `None` where
    /// nobody here knows the key.
    pub fn name(self) -> Option<&'static str> {
        *APIS.get(usize::try_from(self.0).ok()?)?
    }

    /// Whether `kafka-protocol` does not know the key, named or not.
    pub fn is_beyond_kafka_protocol(self) -> bool {
        Schema::try_from(self.0).is_err()
    }

    /// Every key that has a name, in ascending order.
    pub fn named() -> impl Iterator<Item = Self> {
        let keys = (0..).map(Self).zip(&APIS);
        keys.filter_map(|(key, name)| name.map(|_| key))
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

/// What codes were called before, in releases from 0.8.2 on; all others have had one name.
const OLDER_ERRORS: [(ErrorCode, &str); 5] = [
    (ErrorCode(-1), "UNKNOWN"),                         // still in 0.11
    (ErrorCode(6), "NOT_LEADER_FOR_PARTITION"),         // still in 2.4
    (ErrorCode(14), "GROUP_LOAD_IN_PROGRESS"),          // still in 0.10
    (ErrorCode(15), "GROUP_COORDINATOR_NOT_AVAILABLE"), // still in 0.10
    (ErrorCode(16), "NOT_COORDINATOR_FOR_GROUP"),       // still in 0.10
];

impl ErrorCode {
    /// The code of that name, in capitals or not, as it stands in the `Errors` of any release of Kafka's.
    pub fn of_name(name: &str) -> Option<Self> {
        let is = |own: &str| own.eq_ignore_ascii_case(name);
        let older = || OLDER_ERRORS.iter().find(|(_, older)| is(older));
        Self::named()
            .find(|code| code.name().is_some_and(is))
            .or_else(|| older().map(|(code, _)| *code))
    }

    /// The code's name as in Kafka's `Errors` (`NOT_LEADER_OR_FOLLOWER`, `NONE` for 0); `None` where
    /// nobody here knows the code.
    pub fn name(self) -> Option<&'static str> {
        let index = i32::from(self.0).checked_sub(i32::from(FIRST_ERROR))?;
        *ERRORS.get(usize::try_from(index).ok()?)?
    }

    /// Whether `kafka-protocol` does not know the code, named or not: a client that uses it cannot
    /// tell what went wrong.
    pub fn is_beyond_kafka_protocol(self) -> bool {
        let known = ResponseError::try_from_code(self.0);
        matches!(known, Some(ResponseError::Unknown(_)))
    }

    /// Every code that has a name, in ascending order, `NONE` included.
    pub fn named() -> impl Iterator<Item = Self> {
        let codes = (FIRST_ERROR..).map(Self).zip(&ERRORS);
        codes.filter_map(|(code, name)| name.map(|_| code))
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
