//! An upstream that does as its script says.

use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// A listener that runs a script on each connection, each on a thread of its own. It ends with the
/// test process.
pub(crate) fn broker(script: impl Fn(TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (script, stream) = (script.clone(), stream.unwrap());
            std::thread::spawn(move || script(stream));
        }
    });
    address
}

/// An address that refuses connections, and is nobody else's as long as what is returned with it
/// lasts: bound, but not listening.
pub(crate) fn closed() -> (String, impl Sized) {
    let (address, socket) = bound();
    (address.to_string(), socket)
}

/// An address that answers no attempt to connect, as long as what is returned with it lasts: a
/// listener whose backlog is full.
pub(crate) fn silent() -> (String, impl Sized) {
    let (address, socket) = bound();
    socket.listen(0).unwrap();
    let filler = TcpStream::connect(address).unwrap();
    (address.to_string(), (socket, filler))
}

fn bound() -> (SocketAddr, Socket) {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&any.into()).unwrap();
    (socket.local_addr().unwrap().as_socket().unwrap(), socket)
}

/// Reads one frame, its length field included; `None` at the end of the stream.
pub(crate) fn read_frame(mut stream: &TcpStream) -> Option<Vec<u8>> {
    let mut frame = vec![0; 4];
    stream.read_exact(&mut frame).ok()?;
    let length = u32::from_be_bytes(frame[..4].try_into().unwrap());
    frame.resize(4 + length as usize, 0);
    stream.read_exact(&mut frame[4..]).ok()?;
    Some(frame)
}

/// Writes a frame of these parts.
pub(crate) fn write_frame(mut stream: &TcpStream, parts: &[&[u8]]) {
    let body = parts.concat();
    let frame = [&(body.len() as u32).to_be_bytes()[..], &body].concat();
    // The peer may have gone; what it saw is for the test to say.
    let _ = stream.write_all(&frame);
}

/// A request as a broker sees it.
pub(crate) struct Request {
    pub(crate) api_key: i16,
    pub(crate) api_version: i16,
    /// As on the wire.
    pub(crate) correlation_id: [u8; 4],
}

impl Request {
    /// Answers a request of [`crate::client::ask`]: no error, no groups.
    pub(crate) fn answer(&self, stream: &TcpStream) {
        write_frame(stream, &[&self.correlation_id, &[0; 6]]);
    }
}

/// Reads one request; `None` at the end of the stream.
pub(crate) fn read_request(stream: &TcpStream) -> Option<Request> {
    let frame = read_frame(stream)?;
    let int16 = |at: usize| i16::from_be_bytes([frame[at], frame[at + 1]]);
    Some(Request {
        api_key: int16(4),
        api_version: int16(6),
        correlation_id: frame[8..12].try_into().unwrap(),
    })
}

/// Answers an ApiVersions request with these rows, in its own version.
pub(crate) fn offer(stream: &TcpStream, request: &Request, rows: &[[i16; 3]]) {
    assert_eq!(request.api_key, 18, "not ApiVersions");
    let flexible = request.api_version >= 3;
    let mut body = vec![0, 0];
    match flexible {
        true => body.push(rows.len() as u8 + 1),
        false => body.extend((rows.len() as u32).to_be_bytes()),
    }
    for row in rows {
        body.extend(row.iter().flat_map(|value| value.to_be_bytes()));
        body.extend(flexible.then_some(0));
    }
    if request.api_version >= 1 {
        body.extend([0; 4]);
    }
    body.extend(flexible.then_some(0));
    write_frame(stream, &[&request.correlation_id, &body]);
}

/// Answers an ApiVersions request with error 35 in the shape of version 0 (KIP-511).
pub(crate) fn refuse(stream: &TcpStream, request: &Request) {
    let body = [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 4];
    write_frame(stream, &[&request.correlation_id, &body]);
}
