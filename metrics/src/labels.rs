//! Which row stands for which label value. Rows are found by array index, and their number is fixed
//! at start: nothing that a peer sends can add a label value without bound.

use crate::catalog::Catalog;
use std::sync::{Mutex, OnceLock, PoisonError};

/// API keys without a name that get a row of their own once a broker advertises them.
const ADVERTISED_KEYS: usize = 64;

/// Versions that have a row of their own: 0 to 31. The highest that Kafka ever had is below 20.
pub(crate) const VERSIONS: usize = 32;

/// A label value that stands for all that have no row.
pub(crate) const OTHER: &str = "other";

/// The row of an API key: an index into dense arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRow(pub(crate) u16);

impl KeyRow {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// How a response went: the label `outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No error code other than 0.
    Ok,
    /// An error code other than 0, at any depth.
    Error,
    /// Its error codes could not be read.
    Opaque,
}

impl Outcome {
    pub(crate) const ALL: [Self; 3] = [Self::Ok, Self::Error, Self::Opaque];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Opaque => "opaque",
        }
    }
}

/// Why a frame passed without being understood: the label `reason` of `klamp_opaque_frames_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpaqueReason {
    /// The API key is not known here.
    UnknownKey,
    /// The key is known, the version is not.
    UnknownVersion,
    /// No layout for this message.
    NoLayout,
    /// The message does not fit its layout.
    Malformed,
    /// The connection is relayed unseen since a response answered no request.
    Mismatch,
    /// The connection is relayed unseen since what came is not Kafka.
    NonKafka,
}

impl OpaqueReason {
    pub(crate) const ALL: [Self; 6] = [
        Self::UnknownKey,
        Self::UnknownVersion,
        Self::NoLayout,
        Self::Malformed,
        Self::Mismatch,
        Self::NonKafka,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::UnknownKey => "unknown_key",
            Self::UnknownVersion => "unknown_version",
            Self::NoLayout => "no_layout",
            Self::Malformed => "malformed",
            Self::Mismatch => "mismatch",
            Self::NonKafka => "non_kafka",
        }
    }
}

/// Who sent something: the label `direction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    Request,
    /// The broker.
    Response,
}

impl Direction {
    pub(crate) const ALL: [Self; 2] = [Self::Request, Self::Response];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }
}

/// Why bytes are no frame: the label `reason` of `klamp_frames_rejected_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// A negative length.
    NegativeLength,
    /// Shorter than the smallest header.
    TooShort,
    /// Longer than what is let through.
    TooLarge,
    /// TLS.
    Tls,
    /// HTTP.
    Http,
}

impl RejectReason {
    pub(crate) const ALL: [Self; 5] = [
        Self::NegativeLength,
        Self::TooShort,
        Self::TooLarge,
        Self::Tls,
        Self::Http,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::NegativeLength => "negative_length",
            Self::TooShort => "too_short",
            Self::TooLarge => "too_large",
            Self::Tls => "tls",
            Self::Http => "http",
        }
    }
}

/// How an attempt to connect to a broker went: the label `result` of `klamp_dials_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialResult {
    /// Connected.
    Ok,
    /// The host answered that nobody listens.
    Refused,
    /// No answer in time.
    TimedOut,
    /// No route to the host or its network.
    Unreachable,
    /// The name could not be looked up.
    NameNotFound,
    /// It would have been klamp itself.
    Loop,
    /// Any other failure.
    Failed,
}

impl DialResult {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Unreachable => "unreachable",
            Self::NameNotFound => "name_not_found",
            Self::Loop => "loop",
            Self::Failed => "failed",
        }
    }
}

/// Why a capture was taken: the label `reason` of `klamp_captures_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureReason {
    /// An error code that nobody names.
    Unnamed,
    /// An error code that `kafka-protocol` does not name.
    Beyond,
    /// Another error code.
    ErrorCode,
    /// A message that does not fit its layout.
    Malformed,
    /// A response that answers no request.
    Mismatch,
    /// A late answer.
    Slow,
    /// The connection ended with something undone.
    Close,
    /// Somebody asked for it.
    ByHand,
}

impl CaptureReason {
    pub(crate) const ALL: [Self; 8] = [
        Self::Unnamed,
        Self::Beyond,
        Self::ErrorCode,
        Self::Malformed,
        Self::Mismatch,
        Self::Slow,
        Self::Close,
        Self::ByHand,
    ];

    /// The value of the label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unnamed => "unnamed",
            Self::Beyond => "beyond",
            Self::ErrorCode => "error_code",
            Self::Malformed => "malformed",
            Self::Mismatch => "mismatch",
            Self::Slow => "slow",
            Self::Close => "close",
            Self::ByHand => "by_hand",
        }
    }
}

/// Why there is no capture, or no file of it: the label `reason` of `klamp_captures_dropped_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureDropped {
    /// There have been enough of its kind lately.
    RateLimited,
    /// It was given up to make room for others, or there was no room for it.
    Memory,
    /// Too many wait for the disk.
    QueueFull,
    /// The disk or the directory is full.
    DirectoryFull,
    /// It could not be written.
    WriteFailed,
}

impl CaptureDropped {
    pub(crate) const ALL: [Self; 5] = [
        Self::RateLimited,
        Self::Memory,
        Self::QueueFull,
        Self::DirectoryFull,
        Self::WriteFailed,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Memory => "memory",
            Self::QueueFull => "queue_full",
            Self::DirectoryFull => "directory_full",
            Self::WriteFailed => "write_failed",
        }
    }
}

/// The values of the label `acks`; the last stands for all others.
pub(crate) const ACKS: [&str; 4] = ["-1", "0", "1", OTHER];

/// The index into [`ACKS`].
pub(crate) fn acks_slot(acks: i16) -> usize {
    match acks {
        -1 => 0,
        0 => 1,
        1 => 2,
        _ => 3,
    }
}

/// The label values of API keys, their versions and error codes.
#[derive(Debug)]
pub(crate) struct Labels {
    keys: Vec<KeyLabel>,
    /// By wire code; [`NO_ROW`] where the code has no name.
    row_by_code: Vec<u16>,
    /// Filled from the front.
    advertised: [OnceLock<(i16, String)>; ADVERTISED_KEYS],
    /// Held while a row of `advertised` is taken.
    advertising: Mutex<()>,
    errors: Vec<&'static str>,
    /// By wire code + 1; [`NO_ROW`] where the code has no name.
    error_by_code: Vec<u16>,
}

#[derive(Debug)]
struct KeyLabel {
    name: &'static str,
    /// Versions below this have a slot of their own.
    versions: usize,
}

const NO_ROW: u16 = u16::MAX;

impl Labels {
    pub(crate) fn new(catalog: &Catalog) -> Self {
        let mut keys = Vec::new();
        let mut row_by_code = Vec::new();
        for key in &catalog.api_keys {
            if let Ok(code) = usize::try_from(key.code) {
                let versions = usize::try_from(key.max_version).map_or(0, |max| max + 1);
                set_row(&mut row_by_code, code, keys.len());
                keys.push(KeyLabel {
                    name: key.name,
                    versions: versions.min(VERSIONS),
                });
            }
        }
        let mut errors = Vec::new();
        let mut error_by_code = Vec::new();
        for &(code, name) in &catalog.error_codes {
            if let Ok(index) = usize::try_from(i32::from(code) + 1) {
                set_row(&mut error_by_code, index, errors.len());
                errors.push(name);
            }
        }
        Self {
            keys,
            row_by_code,
            advertised: [const { OnceLock::new() }; ADVERTISED_KEYS],
            advertising: Mutex::new(()),
            errors,
            error_by_code,
        }
    }

    /// How many rows of API keys there can be.
    pub(crate) fn rows(&self) -> usize {
        self.keys.len() + ADVERTISED_KEYS + 1
    }

    #[inline]
    pub(crate) fn row(&self, api_key: i16) -> KeyRow {
        let named = usize::try_from(api_key)
            .ok()
            .and_then(|code| self.row_by_code.get(code));
        match named {
            Some(&row) if row != NO_ROW => KeyRow(row),
            _ => self.unnamed_row(api_key),
        }
    }

    /// Gives `api_key` a row of its own, if it has none and one is left.
    pub(crate) fn advertise(&self, api_key: i16) {
        let _turn = self
            .advertising
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.row(api_key) != self.other() {
            return;
        }
        if let Some(free) = self.advertised.iter().find(|slot| slot.get().is_none()) {
            free.get_or_init(|| (api_key, api_key.to_string()));
        }
    }

    /// `None` for a row that no key has taken.
    pub(crate) fn key(&self, row: KeyRow) -> Option<&str> {
        let index = row.index();
        if let Some(key) = self.keys.get(index) {
            return Some(key.name);
        }
        match self.advertised.get(index - self.keys.len()) {
            Some(slot) => slot.get().map(|(_, number)| number.as_str()),
            None => Some(OTHER),
        }
    }

    /// Whether the key of `row` has a name, and not only a number.
    pub(crate) fn is_named(&self, row: KeyRow) -> bool {
        row.index() < self.keys.len()
    }

    /// The slot of a version; [`VERSIONS`] stands for `other`.
    #[inline]
    pub(crate) fn version_slot(&self, row: KeyRow, version: i16) -> usize {
        let known = self
            .keys
            .get(row.index())
            .map_or(VERSIONS, |key| key.versions);
        match usize::try_from(version) {
            Ok(version) if version < known => version,
            _ => VERSIONS,
        }
    }

    /// The names of error codes, by slot.
    pub(crate) fn errors(&self) -> &[&'static str] {
        &self.errors
    }

    /// `None` for a code without a name.
    #[inline]
    pub(crate) fn error_slot(&self, code: i16) -> Option<usize> {
        let index = usize::try_from(i32::from(code) + 1).ok()?;
        match *self.error_by_code.get(index)? {
            NO_ROW => None,
            slot => Some(usize::from(slot)),
        }
    }

    #[cold]
    fn unnamed_row(&self, api_key: i16) -> KeyRow {
        let taken = self.advertised.iter().map_while(OnceLock::get);
        let found = taken.enumerate().find(|(_, (code, _))| *code == api_key);
        found.map_or(self.other(), |(index, _)| {
            KeyRow(row_number(self.keys.len() + index))
        })
    }

    fn other(&self) -> KeyRow {
        KeyRow(row_number(self.keys.len() + ADVERTISED_KEYS))
    }
}

fn set_row(by_code: &mut Vec<u16>, code: usize, row: usize) {
    if by_code.len() <= code {
        by_code.resize(code + 1, NO_ROW);
    }
    by_code[code] = row_number(row);
}

/// The catalogue names a few hundred things at most, as `i16` numbers them.
fn row_number(row: usize) -> u16 {
    u16::try_from(row).unwrap_or(NO_ROW - 1)
}
