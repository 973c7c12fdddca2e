//! Valid bodies of any layout, found by the walker itself: byte by byte, going back where it refuses one.
//! No oracle of what is valid, but a way into every corner of every layout.

use fastrand::Rng;
use klamp_codec::layout::{Progress, Root, Walker};

/// A body that a walk from `root` reads to its end.
pub fn grown(root: Root, rng: &mut Rng) -> Vec<u8> {
    let room = rng.u32(1..400);
    let mut bytes = Vec::new();
    // Where the walk stood before each byte.
    let mut walkers = vec![Walker::new(root, room)];
    let mut refused = 0;
    loop {
        let mut walker = walkers.last().expect("the first one stays").clone();
        let byte = [match rng.u8(..) {
            0..100 => 0,
            100..140 => 1,
            140..190 => rng.u8(2..8),
            190..200 => 0xff,
            _ => rng.u8(..),
        }];
        // A message may be empty.
        let next: &[u8] = if bytes.is_empty() && refused == 0 {
            &[]
        } else {
            &byte
        };
        match walker.feed(next, &mut |_| {}) {
            Ok((used, Progress::Done)) => {
                bytes.extend(&next[..used]);
                return bytes;
            }
            Ok(_) if next.is_empty() => refused = 1,
            Ok(_) => {
                bytes.push(byte[0]);
                walkers.push(walker);
            }
            Err(_) => {
                refused += 1;
                // The byte that is wrong may be one before: a count has up to four, and all of the
                // message may have no room.
                let back = match refused % 16 {
                    0 => 1 + rng.usize(0..8),
                    _ if refused % 512 == 1 => bytes.len(),
                    _ => 0,
                };
                bytes.truncate(bytes.len().saturating_sub(back));
                walkers.truncate(bytes.len() + 1);
                if refused > 20_000 {
                    // There is no room for any such message.
                    return grown(root, rng);
                }
            }
        }
    }
}
