//! The `sut` section of the configuration: exactly one adapter, and the identity that detects
//! changes of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::address::HostPort;
use selftest_models::DEFAULT_THINK_TOKENS;
use selftest_models::name::ModelName;
use selftest_sandbox::limits::{SandboxLimits, SandboxMode};

/// The names of the adapters in the section.
pub const ADAPTERS: [&str; 5] = ["chat", "command", "acp", "http", "example"];

/// The section for a program that communicates over its pipes.
pub(super) const COMMAND_SECTION: &str = "sut.command";

/// The section for an agent that implements the Agent Client Protocol.
pub(super) const ACP_SECTION: &str = "sut.acp";

/// The `sut` section: one of the five adapters. If none is given, `chat` is tested where a capable
/// model is at hand, else `example`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SutSettings {
    /// Behaviour if a program, or the command of a check, cannot be sandboxed. Default: `enforce`
    /// on Linux, `best_effort` elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxMode>,
    /// Set to fail a case if the sandbox denied any attempt. An attempt to read the answer key
    /// always fails it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fail_on_attempts: bool,
    /// A small assistant that answers questions about the project in the current folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<ChatSettings>,
    /// A program, one process per case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSettings>,
    /// An agent that implements the Agent Client Protocol, one process per case, such as `run:
    /// ["qwen", "--acp"]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acp: Option<ProgramSettings>,
    /// A task API over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSettings>,
    /// The example agent inside this program, with two planted faults; it needs no model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<ExampleSettings>,
    /// Files or a version by which `--changed` detects changes of the system under test. Absent:
    /// every case is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<SutIdentity>,
}

/// The `example` section, which has no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleSettings {}

/// Identity of the system under test, used to detect changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SutIdentity {
    /// Files and folders of the project that the system consists of and works with: program,
    /// prompts, settings, data.
    #[schemars(length(max = 1000), inner(length(min = 1, max = 1000)))]
    pub files: Vec<PathBuf>,
    /// A value that changes whenever the system does, such as a commit, a version or an image
    /// digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub version: Option<String>,
}

impl SutIdentity {
    /// Returns true if nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.version.is_none()
    }
}

impl SutSettings {
    /// Returns true if no system under test is named.
    pub fn is_unnamed(&self) -> bool {
        let Self { chat, command, acp, http, example, .. } = self;
        chat.is_none() && command.is_none() && acp.is_none() && http.is_none() && example.is_none()
    }

    /// Returns the settings of the built-in assistant, which is tested if nothing else is named.
    pub fn assistant(&self) -> Option<ChatSettings> {
        self.chat.clone().or_else(|| self.is_unnamed().then(ChatSettings::default))
    }

    /// Returns the command line, folder and rights of the tested program, if the system under test
    /// is one.
    pub fn program(&self) -> Option<&ProgramSettings> {
        self.command.as_ref().map(|command| &command.program).or(self.acp.as_ref())
    }

    /// Returns the section that contains the program's settings, for messages.
    pub fn program_section(&self) -> &'static str {
        if self.acp.is_some() { ACP_SECTION } else { COMMAND_SECTION }
    }

    /// Returns true if the system reports its tool calls: an agent does, and so does a program that
    /// writes JSON.
    pub fn reports_tool_calls(&self) -> bool {
        let command = self.command.as_ref();
        self.acp.is_some()
            || command.is_some_and(|command| command.speech.protocol == ProgramProtocol::JsonLines)
    }
}

/// Settings of the `chat` adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChatSettings {
    /// The model that answers; `auto` or `provider/model`.
    #[schemars(extend("examples" = ModelName::examples()))]
    pub model: String,
    /// Sampling temperature.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Maximum number of tokens of an answer. A case whose answer needs more is unscored.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// Maximum number of tokens of project files that the model receives.
    #[schemars(range(max = 1_000_000))]
    pub project_tokens: u32,
    /// Set to let a thinking model think before the answer. Default: it must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Maximum number of thinking tokens, in addition to those of the answer. Only used if `think`
    /// is true.
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

/// The protocol for communicating with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum ProgramProtocol {
    /// One JSON object per line on stdin and stdout.
    #[default]
    JsonLines,
    /// The prompt and the answer as text; the status is inferred.
    Text,
}

/// The input from which a `text` program reads its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptInput {
    /// Stdin, until it is closed.
    #[default]
    Stdin,
    /// The last argument, or `{prompt}` within an argument.
    Argument,
}

/// The folder that a program works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkFolder {
    /// The project itself, read-only.
    #[default]
    Project,
    /// A writable copy of the project for each case. Checks see its changes.
    Copy,
}

/// A program under test, whatever its protocol: its command line, its folder, and the rights that
/// its sandbox grants. This is the whole `acp` section; `command` combines it with [`ProtocolSettings`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramSettings {
    /// The program and its arguments, run in the project folder without a shell.
    #[schemars(length(min = 1))]
    pub run: Vec<String>,
    /// The folder that it works in: `project`, or a `copy` of it for each case.
    #[serde(default)]
    pub work_folder: WorkFolder,
    /// Environment variables to set.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables to pass from the harness's own environment; all others are cleared.
    #[serde(default)]
    pub pass_environment: Vec<String>,
    /// Files and folders that it may read in addition to the project and the system.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
    /// Addresses that it may connect to by TCP, as `host:port`; none by default. Names are resolved
    /// before each case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub addresses: Vec<HostPort>,
    /// TCP ports that it may connect to on any host; none by default. Cannot be combined with
    /// `addresses`.
    #[serde(default)]
    pub tcp_ports: Vec<u16>,
    /// Set to allow name lookups with `tcp_ports`. UDP is then open to any address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub name_lookups: bool,
    /// Set to let its processes listen on ports and reach each other there, on the loopback
    /// interface of a separate network that is unreachable from outside. Cannot be combined with
    /// `tcp_ports`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local_ports: bool,
    /// Resource limits of its processes.
    #[serde(default, skip_serializing_if = "SandboxLimits::is_default")]
    pub limits: SandboxLimits,
}

/// Protocol settings of a `command` program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProtocolSettings {
    /// The protocol.
    pub protocol: ProgramProtocol,
    /// The input from which a `text` program reads its prompt.
    pub prompt_input: PromptInput,
    /// JSON Pointer to the answer in what a `text` program prints as JSON, in one document or in
    /// lines, of which the last with it counts. `""` takes all that is printed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl ProtocolSettings {
    /// Names of the fields; a test keeps them in sync.
    const KEYS: [&str; 3] = ["protocol", "prompt_input", "output"];
}

/// Settings of the `command` adapter, which merge the keys of both parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct CommandSettings {
    /// The program.
    #[serde(flatten)]
    pub program: ProgramSettings,
    /// The protocol settings.
    #[serde(flatten)]
    pub speech: ProtocolSettings,
}

/// Implemented by hand, because serde does not support `flatten` together with
/// `deny_unknown_fields`.
impl<'de> Deserialize<'de> for CommandSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Whatever is not a protocol key has to be a key of the program, which rejects unknown
        // ones.
        let mut program = Map::deserialize(deserializer)?;
        let speech: Map<String, Value> =
            ProtocolSettings::KEYS.iter().filter_map(|key| program.remove_entry(*key)).collect();
        Ok(Self {
            program: serde_json::from_value(program.into()).map_err(Error::custom)?,
            speech: serde_json::from_value(speech.into()).map_err(Error::custom)?,
        })
    }
}

/// Settings of the `http` adapter. The defaults are the task API of `pm-orchestrator-runner`, plus
/// the output and the replies, which its version 1.0.26 lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Address of the server.
    pub base_url: String,
    /// The only call of an API that answers at once, in place of `submit`, `poll` and `reply`: one
    /// request for each turn, `{prompt}` being the prompt or the reply. `{session_id}` in its path
    /// or body, or a value `{messages}` in its body (the turns so far, each with `role` and
    /// `content`), continue a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<HttpCall>,
    /// The call that submits a task.
    pub submit: HttpCall,
    /// The call that polls a task. `{task_id}` is replaced.
    pub poll: HttpCall,
    /// The call that sends a reply. `{task_id}` and `{reply}` are replaced.
    pub reply: HttpCall,
    /// JSON Pointer to the id in the response to `submit`.
    pub task_id: String,
    /// JSON Pointer to the status in the response to `poll`. An API of one call need not have one:
    /// an answer that ends in a question awaits a response.
    pub status: String,
    /// The call that cancels a task that is still running at the end of its case. `{task_id}` is
    /// replaced. Absent: tasks cannot be cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<HttpCall>,
    /// JSON Pointer to the output in the response to `poll` or `ask`. `""` is the whole response,
    /// which then may be plain text.
    pub output: String,
    /// JSON Pointer to the error message in the response to `poll`.
    pub error: String,
    /// Mapping of the server's status words. An unlisted word is an error of the system under test.
    pub status_words: StatusWords,
    /// Seconds between two polls.
    #[schemars(range(min = 0.01, max = 60.0))]
    pub poll_seconds: f64,
    /// Name of an environment variable that contains a bearer token.
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
    /// JSON body. In its strings `{prompt}`, `{reply}`, `{session_id}`, `{task_group_id}`,
    /// `{task_type}`, `{task_id}` and `{skill}` are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
}

impl HttpCall {
    /// Returns true if the path or a string of the body contains this placeholder.
    pub fn mentions(&self, placeholder: &str) -> bool {
        let body = self.body.as_ref().map(serde_json::Value::to_string);
        self.path.contains(placeholder) || body.is_some_and(|body| body.contains(placeholder))
    }
}

/// The server's words for each status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatusWords {
    /// Still running: poll again.
    pub running: Vec<String>,
    /// Finished.
    pub complete: Vec<String>,
    /// Asks the user a question.
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
            ask: None,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_key_of_a_program_is_one_of_both_adapters() {
        let keys = |schema: schemars::Schema| -> Vec<String> {
            schema.as_value()["properties"].as_object().unwrap().keys().cloned().collect()
        };
        let speech = keys(schemars::schema_for!(ProtocolSettings));
        assert_eq!(speech, ProtocolSettings::KEYS);
        let mut all = keys(schemars::schema_for!(ProgramSettings));
        all.extend(speech);
        let mut command = keys(schemars::schema_for!(CommandSettings));
        all.sort_unstable();
        command.sort_unstable();
        assert_eq!(command, all);
    }

    #[test]
    fn a_program_comes_back_as_it_was_written() {
        let given = json!({
            "run": ["a"], "protocol": "text", "prompt_input": "argument", "tcp_ports": [443],
            "name_lookups": true, "limits": { "memory_mib": 64 },
        });
        let command: CommandSettings = serde_json::from_value(given).unwrap();
        assert_eq!(
            (command.speech.protocol, command.program.limits.memory_mib),
            (ProgramProtocol::Text, 64)
        );
        let written = serde_json::to_value(&command).unwrap();
        assert_eq!(serde_json::from_value::<CommandSettings>(written).unwrap(), command);
        for (wrong, words) in [
            (json!({ "run": ["a"], "colour": 1 }), "unknown field `colour`"),
            (json!({ "protocol": "text" }), "missing field `run`"),
            (json!({ "run": ["a"], "protocol": "smoke" }), "unknown variant `smoke`"),
        ] {
            let error = serde_json::from_value::<CommandSettings>(wrong).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn agents_have_the_sandbox_of_programs_and_a_protocol_of_their_own() {
        let acp = json!({ "acp": { "run": ["a"], "name_lookups": true, "limits": {} } });
        let settings: SutSettings = serde_json::from_value(acp).unwrap();
        assert!(settings.program().unwrap().name_lookups && settings.reports_tool_calls());
        let spoken = json!({ "acp": { "run": ["a"], "protocol": "text" } });
        assert!(serde_json::from_value::<SutSettings>(spoken).is_err());
    }
}
