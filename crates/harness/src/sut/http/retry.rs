//! Decides which failed requests are sent again, when, and who is at fault for the last one. Pure.
//!
//! A request is repeated only if that is safe: it only reads, the server refused it without acting
//! on it (429, 503), or nothing was sent.

use std::time::Duration;

/// Longest wait between two attempts, unless the server asks for more.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How long a task may be unknown to a server that has just accepted it.
const EARLY_LIMIT: Duration = Duration::from_secs(10);

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestFailure {
    /// The request is wrong, and was not sent.
    Invalid,
    /// No connection: nothing was sent.
    NoConnection,
    /// The connection broke after the request was sent.
    Broken,
    /// No complete response in time.
    TooSlow,
    /// An error status.
    Status(u16),
    /// A web page instead of JSON: a proxy answered.
    WebPage,
    /// The response is something else than expected.
    Unreadable,
}

/// A request, as far as it decides about repeating it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestRole {
    /// True if sending it twice has the effect of sending it once.
    pub(super) is_idempotent: bool,
    /// True if the server has answered something sensible about the task, or the API.
    pub(super) is_known: bool,
}

/// Who is at fault for a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestBlame {
    /// The system under test.
    System,
    /// Network, proxy or configuration, for this case.
    Infrastructure,
    /// The same, for every case.
    Outage,
}

impl RequestFailure {
    /// Returns true if the request may be sent again.
    pub(super) const fn may_repeat(self, role: RequestRole) -> bool {
        match self {
            RequestFailure::NoConnection | RequestFailure::Status(429 | 503) => true,
            RequestFailure::Broken
            | RequestFailure::TooSlow
            | RequestFailure::Status(408 | 425 | 502 | 504 | 520..=530) => role.is_idempotent,
            RequestFailure::Status(404) => role.is_idempotent && !role.is_known,
            RequestFailure::Invalid
            | RequestFailure::Status(_)
            | RequestFailure::WebPage
            | RequestFailure::Unreadable => false,
        }
    }

    /// Returns who is at fault if the request is not sent again.
    pub(super) const fn blame(self, role: RequestRole) -> RequestBlame {
        match self {
            RequestFailure::NoConnection
            | RequestFailure::Status(300..=399 | 401 | 402 | 407 | 429 | 503) => {
                RequestBlame::Outage
            }
            RequestFailure::Status(502 | 504 | 520..=530) if role.is_idempotent => {
                RequestBlame::Outage
            }
            RequestFailure::Broken
            | RequestFailure::WebPage
            | RequestFailure::Status(403 | 408 | 425 | 502 | 504 | 520..=530) => {
                RequestBlame::Infrastructure
            }
            // Another address or method, or a server that is still starting.
            RequestFailure::Status(404 | 405 | 501) if !role.is_known => {
                RequestBlame::Infrastructure
            }
            RequestFailure::Invalid
            | RequestFailure::TooSlow
            | RequestFailure::Status(_)
            | RequestFailure::Unreadable => RequestBlame::System,
        }
    }

    /// Returns one thing that the user can do.
    pub(super) const fn hint(self) -> Option<&'static str> {
        match self {
            RequestFailure::Status(401 | 403) => {
                Some("name the variable with the server's token in sut.http.token_variable")
            }
            RequestFailure::Status(404) => {
                Some("correct sut.http.base_url, or the path of the call in sut.http")
            }
            RequestFailure::Status(405 | 501) => Some("correct the method of the call in sut.http"),
            RequestFailure::Status(300..=399) => {
                Some("write the address that it leads to into sut.http.base_url")
            }
            RequestFailure::WebPage => {
                Some("is this the address of the API, and not of a proxy or a login page?")
            }
            _ => None,
        }
    }
}

/// Decides when the next attempt is, or returns `None` if it would be too late. `failed` attempts
/// took `spent` so far, and the case has `left`.
pub(super) fn pause(
    failure: RequestFailure,
    asked: Option<Duration>,
    failed: u32,
    spent: Duration,
    left: Duration,
) -> Option<Duration> {
    let usual = Duration::from_millis(250).saturating_mul(1 << failed.min(4)).min(MAX_PAUSE);
    let pause = asked.unwrap_or(usual);
    let is_early = failure != RequestFailure::Status(404) || spent + pause < EARLY_LIMIT;
    (is_early && pause < left).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use RequestBlame::*;
    use RequestFailure::*;

    #[test]
    fn the_table_of_failed_requests() {
        let role = |is_idempotent, is_known| RequestRole { is_idempotent, is_known };
        let (post, get, late) = (role(false, false), role(true, false), role(true, true));
        // The failure; whether POST, GET and a later GET are repeated; whose fault each is then.
        for (failure, repeated, blamed) in [
            (NoConnection, [true, true, true], [Outage; 3]),
            (Broken, [false, true, true], [Infrastructure; 3]),
            (Status(429), [true, true, true], [Outage; 3]),
            (Status(503), [true, true, true], [Outage; 3]),
            (Status(502), [false, true, true], [Infrastructure, Outage, Outage]),
            (Status(504), [false, true, true], [Infrastructure, Outage, Outage]),
            (Status(522), [false, true, true], [Infrastructure, Outage, Outage]),
            (Status(404), [false, true, false], [Infrastructure, Infrastructure, System]),
            (Status(405), [false; 3], [Infrastructure, Infrastructure, System]),
            (Status(501), [false; 3], [Infrastructure, Infrastructure, System]),
            (Status(401), [false; 3], [Outage; 3]),
            (Status(402), [false; 3], [Outage; 3]),
            (Status(403), [false; 3], [Infrastructure; 3]),
            (Status(302), [false; 3], [Outage; 3]),
            (Status(500), [false; 3], [System; 3]),
            (Status(400), [false; 3], [System; 3]),
            (Status(409), [false; 3], [System; 3]),
            (TooSlow, [false, true, true], [System; 3]),
            (WebPage, [false; 3], [Infrastructure; 3]),
            (Unreadable, [false; 3], [System; 3]),
            (Invalid, [false; 3], [System; 3]),
        ] {
            for (at, role) in [post, get, late].into_iter().enumerate() {
                assert_eq!(failure.may_repeat(role), repeated[at], "{failure:?} {role:?}");
                assert_eq!(failure.blame(role), blamed[at], "{failure:?} {role:?}");
            }
        }
    }

    #[test]
    fn waits_fit_into_the_case() {
        let second = Duration::from_secs(1);
        let left = 12 * second;
        let at = |failed| pause(Status(503), None, failed, Duration::ZERO, left).unwrap();
        assert_eq!(at(0), Duration::from_millis(250));
        assert_eq!((at(3), at(9)), (2 * second, 2 * second));
        let asked = |asked| pause(Status(429), Some(asked), 0, Duration::ZERO, left);
        assert_eq!(asked(5 * second), Some(5 * second));
        assert_eq!(asked(86_400 * second), None);
        assert_eq!(pause(Status(503), None, 0, 11 * second, Duration::ZERO), None);
        assert!(pause(Status(404), None, 3, 7 * second, 60 * second).is_some());
        assert_eq!(pause(Status(404), None, 3, 9 * second, 60 * second), None);
    }
}
