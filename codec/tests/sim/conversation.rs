//! Requests and their answers, and the ways in which both may mingle on the wire.
//!
//! The rule of causality: no byte of an answer comes before its request has been sent entirely, and a
//! client that waits sends nothing before all answers to what it has asked.

use super::script::Script;

/// What a client and a broker say to each other.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    asked: Vec<u8>,
    answers: Vec<(usize, Vec<u8>)>,
    /// Where the client waits for all answers.
    waits: Vec<usize>,
    ends: bool,
}

impl Conversation {
    /// Nothing is said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A request and its answer.
    #[must_use]
    pub fn ask(mut self, request: &[u8], response: &[u8]) -> Self {
        self.asked.extend_from_slice(request);
        self.answers.push((self.asked.len(), response.to_vec()));
        self
    }

    /// A request to which the broker says nothing.
    #[must_use]
    pub fn tell(mut self, request: &[u8]) -> Self {
        self.asked.extend_from_slice(request);
        self
    }

    /// Here the client waits for all answers before it says more.
    #[must_use]
    pub fn wait(mut self) -> Self {
        self.waits.push(self.asked.len());
        self
    }

    /// Whether the client ever waits.
    pub fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// When all is said both close, the client first.
    #[must_use]
    pub fn end(mut self) -> Self {
        self.ends = true;
        self
    }

    /// All that the client says.
    pub fn asked(&self) -> &[u8] {
        &self.asked
    }

    /// All that the broker says.
    pub fn answered(&self) -> Vec<u8> {
        self.answers
            .iter()
            .flat_map(|(_, bytes)| bytes)
            .copied()
            .collect()
    }

    /// Each answer at once after its request.
    pub fn one_by_one(&self) -> Script {
        let mut script = Script::new();
        let mut sent = 0;
        for (after, answer) in &self.answers {
            script = script.client(&self.asked[sent..*after]).broker(answer);
            sent = *after;
        }
        self.close(script.client(&self.asked[sent..]))
    }

    /// All requests, then all answers; between waits.
    pub fn pipelined(&self) -> Script {
        let answers = self.answered();
        let mut script = Script::new();
        let (mut sent, mut answered) = (0, 0);
        for upto in self.waits.iter().copied().chain([self.asked.len()]) {
            let due = self.may_answer(upto);
            script = script
                .client(&self.asked[sent..upto])
                .broker(&answers[answered..due]);
            (sent, answered) = (upto, due);
        }
        self.close(script)
    }

    /// As chance has it: in pieces of any size.
    pub fn mingled(&self, rng: &mut fastrand::Rng) -> Script {
        let answers = self.answered();
        let mut script = Script::new();
        let (mut sent, mut answered) = (0, 0);
        while sent < self.asked.len() || answered < answers.len() {
            let may_answer = self.may_answer(sent);
            let may_send = self.may_send(sent, answered);
            if answered < may_answer && (sent == may_send || rng.bool()) {
                let upto = rng.usize(answered + 1..=may_answer);
                script = script.broker(&answers[answered..upto]);
                answered = upto;
            } else {
                let upto = rng.usize(sent + 1..=may_send);
                script = script.client(&self.asked[sent..upto]);
                sent = upto;
            }
        }
        self.close(script)
    }

    /// How many bytes the client may have sent in all, having sent and got so many.
    fn may_send(&self, sent: usize, answered: usize) -> usize {
        let ahead = self.waits.iter().copied().filter(|wait| *wait >= sent);
        ahead
            .filter(|wait| *wait > sent || answered < self.may_answer(*wait))
            .min()
            .unwrap_or(self.asked.len())
    }

    /// How many bytes the broker may have answered once so many have been sent.
    fn may_answer(&self, sent: usize) -> usize {
        self.answers
            .iter()
            .take_while(|(after, _)| *after <= sent)
            .map(|(_, bytes)| bytes.len())
            .sum()
    }

    fn close(&self, script: Script) -> Script {
        if self.ends {
            script.client_eof().broker_eof()
        } else {
            script
        }
    }
}
