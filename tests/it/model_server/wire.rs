//! HTTP/1.1 by hand: reads requests, writes answers, and breaks off where a test wants that.
//! Knows nothing of models.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// One request as it came.
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// One side of a kept-alive connection.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream) }
    }

    fn stream(&mut self) -> &mut TcpStream {
        self.reader.get_mut()
    }

    /// The next request, or `None` when the client is gone.
    pub(crate) fn read(&mut self) -> Option<HttpRequest> {
        let request_line = self.line()?;
        let mut words = request_line.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).ok()?;
        Some(HttpRequest { method, path, headers, body })
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// A whole answer. Errors are ignored here and below: a client that hangs up is a client's
    /// right, and what tests look at is the client.
    pub(crate) fn write(&mut self, code: u16, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = head(code, headers, Some(body.len()));
        head.extend_from_slice(body);
        let _ = self.stream().write_all(&head);
    }

    /// Promises the whole body, sends half of it, and hangs up.
    pub(crate) fn write_half(&mut self, body: &[u8]) {
        let mut half = head(200, &[("content-type", "application/json")], Some(body.len()));
        half.extend_from_slice(&body[..body.len() / 2]);
        let _ = self.stream().write_all(&half);
        self.close();
    }

    /// Promises the whole body and sends half of it.
    pub(crate) fn begin_half(&mut self, body: &[u8]) {
        let mut half = head(200, &[("content-type", "application/json")], Some(body.len()));
        half.extend_from_slice(&body[..body.len() / 2]);
        let _ = self.stream().write_all(&half);
    }

    /// Sends a body so many bytes at a time, until `go_on` says stop or the client hangs up.
    pub(crate) fn write_slowly(
        &mut self,
        body: &[u8],
        bytes: usize,
        every: Duration,
        go_on: impl Fn() -> bool,
    ) {
        let head = head(200, &[("content-type", "application/json")], Some(body.len()));
        let _ = self.stream().write_all(&head);
        for part in body.chunks(bytes) {
            if !go_on() || self.stream().write_all(part).is_err() {
                return self.close();
            }
            std::thread::sleep(every);
        }
    }

    /// Ends the connection as a machine does that knows nothing of it.
    pub(crate) fn reset(&mut self) {
        // What was sent is to arrive before.
        std::thread::sleep(Duration::from_millis(50));
        // Not by closing it: the test keeps another handle of the same socket.
        #[cfg(target_os = "linux")]
        rustix::net::connect_unspec(&*self.stream()).unwrap();
        self.close();
    }

    /// Sends `chunk` again and again until `go_on` says stop or the client hangs up.
    pub(crate) fn write_endlessly(&mut self, chunk: &[u8], go_on: impl Fn() -> bool) {
        let _ = self.stream().write_all(&head(200, &[("content-type", "application/json")], None));
        while go_on() && self.stream().write_all(chunk).is_ok() {}
        self.close();
    }

    pub(crate) fn close(&mut self) {
        let _ = self.stream().shutdown(Shutdown::Both);
    }
}

fn head(code: u16, headers: &[(&str, &str)], length: Option<usize>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {code} {}\r\n", reason(code));
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    // Without a length the body ends where the connection does.
    head += &length.map_or("connection: close\r\n".to_owned(), |length| {
        format!("content-length: {length}\r\n")
    });
    head += "\r\n";
    head.into_bytes()
}

fn reason(code: u16) -> &'static str {
    match code {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        408 => "Request Timeout",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}
