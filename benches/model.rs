//! A model server of the protocol of `OpenAI` that answers every call after a fixed time.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The model's reply to a request, as text of its answer.
pub(crate) type Reply = fn(&str) -> String;

/// Starts a server and returns its address; it lives as long as this process. A thread per
/// connection: they sleep.
pub(crate) fn serve(delay: Duration, reply: Reply) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(&stream, delay, reply));
        }
    });
    address
}

/// Answers the calls of one connection until the client hangs up.
fn answer(stream: &TcpStream, delay: Duration, reply: Reply) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let due = Instant::now() + delay;
        let request = String::from_utf8_lossy(&body);
        let reply = completion(&reply(&request), request.len());
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            reply.len()
        );
        let answer = head + &reply;
        // What the server does itself is part of its time, and not of the program's.
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        (&*stream).write_all(answer.as_bytes()).ok()?;
    }
}

fn completion(text: &str, request: usize) -> String {
    format!(
        r#"{{"id":"1","object":"chat.completion","created":1,"model":"bench","choices":[{{"index":0,"message":{{"role":"assistant","content":{}}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{},"completion_tokens":30,"total_tokens":0}}}}"#,
        serde_json::Value::from(text),
        request / 4
    )
}
