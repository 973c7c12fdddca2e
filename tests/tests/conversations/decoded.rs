//! Whether `klamp decode` tells of a capture what was said: no more, and each answer with its request.

use super::frame::{Direction, Head, Kind};
use super::judge::Judged;
use super::pcapng::Capture;
use super::run::Mode;
use super::script::Ids;
use super::talk::Talk;
use klamp_tests::klamp;
use klamp_tests::needle::Forms;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// An exchange as it is printed.
struct Exchange {
    /// `None` of tokens.
    head: Option<Head>,
    /// Bytes of the request and of the answer, of those that were kept.
    bytes: [Option<usize>; 2],
    ms: Option<f64>,
}

/// How much was looked at.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) bytes: usize,
    pub(crate) pairs: usize,
}

/// # Panics
/// If it does not.
pub(crate) fn check(
    file: &Path,
    capture: &Capture,
    judged: &Judged,
    talk: &Talk,
    mode: &Mode,
    forms: &Forms,
) -> Decoded {
    let name = file.to_str().expect("cargo's folders are UTF-8");
    // What is no more than a header has nothing that could be said to be withheld: it is broken. So may be what
    // was kept though it cannot be read.
    let sent = talk.streams.iter().flat_map(|it| &it.frames);
    let is_broken = mode.keeps_unread
        || sent
            .clone()
            .any(|it| it.frame.kind == Kind::Malformed && it.frame.bytes.len() == it.frame.header);
    let (mut bytes, mut exchanges) = (0, Vec::new());
    for arguments in [&[][..], &["-v"], &["--json"]] {
        let (code, out, err) = klamp::run(&[&["decode", name], arguments].concat());
        assert!(!err.contains("panicked"), "decode {arguments:?}: {err}");
        // (with little memory all may have been given up)
        let is_empty = capture.frames.is_empty() && err.contains("not one byte is here");
        assert!(
            is_broken || code == Some(i32::from(is_empty)),
            "decode {arguments:?}: {code:?} {err}"
        );
        for text in [&out, &err] {
            let found = forms.find(text.as_bytes());
            assert!(
                found.is_none(),
                "decode {arguments:?}: {}",
                found.unwrap_or_default()
            );
        }
        bytes += out.len();
        if arguments == ["--json"] {
            let lines = out.lines().map(serde_json::from_str);
            let lines: Result<Vec<Value>, _> = lines.collect();
            exchanges = lines.unwrap_or_else(|e| panic!("{e}: {out}"));
        }
    }
    let sizes: HashSet<_> = sent.flat_map(|it| it.frame.withheld()).chain([0]).collect();
    if !mode.keeps_unread {
        exchanges.iter().for_each(|it| check_sizes(it, &sizes));
    }
    let exchanges: Vec<_> = exchanges.iter().map(exchange).collect();
    let pairs = match judged.is_sure {
        true => check_exchanges(&exchanges, capture, judged, talk),
        false => 0,
    };
    Decoded { bytes, pairs }
}

/// A withheld field has the size of one that was sent.
fn check_sizes(value: &Value, sizes: &HashSet<usize>) {
    let Value::Object(fields) = value else {
        let elements = value.as_array().into_iter().flatten();
        return elements.for_each(|it| check_sizes(it, sizes));
    };
    for (name, value) in fields {
        if name.ends_with("SizeInBytes")
            && let Some(size) = value.as_u64()
        {
            let is_one = sizes.contains(&(size as usize));
            assert!(is_one, "no field of {size} bytes was sent: {name}");
        }
        check_sizes(value, sizes);
    }
}

fn exchange(value: &Value) -> Exchange {
    let header = &value["requestHeader"];
    let number = |name: &str| i32::try_from(header[name].as_i64()?).ok();
    let bytes = |name: &str| Some(value[name].as_u64()? as usize);
    let head = || {
        Some(Head {
            api_key: number("requestApiKey")? as i16,
            api_version: number("requestApiVersion")? as i16,
            correlation_id: number("correlationId")?,
        })
    };
    Exchange {
        head: head(),
        bytes: [bytes("requestBytes"), bytes("responseBytes")],
        ms: value["totalTimeMs"].as_f64(),
    }
}

/// Each exchange was one, and each that is kept is told; how many have both sides.
fn check_exchanges(
    exchanges: &[Exchange],
    capture: &Capture,
    judged: &Judged,
    talk: &Talk,
) -> usize {
    let [requests, responses] = talk.streams.each_ref().map(|it| &it.frames);
    let was_said = requests.iter().map(|request| {
        let answer = request.partner.map(|answer| &responses[answer].frame);
        let bytes = [&request.frame].into_iter().chain(answer);
        let bytes: Vec<_> = bytes.map(|frame| frame.bytes.len()).collect();
        (request.frame.head, bytes)
    });
    let was_said: HashSet<_> = was_said.collect();
    let kept: HashMap<_, _> = judged.order.iter().zip(&capture.frames).collect();
    // Where all have the same id, or none, the answer to a request that was given up may be that to a later one.
    let is_anyones = |(direction, index): &(Direction, usize)| {
        if *direction == Direction::Request {
            return false;
        }
        let answer = &responses[*index];
        let asked = answer.partner.map(|asked| (Direction::Request, asked));
        let is_alone = asked.is_none_or(|asked| !kept.contains_key(&asked));
        is_alone && (talk.script.ids == Ids::Same || answer.frame.kind == Kind::Token)
    };
    if judged.order.iter().any(is_anyones) {
        return 0;
    }
    let mut pairs = 0;
    for Exchange { head, bytes, .. } in exchanges {
        if let [Some(request), Some(answer)] = bytes {
            let is_one = was_said.contains(&(*head, vec![*request, *answer]));
            assert!(is_one, "no such exchange was: {head:?} of {bytes:?} bytes");
            pairs += 1;
        }
    }
    for ((direction, index), request) in &kept {
        if *direction == Direction::Response {
            continue;
        }
        let answer = requests[*index].partner;
        let answer = answer.and_then(|answer| kept.get(&(Direction::Response, answer)));
        let bytes = [Some(request.received()), answer.map(|it| it.received())];
        let ms = answer.and_then(|it| it.latency_ms());
        let is_told = exchanges.iter().any(|it| {
            let ms = it
                .ms
                .zip(ms)
                .is_none_or(|(one, other)| (one - other).abs() < 1e-4);
            it.head == request.head && it.bytes == bytes && ms
        });
        assert!(
            is_told,
            "not told: {request:?} of {bytes:?} bytes after {ms:?} ms"
        );
    }
    pairs
}
