//! A skill: instructions for a system under test, whose effect is measured.
//!
//! What the operator's own agent knows is kept out of an experiment: skills, memories, hooks and MCP
//! servers of the home folder would be in every arm, and the arm without the skill no control. A
//! program gets a new home folder and an environment of its own anyway. [`check_hermetic`] finds the
//! settings that would hand over the operator's after all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::identity::{IdentityError, digest_of_fixtures};
use super::sut_settings::ProgramSettings;
use super::{Fixture, FixtureSource, SutError};
use selftest_text::digest;

/// Name of a skill's file.
pub const SKILL_FILE: &str = "SKILL.md";

/// A skill with everything that its folder holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Name in reports, and of its folder.
    pub name: String,
    /// The whole text of its `SKILL.md`.
    pub text: String,
    /// The other files and folders beside it: references, scripts, assets. Paths are relative to
    /// its folder.
    files: Vec<Fixture>,
    /// SHA-256 of all of it.
    digest: String,
}

impl Skill {
    /// Creates a skill that is nothing but a text.
    pub fn of_text(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let digest = digest::sha256_hex(text.as_bytes());
        Self { name: name.into(), text, files: Vec::new(), digest }
    }

    /// Adds the files beside its `SKILL.md`. Fails if one cannot be read, or if there are too many.
    pub fn with_files(self, files: Vec<Fixture>) -> Result<Self, IdentityError> {
        if files.is_empty() {
            return Ok(self);
        }
        let parts = format!("{}\n{}", self.digest, digest_of_fixtures(&files)?);
        Ok(Self { files, digest: digest::sha256_hex(parts.as_bytes()), ..self })
    }

    /// Returns the skill under another name.
    #[must_use]
    pub fn with_name(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Returns the skill as files of the work folder of the agent with this command line, each
    /// where that agent looks for skills.
    pub fn laid_for(&self, run: &[String]) -> Vec<Fixture> {
        self.laid_in(&skill_folders(run)).collect()
    }

    /// Returns the SHA-256 of the text and of the files beside it.
    pub fn digest(&self) -> String {
        self.digest.clone()
    }

    /// Returns the skill as files below these folders of a work folder, such as `.claude/skills`.
    /// A name that is no single path component is replaced, because it comes from the outside.
    pub(super) fn laid_in<'a>(&'a self, folders: &'a [&str]) -> impl Iterator<Item = Fixture> + 'a {
        folders.iter().flat_map(move |folder| {
            let home = format!("{folder}/{}", self.folder_name());
            let text = Fixture {
                path: format!("{home}/{SKILL_FILE}"),
                source: FixtureSource::Text(self.text.clone()),
            };
            let beside = self.files.iter().map(move |file| Fixture {
                path: format!("{home}/{}", file.path),
                source: file.source.clone(),
            });
            std::iter::once(text).chain(beside)
        })
    }

    /// Returns the name of the folder that it is laid in.
    pub(super) fn folder_name(&self) -> &str {
        let name = Path::new(&self.name).file_name().and_then(|name| name.to_str());
        name.unwrap_or("skill")
    }
}

/// An agent that looks for skills in its work folder.
struct SkillAgent {
    /// Names of its program, or of the package that starts it.
    programs: &'static [&'static str],
    /// Where it looks, below its work folder.
    folder: &'static str,
}

/// The folder in which each agent looks for the skills of a project, from their documentation of
/// autumn 2026. Several also read those of others; one is enough, and two would be the skill twice.
const AGENTS: [SkillAgent; 13] = [
    SkillAgent {
        programs: &["claude", "claude-code", "claude-agent-acp", "claude-code-acp"],
        folder: ".claude/skills",
    },
    SkillAgent { programs: &["codex", "codex-acp"], folder: ".agents/skills" },
    SkillAgent { programs: &["gemini", "gemini-cli"], folder: ".agents/skills" },
    SkillAgent { programs: &["copilot", "copilot-language-server"], folder: ".agents/skills" },
    SkillAgent { programs: &["opencode"], folder: ".agents/skills" },
    SkillAgent { programs: &["cursor", "cursor-agent"], folder: ".agents/skills" },
    SkillAgent { programs: &["goose"], folder: ".goose/skills" },
    SkillAgent { programs: &["qwen", "qwen-code"], folder: ".qwen/skills" },
    SkillAgent { programs: &["crush"], folder: ".crush/skills" },
    SkillAgent { programs: &["iflow"], folder: ".iflow/skills" },
    SkillAgent { programs: &["kimi"], folder: ".agents/skills" },
    SkillAgent { programs: &["kiro", "kiro-cli"], folder: ".kiro/skills" },
    SkillAgent { programs: &["vibe", "mistral-vibe"], folder: ".vibe/skills" },
];

/// Programs of agents that take their model by `--model`.
const TOLD_BY_FLAG: [&str; 10] = [
    "claude",
    "codex",
    "copilot",
    "cursor-agent",
    "gemini",
    "gemini-cli",
    "goose",
    "opencode",
    "qwen",
    "qwen-code",
];

/// Agents that look for skills nowhere.
const WITHOUT_SKILLS: [&str; 6] =
    ["aider", "mini", "mini-swe-agent", "plandex", "sweagent", "swe-agent"];

/// Folders in which agents look for the skills of a project too, or did.
const OTHER_FOLDERS: [&str; 7] = [
    ".codex/skills",
    ".cursor/skills",
    ".gemini/skills",
    ".github/skills",
    ".opencode/skills",
    ".roo/skills",
    ".windsurf/skills",
];

/// Where an agent that is not in the table may look.
const USUAL: [&str; 2] = [".claude/skills", ".agents/skills"];

/// Returns the folders in which the agent of this command line looks for skills.
pub(super) fn skill_folders(run: &[String]) -> Vec<&'static str> {
    let agent = program_names(run)
        .find_map(|name| AGENTS.iter().find(|agent| agent.programs.contains(&name.as_str())));
    // An unknown program gets it in both places that most agents read.
    agent.map_or_else(|| USUAL.to_vec(), |agent| vec![agent.folder])
}

/// Returns the names of the skills that lie below a work folder where some agent looks for them.
pub(super) fn skills_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = project_folders()
        .into_iter()
        .filter_map(|skills| std::fs::read_dir(folder.join(skills)).ok())
        .flat_map(|entries| entries.filter_map(Result::ok))
        .filter(|entry| entry.path().join(SKILL_FILE).is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    // The same skill may lie in the folders of several agents.
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the flag by which the agent of this command line takes its model, if it has one.
pub fn model_flag(run: &[String]) -> Option<&'static str> {
    let mut names = program_names(run);
    names.any(|name| TOLD_BY_FLAG.contains(&name.as_str())).then_some("--model")
}

/// Returns all folders in which some agent looks for the skills of a project.
pub fn project_folders() -> Vec<&'static str> {
    let mut folders: Vec<&str> = AGENTS.iter().map(|agent| agent.folder).collect();
    folders.extend(OTHER_FOLDERS);
    // Several agents read the same folder.
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// Refuses the agent of this command line if it looks for skills nowhere.
pub(super) fn check_takes_skills(run: &[String]) -> Result<(), SutError> {
    let Some(name) = program_names(run).find(|name| WITHOUT_SKILLS.contains(&name.as_str())) else {
        return Ok(());
    };
    let what = format!("{name} looks for skills nowhere, so none can reach it");
    Err(SutError::NotStarted { what, hint: Some(format!("agents that do: {}", agent_names())) })
}

/// Returns the names of the agents that look for skills.
pub(super) fn agent_names() -> String {
    AGENTS.map(|agent| agent.programs[0]).join(", ")
}

/// Returns the names of programs and packages in a command line.
fn program_names(run: &[String]) -> impl Iterator<Item = String> + '_ {
    run.iter().map(|word| {
        let word = word.rsplit(['/', '\\']).next().unwrap_or_default();
        // `@qwen-code/qwen-code@0.15` is a package with a version; `gemini.cmd` a script.
        let name = word.split('@').find(|part| !part.is_empty()).unwrap_or_default();
        name.split('.').next().unwrap_or_default().to_lowercase()
    })
}

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
        // The project itself usually lies in the home folder.
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
        // A link must not hide that the path leads to one of these folders.
        let path = path.canonicalize().unwrap_or(path);
        // A folder above hands it over as well, and so does a file in it.
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
    fn each_agent_has_its_folder() {
        let of =
            |run: &[&str]| skill_folders(&run.iter().map(|&w| w.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["/usr/bin/claude", "-p"]), [".claude/skills"]);
        assert_eq!(of(&["npx", "-y", "@qwen-code/qwen-code@0.15.10", "--acp"]), [".qwen/skills"]);
        assert_eq!(of(&["goose", "acp"]), [".goose/skills"]);
        assert_eq!(of(&["node", "C:\\bin\\gemini.cmd"]), [".agents/skills"]);
        assert_eq!(of(&["python3", "agent.py"]), USUAL);
    }

    #[test]
    fn an_agent_without_skills_is_refused() {
        let check = |run: &[&str]| {
            check_takes_skills(&run.iter().map(|&w| w.to_owned()).collect::<Vec<_>>())
        };
        let error = check(&["/usr/bin/aider", "--message", "{prompt}"]).unwrap_err();
        assert_eq!(error.to_string(), "aider looks for skills nowhere, so none can reach it");
        assert!(error.hint().unwrap().contains("claude, codex, gemini"), "{error:?}");
        assert!(check(&["claude", "-p"]).is_ok());
        assert!(check(&["python3", "agent.py"]).is_ok());
    }

    #[test]
    fn a_skill_is_laid_with_all_that_it_has() {
        let beside = |path: &str| Fixture {
            path: path.to_owned(),
            source: FixtureSource::Text("x".to_owned()),
        };
        let plain = Skill::of_text("../ferry", "Go.");
        let skill = plain.clone().with_files(vec![beside("references/times.md")]).unwrap();
        assert_ne!(skill.digest(), plain.digest());
        let laid: Vec<String> = skill.laid_in(&[".qwen/skills"]).map(|file| file.path).collect();
        assert_eq!(laid, [".qwen/skills/ferry/SKILL.md", ".qwen/skills/ferry/references/times.md"]);
    }

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
