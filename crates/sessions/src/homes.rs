//! Lists where each agent stores its sessions. This module does not access the disk, so the paths
//! may not exist.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A folder or file where an agent stores sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHome {
    /// Agent, as in the name of its format.
    pub agent: &'static str,
    /// The folder or database file.
    pub path: PathBuf,
}

/// Settings folders of editors whose extensions store sessions.
const EDITORS: [&str; 4] = ["Code", "Code - Insiders", "VSCodium", "Cursor"];

/// Task folders of Cline, Roo and Kilo in an editor's global storage.
const CLINE_TASKS: [&str; 3] = [
    "saoudrizwan.claude-dev/tasks",
    "rooveterinaryinc.roo-cline/tasks",
    "kilocode.kilo-code/tasks",
];

/// Returns the usual session locations of every agent for a user with this home directory.
///
/// `variable` looks up environment variables; an empty value counts as unset. The supported
/// variables are `HERMES_HOME`, `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `QWEN_HOME`,
/// `MSWEA_GLOBAL_CONFIG_DIR`, `XDG_CONFIG_HOME` and `XDG_DATA_HOME`. Without a home directory, only
/// locations from variables are returned.
pub fn agent_homes(
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<&Path>,
) -> Vec<AgentHome> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let below = |path: &str| home.map(|home| home.join(path));
    let mut homes = Vec::new();
    let mut add = |agent, root: Option<PathBuf>, parts: &[&str]| {
        let Some(root) = root else { return };
        homes.extend(parts.iter().map(|part| AgentHome { agent, path: root.join(part) }));
    };

    let hermes = named("HERMES_HOME").or_else(|| below(".hermes"));
    add("hermes", hermes, &["sessions", "state.db"]);

    let configuration = named("XDG_CONFIG_HOME").or_else(|| below(".config"));
    // Some versions default to the XDG folder, so both are listed.
    if let Some(claude) = named("CLAUDE_CONFIG_DIR") {
        add("claude-code", Some(claude), &["projects"]);
    } else {
        add("claude-code", below(".claude"), &["projects"]);
        add("claude-code", configuration.clone(), &["claude/projects"]);
    }

    let codex = named("CODEX_HOME").or_else(|| below(".codex"));
    add("codex", codex, &["sessions", "archived_sessions"]);
    add("gemini-cli", below(".gemini"), &["tmp"]);
    add("pi", below(".pi"), &["agent/sessions"]);
    add("qwen-code", named("QWEN_HOME").or_else(|| below(".qwen")), &["projects"]);
    // Current SDK, then the versions before it.
    add("open-hands-sdk", below(".openhands"), &["conversations"]);
    add("open-hands", below(".openhands"), &["sessions"]);

    let data = named("XDG_DATA_HOME").or_else(|| below(".local/share"));
    add("amp", data.clone(), &["amp/threads"]);
    add(
        "opencode",
        data.clone(),
        &["opencode/opencode.db", "opencode/storage", "opencode/project"],
    );
    add("goose", data.clone(), &["goose/sessions"]);
    add("zed", data, &["zed/threads"]);
    add("zed", below("Library/Application Support"), &["Zed/threads"]);
    add("copilot-cli", below(".copilot"), &["session-state", "history-session-state"]);
    add("factory", below(".factory"), &["sessions"]);
    add("cursor", below(".cursor"), &["projects", "chats"]);
    add("cline", below(".cline"), &["data/sessions"]);
    for place in [configuration.clone(), below("Library/Application Support")] {
        for editor in EDITORS {
            let storage = place.as_ref().map(|place| place.join(editor).join("User/globalStorage"));
            add("cline", storage.clone(), &CLINE_TASKS);
            if editor == "Cursor" {
                add("cursor", storage, &["state.vscdb"]);
            }
        }
    }

    if let Some(mini) = named("MSWEA_GLOBAL_CONFIG_DIR") {
        add("mini-swe-agent", Some(mini), &[""]);
    } else {
        add("mini-swe-agent", configuration, &["mini-swe-agent"]);
        add("mini-swe-agent", below("Library/Application Support"), &["mini-swe-agent"]);
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(variables: &[(&str, &str)], home: Option<&str>) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let all = agent_homes(variable, home.map(Path::new));
        all.into_iter().map(|home| format!("{} {}", home.agent, home.path.display())).collect()
    }

    #[test]
    fn below_the_home_folder() {
        let mut found = paths(&[], Some("/h"));
        found.retain(|home| !home.contains("globalStorage") || home.contains(".config/Code/"));
        assert_eq!(
            found,
            [
                "hermes /h/.hermes/sessions",
                "hermes /h/.hermes/state.db",
                "claude-code /h/.claude/projects",
                "claude-code /h/.config/claude/projects",
                "codex /h/.codex/sessions",
                "codex /h/.codex/archived_sessions",
                "gemini-cli /h/.gemini/tmp",
                "pi /h/.pi/agent/sessions",
                "qwen-code /h/.qwen/projects",
                "open-hands-sdk /h/.openhands/conversations",
                "open-hands /h/.openhands/sessions",
                "amp /h/.local/share/amp/threads",
                "opencode /h/.local/share/opencode/opencode.db",
                "opencode /h/.local/share/opencode/storage",
                "opencode /h/.local/share/opencode/project",
                "goose /h/.local/share/goose/sessions",
                "zed /h/.local/share/zed/threads",
                "zed /h/Library/Application Support/Zed/threads",
                "copilot-cli /h/.copilot/session-state",
                "copilot-cli /h/.copilot/history-session-state",
                "factory /h/.factory/sessions",
                "cursor /h/.cursor/projects",
                "cursor /h/.cursor/chats",
                "cline /h/.cline/data/sessions",
                "cline /h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
                "cline /h/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
                "cline /h/.config/Code/User/globalStorage/kilocode.kilo-code/tasks",
                "mini-swe-agent /h/.config/mini-swe-agent",
                "mini-swe-agent /h/Library/Application Support/mini-swe-agent",
            ]
        );
    }

    #[test]
    fn variables_move_them_and_empty_ones_do_not() {
        let variables = [
            ("HERMES_HOME", "/data/hermes"),
            ("CLAUDE_CONFIG_DIR", "/data/claude"),
            ("CODEX_HOME", ""),
            ("MSWEA_GLOBAL_CONFIG_DIR", "/data/mini"),
        ];
        let found = paths(&variables, Some("/h"));
        assert_eq!(found[0], "hermes /data/hermes/sessions");
        assert_eq!(found[1], "hermes /data/hermes/state.db");
        assert_eq!(found[2], "claude-code /data/claude/projects");
        assert_eq!(found[3], "codex /h/.codex/sessions");
        assert_eq!(found.last().unwrap(), "mini-swe-agent /data/mini/");
        assert_eq!(paths(&variables[1..3], None), ["claude-code /data/claude/projects"]);
    }
}
