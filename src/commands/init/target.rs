//! The target of a project's tests: a program of its own, a task API, an agent on this machine, or
//! the built-in assistant. Says how each is written down in the configuration. Pure.

use std::collections::BTreeMap;

use selftest_config::Environment;
use serde_json::json;

use crate::commands::init::commands::{FoundCommand, RequestBy};
use crate::commands::init::place;
use crate::commands::init::task_api::{AgentApi, ApiWay};
use selftest_harness::sut::answer::read_documents;

/// Agents with a command line that takes one task and ends, and those that speak the Agent Client
/// Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(super) enum Agent {
    ClaudeCode,
    Codex,
    GeminiCli,
    OpenCode,
    Aider,
    Goose,
    QwenCode,
    ClaudeCodeAcp,
    CodexAcp,
}

impl Agent {
    /// Its name on `PATH`.
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini",
            Self::OpenCode => "opencode",
            Self::Aider => "aider",
            Self::Goose => "goose",
            Self::QwenCode => "qwen",
            Self::ClaudeCodeAcp => "claude-code-acp",
            Self::CodexAcp => "codex-acp",
        }
    }

    /// Whether its arguments make it speak the Agent Client Protocol.
    const fn is_acp(self) -> bool {
        matches!(self, Self::QwenCode | Self::ClaudeCodeAcp | Self::CodexAcp)
    }

    /// The arguments for one task, or for a session of the protocol, without a person at the keyboard.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode | Self::GeminiCli => &["-p", "{prompt}"],
            Self::Codex => &["exec", "--skip-git-repo-check", "{prompt}"],
            Self::OpenCode => &["run", "{prompt}"],
            Self::Aider => &[
                "--yes-always",
                "--no-auto-commits",
                "--no-check-update",
                "--no-pretty",
                "--no-stream",
                "--message",
                "{prompt}",
            ],
            Self::Goose => &["run", "--no-session", "--quiet", "--text", "{prompt}"],
            Self::QwenCode => &["--acp", "--auth-type", "openai"],
            Self::ClaudeCodeAcp | Self::CodexAcp => &[],
        }
    }

    /// Variables in which it looks for a key: its own settings are out of reach for it in a test.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode | Self::ClaudeCodeAcp => {
                &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"]
            }
            Self::Codex | Self::CodexAcp => &["OPENAI_API_KEY", "CODEX_API_KEY"],
            Self::QwenCode => &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"],
            Self::GeminiCli => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::OpenCode | Self::Aider => &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
            Self::Goose => {
                &["GOOSE_PROVIDER", "GOOSE_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"]
            }
        }
    }

    /// The servers of models that it asks where its settings name no others.
    const fn servers(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode | Self::ClaudeCodeAcp => &["api.anthropic.com:443"],
            Self::Codex | Self::CodexAcp | Self::QwenCode => &["api.openai.com:443"],
            Self::GeminiCli => &["generativelanguage.googleapis.com:443"],
            Self::OpenCode | Self::Aider | Self::Goose => {
                &["api.anthropic.com:443", "api.openai.com:443"]
            }
        }
    }
}

/// A program that a package installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackageProgram {
    pub(super) name: String,
    /// From the folder of the project, with `/`, never out of it.
    pub(super) path: String,
}

impl PackageProgram {
    /// How it is started in the project's folder, without a shell.
    pub(super) fn command(&self) -> FoundCommand {
        let is_script = [".js", ".mjs", ".cjs"].iter().any(|end| self.path.ends_with(end));
        let words = if is_script {
            vec!["node".to_owned(), self.path.clone()]
        } else {
            vec![format!("./{}", self.path)]
        };
        FoundCommand {
            words,
            environment: BTreeMap::new(),
            request: RequestBy::Stdin,
            output: None,
            writes: false,
            is_server: false,
            line: self.path.clone(),
            origin: "package.json".to_owned(),
        }
    }
}

/// The target of the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A command that a text of the project names.
    Command(FoundCommand),
    Program(PackageProgram),
    Api(AgentApi),
    Agent(Agent),
    /// The small assistant in this program, by this model where one is named.
    Assistant {
        model: Option<String>,
    },
}

/// The section for a program of the project.
fn program_section(command: &FoundCommand, has_skills: bool) -> String {
    let FoundCommand { words, environment, request, output, writes, .. } = command;
    let folder = match (has_skills, writes) {
        (true, _) => {
            "    # It works in a copy of the project, in which skills can be laid for it\n    \
             work_folder: copy\n"
        }
        (false, true) => {
            "    # It works in a copy of the project, in which it may write\n    \
             work_folder: copy\n"
        }
        (false, false) => "",
    };
    let input = match request {
        RequestBy::Stdin => "stdin",
        RequestBy::Argument => "argument",
    };
    let output = output.as_ref().map_or_else(String::new, |pointer| {
        format!(
            "    # Where the answer stands in the JSON that it prints\n    output: {}\n",
            json!(pointer)
        )
    });
    let environment = if environment.is_empty() {
        String::new()
    } else {
        format!("    environment: {}\n", json!(environment))
    };
    format!(
        "sut:\n  \
           # A program of this project, one process for each case, without a shell\n  \
           command:\n    \
             run: {run}\n    \
             # text: the prompt on stdin, the answer on stdout. json_lines is the richer one\n    \
             protocol: text\n    \
             # stdin, or argument: then the prompt is the last argument, or {{prompt}} in one\n    \
             prompt_input: {input}\n\
         {output}{environment}{folder}    \
             # All other variables are cleared, and nothing can be reached but these, as host:port\n    \
             pass_environment: []\n    \
             addresses: []\n",
        run = json!(words),
    )
}

/// The section for an API of the project.
fn api_section(api: &AgentApi) -> String {
    let elsewhere = api
        .elsewhere
        .as_ref()
        .map(|url| format!("    # The description names {url}; tests do not go there unasked\n"));
    let head = format!(
        "sut:\n  \
           # The API of this project, which has to run during the tests\n  \
           http:\n{elsewhere}    \
             base_url: {base}\n",
        elsewhere = elsewhere.unwrap_or_default(),
        base = json!(api.base_url),
    );
    let call = json!({ "method": "POST", "path": api.path, "body": api.body() });
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-".contains(c);
    let output = match &api.output {
        plain if plain.starts_with('/') && plain.chars().all(is_plain) => plain.clone(),
        other => json!(other).to_string(),
    };
    match &api.way {
        ApiWay::Ask { session_field } => {
            let sessions = match session_field {
                Some(_) => "",
                None if api.sends_turns() => "",
                None => {
                    "    # For cases with replies, add {session_id} or {messages} to the body\n"
                }
            };
            format!(
                "{head}    \
                   # One call for each turn; its response is the answer\n\
                 {sessions}    \
                   ask: {call}\n    \
                   # Where the answer stands in the response (JSON Pointer)\n    \
                   output: {output}\n"
            )
        }
        ApiWay::Poll { path, can_cancel, id_field, status_field } => {
            let cancel = if *can_cancel {
                format!("cancel: {}", json!({ "method": "DELETE", "path": path }))
            } else {
                "#cancel: a call that ends a task which is still running".to_owned()
            };
            format!(
                "{head}    \
                   submit: {call}\n    \
                   poll: {poll}\n    \
                   {cancel}\n    \
                   # Where the answers hold the id, the status and the output (JSON Pointers)\n    \
                   task_id: /{id_field}\n    \
                   status: /{status_field}\n    \
                   output: {output}\n    \
                   # What the server's words mean\n    \
                   status_words:\n      \
                     running: [QUEUED, RUNNING, queued, running, pending]\n      \
                     complete: [COMPLETE, complete, completed, succeeded, done]\n      \
                     awaiting_response: [AWAITING_RESPONSE, awaiting_response, input_required]\n      \
                     error: [ERROR, INCOMPLETE, CANCELLED, error, failed, cancelled]\n",
                poll = json!({ "method": "GET", "path": path }),
            )
        }
    }
}

impl Target {
    /// In a few words: what the configuration tests.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Command(command) => {
                format!("the program `{}` ({})", command.words.join(" "), command.origin)
            }
            Self::Program(program) => {
                format!("the program {} of this project ({})", program.name, program.path)
            }
            Self::Api(api) => format!("the API of this project at {}", api.base_url),
            Self::Agent(agent) if agent.is_acp() => {
                format!("the agent {} by the Agent Client Protocol", agent.program())
            }
            Self::Agent(agent) => {
                format!("the agent {}, in a copy of this project", agent.program())
            }
            Self::Assistant { model: Some(model) } => {
                format!("the built-in assistant with the model {model}, until you name your agent")
            }
            Self::Assistant { model: None } => "the example agent, until you name yours".to_owned(),
        }
    }

    /// The variables in which it looks for a key.
    pub(super) const fn keys(&self) -> &'static [&'static str] {
        match self {
            Self::Agent(agent) => agent.keys(),
            Self::Command(_) | Self::Program(_) | Self::Api(_) | Self::Assistant { .. } => &[],
        }
    }

    /// The `sut` section; a project with skills needs a folder in which they can be laid. What comes
    /// from the project is quoted as JSON, which YAML reads.
    pub(super) fn section(&self, has_skills: bool) -> String {
        match self {
            Self::Command(command) => program_section(command, has_skills),
            Self::Program(program) => program_section(&program.command(), has_skills),
            Self::Api(api) => api_section(api),
            Self::Agent(agent) if agent.is_acp() => {
                let run: Vec<&str> =
                    [agent.program()].iter().chain(agent.arguments()).copied().collect();
                let folder = if has_skills { "    work_folder: copy\n" } else { "" };
                format!(
                    "sut:\n  \
                       # An agent on this machine that speaks the Agent Client Protocol: every permission that\n  \
                       # it asks for is refused, except to load a skill of its own folder, and its calls of\n  \
                       # tools are evidence\n  \
                       acp:\n    \
                         run: {run}\n{folder}    \
                         # Its HOME is an empty folder: it needs its key from one of these variables\n    \
                         pass_environment: {keys}\n    \
                         # The server of its model, and nothing else, can be reached\n    \
                         addresses: {servers}\n",
                    run = json!(run),
                    keys = json!(agent.keys()),
                    servers = json!(agent.servers()),
                )
            }
            Self::Agent(agent) => {
                let run: Vec<&str> =
                    [agent.program()].iter().chain(agent.arguments()).copied().collect();
                format!(
                    "sut:\n  \
                       # An agent on this machine, one process for each case, without a shell\n  \
                       command:\n    \
                         run: {run}\n    \
                         protocol: text\n    \
                         prompt_input: argument\n    \
                         # It works in a copy of the project, in which it may write\n    \
                         work_folder: copy\n    \
                         # Its HOME is an empty folder: it needs its key from one of these variables\n    \
                         pass_environment: {keys}\n    \
                         # The server of its model, and nothing else, can be reached\n    \
                         addresses: {servers}\n",
                    run = json!(run),
                    keys = json!(agent.keys()),
                    servers = json!(agent.servers()),
                )
            }
            Self::Assistant { model } => {
                let chat = model.as_ref().map_or_else(String::new, |model| {
                    format!("sut:\n  chat: {{ model: {} }}\n", json!(model))
                });
                format!(
                    "# What is tested. So far it is the small assistant or the example agent in selftest; name your\n\
                     # agent instead, as a program or as a task API:\n\
                     #sut:\n  \
                       #command:\n    \
                         #run: [\"./my-agent\"]\n    \
                         #protocol: text          # or json_lines\n  \
                       #http:\n    \
                         #base_url: \"http://127.0.0.1:8000\"\n{chat}"
                )
            }
        }
    }

    /// The other way to hand a request to a program whose way no text shows.
    pub(super) fn other_input(&self) -> Option<Self> {
        // Standard input is the default where no text shows a request, so it may be a wrong guess.
        let command = self.command().filter(|command| command.request == RequestBy::Stdin)?;
        Some(Self::Command(FoundCommand { request: RequestBy::Argument, ..command }))
    }

    /// The same program in a copy of the project, in which it may write.
    pub(super) fn writing(&self) -> Option<Self> {
        let command = self.command().filter(|command| !command.writes)?;
        Some(Self::Command(FoundCommand { writes: true, ..command }))
    }

    /// The same API, of which the whole response counts.
    pub(super) fn with_whole_response(&self) -> Option<Self> {
        let Self::Api(api) = self else { return None };
        let is_asked = matches!(api.way, ApiWay::Ask { .. }) && !api.output.is_empty();
        is_asked.then(|| Self::Api(AgentApi { output: String::new(), ..api.clone() }))
    }

    /// The same target, of which only the answer in the JSON that came counts. `None` if that is no
    /// JSON, or the answer's place in it is not plain.
    pub(super) fn with_output(&self, came: &str) -> Option<Self> {
        if self.output().is_some_and(|output| !output.is_empty()) {
            return None;
        }
        let documents = read_documents(came)?;
        if let Self::Api(api) = self {
            let output = place::of_pieces(&documents)?;
            Some(Self::Api(AgentApi { output, ..api.clone() }))
        } else {
            let mut places = documents.iter().filter_map(place::of_answer);
            // Several are a stream, whose pieces are no answer.
            let output = Some(places.next().filter(|_| places.next().is_none())?);
            Some(Self::Command(FoundCommand { output, ..self.command()? }))
        }
    }

    /// The JSON Pointer to the answer in what the target prints or sends.
    pub(super) fn output(&self) -> Option<String> {
        match self {
            Self::Api(api) => Some(api.output.clone()),
            _ => self.command()?.output,
        }
    }

    fn command(&self) -> Option<FoundCommand> {
        match self {
            Self::Command(command) => Some(command.clone()),
            Self::Program(program) => Some(program.command()),
            Self::Api(_) | Self::Agent(_) | Self::Assistant { .. } => None,
        }
    }

    /// Returns true if it can be started at once, without keys that are missing.
    pub(super) fn can_be_greeted(&self, environment: &Environment) -> bool {
        match self {
            // The address of an API is one of this machine.
            Self::Command(_) | Self::Program(_) | Self::Api(_) => true,
            Self::Agent(_) => self.needs(environment).is_empty(),
            Self::Assistant { .. } => false,
        }
    }

    /// Seconds that a case may take.
    pub(super) const fn timeout_seconds(&self) -> u32 {
        match self {
            // Agents read files and call tools before they answer; the assistant only generates.
            Self::Agent(_) => 300,
            Self::Command(_) | Self::Program(_) | Self::Api(_) => 120,
            Self::Assistant { .. } => 60,
        }
    }

    /// Steps that are left before it can be tested.
    pub(super) fn needs(&self, environment: &Environment) -> Vec<String> {
        match self {
            Self::Agent(agent) => {
                let keys = agent.keys();
                let is_set = keys.iter().any(|name| environment.variables.contains_key(*name));
                let words = format!(
                    "{} sees none of your settings in a test: set {}",
                    agent.program(),
                    keys.join(" or ")
                );
                (!is_set).then_some(words).into_iter().collect()
            }
            Self::Api(api) => vec![format!(
                "start the server before the tests, also in the workflow: {}",
                api.base_url
            )],
            Self::Command(_) | Self::Program(_) | Self::Assistant { .. } => Vec::new(),
        }
    }
}
