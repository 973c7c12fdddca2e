//! A broker and a client that say what a script has: frames that no broker would answer so, and whatever
//! is damaged.

use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{MetadataRequest, MetadataResponse};
use klamp_tests::peer::{Client, Upstream};
use klamp_tests::records::topic_name;
use klamp_tests::wire;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpStream};

use klamp_tests::needle::Needle;

/// A version of Metadata, by which a client says which script it plays, and what triggers.
const METADATA: i16 = 1;

/// A request and its answer, as frames whose correlation ids are set as they are sent.
#[derive(Clone)]
pub(super) struct Exchange {
    /// Of the API.
    pub(super) name: &'static str,
    pub(super) request: Vec<u8>,
    pub(super) response: Vec<u8>,
    /// Raw tokens have no correlation ids.
    pub(super) is_token: bool,
}

impl Exchange {
    pub(super) fn token(name: &'static str, request: &[u8], response: &[u8]) -> Self {
        Self {
            name,
            request: wire::frame(request),
            response: wire::frame(response),
            is_token: true,
        }
    }

    /// The same with one of the messages damaged, in the ways there are; where a message has no secret,
    /// there is nothing to see.
    pub(super) fn damaged(&self, needle: &Needle) -> Vec<Self> {
        let damaged = |frame: &[u8]| match needle.count(frame) {
            0 => Vec::new(),
            _ => damages(frame, needle),
        };
        let requests = damaged(&self.request).into_iter().map(|request| Self {
            request,
            ..self.clone()
        });
        let responses = damaged(&self.response).into_iter().map(|response| Self {
            response,
            ..self.clone()
        });
        // Of a version or a key that nobody knows: the same secret at the same place.
        let mut ahead = self.request.clone();
        ahead[6..8].copy_from_slice(&99_i16.to_be_bytes());
        let mut unknown = ahead.clone();
        unknown[4..6].copy_from_slice(&9_999_i16.to_be_bytes());
        let strangers = [ahead, unknown].into_iter().map(|request| Self {
            request,
            ..self.clone()
        });
        requests.chain(responses).chain(strangers).collect()
    }
}

/// A frame that is cut in the middle of a secret, and behind it; that goes on behind its message; of
/// which a byte in the body, before the secret, is another.
fn damages(frame: &[u8], needle: &Needle) -> Vec<Vec<u8>> {
    let payload = &frame[4..];
    let word = needle.at("");
    let piece = &word.as_bytes()[..8];
    let at = payload.windows(8).position(|window| window == piece);
    let at = at.expect("the secret is in it");
    let mut all = vec![
        wire::frame(&payload[..at + 11]),
        wire::frame(&payload[..payload.len() - 1]),
        wire::frame(&[payload, needle.at("trailing").as_bytes()].concat()),
    ];
    // The length of what holds the secret, and the bytes before that.
    for back in [1, 2, 4, 5] {
        for other in [0xff, 0x7f, 0x03] {
            let mut payload = payload.to_vec();
            if at > 30 + back {
                payload[at - back] = other;
                all.push(wire::frame(&payload));
            }
        }
    }
    all
}

/// What a connection says.
#[derive(Clone)]
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) ending: Ending,
}

/// What a connection says in the end.
#[derive(Clone)]
pub(super) enum Ending {
    /// A code that nobody names.
    Unnamed,
    /// A request of which the rest never comes.
    Cut(Vec<u8>),
    /// An answer that answers nothing.
    Mismatch(Vec<u8>),
    /// A request that klamp answers in the broker's place, and then a code that nobody names.
    AnsweredHere(Vec<u8>),
    /// Nothing: the broker closes upon the last request.
    Close(Vec<u8>),
}

impl Script {
    pub(super) fn of(name: &'static str, exchanges: Vec<Exchange>) -> Self {
        Self {
            name,
            exchanges,
            ending: Ending::Unnamed,
        }
    }

    /// How many frames of it a capture must have.
    pub(super) fn frames(&self) -> usize {
        let ending = match self.ending {
            Ending::Unnamed => 2,
            Ending::AnsweredHere(_) => 3,
            Ending::Cut(_) | Ending::Close(_) | Ending::Mismatch(_) => 1,
        };
        2 + 2 * self.exchanges.len() + ending
    }
}

/// A broker that plays its part of that script whose number a client asks for by its first request.
pub(super) fn start(scripts: &[Script]) -> Upstream {
    let scripts = scripts.to_vec();
    Upstream::start(move |stream| {
        let mut peer = Client::over(stream);
        let Some(hello) = read(peer.stream()) else {
            return;
        };
        let number = wire::request_correlation_id(&hello);
        let Some(script) = scripts.get(usize::try_from(number).unwrap_or(usize::MAX)) else {
            return;
        };
        peer.send_bytes(&metadata(number, 0));
        for exchange in &script.exchanges {
            let Some(request) = read(peer.stream()) else {
                return;
            };
            let mut response = exchange.response.clone();
            if !exchange.is_token {
                let id = wire::request_correlation_id(&request);
                response[4..8].copy_from_slice(&id.to_be_bytes());
            }
            peer.try_send_bytes(&response);
        }
        let last = read(peer.stream());
        match (&script.ending, last) {
            (Ending::Unnamed | Ending::AnsweredHere(_), Some(last)) => {
                let id = wire::request_correlation_id(&last);
                peer.try_send_bytes(&metadata(id, 1_000 + i16::try_from(number).unwrap_or(0)));
            }
            (Ending::Mismatch(answer), Some(_)) => peer.try_send_bytes(answer),
            _ => return,
        }
        // The client ends it.
        let _ = read(peer.stream());
    })
}

/// Plays the client's part of that script, and tells from where.
pub(super) fn play(klamp: SocketAddr, number: usize, script: &Script) -> SocketAddr {
    let number = i32::try_from(number).expect("there are few");
    let mut client = Client::connect(klamp);
    let ask = |id| wire::request(METADATA, id, "app", &MetadataRequest::default());
    client.send_bytes(&ask(number));
    client.read_frame();
    for (id, exchange) in (1_000..).zip(&script.exchanges) {
        let mut request = exchange.request.clone();
        if !exchange.is_token {
            request[8..12].copy_from_slice(&i32::to_be_bytes(id));
        }
        client.send_bytes(&request);
        client.read_frame();
    }
    match &script.ending {
        Ending::Unnamed => {
            client.send_bytes(&ask(7));
            client.read_frame();
        }
        Ending::AnsweredHere(frame) => {
            client.send_bytes(frame);
            client.read_frame();
            client.send_bytes(&ask(7));
            client.read_frame();
        }
        Ending::Cut(frame) => {
            client.send_bytes(&frame[..frame.len() - 1]);
            let _ = client.stream().shutdown(Shutdown::Write);
            client.read_to_end();
        }
        Ending::Mismatch(_) => {
            client.send_bytes(&ask(7));
            client.read_to_end();
        }
        Ending::Close(frame) => {
            client.send_bytes(frame);
            client.read_to_end();
        }
    }
    client.stream().local_addr().expect("it is connected")
}

fn metadata(id: i32, code: i16) -> Vec<u8> {
    let topic = MetadataResponseTopic::default()
        .with_name(Some(topic_name("orders")))
        .with_error_code(code);
    let answer = MetadataResponse::default().with_topics(vec![topic]);
    wire::response::<MetadataRequest>(METADATA, id, &answer)
}

/// The next frame's payload, if one comes whole.
fn read(mut stream: &TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut payload = vec![0; usize::try_from(u32::from_be_bytes(length)).ok()?];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}
