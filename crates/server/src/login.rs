//! Login page, on which the user enters the token once and receives a cookie.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use axum::{Form, Router};
use serde::Deserialize;

use super::access::{AccessGuard, LOGIN, TokenCheck, too_many_tokens};

/// Lifetime of the cookie in days.
const COOKIE_DAYS: u32 = 30;

#[derive(Default, Deserialize)]
#[serde(default)]
struct LoginForm {
    token: String,
}

/// Returns the routes: `GET` shows the form, `POST` submits the token.
pub(super) fn router<S: Clone + Send + Sync + 'static>(guard: Arc<AccessGuard>) -> Router<S> {
    let shown = async |State(guard): State<Arc<AccessGuard>>| {
        if guard.needs_token() { form_page(StatusCode::OK, "") } else { signed_in_page(&guard) }
    };
    let taken = async |State(guard): State<Arc<AccessGuard>>,
                       ConnectInfo(client): ConnectInfo<SocketAddr>,
                       Form(login): Form<LoginForm>| {
        match guard.check_token(client.ip(), login.token.trim()).await {
            TokenCheck::Correct => signed_in_page(&guard),
            TokenCheck::Wrong => rejected_page("That is not the token."),
            TokenCheck::TooMany => too_many_tokens().into_response(),
        }
    };
    Router::new().route(LOGIN, get(shown).post(taken)).with_state(guard)
}

fn rejected_page(why: &str) -> Response {
    form_page(StatusCode::UNAUTHORIZED, &format!("<p role=\"alert\">{why}</p>"))
}

fn signed_in_page(guard: &AccessGuard) -> Response {
    // Not a redirect: with `SameSite=Strict`, a browser coming from another site would not send the
    // cookie with it.
    let text = "<meta http-equiv=\"refresh\" content=\"0; url=/\">\
                <p>You are signed in. <a href=\"/\">Go on</a></p>";
    let mut response = page(StatusCode::OK, text);
    let cookie = guard.cookie_value().and_then(|value| {
        let name = guard.cookie_name();
        let age = COOKIE_DAYS * 24 * 60 * 60;
        format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict").parse().ok()
    });
    response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    response
}

fn form_page(status: StatusCode, message: &str) -> Response {
    let form = format!(
        "<h1>selftest</h1>{message}<form method=\"post\"><label>Token \
         <input name=\"token\" type=\"password\" autocomplete=\"current-password\" required \
         autofocus></label> <button>Sign in</button></form>"
    );
    page(status, &form)
}

fn page(status: StatusCode, body: &str) -> Response {
    let head = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>selftest</title>\
                <meta name=\"viewport\" content=\"width=device-width\">\
                <meta name=\"color-scheme\" content=\"light dark\">";
    (status, Html(format!("{head}{body}\n"))).into_response()
}
