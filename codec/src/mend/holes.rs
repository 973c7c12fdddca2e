//! What is missing of a frame, and the short text that says it in a capture.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// What stands for a field where whole batches are missing behind the one before them.
pub(crate) const OTHER_BATCHES: &str = "batches";

/// What stands for a field where the frame was cut, or its message had ended.
const REST: &str = "rest";

/// Something that is missing of a frame that has been mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// Offset in the mended frame, its length field included, where it was.
    pub at: u32,
    /// How many bytes.
    pub bytes: u32,
    /// The name of the field that it was of; empty where nobody knows that; `batches` where it was whole
    /// record batches, heads included; `rest` where it was all that followed, of whatever it was.
    pub field: Cow<'static, str>,
}

/// All that is missing of a frame, in the order of where. As text: `AuthBytes@14+30,Records@80+4096`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WithheldList(Vec<Withheld>);

/// A text that does not say what is missing of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no list of what is withheld, as in AuthBytes@14+30,Records@80+4096")]
pub struct NotWithheld;

impl WithheldList {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Withheld> {
        self.0.iter()
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes are missing in all.
    pub fn bytes(&self) -> u64 {
        let bytes = self.0.iter().map(|it| u64::from(it.bytes));
        bytes.fold(0, u64::saturating_add)
    }

    /// How many bytes are missing of the content of a field that is left from offset `from` to offset
    /// `to` of the frame, both included: what follows it stands behind a length of its own, or is the rest.
    pub(crate) fn within(&self, from: u64, to: u64) -> u32 {
        let is_within = |it: &&Withheld| (from..=to).contains(&it.at.into());
        let here = self.0.iter().filter(is_within);
        let here = here.filter(|it| it.field != REST);
        here.fold(0, |bytes: u32, it| bytes.saturating_add(it.bytes))
    }

    /// How many bytes are missing behind the last that is there.
    pub(crate) fn rest(&self) -> u32 {
        let last = self.0.last().filter(|it| it.field == REST);
        last.map_or(0, |rest| rest.bytes)
    }

    /// How many bytes are missing at offset `at`: of the batch whose head ends there, and of others
    /// behind it.
    pub(crate) fn of_batches(&self, at: u64) -> (u32, u32) {
        let here = self.0.iter().filter(|it| u64::from(it.at) == at);
        here.fold((0, 0), |(own, others): (u32, u32), it| {
            match it.field.as_ref() {
                OTHER_BATCHES => (own, others.saturating_add(it.bytes)),
                REST => (own, others),
                _ => (own.saturating_add(it.bytes), others),
            }
        })
    }

    /// Adds what is missing last, if it is anything.
    pub(super) fn add(&mut self, at: usize, bytes: u64, field: Cow<'static, str>) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if bytes > 0 {
            let at = at as u32;
            self.0.push(Withheld { at, bytes, field });
        }
    }

    /// Adds that all that follows is missing, if anything does.
    pub(super) fn add_rest(&mut self, at: usize, bytes: u64) {
        self.add(at, bytes, REST.into());
    }

    /// The frame has grown by so many bytes before offset `from`.
    pub(super) fn shift(&mut self, from: usize, by: i64) {
        for it in &mut self.0 {
            if it.at as usize >= from {
                it.at = i64::from(it.at).saturating_add(by) as u32;
            }
        }
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}@", self.field)?;
        }
        write!(f, "{}+{}", self.at, self.bytes)
    }
}

impl FromStr for Withheld {
    type Err = NotWithheld;

    fn from_str(text: &str) -> Result<Self, NotWithheld> {
        let (field, place) = text.split_once('@').unwrap_or(("", text));
        let (at, bytes) = place.split_once('+').ok_or(NotWithheld)?;
        Ok(Self {
            at: at.parse().map_err(|_| NotWithheld)?,
            bytes: bytes.parse().map_err(|_| NotWithheld)?,
            field: Cow::Owned(field.to_owned()),
        })
    }
}

impl fmt::Display for WithheldList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, it) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{it}")?;
        }
        Ok(())
    }
}

impl FromStr for WithheldList {
    type Err = NotWithheld;

    fn from_str(text: &str) -> Result<Self, NotWithheld> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let list = text.split(',').map(Withheld::from_str);
        list.collect::<Result<_, _>>().map(Self)
    }
}
