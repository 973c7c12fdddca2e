//! What each field means to klamp: by rule where the definitions allow it, by a short list else.
//!
//! The trap: a field that klamp must know of and does not. An error code, an address or a secret that
//! gets no role fails the run; what only looks like one stands in a list with the reason, and an
//! entry that nothing needs any more fails the run too.

use crate::definition;
use crate::message::{Direction, Key, Kind, Scalar};
use anyhow::{Result, bail, ensure};
use std::collections::BTreeSet;

/// The roles of `klamp_codec::layout::Role`, by the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Acks,
    ConfigValue,
    Credential,
    Envelope,
    ErrorCode,
    FinalizedFeature,
    FinalizedLevel,
    GroupData,
    GroupId,
    Host,
    Mechanism,
    NodeId,
    /// None of the others: only the full table tells of it.
    Other,
    Port,
    Records,
    ReplicaId,
    RowKey,
    RowMax,
    RowMin,
    SaslBytes,
    SoftwareName,
    SoftwareVersion,
    Telemetry,
    ThrottleTime,
    TopicId,
    TopicName,
    TransactionalId,
    VersionRows,
    Wait,
}

/// Whether what the field holds is nobody's business but the client's and the broker's:
/// `klamp_codec::layout::Role::is_withheld`.
pub(crate) fn is_withheld(role: Role) -> bool {
    matches!(
        role,
        Role::ConfigValue
            | Role::Credential
            | Role::Envelope
            | Role::GroupData
            | Role::Records
            | Role::SaslBytes
            | Role::Telemetry
    )
}

/// Whether the data path looks for `role` in this message.
pub(crate) fn is_hot(role: Role, key: Key) -> bool {
    match role {
        // Whoever keeps frames must know where what they may not keep stands.
        _ if is_withheld(role) => true,
        Role::Acks
        | Role::ErrorCode
        | Role::FinalizedFeature
        | Role::FinalizedLevel
        | Role::Host
        | Role::Mechanism
        | Role::NodeId
        | Role::Port
        | Role::RowKey
        | Role::RowMax
        | Role::RowMin
        | Role::SoftwareName
        | Role::SoftwareVersion
        | Role::ThrottleTime
        | Role::VersionRows
        | Role::Wait => true,
        // A broker that replicates through klamp is worth a warning.
        Role::ReplicaId => key.api_key == 1 && key.direction == Direction::Request,
        // For the verdict on a Produce that nobody answers.
        Role::TopicId | Role::TopicName => key.api_key == 0 && key.direction == Direction::Request,
        _ => false,
    }
}

/// Fields that no rule finds.
const LISTED: [(&str, Role); 16] = [
    ("ProduceRequest/Acks", Role::Acks),
    ("SaslHandshakeRequest/Mechanism", Role::Mechanism),
    ("ApiVersionsRequest/ClientSoftwareName", Role::SoftwareName),
    (
        "ApiVersionsRequest/ClientSoftwareVersion",
        Role::SoftwareVersion,
    ),
    ("ApiVersionsResponse/ApiKeys", Role::VersionRows),
    ("ApiVersionsResponse/ApiKeys/ApiKey", Role::RowKey),
    ("ApiVersionsResponse/ApiKeys/MinVersion", Role::RowMin),
    ("ApiVersionsResponse/ApiKeys/MaxVersion", Role::RowMax),
    (
        "ApiVersionsResponse/FinalizedFeatures/Name",
        Role::FinalizedFeature,
    ),
    (
        "ApiVersionsResponse/FinalizedFeatures/MaxVersionLevel",
        Role::FinalizedLevel,
    ),
    (
        "OffsetCommitRequest/Topics/Partitions/CommittedMetadata",
        Role::GroupData,
    ),
    (
        "TxnOffsetCommitRequest/Topics/Partitions/CommittedMetadata",
        Role::GroupData,
    ),
    // Brokers repeat a value that they refuse ("Invalid value ... for configuration ...").
    (
        "AlterConfigsResponse/Responses/ErrorMessage",
        Role::ConfigValue,
    ),
    (
        "IncrementalAlterConfigsResponse/Responses/ErrorMessage",
        Role::ConfigValue,
    ),
    (
        "CreateTopicsResponse/Topics/ErrorMessage",
        Role::ConfigValue,
    ),
    // The broker answers when all have joined again, for which it gives them this time.
    ("JoinGroupRequest/RebalanceTimeoutMs", Role::Wait),
];

/// Structs with an address that no client follows.
const NOT_FOLLOWED: [(&str, &str); 10] = [
    ("BeginQuorumEpochResponse/NodeEndpoints", CONTROLLERS),
    ("EndQuorumEpochResponse/NodeEndpoints", CONTROLLERS),
    ("FetchSnapshotResponse/NodeEndpoints", CONTROLLERS),
    ("VoteResponse/NodeEndpoints", CONTROLLERS),
    ("DescribeQuorumResponse/Nodes/Listeners", CONTROLLERS),
    ("UpdateRaftVoterResponse/CurrentLeader", CONTROLLERS),
    (
        "StreamsGroupHeartbeatResponse/PartitionsByUserEndpoint/UserEndpoint",
        APPLICATION,
    ),
    (
        "StreamsGroupDescribeResponse/Groups/Members/UserEndpoint",
        APPLICATION,
    ),
    ("DeleteAclsResponse/FilterResults/MatchingAcls", PATTERN),
    ("DescribeAclsResponse/Resources/Acls", PATTERN),
];

/// Fields that look like an address, a secret or a wait and are none: bytes look like a secret whatever
/// their name is, so this is the list of those that may be seen.
const NONE: [(&str, &str); 17] = [
    (
        "ConsumerGroupDescribeResponse/Groups/Members/ClientHost",
        CLIENT,
    ),
    ("DescribeGroupsResponse/Groups/Members/ClientHost", CLIENT),
    (
        "ShareGroupDescribeResponse/Groups/Members/ClientHost",
        CLIENT,
    ),
    (
        "StreamsGroupDescribeResponse/Groups/Members/ClientHost",
        CLIENT,
    ),
    ("EnvelopeRequest/ClientHostAddress", CLIENT),
    ("CreateDelegationTokenResponse/TokenId", PUBLIC),
    (
        "CreateDelegationTokenResponse/TokenRequesterPrincipalName",
        PUBLIC,
    ),
    (
        "CreateDelegationTokenResponse/TokenRequesterPrincipalType",
        PUBLIC,
    ),
    ("DescribeDelegationTokenResponse/Tokens/TokenId", PUBLIC),
    (
        "DescribeDelegationTokenResponse/Tokens/TokenRequesterPrincipalName",
        PUBLIC,
    ),
    (
        "DescribeDelegationTokenResponse/Tokens/TokenRequesterPrincipalType",
        PUBLIC,
    ),
    (
        "StreamsGroupDescribeResponse/Groups/Members/ClientTags/Value",
        PUBLIC,
    ),
    ("StreamsGroupHeartbeatRequest/ClientTags/Value", PUBLIC),
    ("JoinGroupRequest/SessionTimeoutMs", LATER),
    ("ConsumerGroupHeartbeatRequest/RebalanceTimeoutMs", LATER),
    ("StreamsGroupHeartbeatRequest/RebalanceTimeoutMs", LATER),
    ("InitProducerIdRequest/TransactionTimeoutMs", LATER),
];

const CONTROLLERS: &str = "where controllers and brokers find each other";
const APPLICATION: &str = "of an application's own instances";
const PATTERN: &str = "what an ACL allows";
const CLIENT: &str = "of a client";
const PUBLIC: &str = "a name that anybody may know";
const LATER: &str = "about what follows; the broker answers at once";

const ADDRESS: &str = "an address";

/// How many fields have a role by list.
pub(crate) fn by_list() -> usize {
    LISTED.len()
}

/// A field in its place.
pub(crate) struct Site<'a> {
    pub(crate) message: &'a str,
    pub(crate) key: Key,
    /// Names from the message to the field, its own included.
    pub(crate) path: &'a [&'a str],
    /// The fields of the same struct in the same version, itself included.
    pub(crate) siblings: &'a [&'a definition::Field],
    pub(crate) entity_type: Option<&'a str>,
    /// Of the field, or of its elements.
    pub(crate) kind: &'a Kind,
    pub(crate) is_array: bool,
}

/// Gives roles, and remembers which entries of the lists were of use.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    used: BTreeSet<&'static str>,
}

impl Roles {
    /// The role of a field.
    ///
    /// # Errors
    /// Where it looks like something that klamp must know of and nothing says what it is.
    pub(crate) fn role(&mut self, site: &Site<'_>) -> Result<Option<Role>> {
        let path = format!("{}/{}", site.message, site.path.join("/"));
        if let Some((path, role)) = LISTED.iter().find(|(listed, _)| *listed == path) {
            self.used.insert(path);
            return Ok(Some(*role));
        }
        if let Some(role) = site.by_rule()? {
            return Ok(Some(role));
        }
        if let Some(suspicion) = site.suspicion() {
            let around = path.rsplit_once('/').map_or("", |(around, _)| around);
            let not_followed = NOT_FOLLOWED
                .iter()
                .filter(|(it, _)| suspicion == ADDRESS && *it == around);
            let none = NONE.iter().filter(|(it, _)| *it == path);
            let Some((entry, _)) = not_followed.chain(none).next() else {
                bail!("it looks like {suspicion} and has no role: say in role.rs what it is");
            };
            self.used.insert(entry);
        }
        Ok(None)
    }

    /// Fails where an entry of a list was of no use.
    pub(crate) fn finish(&self) -> Result<()> {
        let listed = LISTED.iter().map(|(path, _)| path);
        let none = NOT_FOLLOWED.iter().chain(&NONE).map(|(path, _)| path);
        for path in listed.chain(none) {
            ensure!(self.used.contains(path), "{path} in role.rs is of no use");
        }
        Ok(())
    }
}

impl Site<'_> {
    fn by_rule(&self) -> Result<Option<Role>> {
        let name = self.name();
        let is_request = self.key.direction == Direction::Request;
        let is_top = self.path.len() == 1;
        Ok(Some(match self.kind {
            Kind::Scalar(Scalar::Int16) if !is_request && name.ends_with("ErrorCode") => {
                ensure!(!self.is_array, "an array of error codes");
                Role::ErrorCode
            }
            Kind::Scalar(Scalar::Int32) if !is_request && is_top && name == "ThrottleTimeMs" => {
                Role::ThrottleTime
            }
            Kind::Scalar(Scalar::Int32) if is_request && is_top && self.asks_for_a_wait() => {
                Role::Wait
            }
            Kind::Scalar(Scalar::Int32) if is_request && name == "ReplicaId" => Role::ReplicaId,
            Kind::Scalar(Scalar::Uuid) if name == "TopicId" => Role::TopicId,
            Kind::Scalar(Scalar::Int32) | Kind::String if self.is_of_broker_address() => match name
            {
                "NodeId" | "BrokerId" => Role::NodeId,
                "Host" => Role::Host,
                "Port" => Role::Port,
                _ => return Ok(None),
            },
            Kind::String => match (self.entity_type, name) {
                (Some("topicName"), _) => Role::TopicName,
                (Some("groupId"), _) | (_, "GroupId") => Role::GroupId,
                (Some("transactionalId"), _) => Role::TransactionalId,
                (_, "Value") if self.is_of_config() => Role::ConfigValue,
                // What a consumer commits beside an offset.
                (_, "Metadata") => Role::GroupData,
                _ => return Ok(None),
            },
            Kind::Records => Role::Records,
            Kind::Bytes => match name {
                "AuthBytes" => Role::SaslBytes,
                "Hmac" | "Salt" | "SaltedPassword" => Role::Credential,
                "Metrics" => Role::Telemetry,
                "RequestData" | "RequestPrincipal" | "ResponseData" => Role::Envelope,
                // What the members of a group tell each other.
                "Assignment" | "MemberAssignment" | "MemberMetadata" | "Metadata" => {
                    Role::GroupData
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// What a field without a role must not be.
    fn suspicion(&self) -> Option<&'static str> {
        let name = self.name().to_ascii_lowercase();
        let is_request = self.key.direction == Direction::Request;
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        match self.kind {
            Kind::Struct(_) => None,
            _ if name.ends_with("errorcode") => Some("an error code"),
            _ if name == "throttletimems" => Some("a throttle time"),
            // A client follows only what it is told.
            _ if !is_request && (has(&["host"]) || name.ends_with("port")) => Some(ADDRESS),
            Kind::Bytes => Some("a secret"),
            Kind::String
                if name == "value"
                    || has(&[
                        "auth",
                        "credential",
                        "hmac",
                        "password",
                        "salt",
                        "secret",
                        "token",
                    ]) =>
            {
                Some("a secret")
            }
            Kind::Scalar(_) if is_request && name.ends_with("ms") && has(&["timeout", "wait"]) => {
                Some("a wait")
            }
            _ => None,
        }
    }

    fn name(&self) -> &str {
        self.path.last().copied().unwrap_or_default()
    }

    /// JoinGroup v0 has no rebalance timeout: the session timeout stood for both.
    fn asks_for_a_wait(&self) -> bool {
        match self.name() {
            "MaxWaitMs" | "TimeoutMs" | "timeoutMs" => true,
            "SessionTimeoutMs" => self.message == "JoinGroupRequest" && self.key.version == 0,
            _ => false,
        }
    }

    /// A response tells the id of a broker with its host and port: a client may connect there. What
    /// controllers tell each other has uint16 ports.
    fn is_of_broker_address(&self) -> bool {
        let sibling = |names: &[&str], type_name: &str| {
            let is = |it: &&definition::Field| {
                names.contains(&it.name.as_str()) && it.type_name == type_name
            };
            self.siblings.iter().any(is)
        };
        self.key.direction == Direction::Response
            && !self.is_array
            && sibling(&["NodeId", "BrokerId"], "int32")
            && sibling(&["Host"], "string")
            && sibling(&["Port"], "int32")
    }

    fn is_of_config(&self) -> bool {
        let around = self.path.iter().rev().nth(1);
        around.is_some_and(|it| matches!(*it, "Configs" | "Synonyms" | "TopicConfigs"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Definition;
    use crate::message::{Field, Message};

    /// The first field of a message of `direction`.
    fn first(direction: Direction, fields: &str) -> Result<Field> {
        let text = format!(
            r#"{{ "type": "request", "name": "X", "validVersions": "0", "flexibleVersions": "0+",
                 "fields": [{fields}] }}"#
        );
        let definition = Definition::read(&text)?;
        let key = Key {
            api_key: 999,
            direction,
            version: 0,
        };
        let message = Message::new(&definition, key, &mut Roles::default())?;
        Ok(message.body.fields[0].clone())
    }

    fn field(name: &str, type_name: &str) -> String {
        format!(r#"{{ "name": "{name}", "type": "{type_name}", "versions": "0+" }}"#)
    }

    #[test]
    fn what_looks_as_if_it_mattered_and_has_no_role_fails() {
        use Direction::{Request, Response};
        for (direction, name, type_name) in [
            (Response, "Host", "string"),
            (Response, "Port", "int32"),
            (Response, "LeaderHost", "string"),
            (Request, "ErrorCode", "int16"),
            (Response, "ErrorCode", "int32"),
            (Response, "ErrorCode", "[]int16"),
            (Request, "ThrottleTimeMs", "int32"),
            (Request, "Password", "string"),
            (Response, "SessionToken", "string"),
            (Response, "Value", "string"),
            (Request, "Blob", "bytes"),
            (Request, "CommitTimeoutMs", "int32"),
            (Request, "MaxWaitTimeMs", "int64"),
        ] {
            let error = first(direction, &field(name, type_name)).expect_err(name);
            let told = format!("{error:#}");
            assert!(told.contains("role") || told.contains("array"), "{told}");
        }
    }

    #[test]
    fn a_new_field_of_a_known_kind_gets_its_role_by_rule() {
        let role = |direction, fields: &str| first(direction, fields).expect("it is known").role;
        let leader = [
            field("Host", "string"),
            field("NodeId", "int32"),
            field("Port", "int32"),
        ];
        let leader = leader.join(",");
        assert_eq!(role(Direction::Response, &leader), Some(Role::Host));
        assert_eq!(
            role(Direction::Request, &leader),
            None,
            "nobody follows a request"
        );
        let code = field("GroupErrorCode", "int16");
        assert_eq!(role(Direction::Response, &code), Some(Role::ErrorCode));
        let wait = field("TimeoutMs", "int32");
        assert_eq!(role(Direction::Request, &wait), Some(Role::Wait));
        assert_eq!(role(Direction::Response, &field("Epoch", "int32")), None);
    }

    #[test]
    fn an_entry_that_nothing_needs_any_more_fails() {
        assert!(Roles::default().finish().is_err());
    }
}
