//! Which characters of a peer's a terminal shows as what they are.
//!
//! The trap: beside the control characters of ASCII a terminal takes those from U+0080 on for commands, and
//! others turn the direction of what follows or are not seen at all. Standards that have text escape only
//! some of them, so JSON is no safer than a line.

/// Whether it can be printed as it is: no command, no change of direction, nothing that cannot be seen.
pub fn is_plain(char: char) -> bool {
    // (quotes are escaped by those who write them, if at all)
    matches!(char, ' '..='~') || !char.is_ascii() && char.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_all_languages_and_signs_are_plain() {
        assert!("aZ09 ~\"'\\/éßжक字한🦀€".chars().all(is_plain));
    }

    #[test]
    fn commands_turns_and_what_is_not_seen_are_not() {
        let not = [
            0x00, 0x07, 0x0a, 0x1b, 0x7f, 0x80, 0x85, 0x9b, 0x9f, 0xad, 0x061c, 0x200b, 0x200e,
            0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069, 0xfeff, 0xe0001, 0xfff9,
        ];
        for char in not.map(|code| char::from_u32(code).unwrap_or('a')) {
            assert!(!is_plain(char), "{:x}", u32::from(char));
        }
    }
}
