//! The mover of bytes, in simulated time: shows the session what has arrived, settles its steps as
//! debts, and holds it to its contract. A breach fails the test at once.

use super::script::{Act, Script};
use super::trace::{Edit, End, Side, Tape, Trace};
use klamp_codec::Direction;
use klamp_codec::observation::CloseReason;
use klamp_codec::session::{Input, MAX_HELD, Policy, Session, Step};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The most that a session may ask to be held and shown in one piece: an answer that it rewrites.
const HOLD_LIMIT: u64 = MAX_HELD;

/// How the relay goes about its work; no choice here may change the trace.
#[derive(Clone, Debug)]
pub struct Style {
    /// How much of what has arrived the session is shown.
    pub show: Show,
    /// Whether it is polled again although what it asked for has not come.
    pub restless: bool,
    /// Which lane is turned first.
    pub first: Direction,
    /// Whether a lane goes on until it can go no further before the other gets its turn. If the session
    /// closes then, the other lane may have had less of its turns than elsewhere: no way to compare.
    pub greedy: bool,
}

/// How much of what has arrived the session is shown; the less, the more a `Pass` moves unseen.
#[derive(Clone, Debug)]
pub enum Show {
    /// All of it.
    All,
    /// No more than the session asked for (`Need`), one byte at first: what a `Pass` owes is hidden.
    Asked,
    /// So many bytes, or as many as it asked for.
    Window(usize),
    /// Any number, from this seed.
    Random(fastrand::Rng),
}

impl Default for Style {
    fn default() -> Self {
        Self {
            show: Show::All,
            restless: false,
            first: Direction::Request,
            greedy: false,
        }
    }
}

/// A connection at work.
pub struct Relay {
    session: Session,
    style: Style,
    tape: Tape,
    request: Lane,
    response: Lane,
    now: Duration,
    draining: bool,
    ended: Option<End>,
    polls: usize,
    allowed: usize,
    arrived: usize,
}

#[derive(Default)]
struct Lane {
    arrived: Vec<u8>,
    taken: usize,
    owed: u64,
    unpaid: u64,
    want: usize,
    listening: bool,
    /// What it must answer, shown so much, where the session says that it awaits bytes.
    known: Option<(Step, usize)>,
    /// Something else than bytes may have changed the answer: the other lane moved, or a drain began.
    nudged: bool,
    /// Bytes have moved since the last poll: what that poll makes of it may matter to the other lane.
    moved: bool,
    since: Duration,
    eof: bool,
    answered: usize,
    side: Side,
}

impl Relay {
    /// A connection at its start, polled once in each direction.
    pub fn new(policy: Arc<Policy>, style: Style) -> Self {
        let mut relay = Self {
            session: Session::new(policy),
            style,
            tape: Tape::default(),
            request: Lane::default(),
            response: Lane::default(),
            now: Duration::ZERO,
            draining: false,
            ended: None,
            polls: 0,
            allowed: 64,
            arrived: 0,
        };
        relay.turn_both();
        relay
    }

    /// Runs a whole script.
    pub fn play(&mut self, script: &Script) {
        for (at, act) in script.events() {
            self.pass_time_until(*at);
            self.act(act);
        }
        self.pass_time_until(script.end());
    }

    /// One thing happens now.
    pub fn act(&mut self, act: &Act) {
        match act {
            Act::Bytes(direction, bytes) => self.arrive(*direction, bytes),
            Act::Eof(direction) => self.eof(*direction),
            Act::Lost(direction) => self.lose(*direction),
            Act::Drain => {
                self.session.drain();
                self.draining = true;
                self.request.nudged = true;
                self.turn(Direction::Request);
                self.response.nudged = true;
                self.turn_both();
            }
        }
    }

    /// Bytes arrive from the peer that sends `direction`.
    pub fn arrive(&mut self, direction: Direction, bytes: &[u8]) {
        self.allowed += 16 + 8 * bytes.len();
        self.arrived += bytes.len();
        let now = self.now;
        let lane = self.lane(direction);
        assert!(
            !lane.eof,
            "the script sends bytes after its end: {direction:?}"
        );
        lane.arrived.extend_from_slice(bytes);
        lane.since = now;
        self.turn_both();
    }

    /// The peer that sends `direction` closes its half.
    pub fn eof(&mut self, direction: Direction) {
        self.allowed += 16;
        self.lane(direction).eof = true;
        self.turn_both();
    }

    /// The peer that sends `direction` is gone without an end.
    pub fn lose(&mut self, direction: Direction) {
        if self.end() == End::Open {
            let reason = self.session.lost(direction, self.now, &mut self.tape);
            self.ended = Some(reason.map_or(End::Lost(direction), End::Closed));
        }
    }

    /// Time passes up to `until`, and deadlines with it.
    pub fn pass_time_until(&mut self, until: Duration) {
        assert!(until >= self.now, "time never falls");
        self.allowed += 16;
        while self.ended.is_none() {
            let due = [Direction::Request, Direction::Response]
                .into_iter()
                .filter_map(|direction| Some((self.deadline(direction)?, direction)))
                .min_by_key(|(at, _)| *at);
            match due {
                Some((at, direction)) if at <= until => {
                    self.now = self.now.max(at);
                    self.ended = Some(End::Closed(CloseReason::Stalled(direction)));
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// When the connection ends because the peer that sends `direction` is silent: only while the relay
    /// has room and waits for that very peer.
    pub fn deadline(&self, direction: Direction) -> Option<Duration> {
        let lane = self.peek(direction);
        if lane.side.finished || lane.eof || !(lane.listening || lane.owed > 0) {
            return None;
        }
        let at = self.session.deadline(direction, clock(lane.since))?;
        Some(at.saturating_duration_since(clock(Duration::ZERO)))
    }

    /// Bytes of `direction` that have left: passed, or taken away by an edit.
    pub fn taken(&self, direction: Direction) -> usize {
        self.peek(direction).taken
    }

    /// Whether the session knows its next answer in `direction`.
    pub fn awaits_bytes(&self, direction: Direction) -> bool {
        self.session.awaits_bytes(direction)
    }

    /// Requests that wait for an answer.
    pub fn in_flight(&self) -> usize {
        self.session.in_flight()
    }

    /// How it ended, if it did.
    pub fn end(&self) -> End {
        match self.ended {
            Some(end) => end,
            None if self.request.side.finished && self.response.side.finished => {
                End::Finished(self.session.ending())
            }
            None => End::Open,
        }
    }

    /// What came of it so far.
    pub fn trace(&self) -> Trace {
        let side = |direction| Side {
            seen: self.tape.of(direction).to_vec(),
            ..self.peek(direction).side.clone()
        };
        Trace {
            request: side(Direction::Request),
            response: side(Direction::Response),
            in_flight: self.session.in_flight(),
            end: self.end(),
        }
    }

    fn turn_both(&mut self) {
        let second = match self.style.first {
            Direction::Request => Direction::Response,
            Direction::Response => Direction::Request,
        };
        loop {
            let one = self.turn(self.style.first);
            self.lane(second).nudged |= one;
            let two = self.turn(second);
            let first = self.style.first;
            self.lane(first).nudged |= two;
            if !(one || two) || self.ended.is_some() {
                return;
            }
        }
    }

    /// One step of one lane, or in greed all that it can; tells whether anything happened that the other
    /// lane may be waiting for.
    fn turn(&mut self, direction: Direction) -> bool {
        let mut moved = false;
        while self.ended.is_none() && self.step(direction) {
            moved = true;
            if !self.style.greedy {
                break;
            }
        }
        moved
    }

    fn step(&mut self, direction: Direction) -> bool {
        let (now, restless, requests) = (self.now, self.style.restless, self.request.taken / 8);
        let may_part = self.draining && direction == Direction::Response;
        let lane = match direction {
            Direction::Request => &mut self.request,
            Direction::Response => &mut self.response,
        };
        lane.settle();
        if lane.side.finished || (lane.owed > 0 && !lane.eof) {
            return std::mem::take(&mut lane.moved);
        }
        lane.unpaid += std::mem::take(&mut lane.owed);
        let rest = &lane.arrived[lane.taken..];
        let nudged = std::mem::take(&mut lane.nudged);
        if rest.len() < lane.want && !lane.eof && !restless && !nudged {
            return false;
        }
        let moved = std::mem::take(&mut lane.moved);
        let count = self.style.show.count(rest.len(), lane.want);
        let shown = &rest[..count];
        let eof = lane.eof && count == rest.len();
        let input = Input {
            shown,
            eof,
            unpaid: if eof { lane.unpaid } else { 0 },
            now,
        };
        let known = lane
            .known
            .take()
            .filter(|(_, shown)| *shown == count && !eof && self.session.awaits_bytes(direction));
        let is_amid_frame = count == 0 && !eof && self.session.is_amid_frame(direction);
        let told = self.tape.of(direction).len();
        self.polls += 1;
        assert!(
            self.polls <= self.allowed,
            "{} polls for {} bytes: it spins ({direction:?}, {input:?})",
            self.polls,
            self.arrived,
        );
        let step = self.session.poll(direction, input, &mut self.tape);
        assert_eq!(
            self.tape.in_flight() as usize,
            self.session.in_flight(),
            "{direction:?}: requests in flight as told, and as they are"
        );
        if let Some((known, _)) = known {
            assert_eq!(step, known, "{direction:?}: known, as it awaits bytes");
            assert_eq!(told, self.tape.of(direction).len(), "{direction:?}");
        }
        if is_amid_frame {
            assert_eq!(step, Step::Need(1), "{direction:?}: amid a frame");
            assert_eq!(told, self.tape.of(direction).len(), "{direction:?}");
        }
        lane.known = match step {
            Step::Need(_) => Some((step.clone(), count)),
            Step::Pass(n) if n == count as u64 && !eof => Some((Step::Need(1), 0)),
            _ => None,
        };
        if !matches!(step, Step::Need(_)) {
            lane.listening = false;
            lane.want = 0;
        }
        match step {
            Step::Pass(n) => {
                assert!(n > 0, "{direction:?}: a Pass of nothing");
                assert!(
                    !(eof && shown.is_empty()),
                    "{direction:?}: a Pass of {n} after the end"
                );
                lane.owed = n;
                lane.since = now;
                lane.settle();
                true
            }
            Step::Replace { drop, with } => {
                assert!(
                    drop <= shown.len(),
                    "{direction:?}: drops {drop} of {count} shown"
                );
                assert!(
                    drop > 0 || !with.is_empty(),
                    "{direction:?}: a Replace of nothing by nothing"
                );
                if drop == 0 {
                    lane.answered += 1;
                    assert!(
                        direction == Direction::Response && lane.answered <= requests,
                        "{direction:?}: more answers of its own than requests"
                    );
                }
                lane.since = now;
                lane.replace(drop, &with);
                true
            }
            Step::Need(n) => {
                assert!(
                    n > count,
                    "{direction:?}: needs {n} bytes and was shown {count}"
                );
                assert!(!eof, "{direction:?}: needs {n} bytes after the end");
                assert!(
                    n as u64 <= HOLD_LIMIT,
                    "{direction:?}: wants {n} bytes held"
                );
                if !lane.listening {
                    lane.listening = true;
                    lane.since = now;
                }
                let has_more = rest.len() > count;
                let has_enough = lane.eof || rest.len() >= n || restless;
                lane.want = n;
                moved || (has_more && has_enough)
            }
            Step::Wait => moved,
            Step::Finish => {
                assert!(
                    (eof || may_part) && shown.is_empty(),
                    "{direction:?}: finishes before the end"
                );
                lane.side.finished = true;
                true
            }
            Step::Close(reason) => {
                self.ended = Some(End::Closed(reason));
                false
            }
        }
    }

    fn lane(&mut self, direction: Direction) -> &mut Lane {
        match direction {
            Direction::Request => &mut self.request,
            Direction::Response => &mut self.response,
        }
    }

    fn peek(&self, direction: Direction) -> &Lane {
        match direction {
            Direction::Request => &self.request,
            Direction::Response => &self.response,
        }
    }
}

impl Lane {
    /// Pays the debt as far as bytes have arrived.
    fn settle(&mut self) {
        let rest = &self.arrived[self.taken..];
        let n = rest
            .len()
            .min(usize::try_from(self.owed).unwrap_or(usize::MAX));
        self.side.output.extend_from_slice(&rest[..n]);
        self.taken += n;
        self.owed -= n as u64;
        self.moved |= n > 0;
    }

    fn replace(&mut self, drop: usize, with: &[u8]) {
        let at = self.taken as u64;
        let dropped = &self.arrived[self.taken..self.taken + drop];
        match self.side.edits.last_mut() {
            Some(last) if last.at + last.dropped.len() as u64 == at => {
                last.dropped.extend_from_slice(dropped);
                last.with.extend_from_slice(with);
            }
            _ => self.side.edits.push(Edit {
                at,
                dropped: dropped.to_vec(),
                with: with.to_vec(),
            }),
        }
        self.side.output.extend_from_slice(with);
        self.taken += drop;
        self.moved = true;
    }
}

impl Show {
    fn count(&mut self, available: usize, want: usize) -> usize {
        let count = match self {
            Self::All => available,
            Self::Asked => want.max(1),
            Self::Window(n) => want.max(*n),
            Self::Random(rng) => rng.usize(want..=want.max(available)),
        };
        count.min(available)
    }
}

/// Simulated time: the same base for the whole process.
fn clock(at: Duration) -> Instant {
    static BASE: OnceLock<Instant> = OnceLock::new();
    *BASE.get_or_init(Instant::now) + at
}
