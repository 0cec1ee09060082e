//! Sessions as Claude Code would have recorded them, made to order, and where tests put them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::clock;
use crate::workspace::Workspace;

/// An id as Claude Code gives it, that begins with the number.
pub(crate) fn id(number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-00000000c0de")
}

/// A session that is being written.
#[derive(Clone)]
pub(crate) struct Recording {
    id: String,
    at: Timestamp,
    records: Vec<Value>,
}

impl Recording {
    /// An empty one that began an hour ago.
    pub(crate) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), at: clock::hours_ago(1), records: Vec::new() }
    }

    /// Begins at that time. To be called first.
    pub(crate) fn at(mut self, time: &str) -> Self {
        self.at = time.parse().unwrap();
        self
    }

    pub(crate) fn asks(self, text: &str) -> Self {
        self.record("user", &json!(text))
    }

    pub(crate) fn says(self, text: &str) -> Self {
        self.record("assistant", &json!([{ "type": "text", "text": text }]))
    }

    /// Says something after a thought.
    pub(crate) fn thinks(self, thought: &str, text: &str) -> Self {
        self.record(
            "assistant",
            &json!([
                { "type": "thinking", "thinking": thought, "signature": "x" },
                { "type": "text", "text": text },
            ]),
        )
    }

    /// Shows a picture.
    pub(crate) fn shows(self, text: &str) -> Self {
        let data = "iVBORw0KGgo".repeat(4000);
        self.record(
            "user",
            &json!([
                { "type": "text", "text": text },
                { "type": "image",
                  "source": { "type": "base64", "media_type": "image/png", "data": data } },
            ]),
        )
    }

    /// A call, and what the tool gave back.
    pub(crate) fn calls(self, tool: &str, input: &Value, result: Result<&str, &str>) -> Self {
        let call = format!("toolu_{}", self.records.len());
        let (Ok(words) | Err(words)) = result;
        self.record(
            "assistant",
            &json!([{ "type": "tool_use", "id": call, "name": tool, "input": input }]),
        )
        .record(
            "user",
            &json!([{
                "type": "tool_result",
                "tool_use_id": call,
                "content": words,
                "is_error": result.is_err(),
            }]),
        )
    }

    /// The request was done at once.
    pub(crate) fn success(id: &str) -> Self {
        Self::new(id).done()
    }

    pub(crate) fn done(self) -> Self {
        self.asks("Fix the parser, its test is red")
            .calls("Bash", &json!({ "command": "make check" }), Ok("1 passed"))
            .says("Done: the parser reads empty lines now. The change is saved to src/parser.rs.")
    }

    /// One error among several calls, and a way around it.
    pub(crate) fn recovered(id: &str) -> Self {
        let missing = Err("cat: src/mian.rs: No such file or directory");
        let mut recording = Self::new(id).asks("Document the start of the program").calls(
            "Bash",
            &json!({ "command": "cat src/mian.rs" }),
            missing,
        );
        for name in ["main", "lib", "cli", "run"] {
            let input = json!({ "file_path": format!("src/{name}.rs") });
            recording = recording.calls("Read", &input, Ok("fn main() {}"));
        }
        recording.says("The start of the program is described, and the work is finished.")
    }

    /// Errors to the end.
    pub(crate) fn stuck(id: &str) -> Self {
        Self::new(id).gives_up()
    }

    fn gives_up(mut self) -> Self {
        self = self.asks("Deploy the shop to the test server");
        for _ in 0..3 {
            let refused = Err("Exit code 7\ncurl: connection refused");
            self = self.calls("Bash", &json!({ "command": "curl test.example" }), refused);
        }
        self.says("I was unable to reach the server, the deployment failed.")
    }

    /// Sixty times the same mistake, and no word at the end.
    pub(crate) fn looping(id: &str) -> Self {
        let mut recording = Self::new(id).asks("Rename the column everywhere");
        for _ in 0..60 {
            let error = Err("String to replace not found in file.");
            recording = recording.calls("Edit", &json!({ "old_string": "nmae" }), error);
        }
        recording
    }

    /// [`Recording::success`] or [`Recording::stuck`] at a time.
    pub(crate) fn on(id: &str, time: &str, succeeds: bool) -> Self {
        let begun = Self::new(id).at(time);
        if succeeds { begun.done() } else { begun.gives_up() }
    }

    fn record(mut self, kind: &str, content: &Value) -> Self {
        let number = self.records.len();
        let seconds = SignedDuration::from_secs(number.try_into().unwrap());
        let mut record = json!({
            "type": kind,
            "uuid": format!("{}-{number}", self.id),
            "parentUuid": number.checked_sub(1).map(|before| format!("{}-{before}", self.id)),
            "sessionId": self.id,
            "cwd": "/work/app",
            "version": "2.1.3",
            "entrypoint": "cli",
            "timestamp": self.at.checked_add(seconds).unwrap().to_string(),
            "message": { "role": kind, "content": content },
        });
        if kind == "assistant" {
            record["message"]["id"] = format!("msg_{number}").into();
            record["message"]["model"] = "opus".into();
            record["message"]["usage"] = json!({ "input_tokens": 20, "output_tokens": 5 });
        }
        self.records.push(record);
        self
    }

    /// The file.
    pub(crate) fn text(&self) -> String {
        let lines: Vec<String> = self.records.iter().map(Value::to_string).collect();
        lines.join("\n") + "\n"
    }

    /// The file as it is when the writer dies in the middle of the last record.
    pub(crate) fn torn(&self) -> String {
        let text = self.text();
        let last = text.trim_end().rfind('\n').unwrap();
        text[..usize::midpoint(last, text.len())].to_owned()
    }
}

impl Workspace {
    /// Writes a session into `sessions/` of the project, under its id.
    pub(crate) fn session(self, recording: &Recording) -> Self {
        let file = format!("sessions/{}.jsonl", recording.id);
        self.file(&file, recording.text())
    }

    /// The same, last written so many hours ago.
    pub(crate) fn old_session(self, recording: &Recording, hours: u64) -> Self {
        let file = format!("sessions/{}.jsonl", recording.id);
        self.session(recording).aged(&file, hours)
    }

    /// Sets the time of a file's last change.
    pub(crate) fn aged(self, file: &str, hours: u64) -> Self {
        clock::age(&self.path(file), hours);
        self
    }

    /// A configuration with this `grade` section.
    pub(crate) fn grade_config(self, section: &str) -> Self {
        self.config(format!("version: 1\ngrade: {section}\n"))
    }

    /// `selftest grade` on the sessions of the project.
    pub(crate) fn grade(self, words: &[&str]) -> Self {
        self.args([&["grade"], words, &["--source", "sessions"]].concat())
    }
}
