//! Bodies that many connections get alike, and that so stand here once: of a thousand connections that have
//! said hardly more than that they are there, the broker's table of versions is most of what was said.

/// How many are known. A broker that tells another table each time is broken or hostile: what it tells then
/// stands with each connection.
const MOST: usize = 16;
/// Bytes of the longest, and of the shortest for which it pays.
const BYTES: std::ops::Range<usize> = 64..4096;

/// For as long as their thread lives, and not counted among what tapes take: 64 KiB at most.
#[derive(Debug, Default)]
pub(super) struct Shared(Vec<Box<[u8]>>);

impl Shared {
    /// The number by which these bytes are known from now on, if they are.
    pub(super) fn know(&mut self, bytes: &[u8]) -> Option<u16> {
        let place = self.0.iter().position(|known| **known == *bytes);
        if place.is_none() && self.0.len() < MOST && BYTES.contains(&bytes.len()) {
            self.0.push(bytes.into());
            return u16::try_from(self.0.len() - 1).ok();
        }
        u16::try_from(place?).ok()
    }

    pub(super) fn get(&self, number: u16) -> Option<&[u8]> {
        self.0.get(usize::from(number)).map(|bytes| &**bytes)
    }
}
