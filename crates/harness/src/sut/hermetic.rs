//! Keeps what the operator's own agent knows out of an experiment: skills, memories, hooks and MCP
//! servers of the home folder would be in every arm, and the arm without the skill no control.
//!
//! A program gets a new home folder and an environment of its own anyway. Here the settings are found
//! that would hand over the operator's after all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::SutError;
use super::skill::project_folders;
use super::sut_settings::ProgramSettings;

/// Variables that name the folder of an agent's own settings.
const SETTINGS_VARIABLES: [&str; 13] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "CRUSH_GLOBAL_CONFIG",
    "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT",
    "HOME",
    "KIMI_SHARE_DIR",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "QWEN_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];
/// Folders of a home folder in which agents look for skills, beside those that they look for in a
/// project.
const GLOBAL_FOLDERS: [&str; 5] = [
    ".config/agents/skills",
    ".config/crush/skills",
    ".config/goose/skills",
    ".config/opencode/skills",
    ".copilot/skills",
];
/// Files of a project that hold the settings and the memory of one person.
pub const PERSONAL_FILES: [&str; 4] = [
    ".claude/settings.local.json",
    ".claude/CLAUDE.local.md",
    "CLAUDE.local.md",
    "AGENTS.override.md",
];

/// Refuses settings that hand the operator's own agent settings to the program.
pub fn check_hermetic(
    settings: &ProgramSettings,
    section: &str,
    environment: &BTreeMap<String, String>,
    project: &Path,
) -> Result<(), SutError> {
    let is_set = |name: &&String| {
        SETTINGS_VARIABLES.contains(&name.as_str()) && environment.contains_key(*name)
    };
    if let Some(name) = settings.pass_environment.iter().find(is_set) {
        return Err(leak(
            &format!("{section}.pass_environment passes on {name}"),
            "leave it out, and pass on the variable of a key instead",
        ));
    }
    let home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let Some(home) = home.map(|home| home.canonicalize().unwrap_or(home)) else { return Ok(()) };
    for (name, value) in &settings.environment {
        let value = Path::new(value);
        let is_personal = value.starts_with(&home) && !value.starts_with(project);
        if SETTINGS_VARIABLES.contains(&name.as_str()) && is_personal {
            return Err(leak(
                &format!("{section}.environment sets {name} to a folder of your own"),
                "let it name a folder of the project, or leave it out",
            ));
        }
    }
    let global: Vec<PathBuf> = project_folders()
        .into_iter()
        .chain(GLOBAL_FOLDERS)
        .map(|folder| home.join(folder))
        .filter(|folder| folder.exists())
        .collect();
    for path in &settings.readable {
        let path = project.join(path);
        let path = path.canonicalize().unwrap_or(path);
        let holds = |folder: &&PathBuf| folder.starts_with(&path) || path.starts_with(folder);
        if let Some(folder) = global.iter().find(holds) {
            return Err(leak(
                &format!("{section}.readable lets the agent read {}", folder.display()),
                "name only the files that it needs",
            ));
        }
    }
    Ok(())
}

fn leak(what: &str, hint: &str) -> SutError {
    let what = format!(
        "{what}: your own skills, memories, hooks and MCP servers would be in every arm, and no arm a \
         control"
    );
    SutError::NotStarted { what, hint: Some(hint.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_own_settings_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join(".claude/skills/ferry")).unwrap();
        let environment = BTreeMap::from([
            ("HOME".to_owned(), home.display().to_string()),
            ("CODEX_HOME".to_owned(), "/x".to_owned()),
        ]);
        let project = home.join("project");
        let check = |settings: &ProgramSettings| {
            check_hermetic(settings, "sut.acp", &environment, &project)
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(&ProgramSettings::default()), Ok(()));
        let passes = |name: &str| ProgramSettings {
            pass_environment: vec![name.to_owned()],
            ..ProgramSettings::default()
        };
        assert!(check(&passes("CODEX_HOME")).unwrap_err().contains("passes on CODEX_HOME"));
        assert_eq!(check(&passes("ANTHROPIC_API_KEY")), Ok(()));
        assert_eq!(check(&passes("QWEN_HOME")), Ok(()), "it is not set");
        let sets = |value: PathBuf| ProgramSettings {
            environment: BTreeMap::from([(
                "CLAUDE_CONFIG_DIR".to_owned(),
                value.display().to_string(),
            )]),
            ..ProgramSettings::default()
        };
        assert!(check(&sets(home.join(".claude"))).unwrap_err().contains("a folder of your own"));
        assert_eq!(check(&sets(project.join("agent"))), Ok(()));
        let reads =
            |path: PathBuf| ProgramSettings { readable: vec![path], ..ProgramSettings::default() };
        assert!(check(&reads(home.clone())).unwrap_err().contains(".claude/skills"));
        assert!(check(&reads(home.join(".claude"))).is_err());
        assert_eq!(check(&reads(home.join(".claude/.credentials.json"))), Ok(()));
    }
}
