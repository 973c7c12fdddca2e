//! A message as one line of JSON, in the shape of the request log of Kafka's own brokers (KIP-673).
//!
//! The names are those of Kafka's generated `JsonConverter` classes: the definitions' in camel case,
//! `...SizeInBytes` for records. What may not be seen is null, with its size beside it. What klamp
//! adds stands beside the message: `trailingBytes`, `broken`.

use super::form::{Batch, ClientId, End, Form, Head, Scope, Shown, UnknownTag};
use super::plain::is_plain;
use crate::types::ApiKey;
use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::fmt::{self, Write as _};

/// Writes a line of JSON.
#[derive(Debug, Default)]
pub struct Json {
    out: String,
    /// Whether something stands before the next value in what is open.
    follows: bool,
    open: Vec<Open>,
}

/// What has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// The whole line, the header, the message, a struct.
    Struct,
    Values,
    Structs,
    /// A struct in an array.
    Element,
}

impl Json {
    fn write(&mut self, what: fmt::Arguments<'_>) {
        // A String takes all.
        let _ = self.out.write_fmt(what);
    }

    fn comma(&mut self) {
        if std::mem::replace(&mut self.follows, true) {
            self.out.push(',');
        }
    }

    /// Where a value begins: its name, if it has one, in camel case.
    fn key(&mut self, name: &str, suffix: &str) {
        self.comma();
        let mut chars = name.chars();
        if let Some(first) = chars.next() {
            let first = first.to_ascii_lowercase();
            self.write(format_args!("\"{first}{}{suffix}\":", chars.as_str()));
        }
    }

    fn field(&mut self, name: &str, value: fmt::Arguments<'_>) {
        self.key(name, "");
        self.write(value);
    }

    fn open(&mut self, what: Open) {
        self.out.push(match what {
            Open::Struct | Open::Element => '{',
            Open::Values | Open::Structs => '[',
        });
        self.open.push(what);
        self.follows = false;
    }

    fn close(&mut self) {
        if let Some(open) = self.open.pop() {
            self.out.push(match open {
                Open::Struct | Open::Element => '}',
                Open::Values | Open::Structs => ']',
            });
            self.follows = true;
        }
    }

    fn close_element(&mut self) {
        if self.open.last() == Some(&Open::Element) {
            self.close();
        }
    }

    fn string(&mut self, text: &str) {
        self.write(format_args!("{}", Escaped(text)));
    }
}

impl Form for Json {
    fn head(&mut self, head: &Head<'_>) {
        self.open(Open::Struct);
        // Of a response too, since it says nothing of itself.
        self.key("requestHeader", "");
        self.open(Open::Struct);
        self.field("requestApiKey", format_args!("{}", head.api_key.0));
        self.field("requestApiVersion", format_args!("{}", head.api_version));
        self.field("correlationId", format_args!("{}", head.correlation_id));
        match head.client_id {
            ClientId::None => {}
            ClientId::Null => self.field("clientId", format_args!("null")),
            ClientId::Is(id) => {
                self.key("clientId", "");
                self.string(&String::from_utf8_lossy(id));
            }
        }
        if let Some(name) = constant_name(head.api_key) {
            self.field("requestApiKeyName", format_args!("\"{name}\""));
        }
        self.close();
        if head.has_body {
            self.key(head.direction.name(), "");
            self.open(Open::Struct);
        }
    }

    fn token(&mut self, bytes: u32) {
        self.open(Open::Struct);
        self.value("SaslToken", Shown::Withheld(bytes));
    }

    fn value(&mut self, name: &'static str, value: Shown<'_>) {
        if let Shown::Records(len) = value {
            self.key(name, "SizeInBytes");
            return self.write(format_args!("{len}"));
        }
        self.key(name, "");
        match value {
            Shown::Null | Shown::Records(_) | Shown::Withheld(_) => self.out.push_str("null"),
            Shown::Bool(is) => self.write(format_args!("{is}")),
            Shown::Int(n) => self.write(format_args!("{n}")),
            Shown::Float(n) if n.is_finite() => self.write(format_args!("{n:?}")),
            // As Jackson does.
            Shown::Float(n) if n.is_nan() => self.out.push_str("\"NaN\""),
            Shown::Float(n) if n > 0.0 => self.out.push_str("\"Infinity\""),
            Shown::Float(_) => self.out.push_str("\"-Infinity\""),
            Shown::Uuid(uuid) => {
                let uuid = Base64Display::new(&uuid, &URL_SAFE_NO_PAD);
                self.write(format_args!("\"{uuid}\""));
            }
            Shown::ErrorCode(code) => self.write(format_args!("{}", code.0)),
            Shown::ApiKey(key) => self.write(format_args!("{}", key.0)),
            Shown::Text(text, _) => self.string(&String::from_utf8_lossy(text)),
            Shown::Bytes(bytes, _) => {
                self.out.push('"');
                STANDARD.encode_string(bytes, &mut self.out);
                self.out.push('"');
            }
        }
        if let Shown::Withheld(len) = value
            && !name.is_empty()
        {
            self.key(name, "SizeInBytes");
            self.write(format_args!("{len}"));
        }
    }

    fn begin(&mut self, name: &'static str, scope: Scope) {
        self.key(name, "");
        self.open(match scope {
            Scope::Struct => Open::Struct,
            Scope::Values(_) => Open::Values,
            Scope::Structs(_) => Open::Structs,
        });
    }

    fn element(&mut self) {
        self.close_element();
        self.comma();
        self.open(Open::Element);
    }

    fn end(&mut self) {
        self.close_element();
        self.close();
    }

    /// Kafka's request log has none.
    fn batch(&mut self, _: &Batch) {}

    fn other_batches(&mut self, _: u32) {}

    /// Kafka's request log has none.
    fn unknown_tag(&mut self, _: &UnknownTag) {}

    fn finish(&mut self, end: &End) {
        // All but the line itself.
        while self.open.len() > 1 {
            self.close();
        }
        if self.open.is_empty() {
            self.open(Open::Struct);
        }
        match end {
            End::Whole(0) => {}
            End::Whole(trailing) => self.field("trailingBytes", format_args!("{trailing}")),
            End::Broken(broken) => {
                self.key("broken", "");
                self.open(Open::Struct);
                self.field("at", format_args!("{}", broken.at));
                self.field("field", format_args!("{}", Escaped(&broken.path)));
                self.field("cause", format_args!("\"{}\"", broken.cause));
                self.close();
            }
        }
        self.close();
        self.out.push('\n');
    }

    fn written(&mut self) -> &mut String {
        &mut self.out
    }
}

/// The name as Kafka's `ApiKeys` has it: `LIST_OFFSETS`.
fn constant_name(api_key: ApiKey) -> Option<String> {
    let mut constant = String::new();
    for char in api_key.name()?.chars() {
        if char.is_ascii_uppercase() && !constant.is_empty() {
            constant.push('_');
        }
        constant.push(char.to_ascii_uppercase());
    }
    Some(constant)
}

/// A string in quotes, as JSON has it.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for char in self.0.chars() {
            match char {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                char if is_plain(char) => f.write_char(char)?,
                char => {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        write!(f, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        f.write_char('"')
    }
}
