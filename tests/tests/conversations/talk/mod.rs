//! Both ends of one connection through klamp: sends what is made up in pieces of any size, checks that the
//! other end gets the same bytes, and notes when what was sent and had arrived.

mod ending;
mod moving;
mod stream;

pub(crate) use ending::Ending;
pub(crate) use stream::{Sent, Stream};

use super::apis::API_VERSIONS;
use super::frame::{Direction, Kind};
use super::script::{Answer, Exchange, Script};
use super::writer::pick;
use fastrand::Rng;
use moving::SIZES;
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long nothing may move before something is stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a broker waits for more that it could answer at once.
const BREATH: Duration = Duration::from_millis(2);

/// A request whose answer the client waits for.
struct Waiting {
    request: usize,
    /// Until it is sent.
    answer: Answer,
}

/// A connection.
pub(crate) struct Talk {
    pub(crate) script: Script,
    /// What it was made from.
    pub(crate) seed: u64,
    pub(crate) peer: SocketAddr,
    /// The client and the broker, as long as they have not closed.
    ends: [Option<TcpStream>; 2],
    /// Who sends how much when: this may depend on time.
    pub(crate) cuts: Rng,
    /// Bytes that are sent at once at most; 0: any of [`SIZES`].
    most: usize,
    /// Requests under way at most.
    window: usize,
    pub(crate) streams: [Stream; 2],
    to_say: VecDeque<Exchange>,
    /// Requests whose answer the client waits for.
    waiting: VecDeque<Waiting>,
    /// What of the client's bytes the broker gets: not what klamp answers.
    for_broker: Vec<u8>,
    /// Requests that the broker gets, and where each ends.
    broker_gets: Vec<(usize, usize)>,
    /// How many it has, and how many of those it has answered.
    broker_has: usize,
    broker_answered: usize,
    /// How many it waits for before it answers, if more come.
    gathers: usize,
    /// How many of the bytes that the client got were looked at.
    seen: usize,
    is_ending: bool,
    /// When somebody first asked for a capture of it.
    pub(crate) asked: Option<Instant>,
    /// Whether klamp has captured of it for a code.
    pub(crate) is_captured: bool,
}

impl Talk {
    pub(crate) fn open(seed: u64, klamp: SocketAddr, listener: &TcpListener) -> Self {
        let client = TcpStream::connect(klamp).expect("klamp listens");
        let (broker, _) = listener.accept().expect("klamp dials for each");
        for end in [&client, &broker] {
            end.set_nodelay(true).expect("a socket takes options");
            end.set_nonblocking(true).expect("a socket takes options");
        }
        let mut cuts = Rng::with_seed(!seed);
        let peer = client.local_addr().expect("it is bound");
        Self {
            script: Script::new(seed, klamp.port()),
            seed,
            peer,
            ends: [Some(client), Some(broker)],
            most: pick(&mut cuts, &[0, 12, 600, 9000, 9000, 65_536, 65_536]),
            window: pick(&mut cuts, &[1, 1, 2, 5, 60]),
            gathers: pick(&mut cuts, &[1, 1, 4, 30]),
            cuts,
            streams: Default::default(),
            to_say: VecDeque::new(),
            waiting: VecDeque::new(),
            for_broker: Vec::new(),
            broker_gets: Vec::new(),
            broker_has: 0,
            broker_answered: 0,
            seen: 0,
            is_ending: false,
            asked: None,
            is_captured: false,
        }
    }

    pub(crate) fn stream(&self, direction: Direction) -> &Stream {
        &self.streams[direction as usize]
    }

    /// Makes up about so many exchanges more.
    pub(crate) fn plan(&mut self, exchanges: usize) {
        // (in very small pieces they take their time)
        let most = if self.most == SIZES[0] { 10 } else { exchanges };
        let more = self.script.more(exchanges.min(most));
        self.to_say.extend(more);
    }

    /// How many exchanges have not begun.
    pub(crate) fn to_come(&self) -> usize {
        self.to_say.len()
    }

    /// How many bytes of requests are to come.
    pub(crate) fn bytes_to_come(&self) -> usize {
        let requests = self.to_say.iter().map(|it| it.request.bytes.len());
        requests.sum()
    }

    pub(crate) fn sent(&self, direction: Direction) -> usize {
        self.stream(direction).sent
    }

    /// Whether klamp must have captured of it for a code that no library knows: one came, and no capture went
    /// on that something else had triggered or somebody had asked for.
    pub(crate) fn has_triggered(&self) -> bool {
        let [requests, responses] = self.streams.each_ref().map(|it| &it.frames);
        let coded = responses.iter().find(|it| it.frame.has_unnamed_code);
        let Some(came) = coded.and_then(|it| it.arrived) else {
            return false;
        };
        let mut malformed = requests.iter().chain(responses);
        let is_other = malformed.any(|it| {
            let is_before = it.began.is_some_and(|began| began < came);
            it.frame.kind == Kind::Malformed && is_before
        });
        !is_other && self.asked.is_none_or(|asked| came < asked)
    }

    /// Goes on until all is said and has arrived, or until then.
    pub(crate) fn pump(&mut self, mut until: impl FnMut(&mut Self) -> bool) {
        loop {
            self.ask();
            self.answer();
            if until(self) || self.is_done() {
                return;
            }
            let mut order = Direction::BOTH;
            if self.cuts.bool() {
                order.reverse();
            }
            let mut moved = false;
            for direction in order {
                moved |= self.send(direction);
            }
            for direction in order {
                moved |= self.receive(direction);
            }
            self.take_answers();
            if !moved {
                let over = self.streams.each_ref().map(|it| it.is_over);
                assert!(!over[0] && !over[1], "klamp closed by itself: {over:?}");
                self.wait_or_answer();
            }
        }
    }

    /// Waits for more. What klamp does not let through for now waits for an answer.
    fn wait_or_answer(&mut self) {
        let owes = self.broker_answered < self.broker_has;
        if self.is_ready(if owes { BREATH } else { PATIENCE }) {
            return;
        }
        let (waiting, has, gets) = (self.waiting.len(), self.broker_has, self.broker_gets.len());
        assert!(
            owes,
            "nothing moves any more: {waiting} requests wait, the broker has {has} of {gets}"
        );
        self.answer_all();
    }

    /// All is said and has arrived.
    fn is_done(&self) -> bool {
        self.to_say.is_empty()
            && self.waiting.is_empty()
            && self.streams.iter().all(Stream::is_sent)
            && self.stream(Direction::Request).got.len() == self.for_broker.len()
            && self.broker_has == self.broker_gets.len()
    }

    /// Hands over requests that may be sent now.
    fn ask(&mut self) {
        let requests = &mut self.streams[Direction::Request as usize];
        while self.waiting.len() < self.window
            && requests.bytes.len() - requests.sent < 1 << 20
            && let Some(Exchange { request, answer }) = self.to_say.pop_front()
        {
            let for_broker = (request.kind != Kind::AnsweredHere).then(|| request.bytes.clone());
            let request = requests.push(request, None);
            if let Some(bytes) = for_broker {
                self.for_broker.extend(bytes);
                self.broker_gets.push((request, self.for_broker.len()));
            }
            if !matches!(answer, Answer::Nothing) {
                self.waiting.push_back(Waiting { request, answer });
            }
        }
    }

    /// Hands over the broker's answers to what it has, once that is enough.
    fn answer(&mut self) {
        let requests = &mut self.streams[Direction::Request as usize];
        while let Some((request, end)) = self.broker_gets.get(self.broker_has)
            && *end <= requests.got.len()
        {
            self.broker_has += 1;
            requests.frames[*request].arrived = Some(Instant::now());
        }
        let comes_more = !requests.is_sent() || requests.got.len() < self.for_broker.len();
        if !comes_more || self.broker_has - self.broker_answered >= self.gathers {
            self.answer_all();
        }
    }

    /// Hands over the answers to all that the broker has.
    fn answer_all(&mut self) {
        let [requests, responses] = &mut self.streams;
        while self.broker_answered < self.broker_has {
            let (request, _) = &self.broker_gets[self.broker_answered];
            self.broker_answered += 1;
            let waiting = self.waiting.iter_mut().find(|it| it.request == *request);
            if let Some(Waiting { answer, .. }) = waiting
                && let Answer::Brokers(answer) = std::mem::replace(answer, Answer::Nothing)
            {
                let sent = responses.push(*answer, Some(*request));
                requests.frames[*request].partner = Some(sent);
            }
        }
    }

    /// Looks at what the client has got, frame by frame.
    fn take_answers(&mut self) {
        let [requests, responses] = &mut self.streams;
        while let Some(rest) = responses.got.get(self.seen..)
            && let Some((length, _)) = rest.split_first_chunk()
            && let Some(frame) = rest.get(..4 + u32::from_be_bytes(*length) as usize)
        {
            let waiting = self.waiting.pop_front();
            let waiting =
                waiting.unwrap_or_else(|| panic!("nobody asked for {}", frame.escape_ascii()));
            let asked = &requests.frames[waiting.request];
            let (sent, asked) = (asked.partner, &asked.frame);
            let head = asked.head.map(|head| (head.api_key, head.correlation_id));
            match (head, sent) {
                // (klamp changes what is in it)
                (Some((API_VERSIONS, id)), _) => {
                    assert_eq!(frame[4..8], id.to_be_bytes(), "the answer to {asked:?}");
                }
                (_, Some(sent)) => {
                    let wanted = &responses.frames[sent].frame;
                    assert!(frame == wanted.bytes, "other bytes came of {wanted:?}");
                }
                (_, None) => panic!("an answer to {asked:?}, which the broker has not answered"),
            }
            if let Some(sent) = sent {
                responses.frames[sent].arrived = Some(Instant::now());
            }
            self.seen += frame.len();
        }
    }
}
