//! Lists the supported formats and their names.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// A file format of recorded sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum SessionFormat {
    /// Hermes: one JSON object per session, rewritten on each turn.
    HermesSnapshot,
    /// Hermes: JSON lines of the older gateway.
    HermesGateway,
    /// Hermes: `state.db`, one SQLite database for all sessions.
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
    /// Cline, Roo and Kilo: messages in Anthropic's format. Some versions write tool calls as XML
    /// into the text.
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
    /// Cursor's agent: JSON Lines transcripts.
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
    /// Inspect logs: JSON, or an `.eval` archive.
    Inspect,
    /// Zed: its SQLite database of threads.
    Zed,
    /// The chat history that aider stores in a project.
    Aider,
    /// OpenTelemetry spans with the `GenAI` or `OpenInference` conventions.
    OpenTelemetry,
    /// `LangSmith` runs.
    #[serde(rename = "langsmith")]
    #[strum(serialize = "langsmith")]
    LangSmith,
    /// Langfuse observations and traces.
    Langfuse,
    /// Vercel AI SDK messages with parts.
    VercelAi,
    /// Requests and responses of `OpenAI`'s Responses API.
    Responses,
    /// Plain chat messages, bare or wrapped.
    Chat,
}

selftest_text::named!(SessionFormat);

impl SessionFormat {
    /// Returns true if the agent stores one session in several places that differ in details.
    pub(super) fn has_several_stores(self) -> bool {
        matches!(
            self,
            SessionFormat::HermesSnapshot
                | SessionFormat::HermesGateway
                | SessionFormat::HermesState
                | SessionFormat::CursorStore
                | SessionFormat::CursorAgent
        )
    }
}
