//! What makes the recorder keep what a connection said last: the list of `--capture-on`, which can be
//! replaced while klamp runs.
//!
//! The trap: some brokers answer with an error code in every message (a long poll that ends with one is
//! no trouble), so a code is looked up in a table that was made when the list was read, and never
//! compared word by word.

use klamp_codec::{ApiKey, ErrorCode};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Codes from -1 on that have a bit of their own; Kafka has some 140.
const BITS: usize = 1024;

/// Words that a list may have; each is an exception an operator asked for, not a table.
const WORDS: usize = 64;

const CHOICES: &str = "expected BEYOND (a code that kafka-protocol does not know), UNNAMED (a code without \
     a name), an error code by name or number, API:CODE as in Produce:10, malformed, mismatch, close, \
     slow=TIME as in slow=5s, or none alone";

/// One word of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// A code that `kafka-protocol` does not know, named here or not.
    Beyond,
    /// A code that has no name here.
    Unnamed,
    /// This code, in the answers of this API or of all.
    Code(Option<ApiKey>, ErrorCode),
    /// A message that does not fit its layout.
    Malformed,
    /// A response that answers no request.
    Mismatch,
    /// An answer that came so much later than the request itself asked the broker to wait.
    Slow(Duration),
    /// A close with requests in flight, or by the broker right after a Produce with acks=0 or upon a
    /// request that nobody here reads.
    Close,
}

impl Trigger {
    fn takes(self, code: ErrorCode) -> bool {
        match self {
            Self::Beyond => code.is_beyond_kafka_protocol(),
            Self::Unnamed => code.name().is_none(),
            Self::Code(None, this) => this == code,
            _ => false,
        }
    }
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let named = [
            ("BEYOND", Self::Beyond),
            ("UNNAMED", Self::Unnamed),
            ("malformed", Self::Malformed),
            ("mismatch", Self::Mismatch),
            ("close", Self::Close),
        ];
        if let Some((_, trigger)) = named.into_iter().find(|(name, _)| is(name)) {
            return Ok(trigger);
        }
        if let Some((name, time)) = word.split_once('=')
            && name.eq_ignore_ascii_case("slow")
        {
            let time = humantime::parse_duration(time).map_err(|error| {
                format!("{word:?}: {error}; expected a time with its unit, as in slow=5s")
            })?;
            // (a limit is compared with each answer's time in nanoseconds)
            const MOST: u64 = u64::MAX - 1;
            return match u64::try_from(time.as_nanos()) {
                Ok(1..=MOST) => Ok(Self::Slow(time)),
                _ => Err(format!(
                    "{word:?}: expected more than no time, and less than 500 years"
                )),
            };
        }
        let trigger = match word.split_once(':') {
            Some((api, code)) => api_key(api)
                .zip(error_code(code))
                .map(|(api, code)| (Some(api), code)),
            None => error_code(word).map(|code| (None, code)),
        };
        match trigger {
            Some((_, ErrorCode::NONE)) => {
                Err(format!("{word:?} is no error: every message has it"))
            }
            Some((api_key, code)) => Ok(Self::Code(api_key, code)),
            None => Err(format!("{word:?} is nothing to capture on: {CHOICES}")),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beyond => f.write_str("BEYOND"),
            Self::Unnamed => f.write_str("UNNAMED"),
            Self::Code(api_key, code) => {
                if let Some(api_key) = api_key {
                    write!(f, "{api_key}:")?;
                }
                match code.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", code.0),
                }
            }
            Self::Malformed => f.write_str("malformed"),
            Self::Mismatch => f.write_str("mismatch"),
            Self::Slow(time) => {
                let time = humantime::format_duration(*time).to_string();
                write!(f, "slow={}", time.replace(' ', ""))
            }
            Self::Close => f.write_str("close"),
        }
    }
}

fn api_key(text: &str) -> Option<ApiKey> {
    let is = |key: &ApiKey| {
        key.name()
            .is_some_and(|name| name.eq_ignore_ascii_case(text))
    };
    ApiKey::named()
        .find(is)
        .or_else(|| text.parse().ok().map(ApiKey))
}

fn error_code(text: &str) -> Option<ErrorCode> {
    // (as codes without a name are shown)
    let number = text.strip_prefix("UNNAMED_").unwrap_or(text);
    ErrorCode::of_name(text).or_else(|| number.parse().ok().map(ErrorCode))
}

/// A list of triggers, ready to be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Triggers {
    /// As given, each once.
    words: Vec<Trigger>,
    /// The codes from -1 on that trigger whatever the API.
    codes: [u64; BITS / 64],
    /// Whether all codes beyond those do; none of them has a name.
    others: bool,
    /// Codes that the table cannot tell: of one API, or beyond it.
    listed: Vec<(Option<ApiKey>, ErrorCode)>,
}

impl Triggers {
    fn new(words: Vec<Trigger>) -> Self {
        let mut codes = [0; BITS / 64];
        for (index, code) in (-1..).map(ErrorCode).enumerate().take(BITS) {
            if code != ErrorCode::NONE && words.iter().any(|word| word.takes(code)) {
                codes[index / 64] |= 1 << (index % 64);
            }
        }
        let listed = words.iter().filter_map(|word| match *word {
            Trigger::Code(api_key, code) if api_key.is_some() || bit(code).is_none() => {
                Some((api_key, code))
            }
            _ => None,
        });
        Self {
            codes,
            others: words
                .iter()
                .any(|word| matches!(word, Trigger::Beyond | Trigger::Unnamed)),
            listed: listed.collect(),
            words,
        }
    }

    /// Whether an answer of `api_key` with this code is to be kept. `NONE` is never.
    pub(crate) fn on_code(&self, api_key: ApiKey, code: ErrorCode) -> bool {
        let told = match bit(code) {
            Some(index) => self.codes[index / 64] & 1 << (index % 64) != 0,
            None => self.others,
        };
        let is =
            |&(of, this): &(Option<ApiKey>, _)| this == code && of.is_none_or(|of| of == api_key);
        told || self.listed.iter().any(is)
    }

    /// Whether a message that does not fit its layout is to be kept.
    pub(crate) fn on_malformed(&self) -> bool {
        self.words.contains(&Trigger::Malformed)
    }

    /// Whether a response that answers no request is to be kept.
    pub(crate) fn on_mismatch(&self) -> bool {
        self.words.contains(&Trigger::Mismatch)
    }

    /// Whether a close that leaves something undone is to be kept.
    pub(crate) fn on_close(&self) -> bool {
        self.words.contains(&Trigger::Close)
    }

    /// How late, beyond the wait that the request asked for, an answer is to be kept.
    pub(crate) fn slow(&self) -> Option<Duration> {
        let slow = self.words.iter().filter_map(|word| match word {
            Trigger::Slow(time) => Some(*time),
            _ => None,
        });
        slow.min()
    }
}

/// The place of a code in the table.
fn bit(code: ErrorCode) -> Option<usize> {
    usize::try_from(i32::from(code.0) + 1)
        .ok()
        .filter(|index| *index < BITS)
}

impl FromStr for Triggers {
    type Err = String;

    /// Words between commas.
    fn from_str(list: &str) -> Result<Self, String> {
        let list: Vec<_> = list.split(',').map(str::trim).collect();
        let is_none = |word: &&str| word.eq_ignore_ascii_case("none");
        match list.as_slice() {
            [word] if is_none(word) => return Ok(Self::new(Vec::new())),
            words if words.iter().any(is_none) => {
                return Err("`none` goes with nothing else".to_owned());
            }
            words if words.len() > WORDS => return Err(format!("expected {WORDS} words at most")),
            _ => {}
        }
        let mut words = Vec::new();
        for word in list {
            let trigger = word.parse()?;
            if !words.contains(&trigger) {
                words.push(trigger);
            }
        }
        Ok(Self::new(words))
    }
}

impl fmt::Display for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.words.is_empty() {
            return f.write_str("none");
        }
        for (n, word) in self.words.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            write!(f, "{comma}{word}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triggers(list: &str) -> Triggers {
        list.parse().unwrap()
    }

    /// The codes that trigger in a Fetch, of those that can.
    fn codes(list: &str) -> Vec<i16> {
        let triggers = triggers(list);
        let trips = |code: &i16| triggers.on_code(ApiKey::FETCH, ErrorCode(*code));
        (i16::MIN..=i16::MAX).filter(trips).collect()
    }

    #[test]
    fn beyond_takes_codes_that_the_library_lacks_with_or_without_a_name() {
        let beyond = triggers("BEYOND");
        let mut both = [0, 0];
        for code in (i16::MIN..=i16::MAX).map(ErrorCode) {
            let expected = code.is_beyond_kafka_protocol();
            assert_eq!(
                beyond.on_code(ApiKey::PRODUCE, code),
                expected,
                "{}",
                code.0
            );
            both[usize::from(code.name().is_some())] += i32::from(expected);
        }
        assert!(both[0] > 60_000 && both[1] > 0, "{both:?}");
    }

    #[test]
    fn unnamed_takes_codes_that_nothing_names() {
        let unnamed = triggers("UNNAMED");
        for code in (i16::MIN..=i16::MAX).map(ErrorCode) {
            assert_eq!(
                unnamed.on_code(ApiKey::PRODUCE, code),
                code.name().is_none()
            );
        }
    }

    #[test]
    fn a_code_is_given_by_name_or_number_for_all_apis_or_one() {
        assert_eq!(codes("NOT_LEADER_OR_FOLLOWER"), [6]);
        assert_eq!(codes("not_leader_or_follower,6"), [6]);
        assert_eq!(codes("-1,250,2000"), [-1, 250, 2000]);
        assert_eq!(codes("UNNAMED_250"), [250]);
        assert_eq!(codes("NOT_LEADER_FOR_PARTITION"), [6]);
        let list = triggers("Fetch:NOT_LEADER_FOR_PARTITION").to_string();
        assert_eq!(list, "Fetch:NOT_LEADER_OR_FOLLOWER");
        assert_eq!(
            codes("Fetch:OFFSET_OUT_OF_RANGE,fetch:-7,1:3000"),
            [-7, 1, 3000]
        );
        assert!(codes("Produce:10,0:2000").is_empty());
        assert!(triggers("Produce:10").on_code(ApiKey::PRODUCE, ErrorCode(10)));
    }

    #[test]
    fn none_is_never_a_code_to_capture_on() {
        for list in [
            "BEYOND",
            "UNNAMED",
            "none",
            "1,Fetch:2,malformed,mismatch,close,slow=1s",
        ] {
            assert!(
                !triggers(list).on_code(ApiKey::FETCH, ErrorCode::NONE),
                "{list}"
            );
        }
        assert!(
            "NONE".parse::<Triggers>().unwrap().words.is_empty(),
            "none is no trigger at all"
        );
        for list in ["0", "Fetch:NONE", "Produce:0"] {
            let error = list.parse::<Triggers>().unwrap_err();
            assert!(error.contains("no error"), "{error}");
        }
    }

    #[test]
    fn what_else_triggers_is_given_by_a_word() {
        let of = |list| {
            let list = triggers(list);
            (
                list.on_malformed(),
                list.on_mismatch(),
                list.on_close(),
                list.slow(),
            )
        };
        assert_eq!(of("none"), (false, false, false, None));
        assert_eq!(of("malformed"), (true, false, false, None));
        assert_eq!(of("mismatch, close"), (false, true, true, None));
        let limit = Some(Duration::from_millis(1500));
        assert_eq!(of("slow=1500ms,slow=1h"), (false, false, false, limit));
    }

    #[test]
    fn a_list_reads_back_as_it_is_shown() {
        let list = "BEYOND,UNNAMED,NOT_LEADER_OR_FOLLOWER,Produce:MESSAGE_TOO_LARGE,250,malformed,\
                    mismatch,slow=1m30s,close";
        assert_eq!(triggers(list).to_string(), list);
        assert_eq!(triggers(&triggers(list).to_string()), triggers(list));
        assert_eq!(triggers("none").to_string(), "none");
    }

    #[test]
    fn words_that_mean_nothing_are_refused_with_the_choices() {
        for list in [
            "",
            ",",
            "NOT_A_NAME",
            "40000",
            "Fetch:",
            "Nothing:1",
            "Fetch:1:2",
            "slow",
            "6,,7",
        ] {
            let error = list.parse::<Triggers>().unwrap_err();
            assert!(
                error.contains("BEYOND") && error.contains("slow=TIME"),
                "{list}: {error}"
            );
        }
        for list in [
            "slow=",
            "slow=5",
            "slow=0s",
            "slow=1000years",
            "none,UNNAMED",
        ] {
            assert!(list.parse::<Triggers>().is_err(), "{list}");
        }
        let many = vec!["1"; WORDS + 1].join(",");
        assert!(many.parse::<Triggers>().is_err());
    }
}
