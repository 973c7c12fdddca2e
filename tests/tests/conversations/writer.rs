//! Writes messages field by field, and notes where something is withheld.

use super::batches;
use super::frame::{Length, Piece, varint};
use super::words::Word;
use fastrand::Rng;

/// One of these.
pub(crate) fn pick<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}

/// A message that is being written.
pub(crate) struct Writer<'r> {
    pub(crate) rng: &'r mut Rng,
    is_flexible: bool,
    /// Nobody will be able to read it.
    is_unread: bool,
    /// How often a field with an unknown tag is sent.
    tagged: f64,
    pieces: Vec<Piece>,
    pub(crate) has_unnamed_code: bool,
}

impl<'r> Writer<'r> {
    pub(crate) fn new(rng: &'r mut Rng, is_flexible: bool, is_unread: bool, tagged: f64) -> Self {
        Self {
            rng,
            is_flexible,
            is_unread,
            // (what is broken has them broken as well, and nobody knows what stands there)
            tagged: if is_unread { 0.0 } else { tagged },
            pieces: Vec::new(),
            has_unnamed_code: false,
        }
    }

    pub(crate) fn pieces(self) -> Vec<Piece> {
        self.pieces
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        pick(self.rng, choices)
    }

    pub(crate) fn chance(&mut self, of_one: f64) -> bool {
        self.rng.f64() < of_one
    }

    pub(crate) fn is_flexible(&self) -> bool {
        self.is_flexible
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        match self.pieces.last_mut() {
            Some(Piece::Plain(plain)) => plain.extend(bytes),
            _ => self.pieces.push(Piece::Plain(bytes.to_vec())),
        }
        self
    }

    pub(crate) fn int8(&mut self, value: i8) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn int16(&mut self, value: i16) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn int32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn int64(&mut self, value: i64) -> &mut Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn uuid(&mut self) -> &mut Self {
        self.raw(&[0x11; 16])
    }

    /// A string that may be seen, or null.
    pub(crate) fn string(&mut self, value: Option<&[u8]>) -> &mut Self {
        let length = self.string_length();
        match value {
            Some(value) => self.raw(&length.of(value.len())).raw(value),
            None => self.null(length),
        }
    }

    /// A string of so many letters that may be seen if anything may.
    pub(crate) fn text(&mut self, letters: usize) -> &mut Self {
        let text: Vec<u8> = match self.is_unread {
            true => Word::UnreadText.bytes(letters),
            false => (0..letters)
                .map(|_| pick(self.rng, b"abcdefghimnopsuv-_."))
                .collect(),
        };
        self.string(Some(&text))
    }

    /// How many elements follow; `None`: there is no array.
    pub(crate) fn array(&mut self, elements: Option<usize>) -> &mut Self {
        let length = self.bytes_length();
        match elements {
            Some(count) => self.raw(&length.of(count)),
            None => self.null(length),
        }
    }

    /// A string that is withheld.
    pub(crate) fn secret_string(&mut self, content: Option<Vec<u8>>) -> &mut Self {
        self.withheld(self.string_length(), content, false)
    }

    /// Bytes that are withheld.
    pub(crate) fn secret_bytes(&mut self, content: Option<Vec<u8>>) -> &mut Self {
        self.withheld(self.bytes_length(), content, false)
    }

    pub(crate) fn records(&mut self, content: Option<Vec<u8>>) -> &mut Self {
        self.withheld(self.bytes_length(), content, true)
    }

    /// The end of a structure.
    pub(crate) fn tags(&mut self) -> &mut Self {
        if !self.is_flexible {
            return self;
        }
        if self.rng.f64() >= self.tagged {
            return self.raw(&[0]);
        }
        let tag = self.pick(&[57, 300]);
        let bytes = self.pick(&[12, 40, 130, 2000]);
        let content = self.secret(bytes);
        self.raw(&[1]).raw(&varint(tag));
        self.withheld(Length::Varint, Some(content), false)
    }

    /// So many bytes that are nobody's business.
    pub(crate) fn secret(&self, count: usize) -> Vec<u8> {
        match self.is_unread {
            true => Word::UnreadSecret.bytes(count),
            false => Word::Secret.bytes(count),
        }
    }

    /// So many bytes of records.
    pub(crate) fn content(&self, count: usize) -> Vec<u8> {
        match self.is_unread {
            true => Word::UnreadSecret.bytes(count),
            false => Word::Records.bytes(count),
        }
    }

    /// The size of a field: around what changes how lengths are written, or now and then what is kept.
    pub(crate) fn size(&mut self, huge: f64) -> usize {
        let chance = self.rng.f64();
        if chance < huge {
            let about = self.pick(&[16_300, 16_384, 17_000, 40_000, 66_000, 140_000, 400_000]);
            return self.rng.usize(about - 70..about + 70);
        }
        if chance < 0.15 {
            return self.rng.usize(300..6000);
        }
        self.pick(&[1, 2, 5, 12, 13, 30, 64, 126, 127, 128, 200])
    }

    /// A config value, or something else that is withheld and mostly short.
    pub(crate) fn value(&mut self) -> Option<Vec<u8>> {
        if self.chance(0.15) {
            return None;
        }
        let large = if self.chance(0.1) { 30_000 } else { 9 };
        let count = self.pick(&[0, 1, 12, 40, 126, 127, 2000, large]);
        Some(self.secret(count))
    }

    fn string_length(&self) -> Length {
        match self.is_flexible {
            true => Length::Compact,
            false => Length::Int16,
        }
    }

    fn bytes_length(&self) -> Length {
        match self.is_flexible {
            true => Length::Compact,
            false => Length::Int32,
        }
    }

    fn null(&mut self, length: Length) -> &mut Self {
        match length {
            Length::Int16 => self.int16(-1),
            Length::Int32 => self.int32(-1),
            Length::Compact | Length::Varint => self.raw(&[0]),
        }
    }

    fn withheld(&mut self, length: Length, content: Option<Vec<u8>>, records: bool) -> &mut Self {
        let Some(content) = content else {
            return self.null(length);
        };
        if content.is_empty() {
            return self.raw(&length.of(0));
        }
        let heads = records.then(|| batches::heads(&content));
        self.pieces.push(Piece::Withheld {
            length,
            content,
            heads,
        });
        self
    }
}
