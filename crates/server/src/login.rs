//! Login page, on which the user enters the token once and receives a cookie.
//!
//! Guessing is slowed down: responses to wrong tokens of a client are increasingly delayed and
//! logged, without the token. The table of clients is bounded.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use axum::{Form, Router};
use serde::Deserialize;
use tokio::time::sleep;

use super::access::{AccessGuard, LOGIN, too_many_tokens};

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

/// Maximum number of tracked clients; when full, the least recently active one is removed.
const MAX_CLIENTS: usize = 1024;
/// Maximum number of pending wrong tokens per client; further tokens are rejected unchecked.
const MAX_WAITING: u32 = 4;
/// Delay of the response to the first wrong token, doubled for each further one.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay of a response.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Time without attempts after which a client's failures are forgotten.
const FORGET_AFTER: Duration = Duration::from_mins(15);

/// Result of checking a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenCheck {
    /// The token is correct.
    Correct,
    /// The token is wrong.
    Wrong,
    /// The token was not checked: the client has too many pending wrong tokens.
    TooMany,
}

#[derive(Debug, Clone, Copy)]
struct ClientAttempts {
    failures: u32,
    pending: u32,
    last: Instant,
}

/// Clients that have sent wrong tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct LoginAttempts(Arc<Mutex<HashMap<IpAddr, ClientAttempts>>>);

impl LoginAttempts {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, ClientAttempts>> {
        // The table only holds counters, so it is valid even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a token of a client. The result for a wrong token is delayed.
    pub(super) async fn check_token(
        &self,
        client: IpAddr,
        is_right: impl FnOnce() -> bool,
    ) -> TokenCheck {
        let client = client_network(client);
        let failures = {
            let mut clients = self.lock();
            clients.retain(|_, known| known.pending > 0 || known.last.elapsed() < FORGET_AFTER);
            // Rejected unchecked: otherwise parallel requests would bypass the delay.
            if clients.get(&client).is_some_and(|known| known.pending >= MAX_WAITING) {
                return TokenCheck::TooMany;
            }
            // A right token clears the failures of its address: a person who mistyped it is not
            // slowed down afterwards.
            if is_right() {
                clients.remove(&client);
                return TokenCheck::Correct;
            }
            make_room(&mut clients);
            let fresh = ClientAttempts { failures: 0, pending: 0, last: Instant::now() };
            let known = clients.entry(client).or_insert(fresh);
            (known.failures, known.pending) = (known.failures.saturating_add(1), known.pending + 1);
            known.last = Instant::now();
            known.failures
        };
        let _waiting = PendingResponse { attempts: self.clone(), client };
        // Logged only at powers of two, so that guessing cannot flood the log.
        if failures.is_power_of_two() {
            tracing::warn!("a wrong token from {client}, number {failures} in a row");
        }
        sleep(response_delay(failures)).await;
        TokenCheck::Wrong
    }
}

/// A delayed response, counted until it is sent or the client disconnects.
struct PendingResponse {
    attempts: LoginAttempts,
    client: IpAddr,
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if let Some(known) = self.attempts.lock().get_mut(&self.client) {
            known.pending = known.pending.saturating_sub(1);
        }
    }
}

/// Evicts a client if the table is full.
fn make_room(clients: &mut HashMap<IpAddr, ClientAttempts>) {
    if clients.len() >= MAX_CLIENTS
        && let Some(oldest) =
            clients.iter().min_by_key(|(_, known)| known.last).map(|(client, _)| *client)
    {
        clients.remove(&oldest);
    }
}

/// Returns the key of a client: its address, or for IPv6 the /64 network usually assigned to one
/// site.
fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            // The loopback address is a client of its own.
            if address.is_loopback() { client } else { Ipv6Addr::from(network).into() }
        }
        address @ IpAddr::V4(_) => address,
    }
}

fn response_delay(failures: u32) -> Duration {
    // Bounded before the power: 2 to the 32nd no longer fits.
    let doubled = failures.saturating_sub(1).min(16);
    (FIRST_DELAY * 2_u32.pow(doubled)).min(MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    #[test]
    fn each_wrong_token_is_answered_later_up_to_a_limit() {
        let delays =
            [1, 2, 3, 6, 7, 100, u32::MAX].map(|failures| response_delay(failures).as_millis());
        assert_eq!(delays, [100, 200, 400, 3200, 5000, 5000, 5000]);
    }

    #[test]
    fn one_site_is_one_client() {
        let of = |text: &str| client_network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(of("::1"), "::1");
    }

    #[tokio::test]
    async fn a_right_token_begins_anew_and_too_many_at_once_are_not_looked_at() {
        let attempts = LoginAttempts::default();
        assert_eq!(attempts.check_token(CLIENT, || false).await, TokenCheck::Wrong);
        assert_eq!(attempts.check_token(CLIENT, || true).await, TokenCheck::Correct);
        assert!(attempts.lock().is_empty());
        let wrong = || {
            let attempts = attempts.clone();
            tokio::spawn(async move { attempts.check_token(CLIENT, || false).await })
        };
        let held = [(); MAX_WAITING as usize].map(|()| wrong());
        while attempts.lock().get(&CLIENT).is_none_or(|known| known.pending < MAX_WAITING) {
            tokio::task::yield_now().await;
        }
        let looked_at = std::cell::Cell::new(false);
        let judged = attempts.check_token(CLIENT, || !looked_at.replace(true)).await;
        assert_eq!((judged, looked_at.get()), (TokenCheck::TooMany, false));
        for task in held {
            task.abort();
            let _ = task.await;
        }
        assert_eq!(attempts.lock()[&CLIENT].pending, 0, "whoever hangs up waits no more");
    }

    #[tokio::test]
    async fn the_table_is_bounded() {
        let mut clients = HashMap::new();
        for number in 0..=u32::try_from(MAX_CLIENTS).unwrap() {
            make_room(&mut clients);
            let client = ClientAttempts { failures: 1, pending: 0, last: Instant::now() };
            clients.insert(IpAddr::V4(number.into()), client);
        }
        assert_eq!(clients.len(), MAX_CLIENTS);
        assert!(!clients.contains_key(&IpAddr::V4(0.into())));
    }
}
