//! What real clients and brokers said that is nobody else's business: bytes that nobody planted, read off
//! the wire behind klamp by `kafka-protocol`.
//!
//! The trap: half of these are of the broker's or the client's own making (salts, proofs, signatures, HMACs)
//! and differ with each run, so they are only known to whoever reads what passed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use kafka_protocol::messages::{
    AlterUserScramCredentialsRequest, CreateDelegationTokenRequest, DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest, RenewDelegationTokenRequest, RequestHeader,
    SaslAuthenticateRequest,
};
use kafka_protocol::protocol::{Decodable, Request};
use klamp_tests::needle::Forms;
use klamp_tests::tap::Talk;
use klamp_tests::wire;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of random data of which so many stand nowhere else by chance.
const PIECE: usize = 8;

/// What was overheard.
#[derive(Default)]
pub(super) struct Overheard {
    /// What each secret is.
    secrets: BTreeSet<(&'static str, Vec<u8>)>,
    /// How often which API was asked for.
    pub(super) asked: BTreeMap<i16, usize>,
    /// All that passed.
    pub(super) wire: Vec<u8>,
}

impl Overheard {
    /// Of connections on which each request was answered, in order.
    #[track_caller]
    pub(super) fn of(talks: &[Talk]) -> Self {
        let mut all = Self::default();
        for talk in talks {
            let (requests, responses) = (talk.requests.bytes(), talk.responses.bytes());
            let answers = wire::frames(&responses).0;
            for (n, request) in wire::frames(&requests).0.into_iter().enumerate() {
                *all.asked.entry(wire::api_key(request)).or_default() += 1;
                all.hear_request(request);
                if let Some(answer) = answers.get(n) {
                    let (asked, answered) = (
                        wire::request_correlation_id(request),
                        wire::response_correlation_id(answer),
                    );
                    assert_eq!(asked, answered, "answers come in order");
                    all.hear_response(request, answer);
                }
            }
            all.wire.extend(requests);
            all.wire.extend(responses);
        }
        all
    }

    /// How many different secrets of each kind there are.
    pub(super) fn kinds(&self) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for (kind, _) in &self.secrets {
            *kinds.entry(*kind).or_default() += 1;
        }
        kinds
    }

    pub(super) fn forms(&self) -> Forms {
        Forms::of(self.secrets.iter().map(|(_, secret)| &**secret), PIECE)
    }

    fn note(&mut self, kind: &'static str, secret: &[u8]) {
        if !secret.is_empty() {
            self.secrets.insert((kind, secret.to_vec()));
        }
    }

    /// Bytes that are written as Base64 by those who know them.
    fn note_both(&mut self, kind: &'static str, secret: &[u8]) {
        self.note(kind, secret);
        self.note(kind, STANDARD.encode(secret).as_bytes());
    }

    fn hear_request(&mut self, payload: &[u8]) {
        if let Some(asked) = read::<SaslAuthenticateRequest>(payload) {
            self.hear_token(&asked.auth_bytes);
        }
        if let Some(asked) = read::<AlterUserScramCredentialsRequest>(payload) {
            for upsertion in asked.upsertions {
                self.note_both("salt of a credential", &upsertion.salt);
                self.note_both("salted password", &upsertion.salted_password);
            }
        }
        if let Some(asked) = read::<RenewDelegationTokenRequest>(payload) {
            self.note_both("HMAC to renew", &asked.hmac);
        }
        if let Some(asked) = read::<ExpireDelegationTokenRequest>(payload) {
            self.note_both("HMAC to expire", &asked.hmac);
        }
    }

    fn hear_response(&mut self, request: &[u8], payload: &[u8]) {
        if let Some(answer) = answer::<SaslAuthenticateRequest>(request, payload) {
            self.hear_token(&answer.auth_bytes);
        }
        if let Some(answer) = answer::<CreateDelegationTokenRequest>(request, payload) {
            self.note_both("HMAC", &answer.hmac);
        }
        if let Some(answer) = answer::<DescribeDelegationTokenRequest>(request, payload) {
            for token in answer.tokens {
                self.note_both("HMAC", &token.hmac);
            }
        }
    }

    /// `authzid NUL user NUL password` of PLAIN (RFC 4616), or attributes of SCRAM (RFC 5802).
    fn hear_token(&mut self, token: &[u8]) {
        let token = String::from_utf8_lossy(token);
        if let Some(password) = token.split('\0').nth(2) {
            return self.note("password", password.as_bytes());
        }
        for attribute in token.split(',') {
            let Some((name, value)) = attribute.split_once('=') else {
                continue;
            };
            let kind = match name {
                "r" => {
                    self.note("nonce", value.as_bytes());
                    continue;
                }
                "s" => "salt",
                "p" => "client proof",
                "v" => "server signature",
                _ => continue,
            };
            let bytes = STANDARD.decode(value).expect("it is in Base64");
            self.note_both(kind, &bytes);
        }
    }
}

/// A request of this API.
fn read<R: Request>(payload: &[u8]) -> Option<R> {
    if wire::api_key(payload) != R::KEY {
        return None;
    }
    let version = wire::api_version(payload);
    let mut bytes = Bytes::copy_from_slice(payload);
    RequestHeader::decode(&mut bytes, R::header_version(version)).expect("a request has a header");
    Some(R::decode(&mut bytes, version).expect("it can be read"))
}

/// The answer to a request of this API.
fn answer<R: Request>(request: &[u8], payload: &[u8]) -> Option<R::Response> {
    let is_of = wire::api_key(request) == R::KEY;
    is_of.then(|| wire::read_response::<R>(wire::api_version(request), payload).1)
}
