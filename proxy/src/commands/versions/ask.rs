//! The exchange with the broker.
//!
//! The trap: whoever answers need not be a broker. What it sends is read up to a small limit and a
//! time, and what it looks like is told. A broker before 0.10 does not know the question and closes.

use crate::destination::{OwnAddresses, Upstream};
use crate::dial::{self, DialError, LookUps};
use crate::timers::Timers;
use klamp_codec::clamp::{Malformed, clamp};
use klamp_codec::local::ask_api_versions;
use klamp_codec::session::Clamp;
use klamp_codec::versions::VersionTable;
use klamp_codec::{CorrelationId, ErrorCode};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// Largest answer read; real ones have a few KiB.
const MOST_BYTES: i32 = 1 << 20;

/// What a broker said.
#[derive(Debug)]
pub(super) struct Answer {
    /// The version of ApiVersions that it was said in.
    pub(super) version: i16,
    pub(super) table: VersionTable,
    /// Why the question could not be repeated in a version that tells of features too.
    pub(super) trouble: Option<NoFeatures>,
}

/// Asks in version 0, which every broker answers, then once more in the highest version that both
/// sides have, since features come with version 3 and above.
pub(super) async fn ask(broker: &Upstream, limit: Duration) -> Result<Answer, AskError> {
    let deadline = Instant::now() + limit;
    let mut stream = dial::dial(
        broker,
        &LookUps::default(),
        limit,
        &OwnAddresses::default(),
        &Timers::here(),
    )
    .await?;
    let mut first = in_time(deadline, limit, exchange(&mut stream, None)).await?;
    match in_time(deadline, limit, exchange(&mut stream, Some(&first.table))).await {
        Ok(second) => Ok(second),
        Err(error) => {
            first.trouble = Some(NoFeatures(error));
            Ok(first)
        }
    }
}

async fn in_time<T>(
    deadline: Instant,
    limit: Duration,
    work: impl Future<Output = Result<T, AskError>>,
) -> Result<T, AskError> {
    let done = timeout_at(deadline, work).await;
    done.unwrap_or(Err(AskError::Silence(limit)))
}

/// One question and its answer.
async fn exchange(
    stream: &mut TcpStream,
    table: Option<&VersionTable>,
) -> Result<Answer, AskError> {
    let id = CorrelationId(if table.is_none() { 0 } else { 1 });
    let question = ask_api_versions(table, id)?;
    stream.write_all(&question.frame).await?;
    let frame = read_frame(stream).await?;
    let clamped = clamp(&frame, question.version, Clamp::Encode)?;
    // `clamp` has seen that the head is there.
    let got = frame[4..].first_chunk().copied().map(i32::from_be_bytes);
    if got != Some(id.0) {
        return Err(AskError::AnotherQuestion);
    }
    Ok(Answer {
        version: question.version,
        table: clamped.table.ok_or(AskError::Refused(clamped.error))?,
        trouble: None,
    })
}

/// A frame with its length field.
async fn read_frame(stream: &mut TcpStream) -> Result<Vec<u8>, AskError> {
    let mut head = [0; 4];
    read(stream, &mut head).await?;
    match head {
        [b'H', b'T', b'T', b'P'] => return Err(AskError::Http),
        // A record of any type, of any version of the protocol.
        [0x14..=0x17, 3, ..] => return Err(AskError::Tls),
        _ => {}
    }
    let length = i32::from_be_bytes(head);
    if !(4..=MOST_BYTES).contains(&length) {
        return Err(AskError::Length(length));
    }
    let mut frame = vec![0; head.len() + length as usize];
    frame[..head.len()].copy_from_slice(&head);
    read(stream, &mut frame[head.len()..]).await?;
    Ok(frame)
}

async fn read(stream: &mut TcpStream, bytes: &mut [u8]) -> Result<(), AskError> {
    match stream.read_exact(bytes).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(AskError::Closed),
        Err(error) => Err(error.into()),
    }
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("cannot connect: {0}")]
    Dial(#[from] DialError),
    #[error("no answer within {0:?}: not a Kafka broker, or one that hangs")]
    Silence(Duration),
    #[error(
        "it closed the connection instead of an answer: a listener that wants TLS, a broker \
         before Kafka 0.10, or no Kafka broker"
    )]
    Closed,
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error("it answers in TLS: ask a plaintext listener")]
    Tls,
    #[error("it answers in HTTP: not a Kafka broker")]
    Http,
    #[error("not a Kafka broker: its answer would have {0} bytes")]
    Length(i32),
    #[error("not a Kafka broker: it answers another question than the one it was asked")]
    AnotherQuestion,
    #[error("not a Kafka broker, or a new kind of one: {0}")]
    Malformed(#[from] Malformed),
    #[error("it refuses the question with error {0}")]
    Refused(ErrorCode),
    #[error("{0}")]
    NoUsableVersion(#[from] klamp_codec::versions::NoUsableVersion),
}

/// The broker told its versions, and not its features.
#[derive(Debug, thiserror::Error)]
#[error("its features are not known, since asking again for them failed: {0}")]
pub(super) struct NoFeatures(AskError);
