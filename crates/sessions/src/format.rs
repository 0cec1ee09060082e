//! The table of supported formats, one entry each. Names, detection, readers, ids and folders come
//! from this table; an entry is declared in the file that reads the format.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::entry::FormatEntry;
use super::{
    aider, antigravity, atif, chat, chat_gpt, claude_code, claude_print, codex, codex_exec,
    copilot_cli, crush, cursor, cursor_store, factory_stream, gemini_cli, goose, grok, hermes,
    inspect, kimi, kiro, mini_swe_agent, open_code, open_hands, open_hands_sdk, pi, qwen_code,
    spec_story, swe_agent, traces, vs_code, zed,
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
    HermesGateway("hermes-gateway") => hermes::gateway::FORMAT,
    /// Agent Trajectory Interchange Format (Harbor).
    Atif("atif") => atif::FORMAT,
    /// `OpenAI` Codex CLI rollout.
    Codex("codex") => codex::FORMAT,
    /// Gemini CLI chat, JSON or JSON lines.
    GeminiCli("gemini-cli") => gemini_cli::FORMAT,
    /// Hermes: one JSON object per session, rewritten on each turn.
    HermesSnapshot("hermes-snapshot") => hermes::snapshot::FORMAT,
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
