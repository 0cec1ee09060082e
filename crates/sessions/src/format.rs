//! The formats, their names, and which reader is for which.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use super::feed::Feed;
use super::source::Source;
use super::{
    ReadError, aider, atif, chat, chat_gpt, claude_code, codex, codex_exec, copilot_cli, crush,
    cursor, cursor_store, gemini_cli, goose, hermes, inspect, mini_swe_agent, open_code,
    open_hands, open_hands_sdk, pi, qwen_code, swe_agent, traces, zed,
};

/// A file format of recorded sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// Hermes: one JSON object for a session, written whole on each turn.
    HermesSnapshot,
    /// Hermes: the older gateway's JSON lines.
    HermesGateway,
    /// Hermes: `state.db`, all sessions in one SQLite database.
    HermesState,
    /// Claude Code JSON lines.
    ClaudeCode,
    /// `OpenAI` Codex CLI rollout.
    Codex,
    /// Gemini CLI chat, JSON or JSON lines.
    GeminiCli,
    /// pi JSON lines.
    Pi,
    /// Agent Trajectory Interchange Format (Harbor).
    Atif,
    /// SWE-agent `.traj`.
    SweAgent,
    /// mini-swe-agent trajectory.
    MiniSweAgent,
    /// `OpenHands` before its SDK: a list of events.
    OpenHands,
    /// `OpenHands` SDK events.
    OpenHandsSdk,
    /// Qwen Code JSON lines.
    QwenCode,
    /// Cline, Roo and Kilo: messages as Anthropic's interface has them, with the calls of some
    /// versions as XML in the text.
    Cline,
    /// Amp thread.
    Amp,
    /// `OpenCode`: its SQLite database, or an exported session.
    OpenCode,
    /// goose: its SQLite database.
    Goose,
    /// Crush: its SQLite database.
    Crush,
    /// Cursor's editor: `state.vscdb`.
    CursorState,
    /// Cursor's agent: the `store.db` of a session.
    CursorStore,
    /// Cursor's agent: transcripts in JSON lines.
    CursorAgent,
    /// Factory's droid: JSON lines.
    Factory,
    /// GitHub Copilot CLI JSON lines.
    CopilotCli,
    /// Output of `codex exec --json`.
    CodexExec,
    /// The export of `ChatGPT`.
    ChatGpt,
    /// The export of Claude's chats.
    ClaudeAi,
    /// Logs of Inspect: JSON, or an `.eval` archive.
    Inspect,
    /// Zed: its SQLite database of threads.
    Zed,
    /// The chat history that aider keeps in a project.
    Aider,
    /// OpenTelemetry spans with the `GenAI` conventions or `OpenInference`'s.
    OpenTelemetry,
    /// Runs of `LangSmith`.
    #[serde(rename = "langsmith")]
    #[strum(serialize = "langsmith")]
    LangSmith,
    /// Observations and traces of Langfuse.
    Langfuse,
    /// Messages of the Vercel AI SDK with their parts.
    VercelAi,
    /// Requests to `OpenAI`'s Responses interface, and its responses.
    Responses,
    /// Plain chat messages, bare or wrapped.
    Chat,
}

selftest_text::named!(Format);

impl Format {
    /// Whether its agent keeps one session in several stores that are not the same to the letter.
    pub(super) fn has_several_stores(self) -> bool {
        matches!(
            self,
            Format::HermesSnapshot
                | Format::HermesGateway
                | Format::HermesState
                | Format::CursorStore
                | Format::CursorAgent
        )
    }

    /// Hands every session of the source to the feed. Only what cannot be read at all is an
    /// error; what is broken is noted.
    pub(super) fn read(self, source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
        match self {
            Format::HermesSnapshot => hermes::snapshot::read(source, feed),
            Format::HermesGateway => hermes::gateway::read(source, feed),
            Format::HermesState => hermes::state::read(source, feed),
            Format::ClaudeCode => claude_code::read(source, feed),
            Format::Codex => codex::read(source, feed),
            Format::GeminiCli => gemini_cli::read(source, feed),
            Format::Pi => pi::read(source, feed),
            Format::Atif => atif::read(source, feed),
            Format::SweAgent => swe_agent::read(source, feed),
            Format::MiniSweAgent => mini_swe_agent::read(source, feed),
            Format::OpenHands => open_hands::read(source, feed),
            Format::OpenHandsSdk => open_hands_sdk::read(source, feed),
            Format::QwenCode => qwen_code::read(source, feed),
            Format::Cline => chat::read("cline", source, feed),
            Format::Amp => chat::read("amp", source, feed),
            Format::OpenCode => open_code::read(source, feed),
            Format::Goose => goose::read(source, feed),
            Format::Crush => crush::read(source, feed),
            Format::CursorState => cursor::read(source, feed),
            Format::CursorStore => cursor_store::read(source, feed),
            Format::CursorAgent => chat::read("cursor", source, feed),
            Format::Factory => chat::read("factory", source, feed),
            Format::CopilotCli => copilot_cli::read(source, feed),
            Format::CodexExec => codex_exec::read(source, feed),
            Format::ChatGpt => chat_gpt::read(source, feed),
            Format::ClaudeAi => chat::read("claude-ai", source, feed),
            Format::Inspect => inspect::read(source, feed),
            Format::Zed => zed::read(source, feed),
            Format::Aider => aider::read(source, feed),
            Format::OpenTelemetry | Format::LangSmith | Format::Langfuse => {
                traces::read(self, source, feed)
            }
            Format::VercelAi => chat::read("vercel-ai", source, feed),
            Format::Responses => chat::read(chat::RESPONSES, source, feed),
            Format::Chat => chat::read("chat", source, feed),
        }
    }
}
