//! Reads the address of a model server as people write it: with or without a scheme, quoted, with
//! the path of a whole endpoint, a query or credentials. Pure.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

/// Ends of whole endpoints, longest first. Clients append them to the base.
const ENDPOINTS: [&str; 6] =
    ["/chat/completions", "/completions", "/responses", "/embeddings", "/models", "/chat"];

/// The address of a server, in parts.
#[derive(Clone)]
pub struct ServerAddress {
    /// Scheme, host, port and path, without credentials, query and trailing slash.
    base: String,
    /// The query of each request, without `?`.
    query: Option<String>,
    /// User name and password.
    credentials: Option<(String, SecretString)>,
}

/// An address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerAddressError {
    /// The text is empty, or has no host.
    #[error("`{0}` names no host")]
    NoHost(String),
    /// The scheme is neither `http` nor `https`.
    #[error("`{0}` is not an http:// or https:// address")]
    Scheme(String),
    /// The text is no URL.
    #[error("`{0}` is not an address: {1}")]
    Invalid(String, String),
}

/// Marks that a copied address may stand between.
const QUOTES: [char; 10] = ['"', '\'', '`', '<', '>', '“', '”', '‘', '’', ','];

impl ServerAddress {
    /// Reads the base address of an API to whose paths clients append: white space and quotes
    /// around it and the end of a whole endpoint are removed, and a missing scheme is added.
    /// Without a scheme, `https` is assumed for a public name without a port, and else `http`.
    ///
    /// # Errors
    /// Fails if there is no host, or another scheme. Messages show no credentials.
    pub fn parse_api(text: &str) -> Result<Self, ServerAddressError> {
        let mut address = Self::parse(text)?;
        let is_azure = address.host().is_some_and(|host| host.ends_with(".azure.com"));
        loop {
            let end = ENDPOINTS.into_iter().find(|end| {
                // On Azure, `/models` is the base itself.
                let is_base = *end == "/models" && is_azure;
                !is_base && ends_with_path(&address.base, end)
            });
            let Some(end) = end else { break };
            address.base.truncate(address.base.len() - end.len());
            address.base.truncate(trimmed_length(&address.base));
        }
        Ok(address)
    }

    /// Reads the address of a server, and keeps its path as it is.
    ///
    /// # Errors
    /// Fails if there is no host, or another scheme. Messages show no credentials.
    pub fn parse(text: &str) -> Result<Self, ServerAddressError> {
        let bare = text.trim_matches(|c: char| {
            c.is_whitespace() || c.is_control() || QUOTES.contains(&c) || c == '\u{feff}'
        });
        // No address has white space; it comes from line breaks of a copied one.
        let bare: String = bare.chars().filter(|c| !c.is_whitespace()).collect();
        let shown = || selftest_text::one_line(&without_credentials(&bare), 200);
        let lower = bare.to_ascii_lowercase();
        let has_scheme =
            bare.contains("://") || lower.starts_with("http:/") || lower.starts_with("https:/");
        // `localhost:8080` parses as a URL with the scheme `localhost`, so that a missing scheme
        // must be added before parsing.
        let whole = if has_scheme {
            bare.clone()
        } else {
            format!("{}://{}", assumed_scheme(&bare), with_host(&bare))
        };
        if bare.is_empty() {
            return Err(ServerAddressError::NoHost(shown()));
        }
        let parsed = Url::parse(&whole);
        let mut url =
            parsed.map_err(|error| ServerAddressError::Invalid(shown(), error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ServerAddressError::Scheme(shown()));
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        // Quotes at the end are trimmed below. In a host they would make two addresses of one text:
        // `0'` is a name, and `0` is 0.0.0.0.
        let is_name = host.contains(char::is_alphanumeric) && !host.contains(QUOTES);
        if !host.starts_with('[') && !is_name {
            return Err(ServerAddressError::NoHost(shown()));
        }
        // To a server they mean all addresses; a client uses loopback.
        let client = match host.as_str() {
            "0.0.0.0" => Some("127.0.0.1"),
            "[::]" => Some("[::1]"),
            _ => None,
        };
        if let Some(client) = client {
            url.set_host(Some(client))
                .map_err(|error| ServerAddressError::Invalid(shown(), error.to_string()))?;
        }
        // `Url` keeps user and password escaped; the header has to carry them as they are.
        let name = decoded(url.username());
        let credentials = match url.password() {
            Some(password) => Some((name, SecretString::from(decoded(password)))),
            None => (!name.is_empty()).then(|| (name, SecretString::from(String::new()))),
        };
        let query = url.query().filter(|query| !query.is_empty()).map(str::to_owned);
        // Both fail only for addresses without a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        let base = url.as_str()[..trimmed_length(url.as_str())].to_owned();
        Ok(Self { base, query, credentials })
    }

    /// Returns the address without credentials, query and trailing slash.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the URL of a path below the base, with the query behind it.
    pub fn url(&self, path: &str) -> String {
        let query = self.query.as_deref().map(|query| {
            let sign = if path.contains('?') { '&' } else { '?' };
            format!("{sign}{query}")
        });
        format!("{}{path}{}", self.base, query.unwrap_or_default())
    }

    /// Returns the value of the `Authorization` header for the credentials, if there are any.
    pub fn authorization(&self) -> Option<HeaderValue> {
        let (name, password) = self.credentials.as_ref()?;
        let pair = BASE64_STANDARD.encode(format!("{name}:{}", password.expose_secret()));
        let mut value = HeaderValue::from_str(&format!("Basic {pair}")).ok()?;
        // Keeps it out of debug output.
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns the host, if the address has one.
    fn host(&self) -> Option<String> {
        let url: Url = self.base.parse().ok()?;
        url.host_str().map(str::to_owned)
    }
}

impl fmt::Debug for ServerAddress {
    /// Shows no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAddress")
            .field("base", &self.base)
            .field("query", &self.query)
            .finish_non_exhaustive()
    }
}

/// Returns true if the path of an address ends so. A host such as `models` is no path.
fn ends_with_path(base: &str, end: &str) -> bool {
    let authority = base.find("://").map_or(0, |at| at + "://".len());
    let path = base[authority..].find('/').map_or("", |at| &base[authority + at..]);
    let start = path.len().checked_sub(end.len());
    start.and_then(|start| path.get(start..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// Returns the length of an address without slashes and quotes at its end.
fn trimmed_length(address: &str) -> usize {
    address.trim_end_matches(|c| c == '/' || QUOTES.contains(&c)).len()
}

/// Returns the scheme of an address that names none.
fn assumed_scheme(address: &str) -> &'static str {
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let has_port = !host.starts_with('[') && host.contains(':');
    let is_ip = host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok();
    let is_local = ["", "localhost"].contains(&host)
        || [".local", ".localhost", ".internal", ".lan"].iter().any(|end| host.ends_with(end))
        || !host.contains('.');
    if is_ip || is_local || has_port && !host.ends_with(":443") { "http" } else { "https" }
}

/// Adds the host that an address such as `:8080/v1` leaves out.
fn with_host(address: &str) -> String {
    if address.starts_with(':') { format!("127.0.0.1{address}") } else { address.to_owned() }
}

/// Removes the credentials of an address, as far as they can be recognised, for messages.
fn without_credentials(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}{}", &rest[at + 1..]),
        None => address.to_owned(),
    }
}

/// Decodes `%XX`; anything that is no such escape stays.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> String {
        ServerAddress::parse_api(text).unwrap().url("/chat/completions")
    }

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let local = "http://127.0.0.1:8080/v1/chat/completions";
        for (text, url) in [
            ("http://127.0.0.1:8080/v1", local),
            ("http://127.0.0.1:8080/v1/", local),
            ("http://127.0.0.1:8080/v1//", local),
            ("http://127.0.0.1:8080/v1/chat/completions", local),
            ("http://127.0.0.1:8080/v1/chat/completions/", local),
            ("http://127.0.0.1:8080/v1/completions", local),
            ("http://127.0.0.1:8080/v1/models", local),
            ("http://127.0.0.1:8080/v1/responses", local),
            ("http://127.0.0.1:8080/v1/Chat/Completions", local),
            ("\"http://127.0.0.1:8080/v1\"", local),
            (" 'http://127.0.0.1:8080/v1' \n", local),
            ("127.0.0.1:8080/v1", local),
            (":8080/v1", local),
            ("0.0.0.0:8080/v1", local),
            ("http:/127.0.0.1:8080/v1", local),
            ("HTTP://127.0.0.1:8080/v1#top", local),
            ("http://127.0.0.1:8080\n/v1", local),
            ("localhost:8080", "http://localhost:8080/chat/completions"),
            ("gpu-box/v1", "http://gpu-box/v1/chat/completions"),
            ("[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
            ("api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("models.example.org:8000/v1", "http://models.example.org:8000/v1/chat/completions"),
            (
                "https://x.openai.azure.com/openai/deployments/x?api-version=2024-10-21",
                "https://x.openai.azure.com/openai/deployments/x/chat/completions?api-version=2024-10-21",
            ),
            (
                "https://x.openai.azure.com/openai/deployments/x/chat/completions?api-version=1",
                "https://x.openai.azure.com/openai/deployments/x/chat/completions?api-version=1",
            ),
            (
                "https://x.services.ai.azure.com/models?api-version=1",
                "https://x.services.ai.azure.com/models/chat/completions?api-version=1",
            ),
            ("http://h/v1?", "http://h/v1/chat/completions"),
            ("http://models", "http://models/chat/completions"),
            ("http://chat/v1/chat/completions", "http://chat/v1/chat/completions"),
        ] {
            assert_eq!(read(text), url, "{text:?}");
        }
        let whole = ServerAddress::parse("http://h/v1/models?a=b").unwrap();
        assert_eq!(whole.url("/x?c=d"), "http://h/v1/models/x?c=d&a=b");
    }

    #[test]
    fn credentials_are_sent_and_never_shown() {
        let text = "https://ann:s%40cret@models.example.org/v1";
        let address = ServerAddress::parse_api(text).unwrap();
        assert_eq!(address.base(), "https://models.example.org/v1");
        let value = address.authorization().unwrap();
        assert_eq!(value.to_str().unwrap(), "Basic YW5uOnNAY3JldA==");
        assert!(!format!("{address:?} {value:?}").contains("YW5u"));
        assert_eq!(ServerAddress::parse("http://h").unwrap().authorization(), None);
        let token = ServerAddress::parse("http://token@h").unwrap();
        assert_eq!(token.authorization().unwrap().to_str().unwrap(), "Basic dG9rZW46");
        let wrong = ServerAddress::parse("ftp://ann:secret@h").unwrap_err().to_string();
        assert_eq!(wrong, "`ftp://h` is not an http:// or https:// address");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", " \" \" ", "http://", "ftp://h/v1", "http://h:99999", "://h", "/'?", "0'?"]
        {
            assert!(ServerAddress::parse_api(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "(http|https|:|/|@|\\?|#|%|\\.|[a-z0-9]|\\PC){0,20}") {
            if let Ok(address) = ServerAddress::parse_api(&text) {
                let again = ServerAddress::parse_api(address.base()).unwrap();
                prop_assert_eq!(again.base(), address.base());
            }
        }
    }
}
