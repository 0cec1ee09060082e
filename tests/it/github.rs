//! A scripted GitHub on 127.0.0.1 that keeps comments, and refuses where a test wants that.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::model_server::wire::{Connection, HttpRequest};
use crate::workspace::Workspace;

/// The token that every request must carry and no output may hold.
pub(crate) const TOKEN: &str = "ghp_0123456789abcdefghij";

/// An answer that stands for the next requests.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) message: &'static str,
    /// How often.
    pub(crate) times: usize,
}

#[derive(Default)]
struct State {
    comments: Vec<(String, &'static str)>,
    requests: Vec<String>,
    refusal: Option<Refusal>,
    stopped: bool,
}

/// A running server; it ends when dropped.
pub(crate) struct GitHub {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl GitHub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let kept = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&kept);
                if state.lock().unwrap().stopped {
                    return;
                }
                std::thread::spawn(move || serve(stream.unwrap(), &state));
            }
        });
        Self { address, state }
    }

    /// A comment that is there already.
    pub(crate) fn with_comment(self, body: &str, kind: &'static str) -> Self {
        self.state.lock().unwrap().comments.push((body.to_owned(), kind));
        self
    }

    /// Refuses the next requests.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.state.lock().unwrap().refusal = Some(refusal);
    }

    pub(crate) fn comments(&self) -> usize {
        self.state.lock().unwrap().comments.len()
    }

    pub(crate) fn comment(&self, number: usize) -> String {
        self.state.lock().unwrap().comments[number].0.clone()
    }

    /// Method and path of every request.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    /// The project with the token and the address of this server.
    pub(crate) fn commenting(&self, workspace: &Workspace) -> Workspace {
        let api = format!("http://{}", self.address);
        workspace.clone().env("GITHUB_TOKEN", TOKEN).env("GITHUB_API_URL", api)
    }
}

impl Drop for GitHub {
    fn drop(&mut self) {
        self.state.lock().unwrap().stopped = true;
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut connection = Connection::new(stream);
    while let Some(request) = connection.read() {
        let (code, headers, body) = answer(&request, &mut state.lock().unwrap());
        let mut all = vec![("content-type", "application/json")];
        all.extend(headers);
        connection.write(code, &all, body.to_string().as_bytes());
    }
}

type Answer = (u16, Vec<(&'static str, &'static str)>, Value);

fn answer(request: &HttpRequest, state: &mut State) -> Answer {
    let header = |wanted: &str| {
        request.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    };
    assert_eq!(header("authorization"), Some(&*format!("Bearer {TOKEN}")));
    assert_eq!(header("x-github-api-version"), Some("2022-11-28"));
    assert!(header("user-agent").is_some(), "GitHub refuses requests without one");
    state.requests.push(format!("{} {}", request.method, request.path));
    if let Some(refusal) = &mut state.refusal
        && refusal.times > 0
    {
        refusal.times -= 1;
        return (refusal.code, refusal.headers.clone(), json!({ "message": refusal.message }));
    }
    let comment = |id: usize, body: &str, kind: &str| {
        json!({
            "id": id,
            "body": body,
            "html_url": format!("https://github.example/acme/agent/pull/7#issuecomment-{id}"),
            "user": { "login": "x", "type": kind },
        })
    };
    let said = || serde_json::from_slice::<Value>(&request.body).unwrap()["body"].clone();
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let of_issue = "/repos/acme/agent/issues/7/comments";
    match (request.method.as_str(), path) {
        ("GET", path) if path == of_issue => {
            let page: usize = query.rsplit_once("page=").unwrap().1.parse().unwrap();
            let all = state.comments.iter().enumerate().skip((page - 1) * 100).take(100);
            let all: Vec<Value> = all.map(|(id, (body, kind))| comment(id, body, kind)).collect();
            (200, Vec::new(), json!(all))
        }
        ("POST", path) if path == of_issue => {
            let body = said().as_str().unwrap().to_owned();
            state.comments.push((body.clone(), "Bot"));
            (201, Vec::new(), comment(state.comments.len() - 1, &body, "Bot"))
        }
        ("PATCH", path) => {
            let id: usize =
                path.strip_prefix("/repos/acme/agent/issues/comments/").unwrap().parse().unwrap();
            said().as_str().unwrap().clone_into(&mut state.comments[id].0);
            (200, Vec::new(), comment(id, "", "Bot"))
        }
        _ => (404, Vec::new(), json!({ "message": "Not Found" })),
    }
}
