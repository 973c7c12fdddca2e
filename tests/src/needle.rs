//! What is planted, and found again in all the forms that bytes are printed in.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::HashMap;

/// A word that stands nowhere else.
#[derive(Debug)]
pub struct Needle {
    word: String,
    forms: Forms,
}

impl Needle {
    /// Of a word of which even six letters stand nowhere else.
    pub fn new(word: &str) -> Self {
        Self::of(word, 6)
    }

    /// Of a word of which so many letters stand nowhere else.
    pub fn of(word: &str, piece: usize) -> Self {
        Self {
            word: word.to_owned(),
            forms: Forms::of([word.as_bytes()], piece),
        }
    }

    /// The word and where it is planted.
    pub fn at(&self, place: &str) -> String {
        format!("{}-{place}-{}", self.word, self.word)
    }

    /// The same as bytes.
    pub fn bytes_at(&self, place: &str) -> bytes::Bytes {
        self.at(place).into_bytes().into()
    }

    /// How often the word stands there as it is.
    pub fn count(&self, hay: &[u8]) -> usize {
        hay.windows(self.word.len())
            .filter(|window| *window == self.word.as_bytes())
            .count()
    }

    /// What it is found by.
    pub fn forms(&self) -> &Forms {
        &self.forms
    }
}

/// Pieces of what is looked for, in all the forms that bytes are printed in.
#[derive(Debug)]
pub struct Forms {
    /// With their names, by how they begin.
    by_begin: HashMap<[u8; BEGIN], Vec<(&'static str, Vec<u8>)>>,
    /// Whether any begins with these two bytes: there is much to look through.
    begins: Vec<bool>,
}

/// Bytes of a form by which it is found.
const BEGIN: usize = 6;

/// Letters of Base64 of which even so many tell something.
const LETTERS: usize = 12;

impl Forms {
    /// Of words of which so many bytes stand nowhere else by chance.
    ///
    /// # Panics
    /// If a word is shorter.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a [u8]>, piece: usize) -> Self {
        let mut forms = Self {
            by_begin: HashMap::new(),
            begins: vec![false; 1 << 16],
        };
        for word in words {
            assert!(word.len() >= piece, "{word:?} is too short to be found");
            forms.add_all(word, piece);
        }
        forms
    }

    /// The first form that stands there, with what is around it.
    pub fn find(&self, hay: &[u8]) -> Option<String> {
        let found = hay.windows(BEGIN).enumerate().find_map(|(at, begin)| {
            if !self.begins[two(begin)] {
                return None;
            }
            let forms = self.by_begin.get(begin)?;
            let form = forms.iter().find(|it| hay[at..].starts_with(&it.1))?;
            Some((form.0, at))
        });
        let (name, at) = found?;
        let around = &hay[at.saturating_sub(200)..hay.len().min(at + 100)];
        Some(format!("{name} at byte {at}: {}", around.escape_ascii()))
    }

    fn add(&mut self, name: &'static str, form: Vec<u8>) {
        let begin = *form.first_chunk().expect("no form is so short");
        self.begins[two(&begin)] = true;
        self.by_begin.entry(begin).or_default().push((name, form));
    }

    fn add_all(&mut self, word: &[u8], piece: usize) {
        for piece in word.windows(piece) {
            let joined = |format: fn(&u8) -> String, with: &str| {
                let all: Vec<_> = piece.iter().map(format).collect();
                all.join(with).into_bytes()
            };
            self.add("as it is", piece.to_vec());
            self.add("hexadecimal", joined(|byte| format!("{byte:02x}"), ""));
            self.add("HEXADECIMAL", joined(|byte| format!("{byte:02X}"), ""));
            self.add("spaced", joined(|byte| format!("{byte:02x}"), " "));
            self.add("numbers", joined(u8::to_string, ", "));
            self.add("JSON numbers", joined(u8::to_string, ","));
            self.add("UTF-16", piece.iter().flat_map(|byte| [*byte, 0]).collect());
        }
        // Of Base64 what does not depend on the bytes around: three bytes are four letters.
        for skip in 0..3 {
            let inner = &word[skip..];
            let inner = &inner[..inner.len() / 3 * 3];
            for letters in [STANDARD_NO_PAD.encode(inner), URL_SAFE_NO_PAD.encode(inner)] {
                for piece in letters.as_bytes().windows(LETTERS.min(letters.len())) {
                    self.add("Base64", piece.to_vec());
                }
            }
        }
    }
}

/// The number of the first two bytes.
fn two(begin: &[u8]) -> usize {
    usize::from(begin[0]) << 8 | usize::from(begin[1])
}

#[test]
fn a_word_is_found_in_each_form() {
    let needle = Needle::new("Pl4ntedS3cret");
    for hay in [
        "xxPl4nted",
        "506c346e746564",
        "506C346E746564",
        "80, 108, 52, 110, 116, 101",
        // base64 of Pl4ntedS3cret behind none, one and two bytes
        "UGw0bnRlZFMzY3JldA==",
        "IFBsNG50ZWRTM2NyZXQ=",
        "ICBQbDRudGVkUzNjcmV0",
    ] {
        assert!(needle.forms().find(hay.as_bytes()).is_some(), "{hay}");
    }
    assert!(needle.forms().find(b"Pl4nt-edS3c-ret").is_none());
}
