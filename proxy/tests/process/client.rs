//! A client that speaks as little as a test needs.

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
