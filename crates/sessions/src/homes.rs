//! Lists where each agent stores its sessions. This module does not access the disk, so the paths
//! may not exist.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use strum::VariantArray as _;

use super::SessionFormat;
use crate::format::HomeRoot;

/// A folder or file where an agent stores sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHome {
    /// Agent, as in the name of its format.
    pub agent: &'static str,
    /// The folder or database file.
    pub path: PathBuf,
}

/// Returns the usual session locations of every agent for a user with this home directory.
///
/// `variable` looks up environment variables; an empty value counts as unset. The supported
/// variables are `XDG_CONFIG_HOME`, `XDG_DATA_HOME` and those of the formats, such as `CODEX_HOME`.
/// Without a home directory, only locations from variables are returned.
pub fn agent_homes(
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<&Path>,
) -> Vec<AgentHome> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let below = |path: &str| home.map(|home| home.join(path));
    let config = named("XDG_CONFIG_HOME").or_else(|| below(".config"));
    let data = named("XDG_DATA_HOME").or_else(|| below(".local/share"));
    let support = below("Library/Application Support");
    let resolve = |root: &HomeRoot| -> Vec<PathBuf> {
        let (places, path) = match root {
            HomeRoot::Home(path) => ([below(path), None], PathBuf::new()),
            HomeRoot::Config(path) => ([config.clone(), None], path.into()),
            HomeRoot::Data(path) => ([data.clone(), None], path.into()),
            HomeRoot::Support(path) => ([support.clone(), None], path.into()),
            HomeRoot::Editor(editor) => {
                ([config.clone(), support.clone()], Path::new(editor).join("User/globalStorage"))
            }
            HomeRoot::EditorUser(editor) => {
                ([config.clone(), support.clone()], Path::new(editor).join("User"))
            }
        };
        places.into_iter().flatten().map(|place| join(place, &path)).collect()
    };
    let mut homes = Vec::new();
    for folders in SessionFormat::VARIANTS.iter().flat_map(|format| format.entry().folders) {
        let roots = match folders.variable.and_then(named) {
            Some(root) => vec![root],
            None => folders.roots.iter().flat_map(resolve).collect(),
        };
        homes.extend(roots.iter().flat_map(|root| {
            folders.parts.iter().map(|part| AgentHome {
                agent: folders.agent,
                path: join(root.clone(), Path::new(part)),
            })
        }));
    }
    homes
}

/// Joins paths. Joining an empty one would append a slash.
fn join(root: PathBuf, part: &Path) -> PathBuf {
    if part.as_os_str().is_empty() { root } else { root.join(part) }
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
        found.retain(|home| {
            let is_other = home.contains("/User/") && !home.contains(".config/Code/");
            !is_other && !home.ends_with("emptyWindowChatSessions")
        });
        found.sort();
        let mut expected = [
            "example /h/.example/talks",
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
            "iflow /h/.iflow/projects",
            "kimi /h/.kimi-code/sessions",
            "kimi /h/.kimi/sessions",
            "kiro /h/.kiro/sessions",
            "grok /h/.grok/sessions",
            "antigravity /h/.gemini/antigravity/brain",
            "antigravity /h/.gemini/antigravity-cli/brain",
            "antigravity /h/.gemini/antigravity-ide/brain",
            "vscode-copilot /h/.config/Code/User/workspaceStorage",
            "mini-swe-agent /h/.config/mini-swe-agent",
            "mini-swe-agent /h/Library/Application Support/mini-swe-agent",
        ];
        expected.sort_unstable();
        assert_eq!(found, expected);
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
        for (agent, expected) in [
            ("hermes", &["hermes /data/hermes/sessions", "hermes /data/hermes/state.db"][..]),
            ("claude-code", &["claude-code /data/claude/projects"]),
            ("codex", &["codex /h/.codex/sessions", "codex /h/.codex/archived_sessions"]),
            ("mini-swe-agent", &["mini-swe-agent /data/mini"]),
        ] {
            let own = found.iter().filter(|home| home.starts_with(&format!("{agent} ")));
            assert_eq!(own.collect::<Vec<_>>(), expected);
        }
        assert_eq!(paths(&variables[1..3], None), ["claude-code /data/claude/projects"]);
    }
}
