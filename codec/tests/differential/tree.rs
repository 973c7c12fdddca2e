//! What a walk over the full table tells, as a tree of named fields: to be held against what somebody
//! else says of the same bytes.
//!
//! The trap: roles come from the table too. So [`Struct::check_roles`] has rules of its own, by the
//! names of fields and a list of the messages that tell addresses.

use klamp_codec::layout::{Event, Kind, Progress, Role, Root, Value, Walker};
use klamp_codec::{ApiKey, Direction};

/// A message, or a struct in one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Struct {
    /// Known tagged fields among them, where they are not left out.
    pub(crate) fields: Vec<Field>,
    /// Tagged fields that are not known, those of the header first.
    pub(crate) unknown: Vec<(u32, Vec<u8>)>,
}

/// A field, or an element of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// In small letters without underscores, so that all spellings are one; of an array's for its
    /// elements.
    pub(crate) name: String,
    /// Not of arrays and structs, nor where somebody else says it.
    pub(crate) role: Option<Role>,
    pub(crate) value: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    /// A number or bool; of a float its bits.
    Int(i64),
    /// String, bytes, records or uuid.
    Bytes(Vec<u8>),
    List(Vec<Field>),
    Struct(Struct),
}

/// Names that differ from release to release: the newest one's, which the table has, and the oldest one's.
const RENAMED: [(&str, &str); 6] = [
    ("generationidormemberepoch", "generationid"),
    ("replicaepoch", "candidateepoch"),
    ("replicaid", "candidateid"),
    ("replicadirectoryid", "candidatedirectoryid"),
    ("configresources", "clientmetricsresources"),
    ("resourcename", "name"),
];

/// How names of topics are called, or arrays of them.
const TOPICS: [&str; 4] = ["topic", "topics", "topicname", "topicnames"];

/// How all spellings of a name become one.
pub(crate) fn plain(name: &str) -> String {
    name.replace('_', "").to_ascii_lowercase()
}

/// A plain name as the oldest release has it.
pub(crate) fn first_name(name: &str) -> &str {
    let renamed = RENAMED.iter().find(|(newest, _)| *newest == name);
    renamed.map_or(name, |(_, oldest)| oldest)
}

impl Struct {
    /// Reads `bytes`, all of them.
    pub(crate) fn read(root: Root, bytes: &[u8]) -> Result<Self, String> {
        let mut walker = Walker::new(root, bytes.len() as u32);
        let mut reader = Reader {
            root,
            bytes,
            open: vec![Open::Struct(String::new(), Self::default())],
            left: 0,
        };
        match walker.feed(bytes, &mut |event| reader.take(event)) {
            Ok((used, Progress::Done)) if used == bytes.len() => {}
            end => return Err(format!("{end:?} of {} bytes", bytes.len())),
        }
        match reader.open.pop() {
            Some(Open::Struct(_, message)) if reader.open.is_empty() => Ok(message),
            _ => Err("something is still open at the end".to_owned()),
        }
    }

    /// Holds all that was read against what somebody else `said`, who may also have said what is not
    /// in the bytes. Tells the first difference.
    pub(crate) fn check(&self, said: &Self) -> Result<(), String> {
        for field in &self.fields {
            let said = said.field(&field.name);
            let said = said.ok_or_else(|| format!("/{}: nobody else has it", field.name))?;
            let tell = |difference| format!("/{}{difference}", field.name);
            field.value.check(&said.value).map_err(tell)?;
        }
        match self.unknown == said.unknown {
            true => Ok(()),
            false => Err(format!(
                ": {:?}, not {:?}, are the unknown tagged fields",
                self.unknown, said.unknown
            )),
        }
    }

    /// The field of that plain name, by which release's spelling whatever.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let mut fields = self.fields.iter();
        fields.find(|it| it.first_name() == first_name(name))
    }

    /// Holds the roles of what was read against what names say of them.
    pub(crate) fn check_roles(&self, direction: Direction, api_key: ApiKey) -> Result<(), String> {
        let message = Message { direction, api_key };
        self.fields
            .iter()
            .try_for_each(|field| message.check(&mut vec![&field.name], field, &self.fields))
    }

    /// The paths of all fields, at any depth, and whether each has a value other than none, 0 or empty.
    pub(crate) fn paths(&self, around: &str, see: &mut impl FnMut(String, bool)) {
        for field in &self.fields {
            let path = format!("{around}/{}", field.first_name());
            let inner = match &field.value {
                Node::List(elements) => elements.iter().map(|it| &it.value).collect(),
                value => vec![value],
            };
            for value in inner {
                if let Node::Struct(inner) = value {
                    inner.paths(&path, see);
                }
            }
            let empty = match &field.value {
                Node::Null | Node::Int(0) => true,
                Node::Bytes(bytes) => bytes.is_empty(),
                Node::List(elements) => elements.is_empty(),
                Node::Int(_) | Node::Struct(_) => false,
            };
            see(path, !empty);
        }
    }

    /// Whether a field of that name is null, at any depth.
    pub(crate) fn has_null(&self, name: &str) -> bool {
        self.fields.iter().any(|field| match &field.value {
            Node::Null => field.name == name,
            Node::List(elements) => elements.iter().any(|it| match &it.value {
                Node::Struct(inner) => inner.has_null(name),
                _ => false,
            }),
            Node::Struct(inner) => inner.has_null(name),
            Node::Int(_) | Node::Bytes(_) => false,
        })
    }
}

impl Field {
    /// As the oldest release has it.
    fn first_name(&self) -> &str {
        first_name(&self.name)
    }
}

impl Node {
    fn check(&self, said: &Self) -> Result<(), String> {
        match (self, said) {
            (Self::Struct(read), Self::Struct(said)) => read.check(said),
            (Self::List(read), Self::List(said)) if read.len() == said.len() => {
                let pairs = read.iter().zip(said).enumerate();
                pairs.into_iter().try_for_each(|(index, (read, said))| {
                    let tell = |difference| format!("[{index}]{difference}");
                    read.value.check(&said.value).map_err(tell)
                })
            }
            (read, said) if read == said => Ok(()),
            (read, said) => Err(format!(": {read:?}, not {said:?}")),
        }
    }
}

struct Message {
    direction: Direction,
    api_key: ApiKey,
}

impl Message {
    fn check<'a>(
        &self,
        path: &mut Vec<&'a str>,
        field: &'a Field,
        siblings: &'a [Field],
    ) -> Result<(), String> {
        let wanted = self.role(path, &field.value, siblings);
        let watched = [
            Role::ErrorCode,
            Role::ThrottleTime,
            Role::NodeId,
            Role::Host,
            Role::Port,
            Role::TopicName,
            Role::TopicId,
            Role::Records,
            Role::Acks,
            Role::SaslBytes,
            Role::Credential,
        ];
        let is = field.role.filter(|role| watched.contains(role));
        if field.role.is_some() && is != wanted {
            let (path, role) = (path.join("/"), field.role);
            return Err(format!("{path} is {role:?}, not {wanted:?}"));
        }
        match &field.value {
            Node::List(elements) => elements
                .iter()
                .try_for_each(|element| self.check(path, element, siblings)),
            Node::Struct(inner) => inner.fields.iter().try_for_each(|field| {
                path.push(&field.name);
                self.check(path, field, &inner.fields)?;
                path.pop();
                Ok(())
            }),
            Node::Null | Node::Int(_) | Node::Bytes(_) => Ok(()),
        }
    }

    fn role(&self, path: &[&str], value: &Node, siblings: &[Field]) -> Option<Role> {
        let name = *path.last()?;
        let around = path.iter().rev().nth(1).copied().unwrap_or_default();
        let responds = self.direction == Direction::Response;
        let key = self.api_key.0;
        let tells_addresses = responds && [0, 1, 3, 10, 60, 78, 79].contains(&key);
        let is_address = tells_addresses && siblings.iter().any(|it| it.name == "host");
        let is_text = matches!(value, Node::Bytes(_) | Node::Null);
        let is_of_topic = match around {
            "responses" | "results" => [0, 20, 37, 45].contains(&key),
            around => around.contains("topic"),
        };
        match name {
            "throttletimems" if responds && path.len() == 1 => Some(Role::ThrottleTime),
            "nodeid" | "brokerid" if is_address => Some(Role::NodeId),
            "host" if is_address => Some(Role::Host),
            "port" if is_address => Some(Role::Port),
            "topicid" => Some(Role::TopicId),
            "name" if is_of_topic => Some(Role::TopicName),
            _ if is_text && TOPICS.iter().any(|it| name.ends_with(it)) => Some(Role::TopicName),
            "records" | "unalignedrecords" => Some(Role::Records),
            "acks" => Some(Role::Acks),
            "authbytes" => Some(Role::SaslBytes),
            "hmac" | "salt" | "saltedpassword" => Some(Role::Credential),
            _ if name.ends_with("errorcode") && responds => Some(Role::ErrorCode),
            _ => None,
        }
    }
}

/// Makes a tree of events.
struct Reader<'a> {
    root: Root,
    bytes: &'a [u8],
    /// What is not closed yet, the message first.
    open: Vec<Open>,
    /// Bytes that the last string still lacks.
    left: u32,
}

enum Open {
    Struct(String, Struct),
    List(String, Vec<Field>),
    /// An element of the list beneath.
    Element(Struct),
}

impl Reader<'_> {
    fn take(&mut self, event: Event<'_>) {
        let Event {
            role, at, value, ..
        } = event;
        assert_eq!(self.left, 0, "all bytes are there, so strings are whole");
        let field = self.root.field(event.field);
        let name = || plain(field.map_or("", |field| field.name));
        let bytes = |len: u32| self.bytes[at as usize..(at + len) as usize].to_vec();
        match value {
            Value::Int(n) => {
                let value = Node::Int(n);
                self.add(name(), Some(role), value);
            }
            Value::Null => {
                let kind = field.map(|field| field.kind);
                let has_role = !matches!(kind, Some(Kind::Array | Kind::Struct));
                self.add(name(), has_role.then_some(role), Node::Null);
            }
            Value::Piece(piece, left) => {
                self.left = left;
                self.add(name(), Some(role), Node::Bytes(piece.to_vec()));
            }
            Value::Skipped(len) => self.add(name(), Some(role), Node::Bytes(bytes(len))),
            Value::UnknownTag(number, size) => {
                let unknown = (number, bytes(size));
                self.fields().unknown.push(unknown);
            }
            Value::TagSize(_) => assert_eq!(role, Role::TagSize),
            Value::Struct => self.open.push(Open::Struct(name(), Struct::default())),
            Value::Count(_) => {
                assert_eq!(field.map(|field| field.kind), Some(Kind::Array));
                self.open.push(Open::List(name(), Vec::new()));
            }
            Value::Element => {
                self.end_element();
                self.open.push(Open::Element(Struct::default()));
            }
            Value::End => {
                self.end_element();
                match self.open.pop() {
                    Some(Open::Struct(name, inner)) => self.add(name, None, Node::Struct(inner)),
                    Some(Open::List(name, list)) => self.add(name, None, Node::List(list)),
                    Some(Open::Element(_)) | None => unreachable!("an end without a begin"),
                }
            }
        }
    }

    fn add(&mut self, name: String, role: Option<Role>, value: Node) {
        self.fields().fields.push(Field { name, role, value });
    }

    /// Of the innermost struct or element.
    fn fields(&mut self) -> &mut Struct {
        match self.open.last_mut() {
            Some(Open::Struct(_, inner) | Open::Element(inner)) => inner,
            Some(Open::List(..)) | None => unreachable!("a field outside of all structs"),
        }
    }

    fn end_element(&mut self) {
        if !matches!(self.open.last(), Some(Open::Element(_))) {
            return;
        }
        let Some(Open::Element(mut inner)) = self.open.pop() else {
            return;
        };
        let Some(Open::List(name, elements)) = self.open.last_mut() else {
            unreachable!("an element outside of all arrays");
        };
        let name = name.clone();
        // One that is no struct has no name of its own.
        elements.push(match inner.fields.as_slice() {
            [it] if it.name.is_empty() => Field {
                name,
                ..inner.fields.remove(0)
            },
            _ => Field {
                name,
                role: None,
                value: Node::Struct(inner),
            },
        });
    }
}
