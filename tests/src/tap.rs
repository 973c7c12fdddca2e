//! A relay that writes down every byte of both directions: one stands on each side of klamp, and
//! what the two have written is compared.

use crate::peer::{Recording, Upstream};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What passed over one connection.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    /// From the client's side.
    pub requests: Recording,
    /// From the broker's side.
    pub responses: Recording,
}

/// A recording relay.
#[derive(Debug)]
pub struct Tap {
    server: Upstream,
    talks: Arc<Mutex<Vec<Talk>>>,
}

impl Tap {
    /// Listens on `address` and relays to `upstream`.
    ///
    /// # Panics
    /// If the address is taken.
    #[track_caller]
    pub fn start(address: SocketAddr, upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind(address)
            .unwrap_or_else(|e| panic!("cannot listen on {address}: {e}"));
        let talks = Arc::new(Mutex::new(Vec::new()));
        let all: Arc<Mutex<Vec<Talk>>> = talks.clone();
        let server = Upstream::on(listener, move |client| {
            let talk = Talk::default();
            all.lock().expect("no holder panics").push(talk.clone());
            relay(client, upstream, &talk);
        });
        Self { server, talks }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Every connection so far, oldest first.
    pub fn talks(&self) -> Vec<Talk> {
        self.talks.lock().expect("no holder panics").clone()
    }
}

fn relay(client: TcpStream, upstream: SocketAddr, talk: &Talk) {
    let Ok(broker) = TcpStream::connect(upstream) else {
        return;
    };
    let requests = talk.requests.clone();
    let (from, to) = (
        client.try_clone().expect("a socket can be cloned"),
        broker.try_clone().expect("a socket can be cloned"),
    );
    let upward = std::thread::spawn(move || pump(from, to, &requests));
    pump(broker, client, &talk.responses);
    let _ = upward.join();
}

/// Moves bytes one way until there are no more, then passes that on.
fn pump(mut from: TcpStream, mut to: TcpStream, recording: &Recording) {
    let _ = to.set_nodelay(true);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(n) if n > 0 => {
                recording.add(&buffer[..n]);
                if to.write_all(&buffer[..n]).is_err() {
                    let _ = from.shutdown(Shutdown::Both);
                    return;
                }
            }
            Ok(_) => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Err(_) => {
                let _ = to.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}
