//! Looks at what klamp tells of conversations: captures, their pages, what is printed of them, the log.

use super::{Mode, Run};
use crate::decoded;
use crate::frame::{Direction, Kind};
use crate::judge::{Judged, Taken, judge};
use crate::pcapng::{Capture, Kept};
use crate::talk::Talk;
use klamp_tests::scrape;
use serde_json::Value;

impl Run<'_> {
    /// Looks at all that is told of a capture.
    pub(super) fn look_at(&mut self, number: u64, talk: &Talk, taken: Taken) {
        let Some(bytes) = self.page(&format!("/captures/{number}.pcapng")) else {
            return;
        };
        // (there for whoever wants to know what failed)
        std::fs::write(&self.file, &bytes).expect("a room can be written to");
        let name = format!("capture {number} ({})", self.file.display());
        assert_eq!(self.not_kept.find(&bytes), None, "{name}");
        let capture = Capture::read(&bytes);
        let judged = judge(&capture, talk, taken, self.mode);
        if judged.is_sure {
            check_trigger(&capture, talk, &judged, self.mode);
        }
        for form in ["text", "json"] {
            let Some(page) = self.page(&format!("/captures/{number}?format={form}")) else {
                continue;
            };
            assert_eq!(self.not_shown.find(&page), None, "page of {name}");
            if form == "json" && taken == Taken::AtRest {
                check_page(&page, &capture);
            }
        }
        let forms = &self.not_shown;
        let decoded = decoded::check(&self.file, &capture, &judged, talk, self.mode, forms);
        self.counts.frames += capture.frames.len();
        self.counts.pairs += decoded.pairs;
        self.counts.bytes += decoded.bytes + bytes.len();
    }

    /// What a page says; `None` if the capture made room for another.
    fn page(&self, path: &str) -> Option<Vec<u8>> {
        let (status, body) = scrape::ask(self.klamp.debug(), "GET", path);
        if self.mode.is_small && status == 404 {
            return None;
        }
        assert_eq!(status, 200, "{path}: {}", body.escape_ascii());
        Some(body)
    }

    /// Looks at what klamp has captured by itself.
    pub(super) fn look_at_triggered(&mut self) {
        let captures = self.klamp.captures();
        let (mut open, mut ended) = (
            std::mem::take(&mut self.open),
            std::mem::take(&mut self.ended),
        );
        for capture in &captures {
            let mut talks = open.iter_mut().chain(&mut ended);
            let talk = talks.find(|it| capture["client"] == it.peer.to_string());
            let talk = talk.unwrap_or_else(|| panic!("who is that? {capture}"));
            let _blame = self.blame(talk.seed);
            let number = capture["id"].as_u64().expect("it has a number");
            self.look_at(number, talk, Taken::Amid);
            talk.is_captured |= is_for_code(capture["reason"].as_str());
        }
        (self.open, self.ended) = (open, ended);
        self.counts.triggered += captures.len();
        scrape::ask(self.klamp.debug(), "DELETE", "/captures");
    }

    /// Looks at what the log has more.
    pub(super) fn look_at_log(&mut self) {
        let text = self.klamp.process().err();
        let more = &text[self.logged..];
        let lines = &more[..more.rfind('\n').map_or(0, |end| end + 1)];
        self.logged += lines.len();
        assert_eq!(self.not_logged.find(lines.as_bytes()), None, "in the log");
        let mut lines = lines.lines();
        let is_bad = |line: &&str| line.contains("panicked") || line.contains(r#""ERROR""#);
        assert_eq!(lines.find(is_bad), None, "in the log");
        self.klamp.check_alive();
    }
}

/// Whether a capture was taken for the code of an answer, by its reason.
fn is_for_code(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason.starts_with("UNNAMED_"))
}

/// The page tells of the same frames as the file.
fn check_page(page: &[u8], capture: &Capture) {
    let page: Value = serde_json::from_slice(page).expect("it is JSON");
    let frames = page["exchanges"].as_array().expect("it is a list");
    let shown = frames.iter().map(|it| {
        let number = |name: &str| it[name].as_i64();
        let head = number("api_key")
            .zip(number("api_version"))
            .zip(number("correlation_id"));
        (it["direction"].as_str(), head, number("bytes"))
    });
    let kept = capture.frames.iter().map(|it| {
        let head = it.head.map(|head| {
            let (key, version) = (head.api_key.into(), head.api_version.into());
            ((key, version), head.correlation_id.into())
        });
        (Some(it.direction.name()), head, Some(it.received() as i64))
    });
    assert!(shown.eq(kept), "the page tells of other frames: {page}");
}

/// The frame that is said to have triggered is one that may.
fn check_trigger(capture: &Capture, talk: &Talk, judged: &Judged, mode: &Mode) {
    let reason = capture.says("reason").expect("there is one");
    let frames = judged.order.iter().zip(&capture.frames);
    let is_said = |it: &(&(Direction, usize), &Kept)| it.1.says("trigger").is_some();
    let said: Vec<_> = frames.filter(is_said).collect();
    let is_code = is_for_code(Some(reason));
    let is_malformed = reason.starts_with("malformed");
    match said[..] {
        [] => {
            let is_there = !(is_code || is_malformed) || mode.is_small;
            assert!(
                is_there,
                "no frame is said to have triggered {reason}: {}",
                capture.about
            );
        }
        [((direction, index), _)] => {
            let frame = &talk.stream(*direction).frames[*index].frame;
            assert!(
                !is_code || frame.has_unnamed_code,
                "{reason}: not in {frame:?}"
            );
            assert!(
                !is_malformed || frame.kind == Kind::Malformed,
                "{reason}: not {frame:?}"
            );
        }
        _ => panic!("several frames are said to have triggered {reason}"),
    }
}
