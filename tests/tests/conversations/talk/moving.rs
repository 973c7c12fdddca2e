//! Moves bytes between both ends and klamp, as many as there is room for, or fewer.

use super::{Stream, Talk};
use crate::frame::Direction;
use crate::writer::pick;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// Bytes that are sent at once at most, by connection.
pub(super) const SIZES: [usize; 4] = [12, 600, 9000, 65_536];

impl Talk {
    /// Sends some bytes; whether any were taken.
    pub(super) fn send(&mut self, direction: Direction) -> bool {
        let stream = &mut self.streams[direction as usize];
        let rest = &stream.bytes[stream.sent..];
        if rest.is_empty() {
            return false;
        }
        let mut most = match self.most {
            0 => pick(&mut self.cuts, &SIZES),
            most => most,
        };
        if rest.len() > 400 * most && self.cuts.f64() < 0.8 {
            most = SIZES[3];
        }
        let piece = &rest[..rest.len().min(self.cuts.usize(1..=most))];
        let since = Instant::now();
        let Some(mut end) = self.ends[direction as usize].as_ref() else {
            return false;
        };
        match end.write(piece) {
            Ok(bytes) => stream.note(since, bytes),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
            Err(e) => panic!("klamp closed by itself: {e}"),
        }
        true
    }

    /// Takes some of what was sent at its other end; whether any came.
    pub(super) fn receive(&mut self, direction: Direction) -> bool {
        let stream = &mut self.streams[direction as usize];
        let Some(mut end) = self.ends[1 - direction as usize].as_ref() else {
            return false;
        };
        let (mut bytes, before) = ([0; 1 << 16], stream.got.len());
        match end.read(&mut bytes) {
            Ok(count) if count > 0 => stream.got.extend(&bytes[..count]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return false,
            Ok(_) | Err(_) => stream.is_over = true,
        }
        let came = &stream.got[before..];
        let wanted = self.for_broker.get(before..stream.got.len());
        if direction == Direction::Request && !self.is_ending {
            assert!(
                wanted == Some(came),
                "the broker got other bytes than were sent"
            );
        }
        !came.is_empty()
    }

    /// Waits until a socket can go on; whether one can within that time.
    pub(super) fn is_ready(&self, within: Duration) -> bool {
        let wants = |stream: &Stream| match stream.is_sent() {
            true => PollFlags::IN,
            false => PollFlags::IN | PollFlags::OUT,
        };
        let [requests, responses] = &self.streams;
        let ends = self.ends.iter().zip([wants(requests), wants(responses)]);
        let mut ends: Vec<_> = ends
            .filter_map(|(end, wants)| Some(PollFd::new(end.as_ref()?, wants)))
            .collect();
        let within = Timespec::try_from(within).expect("it is short");
        poll(&mut ends, Some(&within)).expect("sockets can be waited for") > 0
    }
}
