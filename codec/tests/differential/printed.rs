//! Reads what `kafka-protocol` prints of a message with `{:?}`: the nearest that its structs come to
//! reflection.

use crate::tree::{Field, Node, Struct, plain};

/// The message that is printed in `text`.
pub fn message(text: &str) -> Struct {
    let mut printed = Printed { rest: text };
    let node = printed.value();
    assert_eq!(printed.rest, "", "all of it is one message");
    match node {
        Node::Struct(message) => message,
        node => panic!("no message: {node:?}"),
    }
}

struct Printed<'a> {
    rest: &'a str,
}

impl<'a> Printed<'a> {
    fn value(&mut self) -> Node {
        if self.skip("[") {
            return Node::List(self.elements());
        }
        if self.skip("b\"") || self.skip("\"") {
            return Node::Bytes(self.quoted());
        }
        match self.word() {
            "None" => Node::Null,
            "true" => Node::Int(1),
            "false" => Node::Int(0),
            "Some" => {
                self.expect("(");
                let value = self.value();
                self.expect(")");
                value
            }
            _ if self.skip(" {") => Node::Struct(self.fields()),
            // What never has fields prints as its name alone.
            word => number(word),
        }
    }

    fn elements(&mut self) -> Vec<Field> {
        let mut elements = Vec::new();
        while !self.skip("]") {
            elements.push(Field {
                name: String::new(),
                role: None,
                value: self.value(),
            });
            self.skip(", ");
        }
        elements
    }

    fn fields(&mut self) -> Struct {
        let mut fields = Struct::default();
        while !self.skip(" }") {
            self.skip(",");
            self.expect(" ");
            let name = self.word();
            self.expect(": ");
            if name == "unknown_tagged_fields" {
                fields.unknown = self.unknown();
                continue;
            }
            fields.fields.push(Field {
                name: plain(name),
                role: None,
                value: self.value(),
            });
        }
        fields
    }

    fn unknown(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.expect("{");
        let mut unknown = Vec::new();
        while !self.skip("}") {
            let tag = self.word().parse().unwrap();
            self.expect(": b\"");
            unknown.push((tag, self.quoted()));
            self.skip(", ");
        }
        unknown
    }

    /// All strings and bytes are letters and digits.
    fn quoted(&mut self) -> Vec<u8> {
        let (text, rest) = self.rest.split_once('"').unwrap();
        assert!(!text.contains('\\'), "{text}");
        self.rest = rest;
        text.as_bytes().to_vec()
    }

    fn word(&mut self) -> &'a str {
        let is_in = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let end = self.rest.find(|c| !is_in(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, text: &str) {
        assert!(self.skip(text), "{text:?} expected at {:?}", self.rest);
    }
}

/// An integer, a float, or a uuid.
fn number(word: &str) -> Node {
    if let Ok(n) = word.parse() {
        return Node::Int(n);
    }
    match word.parse::<f64>() {
        Ok(n) => Node::Int(n.to_bits() as i64),
        Err(_) => Node::Bytes(uuid::Uuid::parse_str(word).unwrap().as_bytes().to_vec()),
    }
}
