//! Reads a capture's file, block by block: by the format's definition, not by what wrote it.

use super::frame::{Direction, Head};

/// A frame as it stands in a capture.
pub(crate) struct Kept {
    pub(crate) direction: Direction,
    /// `None` of a token.
    pub(crate) head: Option<Head>,
    pub(crate) bytes: Vec<u8>,
    /// What its comment says of it.
    note: String,
}

impl Kept {
    /// What the comment says under this name.
    pub(crate) fn says(&self, name: &str) -> Option<&str> {
        let mut lines = self.note.lines().skip(1);
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn number(&self, name: &str) -> Option<usize> {
        let number = self.says(name)?.split(' ').next()?;
        Some(number.parse().expect("it is a number"))
    }

    /// Bytes that were received.
    pub(crate) fn received(&self) -> usize {
        self.number("received").expect("it is told of each frame")
    }

    /// Bytes that are missing before it.
    pub(crate) fn lost(&self) -> usize {
        self.number("lost").unwrap_or(0)
    }

    /// How long klamp says that an answer took.
    pub(crate) fn latency_ms(&self) -> Option<f64> {
        let ms = self.says("latency")?.strip_suffix(" ms");
        Some(ms.and_then(|ms| ms.parse().ok()).expect("it is a number"))
    }

    /// Bytes that are said to be withheld, if all are told.
    pub(crate) fn withheld(&self) -> Option<usize> {
        let list = self.says("withheld").unwrap_or_default();
        let fields = list.split(',').filter_map(|field| field.rsplit_once('+'));
        let sizes = fields.map(|(_, size)| size.parse::<usize>().expect("it is a number"));
        // (a comment has an end, too)
        (self.note.len() < 59_000).then(|| sizes.sum())
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let note: String = self.note.chars().take(300).collect();
        write!(f, "[{} bytes kept: {note}]", self.bytes.len())
    }
}

/// What a file says.
pub(crate) struct Capture {
    pub(crate) frames: Vec<Kept>,
    /// The comment on the whole.
    pub(crate) about: String,
}

impl Capture {
    /// # Panics
    /// If it is none.
    pub(crate) fn read(mut file: &[u8]) -> Self {
        let (mut about, mut frames) = (String::new(), Vec::<Kept>::new());
        while !file.is_empty() {
            let size = u32_at(file, 4) as usize;
            let (block, rest) = file.split_at(size);
            let body = &block[8..size - 4];
            assert_eq!(
                u32_at(block, size - 4) as usize,
                size,
                "a block has two sizes"
            );
            match u32_at(block, 0) {
                0x0a0d_0d0a => about = comment(&body[16..]).expect("it says why"),
                6 => {
                    let length = u32_at(body, 12) as usize;
                    let note = comment(&body[20 + length.next_multiple_of(4)..]);
                    add_packet(&mut frames, &body[20..20 + length], note);
                }
                _ => {}
            }
            file = rest;
        }
        Self { frames, about }
    }

    /// What the comment on the whole says under this name.
    pub(crate) fn says(&self, name: &str) -> Option<&str> {
        let mut lines = self.about.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Frames of the connection that were given up.
    pub(crate) fn given_up(&self) -> usize {
        let (_, count) = self
            .about
            .split_once("frames given up before them: ")
            .unwrap_or_else(|| panic!("it is not told: {}", self.about));
        let digits = count.split(|c: char| !c.is_ascii_digit()).next();
        let count = digits.and_then(|digits| digits.parse().ok());
        count.expect("it is a number")
    }
}

/// Adds what a packet has of a frame: with a comment it is a new one's first.
fn add_packet(frames: &mut Vec<Kept>, packet: &[u8], note: Option<String>) {
    let ip = &packet[14..];
    let tcp = &ip[20..usize::from(u16_at(ip, 2))];
    let payload = &tcp[usize::from(tcp[12] >> 4) * 4..];
    let direction = match u16_at(tcp, 2) {
        9092 => Direction::Request,
        _ => Direction::Response,
    };
    if let Some(note) = note {
        frames.push(Kept {
            direction,
            head: None,
            bytes: Vec::new(),
            note,
        });
    }
    let Some(latest) = frames.last_mut() else {
        return assert!(payload.is_empty(), "a packet without a comment");
    };
    if !payload.is_empty() {
        assert_eq!(latest.direction, direction, "two frames are mixed");
        latest.bytes.extend(payload);
        latest.head = head(latest);
    }
}

/// By the first line of its comment, and its first bytes.
fn head(kept: &Kept) -> Option<Head> {
    let first = kept.note.lines().next().unwrap_or_default();
    if first.starts_with("SASL token") {
        return None;
    }
    let of = first
        .split_once('(')
        .and_then(|(_, of)| of.split_once(") v"));
    let (key, rest) = of.unwrap_or_else(|| panic!("what is {first}?"));
    let (version, rest) = rest.split_once(' ').expect("a direction follows");
    assert!(rest.starts_with(kept.direction.name()), "{first}");
    let at = match kept.direction {
        Direction::Request => 8,
        Direction::Response => 4,
    };
    let id = kept.bytes.get(at..)?.first_chunk()?;
    Some(Head {
        api_key: key.parse().expect("it is a number"),
        api_version: version.parse().expect("it is a number"),
        correlation_id: i32::from_be_bytes(*id),
    })
}

/// The comment among a block's options.
fn comment(mut options: &[u8]) -> Option<String> {
    while options.len() >= 4 {
        let (code, length) = (u16_le(options, 0), usize::from(u16_le(options, 2)));
        let value = &options[4..4 + length];
        if code == 1 {
            return Some(String::from_utf8(value.to_vec()).expect("comments are UTF-8"));
        }
        options = &options[4 + length.next_multiple_of(4)..];
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("it is there"))
}

fn u16_le(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(*bytes[at..].first_chunk().expect("it is there"))
}

/// In network order.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(*bytes[at..].first_chunk().expect("it is there"))
}
