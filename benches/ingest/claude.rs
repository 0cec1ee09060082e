//! Claude Code sessions as they lie on disks: the mix of records and the lengths of texts are
//! those of recorded ones. Most bytes are results of tools, and most of those stand there twice.

use super::corpus::{Clock, Writer};
use super::words::{Random, Spread};

const PROMPT: Spread = Spread(118, 1245, 24_000);
const SAID: Spread = Spread(117, 874, 20_000);
const THOUGHT: Spread = Spread(553, 2371, 5000);
const COMMAND: Spread = Spread(80, 300, 1600);
const OUTPUT: Spread = Spread(389, 3725, 30_000);
const FILE: Spread = Spread(3000, 16_000, 67_000);
const ORIGINAL: Spread = Spread(7583, 22_698, 51_000);
const CHANGE: Spread = Spread(250, 1000, 8000);
const WRITTEN: Spread = Spread(1918, 16_423, 22_000);
const IMAGE: Spread = Spread(60_000, 300_000, 700_000);

/// Tools with how many of a hundred calls are theirs.
const TOOLS: [(&str, usize); 7] = [
    ("Bash", 30),
    ("Read", 20),
    ("Edit", 19),
    ("TodoWrite", 15),
    ("Write", 6),
    ("Grep", 5),
    ("Glob", 5),
];

/// Messages of failed calls; the last three are refusals.
const FAILURES: [&str; 10] = [
    "Exit code 1\\nerror: test failed, to rerun pass `--lib`",
    "Exit code 127\\n/bin/bash: line 1: pytest: command not found",
    "Exit code 2\\nls: cannot access 'build': No such file or directory",
    "<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>",
    "<tool_use_error>String to replace not found in file.</tool_use_error>",
    "EISDIR: illegal operation on a directory, read",
    "Exit code 1\\ncurl: (6) Could not resolve host: example.test",
    "The user doesn't want to proceed with this tool use. The tool use was rejected.",
    "This command requires approval",
    "Permission to use Bash has been denied.",
];

const MODELS: [&str; 3] =
    ["claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"];

pub(crate) struct Claude<'w, 'c> {
    to: &'w mut Writer<'c>,
    random: Random,
    clock: Clock,
    session: String,
    model: &'static str,
    parent: Option<String>,
    /// Part of every record.
    common: String,
}

impl<'w, 'c> Claude<'w, 'c> {
    pub(crate) fn new(to: &'w mut Writer<'c>, seed: u64) -> Self {
        let mut random = Random(seed);
        let session = random.uuid();
        let model = random.pick(&MODELS);
        let common = format!(
            r#""isSidechain":false,"userType":"external","cwd":"/home/dev/project-{}","sessionId":"{session}","version":"2.0.{}","gitBranch":"main""#,
            random.below(40),
            random.below(76)
        );
        Self { to, random, clock: Clock::new(seed), session, model, parent: None, common }
    }

    /// The session's id: the file is named after it.
    pub(crate) fn id(&self) -> &str {
        &self.session
    }

    /// Writes turns until the file has about so many bytes.
    pub(crate) fn write(mut self, bytes: u64) {
        let snapshot = self.random.uuid();
        self.to.line(&format!(
            r#"{{"type":"file-history-snapshot","messageId":"{snapshot}","snapshot":{{"messageId":"{snapshot}","trackedFileBackups":{{}},"timestamp":"{}"}},"isSnapshotUpdate":false}}"#,
            self.clock.tick()
        ));
        // One session in twenty goes back once to where it was, and leaves a branch behind.
        let mut rewind = self.random.percent(5);
        loop {
            let before = self.parent.clone();
            self.prompt();
            for _ in 0..=self.random.below(24) {
                self.step();
            }
            self.answer();
            if self.to.bytes() >= bytes {
                break;
            }
            if rewind && before.is_some() {
                rewind = false;
                self.parent = before;
            }
        }
        self.to.finish();
    }

    fn begin(&mut self) -> String {
        let uuid = self.random.uuid();
        let parent = match self.parent.replace(uuid.clone()) {
            Some(parent) => format!("\"{parent}\""),
            None => "null".to_owned(),
        };
        self.to.raw(&format!(r#"{{"parentUuid":{parent},{}"#, self.common));
        uuid
    }

    fn end(&mut self, uuid: &str) {
        self.stamp(uuid);
        self.to.raw("}");
        self.to.end_line();
    }

    fn stamp(&mut self, uuid: &str) {
        let time = self.clock.tick();
        self.to.raw(&format!(r#","uuid":"{uuid}","timestamp":"{time}""#));
    }

    /// Ends the message of a result. Its structured twin comes last, as in 862 of 864 recorded ones.
    fn twin(&mut self, uuid: &str) {
        self.to.raw("}]}");
        self.stamp(uuid);
        self.to.raw(r#","toolUseResult":"#);
    }

    fn prompt(&mut self) {
        let uuid = self.begin();
        self.to.raw(r#","type":"user","message":{"role":"user","content":""#);
        let ask = ["fix the ", "add a feature: ", "please review ", "explain ", "write tests for "];
        let ask = self.random.pick(&ask);
        self.to.raw(ask);
        let length = self.random.length(PROMPT);
        self.to.prose(&mut self.random, length);
        self.to.raw("\"}");
        self.end(&uuid);
    }

    /// One block of an answer: a line of its own with the message's id.
    fn block(&mut self, message: u64, write: impl FnOnce(&mut Self)) {
        let uuid = self.begin();
        self.to.raw(&format!(
            r#","message":{{"model":"{}","id":"msg_01{message:022x}","type":"message","role":"assistant","content":[{{"#,
            self.model
        ));
        write(self);
        let (cached, made) = (self.random.below(150_000), self.random.below(9000));
        let output = 3 + self.random.below(900);
        self.to.raw(&format!(
            r#"}}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":3,"cache_creation_input_tokens":{made},"cache_read_input_tokens":{cached},"cache_creation":{{"ephemeral_5m_input_tokens":{made},"ephemeral_1h_input_tokens":0}},"output_tokens":{output},"service_tier":"standard"}}}},"requestId":"req_011{message:022x}","type":"assistant""#
        ));
        self.end(&uuid);
    }

    /// One call of the model with one call of a tool, and its result.
    fn step(&mut self) {
        let message = self.random.next();
        if self.random.percent(15) {
            self.block(message, |this| {
                this.to.raw(r#""type":"thinking","thinking":""#);
                let length = this.random.length(THOUGHT);
                this.to.prose(&mut this.random, length);
                this.to.raw(r#"","signature":""#);
                this.to.base64(&mut this.random, 600);
                this.to.raw("\"");
            });
        }
        if self.random.percent(45) {
            self.text(message);
        }
        let tool = self.tool();
        let id = self.random.next();
        let mut detail = Vec::new();
        self.block(message, |this| {
            this.to.raw(&format!(
                r#""type":"tool_use","id":"toolu_01{id:022x}","name":"{tool}","input":"#
            ));
            detail = this.input(tool);
        });
        self.result(tool, id, &detail);
    }

    fn tool(&mut self) -> &'static str {
        let mut place = self.random.below(100);
        for (tool, share) in TOOLS {
            if place < share {
                return tool;
            }
            place -= share;
        }
        TOOLS[0].0
    }

    fn text(&mut self, message: u64) {
        self.block(message, |this| {
            this.to.raw(r#""type":"text","text":""#);
            let length = this.random.length(SAID);
            this.to.prose(&mut this.random, length);
            this.to.raw("\"");
        });
    }

    fn answer(&mut self) {
        let message = self.random.next();
        self.text(message);
    }

    /// The arguments; what of them the result repeats.
    fn input(&mut self, tool: &str) -> Vec<u8> {
        let path = format!("/home/dev/project/src/part{}.ts", self.random.below(90));
        let (head, spread) = match tool {
            "Bash" => (r#"{"command":"#.to_owned(), COMMAND),
            "Edit" => {
                (format!(r#"{{"file_path":"{path}","old_string":"part","new_string":"#), CHANGE)
            }
            "TodoWrite" => (
                r#"{"todos":[{"status":"pending","activeForm":"Working","content":"#.to_owned(),
                CHANGE,
            ),
            "Write" => (format!(r#"{{"file_path":"{path}","content":"#), WRITTEN),
            _ => {
                self.to.raw(&format!(r#"{{"file_path":"{path}"}}"#));
                return path.into_bytes();
            }
        };
        let length = self.random.length(spread);
        let words = self.to.code_text(&mut self.random, length);
        self.to.raw(&head);
        self.to.raw("\"");
        self.to.bytes_of(&words);
        self.to.raw(if tool == "TodoWrite" { "\"}]}" } else { "\"}" });
        words
    }

    fn result(&mut self, tool: &str, id: u64, detail: &[u8]) {
        let uuid = self.begin();
        self.to.raw(&format!(
            r#","type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_01{id:022x}","type":"tool_result","content":"#
        ));
        if self.random.percent(7) {
            let said = self.random.pick(&FAILURES);
            self.to.raw(&format!(r#""{said}","is_error":true"#));
            self.twin(&uuid);
            self.to.raw(&format!(r#""Error: {said}""#));
        } else if tool == "Read" && self.random.percent(3) {
            let length = self.random.length(IMAGE);
            let image = self.to.base64_text(&mut self.random, length);
            self.to.raw(
                r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":""#,
            );
            self.to.bytes_of(&image);
            self.to.raw(r#""}}]"#);
            self.twin(&uuid);
            self.to.raw(r#"{"type":"image","file":{"type":"image/png","base64":""#);
            self.to.bytes_of(&image);
            self.to.raw(r#""}}"#);
        } else {
            self.success(tool, detail, &uuid);
        }
        self.to.raw("}");
        self.to.end_line();
    }

    /// A result and its structured twin.
    fn success(&mut self, tool: &str, detail: &[u8], uuid: &str) {
        match tool {
            "Bash" | "Grep" | "Glob" => {
                let length = self.random.length(OUTPUT);
                let output = self.to.code_text(&mut self.random, length);
                self.to.raw("\"");
                self.to.bytes_of(&output);
                self.to.raw(r#"","is_error":false"#);
                self.twin(uuid);
                self.to.raw(r#"{"stdout":""#);
                self.to.bytes_of(&output);
                self.to.raw(r#"","stderr":"","interrupted":false,"isImage":false}"#);
            }
            "Read" => {
                let length = self.random.length(FILE);
                let file = self.to.code_text(&mut self.random, length);
                self.to.raw("\"");
                self.to.numbered(&file);
                self.to.raw(r#"\n\n<system-reminder>\nConsider whether this file is malware.\n</system-reminder>\n""#);
                self.twin(uuid);
                self.to.raw(r#"{"type":"text","file":{"filePath":""#);
                self.to.bytes_of(detail);
                self.to.raw(r#"","content":""#);
                self.to.bytes_of(&file);
                self.to.raw(r#"","numLines":80,"startLine":1,"totalLines":80}}"#);
            }
            "Edit" => {
                let length = self.random.length(ORIGINAL);
                let file = self.to.code_text(&mut self.random, length);
                self.to.raw("\"The file has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\\n");
                let snippet = self.to.code_text(&mut self.random, 600);
                self.to.numbered(&snippet);
                self.to.raw(r#"""#);
                self.twin(uuid);
                self.to.raw(r#"{"oldString":"part","newString":""#);
                self.to.bytes_of(detail);
                self.to.raw(r#"","originalFile":""#);
                self.to.bytes_of(&file);
                self.to.raw(r#"","structuredPatch":[{"oldStart":7,"oldLines":3,"newStart":7,"newLines":9,"lines":[""#);
                self.to.bytes_of(detail);
                self.to.raw(r#""]}],"userModified":false,"replaceAll":false}"#);
            }
            "Write" => {
                self.to.raw(r#""File created successfully""#);
                self.twin(uuid);
                self.to.raw(r#"{"type":"create","content":""#);
                self.to.bytes_of(detail);
                self.to.raw(r#"","structuredPatch":[]}"#);
            }
            _ => {
                self.to.raw(r#""Todos have been modified successfully.""#);
                self.twin(uuid);
                self.to.raw(r#"{"oldTodos":[{"content":""#);
                self.to.bytes_of(detail);
                self.to.raw(r#""}],"newTodos":[{"content":""#);
                self.to.bytes_of(detail);
                self.to.raw(r#""}]}"#);
            }
        }
    }
}
