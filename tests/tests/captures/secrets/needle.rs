//! What is planted, and found again in all the forms that bytes are printed in.

/// A word that stands nowhere else.
pub(super) struct Needle {
    word: String,
    /// A piece of it in each form, and the form's name.
    forms: Vec<(&'static str, Vec<u8>)>,
    /// Which two bytes a form begins with: most of what is searched is passed over by this.
    begins: Vec<bool>,
}

/// Bytes of the word of which even so many tell something.
const PIECE: usize = 6;

impl Needle {
    pub(super) fn new(word: &str) -> Self {
        let forms = Self::forms(word);
        let mut begins = vec![false; 1 << 16];
        for (_, form) in &forms {
            begins[usize::from(form[0]) << 8 | usize::from(form[1])] = true;
        }
        Self {
            word: word.to_owned(),
            forms,
            begins,
        }
    }

    /// The word and where it is planted.
    pub(super) fn at(&self, place: &str) -> String {
        format!("{}-{place}-{}", self.word, self.word)
    }

    pub(super) fn bytes_at(&self, place: &str) -> bytes::Bytes {
        self.at(place).into_bytes().into()
    }

    /// How often the word stands there as it is.
    pub(super) fn count(&self, hay: &[u8]) -> usize {
        hay.windows(self.word.len())
            .filter(|window| *window == self.word.as_bytes())
            .count()
    }

    /// The first form in which a piece of the word stands there, with what is around it.
    pub(super) fn find(&self, hay: &[u8]) -> Option<String> {
        let pair = |two: &[u8]| usize::from(two[0]) << 8 | usize::from(two[1]);
        let at = (0..hay.len().saturating_sub(1))
            .filter(|at| self.begins[pair(&hay[*at..])])
            .find(|at| self.forms.iter().any(|it| hay[*at..].starts_with(&it.1)))?;
        let form = self.forms.iter().find(|it| hay[at..].starts_with(&it.1));
        let name = form.map_or("", |it| it.0);
        let around = &hay[at.saturating_sub(200)..hay.len().min(at + 100)];
        Some(format!("{name} at byte {at}: {}", around.escape_ascii()))
    }

    fn forms(word: &str) -> Vec<(&'static str, Vec<u8>)> {
        let mut forms = Vec::new();
        for piece in word.as_bytes().windows(PIECE) {
            let joined = |format: fn(&u8) -> String, with: &str| {
                let all: Vec<_> = piece.iter().map(format).collect();
                all.join(with).into_bytes()
            };
            forms.push(("as it is", piece.to_vec()));
            forms.push(("hexadecimal", joined(|byte| format!("{byte:02x}"), "")));
            forms.push(("HEXADECIMAL", joined(|byte| format!("{byte:02X}"), "")));
            forms.push(("spaced", joined(|byte| format!("{byte:02x}"), " ")));
            forms.push(("numbers", joined(u8::to_string, ", ")));
            forms.push(("JSON numbers", joined(u8::to_string, ",")));
            forms.push((
                "UTF-16",
                joined(|byte| format!("{}\0", char::from(*byte)), ""),
            ));
        }
        // Of Base64 what does not depend on the bytes around: three bytes are four letters.
        for skip in 0..3 {
            let inner = &word.as_bytes()[skip..];
            let inner = &inner[..inner.len() / 3 * 3];
            forms.push(("Base64", base64(inner)));
        }
        forms
    }
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    for three in bytes.chunks_exact(3) {
        let number = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for shift in [18, 12, 6, 0] {
            out.push(LETTERS[(number >> shift & 63) as usize]);
        }
    }
    out
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
        assert!(needle.find(hay.as_bytes()).is_some(), "{hay}");
    }
    assert!(needle.find(b"Pl4nt-edS3c-ret").is_none());
}
