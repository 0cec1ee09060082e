//! The table of supported formats, one entry each, and what an entry declares: how to recognise and
//! read a format, where agents store it, and the newest version whose files were compared with what
//! the reader found. An entry is declared in the file that reads the format.

pub(crate) use crate::naming::IdSource;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::feed::{SessionFeed, SessionSink};
use crate::lineage::LineageTracker;
use crate::naming::SessionNaming;
use crate::outline::JsonOutline;
use crate::source::SessionSource;
use crate::{
    SessionReadError, aider, antigravity, atif, chat, chat_gpt, claude_code, claude_print, codex,
    codex_exec, copilot_cli, crush, cursor, cursor_print, cursor_store, factory_stream, gemini_cli,
    gemini_print, goose, grok, hermes, inspect, kimi, kiro, mini_swe_agent, open_code, open_hands,
    open_hands_sdk, pi, qwen_code, spec_story, swe_agent, traces, vs_code, zed,
};

/// Defines the formats. An entry has a description, an identifier, the format's name, and its
/// [`FormatEntry`].
macro_rules! session_formats {
    ($(
        $(#[doc = $doc:literal])+
        $(#[cfg($($cfg:tt)+)])?
        $id:ident($name:literal) => $entry:path,
    )+) => {
        /// A file format of recorded sessions, in the order of detection: the specific ones come
        /// first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(Serialize, Deserialize, Display, EnumString, IntoStaticStr, VariantArray)]
        pub enum SessionFormat {
            $(
                $(#[doc = $doc])+
                $(#[cfg($($cfg)+)])?
                #[serde(rename = $name)]
                #[strum(serialize = $name)]
                $id,
            )+
        }

        impl SessionFormat {
            /// Returns a description in a sentence or two.
            pub fn description(self) -> &'static str {
                let description = match self {
                    $(
                        $(#[cfg($($cfg)+)])?
                        Self::$id => concat!($($doc),+),
                    )+
                };
                description.trim_start()
            }

            pub(crate) fn entry(self) -> &'static FormatEntry {
                match self {
                    $(
                        $(#[cfg($($cfg)+)])?
                        Self::$id => &$entry,
                    )+
                }
            }
        }
    };
}

session_formats! {
    /// Output of `codex exec --json`.
    CodexExec("codex-exec") => codex_exec::FORMAT,
    /// GitHub Copilot CLI JSON lines.
    CopilotCli("copilot-cli") => copilot_cli::FORMAT,
    /// VS Code with Copilot: a chat as JSON, or as JSON lines of changes.
    VsCode("vscode-copilot") => vs_code::FORMAT,
    /// `SpecStory`: Markdown of several agents.
    SpecStory("specstory") => spec_story::FORMAT,
    /// Kimi CLI and Kimi Code: JSON lines.
    Kimi("kimi") => kimi::FORMAT,
    /// Kiro: JSON lines.
    Kiro("kiro") => kiro::FORMAT,
    /// Antigravity: JSON lines of steps.
    Antigravity("antigravity") => antigravity::FORMAT,
    /// Grok: JSON lines beside a summary.
    Grok("grok") => grok::FORMAT,
    /// Output of `cursor-agent -p` in JSON lines.
    CursorPrint("cursor-print") => cursor_print::FORMAT,
    /// Output of `gemini -p` in JSON.
    GeminiPrint("gemini-print") => gemini_print::FORMAT,
    /// Output of `claude -p` in JSON.
    ClaudePrint("claude-print") => claude_print::FORMAT,
    /// Output of `droid exec` in JSON lines.
    FactoryStream("factory-stream") => factory_stream::FORMAT,
    /// The export of `ChatGPT`.
    ChatGpt("chat-gpt") => chat_gpt::FORMAT,
    /// The export of Claude's chats.
    ClaudeAi("claude-ai") => chat::formats::CLAUDE_AI,
    /// Inspect logs: JSON, or an `.eval` archive.
    Inspect("inspect") => inspect::FORMAT,
    /// OpenTelemetry spans with the `GenAI` or `OpenInference` conventions.
    OpenTelemetry("open-telemetry") => traces::OPEN_TELEMETRY,
    /// `LangSmith` runs.
    LangSmith("langsmith") => traces::LANGSMITH,
    /// Langfuse observations and traces.
    Langfuse("langfuse") => traces::LANGFUSE,
    /// Factory's droid: JSON lines.
    Factory("factory") => chat::formats::FACTORY,
    /// Cursor's agent: JSON Lines transcripts.
    CursorAgent("cursor-agent") => chat::formats::CURSOR_AGENT,
    /// Cursor's agent: the `store.db` of a session.
    CursorStore("cursor-store") => cursor_store::FORMAT,
    /// Cursor's editor: `state.vscdb`.
    CursorState("cursor-state") => cursor::FORMAT,
    /// `OpenCode`: its SQLite database, or an exported session.
    OpenCode("open-code") => open_code::FORMAT,
    /// goose: its SQLite database.
    Goose("goose") => goose::FORMAT,
    /// Crush: its SQLite database.
    Crush("crush") => crush::FORMAT,
    /// Zed: its SQLite database of threads.
    Zed("zed") => zed::FORMAT,
    /// The chat history that aider stores in a project.
    Aider("aider") => aider::FORMAT,
    /// Hermes: JSON lines of the older gateway.
    HermesGateway("hermes-gateway") => hermes::GATEWAY,
    /// Agent Trajectory Interchange Format (Harbor).
    Atif("atif") => atif::FORMAT,
    /// `OpenAI` Codex CLI rollout.
    Codex("codex") => codex::FORMAT,
    /// Gemini CLI chat, JSON or JSON lines.
    GeminiCli("gemini-cli") => gemini_cli::FORMAT,
    /// Hermes: one JSON object per session, rewritten on each turn.
    HermesSnapshot("hermes-snapshot") => hermes::SNAPSHOT,
    /// `OpenHands` SDK events.
    OpenHandsSdk("open-hands-sdk") => open_hands_sdk::FORMAT,
    /// pi JSON lines.
    Pi("pi") => pi::FORMAT,
    /// Qwen Code JSON lines.
    QwenCode("qwen-code") => qwen_code::FORMAT,
    /// Amp thread.
    Amp("amp") => chat::formats::AMP,
    /// Claude Code JSON lines.
    ClaudeCode("claude-code") => claude_code::FORMAT,
    /// SWE-agent `.traj`.
    SweAgent("swe-agent") => swe_agent::FORMAT,
    /// `OpenHands` before its SDK: a list of events.
    OpenHands("open-hands") => open_hands::FORMAT,
    /// mini-swe-agent trajectory.
    MiniSweAgent("mini-swe-agent") => mini_swe_agent::FORMAT,
    /// The example of docs/extending.md, in tests only.
    #[cfg(test)]
    Example("example") => super::example::FORMAT,
    /// Cline, Roo and Kilo: messages in Anthropic's format. Some versions write tool calls as XML
    /// into the text.
    Cline("cline") => chat::formats::CLINE,
    /// Vercel AI SDK messages with parts.
    VercelAi("vercel-ai") => chat::formats::VERCEL_AI,
    /// Requests and responses of `OpenAI`'s Responses API.
    Responses("responses") => chat::formats::RESPONSES,
    /// Plain chat messages, bare or wrapped.
    Chat("chat") => chat::formats::CHAT,
    /// Hermes: `state.db`, one SQLite database for all sessions.
    HermesState("hermes-state") => hermes::state::FORMAT,
}

selftest_text::named!(SessionFormat);

/// Reads every session of a source. Only a source that cannot be read at all is an error; damage is
/// recorded in the notes of the feed.
pub(crate) type ReadSessions =
    fn(&SessionSource, &mut SessionFeed<'_>) -> Result<(), SessionReadError>;

/// What the crate needs to know of a format. Most fields have defaults in [`FormatEntry::new`].
pub(crate) struct FormatEntry {
    /// Reads the sessions.
    pub(crate) read: ReadSessions,
    /// Returns true if a JSON value, such as a line or a document, is of this format.
    pub(crate) json: fn(&JsonOutline) -> bool,
    /// Like `json`, for a shape that other formats share. Decides only if no `json` does.
    pub(crate) weak_json: fn(&JsonOutline) -> bool,
    /// True if a list of values that match `json` is of this format.
    pub(crate) in_lists: bool,
    /// Returns true if a list of JSON values is of this format, for formats whose single values
    /// cannot be recognised.
    pub(crate) json_list: fn(&[JsonOutline]) -> bool,
    /// A table of a SQLite database and columns that it must have.
    pub(crate) table: Option<(&'static str, &'static [&'static str])>,
    /// Returns true if the source is of this format, by its first bytes. For content that is
    /// neither JSON nor SQLite.
    pub(crate) bytes: fn(&[u8], &SessionSource) -> bool,
    /// Returns true if the files of a source are of this format, for sessions in several files.
    pub(crate) source: fn(&SessionSource) -> bool,
    /// Where the id of a session without one comes from.
    pub(crate) ids: IdSource,
    /// Where agents store such sessions by default.
    pub(crate) folders: &'static [AgentFolders],
    /// True if the agent stores one session in several places that differ in details.
    pub(crate) has_several_stores: bool,
    /// The newest version of the agent whose files were verified, if they state one.
    pub(crate) verified: Option<VerifiedVersion>,
}

impl FormatEntry {
    /// Returns an entry that no content matches.
    pub(crate) const fn new(read: ReadSessions) -> Self {
        Self {
            read,
            json: |_| false,
            weak_json: |_| false,
            in_lists: false,
            json_list: |_| false,
            table: None,
            bytes: |_, _| false,
            source: |_| false,
            ids: IdSource::Content,
            folders: &[],
            has_several_stores: false,
            verified: None,
        }
    }

    /// Creates the feed through which a reader of this format sends the sessions of a source.
    pub(crate) fn feed<'s>(
        &self,
        source: &SessionSource,
        sink: &'s mut dyn SessionSink,
    ) -> SessionFeed<'s> {
        let lineage = LineageTracker::new(self.has_several_stores);
        SessionFeed::new(SessionNaming::new(source, self.ids), lineage, sink)
    }
}

/// Folders of one agent, declared with the format of its sessions.
pub(crate) struct AgentFolders {
    /// Agent, as in [`AgentHome::agent`].
    pub(crate) agent: &'static str,
    /// Environment variable that replaces the roots.
    pub(crate) variable: Option<&'static str>,
    /// Default roots; not all of them exist.
    pub(crate) roots: &'static [HomeRoot],
    /// Folders and files below each root; an empty one is the root itself.
    pub(crate) parts: &'static [&'static str],
}

/// A folder, relative to one that depends on the user and the system.
pub(crate) enum HomeRoot {
    /// Below the home directory.
    Home(&'static str),
    /// Below `XDG_CONFIG_HOME`, by default `.config`.
    Config(&'static str),
    /// Below `XDG_DATA_HOME`, by default `.local/share`.
    Data(&'static str),
    /// Below `Library/Application Support` (macOS).
    Support(&'static str),
    /// The global storage of an editor's extensions.
    Editor(&'static str),
    /// The data of an editor's user.
    EditorUser(&'static str),
}

/// The newest verified version of an agent; each format declares that of its own agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VerifiedVersion {
    /// Agent, as sessions name it.
    pub agent: &'static str,
    /// The version, as its files state it.
    pub version: &'static str,
    /// What was read.
    pub basis: VerificationBasis,
}

/// What the reader of a format was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, IntoStaticStr)]
pub enum VerificationBasis {
    /// Files that the agent wrote.
    #[strum(serialize = "real files")]
    RealFiles,
    /// Files that another project trimmed or wrote for its own tests.
    #[strum(serialize = "files of another project's tests")]
    ForeignFixtures,
    /// Files that were written after the agent's source or documents.
    #[strum(serialize = "own fixture")]
    OwnFixture,
}

/// Returns the newest verified version of every agent that records its version.
pub fn verified_versions() -> impl Iterator<Item = VerifiedVersion> {
    SessionFormat::VARIANTS.iter().filter_map(|format| format.entry().verified)
}

/// Returns the newest verified version of an agent, if `version` is newer.
pub fn newer_than_verified(agent: &str, version: &str) -> Option<VerifiedVersion> {
    let verified = verified_versions().find(|known| known.agent == agent)?;
    is_newer(version, verified.version).then_some(verified)
}

/// Returns true if a version is newer than another one: number by number.
pub fn is_newer(version: &str, other: &str) -> bool {
    numbers(version) > numbers(other)
}

/// Returns the numbers of a version such as `2.1.132` or `0.53.0-alpha.2`, whose addition is left
/// out.
fn numbers(version: &str) -> Vec<u64> {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let main = digits.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or_default();
    let numbers = main.split('.').filter(|number| !number.is_empty());
    numbers.map(|number| number.parse().unwrap_or(u64::MAX)).take(6).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (one, other) in [
            ("2.1.133", "2.1.132"),
            ("2.10.0", "2.9.9"),
            ("v3", "2.1.132"),
            ("2.1.132.1", "2.1.132"),
            ("0.147.0-alpha.1", "0.146.0"),
        ] {
            assert!(is_newer(one, other) && !is_newer(other, one), "{one} {other}");
        }
        assert!(!is_newer("2.1.132", "2.1.132") && !is_newer("2.1.132-beta", "2.1.132"));
        assert!(!is_newer("", "0.1") && !is_newer("unknown", "0.1"));
        let newer = |agent, version| newer_than_verified(agent, version).map(|it| it.version);
        let known = verified_versions().find(|known| known.agent == "claude-code").unwrap();
        assert_eq!(newer("claude-code", "99.0"), Some(known.version));
        assert_eq!(newer("claude-code", "1.0"), None);
        assert_eq!(newer("other", "99"), None);
    }

    #[test]
    fn an_agent_has_one_newest_version() {
        let agents: Vec<&str> = verified_versions().map(|known| known.agent).collect();
        let distinct: BTreeSet<&&str> = agents.iter().collect();
        assert_eq!(agents.len(), distinct.len(), "{agents:?}");
        assert!(verified_versions().all(|known| !numbers(known.version).is_empty()));
    }
}
