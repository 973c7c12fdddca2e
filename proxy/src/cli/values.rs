//! How values are written on the command line: sizes, times and words as people write them.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use klamp_codec::ApiKey;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

/// Names are not looked up: which address is listened on must not be a resolver's choice.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected IP:PORT, as in 127.0.0.1:9192 or [::]:9192 (names are not looked up)".to_owned()
    })
}

/// A time limit that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeLimit(pub(super) Option<Duration>);

pub(super) fn time_limit(text: &str) -> Result<TimeLimit, String> {
    if text == "off" {
        return Ok(TimeLimit(None));
    }
    positive_time(text)
        .map(|time| TimeLimit(Some(time)))
        .map_err(|error| format!("{error}, or `off`"))
}

pub(super) fn positive_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("expected more than no time at all".to_owned()),
        time => Ok(time),
    }
}

/// Up to a year, so that no deadline overflows a clock.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    match humantime::parse_duration(text) {
        Ok(time) if time <= YEAR => Ok(time),
        Ok(_) => Err("expected a year at most".to_owned()),
        Err(_) => Err("expected a time with its unit, as in 500ms, 10s or 1h 30m".to_owned()),
    }
}

/// At least a byte.
pub(super) fn file_bytes(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("expected at least 1 byte".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A number of things of which there must be some.
pub(super) fn some<T: FromStr>(text: &str) -> Result<T, String> {
    (text.parse()).map_err(|_| "expected a whole number, at least 1".to_owned())
}

pub(super) fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port @ 1..) => Ok(port),
        _ => Err("expected a port from 1 to 65535, as in 9092".to_owned()),
    }
}

fn size(text: &str) -> Result<u64, String> {
    let size: Result<bytesize::ByteSize, _> = text.parse();
    size.map(|size| size.as_u64())
        .map_err(|_| "expected a size, as in 104857600, 100MiB or 100MB".to_owned())
}

/// From a byte to what a frame's length can say.
pub(super) fn request_bytes(text: &str) -> Result<u32, String> {
    match u32::try_from(size(text)?) {
        Ok(bytes) if bytes > 0 && i32::try_from(bytes).is_ok() => Ok(bytes),
        // The length of a frame is an int32, so that 2GiB itself is one byte too many.
        Ok(bytes) if bytes == 1 << 31 => Ok(i32::MAX as u32),
        _ => Err("expected at least 1 byte and at most 2GiB".to_owned()),
    }
}

/// Nothing, or enough for some history.
pub(super) fn capture_memory(text: &str) -> Result<usize, String> {
    let size: Option<bytesize::ByteSize> = text.parse().ok();
    match size.map(|size| usize::try_from(size.as_u64())) {
        Some(Ok(bytes)) if bytes == 0 || bytes >= 1 << 20 => Ok(bytes),
        _ => Err("expected 0, or a size of at least 1MiB".to_owned()),
    }
}

/// An API and a version of it, as in `Fetch:12` or `1:12`.
pub(super) fn api_version(text: &str) -> Result<(ApiKey, i16), String> {
    let parse = || {
        let (api, version) = text.rsplit_once(':')?;
        let is = |key: &ApiKey| {
            key.name()
                .is_some_and(|name| name.eq_ignore_ascii_case(api))
        };
        let number = || api.parse().ok().map(ApiKey);
        let api_key = ApiKey::named().find(is).or_else(number)?;
        Some((api_key, version.parse().ok()?))
    };
    parse().ok_or_else(|| "expected an API and its version, as in Fetch:12 or 1:12".to_owned())
}

/// For a flag without a value, which has one in the environment.
pub(super) fn switch() -> impl TypedValueParser<Value = bool> {
    one_of([
        ("true", true),
        ("1", true),
        ("yes", true),
        ("on", true),
        ("false", false),
        ("0", false),
        ("no", false),
        ("off", false),
    ])
}

/// A parser for a few words, each with its value.
pub(super) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words.map(|(word, _)| word)).try_map(move |given| {
        let value = words.iter().find(|(word, _)| *word == given);
        value.map(|(_, value)| *value).ok_or("not one of the words")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn sizes_and_times_are_given_as_people_write_them() {
        assert_eq!(request_bytes("100MiB"), Ok(104_857_600));
        assert_eq!(request_bytes("100MB"), Ok(100_000_000));
        assert_eq!(request_bytes("512"), Ok(512));
        assert_eq!(file_bytes("3GiB"), Ok(3 << 30));
        assert_eq!(request_bytes("2GiB"), Ok(i32::MAX as u32));
        assert_eq!(capture_memory("0"), Ok(0));
        assert_eq!(capture_memory("1MiB"), Ok(1 << 20));
        assert_eq!(time("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(time_limit("off"), Ok(TimeLimit(None)));
        let half_a_second = TimeLimit(Some(Duration::from_millis(500)));
        assert_eq!(time_limit("500ms"), Ok(half_a_second));
    }

    #[test]
    fn ports_and_numbers_that_make_no_sense_are_refused_in_plain_words() {
        assert_eq!(
            (port("9092"), some("2")),
            (Ok(9092), Ok(NonZeroU32::MIN.saturating_add(1)))
        );
        for text in ["0", "-1", "abc", "65536", ""] {
            assert!(port(text).unwrap_err().contains("65535"), "{text}");
        }
        for text in ["0", "-1", "abc", "99999999999", ""] {
            let why = some::<NonZeroU32>(text).unwrap_err();
            assert!(why.contains("at least 1"), "{text}: {why}");
        }
    }

    #[test]
    fn sizes_and_times_that_make_no_sense_are_refused() {
        for size in ["0", "-1", "3GiB", "16EiB", "many", ""] {
            assert!(request_bytes(size).is_err(), "{size}");
        }
        for memory in ["1", "1KiB", "-1", "all"] {
            assert!(capture_memory(memory).is_err(), "{memory}");
        }
        assert!(file_bytes("0").is_err() && file_bytes("much").is_err());
        for limit in ["0s", "10", "never", "-1s", "300years", ""] {
            assert!(time_limit(limit).is_err(), "{limit}");
        }
        assert_eq!(time("0s"), Ok(Duration::ZERO));
    }
}
