//! `klamp decode`: prints the messages in a file of frames.
//!
//! The trap: a file may end anywhere, and a length in it may promise what is not there. It is read in
//! small pieces, what was read is printed before more is, and where it breaks is said.

use crate::cli::{DecodeArgs, Exit};
use klamp_codec::render::{End, Form, Json, Line, Message, Render, Requests, Text};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// Prints what the file has.
pub(crate) fn decode(args: &DecodeArgs) -> Exit {
    let name = args.file.display();
    let input: Box<dyn Read> = match args.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => match File::open(&args.file) {
            Ok(file) => Box::new(file),
            Err(error) => return failed(&format!("cannot open {name}: {error}")),
        },
    };
    let response = args
        .response_of
        .map(|(key, version)| Message::Response(key, version));
    let mut out = BufWriter::new(io::stdout().lock());
    let printed = match (args.json, args.verbose) {
        (true, _) => print::<Json>(input, response, &mut out),
        (false, true) => print::<Text>(input, response, &mut out),
        (false, false) => print::<Line>(input, response, &mut out),
    };
    let flushed = out.flush().map_err(DecodeError::Print);
    match printed.and_then(|printed| flushed.map(|()| printed)) {
        // Whoever reads has seen enough.
        Err(DecodeError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Clean,
        Err(error) => failed(&format!("{name}: {error}")),
        Ok(Printed {
            frames,
            broken,
            first_broken: Some(at),
        }) => failed(&format!(
            "{name}: {broken} of {frames} frames could not be read to their end, the first at byte {at}"
        )),
        Ok(_) => Exit::Clean,
    }
}

fn failed(why: &str) -> Exit {
    eprintln!("error: {why}");
    Exit::Failed
}

/// What was in a file.
#[derive(Debug, Default)]
struct Printed {
    frames: u64,
    broken: u64,
    /// Offset in the file of the first frame that broke.
    first_broken: Option<u64>,
}

fn print<F: Form + Default>(
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
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, DecodeError> {
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

/// Why a file could not be read on.
#[derive(Debug, thiserror::Error)]
enum DecodeError {
    #[error("cannot read: {0}")]
    Read(io::Error),
    #[error("cannot print: {0}")]
    Print(io::Error),
    #[error("it ends in the length field at byte {0}, of which {1} of 4 bytes are there")]
    Cut(u64, usize),
    #[error(
        "no frame has the length of the one at byte {0}, {1}: expected frames behind their lengths, \
         as they follow each other on a connection without TLS"
    )]
    Length(u64, i32),
}
