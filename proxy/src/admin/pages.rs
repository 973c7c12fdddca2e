//! From a request to a page: who may see it, which one it is, and in which form.

use super::{AdminState, Stage, Surface, captures, clients, connections, metrics, versions};
use crate::shown;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request;
use hyper::{Method, Request, Response, StatusCode};
use klamp_metrics::Metrics;
use serde::Serialize;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tracing::error;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// A page that a listener may serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Index,
    Metrics,
    Live,
    Ready,
    Versions,
    Connections,
    Clients,
    Captures,
}

/// Every page but the index: where it is, what it tells, and whether it is for operators alone.
const PAGES: [(Page, &str, &str, bool); 7] = [
    (Page::Metrics, "/metrics", "metrics for Prometheus", false),
    (Page::Live, "/livez", "200 while the process serves", false),
    (
        Page::Ready,
        "/readyz",
        "200 while clients are welcome: listeners bound, not draining",
        false,
    ),
    (
        Page::Versions,
        "/versions",
        "version tables in use, and why clients see less",
        true,
    ),
    (Page::Connections, "/connections", "open connections", true),
    (
        Page::Clients,
        "/clients",
        "which API versions each client used",
        true,
    ),
    (
        Page::Captures,
        "/captures",
        "what connections said last, kept upon trouble: /captures/ID.pcapng, /captures/on",
        true,
    ),
];

impl Page {
    fn find(path: &str, surface: Surface) -> Option<Self> {
        if path == "/" {
            return Some(Self::Index);
        }
        listed(surface)
            .find(|(_, at, _)| *at == path)
            .map(|(page, _, _)| page)
    }
}

fn listed(surface: Surface) -> impl Iterator<Item = (Page, &'static str, &'static str)> {
    let is_served =
        move |&(.., for_operators): &(_, _, _, bool)| surface == Surface::Debug || !for_operators;
    PAGES
        .into_iter()
        .filter(is_served)
        .map(|(page, at, what, _)| (page, at, what))
}

/// A page as it goes out.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    content_type: &'static str,
    more: Option<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Answer {
    pub(super) fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self {
            status,
            ..Self::of(TEXT, body.into().into_bytes())
        }
    }

    /// What was asked for, in the form that its type says.
    pub(super) fn of(content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            more: None,
            body: body.into(),
        }
    }

    /// With this header, in place of one that was added before.
    pub(super) fn with(self, name: HeaderName, value: HeaderValue) -> Self {
        Self {
            more: Some((name, value)),
            ..self
        }
    }
}

/// The form of a page that can be had as text and as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

impl Form {
    /// JSON where the query or the Accept header names it.
    pub(super) fn asked(head: &request::Parts) -> Self {
        let query = head.uri.query().unwrap_or_default();
        let accept = head
            .headers
            .get(header::ACCEPT)
            .and_then(|accept| accept.to_str().ok());
        match query.split('&').any(|part| part == "format=json")
            || accept.is_some_and(|accept| accept.contains(JSON))
        {
            true => Self::Json,
            false => Self::Text,
        }
    }

    pub(super) fn of<T: Serialize>(self, report: &T, text: impl FnOnce(&T) -> String) -> Answer {
        match self {
            Self::Text => Answer::text(StatusCode::OK, text(report)),
            Self::Json => match serde_json::to_string_pretty(report) {
                Ok(body) => Answer::of(JSON, (shown::json(body) + "\n").into_bytes()),
                Err(error) => Answer::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            },
        }
    }
}

/// Answers one request; its body is not read, but for a short list.
pub(super) async fn answer(
    request: Request<Incoming>,
    surface: Surface,
    state: Arc<AdminState>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let place = captures::Place::find(head.uri.path()).filter(|_| surface == Surface::Debug);
    if place.is_none() && head.method != Method::GET && head.method != Method::HEAD {
        let refused = Answer::text(StatusCode::METHOD_NOT_ALLOWED, "GET only\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        return respond(refused.with(header::ALLOW, allowed));
    }
    if surface == Surface::Debug && !state.admits(&head.headers) {
        let body = "this needs the header Authorization: Bearer TOKEN\n";
        let refused = Answer::text(StatusCode::UNAUTHORIZED, body);
        let scheme = HeaderValue::from_static("Bearer");
        return respond(refused.with(header::WWW_AUTHENTICATE, scheme));
    }
    if let Some(place) = place {
        return respond(captures::answer(place, &head, body, &state).await);
    }
    let Some(page) = Page::find(head.uri.path(), surface) else {
        return respond(Answer::text(StatusCode::NOT_FOUND, index(surface)));
    };
    let form = Form::asked(&head);
    let made = tokio::task::spawn_blocking(move || make(page, form, surface, &state)).await;
    respond(made.unwrap_or_else(|_| {
        Answer::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the page could not be made\n",
        )
    }))
}

impl AdminState {
    /// Whether a request carries the token, if one is asked for. Takes as long for a token that is
    /// wrong at its first byte as for one that is wrong at its last.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let given = headers
            .get(header::AUTHORIZATION)
            .map(HeaderValue::as_bytes);
        let given = given.and_then(|given| given.split_at_checked("Bearer ".len()));
        given.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case(b"Bearer ") && given.ct_eq(token.as_bytes()).into()
        })
    }
}

fn make(page: Page, form: Form, surface: Surface, state: &AdminState) -> Answer {
    let views = &state.watch.views;
    match page {
        // (that of captures is not only read, and made elsewhere)
        Page::Index | Page::Captures => Answer::text(StatusCode::OK, index(surface)),
        Page::Metrics => match metrics::render(state) {
            Ok(body) => Answer::of(Metrics::CONTENT_TYPE, body.into_bytes()),
            Err(error) => {
                error!(%error, "metrics cannot be told: this is a fault of klamp's own");
                Answer::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
            }
        },
        Page::Live => Answer::text(StatusCode::OK, "live\n"),
        Page::Ready => match state.stage() {
            Stage::Ready => Answer::text(StatusCode::OK, "ready\n"),
            Stage::Starting => Answer::text(StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
            Stage::Draining => Answer::text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        },
        Page::Versions => form.of(&versions::report(views), versions::text),
        Page::Connections => form.of(&connections::report(views), connections::text),
        Page::Clients => form.of(&clients::report(views), clients::text),
    }
}

fn index(surface: Surface) -> String {
    let mut index = String::from("klamp\n\n");
    for (_, at, what) in listed(surface) {
        index += &format!("{at:<14}{what}\n");
    }
    if surface == Surface::Debug {
        index += "\nThe last four also as JSON: ?format=json, or Accept: application/json.\n";
    }
    index
}

fn respond(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = answer.status;
    for (name, value) in [
        (header::CONTENT_TYPE, answer.content_type),
        (header::CACHE_CONTROL, "no-store"),
        // Names that clients chose stand on some pages; no browser shall take them for HTML.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response.headers_mut().extend(answer.more);
    response
}
