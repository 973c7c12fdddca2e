//! Frames as they follow each other in one direction of a connection, and nothing else.
//!
//! The trap: a file may end anywhere, and a length in it may promise what is not there. It is read in
//! small pieces, what was read is printed before more is, and where it breaks is said.

use super::DecodeError;
use klamp_codec::render::{End, Form, Message, Render, Requests};
use std::io::{self, Read, Write};

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// What was in a file.
#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) frames: u64,
    /// Those that could not be read to their end.
    pub(super) broken: u64,
    /// Offset in the file of the first frame that broke.
    pub(super) first_broken: Option<u64>,
}

/// Prints the frames of one direction, each behind its length.
pub(super) fn print<F: Form + Default>(
    mut input: impl Read,
    response: Option<Message>,
    out: &mut impl Write,
) -> Result<Printed, DecodeError> {
    let mut printed = Printed::default();
    let mut requests = Requests::default();
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        let mut field = [0; 4];
        let length = match read_up_to(&mut input, &mut field)? {
            0 => return Ok(printed),
            4 => i32::from_be_bytes(field),
            n => return Err(DecodeError::Cut(at, n)),
        };
        let Ok(length) = u32::try_from(length) else {
            return Err(DecodeError::Length(at, length));
        };
        let mut left = length as usize;
        let mut read = read_up_to(&mut input, &mut piece[..left.min(PIECE)])?;
        let message = response.unwrap_or_else(|| requests.next(&piece[..read]));
        let mut render = Render::new(message, length, F::default());
        while read > 0 {
            render.bytes(&piece[..read]);
            flush(render.form(), out)?;
            left -= read;
            read = read_up_to(&mut input, &mut piece[..left.min(PIECE)])?;
        }
        let (end, mut form) = render.end();
        flush(&mut form, out)?;
        printed.frames += 1;
        if let End::Broken(_) = end {
            printed.broken += 1;
            printed.first_broken.get_or_insert(at);
        }
        at += 4 + u64::from(length);
    }
}

/// As many bytes as there are; fewer only at the end.
pub(super) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, DecodeError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(DecodeError::Read(error)),
        }
    }
    Ok(filled)
}

fn flush(form: &mut impl Form, out: &mut impl Write) -> Result<(), DecodeError> {
    let written = form.written();
    out.write_all(written.as_bytes())
        .map_err(DecodeError::Print)?;
    written.clear();
    Ok(())
}
