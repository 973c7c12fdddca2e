//! `/captures`: lists, shows, hands out and deletes captures, takes one by hand, and tells or replaces
//! what triggers.
//!
//! The trap: the listener is on loopback without a token, and the operator's browser is on that host
//! too. A page from anywhere can make it send requests here, and, under a name that it resolves to
//! loopback, read the answers. So what changes something must not come from a page, and nothing here is
//! told under a name that is not plainly this host's.

mod report;

use self::report::{Detail, Report};
use super::AdminState;
use super::pages::{Answer, Form};
use crate::capture::{Found, Triggers, file_name};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request;
use hyper::{Method, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tracing::{error, info};

/// Bytes of a list of triggers.
const LIST_BYTES: usize = 4 << 10;
/// How long a capture by hand is waited for.
const BY_HAND: Duration = Duration::from_secs(2);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// What stands behind a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    All,
    On,
    One(u64),
    File(u64),
}

impl Place {
    /// `None`: it is none of these.
    pub(super) fn find(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/captures")?;
        match rest.strip_prefix('/') {
            None if rest.is_empty() => Some(Self::All),
            None => None,
            Some("on") => Some(Self::On),
            Some(id) => match id.strip_suffix(".pcapng") {
                Some(id) => id.parse().ok().map(Self::File),
                None => id.parse().ok().map(Self::One),
            },
        }
    }

    fn allows(self) -> &'static str {
        match self {
            Self::All => "GET, HEAD, POST, DELETE",
            Self::On => "GET, HEAD, PUT",
            Self::One(_) => "GET, HEAD, DELETE",
            Self::File(_) => "GET, HEAD",
        }
    }
}

/// Answers a request for `place`, whose token has been checked.
pub(super) async fn answer(
    place: Place,
    head: &request::Parts,
    body: Incoming,
    state: &Arc<AdminState>,
) -> Answer {
    let reads = head.method == Method::GET || head.method == Method::HEAD;
    if state.token.is_none() && !is_for_this_host(&head.headers) {
        let why =
            "under this name klamp tells nothing of captures: ask 127.0.0.1, [::1] or localhost\n";
        return Answer::text(StatusCode::FORBIDDEN, why);
    }
    if !reads && is_from_a_page(&head.headers) {
        return Answer::text(StatusCode::FORBIDDEN, "not from a page in a browser\n");
    }
    let form = Form::asked(head);
    let captures = &state.watch.captures;
    let takes = matches!(
        (place, head.method.as_str()),
        (Place::All, "POST") | (Place::On, "PUT")
    );
    if takes && captures.is_off {
        return Answer::text(StatusCode::CONFLICT, report::OFF);
    }
    match (place, head.method.as_str()) {
        (Place::All, _) if reads => {
            let state = state.clone();
            page(move || form.of(&Report::of(&state.watch.captures), report::text)).await
        }
        (Place::All, "DELETE") => {
            let deleted = captures.clear();
            Answer::text(StatusCode::OK, format!("{deleted} captures deleted\n"))
        }
        (Place::All, "POST") => by_hand(head, form, state).await,
        (Place::On, _) if reads => Answer::text(StatusCode::OK, format!("{}\n", **captures.on())),
        (Place::On, "PUT") => replace(body, state).await,
        (Place::One(id), "DELETE") => match captures.remove(id) {
            true => Answer::text(StatusCode::OK, "deleted\n"),
            false => missing(),
        },
        (Place::One(id), _) if reads => match captures.find(id) {
            Some(found) => detail(found, form, report::detail_text).await,
            None => missing(),
        },
        (Place::File(id), _) if reads => match captures.find(id) {
            Some(found) => file(found, state).await,
            None => missing(),
        },
        _ => {
            let allows = HeaderValue::from_static(place.allows());
            let answer = Answer::text(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{}\n", place.allows()),
            );
            answer.with(header::ALLOW, allows)
        }
    }
}

/// Whether the request is for an address, or the one name that nobody else can resolve.
fn is_for_this_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else {
        return true;
    };
    host.to_str().is_ok_and(|host| {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
    })
}

/// Whether a browser says that a page made it send this. klamp has no pages that would.
fn is_from_a_page(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN)
        || (headers.get("sec-fetch-site")).is_some_and(|site| site != "none")
}

fn missing() -> Answer {
    Answer::text(
        StatusCode::NOT_FOUND,
        "there is no such capture (any more)\n",
    )
}

/// A capture and its frames, which are read for it.
async fn detail(
    found: Found,
    form: Form,
    text: impl FnOnce(&Detail) -> String + Send + 'static,
) -> Answer {
    page(move || form.of(&Detail::of(&found), text)).await
}

/// A page that captures are read for.
async fn page(made: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    one_at_a_time(made).await.unwrap_or_else(|_| {
        let why = "the page could not be made\n";
        Answer::text(StatusCode::INTERNAL_SERVER_ERROR, why)
    })
}

/// Reads a capture for an answer, on a thread that may take its time. One at a time: what is left of the
/// machine is for the traffic.
async fn one_at_a_time<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    static TURN: Semaphore = Semaphore::const_new(1);
    // (which nobody closes; whoever does not wait for the answer leaves it with the thread)
    let turn = TURN.acquire().await;
    let read = move || {
        let _turn = turn;
        read()
    };
    tokio::task::spawn_blocking(read).await
}

/// Has the connection of the query captured now.
async fn by_hand(head: &request::Parts, form: Form, state: &Arc<AdminState>) -> Answer {
    let query = head.uri.query().unwrap_or_default();
    let mut connections = query
        .split('&')
        .filter_map(|part| part.strip_prefix("connection="));
    let Some(connection) = connections.next().and_then(|id| id.parse().ok()) else {
        let how = "which connection? POST /captures?connection=ID, with an id of /connections\n";
        return Answer::text(StatusCode::BAD_REQUEST, how);
    };
    let Some(view) = state.watch.views.find(connection) else {
        let why = "there is no such connection (any more)\n";
        return Answer::text(StatusCode::NOT_FOUND, why);
    };
    let captures = &state.watch.captures;
    let id = captures.next_id();
    if !view.want_capture(id) {
        return Answer::text(StatusCode::CONFLICT, "it is about to be captured already\n");
    }
    (state.wake)();
    let started = tokio::time::Instant::now();
    loop {
        if let Some(found) = captures.find(id) {
            let mut answer = detail(found, form, move |_| format!("capture {id}\n")).await;
            answer.status = StatusCode::CREATED;
            return match HeaderValue::from_str(&format!("/captures/{id}")) {
                Ok(location) => answer.with(header::LOCATION, location),
                Err(_) => answer,
            };
        }
        if started.elapsed() > BY_HAND {
            view.want_no_capture(id);
            let why = "no capture was made: the connection has no broker yet or has ended, or \
                       there is no memory for it (--capture-memory)\n";
            return Answer::text(StatusCode::SERVICE_UNAVAILABLE, why);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Replaces what triggers by the list in the body.
async fn replace(body: Incoming, state: &Arc<AdminState>) -> Answer {
    let Ok(body) = Limited::new(body, LIST_BYTES).collect().await else {
        return Answer::text(
            StatusCode::BAD_REQUEST,
            "the list is too long, or was cut\n",
        );
    };
    let body = body.to_bytes();
    match String::from_utf8_lossy(&body).trim().parse::<Triggers>() {
        Ok(on) => {
            info!(capture_on = %on, "what triggers a capture was replaced at /captures/on");
            let answer = Answer::text(StatusCode::OK, format!("{on}\n"));
            state.watch.captures.set_on(on);
            answer
        }
        Err(error) => Answer::text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

/// A capture as a file.
async fn file(found: Found, state: &Arc<AdminState>) -> Answer {
    let name = format!("attachment; filename=\"{}\"", file_name(&found.capture));
    let state = state.clone();
    let encoded = one_at_a_time(move || state.watch.captures.file(&found.capture)).await;
    match (encoded, HeaderValue::try_from(name)) {
        (Ok(Ok(file)), Ok(name)) => {
            let answer = Answer::of("application/x-pcapng", file);
            answer.with(header::CONTENT_DISPOSITION, name)
        }
        (encoded, _) => {
            if let Ok(Err(error)) = encoded {
                error!(%error, "a capture cannot be written as pcapng: this is a fault of klamp's own");
            }
            let why = "the capture cannot be written as pcapng\n";
            Answer::text(StatusCode::INTERNAL_SERVER_ERROR, why)
        }
    }
}
