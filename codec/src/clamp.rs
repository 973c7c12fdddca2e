//! Rewrites an ApiVersions answer so that nobody speaks a version that we cannot, and learns the
//! broker's version table from it.
//!
//! The trap: the answer is more than its rows. Tagged fields (features, and whatever comes in the
//! future), the throttle time and the order of rows are the broker's, so nothing is decoded and
//! encoded again: the rows are edited in the bytes as they came, and what needs no edit passes.

use crate::edit::{CountForm, EditError, Edits};
use crate::layout::{Event, Fault, FieldId, Progress, Role, Root, Value, WalkError, Walker};
use crate::session::Clamp;
use crate::types::{ApiKey, Direction, ErrorCode};
use crate::versions::{Fate, Feature, FinalizedFeatures, Offer, VersionTable};

/// What an ApiVersions answer said, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// The broker's versions; `None` where the answer carries an error.
    pub table: Option<VersionTable>,
    /// The error code of the answer.
    pub error: ErrorCode,
    /// The whole frame to send instead, its length field included; `None` where it passes as it is.
    pub frame: Option<Vec<u8>>,
}

/// Why an ApiVersions answer could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The frame ends before its error code, or elsewhere than its length field says.
    #[error("the ApiVersions answer is not as long as its length field says, or has no body")]
    Length,
    /// Nobody here knows how an answer of this version is laid out.
    #[error("the layout of ApiVersions answers of version {version} is not known")]
    Version {
        /// The version of the request.
        version: i16,
    },
    /// The body does not fit its layout. Offsets are from the frame's ninth byte, where it begins.
    #[error("the ApiVersions answer does not fit its layout: {0}")]
    Layout(#[from] WalkError),
    /// The rows do not stand in it as the layout has them.
    #[error("the ApiVersions answer cannot be edited: {0}")]
    Edit(#[from] EditError),
    /// More rows than there are API keys.
    #[error("the ApiVersions answer has more rows than there are API keys")]
    Rows,
}

/// Bytes of the length field and of the response header, which for ApiVersions is always version 0: a
/// correlation id.
const HEAD: u32 = 8;

/// Reads the whole `frame` (its length field included) of an answer to an ApiVersions request of
/// `request_version`, and rewrites it as `policy` says. An answer that carries an error passes unread
/// whatever its shape: that of an unknown version has the body of version 0 (KIP-511).
pub fn clamp(frame: &[u8], request_version: i16, policy: Clamp) -> Result<Clamped, Malformed> {
    let body = body(frame)?;
    let error = ErrorCode(i16::from_be_bytes(
        *body.first_chunk().ok_or(Malformed::Length)?,
    ));
    if error != ErrorCode::NONE {
        return Ok(Clamped {
            table: None,
            error,
            frame: None,
        });
    }
    let answer = Answer::read(body, request_version)?;
    let offers = answer.rows.iter().map(|row| (row.api_key, row.offer));
    let table = VersionTable::new(offers, answer.finalized, policy);
    let edits = answer.edits(policy)?;
    let rewritten = (!edits.is_empty())
        .then(|| edits.apply(frame))
        .transpose()?;
    Ok(Clamped {
        table: Some(table),
        error,
        frame: rewritten,
    })
}

/// What follows the head of a frame that is as long as it says.
fn body(frame: &[u8]) -> Result<&[u8], Malformed> {
    let (length, rest) = frame.split_first_chunk().ok_or(Malformed::Length)?;
    if usize::try_from(i32::from_be_bytes(*length)) != Ok(rest.len()) {
        return Err(Malformed::Length);
    }
    frame.get(HEAD as usize..).ok_or(Malformed::Length)
}

/// An answer without an error, as far as the clamp has to know it. Offsets are in the frame.
#[derive(Debug)]
struct Answer {
    /// Offset of the first row, and bytes of the count before it.
    rows_at: u32,
    count_width: u32,
    count_form: CountForm,
    /// In wire order.
    rows: Vec<WireRow>,
    finalized: FinalizedFeatures,
}

/// One row where it stands.
#[derive(Debug)]
struct WireRow {
    at: u32,
    end: u32,
    max_at: u32,
    api_key: ApiKey,
    offer: Offer,
}

impl Answer {
    fn read(body: &[u8], version: i16) -> Result<Self, Malformed> {
        let root = Root::find(Direction::Response, ApiKey::API_VERSIONS, version)
            .ok_or(Malformed::Version { version })?;
        let len = u32::try_from(body.len()).map_err(|_| Malformed::Length)?;
        let mut reader = Reader::new(version);
        let (_, progress) = Walker::new(root, len).feed(body, &mut |event| reader.event(event))?;
        match progress {
            Progress::Done => reader.finish(),
            Progress::Skippable(_) | Progress::NeedBytes => {
                let (fault, at, field) = (Fault::Short, len, FieldId::NONE);
                Err(WalkError { fault, at, field }.into())
            }
        }
    }

    /// Takes hidden rows away and lowers maxima; the bytes between stay the broker's.
    fn edits(&self, policy: Clamp) -> Result<Edits, EditError> {
        let mut edits = Edits::default();
        let mut left = 0_u32;
        for row in &self.rows {
            let ours = policy.ours(row.api_key);
            match Fate::under(policy, row.api_key, row.offer, ours, &self.finalized) {
                Fate::Hidden(_) => edits.replace(row.at, row.end.saturating_sub(row.at), []),
                Fate::Lowered { to } => {
                    edits.replace(row.max_at, 2, to.to_be_bytes());
                    left = left.saturating_add(1);
                }
                Fate::Kept | Fate::Spared(_) => left = left.saturating_add(1),
            }
        }
        if usize::try_from(left) != Ok(self.rows.len()) {
            edits.count(self.rows_at, self.count_width, self.count_form, left)?;
        }
        Ok(edits)
    }
}

/// Gathers an [`Answer`] from the events of a walk.
struct Reader {
    answer: Answer,
    /// The name of a finalized feature, as far as it can matter.
    name: Vec<u8>,
    /// Whose level comes next.
    feature: Option<Feature>,
    /// More rows were promised than can be.
    crowded: bool,
}

impl Reader {
    /// As many rows as there are API keys: a bound on what is kept of an answer.
    const MOST_ROWS: u32 = 1 << 16;
    /// Longer than the name of any feature that matters.
    const LONG_NAME: usize = 32;

    fn new(version: i16) -> Self {
        Self {
            answer: Answer {
                rows_at: 0,
                count_width: 0,
                count_form: if version >= 3 {
                    CountForm::Compact
                } else {
                    CountForm::Classic
                },
                rows: Vec::new(),
                finalized: FinalizedFeatures::default(),
            },
            name: Vec::new(),
            feature: None,
            crowded: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        let at = HEAD.saturating_add(event.at);
        match (event.role, event.value) {
            (Role::VersionRows, Value::Count(count)) => {
                self.answer.rows_at = at;
                self.answer.count_width = event.width;
                self.crowded |= count > Self::MOST_ROWS;
            }
            (Role::VersionRows, Value::Element) if !self.crowded => {
                self.end_row(at);
                self.answer.rows.push(WireRow {
                    at,
                    end: at,
                    max_at: at,
                    api_key: ApiKey(0),
                    offer: Offer { min: 0, max: 0 },
                });
            }
            (Role::VersionRows, Value::End) => self.end_row(at),
            (role @ (Role::RowKey | Role::RowMin | Role::RowMax), Value::Int(value)) => {
                self.row_field(role, at, int16(value));
            }
            (Role::FinalizedFeature, Value::Piece(piece, to_come)) => {
                let room = Self::LONG_NAME.saturating_sub(self.name.len());
                self.name.extend(piece.iter().take(room));
                if to_come == 0 {
                    self.feature = Feature::named(&self.name);
                    self.name.clear();
                }
            }
            (Role::FinalizedLevel, Value::Int(level)) => {
                if let Some(feature) = self.feature.take() {
                    self.answer.finalized.note(feature, int16(level));
                }
            }
            _ => {}
        }
    }

    fn row_field(&mut self, role: Role, at: u32, value: i16) {
        let Some(row) = self.answer.rows.last_mut() else {
            return;
        };
        match role {
            Role::RowKey => row.api_key = ApiKey(value),
            Role::RowMin => row.offer.min = value,
            _ => {
                row.offer.max = value;
                row.max_at = at;
            }
        }
    }

    fn end_row(&mut self, at: u32) {
        if let Some(row) = self.answer.rows.last_mut() {
            row.end = at;
        }
    }

    fn finish(self) -> Result<Answer, Malformed> {
        if self.crowded {
            return Err(Malformed::Rows);
        }
        Ok(self.answer)
    }
}

/// A value that the layout has as int16.
fn int16(value: i64) -> i16 {
    value as i16
}
