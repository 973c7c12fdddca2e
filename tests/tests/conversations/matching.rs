//! Whether one frame of a capture is what may, and what must, be kept of one that was sent.

use super::frame::{FRAME, Frame, Kind, Length, Piece};
use super::pcapng::Kept;
use super::run::Mode;
use super::talk::Sent;

/// Bytes that a withheld field counts for in a longer frame.
const HOLE: usize = 512;

/// What was found of a frame that can be read.
struct Found {
    /// Where it is cut, in the frame as it was sent.
    cut: Option<usize>,
    /// Bytes that are missing of what is withheld.
    missing: usize,
}

impl Found {
    fn cut(at: usize) -> Self {
        Self {
            cut: Some(at),
            missing: 0,
        }
    }
}

/// Whether it may be that one, as far as its head tells.
pub(crate) fn may_be(sent: &Sent, kept: &Kept) -> bool {
    kept.received() == sent.frame.bytes.len() && kept.head == sent.frame.head
}

/// What is wrong with what is kept, if anything is. `is_over`: all that was sent had arrived.
pub(crate) fn check(sent: &Sent, kept: &Kept, mode: &Mode, is_over: bool) -> Result<(), String> {
    let frame = &sent.frame;
    let Some((length, body)) = kept.bytes.split_first_chunk() else {
        return Err("it has no length".into());
    };
    if u32::from_be_bytes(*length) as usize != body.len() {
        return Err(format!("its length is {length:?}, of {} bytes", body.len()));
    }
    if frame.kind == Kind::Token {
        return match body {
            [] => Ok(()),
            _ => Err("bytes of a token".into()),
        };
    }
    let why = kept.says("kept");
    if why.is_some_and(|why| why.contains("had not come")) {
        if is_over && sent.ended.is_some() {
            return Err("it is said not to have come to its end".into());
        }
        return match body.is_empty() || body == &frame.bytes[4..frame.header] {
            true => Ok(()),
            false => Err("of a frame under way there is more or less than its header".into()),
        };
    }
    match frame.kind {
        Kind::Malformed | Kind::Unknown | Kind::AnsweredHere => {
            check_unread(frame, body, why, mode, is_over)
        }
        _ => check_whole(sent, kept, body, why, mode),
    }
}

fn check_unread(
    frame: &Frame,
    body: &[u8],
    why: Option<&str>,
    mode: &Mode,
    is_over: bool,
) -> Result<(), String> {
    let is_whole = body == &frame.bytes[4..];
    if !is_whole && body != &frame.bytes[4..frame.header] {
        return Err("it is not the header".into());
    }
    let is_kept = mode.keeps_unread && frame.bytes.len() <= FRAME;
    let is_right = match frame.kind {
        // (what was left out of it before it turned out to be malformed is missing; and it may not have come
        // to its end, which is not said of what cannot be read)
        Kind::Malformed if is_kept => true,
        _ if is_kept && !is_over => true,
        _ => is_whole == (is_kept || frame.bytes.len() == frame.header),
    };
    if !is_right {
        return Err(format!("{} bytes are kept", body.len() + 4));
    }
    match is_whole || frame.kind == Kind::AnsweredHere || why.is_some() {
        true => Ok(()),
        false => Err("it is not said that it is cut".into()),
    }
}

fn check_whole(
    sent: &Sent,
    kept: &Kept,
    body: &[u8],
    why: Option<&str>,
    mode: &Mode,
) -> Result<(), String> {
    if why.is_some_and(|why| why.contains("header only")) {
        return Err("nothing is wrong with it".into());
    }
    let frame = &sent.frame;
    let is_long = frame.bytes.len() > FRAME;
    let found = walk(sent, body, mode)?;
    let Some(cut) = found.cut else {
        if is_long && frame.plain() > FRAME && frame.withheld().next().is_none() {
            return Err("nothing is withheld, and yet more than may be is kept".into());
        }
        return match kept.withheld() {
            Some(told) if told != found.missing => Err(format!(
                "{told} bytes are told to be withheld, not {}",
                found.missing
            )),
            _ => Ok(()),
        };
    };
    let (len, holes) = (frame.bytes.len(), frame.withheld().count());
    if why.is_none() {
        return Err(format!("it is not said that it is cut at {cut}"));
    }
    if holes == 0 && kept.bytes.len() > FRAME {
        return Err(format!("{} bytes are kept", kept.bytes.len()));
    }
    // (of a field's length nothing is kept where not all of it is, nor is all looked at of what is long)
    let least = least_end(frame);
    let is_short = frame.plain() + HOLE * holes <= FRAME;
    match !is_long || holes > 0 && is_short && (least == len || cut + 5 < least) {
        true => Err(format!("it is cut at {cut} of {len}, not at {least}")),
        false => Ok(()),
    }
}

/// Up to where a long frame is kept: so much, and as much more as is withheld, which counts for a bit.
fn least_end(frame: &Frame) -> usize {
    let (mut at, mut end) = (4, FRAME);
    for piece in &frame.pieces {
        match piece {
            Piece::Plain(bytes) => at += bytes.len(),
            // (nobody tells of what has an unknown tag)
            Piece::Withheld {
                length: Length::Varint,
                content,
                ..
            } => at += Length::Varint.of(content.len()).len() + content.len(),
            Piece::Withheld {
                length, content, ..
            } => {
                at += length.of(content.len()).len();
                further(&mut end, at, content.len());
                at += content.len();
            }
            Piece::Trailing(content) => further(&mut end, at, content.len()),
        }
    }
    end.min(frame.bytes.len())
}

fn further(end: &mut usize, at: usize, withheld: usize) {
    if at < *end {
        *end = (*end + withheld).saturating_sub(HOLE).max(at + withheld);
    }
}

/// Holds what is kept against the frame, piece by piece.
fn walk(sent: &Sent, body: &[u8], mode: &Mode) -> Result<Found, String> {
    let frame = &sent.frame;
    let (mut rest, mut at, mut missing) = (body, 4, 0);
    for piece in &frame.pieces {
        match piece {
            Piece::Plain(bytes) => {
                let same = common(bytes, rest);
                (at, rest) = (at + same, &rest[same..]);
                if same < bytes.len() && !rest.is_empty() {
                    let why = shown(rest, &bytes[same..]);
                    return Err(format!("other bytes at {at}: {why}"));
                }
                if same < bytes.len() {
                    return Ok(Found::cut(at));
                }
            }
            Piece::Trailing(content) => {
                missing += content.len();
                at += content.len();
            }
            Piece::Withheld { .. } if rest.is_empty() => return Ok(Found::cut(at)),
            Piece::Withheld {
                length, content, ..
            } => {
                let options = what_may_be_kept(piece, sent, mode);
                let own = length.of(content.len());
                let field = |kept: &Vec<u8>| [length.of(kept.len()), kept.clone()].concat();
                let is = |kept: &&Vec<u8>| rest.starts_with(&field(kept));
                if let Some(kept) = options.iter().find(is) {
                    rest = &rest[field(kept).len()..];
                    at += own.len() + content.len();
                    missing += content.len() - kept.len();
                } else if own.starts_with(rest)
                    || options.iter().any(|it| field(it).starts_with(rest))
                {
                    return Ok(Found::cut(at + rest.len().min(own.len())));
                } else {
                    let (bytes, why) = (content.len(), shown(rest, &field(&options[0])));
                    return Err(format!("of {bytes} withheld bytes at {at} is kept: {why}"));
                }
            }
        }
    }
    match rest {
        [] => Ok(Found { cut: None, missing }),
        _ => Err(format!("more than there was: {}", shown(rest, &[]))),
    }
}

/// What may stand for a withheld field, the most first.
fn what_may_be_kept(piece: &Piece, sent: &Sent, mode: &Mode) -> Vec<Vec<u8>> {
    let Piece::Withheld {
        content,
        heads: Some(heads),
        ..
    } = piece
    else {
        return vec![Vec::new()];
    };
    let is_long = sent.frame.bytes.len() > FRAME;
    if mode.keeps_records && !is_long {
        return vec![content.clone()];
    }
    // A head that comes in two parts is not kept, nor are those behind it.
    let least = match sent.is_at_once && !is_long {
        true => heads.len(),
        false => 0,
    };
    let counts = (least..=heads.len()).rev();
    counts.map(|count| heads[..count].concat()).collect()
}

/// How many bytes both begin with.
fn common(one: &[u8], other: &[u8]) -> usize {
    if one.len() <= other.len() && other.starts_with(one) {
        return one.len();
    }
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

fn shown(is: &[u8], wanted: &[u8]) -> String {
    let some = |bytes: &[u8]| bytes[..bytes.len().min(64)].escape_ascii().to_string();
    format!("\"{}\", wanted \"{}\"", some(is), some(wanted))
}
