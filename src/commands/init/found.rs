//! Finds in a project and on this machine what tests could be about. Reads files up to a
//! bound and names on `PATH`, asks a local Ollama server for its models; starts nothing.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use selftest_config::Environment;
use selftest_models::model_settings::ModelSettings;
use selftest_models::ollama;
use selftest_models::ollama::OllamaServer;
use selftest_text::wording::plural;
use serde_json::Value;
use strum::VariantArray as _;

use super::target::Target;
use crate::commands::init::manifest::{Package, PackageProgram, plain_name, toml_name};
use crate::commands::init::target::Agent;
use crate::commands::init::task_api::TaskApi;

/// Most bytes of a file that is read.
const MAX_FILE: u64 = 2 << 20;

/// Most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 500;

/// How long a server that may not be there is waited for.
const OLLAMA_PATIENCE: Duration = Duration::from_millis(700);

/// Where projects keep the description of their API.
const DESCRIPTIONS: [&str; 9] = [
    "openapi.yaml",
    "openapi.yml",
    "openapi.json",
    "swagger.yaml",
    "swagger.json",
    "docs/openapi.yaml",
    "docs/openapi.json",
    "api/openapi.yaml",
    "api/openapi.json",
];

/// Files that say what a project is about, the best first.
const ABOUT: [&str; 3] = ["README.md", "AGENTS.md", "CLAUDE.md"];

const SKILLS: &str = ".claude/skills";

/// A model server of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ollama {
    pub(super) base: String,
    /// Models that can chat and run here, largest first.
    pub(super) models: Vec<String>,
}

/// The findings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The name of the project.
    pub(super) name: String,
    pub(super) programs: Vec<PackageProgram>,
    /// The file that describes an API, and the calls in it that tests can use.
    pub(super) api: Option<(&'static str, Option<TaskApi>)>,
    pub(super) agents: Vec<Agent>,
    pub(super) ollama: Option<Ollama>,
    /// A readable text about the project.
    pub(super) about: Option<&'static str>,
    pub(super) has_rules_for_agents: bool,
    /// Skills in `.claude/skills`.
    pub(super) skills: usize,
    pub(super) has_openai_key: bool,
    /// Files that could not be used, with the reason.
    pub(super) refused: Vec<String>,
}

impl Found {
    /// Looks at the project and at this machine.
    pub(super) async fn look(project: &Path, environment: &Environment) -> Self {
        let mut found = Self {
            agents: agents_on(environment.variables.get("PATH").map_or("", String::as_str)),
            ollama: ollama(environment).await,
            has_openai_key: environment.models.openai_api_key.is_some(),
            ..Self::default()
        };
        let package = found.text(project, "package.json").and_then(|text| {
            Package::read(&text)
                .map_err(|why| found.refused.push(format!("package.json: {why}")))
                .ok()
        });
        let package = package.unwrap_or_default();
        for program in package.programs {
            if is_file_within(project, &program.path) {
                found.programs.push(program);
            } else {
                let (name, path) = (&program.name, &program.path);
                found.refused.push(format!("package.json: {name}: there is no {path} yet"));
            }
        }
        found.name = package
            .name
            .or_else(|| found.text(project, "Cargo.toml").and_then(|text| toml_name(&text)))
            .or_else(|| found.text(project, "pyproject.toml").and_then(|text| toml_name(&text)))
            .or_else(|| plain_name(&project.file_name()?.to_string_lossy()))
            .unwrap_or_else(|| "project".to_owned());
        found.look_for_api(project);
        let readable = |name: &&&str| read(project, name).is_ok_and(|text| text.is_some());
        found.about = ABOUT.iter().find(readable).copied();
        found.has_rules_for_agents = is_file_within(project, "AGENTS.md");
        found.skills = skills(&project.join(SKILLS));
        found
    }

    fn look_for_api(&mut self, project: &Path) {
        for name in DESCRIPTIONS {
            let Some(text) = self.text(project, name) else { continue };
            let parsed: Result<Value, String> =
                if Path::new(name).extension().is_some_and(|kind| kind == "json") {
                    serde_json::from_str(&text).map_err(|error| error.to_string())
                } else {
                    serde_yaml::from_str(&text).map_err(|error| error.to_string())
                };
            match parsed {
                Ok(document) => self.api = Some((name, TaskApi::of(&document))),
                Err(why) => {
                    let why = selftest_text::one_line(&why, 160);
                    self.refused.push(format!("{name}: cannot be read: {why}"));
                }
            }
            return;
        }
    }

    /// The text of a file, where there is one that can be used.
    fn text(&mut self, project: &Path, name: &str) -> Option<String> {
        match read(project, name) {
            Ok(text) => text,
            Err(why) => {
                self.refused.push(format!("{name}: {why}"));
                None
            }
        }
    }

    /// Possible targets, the likeliest first. Skills are loaded by agents, so that an agent
    /// comes first where there are some.
    pub(super) fn targets(&self) -> Vec<Target> {
        let programs = self.programs.iter().cloned().map(Target::Program);
        let api = self.api.iter().filter_map(|(_, api)| api.clone()).map(Target::Api);
        let agents = || self.agents.iter().copied().map(Target::Agent);
        let model = self.ollama.as_ref().and_then(|ollama| ollama.models.first());
        let assistant = Target::Assistant { model: model.map(|name| format!("ollama/{name}")) };
        let mut targets: Vec<Target> =
            if self.skills > 0 { agents().collect() } else { Vec::new() };
        targets.extend(programs.chain(api));
        if self.skills == 0 {
            targets.extend(agents());
        }
        targets.push(assistant);
        targets
    }

    /// The findings, one line each, and what could not be used.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for PackageProgram { name, path } in &self.programs {
            found.push(format!("package.json: the program {name} ({path})"));
        }
        match &self.api {
            Some((file, Some(api))) => found.push(format!("{file}: tasks by POST {}", api.submit)),
            Some((file, None)) => found.push(format!(
                "{file}: no call that takes a prompt with one that tells what became of it"
            )),
            None => {}
        }
        if !self.agents.is_empty() {
            let names: Vec<&str> = self.agents.iter().map(|agent| agent.program()).collect();
            found.push(format!("on PATH: {}", names.join(", ")));
        }
        if let Some(ollama) = &self.ollama {
            let count = plural(ollama.models.len() as u64, "chat model");
            found.push(format!("Ollama at {}: {count}", ollama.base));
        }
        if self.has_rules_for_agents {
            found.push("AGENTS.md".to_owned());
        }
        if self.skills > 0 {
            found.push(format!("{SKILLS}: {}", plural(self.skills as u64, "skill")));
        }
        if found.is_empty() {
            found.push("no agent, API or program; the built-in assistant stands in".to_owned());
        }
        let unused = self.refused.iter().map(|why| ("unused", why.clone()));
        found.into_iter().map(|line| ("found", line)).chain(unused).collect()
    }
}

/// The text of a file of the project; none where there is none. The error says why it cannot be
/// used. Pipes and devices are not opened, and no link leads out of the project.
fn read(project: &Path, name: &str) -> Result<Option<String>, String> {
    let path = project.join(name);
    let Ok(real) = path.canonicalize() else { return Ok(None) };
    if !real.starts_with(project) {
        return Err("it leads out of the project".to_owned());
    }
    if !real.is_file() {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(&real).map_err(|error| format!("cannot be read: {error}"))?;
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("it has more than {} MB", MAX_FILE >> 20));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned())
}

fn is_file_within(project: &Path, path: &str) -> bool {
    let real = project.join(path).canonicalize();
    real.is_ok_and(|real| real.starts_with(project) && real.is_file())
}

/// Skills below a folder: folders with a `SKILL.md`.
fn skills(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).flatten();
    entries.filter(|entry| entry.path().join("SKILL.md").is_file()).count()
}

/// The agents in absolute folders of a `PATH`: a relative one would be the project's to choose.
fn agents_on(path: &str) -> Vec<Agent> {
    let folders: Vec<_> =
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let is_there =
        |agent: &Agent| folders.iter().any(|folder| is_program(&folder.join(agent.program())));
    Agent::VARIANTS.iter().copied().filter(is_there).collect()
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    ["exe", "cmd"].iter().any(|extension| path.with_extension(extension).is_file())
}

/// The Ollama server, where one answers at once.
async fn ollama(environment: &Environment) -> Option<Ollama> {
    let base = ollama::base_address(environment.models.ollama_host.as_deref());
    let seconds = OLLAMA_PATIENCE.as_secs_f64();
    let settings = ModelSettings {
        connect_seconds: seconds,
        first_byte_seconds: seconds,
        total_seconds: seconds,
        ..ModelSettings::default()
    };
    let server = OllamaServer::new(&base, &settings).ok()?;
    let answered = tokio::time::timeout(OLLAMA_PATIENCE, server.models()).await;
    let mut tags = answered.ok()?.ok()?;
    tags.retain(|tag| tag.can_chat() && !tag.is_cloud());
    tags.sort_by(|a, b| b.size.cmp(&a.size).then(a.name.cmp(&b.name)));
    let models = tags.into_iter().map(|tag| tag.name).take(MAX_ENTRIES).collect();
    Some(Ollama { base, models })
}
