//! The `selftest-*` namespace. Ids of runs, sessions and task groups can only be created here, so
//! that no production id can reach a system under test.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rand::RngExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Characters of the random part. Without vowels it never spells a word.
const ALPHABET: &[u8] = b"bcdfghjkmnpqrstvwxz23456789";

/// Length of an id up to its minute: `selftest-20260206-1234`.
const MINUTE_LENGTH: usize = 22;

fn fresh(at: Timestamp) -> String {
    format!("{}-{}", minute(at), random())
}

fn minute(at: Timestamp) -> String {
    format!("selftest-{}", at.to_zoned(TimeZone::UTC).strftime("%Y%m%d-%H%M"))
}

fn random() -> String {
    let mut rng = rand::rng();
    (0..6).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())])).collect()
}

fn is_valid(id: &str) -> bool {
    let bytes = id.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    id.starts_with("selftest-")
        && digits(9..17)
        && bytes.get(17) == Some(&b'-')
        && digits(18..22)
        && bytes.get(22) == Some(&b'-')
        && bytes.len() > 23
        && bytes.len() <= 64
        && bytes[23..].iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// A text is not an id of the namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not of the form selftest-YYYYMMDD-HHMM-<random>")]
pub struct NamespaceIdError(String);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(#[schemars(regex(pattern = "^selftest-[0-9]{8}-[0-9]{4}-[a-z0-9]+$"))] String);

        impl $name {
            /// Creates a new id: `selftest-YYYYMMDD-HHMM-<random>`, in UTC.
            pub fn fresh(at: Timestamp) -> Self {
                Self(fresh(at))
            }
            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NamespaceIdError;
            fn try_from(id: String) -> Result<Self, NamespaceIdError> {
                if is_valid(&id) {
                    Ok(Self(id))
                } else {
                    Err(NamespaceIdError(id))
                }
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// Id of a run, which also names its reports.
    RunId
);
id!(
    /// Id of a case: the session that the system under test works in.
    SessionId
);
id!(
    /// Id of the group of all cases of a run.
    TaskGroupId
);

impl RunId {
    /// Returns the part up to the minute, by which ids sort.
    pub fn minute(&self) -> &str {
        self.0.get(..MINUTE_LENGTH).unwrap_or(&self.0)
    }

    /// Returns true if the run seems to start after `now`: the clock was ahead then. Such a run is
    /// not the last one.
    pub fn is_of_the_future(&self, now: Timestamp) -> bool {
        self.minute() > minute(selftest_clock::latest_elsewhere(now)).as_str()
    }
}

impl SessionId {
    /// Creates a new session of a run. Its id starts with that of the run, so that its owner is
    /// recognisable.
    pub fn within(run: &RunId) -> Self {
        Self(format!("{run}{}", random()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_namespace() {
        let at: Timestamp = "2026-02-06T12:34:56Z".parse().unwrap();
        let id = RunId::fresh(at);
        assert!(id.as_str().starts_with("selftest-20260206-1234-"), "{id}");
        assert_eq!(RunId::try_from(id.as_str().to_owned()), Ok(id));
    }

    #[test]
    fn a_run_of_the_future_is_one_whose_clock_was_ahead() {
        let at = |time: &str| -> Timestamp { time.parse().unwrap() };
        let now = at("2026-02-06T23:34:56Z");
        let is_of_the_future = |time| RunId::fresh(at(time)).is_of_the_future(now);
        let past = ["1970-01-01T00:00:00Z", "2026-02-06T23:34:56Z", "2026-02-07T00:34:59Z"];
        assert_eq!(past.map(is_of_the_future), [false; 3]);
        assert_eq!(
            ["2026-02-07T00:36:00Z", "2099-01-01T00:00:00Z"].map(is_of_the_future),
            [true; 2]
        );
        assert!(!RunId::fresh(now).is_of_the_future(Timestamp::MAX));
    }

    #[test]
    fn sessions_are_those_of_a_run() {
        let run = RunId::fresh("2026-02-06T12:34:56Z".parse().unwrap());
        let (one, two) = (SessionId::within(&run), SessionId::within(&run));
        assert!(one.as_str().starts_with(run.as_str()) && one != two, "{one}");
        assert_eq!(SessionId::try_from(one.as_str().to_owned()), Ok(one));
    }

    #[test]
    fn nothing_else_is() {
        for id in [
            "",
            "selftest-",
            "prod-20260206-1234-abc",
            "selftest-20260206-1234-",
            "selftest-20260206-1234-../../etc",
            "selftest-2026020-1234-abc",
            "selftest-20260206-1234-é",
        ] {
            assert!(SessionId::try_from(id.to_owned()).is_err(), "{id}");
        }
    }
}
