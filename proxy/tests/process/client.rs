//! A client that speaks as little as a test needs.

use crate::broker::{read_frame, write_frame};
use crate::klamp::PATIENCE;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};

/// A connection that waits for a peer no longer than a test does.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Whether the peer has closed: the stream ends or is reset, and nothing comes before that.
pub(crate) fn is_closed(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

/// Sends a ListGroups request of version 0, which has no body.
pub(crate) fn ask(stream: &TcpStream, correlation_id: i32) {
    let header = [0, 16, 0, 0];
    let client_id = [0, 4, b't', b'e', b's', b't'];
    write_frame(
        stream,
        &[&header, &correlation_id.to_be_bytes(), &client_id],
    );
}

/// The correlation id of the next answer; `None` at the end of the stream.
pub(crate) fn read_answer(stream: &TcpStream) -> Option<i32> {
    let frame = read_frame(stream)?;
    Some(i32::from_be_bytes(frame[4..8].try_into().unwrap()))
}

/// Asks, and gets the answer.
pub(crate) fn exchange(stream: &TcpStream, correlation_id: i32) {
    ask(stream, correlation_id);
    assert_eq!(read_answer(stream), Some(correlation_id));
}
