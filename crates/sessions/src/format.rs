//! The formats and their names.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

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
}
