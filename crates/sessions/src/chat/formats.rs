//! The formats that the reader of chats reads.

use super::{RESPONSES as RESPONSES_AGENT, read};
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::outline::JsonOutline;

/// The export of Claude's chats.
pub(crate) const CLAUDE_AI: FormatEntry = FormatEntry {
    json: |value| value.has("chat_messages") && value.has("uuid"),
    in_lists: true,
    ..FormatEntry::new(|source, feed| read("claude-ai", source, feed))
};

/// Factory's droid.
pub(crate) const FACTORY: FormatEntry = FormatEntry {
    json: |value| value.mark("type") == "session_start" && value.has("id") && !value.has("payload"),
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "factory",
        variable: None,
        roots: &[HomeRoot::Home(".factory")],
        parts: &["sessions"],
    }],
    ..FormatEntry::new(|source, feed| read("factory", source, feed))
};

/// Transcripts of Cursor's agent.
pub(crate) const CURSOR_AGENT: FormatEntry = FormatEntry {
    json: |value| {
        let has_message = value
            .inner("message")
            .is_some_and(|message| message.has("role") || message.has("content"));
        has_role(value) && has_message && !value.has("sessionId")
    },
    ids: IdSource::FileName,
    has_several_stores: true,
    ..FormatEntry::new(|source, feed| read("cursor", source, feed))
};

/// Threads of Amp, whose ids start with `T-`.
pub(crate) const AMP: FormatEntry = FormatEntry {
    json: |value| {
        value.mark("id").starts_with("T-")
            && value.has("messages")
            && (value.has("created") || value.has("v"))
    },
    in_lists: true,
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "amp",
        variable: None,
        roots: &[HomeRoot::Data("amp")],
        parts: &["threads"],
    }],
    ..FormatEntry::new(|source, feed| read("amp", source, feed))
};

/// Task folders of Cline, Roo and Kilo in an editor's global storage.
const CLINE_TASKS: [&str; 3] = [
    "saoudrizwan.claude-dev/tasks",
    "rooveterinaryinc.roo-cline/tasks",
    "kilocode.kilo-code/tasks",
];

/// Cline, Roo and Kilo.
pub(crate) const CLINE: FormatEntry = FormatEntry {
    weak_json: |value| {
        let messages = value.list("messages");
        let is_file = value.has("updated_at") && value.has("sessionId");
        messages.iter().any(is_cline) || (is_file && messages.iter().any(has_role))
    },
    in_lists: true,
    json_list: |values| values.iter().any(is_cline),
    folders: &[
        AgentFolders {
            agent: "cline",
            variable: None,
            roots: &[HomeRoot::Home(".cline")],
            parts: &["data/sessions"],
        },
        AgentFolders {
            agent: "cline",
            variable: None,
            roots: &[
                HomeRoot::Editor("Code"),
                HomeRoot::Editor("Code - Insiders"),
                HomeRoot::Editor("VSCodium"),
                HomeRoot::Editor("Cursor"),
            ],
            parts: &CLINE_TASKS,
        },
    ],
    ..FormatEntry::new(|source, feed| read("cline", source, feed))
};

/// Messages of the Vercel AI SDK.
pub(crate) const VERCEL_AI: FormatEntry = FormatEntry {
    weak_json: |value| value.list("messages").iter().any(is_ui_message),
    in_lists: true,
    json_list: |values| values.iter().any(is_ui_message),
    ..FormatEntry::new(|source, feed| read("vercel-ai", source, feed))
};

/// Requests and responses of the Responses API.
pub(crate) const RESPONSES: FormatEntry = FormatEntry {
    weak_json: |value| {
        let is_items = |key| value.list(key).iter().any(|item| is_message(item) || is_item(item));
        // A request that also has messages is a chat.
        value.has("model")
            && !has_chat(value)
            && (is_items("input") || (value.has("object") && is_items("output")))
    },
    ..FormatEntry::new(|source, feed| read(RESPONSES_AGENT, source, feed))
};

/// Plain messages.
pub(crate) const CHAT: FormatEntry = FormatEntry {
    weak_json: |value| {
        let is_share_gpt = |message: &JsonOutline| !message.mark("from").is_empty();
        has_chat(value) || value.list("conversations").iter().any(is_share_gpt)
    },
    in_lists: true,
    json_list: is_chat,
    ..FormatEntry::new(|source, feed| read("chat", source, feed))
};

/// Item types of the Responses API that are not messages.
const ITEM_TYPES: [&str; 5] = [
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
];

/// Returns true if the value has a role, as every message has.
pub(crate) fn has_role(value: &JsonOutline) -> bool {
    !value.mark("role").is_empty()
}

/// Returns true if this is a chat message, as in JSON lines of messages.
pub(crate) fn is_message(value: &JsonOutline) -> bool {
    has_role(value) && ["content", "tool_calls", "parts"].iter().any(|key| value.has(key))
}

/// Returns true if this is an item of the Responses API other than a message.
fn is_item(value: &JsonOutline) -> bool {
    ITEM_TYPES.contains(&value.mark("type"))
}

/// Returns true if this is a Vercel AI SDK message, whose parts have types. Gemini's have none.
fn is_ui_message(value: &JsonOutline) -> bool {
    let is_typed = value.list("parts").iter().any(|part| part.has("type"));
    has_role(value) && (is_typed || value.has("toolInvocations"))
}

/// Returns true if this is a message with the typical tags of Cline, Roo and Kilo.
fn is_cline(value: &JsonOutline) -> bool {
    has_role(value) && value.has("is:cline")
}

/// Returns true if the value has messages below a usual key.
fn has_chat(value: &JsonOutline) -> bool {
    let keys = ["messages", "traj", "history", "chat_messages"];
    keys.into_iter().any(|key| value.list(key).iter().any(has_role))
}

/// Returns true if these are messages and items, and of no agent that is recognised by its texts.
pub(crate) fn is_chat(values: &[JsonOutline]) -> bool {
    let messages = values.iter().filter(|value| is_message(value) || is_item(value)).count();
    let is_other = |value: &JsonOutline| is_cline(value) || is_ui_message(value);
    // The last one may be truncated.
    messages > 0 && messages + 1 >= values.len() && !values.iter().any(is_other)
}
