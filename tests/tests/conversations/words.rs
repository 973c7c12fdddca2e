//! What is planted where nobody may see it: four letters that stand nowhere else, over and over, so that any
//! few bytes of it tell what they are of.

use klamp_tests::needle::Forms;

/// By what they are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// The content of records.
    Records,
    /// Whatever else is withheld: SASL tokens, fields, unknown tagged fields, trailing bytes.
    Secret,
    /// What might be seen of a frame if it could be read.
    UnreadText,
    /// What is withheld in a frame that cannot be read.
    UnreadSecret,
}

impl Word {
    pub(crate) const ALL: [Self; 4] = [
        Self::Records,
        Self::Secret,
        Self::UnreadText,
        Self::UnreadSecret,
    ];

    fn letters(self) -> &'static [u8; 4] {
        match self {
            Self::Records => b"Rq7~",
            Self::Secret => b"Fz9|",
            Self::UnreadText => b"Xk5^",
            Self::UnreadSecret => b"Mv8&",
        }
    }

    /// So many bytes of it.
    pub(crate) fn bytes(self, count: usize) -> Vec<u8> {
        self.letters().iter().copied().cycle().take(count).collect()
    }
}

/// What all words but these are found by, from eight bytes on.
pub(crate) fn forms_without(allowed: &[Word]) -> Forms {
    let looked_for = Word::ALL.iter().filter(|word| !allowed.contains(word));
    let texts: Vec<_> = looked_for.map(|word| word.bytes(24)).collect();
    Forms::of(texts.iter().map(Vec::as_slice), 8)
}
