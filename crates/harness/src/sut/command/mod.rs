//! The `command` adapter: a program per case, over stdio, confined.
//!
//! `json_lines`: one JSON object per line. The program reads
//! `{"type":"task","session_id","task_group_id","task_type","prompt"}` and writes
//! `{"type":"result","status","output"}`, where it may add `tool_calls`, a list of
//! `{"name","arguments"}`, and `tokens`; when it asked back, or a case has
//! more messages, it may read `{"type":"reply","reply"}` and writes another result. Lines of other types, such as `log`,
//! are read over; anything else is an error.
//!
//! `text`: the prompt is on stdin or an argument, the answer is all of stdout, the exit code 0;
//! the status is inferred as [`crate::sut::status`] says. For a reply the program is started
//! again, with the conversation as its prompt: `User: …`, `Assistant: …` and `User: …`, with an
//! empty line between them.
//!
//! Not its business: time limits, and what is asked.

mod check;
mod environment;
mod process;
mod scratch;
mod session;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::confine::{Policy, landlock_abi};
use super::project::Workspace;
use super::skill::Skill;
use super::sut_settings::{CommandSettings, WorkFolder};
use super::{Fixture, Isolation, SutError, SutSession, SystemUnderTest, Task};
pub use check::CommandRunner;
use scratch::Scratch;
use selftest_text::redact::Redactor;
pub(in crate::sut) use session::CommandSession;
pub(in crate::sut) use session::GrantedView;

/// Name of the skill's file in the scratch folder of a case.
const SKILL_FILE: &str = "SKILL.md";

/// Name of the copy of the project in the scratch folder of a case.
const WORKSPACE: &str = "project";

/// A program under test.
pub struct CommandSut {
    setup: Arc<Setup>,
    abi: OnceLock<i32>,
    skill: Option<Arc<Skill>>,
}

/// Where programs are run.
#[derive(Clone)]
pub struct CommandHost {
    /// The folder that the program works in.
    pub project: PathBuf,
    /// Hints, rubrics, verdicts and reports: the program cannot read them, whether they exist yet
    /// or not.
    pub protected: Vec<PathBuf>,
    /// Holds a folder for each case.
    pub scratch_root: PathBuf,
    /// This program, which supervises the other.
    pub harness: PathBuf,
    /// The environment of this program.
    pub environment: BTreeMap<String, String>,
    /// Knows the secrets.
    pub redactor: Arc<Redactor>,
}

impl CommandHost {
    /// The same with absolute paths.
    fn absolute(mut self) -> Self {
        for path in [&mut self.project, &mut self.scratch_root, &mut self.harness] {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        self
    }

    fn home(&self) -> Option<&Path> {
        self.environment.get("HOME").map(Path::new).filter(|home| home.is_absolute())
    }

    /// A program, found as a shell would find it from the project folder. The error says why there
    /// is none.
    fn find(&self, name: &str, path: &OsStr) -> Result<PathBuf, String> {
        let candidates: Vec<PathBuf> = if name.contains('/') {
            let path = self.project.join(name);
            vec![std::path::absolute(&path).unwrap_or(path)]
        } else {
            let folders = std::env::split_paths(path);
            folders.map(|folder| self.project.join(folder).join(name)).collect()
        };
        let found = candidates.iter().find(|path| is_executable(path));
        found.cloned().ok_or_else(|| match candidates.iter().find(|path| path.is_file()) {
            Some(path) => format!("{} is not executable", path.display()),
            None if name.contains('/') => format!("there is no {}", candidates[0].display()),
            None => format!("there is no program `{name}` on PATH"),
        })
    }

    /// Makes a folder that only this user can enter. The error is one of the disk.
    fn make_scratch(&self, name: &str) -> Result<Scratch, String> {
        Scratch::make(&self.scratch_root, name)
    }

    /// The rights of a program that works in this folder, but for those to write there.
    fn policy(&self, folder: &Path, path: &OsStr) -> Policy {
        let mut policy = Policy::for_project(folder, Some(path), self.home());
        policy.protected = self.protected.iter().map(|path| self.project.join(path)).collect();
        policy
    }
}

/// State that all sessions share.
struct Setup {
    settings: CommandSettings,
    host: CommandHost,
}

impl Setup {
    /// The program with its arguments.
    fn program(&self) -> Result<Vec<OsString>, SutError> {
        let not_started = |what: String| SutError::NotStarted {
            what,
            hint: Some("correct sut.command.run in the config".to_owned()),
        };
        let (name, arguments) = self
            .settings
            .run
            .split_first()
            .ok_or_else(|| not_started("sut.command.run names no program".to_owned()))?;
        let found = self.host.find(name, self.path()).map_err(not_started)?;
        let mut program = vec![found.into_os_string()];
        program.extend(arguments.iter().map(OsString::from));
        Ok(program)
    }

    fn path(&self) -> &OsStr {
        let set =
            self.settings.environment.get("PATH").or_else(|| self.host.environment.get("PATH"));
        set.map_or(OsStr::new(DEFAULT_PATH), OsStr::new)
    }

    /// The rights of the program in this folder.
    fn policy(&self, folder: &Path) -> Policy {
        let Self { settings, host } = self;
        let mut policy = host.policy(folder, self.path());
        policy.allow = settings.readable.iter().map(|path| host.project.join(path)).collect();
        if let Ok(program) = self.program() {
            policy.allow.extend(program.first().map(PathBuf::from));
        }
        policy.ports.clone_from(&settings.tcp_ports);
        // The folders of other cases are nobody's business either.
        policy.protect_aside(&host.scratch_root);
        policy
    }
}

/// `PATH` where none is set.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

impl CommandSut {
    /// A program of these settings.
    pub fn new(settings: CommandSettings, host: CommandHost) -> Self {
        let setup = Arc::new(Setup { settings, host: host.absolute() });
        Self { setup, abi: OnceLock::new(), skill: None }
    }

    fn abi(&self) -> i32 {
        *self.abi.get_or_init(landlock_abi)
    }

    fn make_scratch(&self, name: &str) -> Result<Scratch, SutError> {
        let hint = || Some("free the disk, or make the folder above it writable".to_owned());
        let made = self.setup.host.make_scratch(name);
        made.map_err(|what| SutError::NotStarted { what, hint: hint() })
    }

    /// The copy of the project that a case works in, below its scratch folder.
    async fn workspace(
        &self,
        scratch: &Path,
        fixtures: &Arc<[Fixture]>,
    ) -> Result<Option<Workspace>, SutError> {
        if self.setup.settings.work_folder == WorkFolder::Project {
            return Ok(None);
        }
        let (setup, folder) = (Arc::clone(&self.setup), scratch.join(WORKSPACE));
        let fixtures = Arc::clone(fixtures);
        let copied = tokio::task::spawn_blocking(move || {
            Workspace::copy(&setup.host.project, &setup.host.protected, &fixtures, folder)
        });
        match copied.await {
            Ok(Ok(workspace)) => Ok(Some(workspace)),
            Ok(Err(error)) => Err(SutError::failed(format!("cannot copy the project: {error}"))),
            Err(error) => Err(SutError::failed(format!("cannot copy the project: {error}"))),
        }
    }
}

impl SystemUnderTest for CommandSut {
    fn describe(&self) -> String {
        let settings = &self.setup.settings;
        let protocol = settings.protocol;
        let run = self.setup.host.redactor.apply(&settings.run.join(" ")).into_owned();
        format!("command {} ({protocol})", selftest_text::one_line(&run, 120))
    }

    fn isolation(&self) -> Isolation {
        let mut isolation = isolation(self.abi(), &self.setup.settings);
        if self.setup.host.project.join(".git").exists() {
            isolation
                .not_enforced
                .push("what was committed of protected files can be read from .git".to_owned());
        }
        isolation
    }

    fn can_reach_project(&self) -> bool {
        // Even where the kernel forbids writing: what is compared need not be believed.
        true
    }

    fn takes_fixtures(&self) -> bool {
        self.setup.settings.work_folder == WorkFolder::Copy
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        async {
            self.setup.program()?;
            if !is_executable(&self.setup.host.harness) {
                let what = format!("{} is not executable", self.setup.host.harness.display());
                return Err(SutError::NotStarted { what, hint: None });
            }
            scratch::sweep(&self.setup.host.scratch_root);
            let probe = self.make_scratch(&format!("{}{}", scratch::PROBE, std::process::id()))?;
            let written = std::fs::write(probe.path.join("probe"), "x");
            let removed = std::fs::remove_dir_all(&probe.path);
            written.and(removed).map_err(|error| SutError::NotStarted {
                what: format!("cannot write to {}: {error}", probe.path.display()),
                hint: Some("free the disk, or make the folder above it writable".to_owned()),
            })
        }
        .boxed()
    }

    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        Ok(Arc::new(self.having(skill)))
    }

    fn open<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        async move { Ok(Box::new(self.session(task).await?) as Box<dyn SutSession>) }.boxed()
    }
}

impl CommandSut {
    /// The same program with this skill at hand.
    pub(in crate::sut) fn having(&self, skill: Arc<Skill>) -> Self {
        Self { setup: Arc::clone(&self.setup), abi: OnceLock::new(), skill: Some(skill) }
    }

    /// A session in the namespace of the task, whose program is not started yet.
    pub(in crate::sut) fn session<'a>(
        &'a self,
        task: &'a Task,
    ) -> BoxFuture<'a, Result<CommandSession, SutError>> {
        async move {
            let scratch = self.make_scratch(task.session_id.as_str())?;
            if let Some(skill) = &self.skill {
                let file = scratch.path.join(SKILL_FILE);
                std::fs::write(&file, &skill.text).map_err(|error| {
                    SutError::failed(format!("cannot write {}: {error}", file.display()))
                })?;
            }
            let workspace = self.workspace(&scratch.path, &task.fixtures).await?;
            let folder = workspace.as_ref().map_or(&*self.setup.host.project, Workspace::folder);
            let mut policy = self.setup.policy(folder);
            policy.write.push(scratch.path.clone());
            policy.required = self.abi() > 0;
            let (setup, has_skill) = (Arc::clone(&self.setup), self.skill.is_some());
            let session =
                CommandSession::new(setup, task.clone(), scratch, has_skill, policy, workspace);
            Ok(session)
        }
        .boxed()
    }
}

/// Rules that this kernel enforces, by the version of Landlock's interface.
fn isolation(abi: i32, settings: &CommandSettings) -> Isolation {
    let ports = match settings.tcp_ports.as_slice() {
        [] => "none".to_owned(),
        ports => ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let project = match settings.work_folder {
        WorkFolder::Project => "the project",
        WorkFolder::Copy => "a copy of the project in its scratch folder",
    };
    let rules: &[(i32, String)] = &[
        (
            1,
            format!(
                "reads only {project}, system folders, toolchains on PATH and `readable`; not the \
                 reports, prompts and configuration that hold answers"
            ),
        ),
        (1, "writes only to a scratch folder of its own, which is HOME and TMPDIR".to_owned()),
        (3, "cannot truncate files that it may not write".to_owned()),
        (4, format!("connects by TCP only to these ports: {ports}; listens on none")),
        (5, "cannot control devices".to_owned()),
        (6, "cannot signal processes or reach abstract Unix sockets outside".to_owned()),
        (9, "cannot connect to Unix sockets outside its scratch folder".to_owned()),
    ];
    let ending = if cfg!(target_os = "linux") {
        "the whole process tree is ended with the case, also processes that detached"
    } else {
        "the process group is ended with the case"
    };
    let mut enforced = vec![
        "environment cleared to an allow-list and the configured variables".to_owned(),
        ending.to_owned(),
    ];
    if cfg!(target_os = "linux") {
        enforced.push("has none of root's powers but to pass over file permissions".to_owned());
    }
    let mut not_enforced = Vec::new();
    for (least, rule) in rules {
        if abi >= *least {
            enforced.push(format!("{rule} (Landlock)"));
        } else if cfg!(target_os = "linux") {
            not_enforced.push(format!(
                "not held to this, for which Landlock ABI {least} is needed and the kernel has \
                 {abi}: {rule}"
            ));
        }
    }
    if !cfg!(target_os = "linux") {
        not_enforced.push(
            "files and network are not limited on this system, and a process that detaches \
             survives: Landlock exists on Linux only"
                .to_owned(),
        );
    }
    not_enforced.push("UDP, ICMP and name lookups are not limited".to_owned());
    not_enforced.push(
        "names, sizes and times of files can be seen everywhere, and so can the command lines of \
         other processes; modes, owners and times of its user's files can be changed"
            .to_owned(),
    );
    not_enforced.push("memory and processor time are not limited, only wall time".to_owned());
    Isolation { enforced, not_enforced }
}
