//! The `http` adapter, against the example server and against servers that misbehave.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use selftest_checks::scenario::TaskStatus;
use selftest_harness::sut::http::HttpSut;
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::sut_settings::HttpSettings;
use selftest_harness::sut::{SutError, SutReply, SystemUnderTest};
use selftest_text::redact::Redactor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::world::{PATIENCE, task};

struct Example {
    server: Child,
    address: String,
    _project: tempfile::TempDir,
}

impl Example {
    fn start() -> Self {
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join("README.md"), "# Widgets\n\nIt weighs widgets.\n")
            .unwrap();
        std::fs::create_dir(project.path().join("docs")).unwrap();
        std::fs::write(project.path().join("docs/scales.md"), "Scales are calibrated weekly.\n")
            .unwrap();
        let mut server = Command::new("python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sut_http_server.py"))
            .args(["--port", "0", "--seconds", "0.1", "--project"])
            .arg(project.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { server, address: address.trim().to_owned(), _project: project }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn sut(address: &str) -> HttpSut {
    let settings = HttpSettings {
        base_url: address.to_owned(),
        poll_seconds: 0.02,
        ..HttpSettings::default()
    };
    HttpSut::new(
        settings,
        Some("a-token-of-some-length".to_owned().into()),
        Arc::new(Redactor::default()),
    )
    .unwrap()
}

#[tokio::test]
async fn the_example_server_executes_tasks() {
    let example = Example::start();
    let sut = sut(&example.address);
    sut.check().await.unwrap();
    assert!(sut.can_reach_project());
    let mut session = sut.open(&task()).await.unwrap();
    let reply = session.submit("What does the documentation say about scales?").await.unwrap();
    assert_eq!(reply.status, TaskStatus::Complete);
    assert_eq!(
        reply.output,
        "The documentation says:\n- docs/scales.md: Scales are calibrated weekly."
    );
    // A task that is complete takes no reply.
    let error = session.reply("and more?").await.unwrap_err().to_string();
    assert!(error.contains("/reply answered 409 Conflict"), "{error}");
    assert!(error.ends_with("(409: the task is not waiting for a reply)"), "{error}");
    let notes = session.close().await.notes;
    assert!(notes[0].starts_with("task "), "{notes:?}");

    let mut session = sut.open(&task()).await.unwrap();
    let reply = session.submit("Explain something.").await.unwrap();
    assert_eq!(reply.status, TaskStatus::AwaitingResponse);
    let reply = session.reply("How many pages are there?").await.unwrap();
    assert_eq!(reply.status, TaskStatus::Complete);
    assert_eq!(reply.output, "There are 2 pages: README.md, docs/scales.md.");
}

/// A server that gives these answers, one per connection, the last one for ever; and the
/// requests that it got.
async fn scripted(answers: Vec<String>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        let mut answers = answers.into_iter().peekable();
        let mut answer = String::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            answer = answers.next().unwrap_or(answer);
            let mut request = Vec::new();
            while !is_whole(&request) && stream.read_buf(&mut request).await.unwrap() > 0 {}
            seen.lock().unwrap().push(String::from_utf8(request).unwrap());
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, requests)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn json(body: &str) -> String {
    answer("200 OK", body)
}

async fn submit(answers: Vec<String>) -> (Result<SutReply, SutError>, String, Vec<String>) {
    let (address, requests) = scripted(answers).await;
    let mut session = sut(&address).open(&task()).await.unwrap();
    let reply = tokio::time::timeout(PATIENCE, session.submit("say \"{reply}\"")).await.unwrap();
    let requests = requests.lock().unwrap().clone();
    (reply, address, requests)
}

#[tokio::test]
async fn statuses_are_translated() {
    for (body, status, output) in [
        (r#"{"status":"COMPLETE","output":"done"}"#, TaskStatus::Complete, "done"),
        (r#"{"status":"COMPLETE","output":""}"#, TaskStatus::Complete, ""),
        (r#"{"status":"COMPLETE","output":{"a":1}}"#, TaskStatus::Complete, r#"{"a":1}"#),
        (
            r#"{"status":"AWAITING_RESPONSE","output":"which?"}"#,
            TaskStatus::AwaitingResponse,
            "which?",
        ),
        (r#"{"status":"INCOMPLETE","output":"half"}"#, TaskStatus::Error, "INCOMPLETE: half"),
        (
            r#"{"status":"CANCELLED","output":null}"#,
            TaskStatus::Error,
            "CANCELLED without a message; the reply has: status, output",
        ),
        (
            r#"{"status":"ERROR"}"#,
            TaskStatus::Error,
            "ERROR without a message; the reply has: status",
        ),
        (
            r#"{"status":"COMPLETE","output":"password=hunter22"}"#,
            TaskStatus::Complete,
            "password=[redacted]",
        ),
    ] {
        let running = json(r#"{"status":"RUNNING"}"#);
        let (reply, _, requests) =
            submit(vec![json(r#"{"task_id":"../x y"}"#), running, json(body)]).await;
        let reply = reply.unwrap();
        assert_eq!((reply.status, reply.output.as_str()), (status, output));
        assert!(requests[0].starts_with("POST /api/tasks HTTP/1.1\r\n"), "{}", requests[0]);
        assert!(requests[0].contains("authorization: Bearer a-token-of-some-length\r\n"));
        let sent: serde_json::Value =
            serde_json::from_str(requests[0].split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(sent["prompt"], "say \"{reply}\"");
        assert_eq!(sent["task_type"], "READ_INFO");
        assert!(
            requests[2].starts_with("GET /api/tasks/..%2Fx%20y HTTP/1.1\r\n"),
            "{}",
            requests[2]
        );
    }
}

#[tokio::test]
async fn a_skill_goes_where_the_body_has_a_place_for_it() {
    let answers = vec![json(r#"{"task_id":"t"}"#), json(r#"{"status":"COMPLETE","output":"x"}"#)];
    let (address, requests) = scripted([answers.clone(), answers].concat()).await;
    let mut settings = HttpSettings { base_url: address, ..HttpSettings::default() };
    let skill = Arc::new(Skill::of_text("s", "be \"brief\"\n"));
    let sut = |settings| HttpSut::new(settings, None, Arc::new(Redactor::default())).unwrap();
    let error = sut(settings.clone()).with_skill(Arc::clone(&skill)).err().unwrap();
    assert!(error.hint().unwrap().contains("sut.http.submit.body"), "{error}");
    settings.submit.body.as_mut().unwrap()["skill"] = "{skill}".into();
    let without = sut(settings);
    let with = without.with_skill(skill).unwrap();
    for sut in [&without as &dyn SystemUnderTest, &*with] {
        sut.open(&task()).await.unwrap().submit("go").await.unwrap();
    }
    let sent = |request: &String| -> serde_json::Value {
        serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let requests = requests.lock().unwrap();
    assert_eq!(sent(&requests[0])["skill"], "");
    assert_eq!(sent(&requests[2])["skill"], "be \"brief\"\n");
}

#[tokio::test]
async fn what_is_wrong_is_said_on_one_line() {
    let task = || json(r#"{"task_id":"t"}"#);
    for (answers, expected) in [
        (
            vec![answer("404 Not Found", "<p>\nno</p>")],
            "POST {a}/api/tasks answered 404 Not Found: <p> no</p>; hint: correct sut.http.base_url, or the path of the call in sut.http",
        ),
        (
            vec![answer("500 Internal Server Error", "")],
            "POST {a}/api/tasks answered 500 Internal Server Error",
        ),
        (
            vec![json("<html><body>hi")],
            "POST {a}/api/tasks answered with no JSON but HTML: <html><body>hi; hint: is this the address of the API, and not of a proxy or a login page?",
        ),
        (vec![json("ünreadable")], "POST {a}/api/tasks answered with no JSON but text: ünreadable"),
        (vec![json("")], "POST {a}/api/tasks answered with no JSON but an empty body"),
        (
            vec![json("{}")],
            "POST {a}/api/tasks answered without a usable task id: there is no /task_id",
        ),
        (
            vec![json(r#"{"task_id":".."}"#)],
            "POST {a}/api/tasks answered without a usable task id: `..`",
        ),
        (
            vec![task(), json("{}")],
            "GET {a}/api/tasks/t answered without a status at /status; the reply has: no members",
        ),
        (
            vec![task(), json(r#"{"status":"DONE"}"#)],
            "GET {a}/api/tasks/t answered with the unknown status `DONE`; known ones are in sut.http.status_words",
        ),
        (
            vec![
                "HTTP/1.1 302 Found\r\nlocation: http://example.org/\r\ncontent-length: 0\r\n\r\n"
                    .to_owned(),
            ],
            "POST {a}/api/tasks answered 302 Found to http://example.org/, which is not followed; hint: write the address that it leads to into sut.http.base_url",
        ),
        (
            vec![json(&" ".repeat(5 << 20))],
            "POST {a}/api/tasks answered with more than 4194304 bytes",
        ),
    ] {
        let (reply, address, _) = submit(answers).await;
        assert_eq!(reply.unwrap_err().to_string(), expected.replace("{a}", &address));
    }
    for broken in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"task", "rubbish\r\n\r\n"] {
        let (reply, address, _) = submit(vec![broken.to_owned()]).await;
        let error = reply.unwrap_err().to_string();
        assert!(error.starts_with(&format!("POST {address}/api/tasks: ")), "{error}");
        assert!(!error.contains('\n') && error.len() < 400, "{error}");
    }
}

#[tokio::test]
async fn the_old_question_is_not_the_new_answer() {
    let waiting = json(r#"{"status":"AWAITING_RESPONSE","output":"which?"}"#);
    let (address, _) = scripted(vec![
        json(r#"{"task_id":"t"}"#),
        waiting.clone(),
        // The reply, which need not be answered with JSON, and the old question twice.
        answer("204 No Content", ""),
        waiting.clone(),
        waiting.clone(),
        json(r#"{"status":"COMPLETE","output":"that one"}"#),
        // The same question again, but after work.
        answer("202 Accepted", "ok"),
        json(r#"{"status":"RUNNING"}"#),
        json(r#"{"status":"COMPLETE","output":"that one"}"#),
    ])
    .await;
    let mut session = sut(&address).open(&task()).await.unwrap();
    assert_eq!(session.submit("go").await.unwrap().status, TaskStatus::AwaitingResponse);
    assert_eq!(session.reply("this").await.unwrap().output, "that one");
    assert_eq!(session.reply("again").await.unwrap().output, "that one");
}

#[tokio::test]
async fn the_same_question_for_long_is_a_new_one() {
    let waiting = json(r#"{"status":"AWAITING_RESPONSE","output":"which?"}"#);
    let (address, _) =
        scripted(vec![json(r#"{"task_id":"t"}"#), waiting.clone(), json("{}"), waiting]).await;
    let mut session = sut(&address).open(&task()).await.unwrap();
    session.submit("go").await.unwrap();
    let started = std::time::Instant::now();
    let reply = tokio::time::timeout(PATIENCE, session.reply("this")).await.unwrap().unwrap();
    assert_eq!(reply.status, TaskStatus::AwaitingResponse);
    assert!(started.elapsed() >= selftest_harness::sut::http::GRACE);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_found_at_once() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = sut(&format!("http://{closed}")).check().await.unwrap_err();
    let what = error.to_string();
    assert!(what.starts_with(&format!("GET http://{closed}/: ")), "{what}");
    assert!(what.contains("refused"), "{what}");
    assert!(error.hint().unwrap().contains("sut.http.base_url"));
}

#[test]
fn an_address_must_be_one() {
    for address in ["", "localhost:5678", "ftp://x", "http://", "http://x?y=z"] {
        let settings = HttpSettings { base_url: address.to_owned(), ..HttpSettings::default() };
        assert!(HttpSut::new(settings, None, Arc::new(Redactor::default())).is_err(), "{address}");
    }
}
