//! What may not be seen: one answer for all forms.
//!
//! The trap: a field that is new in Kafka, and holds a secret. Strings that look like secrets cannot
//! get past the generator without a role; bytes can hold anything, so they are withheld unless they
//! are listed here; and tagged fields that nobody knows, where the message is one that holds secrets.

use crate::layout::{Kind, Role};
use crate::types::{ApiKey, Direction};

/// Bytes that may be seen.
const SEEN: [(Direction, ApiKey, &str); 1] = [
    // Envelope: the address of a client, which addresses are no secret of anywhere else.
    (Direction::Request, ApiKey(58), "ClientHostAddress"),
];

/// Whether the content of a field must not be told.
pub(super) fn is_withheld(
    direction: Direction,
    api_key: ApiKey,
    name: &str,
    kind: Kind,
    role: Role,
) -> bool {
    let is_listed = || SEEN.contains(&(direction, api_key, name));
    role.is_secret() || matches!(kind, Kind::Bytes | Kind::Records) && !is_listed()
}
