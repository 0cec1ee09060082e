//! An HTTP client that sends exactly the given bytes, also malformed ones.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Headers that every answer carries.
const HARDENED: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-cache"),
];

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The first line of the request, for messages.
    asked: String,
}

/// Sends these lines, an empty one and a body, and reads to the end.
#[track_caller]
pub(crate) fn send(address: &str, lines: &[&str], body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let head = lines.join("\r\n") + "\r\nConnection: close\r\n\r\n";
    // A server that refuses may close before it has read all.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer to {}", lines[0]));
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut head = head.split("\r\n");
    let status = head.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    let mut answer = Answer {
        status,
        headers: head.map(header).collect(),
        body: bytes.split_off(end + 4),
        asked: lines[0].to_owned(),
    };
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.body = unchunked(&answer.body);
    }
    answer
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.extend(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Has that status, and what all answers have.
    #[track_caller]
    pub(crate) fn status(self, expected: u16) -> Self {
        assert_eq!(self.status, expected, "{}\n{}", self.asked, self.text());
        for (name, value) in HARDENED {
            assert_eq!(self.header(name), Some(value), "{name} of {}", self.asked);
        }
        let cors = self.headers.iter().find(|(name, _)| name.starts_with("access-control"));
        assert_eq!(cors, None, "{}", self.asked);
        self
    }

    /// The JSON of a successful answer.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let answer = self.status(200);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{}", answer.asked);
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// The detail of a problem with that status.
    #[track_caller]
    pub(crate) fn problem(self, expected: u16) -> String {
        let answer = self.status(expected);
        let media = answer.header("content-type");
        assert_eq!(media, Some("application/problem+json"), "{}", answer.asked);
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(problem["type"], "about:blank");
        assert_eq!(problem["status"], expected);
        assert!(!problem["title"].as_str().unwrap().is_empty());
        assert_eq!(problem.as_object().unwrap().len(), 4, "{problem}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}
