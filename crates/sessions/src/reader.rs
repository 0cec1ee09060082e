//! Maps each format to its reader.

use super::feed::SessionFeed;
use super::format::SessionFormat;
use super::source::SessionSource;
use super::{
    SessionReadError, aider, atif, chat, chat_gpt, claude_code, codex, codex_exec, copilot_cli,
    crush, cursor, cursor_store, gemini_cli, goose, hermes, inspect, mini_swe_agent, open_code,
    open_hands, open_hands_sdk, pi, qwen_code, swe_agent, traces, zed,
};

/// Sends every session of a source to the feed. Only a source that cannot be read at all is an
/// error; damage is recorded in the notes.
pub(super) fn read(
    format: SessionFormat,
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    match format {
        SessionFormat::HermesSnapshot => hermes::snapshot::read(source, feed),
        SessionFormat::HermesGateway => hermes::gateway::read(source, feed),
        SessionFormat::HermesState => hermes::state::read(source, feed),
        SessionFormat::ClaudeCode => claude_code::read(source, feed),
        SessionFormat::Codex => codex::read(source, feed),
        SessionFormat::GeminiCli => gemini_cli::read(source, feed),
        SessionFormat::Pi => pi::read(source, feed),
        SessionFormat::Atif => atif::read(source, feed),
        SessionFormat::SweAgent => swe_agent::read(source, feed),
        SessionFormat::MiniSweAgent => mini_swe_agent::read(source, feed),
        SessionFormat::OpenHands => open_hands::read(source, feed),
        SessionFormat::OpenHandsSdk => open_hands_sdk::read(source, feed),
        SessionFormat::QwenCode => qwen_code::read(source, feed),
        SessionFormat::Cline => chat::read("cline", source, feed),
        SessionFormat::Amp => chat::read("amp", source, feed),
        SessionFormat::OpenCode => open_code::read(source, feed),
        SessionFormat::Goose => goose::read(source, feed),
        SessionFormat::Crush => crush::read(source, feed),
        SessionFormat::CursorState => cursor::read(source, feed),
        SessionFormat::CursorStore => cursor_store::read(source, feed),
        SessionFormat::CursorAgent => chat::read("cursor", source, feed),
        SessionFormat::Factory => chat::read("factory", source, feed),
        SessionFormat::CopilotCli => copilot_cli::read(source, feed),
        SessionFormat::CodexExec => codex_exec::read(source, feed),
        SessionFormat::ChatGpt => chat_gpt::read(source, feed),
        SessionFormat::ClaudeAi => chat::read("claude-ai", source, feed),
        SessionFormat::Inspect => inspect::read(source, feed),
        SessionFormat::Zed => zed::read(source, feed),
        SessionFormat::Aider => aider::read(source, feed),
        SessionFormat::OpenTelemetry | SessionFormat::LangSmith | SessionFormat::Langfuse => {
            traces::read(format, source, feed)
        }
        SessionFormat::VercelAi => chat::read("vercel-ai", source, feed),
        SessionFormat::Responses => chat::read(chat::RESPONSES, source, feed),
        SessionFormat::Chat => chat::read("chat", source, feed),
    }
}
