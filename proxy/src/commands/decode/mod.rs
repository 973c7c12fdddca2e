//! `klamp decode`: prints the messages in a file, of captured packets or of frames.
//!
//! The trap: names of topics are told by answers that may stand behind what needs them, so a file of
//! packets is read twice; what comes through a pipe is there only once.

mod budget;
mod connections;
mod frames;
mod met;
mod packets;
mod print;
mod raw;
mod segment;
mod shared;
mod stream;
mod talk;
#[cfg(test)]
mod tests;
mod told;
mod topics;

use crate::capture::pcapng::APPLICATION;
use crate::cli::{DecodeArgs, Exit};
use crate::shown;
use connections::Connections;
use klamp_codec::render::{Json, Line, Message, Text};
use packets::{Item, Kind};
use segment::Seen;
use shared::Shared;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::rc::Rc;
use stream::Stamp;
use told::Style;
use topics::Topics;

/// Bytes of a file that tell what it is.
const HEAD: usize = 14;

/// `socket.request.max.bytes` as it comes.
const USUAL_LONGEST: i32 = 100 << 20;

/// How files begin that others have to be taken out of; as lengths, of frames that no broker takes.
const PACKERS: [(&[u8], &str); 3] = [
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ", "xz"),
];

/// Prints what the file has.
pub(crate) fn decode(args: &DecodeArgs) -> Exit {
    let mut out = BufWriter::new(io::stdout().lock());
    let decoded = decode_to(args, &mut out);
    let flushed = out.flush().map_err(DecodeError::Print);
    let name = args.file.display();
    match decoded.and(flushed) {
        Ok(()) => Exit::Clean,
        // Whoever reads has seen enough.
        Err(DecodeError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Clean,
        Err(DecodeError::Open(error)) => failed(&format!("cannot open {name}: {error}")),
        Err(error) => failed(&format!("{name}: {error}")),
    }
}

fn failed(why: &str) -> Exit {
    eprintln!("error: {why}");
    Exit::Failed
}

fn decode_to(args: &DecodeArgs, out: &mut impl Write) -> Result<(), DecodeError> {
    let is_stdin = args.file.as_os_str() == "-";
    let open = || -> Result<Box<dyn Read>, DecodeError> {
        Ok(match is_stdin {
            true => Box::new(io::stdin().lock()),
            false => Box::new(File::open(&args.file).map_err(DecodeError::Open)?),
        })
    };
    let mut input = open()?;
    let mut head = [0; HEAD];
    let read = raw::read_up_to(&mut input, &mut head)?;
    let begins = &head[..read];
    if begins.is_empty() {
        return Err(DecodeError::Empty);
    }
    let kind = begins.first_chunk().copied().and_then(Kind::of);
    if kind.is_none() && args.response_of.is_none() {
        foreign(begins)?;
    }
    let mut input = io::Cursor::new(head).take(read as u64).chain(input);
    let response = args
        .response_of
        .map(|(key, version)| Message::Response(key, version));
    let Some(kind) = kind else {
        let printed = match (args.json, args.verbose) {
            (true, _) => raw::print::<Json>(input, response, out),
            (false, true) => raw::print::<Text>(input, response, out),
            (false, false) => raw::print::<Line>(input, response, out),
        }?;
        return match printed.first_broken {
            Some(at) => Err(DecodeError::Broken(printed.broken, printed.frames, at)),
            None => Ok(()),
        };
    };
    if response.is_some() {
        return Err(DecodeError::SaysItself);
    }
    let style = match (args.json, args.verbose) {
        (true, _) => Style::Json,
        (false, true) => Style::Text,
        (false, false) => Style::Line,
    };
    let topics = Topics::default();
    let is_file = !is_stdin && std::fs::metadata(&args.file).is_ok_and(|meta| meta.is_file());
    if is_file {
        // What is wrong with it will be said the second time.
        let shared = Rc::new(Shared::new(Style::Line, topics.clone()));
        let _ = captured(kind, &mut input, &args.port, &shared, &mut io::sink());
        input = io::Cursor::new([0; HEAD]).take(0).chain(open()?);
    }
    let shared = Rc::new(Shared::new(style, topics));
    captured(kind, &mut input, &args.port, &shared, out)?;
    if shared.frames.get() == 0 {
        return Err(DecodeError::Nothing(shared.met.borrow().told(&args.port)));
    }
    match shared.first_broken.get() {
        Some(at) => Err(DecodeError::BrokenPackets(
            shared.broken.get(),
            shared.frames.get(),
            at,
        )),
        None => Ok(()),
    }
}

/// Fails where a packer has been at it, or no request begins so and what does claims to be longer than
/// brokers take unless they are told to: then it is something else altogether, and its length is no
/// news to anybody.
fn foreign(begins: &[u8]) -> Result<(), DecodeError> {
    let mut packers = PACKERS.iter();
    if let Some((_, packer)) = packers.find(|(magic, _)| begins.starts_with(magic)) {
        return Err(DecodeError::Packed(packer));
    }
    let length = begins.first_chunk().copied().map(i32::from_be_bytes);
    // (of a length below zero is said what it is)
    match length.is_some_and(|length| length > USUAL_LONGEST) && !talk::is_request(begins) {
        true => Err(DecodeError::Foreign(begins.escape_ascii().to_string())),
        false => Ok(()),
    }
}

/// Prints the exchanges in captured packets.
fn captured(
    kind: Kind,
    input: &mut impl Read,
    ports: &[u16],
    shared: &Rc<Shared>,
    out: &mut dyn Write,
) -> Result<(), DecodeError> {
    let mut connections = Connections::new(ports.to_vec(), Rc::clone(shared));
    let mut is_own = false;
    let mut unread = Unread::default();
    let read = packets::read(kind, input, &mut |item| {
        match item {
            Item::Section(application, comment) => {
                is_own = application.is_some_and(|name| name.starts_with(APPLICATION));
                let comment = comment.filter(|_| is_own).unwrap_or_default();
                for line in comment.lines() {
                    shared.say(&format!("# {}\n", shown::line(line)));
                }
            }
            Item::Packet(at, packet) => {
                shared.at.set(at);
                match segment::read(&packet) {
                    Seen::Tcp(segment) => {
                        let comment = packet.comment.filter(|_| is_own);
                        let stamp = Stamp {
                            time: packet.time,
                            comment: comment.map(Rc::from),
                        };
                        connections.take(&segment, &stamp);
                    }
                    Seen::Fragment => unread.fragments += 1,
                    Seen::UnknownLink(link) => unread.link = Some(link),
                    Seen::Other => {}
                }
            }
            Item::Unreadable(at, why) => {
                unread.blocks += 1;
                unread.first_block.get_or_insert((at, why));
            }
        }
        flush(shared, out)
    });
    connections.finish();
    if unread.fragments > 0 {
        let fragments = unread.fragments;
        shared.say(&format!(
            "# {fragments} packets were IP fragments, which are not put together\n"
        ));
    }
    if let Some(link) = unread.link {
        shared.say(&format!(
            "# packets of link type {link} were left out: it is not read here\n"
        ));
    }
    flush(shared, out)?;
    read?;
    match unread.first_block {
        Some((at, why)) => Err(DecodeError::Blocks(unread.blocks, at, why)),
        None => Ok(()),
    }
}

/// What was in a file and could not be used.
#[derive(Default)]
struct Unread {
    fragments: u64,
    link: Option<u32>,
    blocks: u64,
    first_block: Option<(u64, String)>,
}

fn flush(shared: &Shared, out: &mut dyn Write) -> Result<(), DecodeError> {
    let mut text = shared.out.borrow_mut();
    out.write_all(text.as_bytes()).map_err(DecodeError::Print)?;
    text.clear();
    let mut remarks = shared.remarks.borrow_mut();
    eprint!("{remarks}");
    remarks.clear();
    Ok(())
}

/// Why a file could not be read, or not all of it.
#[derive(Debug, thiserror::Error)]
enum DecodeError {
    #[error("cannot open: {0}")]
    Open(io::Error),
    #[error("cannot read: {0}")]
    Read(io::Error),
    #[error("cannot print: {0}")]
    Print(io::Error),
    #[error("it is empty")]
    Empty,
    #[error("it is packed by {0}: unpack it first")]
    Packed(&'static str),
    #[error(
        "it is neither a capture (pcapng or pcap) nor frames of Kafka's behind their lengths: it begins \
         with \"{0}\""
    )]
    Foreign(String),
    #[error("{0}")]
    Nothing(String),
    #[error("it ends in the length field at byte {0}, of which {1} of 4 bytes are there")]
    Cut(u64, usize),
    #[error(
        "no frame has the length of the one at byte {0}, {1}: expected a capture, or frames behind \
         their lengths, as they follow each other on a connection without TLS"
    )]
    Length(u64, i32),
    #[error("{0} of {1} frames could not be read to their end, the first at byte {2}")]
    Broken(u64, u64, u64),
    #[error(
        "{0} of {1} frames could not be read to their end, the first of them up to the packet at byte \
         {2}"
    )]
    BrokenPackets(u64, u64, u64),
    #[error("a capture has requests and responses: it takes no --response-of")]
    SaysItself,
    #[error("it ends in the packet at byte {0}, or that claims to be larger than any packet is")]
    CutPacket(u64),
    #[error("it is damaged at byte {0}: {1}")]
    Damaged(u64, String),
    #[error("it has more interfaces than any machine, the last at byte {0}")]
    Interfaces(u64),
    #[error("{0} blocks make no sense, the first at byte {1}: {2}")]
    Blocks(u64, u64, String),
}
