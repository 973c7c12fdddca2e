//! What the two ends of a connection say, made up from a seed: which exchanges follow each other, who names
//! them how, and what is broken about them. It does not depend on time.

use super::apis::{self, API_VERSIONS, Api, METADATA, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE};
use super::frame::{Direction, Frame, Head, Kind, Piece, joined};
use super::words::Word;
use super::writer::{Writer, pick};
use apis::Terms;
use fastrand::Rng;

/// What comes back upon a request.
pub(crate) enum Answer {
    Nothing,
    /// Of klamp's own.
    Klamps,
    Brokers(Box<Frame>),
}

/// A request and its answer.
pub(crate) struct Exchange {
    pub(crate) request: Frame,
    pub(crate) answer: Answer,
}

/// How a client names its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Same,
    Rising,
}

/// How a message is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// Its end is missing.
    Cut,
    /// Only the last byte or two are.
    CutLate,
    /// Bytes follow it.
    Trailing,
}

/// Makes up what is said on one connection.
pub(crate) struct Script {
    pub(crate) rng: Rng,
    pub(crate) ids: Ids,
    next_id: i32,
    client_id: Option<Vec<u8>>,
    tagged: f64,
    is_hostile: bool,
    has_large: bool,
    terms: Terms,
    /// Whether the next request must be one that says where klamp is: what came before may or may not be
    /// answered, and klamp's own answers wait behind that.
    owes_plain: bool,
    made: Vec<Exchange>,
}

impl Script {
    pub(crate) fn new(seed: u64, port: u16) -> Self {
        let mut rng = Rng::with_seed(seed);
        let (ids, next_id) = match rng.usize(..4) {
            0 => (Ids::Same, pick(&mut rng, &[0, 7, -1])),
            1 | 2 => (Ids::Rising, rng.i32(0..10)),
            _ => (Ids::Rising, i32::MAX - 3),
        };
        let letters = pick(&mut rng, &[None, Some(0), Some(1), Some(4), Some(40)]);
        let letters = if rng.f64() < 0.05 {
            Some(3000)
        } else {
            letters
        };
        Self {
            ids,
            next_id,
            client_id: letters.map(|count| b"fuzz".iter().copied().cycle().take(count).collect()),
            tagged: pick(&mut rng, &[0.0, 0.0, 0.0, 0.05, 0.3]),
            is_hostile: rng.bool(),
            has_large: rng.f64() < 0.25,
            terms: Terms {
                acks: 1,
                mechanism: "PLAIN",
                handshake_error: 0,
                port,
            },
            owes_plain: false,
            made: Vec::new(),
            rng,
        }
    }

    /// About so many exchanges more.
    pub(crate) fn more(&mut self, count: usize) -> Vec<Exchange> {
        for _ in 0..count {
            self.one_more();
        }
        if self.owes_plain {
            self.one_more();
        }
        std::mem::take(&mut self.made)
    }

    fn one_more(&mut self) {
        if std::mem::take(&mut self.owes_plain) {
            return self.exchange(apis::api(METADATA), Some(4), false);
        }
        let hostile = self.is_hostile;
        match self.rng.usize(..100) {
            0..5 if hostile => self.unknown(),
            5..7 if hostile => self.unknown_produce(),
            7..9 => self.of_the_future(),
            9..13 => self.sasl(),
            13..25 if hostile => {
                let api = apis::any(&mut self.rng);
                self.exchange(api, None, true);
            }
            _ => {
                let api = apis::any(&mut self.rng);
                self.exchange(api, None, false);
            }
        }
    }

    fn exchange(&mut self, api: &Api, version: Option<i16>, damaged: bool) {
        let version = version.unwrap_or_else(|| self.rng.i16(api.versions.clone()));
        let may_be_silent = !damaged || self.ids != Ids::Same;
        self.terms.acks = match may_be_silent {
            true => pick(&mut self.rng, &[1, 1, -1, 0]),
            false => pick(&mut self.rng, &[1, -1]),
        };
        let damages = [Damage::Cut, Damage::CutLate, Damage::Trailing];
        let damage = damaged.then(|| pick(&mut self.rng, &damages));
        let mut hit = pick(&mut self.rng, &Direction::BOTH);
        // (an ApiVersions that klamp cannot read ends the connection)
        let damage = damage.filter(|damage| api.key != API_VERSIONS || *damage == Damage::Trailing);
        if api.key == API_VERSIONS {
            hit = Direction::Request;
        }
        let id = self.id();
        let of = |direction| damage.filter(|_| hit == direction);
        let request = self.message(api, version, id, Direction::Request, of(Direction::Request));
        let is_silent = api.key == PRODUCE && self.terms.acks == 0;
        // (it depends on where it breaks off whether anyone waits for an answer)
        self.owes_plain |= is_silent && request.kind == Kind::Malformed;
        let answer = match is_silent {
            true => Answer::Nothing,
            false => {
                let of = of(Direction::Response);
                let answer = self.message(api, version, id, Direction::Response, of);
                Answer::Brokers(Box::new(answer))
            }
        };
        self.made.push(Exchange { request, answer });
    }

    fn message(
        &mut self,
        api: &Api,
        version: i16,
        correlation_id: i32,
        direction: Direction,
        damage: Option<Damage>,
    ) -> Frame {
        let head = Head {
            api_key: api.key,
            api_version: version,
            correlation_id,
        };
        let header = self.header(direction, head);
        let is_flexible = version >= api.flexible_from;
        let is_unread = matches!(damage, Some(Damage::Cut | Damage::CutLate));
        let mut w = Writer::new(&mut self.rng, is_flexible, is_unread, self.tagged);
        w.raw(&header);
        let body = match direction {
            Direction::Request => {
                w.tags();
                api.request
            }
            Direction::Response => {
                // (its header never grew, so that anyone can read it)
                if api.key != API_VERSIONS {
                    w.tags();
                }
                api.response
            }
        };
        body(&mut w, version, &self.terms);
        let (has_unnamed_code, mut pieces) = (w.has_unnamed_code, w.pieces());
        let mut kind = Kind::Whole;
        if damage == Some(Damage::Trailing) {
            let count = pick(&mut self.rng, &[12, 20, 60, 900]);
            pieces.push(Piece::Trailing(Word::Secret.bytes(count)));
        } else if damage.is_some() {
            let mut bytes = joined(&pieces);
            let most = bytes.len() - header.len();
            let late = damage == Some(Damage::CutLate);
            let most = if late { most.min(2) } else { most };
            bytes.truncate(bytes.len() - self.rng.usize(1..=most));
            (kind, pieces) = (Kind::Malformed, vec![Piece::Plain(bytes)]);
        }
        let what = match damage {
            Some(damage) => format!("{} ({damage:?})", api.name),
            None => api.name.to_owned(),
        };
        let length = header.len() + 4;
        let mut frame = Frame::new(direction, what, Some(head), kind, pieces, length);
        frame.has_unnamed_code = has_unnamed_code;
        frame
    }

    /// Of a frame up to the client id.
    fn header(&self, direction: Direction, head: Head) -> Vec<u8> {
        let id = head.correlation_id.to_be_bytes();
        if direction == Direction::Response {
            return id.to_vec();
        }
        let mut header = head.api_key.to_be_bytes().to_vec();
        header.extend(head.api_version.to_be_bytes());
        header.extend(id);
        let client_id = self.client_id.as_deref();
        let length = client_id.map_or(-1, |id| i16::try_from(id.len()).expect("it is short"));
        header.extend(length.to_be_bytes());
        header.extend(client_id.unwrap_or_default());
        header
    }

    fn id(&mut self) -> i32 {
        let id = self.next_id;
        if self.ids != Ids::Same {
            self.next_id = id.checked_add(1).unwrap_or(i32::MIN);
        }
        id
    }

    /// A frame of a layout that nobody knows.
    fn unread(&mut self, direction: Direction, head: Head, what: &str) -> Frame {
        let header = self.header(direction, head);
        let (large, larger) = if self.has_large {
            (20_000, 150_000)
        } else {
            (70, 9)
        };
        let count = pick(&mut self.rng, &[0, 12, 50, 400, 16_300, large, larger]);
        let length = header.len() + 4;
        let text = Word::UnreadText.bytes(count);
        let pieces = vec![Piece::Plain([header, text].concat())];
        Frame::new(
            direction,
            what.to_owned(),
            Some(head),
            Kind::Unknown,
            pieces,
            length,
        )
    }

    fn unknown(&mut self) {
        let of = [
            (200, 0),
            (-5, 3),
            (300, 1),
            (3, 99),
            (1, 200),
            (11, -3),
            (32, 50),
        ];
        let (api_key, api_version) = pick(&mut self.rng, &of);
        self.unread_exchange(api_key, api_version, true);
    }

    /// Nobody knows whether an answer is wanted.
    fn unknown_produce(&mut self) {
        let is_answered = self.ids == Ids::Same || self.rng.f64() < 0.7;
        self.unread_exchange(PRODUCE, 90, is_answered);
        self.owes_plain |= !is_answered;
    }

    fn unread_exchange(&mut self, api_key: i16, api_version: i16, is_answered: bool) {
        let head = Head {
            api_key,
            api_version,
            correlation_id: self.id(),
        };
        let request = self.unread(Direction::Request, head, "of no known layout");
        let answer = match is_answered {
            true => {
                let answer = self.unread(Direction::Response, head, "of no known layout");
                Answer::Brokers(Box::new(answer))
            }
            false => Answer::Nothing,
        };
        self.made.push(Exchange { request, answer });
    }

    /// An ApiVersions that is not the broker's to answer.
    fn of_the_future(&mut self) {
        let head = Head {
            api_key: API_VERSIONS,
            api_version: 77,
            correlation_id: self.id(),
        };
        let mut request = self.unread(Direction::Request, head, "ApiVersions of the future");
        request.kind = Kind::AnsweredHere;
        let answer = Answer::Klamps;
        self.made.push(Exchange { request, answer });
    }

    /// By either handshake, whatever it follows.
    fn sasl(&mut self) {
        if self.rng.f64() < 0.4 {
            (self.terms.mechanism, self.terms.handshake_error) = ("PLAIN", 0);
            self.exchange(apis::api(SASL_HANDSHAKE), Some(1), false);
            return self.exchange(apis::api(SASL_AUTHENTICATE), None, false);
        }
        let (mechanism, rounds) = pick(
            &mut self.rng,
            &[
                ("PLAIN", 1),
                ("SCRAM-SHA-256", 2),
                ("SCRAM-SHA-512", 2),
                ("GSSAPI", 3),
                ("OAUTHBEARER", 1),
                ("OAUTHBEARER", 2),
            ],
        );
        self.terms.mechanism = mechanism;
        self.terms.handshake_error = pick(&mut self.rng, &[0, 0, 0, 0, 33]);
        self.exchange(apis::api(SASL_HANDSHAKE), Some(0), false);
        if self.terms.handshake_error != 0 {
            return;
        }
        for _ in 0..rounds {
            let (request, answer) = (
                self.token(Direction::Request),
                self.token(Direction::Response),
            );
            let answer = Answer::Brokers(Box::new(answer));
            self.made.push(Exchange { request, answer });
        }
        // (how many tokens there are is known of the other mechanisms only)
        self.owes_plain = matches!(mechanism, "GSSAPI" | "OAUTHBEARER");
    }

    fn token(&mut self, direction: Direction) -> Frame {
        let large = if self.rng.f64() < 0.1 { 20_000 } else { 40 };
        let count = pick(&mut self.rng, &[0, 3, 12, 30, 500, large]);
        let pieces = vec![Piece::Trailing(Word::Secret.bytes(count))];
        Frame::new(direction, "token".to_owned(), None, Kind::Token, pieces, 4)
    }
}
