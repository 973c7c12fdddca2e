//! What may happen to bytes.

use fastrand::Rng;

/// Changes a few of `bytes`, takes some out or puts some in.
pub fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.u8(1..4) {
        let at = rng.usize(0..=bytes.len());
        let end = bytes.len().min(at + rng.usize(1..9));
        match rng.u8(0..8) {
            0 => drop(bytes.splice(at.., [])),
            1 => drop(bytes.splice(at..end, [])),
            2 => drop(bytes.splice(at..at, (0..rng.u8(1..9)).map(|_| rng.u8(..)))),
            3 => bytes[at..end].fill(*rng.choice(&[0, 1, 0x7f, 0x80, 0xff]).unwrap()),
            4 => {
                let again = bytes[at..end].repeat(rng.usize(1..4));
                drop(bytes.splice(at..at, again));
            }
            5 => {
                let word = *rng
                    .choice(&[0, 1, -1, i32::MAX, i32::MIN, 1 << 20])
                    .unwrap();
                drop(bytes.splice(at..bytes.len().min(at + 4), word.to_be_bytes()));
            }
            _ => bytes[at..end]
                .iter_mut()
                .take(1)
                .for_each(|byte| *byte ^= 1 << rng.u8(0..8)),
        }
    }
}
