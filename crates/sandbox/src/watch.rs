//! Inspects the calls of a confined program that wait for the supervisor, denies what is not
//! granted, and records the attempt. Every inspection of a file is backed by the kernel's own
//! rules, so a program that changes the arguments during the inspection (TOCTOU) gains nothing but
//! a missing record. Connections are made here, from the inspected copy: see `connect`.

#![expect(
    clippy::cast_possible_truncation,
    reason = "arguments of calls, of which the kernel reads the lower half"
)]

mod connect;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FlockOperation, StatVfsMountFlags, fstatvfs};
use rustix::net::AddressFamily;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::attempt::{AttemptKind, SandboxAttempt};
use super::control::network_access;
use super::kernel::{self, CallReply, WaitingCall};
use super::policy::{SandboxLevel, SandboxPolicy, resolve_existing};
use super::syscalls::{DENIED_CALLS, NetworkAccess, denial_reason};
use super::view::OWN_FOLDERS;
pub(super) use connect::ConnectorPool;
use connect::SocketDestination;

/// Maximum number of notes of a kind per program: enough to see what it is doing. A flood of one kind
/// hides no other.
const MAX_NOTES: usize = 200;

/// Maximum number of cached granted files.
const MAX_GRANTED: usize = 10_000;

/// Maximum length of a path in bytes, as in the kernel.
const MAX_PATH: usize = 4096;

/// Maximum length of a socket address, in bytes.
const MAX_ADDRESS: usize = 128;

/// System folders with files that libraries look for in good faith. They are not granted, but
/// trying to open one is no attempt unless only its owner may read it.
const COMMONLY_PROBED: &[&str] = &["/etc", "/sys", "/run", "/var", "/dev", "/usr"];

/// The answer to an inspected call, and the attempt to record, if any.
type CallDecision = (CallReply, Option<SandboxAttempt>);

const CONTINUE: CallDecision = (CallReply::Continue, None);

/// Fails as if denied by the file's mode.
fn deny(kind: AttemptKind, what: impl Into<String>) -> CallDecision {
    (CallReply::Fail(libc::EACCES), Some(SandboxAttempt::new(kind, what)))
}

/// The rights that calls are checked against.
struct CallRights {
    walls: SandboxLevel,
    net: NetworkAccess,
    ports: Vec<u16>,
    addresses: Vec<SocketAddr>,
    whole: Vec<PathBuf>,
    names: Vec<PathBuf>,
    write: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

pub(super) struct CallWatcher {
    rights: CallRights,
    /// Cache of granted files: most programs open the same ones repeatedly.
    granted: HashSet<PathBuf>,
    /// Memory file of the thread that made the last call.
    memory: Option<(u32, File)>,
    /// The first process in the sandbox, by its PID outside.
    first_process: u32,
    notes: Option<File>,
    note_counts: BTreeMap<AttemptKind, usize>,
    connectors: ConnectorPool,
    /// ID of the host's network namespace, if the kernel reports it.
    host_network: Option<u64>,
}

impl CallWatcher {
    pub(super) fn new(
        policy: &SandboxPolicy,
        first_process: u32,
        notes: Option<File>,
        connectors: ConnectorPool,
    ) -> Self {
        let grants = policy.grants();
        let settled = |paths: &[PathBuf]| paths.iter().map(|path| resolve_existing(path)).collect();
        let rights = CallRights {
            walls: policy.level,
            net: network_access(policy),
            ports: policy.ports.clone(),
            addresses: policy.addresses.clone(),
            whole: grants.whole,
            names: grants.listable,
            write: settled(&policy.write),
            secret: settled(&policy.secret),
            protected: settled(&policy.protected),
        };
        let granted = HashSet::new();
        let host_network = connect::own_network_id();
        Self {
            rights,
            granted,
            memory: None,
            first_process,
            notes,
            note_counts: BTreeMap::new(),
            connectors,
            host_network,
        }
    }

    /// Answers the next waiting call.
    pub(super) fn answer_next(&mut self, listener: &OwnedFd) {
        // The caller may have exited by now.
        let Ok(call) = kernel::receive_call(listener.as_fd()) else { return };
        let caller =
            CallingThread { thread: call.thread, memory: RefCell::new(self.memory.take()) };
        let look = if call.number == libc::SYS_connect && self.makes_connections() {
            self.connect_for(listener, &caller, &call)
        } else {
            Some(self.inspect(listener, &call, &caller))
        };
        self.memory = caller.memory.into_inner();
        let Some((answer, attempt)) = look else { return };
        let _ = kernel::answer_call(listener.as_fd(), call.id, answer);
        if let Some(attempt) = attempt {
            self.record(&attempt);
        }
    }

    /// Returns true if connections are made here rather than by the kernel after an inspection.
    fn makes_connections(&self) -> bool {
        self.rights.walls == SandboxLevel::Full || !self.rights.addresses.is_empty()
    }

    fn record(&mut self, attempt: &SandboxAttempt) {
        let count = self.note_counts.entry(attempt.kind).or_default();
        *count += 1;
        if let (Some(file), true) = (&self.notes, *count <= MAX_NOTES) {
            attempt.append_to(file);
        }
    }

    fn inspect(
        &mut self,
        listener: &OwnedFd,
        call: &WaitingCall,
        caller: &CallingThread,
    ) -> CallDecision {
        if let Some((_, name)) = DENIED_CALLS.iter().find(|(number, _)| *number == call.number) {
            let attempt = SandboxAttempt::new(AttemptKind::SystemCall, *name);
            return (CallReply::Fail(libc::EPERM), Some(attempt));
        }
        let arguments = &call.arguments;
        if let Some(what) = denial_reason(call.number, arguments) {
            let attempt = SandboxAttempt::new(AttemptKind::SystemCall, what);
            return (CallReply::Fail(libc::EPERM), Some(attempt));
        }
        match call.number {
            libc::SYS_openat => {
                let path = caller.read_path(Some(arguments[0]), arguments[1]);
                self.inspect_open(path, opens_for_writing(arguments[2]))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.inspect_open(
                caller.read_path(None, arguments[0]),
                opens_for_writing(arguments[1]),
            ),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => self.inspect_open(caller.read_path(None, arguments[0]), true),
            libc::SYS_execve => self.inspect_exec(caller.read_path(None, arguments[0])),
            libc::SYS_execveat => {
                self.inspect_exec(caller.read_path(Some(arguments[0]), arguments[1]))
            }
            libc::SYS_connect => self.inspect_connect(caller, call, arguments[1], arguments[2]),
            libc::SYS_sendto => self.inspect_connect(caller, call, arguments[4], arguments[5]),
            libc::SYS_kill => self.inspect_signal(arguments[0], arguments[1]),
            libc::SYS_rt_sigqueueinfo => self.inspect_signal(arguments[0], arguments[1]),
            libc::SYS_prlimit64 => Self::inspect_limit(caller, arguments[0]),
            libc::SYS_listen => self.listen_for(caller, arguments[0], arguments[1]),
            libc::SYS_bind => self.bind_for(caller, arguments),
            libc::SYS_flock => self.lock_for(caller, arguments),
            libc::SYS_socket if self.rights.net == NetworkAccess::Listed && is_tcp(arguments) => {
                connect::create_outside(listener, call)
            }
            libc::SYS_socket | libc::SYS_socketpair => deny_socket(arguments),
            _ => (CallReply::Fail(libc::EPERM), None),
        }
    }

    /// Returns true if the path exists in the program's view, whether or not it may read it.
    fn is_visible(&self, path: &Path) -> bool {
        // `/proc/PID/root` shows the file system as that process sees it.
        let root = PathBuf::from(format!("/proc/{}/root", self.first_process));
        self.rights.walls == SandboxLevel::Full
            && root.join(path.strip_prefix("/").unwrap_or(path)).symlink_metadata().is_ok()
    }

    fn inspect_open(&mut self, path: Option<PathBuf>, writes: bool) -> CallDecision {
        // A path that cannot be read from the caller's memory is left to the kernel.
        let Some(path) = path else { return CONTINUE };
        if !writes && self.granted.contains(&path) {
            return CONTINUE;
        }
        let look = self.inspect_path(&path, writes);
        let is_plain = !writes && look == CONTINUE && is_below(&path, &self.rights.whole);
        if is_plain && self.granted.len() < MAX_GRANTED {
            self.granted.insert(path);
        }
        look
    }

    fn inspect_path(&self, path: &Path, writes: bool) -> CallDecision {
        let rights = &self.rights;
        // These are the vast majority of opens.
        if !writes && ["/usr/lib", "/lib", "/proc/self"].iter().any(|it| path.starts_with(it)) {
            return CONTINUE;
        }
        // Resolved on the host, because the rights are stated as paths of the host.
        let real = resolve_existing(path);
        if is_below(&real, &rights.write) {
            return CONTINUE;
        }
        let exists = || real.metadata().is_ok_and(|found| !found.is_dir());
        let what = || real.display().to_string();
        if is_below(&real, &rights.protected) && exists() {
            return deny(AttemptKind::AnswerKey, what());
        }
        if real.starts_with("/proc") {
            // Of the sandbox's own processes, it may read whatever the kernel allows.
            let private = ["environ", "mem", "maps", "cmdline"].iter().any(|it| real.ends_with(it));
            let stranger = rights.walls == SandboxLevel::Full && private && !self.is_visible(&real);
            return if stranger && exists() { deny(AttemptKind::Read, what()) } else { CONTINUE };
        }
        let granted = is_below(&real, &rights.whole);
        if !granted && is_below(&real, &rights.secret) && exists() {
            return deny(AttemptKind::Secret, what());
        }
        if writes {
            return self.inspect_write(&real, granted);
        }
        if granted || self.is_visible(&real) || !exists() {
            return CONTINUE;
        }
        if COMMONLY_PROBED.iter().any(|folder| real.starts_with(folder)) {
            let private = real.metadata().is_ok_and(|it| it.permissions().mode() & 0o004 == 0);
            return if private { deny(AttemptKind::Secret, what()) } else { CONTINUE };
        }
        deny(AttemptKind::Read, what())
    }

    fn inspect_write(&self, path: &Path, granted: bool) -> CallDecision {
        let above = path.parent().unwrap_or(path);
        let is_in_names = self.rights.names.iter().any(|folder| folder == above);
        // Python writes `__pycache__` next to its modules and copes with a failure.
        let cache = path.components().any(|part| part.as_os_str() == "__pycache__");
        if cache || path.starts_with("/dev") || path.starts_with("/proc") {
            return CONTINUE;
        }
        if granted || is_in_names {
            return deny(AttemptKind::Write, path.display().to_string());
        }
        // Creating a file in a missing folder fails by itself.
        let own =
            OWN_FOLDERS.iter().any(|folder| path.starts_with(folder)) && self.is_visible(above);
        if own || !above.is_dir() {
            return CONTINUE;
        }
        deny(AttemptKind::Write, path.display().to_string())
    }

    fn inspect_exec(&self, path: Option<PathBuf>) -> CallDecision {
        let Some(path) = path else { return CONTINUE };
        let real = resolve_existing(&path);
        let rights = &self.rights;
        if is_below(&real, &rights.write)
            || is_below(&real, &rights.whole)
            || self.is_visible(&real)
        {
            return CONTINUE;
        }
        if !real.metadata().is_ok_and(|found| found.is_file()) {
            return CONTINUE;
        }
        // The kernel returns ENOENT in the program's view, and a shell then continues along `PATH`.
        let attempt = SandboxAttempt::new(AttemptKind::Execute, real.display().to_string());
        (CallReply::Continue, Some(attempt))
    }

    fn inspect_connect(
        &self,
        caller: &CallingThread,
        call: &WaitingCall,
        at: u64,
        length: u64,
    ) -> CallDecision {
        let length = usize::try_from(length).unwrap_or(MAX_ADDRESS).min(MAX_ADDRESS);
        let Some(bytes) = caller.read_memory(at, length) else { return CONTINUE };
        match SocketDestination::parse(&bytes) {
            SocketDestination::Other | SocketDestination::Unspecified => CONTINUE,
            SocketDestination::Unix(path) => self.inspect_unix_connect(caller, &path),
            // The network namespace contains only its own abstract sockets.
            SocketDestination::Abstract(_) if self.rights.net.has_own_namespace() => CONTINUE,
            SocketDestination::Abstract(name) => {
                let name = String::from_utf8_lossy(&name).into_owned();
                deny(AttemptKind::Connect, format!("the Unix socket @{name}"))
            }
            SocketDestination::Internet(address) => {
                let tcp =
                    matches!(self.rights.net, NetworkAccess::Tcp | NetworkAccess::TcpAndLookups);
                let datagram = || caller.is_datagram(call.arguments[0]);
                if tcp && self.rights.ports.contains(&address.port()) && !datagram() {
                    return CONTINUE;
                }
                if self.rights.net == NetworkAccess::TcpAndLookups && datagram() {
                    return CONTINUE;
                }
                self.deny_address(address, datagram())
            }
        }
    }

    fn inspect_unix_connect(&self, caller: &CallingThread, path: &Path) -> CallDecision {
        let path = caller.resolve_path(None, path).unwrap_or_else(|| path.to_owned());
        let real = resolve_existing(&path);
        let own = OWN_FOLDERS.iter().any(|folder| real.starts_with(folder))
            && !is_below(&real, &self.rights.whole)
            && !is_below(&real, &self.rights.names)
            && self.is_visible(&real);
        if own || is_below(&real, &self.rights.write) {
            return CONTINUE;
        }
        // Caches of users and names, which libraries query first if available.
        let asked = ["/run/nscd", "/var/run/nscd", "/run/systemd", "/var/lib/sss", "/dev/log"];
        if real.symlink_metadata().is_err() || asked.iter().any(|it| real.starts_with(it)) {
            return CONTINUE;
        }
        deny(AttemptKind::Connect, format!("the Unix socket {}", real.display()))
    }

    fn inspect_signal(&self, process: u64, number: u64) -> CallDecision {
        // Process groups and broadcasts only reach its own processes, and signal 0 only probes.
        let process = process as i32;
        if process <= 0 || number == 0 || self.rights.walls != SandboxLevel::Full {
            return CONTINUE;
        }
        if process != 1 && self.is_visible(Path::new(&format!("/proc/{process}"))) {
            return CONTINUE;
        }
        let attempt = SandboxAttempt::new(AttemptKind::Signal, format!("process {process}"));
        (CallReply::Continue, Some(attempt))
    }

    /// Listens on behalf of the program if the socket is a Unix socket or in the program's own
    /// network. Using a copy of the descriptor rules out that it is swapped before the kernel acts
    /// (TOCTOU).
    fn listen_for(&self, caller: &CallingThread, socket: u64, waiting: u64) -> CallDecision {
        let Some(socket) = caller.copy_descriptor(socket) else {
            return (CallReply::Fail(libc::EBADF), None);
        };
        let is_unix = rustix::net::sockopt::socket_domain(&socket) == Ok(AddressFamily::UNIX);
        if !is_unix && !self.is_inside(&socket) {
            return deny(AttemptKind::Socket, "the internet, listening");
        }
        match rustix::net::listen(&socket, waiting as i32) {
            Ok(()) => (CallReply::Done(0), None),
            Err(error) => (CallReply::Fail(error.raw_os_error()), None),
        }
    }

    /// Locks on behalf of the program if the file is its own. A lock belongs to the open file, so a
    /// copy of the descriptor takes it, and cannot be swapped before the kernel acts (TOCTOU). Only a
    /// lock that has to be waited for is left to the kernel.
    fn lock_for(&self, caller: &CallingThread, arguments: &[u64; 6]) -> CallDecision {
        let Some(file) = caller.copy_descriptor(arguments[0]) else {
            return (CallReply::Fail(libc::EBADF), None);
        };
        if !self.is_own(&file) {
            // As on a file system without locks, which programs are used to.
            return (CallReply::Fail(libc::ENOLCK), None);
        }
        let operation = arguments[1] as i32;
        let waits = operation & libc::LOCK_NB == 0;
        let known = match operation & !libc::LOCK_NB {
            libc::LOCK_SH => FlockOperation::NonBlockingLockShared,
            libc::LOCK_EX => FlockOperation::NonBlockingLockExclusive,
            libc::LOCK_UN => FlockOperation::NonBlockingUnlock,
            _ => return (CallReply::Fail(libc::EINVAL), None),
        };
        match rustix::fs::flock(&file, known) {
            Ok(()) => (CallReply::Done(0), None),
            Err(rustix::io::Errno::WOULDBLOCK) if waits => CONTINUE,
            Err(error) => (CallReply::Fail(error.raw_os_error()), None),
        }
    }

    /// Returns true for a file in the program's own folders.
    fn is_own(&self, file: &OwnedFd) -> bool {
        if self.rights.walls == SandboxLevel::Full {
            // Everything else is mounted read-only in there.
            return fstatvfs(file)
                .is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::RDONLY));
        }
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())).read_link();
        path.is_ok_and(|path| is_below(&path, &self.rights.write))
    }

    fn inspect_limit(caller: &CallingThread, process: u64) -> CallDecision {
        // Programs may also name themselves by PID instead of 0.
        if caller.own_process_id().is_some_and(|own| u64::from(own) == process) {
            return CONTINUE;
        }
        let what = format!("prlimit64 on process {process}");
        let attempt = SandboxAttempt::new(AttemptKind::SystemCall, what);
        (CallReply::Fail(libc::EPERM), Some(attempt))
    }
}

fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

fn opens_for_writing(flags: u64) -> bool {
    let flags = flags as i32;
    flags & libc::O_ACCMODE != libc::O_RDONLY || flags & (libc::O_CREAT | libc::O_TRUNC) != 0
}

/// Returns true for a plain TCP socket.
fn is_tcp(arguments: &[u64; 6]) -> bool {
    let [family, kind, protocol] = [arguments[0], arguments[1], arguments[2]].map(|it| it as i32);
    [libc::AF_INET, libc::AF_INET6].contains(&family)
        && kind & 0xf == libc::SOCK_STREAM
        && [0, libc::IPPROTO_TCP].contains(&protocol)
}

fn deny_socket(arguments: &[u64; 6]) -> CallDecision {
    let [family, kind, protocol] = [arguments[0], arguments[1], arguments[2]].map(|it| it as i32);
    let internet = [libc::AF_INET, libc::AF_INET6].contains(&family);
    let error = if !internet {
        libc::EAFNOSUPPORT
    } else if kind & 0xf == libc::SOCK_STREAM && protocol != 0 {
        libc::EPROTONOSUPPORT
    } else {
        libc::EPERM
    };
    let name = match (family, protocol) {
        (libc::AF_INET | libc::AF_INET6, libc::IPPROTO_MPTCP) => "MPTCP".to_owned(),
        (libc::AF_INET | libc::AF_INET6, _) => {
            format!("the internet, type {}, protocol {protocol}", kind & 0xf)
        }
        (libc::AF_VSOCK, _) => "the host of this machine (vsock)".to_owned(),
        (libc::AF_PACKET, _) => "raw packets".to_owned(),
        (libc::AF_NETLINK, _) => format!("the kernel (netlink {protocol})"),
        _ => format!("family {family}"),
    };
    (CallReply::Fail(error), Some(SandboxAttempt::new(AttemptKind::Socket, name)))
}

/// Checks that the kernel lets this process inspect that one as answering its calls requires:
/// reading its memory and copying its descriptors.
pub(super) fn check_inspection_access(process: u32) -> std::io::Result<()> {
    let caller = CallingThread { thread: process, memory: RefCell::new(None) };
    File::open(caller.proc_file("mem"))?;
    // Stderr always exists. EBADF would still mean that access was permitted.
    match caller.try_copy_descriptor(2) {
        Err(error) if error != rustix::io::Errno::BADF => Err(error.into()),
        _ => Ok(()),
    }
}

/// The thread that made the waiting call.
struct CallingThread {
    thread: u32,
    memory: RefCell<Option<(u32, File)>>,
}

impl CallingThread {
    fn proc_file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.thread))
    }

    /// Reads up to `most` bytes of its memory, fewer at the end of a mapping.
    fn read_memory(&self, at: u64, most: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; most];
        let mut kept = self.memory.borrow_mut();
        if let Some((thread, memory)) = &*kept
            && *thread == self.thread
            && let Ok(read @ 1..) = memory.read_at(&mut bytes, at)
        {
            bytes.truncate(read);
            return Some(bytes);
        }
        // A different thread, or a process that has replaced its memory by `exec`.
        let memory = File::open(self.proc_file("mem")).ok()?;
        let read = memory.read_at(&mut bytes, at).ok()?;
        *kept = Some((self.thread, memory));
        bytes.truncate(read);
        Some(bytes)
    }

    /// Reads the path at this address, made absolute and free of `.` and `..`. `folder` is the
    /// descriptor that it is relative to, if any.
    fn read_path(&self, folder: Option<u64>, at: u64) -> Option<PathBuf> {
        // Most paths are short.
        let mut bytes = self.read_memory(at, 256)?;
        if !bytes.contains(&0) {
            bytes = self.read_memory(at, MAX_PATH)?;
        }
        let end = bytes.iter().position(|&byte| byte == 0)?;
        bytes.truncate(end);
        let path = PathBuf::from(OsString::from_vec(bytes));
        self.resolve_path(folder, &path)
    }

    /// Makes a path absolute, keeping any dots and symlinks.
    fn join_working_folder(&self, path: &Path) -> rustix::io::Result<PathBuf> {
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        let folder = self.proc_file("cwd").read_link().map_err(|_| rustix::io::Errno::NOENT)?;
        Ok(folder.join(path))
    }

    fn resolve_path(&self, folder: Option<u64>, path: &Path) -> Option<PathBuf> {
        if path.as_os_str().is_empty() {
            return None;
        }
        let folder = folder.map(|folder| folder as i32).filter(|&it| it != libc::AT_FDCWD);
        let from = || match folder {
            Some(number) => self.proc_file(&format!("fd/{number}")).read_link().ok(),
            None => self.proc_file("cwd").read_link().ok(),
        };
        let path = if path.is_absolute() { path.to_owned() } else { from()?.join(path) };
        let mut plain = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::Normal(name) => plain.push(name),
                Component::ParentDir => _ = plain.pop(),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Some(plain)
    }

    /// Returns the last number on a line of its `/proc` status.
    fn status_number(&self, line: &str) -> Option<u32> {
        let status = fs::read_to_string(self.proc_file("status")).ok()?;
        let line = status.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'))?;
        line.split_whitespace().last()?.parse().ok()
    }

    /// Returns true if a descriptor of its process is close-on-exec.
    fn closes_on_exec(&self, number: u32) -> bool {
        let told =
            fs::read_to_string(self.proc_file(&format!("fdinfo/{number}"))).unwrap_or_default();
        let flags = told.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok());
        flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
    }

    /// Returns its process ID in the innermost PID namespace.
    fn own_process_id(&self) -> Option<u32> {
        // The line lists the PID in each nested namespace, innermost last.
        self.status_number("NStgid")
    }

    /// Copies a descriptor of its process.
    fn copy_descriptor(&self, number: u64) -> Option<OwnedFd> {
        self.try_copy_descriptor(number).ok()
    }

    /// Copies a descriptor of its process, with the reason for a failure.
    fn try_copy_descriptor(&self, number: u64) -> rustix::io::Result<OwnedFd> {
        let process = self.status_number("Tgid").and_then(|process| i32::try_from(process).ok());
        let process = process.and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
        let process = rustix::process::pidfd_open(process, PidfdFlags::empty())?;
        let number = i32::try_from(number).map_err(|_| rustix::io::Errno::BADF)?;
        rustix::process::pidfd_getfd(process, number, PidfdGetfdFlags::empty())
    }

    fn is_datagram(&self, socket: u64) -> bool {
        let socket = self.copy_descriptor(socket);
        let kind = socket.and_then(|socket| rustix::net::sockopt::socket_type(socket).ok());
        kind == Some(rustix::net::SocketType::DGRAM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_look_at_a_file_follows_links_and_names_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["project/src", "project/reports", "scratch", "other"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["project/src/a", "project/reports/r", "project/.env", "other/b"] {
            fs::write(root.join(path), "x").unwrap();
        }
        std::os::unix::fs::symlink("reports/r", root.join("project/link")).unwrap();
        let policy = SandboxPolicy {
            read: vec![root.join("project")],
            write: vec![root.join("scratch")],
            secret: vec![root.join("project/.env")],
            protected: vec![root.join("project/reports")],
            level: SandboxLevel::Inner,
            ..SandboxPolicy::default()
        };
        let connectors = ConnectorPool::start().unwrap();
        let mut watch = CallWatcher::new(&policy, std::process::id(), None, connectors);
        let mut kind = |path: &str, writes| {
            let (answer, attempt) = watch.inspect_open(Some(root.join(path)), writes);
            assert_eq!(answer == CallReply::Continue, attempt.is_none(), "{path}");
            attempt.map(|attempt| attempt.kind)
        };
        assert_eq!(kind("project/src/a", false), None);
        assert_eq!(kind("project/link", false), Some(AttemptKind::AnswerKey));
        assert_eq!(kind("project/reports/r", false), Some(AttemptKind::AnswerKey));
        assert_eq!(kind("project/reports/none", false), None);
        assert_eq!(kind("project/.env", false), Some(AttemptKind::Secret));
        assert_eq!(kind("other/b", false), Some(AttemptKind::Read));
        assert_eq!(kind("other/none", false), None);
        assert_eq!(kind("scratch/new", true), None);
        assert_eq!(kind("project/src/new", true), Some(AttemptKind::Write));
        assert_eq!(kind("project/new", true), Some(AttemptKind::Write));
        assert_eq!(kind("other/b", true), Some(AttemptKind::Write));
        assert_eq!(kind("project/src/__pycache__/a.pyc.1", true), None);
    }
}
