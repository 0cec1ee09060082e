//! A scripted task API on 127.0.0.1 for `sut.http`: submit, poll and reply, each answered by a
//! script.

use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::model_server::wire::Connection;

/// One answer of the server.
#[derive(Debug, Clone)]
pub(crate) enum TaskAnswer {
    /// This status, headers and body.
    Http(u16, Vec<(&'static str, String)>, String),
    /// The connection is closed without an answer.
    Close,
}

impl TaskAnswer {
    pub(crate) fn json(body: &str) -> Self {
        TaskAnswer::Http(200, Vec::new(), body.to_owned())
    }

    pub(crate) fn status(code: u16) -> Self {
        TaskAnswer::Http(code, Vec::new(), format!("{{\"error\":\"scripted {code}\"}}"))
    }

    pub(crate) fn retry_after(code: u16, wait: &str) -> Self {
        TaskAnswer::Http(code, vec![("retry-after", wait.to_owned())], String::new())
    }
}

type Answers = Mutex<Vec<TaskAnswer>>;

/// A running server; it ends when dropped.
pub(crate) struct TaskServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    /// Answers to `POST /api/tasks` and to polls; the last one of each stays.
    submit: Answers,
    poll: Answers,
    requests: Mutex<Vec<String>>,
    bodies: Mutex<Vec<String>>,
    connections: Mutex<Vec<TcpStream>>,
    stopped: AtomicBool,
}

impl TaskServer {
    pub(crate) fn start(submit: Vec<TaskAnswer>, poll: Vec<TaskAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            submit: Mutex::new(submit),
            poll: Mutex::new(poll),
            requests: Mutex::default(),
            bodies: Mutex::default(),
            connections: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let listener = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                accepting.connections.lock().unwrap().push(stream.try_clone().unwrap());
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || shared.serve(Connection::new(stream)));
            }
        });
        Self { address, shared, listener: Some(listener) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Bodies of all submitted requests in order.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.shared.bodies.lock().unwrap().clone()
    }

    /// Method and path of every request of a case in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }
}

impl Shared {
    fn serve(&self, mut connection: Connection) {
        while let Some(request) = connection.read() {
            let route = format!("{} {}", request.method, request.path);
            let answers = match request.method.as_str() {
                "POST" => &self.submit,
                "GET" if request.path != "/" => &self.poll,
                // The check before the first case, and the cancelling of a task.
                _ => {
                    connection.write(200, &[], b"{}");
                    continue;
                }
            };
            self.requests.lock().unwrap().push(route);
            if request.method == "POST" {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                self.bodies.lock().unwrap().push(body);
            }
            let answer = {
                let mut answers = answers.lock().unwrap();
                if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
            };
            match answer {
                TaskAnswer::Http(code, headers, body) => {
                    let headers: Vec<(&str, &str)> =
                        headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                    connection.write(code, &headers, body.as_bytes());
                }
                TaskAnswer::Close => return connection.close(),
            }
        }
    }
}

impl Drop for TaskServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        for connection in self.shared.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}
