//! The raw token phase after SaslHandshake v0. Nothing on the wire marks its end: PLAIN takes one
//! exchange, SCRAM two; for other mechanisms it ends at the first frame that is an ordinary request.

/// Where a connection stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sasl {
    /// Ordinary frames.
    None,
    /// A handshake v0 is on its way: until it is answered nobody knows what follows.
    Asked(Exchanges),
    /// Tokens follow, and so many more of the client's if that is known.
    Tokens(Exchanges),
}

/// How many tokens of the client's are still to come; `None`: nobody knows.
pub(super) type Exchanges = Option<u8>;

/// Gathers the mechanism's name from its pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mechanism {
    bytes: [u8; 16],
    length: usize,
}

impl Mechanism {
    pub(super) fn piece(&mut self, piece: &[u8]) {
        for byte in piece {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
            }
            self.length = self.length.saturating_add(1);
        }
    }

    /// Names of RFC 4616 and RFC 5802/7677, as Kafka spells them.
    pub(super) fn exchanges(&self) -> Exchanges {
        match self.bytes.get(..self.length)? {
            b"PLAIN" => Some(1),
            b"SCRAM-SHA-256" | b"SCRAM-SHA-512" => Some(2),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mechanism_is_known_by_its_whole_name_in_any_pieces() {
        let exchanges = |pieces: &[&str]| {
            let mut mechanism = Mechanism::default();
            pieces.iter().for_each(|p| mechanism.piece(p.as_bytes()));
            mechanism.exchanges()
        };
        assert_eq!(exchanges(&["PLAIN"]), Some(1));
        assert_eq!(exchanges(&["SCRAM-", "SHA-512"]), Some(2));
        assert_eq!(exchanges(&["PLAINER"]), None);
        assert_eq!(exchanges(&["GSSAPI"]), None);
        assert_eq!(exchanges(&[&"PLAIN".repeat(100)]), None);
    }
}
