//! The supervisor above the program: passes stdio through, inspects the calls that wait for it, and
//! ends everything below when the program ends, on SIGTERM, or when the harness dies.
//!
//! In a PID namespace the kernel kills everything together with PID 1. Otherwise this process
//! adopts every orphan and kills until none is left.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::AsFd as _;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;
use tokio::signal::unix::{SignalKind, signal};

use super::SUBCOMMAND;
use super::error::SandboxError;
use super::policy::SandboxPolicy;

/// Runs the program and returns its exit code, or 128 + n if signal n killed it. The first argument
/// is the process ID of the harness.
pub(super) fn run(arguments: &[OsString]) -> Result<u8, SandboxError> {
    let (harness, arguments) =
        arguments.split_first().ok_or(SandboxError::Argument("expected a process"))?;
    let harness = harness.to_str().and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
    let harness = harness.ok_or(SandboxError::Argument("expected the number of a process"))?;
    let (policy, _) = SandboxPolicy::from_arguments(arguments)?;
    // Detach from the terminal: its signals are meant for the harness, and the program must not
    // read from it.
    let _ = rustix::process::setsid();
    let failed = SandboxError::step::<std::io::Error>("supervise the program");
    #[cfg(target_os = "linux")]
    let mut ready = linux::prepare(&policy)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    runtime.block_on(async {
        #[cfg(target_os = "linux")]
        {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
                .map_err(|error| failed(error.into()))?;
            let (program, control) = linux::start(arguments).map_err(failed)?;
            let group = linux::Group::attach(&mut ready, program.id(), &control).map_err(failed)?;
            let gate = linux::Gate::new(&policy, &program, control, ready).map_err(failed)?;
            supervise(program, harness, gate, group).await.map_err(failed)
        }
        #[cfg(not(target_os = "linux"))]
        {
            let mut command = Command::new(std::env::current_exe().map_err(failed)?);
            command.args([SUBCOMMAND, "exec"]).args(arguments);
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            let program = command.spawn().map_err(failed)?;
            supervise(program, harness, Gate, Group).await.map_err(failed)
        }
    })
}

/// Other systems have no calls to wait for.
#[cfg(not(target_os = "linux"))]
struct Gate;

#[cfg(not(target_os = "linux"))]
impl Gate {
    async fn serve(&mut self) {
        std::future::pending().await
    }

    fn end(&mut self) {}
}

/// Other systems have no control groups.
#[cfg(not(target_os = "linux"))]
struct Group;

#[cfg(not(target_os = "linux"))]
impl Group {
    async fn used_up(&self) -> String {
        std::future::pending().await
    }

    fn kill(&self) {}

    fn note(&self, _used_up: Option<String>) {}
}

#[cfg(target_os = "linux")]
use linux::{Gate, Group};

async fn supervise(
    program: Child,
    harness: Pid,
    mut gate: Gate,
    group: Group,
) -> std::io::Result<u8> {
    let mut ended = signal(SignalKind::child())?;
    let mut told = signal(SignalKind::terminate())?;
    // The harness holds the other end of stderr for as long as it wants the program, so an error on
    // this end means that it gave it up. This works for pipes only, and not if the program has opened
    // the other end itself.
    let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
    let listener = Sender::from_owned_fd_unchecked(stderr).ok();
    // From here on only the program holds its stdin and stdout, so that the harness notices when it
    // closes them.
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;

    let program = Pid::from_child(&program);
    // The program may have exited before the signal handler was installed.
    let mut code = reap(program).code;
    let mut reached = None;
    let used_up = group.used_up();
    let harness_exit = wait_for_harness_exit(harness);
    tokio::pin!(used_up, harness_exit);
    while code.is_none() {
        tokio::select! {
            _ = ended.recv() => code = reap(program).code,
            () = gate.serve() => {}
            what = &mut used_up => {
                reached = Some(what);
                break;
            }
            _ = told.recv() => break,
            () = &mut harness_exit => break,
            () = wait_for_close(listener.as_ref()) => break,
        }
    }
    gate.end();
    group.kill();
    kill_all(program, &mut code).await;
    group.note(reached);
    Ok(code.unwrap_or(UNKNOWN_EXIT_CODE))
}

/// Exit code if the program's own exit was not observed.
const UNKNOWN_EXIT_CODE: u8 = 128 + 9;

async fn wait_for_close(listener: Option<&Sender>) {
    match listener {
        Some(listener) if listener.ready(Interest::ERROR).await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

/// Interval at which the parent is looked up where the system does not report its end.
const PARENT_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Waits until the harness, which started this process, has ended in whatever way.
async fn wait_for_harness_exit(harness: Pid) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{PidfdFlags, pidfd_open};
        let process = pidfd_open(harness, PidfdFlags::NONBLOCK).ok();
        let process = process.and_then(|it| super::kernel::register_descriptor(it).ok());
        // If it has ended before, the descriptor may be of another process with its number.
        if rustix::process::getppid() == Some(harness)
            && let Some(process) = process
            && process.readable().await.is_ok()
        {
            return;
        }
    }
    while rustix::process::getppid() == Some(harness) {
        tokio::time::sleep(PARENT_CHECK_INTERVAL).await;
    }
}

struct ReapResult {
    /// Exit code of the program, if it was among them.
    code: Option<u8>,
    /// True if children are left.
    has_children: bool,
}

/// Reaps every exited child, including adopted ones.
fn reap(program: Pid) -> ReapResult {
    let mut code = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((child, status))) if child == program => {
                let number = status.exit_status().or(status.terminating_signal().map(|n| 128 + n));
                code = number.and_then(|number| u8::try_from(number).ok());
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return ReapResult { code, has_children: true },
            Err(_) => return ReapResult { code, has_children: false },
        }
    }
}

/// Kills the children, and then the orphans they leave behind, until none is left. Only children
/// are killed: no other process can reap them, so a PID cannot be reused in between.
async fn kill_all(program: Pid, code: &mut Option<u8>) {
    let mut pause = Duration::from_millis(1);
    loop {
        kill_children(program);
        let reaped = reap(program);
        *code = code.or(reaped.code);
        if !reaped.has_children {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

#[cfg(target_os = "linux")]
fn kill_children(_program: Pid) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // The kernel lists children if configured to; otherwise scan all processes.
    let listed = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).ok();
    let children: Vec<i32> = match listed {
        Some(list) => list.split_whitespace().filter_map(|number| number.parse().ok()).collect(),
        None => all_processes().filter(|&number| parent_of(number) == Some(own)).collect(),
    };
    for child in children.into_iter().filter_map(Pid::from_raw) {
        kill_group(child);
        let _ = rustix::process::kill_process(child, Signal::KILL);
    }
}

/// Kills the process group of a child, unless it is this process's own. The kernel signals all
/// members atomically, so none can fork in between. Killed one by one, processes that fork and exit
/// faster than this loop would never end.
#[cfg(target_os = "linux")]
fn kill_group(child: Pid) {
    match rustix::process::getpgid(Some(child)) {
        Ok(group) if group != rustix::process::getpgrp() => {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        _ => {}
    }
}

#[cfg(target_os = "linux")]
fn all_processes() -> impl Iterator<Item = i32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(target_os = "linux")]
fn parent_of(process: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    // The second field is the process name in parentheses, which may itself contain spaces and
    // parentheses.
    let after = stat.iter().rposition(|&byte| byte == b')')?;
    std::str::from_utf8(&stat[after + 1..]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Orphans are not adopted on other systems, so only the program's process group can be addressed.
#[cfg(not(target_os = "linux"))]
fn kill_children(program: Pid) {
    let _ = rustix::process::kill_process_group(program, Signal::KILL);
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{File, OpenOptions};
    use std::io::Write as _;
    use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
    use std::process::Stdio;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::FdFlags;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use tokio::io::unix::AsyncFd;

    use super::super::attempt::{AttemptKind, SandboxAttempt};
    use super::super::case_cgroup::CgroupFiles;
    use super::super::policy::SandboxLevel;
    use super::super::usage_watch::UsageWatch;
    use super::super::watch::{CallWatcher, ConnectorPool, check_inspection_access};
    use super::super::{control, kernel, namespaces};
    use super::{Child, Command, OsString, SUBCOMMAND, SandboxError, SandboxPolicy};

    /// Maximum number of calls answered before other events are handled.
    const MAX_ANSWERS_AT_ONCE: usize = 64;

    /// Resources opened outside the namespaces.
    pub(super) struct PreparedResources {
        notes: Option<File>,
        group: Option<CgroupFiles>,
        connectors: ConnectorPool,
        usage: UsageWatch,
    }

    /// Does everything that must happen before any process is started.
    pub(super) fn prepare(policy: &SandboxPolicy) -> Result<PreparedResources, SandboxError> {
        // Descriptors that the harness inherited are not for the program. Old kernels lack the
        // call; there, the harness's own descriptors are still closed at the next exec.
        let _ = kernel::close_on_exec_from(3);
        let notes = policy.notes_file.as_ref();
        let notes = notes.map(|path| {
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.map_err(|source| SandboxError::Path { verb: "write", path: path.clone(), source })
        });
        let notes = notes.transpose()?;
        let group = policy.cgroup.as_ref().map(|group| {
            let failed = |source| SandboxError::Path { verb: "use", path: group.clone(), source };
            CgroupFiles::open(group, policy.limits).map_err(failed)
        });
        let group = group.transpose()?;
        let is_full = policy.level == SandboxLevel::Full;
        if is_full {
            namespaces::enter_user_namespace()?;
        }
        // The position matters: entering a user namespace requires a single thread, and after
        // entering a PID namespace no thread can be started.
        let connectors =
            ConnectorPool::start().map_err(SandboxError::step("start a thread to connect by"))?;
        let usage =
            UsageWatch::start(policy).map_err(SandboxError::step("start a thread that watches"))?;
        if is_full {
            namespaces::enter_process_namespaces()?;
        }
        Ok(PreparedResources { notes, group, connectors, usage })
    }

    /// Starts the process that becomes or runs the program. Also returns the control socket.
    pub(super) fn start(arguments: &[OsString]) -> std::io::Result<(Child, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::io::fcntl_setfd(&theirs, FdFlags::empty())?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([SUBCOMMAND, "exec"]).arg(theirs.as_raw_fd().to_string()).args(arguments);
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        // A separate process group can be killed as a whole if there is no PID namespace.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok((command.spawn()?, ours))
    }

    /// The control group of the program, if it has one, and the limits that are watched.
    pub(super) struct Group {
        cgroup: Option<CgroupFiles>,
        usage: UsageWatch,
        notes: Option<File>,
    }

    impl Group {
        /// Moves the waiting program into its group and lets it continue.
        pub(super) fn attach(
            ready: &mut PreparedResources,
            program: u32,
            way: &OwnedFd,
        ) -> std::io::Result<Self> {
            let (group, usage) = (ready.group.take(), ready.usage.clone());
            if let Some(group) = &group {
                group.add_process(program)?;
            }
            // Must be probed now, while the process still runs our own code.
            let unseen = check_inspection_access(program).err();
            let unseen = unseen.map(|error| error.raw_os_error().unwrap_or(libc::EPERM));
            control::release(way, unseen)?;
            let notes = ready.notes.as_ref().map(File::try_clone).transpose()?;
            Ok(Self { cgroup: group, usage, notes })
        }

        /// Waits until a limit is reached that the kernel does not enforce, and describes it.
        pub(super) async fn used_up(&self) -> String {
            let processor_time = async {
                match &self.cgroup {
                    Some(group) => group.wait_for_cpu_limit().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                what = processor_time => what,
                what = self.usage.exceeded() => what,
            }
        }

        pub(super) fn kill(&self) {
            if let Some(group) = &self.cgroup {
                group.kill();
            }
        }

        /// Records the limits that were reached, and this one, which ended the case.
        pub(super) fn note(&self, used_up: Option<String>) {
            let Some(notes) = &self.notes else { return };
            let exceeded = self.cgroup.as_ref().map(CgroupFiles::exceeded_limits);
            let used_up = used_up.map(|what| SandboxAttempt::new(AttemptKind::Limit, what));
            for attempt in exceeded.into_iter().flatten().chain(used_up) {
                attempt.append_to(notes);
            }
        }
    }

    /// Handles the program's messages and the calls that wait for the supervisor.
    pub(super) struct Gate {
        state: ListenerState,
        watch: CallWatcher,
        /// Destination for the protections' report, during a trial.
        said: Option<OwnedFd>,
    }

    enum ListenerState {
        Waiting(AsyncFd<OwnedFd>),
        Open(AsyncFd<OwnedFd>),
        Closed,
    }

    impl Gate {
        pub(super) fn new(
            policy: &SandboxPolicy,
            program: &Child,
            control: OwnedFd,
            ready: PreparedResources,
        ) -> std::io::Result<Self> {
            let said = policy.is_trial.then(|| std::io::stdout().as_fd().try_clone_to_owned());
            Ok(Self {
                state: ListenerState::Waiting(kernel::register_descriptor(control)?),
                watch: CallWatcher::new(policy, program.id(), ready.notes, ready.connectors),
                said: said.transpose()?,
            })
        }

        /// Handles the next event; pends forever if no more can come.
        pub(super) async fn serve(&mut self) {
            match &self.state {
                ListenerState::Waiting(control) => {
                    let Ok(mut ready) = control.readable().await else {
                        self.state = ListenerState::Closed;
                        return;
                    };
                    ready.clear_ready();
                    let listener = hear(control, &mut self.said);
                    if let Some(listener) = &listener {
                        kernel::answer_on_same_cpu(listener.as_fd());
                    }
                    let listener =
                        listener.and_then(|listener| kernel::register_descriptor(listener).ok());
                    self.state = listener.map_or(ListenerState::Closed, ListenerState::Open);
                }
                ListenerState::Open(listener) => {
                    let Ok(mut ready) = listener.readable().await else {
                        self.state = ListenerState::Closed;
                        return;
                    };
                    // Receiving without a pending call would block, so poll first.
                    for _ in 0..MAX_ANSWERS_AT_ONCE {
                        let mut waiting = [PollFd::new(listener.get_ref(), PollFlags::IN)];
                        let polled = poll(&mut waiting, Some(&Timespec::default()));
                        let found = waiting[0].revents();
                        if polled.is_err() || found.intersects(PollFlags::HUP | PollFlags::ERR) {
                            self.state = ListenerState::Closed;
                            return;
                        }
                        if !found.contains(PollFlags::IN) {
                            ready.clear_ready();
                            return;
                        }
                        self.watch.answer_next(listener.get_ref());
                    }
                }
                ListenerState::Closed => std::future::pending().await,
            }
        }

        /// Reports the protections if a trial ended before its message was received.
        pub(super) fn end(&mut self) {
            if let (ListenerState::Waiting(control), Some(_)) = (&self.state, &self.said) {
                hear(control, &mut self.said);
            }
        }
    }

    /// Receives the single message of the program's process: the active protections, which a trial
    /// writes to stdout, and the listener for waiting calls.
    fn hear(control: &AsyncFd<OwnedFd>, said: &mut Option<OwnedFd>) -> Option<OwnedFd> {
        let (standing, listener) = control::receive_report(control.get_ref().as_fd())?;
        if let Some(said) = said.take() {
            let line = serde_json::to_vec(&standing).unwrap_or_default();
            // The failure of a trial's output cannot be reported anywhere.
            let _ = File::from(said).write_all(&line);
        }
        listener
    }
}
