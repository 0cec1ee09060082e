//! Finds in a project and on this machine what tests could be about: its manifest with its name and
//! the programs that it installs, skills, APIs, agents. Reads files up to a bound and names on
//! `PATH`, asks a local Ollama server for its models; starts nothing. What a manifest holds is a
//! stranger's.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use strum::VariantArray as _;

use super::target::{PackageProgram, Target};
use crate::commands::init::commands;
use crate::commands::init::commands::FoundCommand;
use crate::commands::init::skills::FoundSkills;
use crate::commands::init::target::Agent;
use crate::commands::init::task_api::AgentApi;
use selftest_checks::scenario::GeneratedCase;
use selftest_config::Environment;
use selftest_harness::scenario::ground::{BUILT_IN_PATH, ExcerptSources, SourceFile};
use selftest_harness::scenario::{ScenarioKind, SeededDraw, settled};
use selftest_harness::sut::project::{ProjectFile, read_project_files};
use selftest_models::model_settings::ModelSettings;
use selftest_models::ollama::OllamaServer;
use selftest_models::{ollama, openai};
use selftest_text::file::read_bounded;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;

/// Most bytes of a name or a path.
const MAX_NAME: usize = 80;

/// Most programs that are taken from one manifest.
const MAX_PROGRAMS: usize = 20;

/// The used part of a `package.json`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: Option<String>,
    pub(super) programs: Vec<PackageProgram>,
}

/// A `package.json` is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("not JSON: {0}")]
pub(super) struct ManifestError(#[from] serde_json::Error);

impl Package {
    /// Reads a `package.json`.
    pub(super) fn read(text: &str) -> Result<Self, ManifestError> {
        // Editors on Windows write a byte order mark, which npm accepts and serde_json refuses.
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))?;
        let name = value.get("name").and_then(Value::as_str).and_then(plain_name);
        let mut programs = Vec::new();
        match value.get("bin") {
            // A single path: the program has the name of the package.
            Some(Value::String(path)) => {
                let name = name.clone().unwrap_or_else(|| "the program".to_owned());
                programs.extend(path_within(path).map(|path| PackageProgram { name, path }));
            }
            Some(Value::Object(all)) => {
                for (name, path) in all.iter().take(MAX_PROGRAMS) {
                    let path = path.as_str().and_then(path_within);
                    programs.extend(
                        plain_name(name)
                            .zip(path)
                            .map(|(name, path)| PackageProgram { name, path }),
                    );
                }
            }
            _ => {}
        }
        Ok(Self { name, programs })
    }
}

/// The name in a `Cargo.toml` or `pyproject.toml`: the first `name = "…"` of the package's table.
pub(super) fn toml_name(text: &str) -> Option<String> {
    let mut in_package = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_package = line == "[package]" || line == "[project]" || line == "[tool.poetry]";
        } else if in_package
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "name"
        {
            return plain_name(value.trim().trim_matches(['"', '\'']));
        }
    }
    None
}

/// A name on one line and without its scope: `@team/tool` is `tool`.
pub(super) fn plain_name(name: &str) -> Option<String> {
    let name = one_line(name.rsplit('/').next().unwrap_or_default(), MAX_NAME);
    let sound = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' '));
    sound.then_some(name)
}

/// A relative path that stays below where it starts.
fn path_within(path: &str) -> Option<String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let sound = !path.is_empty()
        && path.len() <= 4 * MAX_NAME
        && !path.starts_with(['/', '\\', '-'])
        && !path.chars().any(|c| c.is_control() || c == '\\' || c == ':')
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    sound.then(|| path.to_owned())
}

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

/// Texts that say how an agent is started, the best first.
const TEXTS: [&str; 5] = ["README.md", "AGENTS.md", "CLAUDE.md", "README.rst", "docs/README.md"];

/// Where the services of a project are described.
const COMPOSE: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];

/// Where Task keeps its tasks.
const TASKFILES: [&str; 2] = ["Taskfile.yml", "Taskfile.yaml"];

/// Folders in which repositories of several projects keep them; the repository's own as well.
const PARTS: [&str; 6] = ["agents", "apps", "packages", "services", "bots", "."];

/// Most folders that are looked at as projects of their own, and most of them that are named.
const MAX_FOLDERS: usize = 60;
const MAX_PARTS: usize = 8;

/// Names of programs in the folder of a project that are likely its agent.
const STEMS: [&str; 7] = ["agent", "bot", "assistant", "chat", "ask", "main", "app"];

/// Most commands that are offered, and most ports that are tried.
const MAX_COMMANDS: usize = 6;

/// Tokens of the project's files from which a case is made.
const KNOWN_TOKENS: u32 = 20_000;

/// A model server of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ollama {
    pub(super) base: String,
    /// Models that can chat and run here, largest first.
    pub(super) models: Vec<String>,
}

/// A project within a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundPart {
    /// From the folder of the repository, with `/`.
    pub(super) path: String,
    /// The command that starts its agent.
    command: String,
}

/// The findings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The name of the project, by its manifest or its folder.
    pub(super) name: String,
    /// The title of its README, if that is another name.
    pub(super) title: Option<String>,
    pub(super) programs: Vec<PackageProgram>,
    /// Commands that texts of the project name, the likeliest first.
    pub(super) commands: Vec<FoundCommand>,
    /// Commands that start a server, each with its origin.
    pub(super) servers: Vec<String>,
    /// Projects within this one that have an agent.
    pub(super) parts: Vec<FoundPart>,
    /// Ports that the project names and that a server of this machine listens on.
    pub(super) ports: Vec<u16>,
    /// The file that describes an API, and the calls in it that tests can use.
    pub(super) api: Option<(&'static str, Option<AgentApi>)>,
    pub(super) agents: Vec<Agent>,
    pub(super) ollama: Option<Ollama>,
    /// A case about what a text of the project says; none if there is no text.
    pub(super) known: Option<GeneratedCase>,
    pub(super) has_rules_for_agents: bool,
    pub(super) skills: FoundSkills,
    pub(super) has_openai_key: bool,
    /// Files that could not be used, with the reason.
    pub(super) refused: Vec<String>,
}

impl Found {
    /// Looks at the project and at this machine.
    pub(super) async fn look(project: &Path, environment: &Environment) -> Self {
        let mut found = Self {
            // Programs on PATH, a local server and a key are the machine's; all else is read from
            // the project's folder, which may be a stranger's.
            agents: agents_on(environment.variables.get("PATH").map_or("", String::as_str)),
            ollama: ollama(environment).await,
            has_openai_key: environment.models.secret(openai::API_KEY).is_some(),
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
                // Often the output of a build that has not run.
                found.refused.push(format!("package.json: {name}: there is no {path} yet"));
            }
        }
        found.name = package
            .name
            .or_else(|| found.text(project, "Cargo.toml").and_then(|text| toml_name(&text)))
            .or_else(|| found.text(project, "pyproject.toml").and_then(|text| toml_name(&text)))
            .or_else(|| plain_name(&project.file_name()?.to_string_lossy()))
            .unwrap_or_else(|| "project".to_owned());
        found.title = found
            .text(project, "README.md")
            .and_then(|text| title(&text))
            .filter(|title| !title.eq_ignore_ascii_case(&found.name));
        found.look_for_api(project);
        found.look_for_commands(project, environment);
        found.look_for_servers(project).await;
        if found.api.as_ref().is_none_or(|(_, api)| api.is_none()) {
            for name in TEXTS {
                let text = found.text(project, name);
                if let Some(api) = text.and_then(|text| AgentApi::of_curl(&text)) {
                    found.api = Some((name, Some(api)));
                    break;
                }
            }
        }
        if found.ports.is_empty() && found.api.is_none() {
            let hint = "it serves: start it, and `selftest init --force` asks it for its API";
            let servers = found.servers.iter().map(|server| format!("{server}: {hint}"));
            found.refused.extend(servers);
        }
        found.look_for_parts(project, environment);
        found.known = known_case(project);
        found.has_rules_for_agents = is_file_within(project, "AGENTS.md");
        found.skills = FoundSkills::look(project);
        found.refused.extend(found.skills.refused.iter().cloned());
        found
    }

    /// Collects the commands in texts of the project whose files are there.
    fn look_for_commands(&mut self, project: &Path, environment: &Environment) {
        let mut all = Vec::new();
        for name in TEXTS {
            if let Some(text) = self.text(project, name) {
                all.extend(commands::of_markdown(name, &text));
            }
        }
        if let Some(text) = self.text(project, "package.json") {
            all.extend(commands::of_scripts("package.json", "scripts", &text));
        }
        for (name, key) in [("composer.json", "scripts"), ("deno.json", "tasks")] {
            if let Some(text) = self.text(project, name) {
                all.extend(commands::of_scripts(name, key, &text));
            }
        }
        if let Some(text) = self.text(project, "pyproject.toml") {
            all.extend(commands::of_pyproject(&text));
        }
        for name in ["Makefile", "justfile"] {
            if let Some(text) = self.text(project, name) {
                all.extend(commands::of_targets(name, &text));
            }
        }
        if let Some(text) = self.text(project, "Procfile") {
            all.extend(commands::of_procfile(&text));
        }
        if let Some(text) = self.text(project, "Dockerfile") {
            all.extend(commands::of_dockerfile("Dockerfile", &text));
        }
        for name in COMPOSE.into_iter().chain(TASKFILES) {
            if let Some(text) = self.text(project, name)
                && let Ok(document) = serde_yaml::from_str::<Value>(&text)
            {
                all.extend(commands::of_compose(name, &document));
                all.extend(commands::of_taskfile(name, &document));
            }
        }
        // File names are the weakest hint, so they count only if no text names a command.
        if all.is_empty() {
            let scripts = STEMS.iter().flat_map(|stem| {
                ["py", "js", "mjs", "rb", "sh"].map(|end| format!("{stem}.{end}"))
            });
            let scripts = scripts.filter(|path| is_file_within(project, path));
            all.extend(scripts.filter_map(|path| commands::of_script(&path)));
        }
        let folders = environment.variables.get("PATH").map_or("", String::as_str);
        let is_there = |name: &str| {
            name.contains('/') && is_file_within(project, name.trim_start_matches("./"))
                || absolute_folders(folders).any(|folder| is_program(&folder.join(name)))
        };
        for mut command in all {
            // Finders yield no command without words, so the index is valid.
            let first = &mut command.words[0];
            // Debian and macOS have only `python3`.
            if first == "python" && !is_there("python") {
                "python3".clone_into(first);
            }
            if self.commands.iter().any(|other| other.words == command.words) {
                continue;
            }
            if command.is_server {
                self.servers.push(format!("{}: `{}`", command.origin, command.line));
                continue;
            }
            let why = if let Some(built) = self.built_program(&command.words) {
                let is_built = |path: &&String| is_file_within(project, path);
                let path = built.iter().find(is_built).cloned();
                let arguments = commands::arguments_of_cargo_run(&command.words);
                command
                    .words
                    .splice(.., path.iter().map(|path| format!("./{path}")).chain(arguments));
                let build = || "build it first: in the sandbox nothing is compiled".to_owned();
                path.is_none().then(build)
            } else {
                let is_missing =
                    |path: &&str| !is_file_within(project, path.trim_start_matches("./"));
                let missing = command.files().find(is_missing);
                let not_there = missing.map(|path| format!("there is no {path} here"));
                let program = &command.words[0];
                not_there
                    .or_else(|| (!is_there(program)).then(|| format!("{program} is not on PATH")))
            };
            match why {
                None => self.commands.push(command),
                Some(why) => {
                    let FoundCommand { origin, line, .. } = command;
                    self.refused.push(format!("{origin}: `{line}`: {why}"));
                }
            }
        }
        // A stable sort: of equals, the one from the better text stays first.
        self.commands.sort_by_key(|command| std::cmp::Reverse(command.rank()));
        self.commands.truncate(MAX_COMMANDS);
    }

    /// Where the program lies that `cargo run` would build and start. `None` for other commands.
    fn built_program(&self, words: &[String]) -> Option<[String; 2]> {
        let name = commands::program_of_cargo_run(words, &self.name)?;
        Some(["release", "debug"].map(|profile| format!("target/{profile}/{name}")))
    }

    /// Looks for projects within a repository that names no agent of its own.
    fn look_for_parts(&mut self, project: &Path, environment: &Environment) {
        let is_own = self.commands.iter().any(|command| command.rank() > 0);
        if is_own || !self.programs.is_empty() || self.api.is_some() {
            return;
        }
        let mut folders = Vec::new();
        for group in PARTS {
            let entries = std::fs::read_dir(project.join(group)).into_iter().flatten();
            let mut paths: Vec<PathBuf> = entries
                .take(MAX_ENTRIES)
                .filter_map(|entry| entry.ok()?.path().canonicalize().ok())
                .filter(|path| path.is_dir() && path.starts_with(project))
                .collect();
            paths.sort();
            folders.extend(paths);
        }
        let mut seen = std::collections::BTreeSet::new();
        folders.retain(|path| seen.insert(path.clone()));
        for folder in folders.into_iter().take(MAX_FOLDERS) {
            let Ok(path) = folder.strip_prefix(project) else { continue };
            let path = path.to_string_lossy().replace('\\', "/");
            let is_plain = path_within(&path).is_some() && !path.starts_with('.');
            let mut part = Self::default();
            part.look_for_commands(&folder, environment);
            let command = part.commands.first().filter(|command| command.rank() > 0);
            if let Some(command) = command.filter(|_| is_plain) {
                self.parts.push(FoundPart { path, command: command.words.join(" ") });
            }
        }
        self.parts.truncate(MAX_PARTS);
    }

    /// Finds out which of the ports that the project names are listened on, and asks those servers for
    /// the description of their API.
    async fn look_for_servers(&mut self, project: &Path) {
        let mut named = Vec::new();
        for name in TEXTS.iter().chain(&COMPOSE).chain(&["Dockerfile", "Procfile"]) {
            for port in self.text(project, name).iter().flat_map(|text| local_ports(text)) {
                if !named.contains(&port) {
                    named.push(port);
                }
            }
        }
        // A port behind a filter takes the whole timeout, one that is closed answers at once.
        for port in named.into_iter().take(MAX_COMMANDS) {
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            let connects = tokio::net::TcpStream::connect(address);
            if !matches!(tokio::time::timeout(OLLAMA_PATIENCE, connects).await, Ok(Ok(_))) {
                continue;
            }
            self.ports.push(port);
            if self.api.as_ref().is_none_or(|(_, api)| api.is_none())
                && let Some(document) = description_of(port).await
                && let Some(api) = AgentApi::of(&document)
            {
                // The description may name the public server. Tests go to the one that answered
                // here.
                let base_url = format!("http://127.0.0.1:{port}");
                self.api =
                    Some(("openapi.json", Some(AgentApi { base_url, elsewhere: None, ..api })));
            }
        }
    }

    fn look_for_api(&mut self, project: &Path) {
        for name in DESCRIPTIONS {
            let Some(text) = self.text(project, name) else { continue };
            let is_json = Path::new(name).extension().is_some_and(|kind| kind == "json");
            let parsed: anyhow::Result<Value> = if is_json {
                serde_json::from_str(&text).map_err(Into::into)
            } else {
                serde_yaml::from_str(&text).map_err(Into::into)
            };
            // Only the first description that exists counts; further ones are usually copies in
            // another format.
            match parsed {
                Ok(document) => self.api = Some((name, AgentApi::of(&document))),
                Err(why) => {
                    let why = selftest_text::one_line(&why.to_string(), 160);
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
                let why = format!("{name}: {why}");
                if !self.refused.contains(&why) {
                    self.refused.push(why);
                }
                None
            }
        }
    }

    /// Possible targets, the likeliest first. Skills are loaded by agents, so that an agent
    /// comes first where there are some.
    pub(super) fn targets(&self) -> Vec<Target> {
        let (likely, others): (Vec<FoundCommand>, Vec<_>) =
            self.commands.iter().cloned().partition(|command| command.rank() > 0);
        let likely = likely.into_iter().map(Target::Command);
        let others = others.into_iter().map(Target::Command);
        let programs = self.programs.iter().cloned().map(Target::Program);
        let api = self.api.iter().filter_map(|(_, api)| api.clone()).map(Target::Api);
        let agents = || self.agents.iter().copied().map(Target::Agent);
        let model = self.ollama.as_ref().and_then(|ollama| ollama.models.first());
        let assistant = Target::Assistant { model: model.map(|name| format!("ollama/{name}")) };
        let mut targets: Vec<Target> =
            if self.skills.count > 0 { agents().collect() } else { Vec::new() };
        targets.extend(likely.chain(programs).chain(api).chain(others));
        if self.skills.count == 0 {
            targets.extend(agents());
        }
        targets.push(assistant);
        targets
    }

    /// The findings, one line each, and what could not be used.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for command in &self.commands {
            found.push(format!("{}: `{}`", command.origin, command.words.join(" ")));
        }
        for FoundPart { path, command } in &self.parts {
            found.push(format!("{path}: `{command}`; `selftest -C {path} init` tests it"));
        }
        for port in &self.ports {
            found.push(format!("port {port}: a server listens, and the project names it"));
        }
        for PackageProgram { name, path } in &self.programs {
            found.push(format!("package.json: the program {name} ({path})"));
        }
        match &self.api {
            Some((file, Some(api))) => found.push(format!("{file}: {}", api.describe())),
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
        found.extend(self.skills.lines());
        if found.is_empty() {
            found.push("no agent, API or program; the example agent stands in".to_owned());
        }
        let unused = self.refused.iter().map(|why| ("unused", why.clone()));
        found.into_iter().map(|line| ("found", line)).chain(unused).collect()
    }
}

/// A case about a sentence of the project whose right answer checks know.
fn known_case(project: &Path) -> Option<GeneratedCase> {
    let files = read_project_files(project, &[], KNOWN_TOKENS, &Redactor::default());
    let is_text = |file: &ProjectFile| {
        let ending = Path::new(&file.path).extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| ["md", "txt", "rst"].contains(&ending))
    };
    let sources = files.into_iter().filter(is_text).map(|file| {
        let text = file.own_text().to_owned();
        SourceFile { path: file.path, text }
    });
    let sources = ExcerptSources::new(sources);
    // A fixed seed, so that a second `init` finds the same case.
    let mut draw = SeededDraw::new(1);
    let case = settled::case(ScenarioKind::Evidence, &sources, &mut draw, |_| true)?;
    // Without a usable sentence the sources fall back to the built-in text, which says nothing
    // about this project.
    let is_own = case.grounds.excerpts.iter().all(|excerpt| excerpt.path != BUILT_IN_PATH);
    is_own.then_some(case)
}

/// Returns the name in the first heading of a README: `# Ferry desk: times and tickets` is `Ferry
/// desk`. A heading that is no plain name has none.
fn title(readme: &str) -> Option<String> {
    let heading = readme.lines().find_map(|line| line.strip_prefix("# "))?;
    let name = heading.split([':', '—', '–', '|', '(']).next().unwrap_or_default();
    let name = name.split(" - ").next().unwrap_or_default();
    let name = name.trim().trim_matches(['*', '_', '`', ' ']);
    // Longer ones are sentences.
    plain_name(name).filter(|name| name.chars().count() <= 40 && name.split(' ').count() <= 4)
}

/// A file of the project is not used.
#[derive(Debug, thiserror::Error)]
enum ProjectFileError {
    #[error("it leads out of the project")]
    LinkOut,
    #[error("it is no file")]
    NotFile,
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("it has more than {} MB", MAX_FILE >> 20)]
    TooLarge,
    #[error("it is not UTF-8")]
    NotUtf8,
}

/// Returns the text of a file of the project, if there is one. Pipes and devices are not opened,
/// and no link leads out of the project.
fn read(project: &Path, name: &str) -> Result<Option<String>, ProjectFileError> {
    let path = project.join(name);
    let Ok(real) = path.canonicalize() else { return Ok(None) };
    // Checked on the resolved path: the project may hold links that a stranger made.
    if !real.starts_with(project) {
        return Err(ProjectFileError::LinkOut);
    }
    let bytes = read_bounded(&real, MAX_FILE).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => ProjectFileError::TooLarge,
        ErrorKind::InvalidInput | ErrorKind::IsADirectory => ProjectFileError::NotFile,
        _ => error.into(),
    })?;
    String::from_utf8(bytes).map(Some).map_err(|_| ProjectFileError::NotUtf8)
}

fn is_file_within(project: &Path, path: &str) -> bool {
    let real = project.join(path).canonicalize();
    real.is_ok_and(|real| real.starts_with(project) && real.is_file())
}

/// The absolute folders of a `PATH`: a relative one would be the project's to choose.
fn absolute_folders(path: &str) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute())
}

/// The ports of this machine that a text names, such as `localhost:8000` or `EXPOSE 8000`.
fn local_ports(text: &str) -> Vec<u16> {
    let marks = ["localhost:", "127.0.0.1:", "0.0.0.0:", "EXPOSE ", "--port ", "--port="];
    let behind = marks.iter().flat_map(|mark| text.split(mark).skip(1));
    let number = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse::<u16>().ok().filter(|port| *port >= 80)
    };
    behind.filter_map(number).collect()
}

/// The description that a server of this machine gives of its API.
async fn description_of(port: u16) -> Option<Value> {
    // A proxy of the environment would be asked for its own loopback address.
    let client = reqwest::Client::builder().no_proxy().timeout(OLLAMA_PATIENCE).build().ok()?;
    let url = format!("http://127.0.0.1:{port}/openapi.json");
    let mut reply = client.get(url).send().await.ok()?;
    let (mut body, most) = (Vec::new(), usize::try_from(MAX_FILE).ok()?);
    // Servers that send in chunks, or to the end of the connection, state no length.
    while let Some(chunk) = reply.chunk().await.ok()? {
        if body.len() + chunk.len() > most {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).ok()
}

/// The agents in the folders of a `PATH`.
fn agents_on(path: &str) -> Vec<Agent> {
    let folders: Vec<_> = absolute_folders(path).collect();
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
    let base = ollama::base_address(&environment.models);
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
    // Cloud models send prompts to another machine, so they are used only if the user names one.
    tags.retain(|tag| tag.can_chat() && !tag.is_cloud());
    tags.sort_by(|a, b| b.size.cmp(&a.size).then(a.name.cmp(&b.name)));
    let models = tags.into_iter().map(|tag| tag.name).take(MAX_ENTRIES).collect();
    Some(Ollama { base, models })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(text: &str) -> Vec<(String, String)> {
        let package = Package::read(text).unwrap();
        package.programs.into_iter().map(|program| (program.name, program.path)).collect()
    }

    #[test]
    fn programs_of_a_package() {
        let one = r#"{"name": "@team/helper", "bin": "./bin/helper.js"}"#;
        assert_eq!(programs(one), [("helper".to_owned(), "bin/helper.js".to_owned())]);
        let two = r#"{"bin": {"ask": "cli.mjs", "serve": "bin/serve"}}"#;
        let package = Package::read(two).unwrap();
        let commands: Vec<_> =
            package.programs.iter().map(|program| program.command().words).collect();
        assert_eq!(commands, [vec!["node", "cli.mjs"], vec!["./bin/serve"]]);
    }

    #[test]
    fn paths_out_of_the_project_and_odd_names_are_left_out() {
        for path in ["../../etc/passwd", "/bin/sh", "a/../../b", "", "./", "C:\\x.exe", "-rf"] {
            let text = serde_json::json!({ "name": "x", "bin": path }).to_string();
            assert_eq!(programs(&text), [], "{path}");
        }
        assert_eq!(programs(r#"{"bin": {"a\u001b[31mb": "x.js", "c": 7}}"#), []);
        assert_eq!(programs(r#"{"bin": [1, 2], "name": 3}"#), []);
        assert!(Package::read("{").unwrap_err().to_string().starts_with("not JSON"));
        assert!(Package::read(&"[".repeat(100_000)).is_err(), "no recursion without end");
    }

    #[test]
    fn names_of_toml_manifests() {
        assert_eq!(
            toml_name("[workspace]\nname = \"no\"\n[package]\nname = \"ferry\"\n"),
            Some("ferry".into())
        );
        assert_eq!(toml_name("[project]\n  name = 'times'"), Some("times".into()));
        assert_eq!(toml_name("name = \"nobody\"\n[package]\nname.workspace = true"), None);
        assert_eq!(plain_name("@a/\u{1b}x`y"), None);
    }

    #[test]
    fn a_title_is_a_name_and_no_sentence() {
        let of = |readme: &str| title(readme).unwrap_or_default();
        assert_eq!(of("Badges\n\n# Ferry desk: times and tickets\n"), "Ferry desk");
        assert_eq!(of("# **Ferry** - a bot"), "Ferry");
        assert_eq!(of("# How do I get from the harbour to the town?"), "");
        assert_eq!(of("No heading."), "");
    }
}
