//! Maps each format to its reader.

use super::feed::Feed;
use super::format::Format;
use super::source::Source;
use super::{
    ReadError, aider, atif, chat, chat_gpt, claude_code, codex, codex_exec, copilot_cli, crush,
    cursor, cursor_store, gemini_cli, goose, hermes, inspect, mini_swe_agent, open_code,
    open_hands, open_hands_sdk, pi, qwen_code, swe_agent, traces, zed,
};

/// Sends every session of a source to the feed. Only a source that cannot be read at all is an
/// error; damage is recorded in the notes.
pub(super) fn read(format: Format, source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    match format {
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
            traces::read(format, source, feed)
        }
        Format::VercelAi => chat::read("vercel-ai", source, feed),
        Format::Responses => chat::read(chat::RESPONSES, source, feed),
        Format::Chat => chat::read("chat", source, feed),
    }
}
