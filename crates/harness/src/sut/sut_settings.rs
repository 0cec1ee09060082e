//! The `sut` section of the configuration: exactly one adapter, and by what its changes are known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_models::DEFAULT_THINK_TOKENS;

/// The names of the adapters in the section.
pub const ADAPTERS: [&str; 4] = ["chat", "command", "acp", "http"];

/// The `sut` section: one of the four adapters, `chat` when none is given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SutSettings {
    /// What happens where a program, or the command of a check, cannot be kept in its sandbox.
    /// Absent: `enforce` on Linux, `best_effort` elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// Whether a case fails in which something was attempted that the sandbox refused. An attempt
    /// to read the answer key always fails it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fail_on_attempts: bool,
    /// A small assistant that answers about the project in the current folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatSettings>,
    /// A program, one process per case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSettings>,
    /// An agent of the Agent Client Protocol, one process per case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acp: Option<AcpSettings>,
    /// A task API over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSettings>,
    /// By what a change of the system under test is known, for `--changed`. Absent: by nothing, so
    /// that every case is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<SutIdentity>,
}

/// By what it is known that the system under test is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SutIdentity {
    /// Files and folders of the project that it is made of and works with: program, prompts, settings,
    /// data.
    #[schemars(length(max = 1000), inner(length(min = 1, max = 1000)))]
    pub files: Vec<PathBuf>,
    /// A word that changes whenever it does, such as a commit, a version or the digest of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub version: Option<String>,
}

impl SutIdentity {
    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.version.is_none()
    }
}

impl SutSettings {
    /// The program that is tested, where it is one: its command line, folder and rights.
    pub fn program(&self) -> Option<CommandSettings> {
        let acp = || self.acp.as_ref().map(AcpSettings::program);
        self.command.clone().or_else(acp)
    }
}

/// Settings of the `acp` adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcpSettings {
    /// The agent and its arguments, such as `["qwen", "--acp"]`; run in the project folder, without a
    /// shell.
    #[schemars(length(min = 1))]
    pub run: Vec<String>,
    /// The folder that it works in: `project`, or a `copy` of it for each case.
    #[serde(default)]
    pub work_folder: WorkFolder,
    /// Variables to set for it.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables of the harness's own environment to hand on; all others are cleared.
    #[serde(default)]
    pub pass_environment: Vec<String>,
    /// Files and folders that it may read besides the project and the system.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
    /// TCP ports that it may connect to; none by default.
    #[serde(default)]
    pub tcp_ports: Vec<u16>,
}

impl AcpSettings {
    /// The same as settings of a program.
    pub fn program(&self) -> CommandSettings {
        CommandSettings {
            run: self.run.clone(),
            work_folder: self.work_folder,
            environment: self.environment.clone(),
            pass_environment: self.pass_environment.clone(),
            readable: self.readable.clone(),
            tcp_ports: self.tcp_ports.clone(),
            ..CommandSettings::default()
        }
    }
}

/// What happens where a program cannot be kept in its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Sandbox {
    /// Nothing is run.
    Enforce,
    /// It is run with as much of the sandbox as there is, and the reports say what is missing.
    BestEffort,
    /// There is no sandbox: the program may do what its user may do.
    Off,
}

impl Default for Sandbox {
    fn default() -> Self {
        if cfg!(target_os = "linux") { Self::Enforce } else { Self::BestEffort }
    }
}

/// Limits of each process of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Most MiB of memory that a process may ask for.
    #[schemars(range(min = 16, max = 16_777_216))]
    pub memory_mib: u32,
    /// Most processes and threads at a time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub processes: u32,
    /// Most MiB of a file that it writes.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub file_mib: u32,
    /// Most seconds of processor time of a process.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub cpu_seconds: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_mib: 8192, processes: 1024, file_mib: 1024, cpu_seconds: 3600 }
    }
}

impl Limits {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Settings of the `chat` adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChatSettings {
    /// The model that answers; `auto` or `provider/model`.
    pub model: String,
    /// Sampling temperature.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Most tokens of an answer; a case whose answer needs more is unscored.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// Most tokens of project files that are shown to the model.
    #[schemars(range(max = 1_000_000))]
    pub project_tokens: u32,
    /// Whether a thinking model may think before the answer. Absent: it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Most tokens of thinking, beside those of the answer; only where `think` is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            model: "auto".to_owned(),
            temperature: 0.0,
            max_tokens: 2000,
            project_tokens: 1500,
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}

/// How a program is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum Protocol {
    /// One JSON object per line on stdin and stdout.
    #[default]
    JsonLines,
    /// The prompt as text, the answer as text, the status inferred.
    Text,
}

/// Where a `text` program reads its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptInput {
    /// From stdin, until its end.
    #[default]
    Stdin,
    /// As the last argument, or in place of `{prompt}` in an argument.
    Argument,
}

/// The folder that a program works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkFolder {
    /// The project itself, which it can only read.
    #[default]
    Project,
    /// A copy of the project for each case, in which it may write. Checks see what it changed.
    Copy,
}

/// Settings of the `command` adapter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandSettings {
    /// The program and its arguments; run in the project folder, without a shell.
    #[schemars(length(min = 1))]
    pub run: Vec<String>,
    /// The folder that it works in: `project`, or a `copy` of it for each case.
    #[serde(default)]
    pub work_folder: WorkFolder,
    /// How it is spoken to.
    #[serde(default)]
    pub protocol: Protocol,
    /// Where a `text` program reads its prompt.
    #[serde(default)]
    pub prompt_input: PromptInput,
    /// Variables to set for it.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables of the harness's own environment to hand on; all others are cleared.
    #[serde(default)]
    pub pass_environment: Vec<String>,
    /// Files and folders that it may read besides the project and the system.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
    /// TCP ports that it may connect to; none by default.
    #[serde(default)]
    pub tcp_ports: Vec<u16>,
    /// Whether it may look up names, where it has `tcp_ports`. UDP is then open to any address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub name_lookups: bool,
    /// Limits of each of its processes.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
}

/// Settings of the `http` adapter. The defaults are the task API of `pm-orchestrator-runner`, with
/// the output and the replies that its version 1.0.26 does not have yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Address of the server.
    pub base_url: String,
    /// Where a task is submitted.
    pub submit: HttpCall,
    /// Where it is polled. `{task_id}` stands for the id.
    pub poll: HttpCall,
    /// Where a reply is sent. `{task_id}` and `{reply}` are replaced.
    pub reply: HttpCall,
    /// JSON Pointer of the id in the answer to `submit`.
    pub task_id: String,
    /// JSON Pointer of the status in the answer to `poll`.
    pub status: String,
    /// Ends a task that is still running when its case is over. `{task_id}` is replaced. Absent:
    /// the server cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<HttpCall>,
    /// JSON Pointer of the output in the answer to `poll`.
    pub output: String,
    /// JSON Pointer of the server's words about an error in the answer to `poll`.
    pub error: String,
    /// The meaning of the server's status words. A word that is not listed is an error of the system
    /// under test.
    pub status_words: StatusWords,
    /// Seconds between two polls.
    #[schemars(range(min = 0.01, max = 60.0))]
    pub poll_seconds: f64,
    /// Name of an environment variable that holds a bearer token.
    pub token_variable: Option<String>,
}

/// One call of an HTTP task API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpCall {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    #[schemars(regex(pattern = "^(GET|POST|PUT|PATCH|DELETE)$"))]
    pub method: String,
    /// Path under the base address.
    #[schemars(regex(pattern = "^/"))]
    pub path: String,
    /// JSON body; in its strings `{prompt}`, `{reply}`, `{session_id}`, `{task_group_id}`,
    /// `{task_type}`, `{task_id}` and `{skill}` are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
}

/// The server's words for each status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatusWords {
    /// Still working: poll again.
    pub running: Vec<String>,
    /// Done.
    pub complete: Vec<String>,
    /// Asks back.
    pub awaiting_response: Vec<String>,
    /// Failed.
    pub error: Vec<String>,
}

impl Default for StatusWords {
    fn default() -> Self {
        let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
        Self {
            running: words(&["QUEUED", "RUNNING"]),
            complete: words(&["COMPLETE"]),
            awaiting_response: words(&["AWAITING_RESPONSE"]),
            error: words(&["INCOMPLETE", "ERROR", "CANCELLED"]),
        }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:5678".to_owned(),
            submit: HttpCall {
                method: "POST".to_owned(),
                path: "/api/tasks".to_owned(),
                body: Some(serde_json::json!({
                    "task_group_id": "{task_group_id}",
                    "prompt": "{prompt}",
                    "task_type": "{task_type}",
                })),
            },
            poll: HttpCall {
                method: "GET".to_owned(),
                path: "/api/tasks/{task_id}".to_owned(),
                body: None,
            },
            reply: HttpCall {
                method: "POST".to_owned(),
                path: "/api/tasks/{task_id}/reply".to_owned(),
                body: Some(serde_json::json!({ "reply": "{reply}" })),
            },
            task_id: "/task_id".to_owned(),
            status: "/status".to_owned(),
            cancel: Some(HttpCall {
                method: "PATCH".to_owned(),
                path: "/api/tasks/{task_id}/status".to_owned(),
                body: Some(serde_json::json!({ "status": "CANCELLED" })),
            }),
            output: "/output".to_owned(),
            error: "/error_message".to_owned(),
            status_words: StatusWords::default(),
            poll_seconds: 0.5,
            token_variable: None,
        }
    }
}
