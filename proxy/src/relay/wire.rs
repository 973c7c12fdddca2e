//! One end of a connection, as the relay sees it: something to read, write and shut down without
//! waiting. Errors shrink to their kind here; who failed is known by who calls.

use std::io::ErrorKind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// One end of a connection: TCP, TLS over it, or a test's script.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin {
    /// The socket, where its bytes are the connection's own, so that they can be moved unseen.
    fn tcp(&self) -> Option<&TcpStream> {
        None
    }
}

impl Wire for TcpStream {
    fn tcp(&self) -> Option<&TcpStream> {
        Some(self)
    }
}

/// Reads once. 0 is the end of the stream.
pub(super) fn read(
    wire: &mut impl Wire,
    cx: &mut Context<'_>,
    into: &mut [u8],
) -> Poll<Result<usize, ErrorKind>> {
    let mut into = ReadBuf::new(into);
    let read = ready!(Pin::new(wire).poll_read(cx, &mut into));
    Poll::Ready(read.map(|()| into.filled().len()).map_err(|e| e.kind()))
}

/// Writes once; never 0 bytes.
pub(super) fn write(
    wire: &mut impl Wire,
    cx: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<Result<usize, ErrorKind>> {
    Poll::Ready(match ready!(Pin::new(wire).poll_write(cx, bytes)) {
        Ok(0) => Err(ErrorKind::WriteZero),
        written => written.map_err(|e| e.kind()),
    })
}

/// Sees to it that nothing stays in the wire's own buffers (TLS has some).
pub(super) fn flush(wire: &mut impl Wire, cx: &mut Context<'_>) -> Poll<Result<(), ErrorKind>> {
    Pin::new(wire).poll_flush(cx).map_err(|e| e.kind())
}

/// Shuts down the write half.
pub(super) fn shutdown(wire: &mut impl Wire, cx: &mut Context<'_>) -> Poll<Result<(), ErrorKind>> {
    Pin::new(wire).poll_shutdown(cx).map_err(|e| e.kind())
}
