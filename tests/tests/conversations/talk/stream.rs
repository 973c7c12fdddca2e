//! What one end sends to the other: frame after frame, and when which of them was sent and had arrived.

use crate::frame::Frame;
use std::time::Instant;

/// Bytes that klamp looks at at once, if they are there.
const LOOK: usize = 16 << 10;

/// A frame that has been handed to the socket, in part at least, and what became of it.
pub(crate) struct Sent {
    pub(crate) frame: Frame,
    /// Its place in the stream.
    pub(crate) start: usize,
    /// Before its first byte was sent.
    pub(crate) began: Option<Instant>,
    /// After its last byte was sent.
    pub(crate) ended: Option<Instant>,
    /// After the other end had it.
    pub(crate) arrived: Option<Instant>,
    /// It was sent at once, and nothing else was under way: klamp sees all of it in one look.
    pub(crate) is_at_once: bool,
    /// The frame of the other direction that it answers, or that answers it.
    pub(crate) partner: Option<usize>,
}

/// What one end sends to the other.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) frames: Vec<Sent>,
    pub(super) bytes: Vec<u8>,
    pub(super) sent: usize,
    /// Bytes that were under way at once: upon many klamp looks at the next ones while they are in the socket,
    /// and then at few.
    most_under_way: usize,
    /// Where sends ended.
    pub(crate) marks: Vec<usize>,
    /// What arrived, and whether it is over.
    pub(super) got: Vec<u8>,
    pub(super) is_over: bool,
}

impl Stream {
    pub(super) fn push(&mut self, frame: Frame, partner: Option<usize>) -> usize {
        let start = self.bytes.len();
        self.bytes.extend(&frame.bytes);
        self.frames.push(Sent {
            frame,
            start,
            began: None,
            ended: None,
            arrived: None,
            is_at_once: false,
            partner,
        });
        self.frames.len() - 1
    }

    pub(super) fn is_sent(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// So much was sent since then.
    pub(super) fn note(&mut self, since: Instant, bytes: usize) {
        let before = self.sent;
        self.sent += bytes;
        self.marks.push(self.sent);
        let first = self.frames.partition_point(|it| it.start <= before) - 1;
        let (past, of_now) = self.frames.split_at_mut(first);
        let is_alone =
            past.last().is_none_or(|it| it.arrived.is_some()) && of_now[0].start == before;
        let unseen = past.iter().find(|it| it.arrived.is_none());
        let under_way = self.sent - unseen.map_or(of_now[0].start, |it| it.start);
        self.most_under_way = self.most_under_way.max(under_way);
        let is_alone = is_alone && self.most_under_way <= LOOK;
        for it in of_now {
            if it.start >= self.sent {
                break;
            }
            it.began.get_or_insert(since);
            if it.start + it.frame.bytes.len() <= self.sent {
                it.ended = Some(Instant::now());
                it.is_at_once = is_alone;
            }
        }
    }
}
