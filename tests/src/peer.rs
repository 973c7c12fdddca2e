//! Scripted peers: a raw client, and an upstream that does what a test tells it to. Blocking, in
//! plain threads, so that what they send and when is what the test says.

use crate::wire;
use kafka_protocol::protocol::Request;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a peer waits for bytes before it calls the test failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// One end of a connection that sends and expects frames, or any other bytes.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    client_id: String,
    next_correlation_id: i32,
}

/// How a peer ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By FIN.
    Closed,
    /// By RST.
    Reset,
}

impl Client {
    /// Connects.
    ///
    /// # Panics
    /// If nothing listens there.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .unwrap_or_else(|e| panic!("cannot connect to {address}: {e}"));
        Self::over(stream)
    }

    /// Speaks over a connection that is there already.
    pub fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a socket takes options");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a socket takes options");
        stream
            .set_write_timeout(Some(PATIENCE))
            .expect("a socket takes options");
        Self {
            stream,
            client_id: "klamp-tests".to_owned(),
            next_correlation_id: 1,
        }
    }

    /// The same with another client id.
    #[must_use]
    pub fn named(mut self, client_id: &str) -> Self {
        client_id.clone_into(&mut self.client_id);
        self
    }

    /// The socket itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a request and returns its correlation id.
    #[track_caller]
    pub fn send<R: Request>(&mut self, version: i16, request: &R) -> i32 {
        let id = self.next_correlation_id;
        self.next_correlation_id += 1;
        self.send_bytes(&wire::request(version, id, &self.client_id, request));
        id
    }

    /// Sends a request and returns the answer to it.
    #[track_caller]
    pub fn call<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let id = self.send(version, request);
        self.expect::<R>(version, id)
    }

    /// Receives the answer to the request of that correlation id.
    #[track_caller]
    pub fn expect<R: Request>(&mut self, version: i16, correlation_id: i32) -> R::Response {
        let payload = self.read_frame();
        let (id, body) = wire::read_response::<R>(version, &payload);
        assert_eq!(
            id,
            correlation_id,
            "the answer to another request than key {}",
            R::KEY
        );
        body
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the peer takes bytes");
    }

    /// Sends bytes as they are, to a peer that may have closed already.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The payload of the next frame.
    #[track_caller]
    pub fn read_frame(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("a frame comes");
        let length = i32::from_be_bytes(length);
        let mut payload = vec![0; usize::try_from(length).expect("a frame's length")];
        self.stream
            .read_exact(&mut payload)
            .expect("a frame comes whole");
        payload
    }

    /// The next `count` bytes.
    #[track_caller]
    pub fn read_bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream
            .read_exact(&mut bytes)
            .expect("so many bytes come");
        bytes
    }

    /// Reads until the peer ends the connection: what came, and how it ended.
    #[track_caller]
    pub fn read_to_end(&mut self) -> (Vec<u8>, End) {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => (bytes, End::Closed),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => (bytes, End::Reset),
            Err(e) => panic!("the peer does not end the connection: {e}"),
        }
    }

    /// Closes the sending half only.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Ends the connection by RST instead of FIN.
    pub fn reset(self) {
        let zero = Some(Duration::ZERO);
        SockRef::from(&self.stream)
            .set_linger(zero)
            .expect("a socket takes options");
    }
}

/// A server on loopback that runs a script for each connection, each in a thread of its own.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Upstream {
    /// Listens on a port of the kernel's choice.
    pub fn start(script: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has ports");
        Self::on(listener, script)
    }

    /// Serves a listener that is there already.
    pub fn on(listener: TcpListener, script: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().expect("it is bound");
        let closing = Arc::new(AtomicBool::new(false));
        let script = Arc::new(script);
        let seen = closing.clone();
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    let script = script.clone();
                    std::thread::spawn(move || script(stream));
                }
            }
        });
        Self {
            address,
            closing,
            acceptor: Some(acceptor),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which then sees that it is to end.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Bytes that a thread writes down for the test to read.
#[derive(Clone, Debug, Default)]
pub struct Recording(Arc<Mutex<Vec<u8>>>);

impl Recording {
    /// Writes down more.
    pub fn add(&self, bytes: &[u8]) {
        self.0
            .lock()
            .expect("no holder panics")
            .extend_from_slice(bytes);
    }

    /// What has been written down so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no holder panics").clone()
    }

    /// How much has been written down so far.
    pub fn len(&self) -> usize {
        self.0.lock().expect("no holder panics").len()
    }

    /// Whether nothing has been written down.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
