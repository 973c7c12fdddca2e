//! Changes to a frame that leave every other byte as it was: what is not edited, tagged fields of the
//! future included, stays identical.
//!
//! The trap: a change of length is never alone. The frame's length, the count of an array that lost
//! an element, and the size of a tagged field around it change too, and as varints these may change
//! their own width. [`Edits::apply`] mends the frame's length by itself; counts and tag sizes are
//! mended by [`Edits::count`] and [`Edits::tag_size`], from the events of a walk.

/// Bytes of a frame's length field.
const LENGTH_FIELD: u32 = 4;

/// One change to a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Offset in the original frame, counted from its length field's first byte.
    pub at: u32,
    /// How many bytes of the original go.
    pub drop: u32,
    /// What stands there instead.
    pub with: Box<[u8]>,
}

impl Edit {
    fn end(&self) -> u64 {
        u64::from(self.at).saturating_add(u64::from(self.drop))
    }

    /// By how many bytes the frame grows.
    fn growth(&self) -> i64 {
        (self.with.len() as i64).saturating_sub(i64::from(self.drop))
    }
}

/// How the count of an array stands in a frame. The width alone does not tell: a varint may have
/// four bytes too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountForm {
    /// int32.
    Classic,
    /// Unsigned varint of the count and one more (KIP-482).
    Compact,
}

/// The edits of one frame, in the order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    edits: Vec<Edit>,
}

/// Why edits cannot be applied: they come from a faulty reader or from another frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Two edits want the same bytes.
    #[error("edits overlap at offset {at}")]
    Overlap {
        /// Where the later one begins.
        at: u32,
    },
    /// An edit lies outside the frame's bytes after its length field, as far as they are held.
    #[error("the edit at offset {at} lies outside the {held} bytes held")]
    OutOfRange {
        /// Where the edit begins.
        at: u32,
        /// Bytes of the frame at hand.
        held: usize,
    },
    /// The edited frame, or a count or size in it, would have an impossible length.
    #[error("a length of {0} cannot be written")]
    Length(i64),
}

impl Edits {
    /// No edits: the frame passes as it is.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Puts `with` in place of the `drop` bytes at `at` of the original frame. Insertions at one
    /// offset keep the order in which they were made.
    pub fn replace(&mut self, at: u32, drop: u32, with: impl Into<Box<[u8]>>) {
        let with = with.into();
        let index = self.edits.partition_point(|edit| edit.at <= at);
        self.edits.insert(index, Edit { at, drop, with });
    }

    /// Makes `count` the count of the array whose first element, or end, is at `at`; the count stands
    /// in the `width` bytes before.
    ///
    /// # Errors
    /// [`EditError::Length`] where the form cannot hold the count, [`EditError::OutOfRange`] where
    /// there is no room for a count before `at`.
    pub fn count(
        &mut self,
        at: u32,
        width: u32,
        form: CountForm,
        count: u32,
    ) -> Result<(), EditError> {
        let impossible = EditError::Length(i64::from(count));
        let signed = i32::try_from(count).map_err(|_| impossible)?;
        let with = match form {
            CountForm::Classic => signed.to_be_bytes().into(),
            CountForm::Compact => uvarint(count.saturating_add(1)),
        };
        self.replace(before(at, width)?, width, with);
        Ok(())
    }

    /// Mends the size of the tagged field of `size` bytes at `at`, which stands in the `width` bytes
    /// before, by the edits inside the field. To be called once they are all there, for an inner
    /// field before an outer one; does nothing where the size stays. Whatever is inserted at the
    /// field's end belongs to what follows.
    ///
    /// # Errors
    /// [`EditError::Length`] where the edits take more than there is, [`EditError::Overlap`] where one
    /// crosses the field's end, [`EditError::OutOfRange`] where there is no room for a size before `at`.
    pub fn tag_size(&mut self, at: u32, width: u32, size: u32) -> Result<(), EditError> {
        let end = u64::from(at).saturating_add(u64::from(size));
        let mut grown = i64::from(size);
        for edit in &self.edits {
            if edit.at < at || u64::from(edit.at) >= end {
                continue;
            }
            if edit.end() > end {
                return Err(EditError::Overlap { at: edit.at });
            }
            grown = grown.saturating_add(edit.growth());
        }
        if grown != i64::from(size) {
            let size = i32::try_from(grown).map_err(|_| EditError::Length(grown))?;
            let size = u32::try_from(size).map_err(|_| EditError::Length(grown))?;
            self.replace(before(at, width)?, width, uvarint(size));
        }
        Ok(())
    }

    /// The frame with its edits and its length field mended. `held` begins at the frame's length
    /// field and may end before the frame does, if it holds every edit: the rest follows unchanged.
    ///
    /// # Errors
    /// Where edits overlap, lie outside `held` or in its length field, or give a frame that cannot be.
    pub fn apply(self, held: &[u8]) -> Result<Vec<u8>, EditError> {
        let outside = |at| EditError::OutOfRange {
            at,
            held: held.len(),
        };
        let (length, _) = held.split_first_chunk().ok_or(outside(0))?;
        let growth = self
            .edits
            .iter()
            .fold(0, |sum: i64, edit| sum.saturating_add(edit.growth()));
        let length = i64::from(i32::from_be_bytes(*length)).saturating_add(growth);
        let length = i32::try_from(length).map_err(|_| EditError::Length(length))?;
        if length < 0 {
            return Err(EditError::Length(i64::from(length)));
        }

        let capacity = (held.len() as i64).saturating_add(growth);
        let mut out = Vec::with_capacity(usize::try_from(capacity).unwrap_or(0));
        out.extend_from_slice(&length.to_be_bytes());
        let mut from = LENGTH_FIELD as usize;
        for edit in &self.edits {
            let at = edit.at as usize;
            if edit.at < LENGTH_FIELD {
                return Err(outside(edit.at));
            }
            if at < from {
                return Err(EditError::Overlap { at: edit.at });
            }
            let end = usize::try_from(edit.end()).map_err(|_| outside(edit.at))?;
            if end > held.len() {
                return Err(outside(edit.at));
            }
            out.extend_from_slice(held.get(from..at).ok_or(outside(edit.at))?);
            out.extend_from_slice(&edit.with);
            from = end;
        }
        out.extend_from_slice(held.get(from..).unwrap_or_default());
        Ok(out)
    }
}

/// Where a count or size of `width` bytes before `at` begins.
fn before(at: u32, width: u32) -> Result<u32, EditError> {
    at.checked_sub(width)
        .filter(|_| width > 0)
        .ok_or(EditError::OutOfRange { at, held: 0 })
}

/// An unsigned varint: seven bits a byte, the lowest first.
pub(crate) fn uvarint(mut value: u32) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(5);
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A frame with its length field.
    fn frame(body: &[u8]) -> Vec<u8> {
        let mut frame = (body.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        frame
    }

    #[test]
    fn without_edits_a_frame_stays_as_it_is() {
        assert_eq!(
            Edits::default().apply(&frame(b"abc")).unwrap(),
            frame(b"abc")
        );
        assert_eq!(Edits::default().apply(&frame(b"")).unwrap(), frame(b""));
    }

    #[test]
    fn edits_made_in_any_order_are_applied_in_the_order_of_offsets() {
        let mut edits = Edits::default();
        edits.replace(9, 1, *b"FFFF");
        edits.replace(4, 2, *b"");
        edits.replace(7, 0, *b"1");
        edits.replace(7, 0, *b"2");
        assert_eq!(edits.apply(&frame(b"abcdef")).unwrap(), frame(b"c12deFFFF"),);
    }

    #[test]
    fn edits_that_touch_do_not_overlap() {
        let mut edits = Edits::default();
        edits.replace(4, 3, *b"x");
        edits.replace(7, 3, *b"y");
        assert_eq!(edits.apply(&frame(b"abcdef")).unwrap(), frame(b"xy"));
    }

    #[test]
    fn a_held_prefix_gets_the_length_of_the_whole_frame() {
        let whole = frame(b"abcdef");
        let mut edits = Edits::default();
        edits.replace(5, 1, *b"xyz");
        let held = whole.get(..7).unwrap();
        assert_eq!(edits.apply(held).unwrap(), b"\0\0\0\x08axyzc");
    }

    #[test]
    fn faulty_edits_are_errors() {
        let held = frame(b"abcdef");
        let apply = |list: &[(u32, u32)]| {
            let mut edits = Edits::default();
            for &(at, drop) in list {
                edits.replace(at, drop, *b"x");
            }
            edits.apply(&held)
        };
        assert_eq!(apply(&[(4, 3), (6, 1)]), Err(EditError::Overlap { at: 6 }));
        let outside = |at| Err(EditError::OutOfRange { at, held: 10 });
        assert_eq!(apply(&[(9, 2)]), outside(9));
        assert_eq!(apply(&[(11, 0)]), outside(11));
        assert_eq!(apply(&[(3, 1)]), outside(3));
        assert_eq!(apply(&[(4, u32::MAX)]), Err(EditError::Length(-4294967288)));
        assert_eq!(apply(&[(u32::MAX, 1)]), outside(u32::MAX));
        assert_eq!(
            Edits::default().apply(b"\0\0\0"),
            Err(EditError::OutOfRange { at: 0, held: 3 })
        );
    }

    #[test]
    fn a_frame_cannot_grow_past_what_its_length_field_holds() {
        let mut edits = Edits::default();
        edits.replace(4, 0, *b"x");
        assert_eq!(
            edits.apply(b"\x7f\xff\xff\xff"),
            Err(EditError::Length(0x8000_0000))
        );
    }

    #[test]
    fn a_count_is_mended_in_its_own_form_and_may_change_its_width() {
        let mut edits = Edits::default();
        edits.count(8, 4, CountForm::Classic, 7).unwrap();
        assert_eq!(
            edits.apply(&frame(b"\0\0\0\x09rest")).unwrap(),
            frame(b"\0\0\0\x07rest"),
        );

        // 128 elements stand as 129 in two bytes, 126 as 127 in one.
        let mut edits = Edits::default();
        edits.count(6, 2, CountForm::Compact, 126).unwrap();
        assert_eq!(
            edits.apply(&frame(b"\x81\x01rest")).unwrap(),
            frame(b"\x7frest"),
        );
    }

    #[test]
    fn counts_that_cannot_be_are_errors() {
        let mut edits = Edits::default();
        for form in [CountForm::Classic, CountForm::Compact] {
            assert_eq!(
                edits.count(8, 4, form, 0x8000_0000),
                Err(EditError::Length(0x8000_0000)),
            );
        }
        for (at, width) in [(3, 4), (8, 0)] {
            assert_eq!(
                edits.count(at, width, CountForm::Classic, 1),
                Err(EditError::OutOfRange { at, held: 0 }),
            );
        }
        assert!(edits.is_empty());
    }

    #[test]
    fn an_edit_inside_tagged_fields_mends_every_size_around_it() {
        // One tagged field of 126 bytes, in it another of 124: both sizes take a second byte.
        let mut body = vec![1, 0, 126, 0, 124];
        body.extend([b'x'; 124]);
        body.push(0);
        let mut edits = Edits::default();
        edits.replace(9, 1, *b"longer");
        edits.replace(133, 0, *b"!"); // behind both
        edits.tag_size(9, 1, 124).unwrap();
        edits.tag_size(7, 1, 126).unwrap();

        let mut expected = vec![1, 0, 0x84, 1, 0, 0x81, 1];
        expected.extend(b"longer");
        expected.extend([b'x'; 123]);
        expected.extend(*b"!\0");
        assert_eq!(edits.apply(&frame(&body)).unwrap(), frame(&expected));
    }

    #[test]
    fn a_tag_size_stays_where_its_content_keeps_its_length() {
        let mut edits = Edits::default();
        edits.replace(10, 2, *b"xy");
        edits.tag_size(8, 1, 20).unwrap();
        assert_eq!(edits.edits.len(), 1);
    }

    #[test]
    fn an_edit_across_the_end_of_a_tagged_field_is_an_error() {
        let mut edits = Edits::default();
        edits.replace(10, 5, *b"");
        assert_eq!(edits.tag_size(8, 1, 4), Err(EditError::Overlap { at: 10 }));
    }
}
