//! The process above the program: it passes stdio through, looks at the calls that wait for it, and
//! ends everything below when the program ends, when it is told to, or when the harness is gone.
//!
//! In namespaces the kernel ends everything with the first process there. Elsewhere this process
//! adopts every orphan and kills until nothing is left.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::fd::AsFd as _;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;
use tokio::signal::unix::{SignalKind, signal};

use super::WORD;
use super::policy::Policy;

/// Runs the program and returns its exit code, 128 + n when signal n killed it.
pub(super) fn run(arguments: &[OsString]) -> Result<u8, String> {
    let (policy, _) = Policy::from_arguments(arguments)?;
    // Away from the terminal: its signals are for the harness, and it is not to be read from.
    let _ = rustix::process::setsid();
    let failed = |error: std::io::Error| format!("cannot supervise the program: {error}");
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
            let group = linux::Group::of(&mut ready, program.id(), &control).map_err(failed)?;
            let gate = linux::Gate::new(&policy, &program, control, ready).map_err(failed)?;
            supervise(program, gate, group).await.map_err(failed)
        }
        #[cfg(not(target_os = "linux"))]
        {
            let mut command = Command::new(std::env::current_exe().map_err(failed)?);
            command.args([WORD, "exec"]).args(arguments);
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            let program = command.spawn().map_err(failed)?;
            supervise(program, Gate, Group).await.map_err(failed)
        }
    })
}

/// Elsewhere nothing waits for the supervisor.
#[cfg(not(target_os = "linux"))]
struct Gate;

#[cfg(not(target_os = "linux"))]
impl Gate {
    async fn serve(&mut self) {
        std::future::pending().await
    }

    fn end(&mut self) {}
}

/// Elsewhere there are no control groups.
#[cfg(not(target_os = "linux"))]
struct Group;

#[cfg(not(target_os = "linux"))]
impl Group {
    async fn used_up(&self) {
        std::future::pending().await
    }

    fn kill(&self) {}

    fn note(&self, _is_used_up: bool) {}
}

#[cfg(target_os = "linux")]
use linux::{Gate, Group};

async fn supervise(program: Child, mut gate: Gate, group: Group) -> std::io::Result<u8> {
    let mut ended = signal(SignalKind::child())?;
    let mut told = signal(SignalKind::terminate())?;
    // The harness holds the other end of stderr for as long as it lives: an error on this end
    // means that it was killed. Anything but a pipe cannot be watched.
    let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
    let harness = Sender::from_owned_fd_unchecked(stderr).ok();
    // From here on the program alone holds them, so that the harness sees when it closes them.
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;

    let program = Pid::from_child(&program);
    // It may have ended before its end was listened for.
    let mut code = reap(program).code;
    let mut is_used_up = false;
    let used_up = group.used_up();
    tokio::pin!(used_up);
    while code.is_none() {
        tokio::select! {
            _ = ended.recv() => code = reap(program).code,
            () = gate.serve() => {}
            () = &mut used_up => {
                is_used_up = true;
                break;
            }
            _ = told.recv() => break,
            () = gone(harness.as_ref()) => break,
        }
    }
    gate.end();
    group.kill();
    end_all(program, &mut code).await;
    group.note(is_used_up);
    Ok(code.unwrap_or(NO_CODE))
}

/// When the program's own end was not seen.
const NO_CODE: u8 = 128 + 9;

async fn gone(harness: Option<&Sender>) {
    match harness {
        Some(harness) if harness.ready(Interest::ERROR).await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

struct Reaped {
    /// Exit code of the program, when it was among them.
    code: Option<u8>,
    /// Whether children are left.
    left: bool,
}

/// Collects every child that has ended, adopted ones too.
fn reap(program: Pid) -> Reaped {
    let mut code = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((child, status))) if child == program => {
                let number = status.exit_status().or(status.terminating_signal().map(|n| 128 + n));
                code = number.and_then(|number| u8::try_from(number).ok());
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Reaped { code, left: true },
            Err(_) => return Reaped { code, left: false },
        }
    }
}

/// Kills the children, then what they leave behind, until there is nothing left. Only children
/// are killed: nobody else can reap them, so that a number always means the same process.
async fn end_all(program: Pid, code: &mut Option<u8>) {
    let mut pause = Duration::from_millis(1);
    loop {
        kill_children(program);
        let reaped = reap(program);
        *code = code.or(reaped.code);
        if !reaped.left {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

#[cfg(target_os = "linux")]
fn kill_children(_program: Pid) {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // The kernel keeps the list; without it every process has to be looked at.
    let listed = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).ok();
    let children: Vec<i32> = match listed {
        Some(list) => list.split_whitespace().filter_map(|number| number.parse().ok()).collect(),
        None => all_processes().filter(|&number| parent(number) == Some(own)).collect(),
    };
    for child in children.into_iter().filter_map(Pid::from_raw) {
        kill_group(child);
        let _ = rustix::process::kill_process(child, Signal::KILL);
    }
}

/// Kills the process group of a child, if it is not this process's own. The kernel does that at once for
/// all of them, and nobody can fork meanwhile: killed one by one, processes that fork and exit faster
/// than this one looks would never end.
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
fn parent(process: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name in brackets, which may hold anything.
    let after = stat.iter().rposition(|&byte| byte == b')')?;
    std::str::from_utf8(&stat[after + 1..]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Elsewhere orphans are not adopted: the program's process group is what can be named.
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

    use super::super::grouped::Grouped;
    use super::super::policy::Walls;
    use super::super::watch::{Connectors, Watch, look_into};
    use super::super::{control, kernel, namespaces};
    use super::{Child, Command, OsString, Policy, WORD};

    /// Calls that are answered before other events are looked at.
    const AT_ONCE: usize = 64;

    /// Resources that were opened outside.
    pub(super) struct Ready {
        notes: Option<File>,
        group: Option<Grouped>,
        connectors: Connectors,
    }

    /// Everything that has to be done before anything is started.
    pub(super) fn prepare(policy: &Policy) -> Result<Ready, String> {
        // Whatever the harness was started with is not for the program. Old kernels lack the call;
        // there the harness's own descriptors still end with the next program.
        let _ = kernel::close_on_exec_from(3);
        let notes = policy.notes.as_ref();
        let notes = notes.map(|path| {
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.map_err(|error| format!("cannot write {}: {error}", path.display()))
        });
        let notes = notes.transpose()?;
        let group = policy.group.as_ref().map(|group| {
            let failed = |error| format!("cannot use {}: {error}", group.display());
            Grouped::open(group, policy.limits).map_err(failed)
        });
        let group = group.transpose()?;
        let is_full = policy.walls == Walls::Full;
        if is_full {
            namespaces::own_user()?;
        }
        // Between the two: before, there must be one thread, and after, none can be started.
        let connectors = Connectors::start()
            .map_err(|error| format!("cannot start a thread to connect by: {error}"))?;
        if is_full {
            namespaces::enter()?;
        }
        Ok(Ready { notes, group, connectors })
    }

    /// Starts the process that becomes or runs the program, and the way to hear from it.
    pub(super) fn start(arguments: &[OsString]) -> std::io::Result<(Child, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::io::fcntl_setfd(&theirs, FdFlags::empty())?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([WORD, "exec"]).arg(theirs.as_raw_fd().to_string()).args(arguments);
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        // A group of its own can be killed as a whole, where no process namespace ends them all.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok((command.spawn()?, ours))
    }

    /// The control group of the program, where it has one.
    pub(super) struct Group {
        group: Option<Grouped>,
        notes: Option<File>,
    }

    impl Group {
        /// Puts the program into it, which waits for this, and lets it go on.
        pub(super) fn of(ready: &mut Ready, program: u32, way: &OwnedFd) -> std::io::Result<Self> {
            let group = ready.group.take();
            if let Some(group) = &group {
                group.take_in(program)?;
            }
            // Asked now, while it is still this program and no more.
            let unseen = look_into(program).err();
            let unseen = unseen.map(|error| error.raw_os_error().unwrap_or(libc::EPERM));
            control::let_go(way, unseen)?;
            let notes = ready.notes.as_ref().map(File::try_clone).transpose()?;
            Ok(Self { group, notes })
        }

        pub(super) async fn used_up(&self) {
            match &self.group {
                Some(group) => group.used_up().await,
                None => std::future::pending().await,
            }
        }

        pub(super) fn kill(&self) {
            if let Some(group) = &self.group {
                group.kill();
            }
        }

        /// Notes what was reached of its limits.
        pub(super) fn note(&self, is_used_up: bool) {
            if let (Some(group), Some(notes)) = (&self.group, &self.notes) {
                for attempt in group.reached(is_used_up) {
                    attempt.note(notes);
                }
            }
        }
    }

    /// Serves the program's messages and the calls that wait for the supervisor.
    pub(super) struct Gate {
        state: State,
        watch: Watch,
        /// Where to say what stands, for a trial.
        said: Option<OwnedFd>,
    }

    enum State {
        Waiting(AsyncFd<OwnedFd>),
        Open(AsyncFd<OwnedFd>),
        Nothing,
    }

    impl Gate {
        pub(super) fn new(
            policy: &Policy,
            program: &Child,
            control: OwnedFd,
            ready: Ready,
        ) -> std::io::Result<Self> {
            let said = policy.trial.then(|| std::io::stdout().as_fd().try_clone_to_owned());
            Ok(Self {
                state: State::Waiting(kernel::awaited(control)?),
                watch: Watch::new(policy, program.id(), ready.notes, ready.connectors),
                said: said.transpose()?,
            })
        }

        /// Does the next thing that waits, if anything ever does.
        pub(super) async fn serve(&mut self) {
            match &self.state {
                State::Waiting(control) => {
                    let Ok(mut ready) = control.readable().await else {
                        self.state = State::Nothing;
                        return;
                    };
                    ready.clear_ready();
                    let listener = hear(control, &mut self.said);
                    if let Some(listener) = &listener {
                        kernel::answer_on_the_same_processor(listener.as_fd());
                    }
                    let listener = listener.and_then(|listener| kernel::awaited(listener).ok());
                    self.state = listener.map_or(State::Nothing, State::Open);
                }
                State::Open(listener) => {
                    let Ok(mut ready) = listener.readable().await else {
                        self.state = State::Nothing;
                        return;
                    };
                    // To ask for a call where there is none would block.
                    for _ in 0..AT_ONCE {
                        let mut waiting = [PollFd::new(listener.get_ref(), PollFlags::IN)];
                        let polled = poll(&mut waiting, Some(&Timespec::default()));
                        let found = waiting[0].revents();
                        if polled.is_err() || found.intersects(PollFlags::HUP | PollFlags::ERR) {
                            self.state = State::Nothing;
                            return;
                        }
                        if !found.contains(PollFlags::IN) {
                            ready.clear_ready();
                            return;
                        }
                        self.watch.answer_next(listener.get_ref());
                    }
                }
                State::Nothing => std::future::pending().await,
            }
        }

        /// Says what stands where a trial ended before it was listened to.
        pub(super) fn end(&mut self) {
            if let (State::Waiting(control), Some(_)) = (&self.state, &self.said) {
                hear(control, &mut self.said);
            }
        }
    }

    /// Receives the one message of the program's process: the state of its sandbox, which a trial
    /// writes to stdout, and the listener for calls that wait.
    fn hear(control: &AsyncFd<OwnedFd>, said: &mut Option<OwnedFd>) -> Option<OwnedFd> {
        let (standing, listener) = control::hear(control.get_ref().as_fd())?;
        if let Some(said) = said.take() {
            let line = serde_json::to_vec(&standing).unwrap_or_default();
            // Nobody is left to tell when this fails too.
            let _ = File::from(said).write_all(&line);
        }
        listener
    }
}
