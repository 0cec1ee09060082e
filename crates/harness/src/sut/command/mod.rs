//! The `command` adapter: a sandboxed program per case, over stdio.
//!
//! `json_lines`: one JSON object per line. The program reads
//! `{"type":"task","session_id","task_group_id","task_type","prompt"}` and writes
//! `{"type":"result","status","output"}`. It may add `tool_calls`, a list of
//! `{"name","arguments"}`, and `tokens`. If it asked a question, or the case has more messages, it
//! reads `{"type":"reply","reply"}` and writes another result. Lines of other types, such as `log`,
//! are ignored; anything else is an error.
//!
//! `text`: the prompt is on stdin or an argument, the answer is all of stdout, and the exit code
//! must be 0. The status is inferred, see [`crate::sut::answer`]. For a reply the program is
//! started again with the conversation as its prompt: `User: …`, `Assistant: …` and `User: …`,
//! separated by empty lines.
//!
//! Configured addresses are resolved here, outside the sandbox, so that programs in it need no DNS.
//! Time limits are up to the caller.

mod check;
mod diagnosis;
mod isolation;
mod process;
mod scratch;
mod session;

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::project::{HiddenFiles, Workspace};
use super::skill::{SKILL_FILE, Skill, check_takes_skills, skill_folders};
use super::sut_settings::{
    ACP_SECTION, COMMAND_SECTION, CommandSettings, ProgramSettings, ProtocolSettings, WorkFolder,
};
use super::{Fixture, Isolation, SutError, SutSession, SutTask, SystemUnderTest};
use crate::sut::address::{HostPort, TargetHost};
pub use check::CommandRunner;
use scratch::ScratchFolder;
use selftest_sandbox::limits::SandboxMode;
use selftest_sandbox::{
    self as sandbox, CaseGroup, RunGroup, SandboxLevel, SandboxPolicy, SandboxSupport,
    SandboxUnavailableError,
};
use selftest_text::redact::Redactor;
use session::{CaseResources, LaidSkill};
pub(in crate::sut) use session::{CommandSession, GrantedView};

/// Name of the copy of the project in the scratch folder of a case.
const WORKSPACE: &str = "project";

/// A program under test.
pub struct CommandSut {
    setup: Arc<CommandSetup>,
    skill: Option<Arc<Skill>>,
}

/// The environment in which programs run.
#[derive(Clone)]
pub struct CommandHost {
    /// The folder that the program works in.
    pub project: PathBuf,
    /// Hints, rubrics, verdicts and reports, which the program cannot read whether they exist yet
    /// or not.
    pub protected: Vec<PathBuf>,
    /// Parent of the scratch folders of all cases.
    pub scratch_root: PathBuf,
    /// Path of this executable, which supervises the program.
    pub harness: PathBuf,
    /// The environment of this process.
    pub environment: BTreeMap<String, String>,
    /// Redacts secrets.
    pub redactor: Arc<Redactor>,
    /// Behaviour if programs cannot be sandboxed.
    pub sandbox: SandboxMode,
    /// True if every denied attempt fails its case, and not only one to read the answer key.
    pub fail_on_attempts: bool,
    /// Lazily determined facts, shared by clones.
    pub facts: Arc<HostFacts>,
}

/// A program, or something that it needs, is unavailable.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramStartError {
    #[error("{} is not executable", .0.display())]
    NotExecutable(PathBuf),
    #[error("there is no {}", .0.display())]
    Missing(PathBuf),
    #[error("there is no program `{0}` on PATH")]
    NotOnPath(String),
    #[error("it cannot be kept in its sandbox: {}; {}", .0.what, .0.advice)]
    Sandbox(SandboxUnavailableError),
    #[error("cannot make the scratch folder {}: {source}", path.display())]
    Scratch { path: PathBuf, source: io::Error },
    #[error("cannot make a control group: {0}")]
    CaseGroup(#[source] io::Error),
    #[error(transparent)]
    Spawn(#[from] SutError),
}

/// The run has no control group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct NoRunGroupError(String);

impl NoRunGroupError {
    fn new(why: impl std::fmt::Display) -> Self {
        Self(why.to_string())
    }
}

/// Facts about the machine and the project, determined before the first program starts.
#[derive(Debug, Default)]
pub struct HostFacts {
    standing: OnceLock<Result<SandboxSupport, SandboxUnavailableError>>,
    hidden: OnceLock<HiddenFiles>,
    group: OnceLock<Result<RunGroup, NoRunGroupError>>,
    names: NameCache,
}

impl CommandHost {
    /// Returns the sandbox available on this machine. Blocks for some milliseconds the first time.
    pub fn standing(&self) -> Result<&SandboxSupport, &SandboxUnavailableError> {
        let find = || SandboxSupport::detect(&self.harness, self.sandbox);
        self.facts.standing.get_or_init(find).as_ref()
    }

    /// Returns copies of answers, and secrets, in the project. Blocks the first time.
    fn hidden(&self) -> &HiddenFiles {
        self.facts.hidden.get_or_init(|| HiddenFiles::scan(&self.project, &self.protected))
    }

    /// Returns the control group of this run's programs, or the reason why there is none. Blocks
    /// the first time.
    fn group(&self) -> Result<&RunGroup, &NoRunGroupError> {
        let is_off = self.standing().is_ok_and(|standing| standing.level == SandboxLevel::Off);
        let make = || {
            if is_off {
                return Err(NoRunGroupError::new("there is no sandbox"));
            }
            RunGroup::create().map_err(NoRunGroupError::new)
        };
        self.facts.group.get_or_init(make).as_ref()
    }

    /// Creates a control group for one case, if available, and adds it to the policy. The error is
    /// one of the kernel's.
    fn create_case_group(
        &self,
        policy: &mut SandboxPolicy,
    ) -> Result<Option<CaseGroup>, ProgramStartError> {
        // Without control groups the other limits of the sandbox remain, and the report says what
        // is missing.
        let Ok(run) = self.group() else { return Ok(None) };
        let group = run.create_case(&policy.limits).map_err(ProgramStartError::CaseGroup)?;
        policy.cgroup = Some(group.path().to_owned());
        policy.cgroup_counts_processes = run.enforced_limits().processes;
        policy.cgroup_counts_memory = run.enforced_limits().memory;
        Ok(Some(group))
    }

    /// Returns the same host with absolute paths.
    fn absolute(mut self) -> Self {
        for path in [&mut self.project, &mut self.scratch_root, &mut self.harness] {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        self
    }

    fn home(&self) -> Option<&Path> {
        let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        process::variable(&self.environment, name).map(Path::new).filter(|home| home.is_absolute())
    }

    /// Finds a program as a shell would from the project folder. The error explains why it was not
    /// found.
    fn find(&self, name: &str, path: &OsStr) -> Result<PathBuf, ProgramStartError> {
        // As in a shell, a name with a slash is not searched on PATH.
        let candidates: Vec<PathBuf> = if name.contains('/') {
            let path = self.project.join(name);
            with_extensions(&std::path::absolute(&path).unwrap_or(path)).collect()
        } else {
            // Joining an absolute folder replaces the project. A relative one is meant from the
            // folder in which the program starts.
            let folders = std::env::split_paths(path);
            let named = folders.map(|folder| self.project.join(folder).join(name));
            named.flat_map(|path| with_extensions(&path).collect::<Vec<_>>()).collect()
        };
        let found = candidates.iter().find(|path| is_executable(path));
        found.cloned().ok_or_else(|| match candidates.iter().find(|path| path.is_file()) {
            Some(path) => ProgramStartError::NotExecutable(path.clone()),
            None if name.contains('/') => ProgramStartError::Missing(candidates[0].clone()),
            None => ProgramStartError::NotOnPath(name.to_owned()),
        })
    }

    /// Creates a folder that only this user can enter. The error is an I/O error.
    fn make_scratch(&self, name: &str) -> Result<ScratchFolder, ProgramStartError> {
        ScratchFolder::make(&self.scratch_root, name)
    }

    /// Returns the rights of a program that works in this folder, without write access.
    fn policy(&self, folder: &Path, path: &OsStr) -> SandboxPolicy {
        let mut policy = SandboxPolicy::for_project(folder, Some(path), self.home());
        policy.protected = self.protected.iter().map(|path| self.project.join(path)).collect();
        let HiddenFiles { answers, secrets } = self.hidden();
        policy.protected.extend_from_slice(answers);
        policy.secret.extend_from_slice(secrets);
        policy.level = self.standing().map_or(SandboxLevel::Full, |standing| standing.level);
        policy
    }
}

/// State that all sessions share.
struct CommandSetup {
    settings: ProgramSettings,
    speech: ProtocolSettings,
    /// Section of the configuration that contains the settings, for messages.
    section: &'static str,
    host: CommandHost,
}

impl CommandSetup {
    /// Returns the program with its arguments.
    fn program(&self) -> Result<Vec<OsString>, SutError> {
        let not_started = |what: String| SutError::NotStarted {
            what,
            hint: Some(format!("correct {}.run in the config", self.section)),
        };
        let (name, arguments) = self
            .settings
            .run
            .split_first()
            .ok_or_else(|| not_started(format!("{}.run names no program", self.section)))?;
        let found = self.host.find(name, self.path());
        let found = found.map_err(|error| not_started(error.to_string()))?;
        let mut program = vec![found.into_os_string()];
        program.extend(arguments.iter().map(OsString::from));
        Ok(program)
    }

    /// Checks that the script exists, if the program is an interpreter that is started with one.
    fn check_script(&self) -> Result<(), SutError> {
        let run = &self.settings.run;
        let Some(missing) = diagnosis::missing_script(run, &self.host.project) else {
            return Ok(());
        };
        let run = self.host.redactor.apply(&run.join(" ")).into_owned();
        let (missing, run) = (missing.display(), selftest_text::one_line(&run, 120));
        Err(SutError::NotStarted {
            what: format!("there is no {missing}, which `{run}` starts"),
            hint: Some(format!("correct {}.run in the config", self.section)),
        })
    }

    fn path(&self) -> &OsStr {
        let own = process::variable(&self.host.environment, "PATH");
        let set = self.settings.environment.get("PATH").or(own);
        set.map_or(OsStr::new(DEFAULT_PATH), OsStr::new)
    }

    /// Returns the rights of the program in this folder.
    fn policy(&self, folder: &Path) -> SandboxPolicy {
        let Self { settings, host, .. } = self;
        let mut policy = host.policy(folder, self.path());
        policy.allow = settings.readable.iter().map(|path| host.project.join(path)).collect();
        // The program itself has to be readable.
        if let Ok(program) = self.program() {
            policy.allow.extend(program.first().map(PathBuf::from));
        }
        let knows_ports = host.standing().is_ok_and(SandboxSupport::can_restrict_ports);
        // With `addresses`, no port is opened to all hosts.
        if settings.addresses.is_empty() && knows_ports {
            policy.ports.clone_from(&settings.tcp_ports);
            policy.name_lookups = settings.name_lookups;
        }
        policy.local_ports = settings.local_ports;
        policy.limits = settings.limits;
        // The folders of other cases have to stay hidden.
        policy.protect_unless_needed(&host.scratch_root);
        policy
    }
}

impl CommandSetup {
    /// Checks that the program's connections can be restricted, if `enforce` requires it.
    fn check_connections(&self, standing: &SandboxSupport) -> Result<(), SutError> {
        self.check_local_ports(standing)?;
        let settings = &self.settings;
        let key = if !settings.addresses.is_empty() && !standing.can_restrict_addresses() {
            "addresses"
        } else if !settings.tcp_ports.is_empty() && !standing.can_restrict_ports() {
            "tcp_ports"
        } else {
            return Ok(());
        };
        // With less than `enforce`, the report lists what is not enforced instead.
        if self.host.sandbox != SandboxMode::Enforce {
            return Ok(());
        }
        let (section, why) = (self.section, standing.unwatched_reason());
        let what = format!("nothing of {section}.{key} can be reached in the sandbox: {why}");
        Err(SutError::NotStarted { what, hint: Some(standing.unwatched_advice().to_owned()) })
    }

    /// Checks that the program can have private ports, if it needs any.
    fn check_local_ports(&self, standing: &SandboxSupport) -> Result<(), SutError> {
        let is_old = || !self.settings.addresses.is_empty() && !sandbox::reports_socket_networks();
        let why = match standing.local_ports_obstacle() {
            _ if !self.settings.local_ports => return Ok(()),
            None if is_old() => "beside `addresses` Linux 5.14 is needed".to_owned(),
            None => return Ok(()),
            Some(why) => why,
        };
        let hint = match standing.level {
            SandboxLevel::Off => "leave it out: without a sandbox a program listens where it likes",
            _ => "leave it out, or run where the whole sandbox stands: `selftest doctor` tells",
        };
        let section = self.section;
        let what = format!(
            "{section}.local_ports needs a network for each case that nobody else reaches: {why}"
        );
        Err(SutError::NotStarted { what, hint: Some(hint.to_owned()) })
    }

    /// Resolves the addresses that the program may connect to and grants them, if the sandbox can
    /// enforce this.
    async fn grant_addresses(&self, policy: &mut SandboxPolicy) -> Result<(), SutError> {
        let reach = self.host.facts.names.resolve(&self.settings.addresses, self.section).await?;
        if self.host.standing().is_ok_and(SandboxSupport::can_restrict_addresses) {
            policy.addresses = reach.addresses;
            policy.hosts = reach.hosts;
        }
        Ok(())
    }
}

/// Default for `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// On Windows, the extension decides.
#[cfg(windows)]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Returns the file names under which a program may exist.
fn with_extensions(path: &Path) -> impl Iterator<Item = PathBuf> {
    let endings: &[&str] = if cfg!(windows) { &["", ".exe", ".cmd", ".bat"] } else { &[""] };
    let name = path.as_os_str().to_owned();
    endings.iter().map(move |ending| {
        let mut name = name.clone();
        name.push(ending);
        name.into()
    })
}

impl CommandSut {
    /// Creates a program with these settings.
    pub fn new(settings: CommandSettings, host: CommandHost) -> Self {
        let CommandSettings { program, speech } = settings;
        Self::of(CommandSetup { settings: program, speech, section: COMMAND_SECTION, host })
    }

    /// Creates an agent with these settings; its protocol is implemented by another adapter.
    pub(in crate::sut) fn agent(settings: ProgramSettings, host: CommandHost) -> Self {
        Self::of(CommandSetup {
            settings,
            speech: ProtocolSettings::default(),
            section: ACP_SECTION,
            host,
        })
    }

    fn of(setup: CommandSetup) -> Self {
        let setup = Arc::new(CommandSetup { host: setup.host.absolute(), ..setup });
        Self { setup, skill: None }
    }

    fn make_scratch(&self, name: &str) -> Result<ScratchFolder, SutError> {
        let hint = || Some("free the disk, or make the folder above it writable".to_owned());
        let made = self.setup.host.make_scratch(name);
        made.map_err(|error| SutError::NotStarted { what: error.to_string(), hint: hint() })
    }

    /// Creates the copy of the project that a case works in, within its scratch folder.
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
        let protocol = self.setup.speech.protocol;
        let run = self.setup.host.redactor.apply(&settings.run.join(" ")).into_owned();
        format!("command {} ({protocol})", selftest_text::one_line(&run, 120))
    }

    fn isolation(&self) -> Isolation {
        match self.setup.host.standing() {
            Ok(standing) => {
                let group = self
                    .setup
                    .host
                    .group()
                    .map(RunGroup::enforced_limits)
                    .map_err(ToString::to_string);
                isolation::describe_isolation(standing, &group, &self.setup.settings)
            }
            Err(SandboxUnavailableError { what, .. }) => Isolation {
                enforced: Vec::new(),
                not_enforced: vec![format!("no program is run, because {what}")],
            },
        }
    }

    fn can_reach_project(&self) -> bool {
        // The comparison is an independent check, even if the kernel forbids writing.
        true
    }

    fn supports_fixtures(&self) -> bool {
        self.setup.settings.work_folder == WorkFolder::Copy
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        async {
            self.setup.program()?;
            self.setup.check_script()?;
            match self.setup.host.standing() {
                Ok(standing) => self.setup.check_connections(standing)?,
                Err(SandboxUnavailableError { what, advice }) => {
                    let what = format!("the program cannot be kept in its sandbox: {what}");
                    return Err(SutError::NotStarted { what, hint: Some(advice.clone()) });
                }
            }
            // Only to look the names up: a wrong one is reported before the run begins.
            self.setup.grant_addresses(&mut SandboxPolicy::default()).await?;
            if !is_executable(&self.setup.host.harness) {
                let what = format!("{} is not executable", self.setup.host.harness.display());
                return Err(SutError::NotStarted { what, hint: None });
            }
            scratch::sweep(&self.setup.host.scratch_root);
            // A full or read-only disk is detected before the first model call.
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
        Ok(Arc::new(self.clone_with_skill(skill)?))
    }

    fn open<'a>(
        &'a self,
        task: &'a SutTask,
    ) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        async move { Ok(Box::new(self.session(task).await?) as Box<dyn SutSession>) }.boxed()
    }
}

impl CommandSut {
    /// Returns the same program with this skill, unless it is an agent that looks for none.
    pub(in crate::sut) fn clone_with_skill(&self, skill: Arc<Skill>) -> Result<Self, SutError> {
        check_takes_skills(&self.setup.settings.run)?;
        Ok(Self { setup: Arc::clone(&self.setup), skill: Some(skill) })
    }

    /// Opens a session in the namespace of the task. Its program is not started yet.
    pub(in crate::sut) fn session<'a>(
        &'a self,
        task: &'a SutTask,
    ) -> BoxFuture<'a, Result<CommandSession, SutError>> {
        async move {
            let scratch = self.make_scratch(task.session_id.as_str())?;
            let mut fixtures = Arc::clone(&task.fixtures);
            let mut laid = None;
            if let Some(skill) = &self.skill {
                // An agent that looks for skills in no folder finds this file by a variable of its
                // environment.
                let file = scratch.path.join(SKILL_FILE);
                std::fs::write(&file, &skill.text).map_err(|error| {
                    SutError::failed(format!("cannot write {}: {error}", file.display()))
                })?;
                let (mut offered, mut files) = (process::SKILL_FILE.to_owned(), vec![file]);
                if self.supports_fixtures() {
                    let folders = skill_folders(&self.setup.settings.run);
                    fixtures = fixtures.iter().cloned().chain(skill.laid_in(&folders)).collect();
                    let homes = folders.iter().map(|at| format!("{at}/{}", skill.folder_name()));
                    let homes: Vec<String> = homes.collect();
                    let copy = scratch.path.join(WORKSPACE);
                    files.extend(homes.iter().map(|home| copy.join(home).join(SKILL_FILE)));
                    offered = homes.join(" and ");
                }
                laid = Some(LaidSkill { offered: format!("in {offered}"), files });
            }
            let workspace = self.workspace(&scratch.path, &fixtures).await?;
            let folder = workspace.as_ref().map_or(&*self.setup.host.project, Workspace::folder);
            let mut policy = self.setup.policy(folder);
            // The copy of the project is below it.
            policy.write.push(scratch.path.clone());
            policy.notes_file = Some(scratch.notes());
            self.setup.grant_addresses(&mut policy).await?;
            let group = self.setup.host.create_case_group(&mut policy);
            let group = group.map_err(|error| SutError::failed(error.to_string()))?;
            let setup = Arc::clone(&self.setup);
            let rooms = CaseResources { workspace, scratch, group };
            Ok(CommandSession::new(setup, task.clone(), rooms, laid, policy))
        }
        .boxed()
    }
}

/// Maximum age of a cached name. Many cases may start per second.
const CACHE_TTL: Duration = Duration::from_mins(1);

/// Timeout for resolving a name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of addresses of one name.
const MAX_ADDRESSES: usize = 64;

/// Addresses that a program may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ResolvedAddresses {
    addresses: Vec<SocketAddr>,
    /// Names with their addresses.
    hosts: Vec<(String, IpAddr)>,
}

/// A cache of recently resolved names.
#[derive(Debug, Default)]
struct NameCache(Mutex<HashMap<String, (Instant, Vec<IpAddr>)>>);

impl NameCache {
    /// Resolves these addresses of a section of the configuration. The error is for an unknown name.
    async fn resolve(
        &self,
        addresses: &[HostPort],
        section: &str,
    ) -> Result<ResolvedAddresses, SutError> {
        let mut reach = ResolvedAddresses::default();
        for HostPort { host, port } in addresses {
            let found = match host {
                TargetHost::Ip(ip) => vec![*ip],
                TargetHost::Name(name) => {
                    let found = self.look_up(name, section).await?;
                    let hosts = found.iter().map(|ip| (name.clone(), *ip));
                    let hosts: Vec<_> = hosts.filter(|it| !reach.hosts.contains(it)).collect();
                    reach.hosts.extend(hosts);
                    found
                }
            };
            reach.addresses.extend(found.into_iter().map(|ip| SocketAddr::new(ip, *port)));
        }
        Ok(reach)
    }

    async fn look_up(&self, name: &str, section: &str) -> Result<Vec<IpAddr>, SutError> {
        if name == "localhost" {
            // Programs such as curl resolve it without DNS, to both addresses.
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        if let Some((when, known)) = self.lock().get(name)
            && when.elapsed() < CACHE_TTL
        {
            return Ok(known.clone());
        }
        let failed = |why: String| SutError::NotStarted {
            what: format!("cannot look up `{name}`, of {section}.addresses: {why}"),
            hint: Some("correct the name, or see to it that this machine knows it".to_owned()),
        };
        // The port is irrelevant.
        let found =
            tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name, 443))).await;
        let found =
            found.map_err(|_| failed(format!("no answer in {} s", LOOKUP_TIMEOUT.as_secs())))?;
        let found = found.map_err(|error| failed(error.to_string()))?;
        // `::ffff:192.0.2.8` and `192.0.2.8` are one address.
        let found = usable(found.map(|address| address.ip().to_canonical()), has_route);
        if found.is_empty() {
            return Err(failed("it has no address".to_owned()));
        }
        self.lock().insert(name.to_owned(), (Instant::now(), found.clone()));
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Vec<IpAddr>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes duplicates, and unroutable addresses if at least one is routable.
fn usable(found: impl Iterator<Item = IpAddr>, has_way: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
    let mut all: Vec<IpAddr> = Vec::new();
    // `0.0.0.0` would connect to this machine.
    for ip in found.filter(|ip| !ip.is_unspecified()).take(MAX_ADDRESSES) {
        if !all.contains(&ip) {
            all.push(ip);
        }
    }
    let near: Vec<IpAddr> = all.iter().copied().filter(|&ip| has_way(ip)).collect();
    if near.is_empty() { all } else { near }
}

/// Returns true if there is a route to this address. Connecting a UDP socket sends nothing.
fn has_route(ip: IpAddr) -> bool {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // To connect this socket sends nothing, and fails where no route leads.
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((ip, 443))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> HostPort {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn names_are_looked_up_and_addresses_are_not() {
        let names = NameCache::default();
        let listed = ["192.0.2.7:443", "localhost:11434", "localhost:80", "[::ffff:192.0.2.8]:1"];
        let reach = names.resolve(&listed.map(address), COMMAND_SECTION).await.unwrap();
        assert!(reach.addresses.contains(&"192.0.2.7:443".parse().unwrap()));
        assert!(reach.addresses.contains(&"192.0.2.8:1".parse().unwrap()));
        for local in ["127.0.0.1:11434", "[::1]:11434", "127.0.0.1:80", "[::1]:80"] {
            assert!(reach.addresses.contains(&local.parse().unwrap()), "{local}");
        }
        assert_eq!(reach.hosts.len(), 2);
        let mut once = reach.hosts.clone();
        once.dedup();
        assert_eq!(once, reach.hosts);
        assert!(reach.hosts.iter().all(|(name, ip)| name == "localhost" && ip.is_loopback()));
    }

    #[tokio::test]
    async fn a_name_that_nobody_knows_is_an_error_that_names_it() {
        let error =
            NameCache::default().resolve(&[address("no-such-name.invalid:443")], ACP_SECTION).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("no-such-name.invalid") && error.contains("sut.acp.addresses"),
            "{error}"
        );
    }

    #[test]
    fn addresses_without_a_way_are_left_out_where_there_are_others() {
        let [old, new]: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().unwrap());
        let found = || [new, old, old].into_iter();
        assert_eq!(usable(found(), |ip| ip.is_ipv4()), [old]);
        assert_eq!(usable(found(), |_| false), [new, old]);
    }
}
