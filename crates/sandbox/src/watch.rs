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
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::net::AddressFamily;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::attempt::{Attempt, AttemptKind};
use super::calls::{CLOSED, Net, refused_for};
use super::control::net;
use super::kernel::{self, Answer, Call};
use super::policy::{Policy, Walls, settled};
use super::view::OWN;
use connect::Address;
pub(super) use connect::Connectors;

/// Maximum number of notes per program: enough to see what it is doing.
const MAX_NOTES: usize = 2000;

/// Maximum number of cached granted files.
const MAX_GRANTED: usize = 10_000;

/// Maximum length of a path in bytes, as in the kernel.
const MAX_PATH: usize = 4096;

/// Maximum length of a socket address, in bytes.
const MAX_ADDRESS: usize = 128;

/// System folders with files that libraries look for in good faith. They are not granted, but
/// trying to open one is no attempt unless only its owner may read it.
const LOOKED_FOR: &[&str] = &["/etc", "/sys", "/run", "/var", "/dev", "/usr"];

/// The answer to an inspected call, and the attempt to record, if any.
type Look = (Answer, Option<Attempt>);

const GO_ON: Look = (Answer::Continue, None);

/// Fails as if denied by the file's mode.
fn refuse(kind: AttemptKind, what: impl Into<String>) -> Look {
    (Answer::Fail(libc::EACCES), Some(Attempt::new(kind, what)))
}

/// The rights that calls are checked against.
struct Rights {
    walls: Walls,
    net: Net,
    ports: Vec<u16>,
    addresses: Vec<SocketAddr>,
    whole: Vec<PathBuf>,
    names: Vec<PathBuf>,
    write: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

pub(super) struct Watch {
    rights: Rights,
    /// Cache of granted files: most programs open the same ones repeatedly.
    granted: HashSet<PathBuf>,
    /// Memory file of the thread that made the last call.
    memory: Option<(u32, File)>,
    /// The first process in the sandbox, by its PID outside.
    first: u32,
    notes: Option<File>,
    noted: usize,
    connectors: Connectors,
    /// ID of the host's network namespace, if the kernel reports it.
    outside: Option<u64>,
}

impl Watch {
    pub(super) fn new(
        policy: &Policy,
        first: u32,
        notes: Option<File>,
        connectors: Connectors,
    ) -> Self {
        let grants = policy.grants();
        let settled = |paths: &[PathBuf]| paths.iter().map(|path| settled(path)).collect();
        let rights = Rights {
            walls: policy.walls,
            net: net(policy),
            ports: policy.ports.clone(),
            addresses: policy.addresses.clone(),
            whole: grants.whole,
            names: grants.names,
            write: settled(&policy.write),
            secret: settled(&policy.secret),
            protected: settled(&policy.protected),
        };
        let granted = HashSet::new();
        let outside = connect::own_network();
        Self { rights, granted, memory: None, first, notes, noted: 0, connectors, outside }
    }

    /// Answers the next waiting call.
    pub(super) fn answer_next(&mut self, listener: &OwnedFd) {
        // The caller may have exited by now.
        let Ok(call) = kernel::receive(listener.as_fd()) else { return };
        let caller = Caller { thread: call.thread, memory: RefCell::new(self.memory.take()) };
        let look = if call.number == libc::SYS_connect && self.connects_itself() {
            self.connects(listener, &caller, &call)
        } else {
            Some(self.look(listener, &call, &caller))
        };
        self.memory = caller.memory.into_inner();
        let Some((answer, attempt)) = look else { return };
        let _ = kernel::answer(listener.as_fd(), call.id, answer);
        if let Some(attempt) = attempt {
            self.note(&attempt);
        }
    }

    /// Returns true if connections are made here rather than by the kernel after an inspection.
    fn connects_itself(&self) -> bool {
        self.rights.walls == Walls::Full || !self.rights.addresses.is_empty()
    }

    fn note(&mut self, attempt: &Attempt) {
        self.noted += 1;
        if let (Some(file), true) = (&self.notes, self.noted <= MAX_NOTES) {
            attempt.note(file);
        }
    }

    fn look(&mut self, listener: &OwnedFd, call: &Call, caller: &Caller) -> Look {
        if let Some((_, name)) = CLOSED.iter().find(|(number, _)| *number == call.number) {
            let attempt = Attempt::new(AttemptKind::SystemCall, *name);
            return (Answer::Fail(libc::EPERM), Some(attempt));
        }
        let arguments = &call.arguments;
        if let Some(what) = refused_for(call.number, arguments) {
            let attempt = Attempt::new(AttemptKind::SystemCall, what);
            return (Answer::Fail(libc::EPERM), Some(attempt));
        }
        match call.number {
            libc::SYS_openat => {
                let path = caller.path(Some(arguments[0]), arguments[1]);
                self.opened(path, writes(arguments[2]))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.opened(caller.path(None, arguments[0]), writes(arguments[1])),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => self.opened(caller.path(None, arguments[0]), true),
            libc::SYS_execve => self.executed(caller.path(None, arguments[0])),
            libc::SYS_execveat => self.executed(caller.path(Some(arguments[0]), arguments[1])),
            libc::SYS_connect => self.connected(caller, call, arguments[1], arguments[2]),
            libc::SYS_sendto => self.connected(caller, call, arguments[4], arguments[5]),
            libc::SYS_kill => self.signalled(arguments[0], arguments[1]),
            libc::SYS_rt_sigqueueinfo => self.signalled(arguments[0], arguments[1]),
            libc::SYS_prlimit64 => Self::limited(caller, arguments[0]),
            libc::SYS_listen => self.listened(caller, arguments[0], arguments[1]),
            libc::SYS_bind => self.bound(caller, arguments),
            libc::SYS_socket if self.rights.net == Net::Listed && is_tcp(arguments) => {
                connect::made_outside(listener, call)
            }
            libc::SYS_socket | libc::SYS_socketpair => made_socket(arguments),
            _ => (Answer::Fail(libc::EPERM), None),
        }
    }

    /// Returns true if the path exists in the program's view, whether or not it may read it.
    fn is_seen(&self, path: &Path) -> bool {
        // `/proc/PID/root` shows the file system as that process sees it.
        let root = PathBuf::from(format!("/proc/{}/root", self.first));
        self.rights.walls == Walls::Full
            && root.join(path.strip_prefix("/").unwrap_or(path)).symlink_metadata().is_ok()
    }

    fn opened(&mut self, path: Option<PathBuf>, writes: bool) -> Look {
        // A path that cannot be read from the caller's memory is left to the kernel.
        let Some(path) = path else { return GO_ON };
        if !writes && self.granted.contains(&path) {
            return GO_ON;
        }
        let look = self.looked_at(&path, writes);
        let is_plain = !writes && look == GO_ON && is_below(&path, &self.rights.whole);
        if is_plain && self.granted.len() < MAX_GRANTED {
            self.granted.insert(path);
        }
        look
    }

    fn looked_at(&self, path: &Path, writes: bool) -> Look {
        let rights = &self.rights;
        // These are the vast majority of opens.
        if !writes && ["/usr/lib", "/lib", "/proc/self"].iter().any(|it| path.starts_with(it)) {
            return GO_ON;
        }
        // Resolved on the host, because the rights are stated as paths of the host.
        let real = settled(path);
        if is_below(&real, &rights.write) {
            return GO_ON;
        }
        let exists = || real.metadata().is_ok_and(|found| !found.is_dir());
        let what = || real.display().to_string();
        if is_below(&real, &rights.protected) && exists() {
            return refuse(AttemptKind::AnswerKey, what());
        }
        if real.starts_with("/proc") {
            // Of the sandbox's own processes, it may read whatever the kernel allows.
            let private = ["environ", "mem", "maps", "cmdline"].iter().any(|it| real.ends_with(it));
            let stranger = rights.walls == Walls::Full && private && !self.is_seen(&real);
            return if stranger && exists() { refuse(AttemptKind::Read, what()) } else { GO_ON };
        }
        let granted = is_below(&real, &rights.whole);
        if !granted && is_below(&real, &rights.secret) && exists() {
            return refuse(AttemptKind::Secret, what());
        }
        if writes {
            return self.opened_for_writing(&real, granted);
        }
        if granted || self.is_seen(&real) || !exists() {
            return GO_ON;
        }
        if LOOKED_FOR.iter().any(|folder| real.starts_with(folder)) {
            let private = real.metadata().is_ok_and(|it| it.permissions().mode() & 0o004 == 0);
            return if private { refuse(AttemptKind::Secret, what()) } else { GO_ON };
        }
        refuse(AttemptKind::Read, what())
    }

    fn opened_for_writing(&self, path: &Path, granted: bool) -> Look {
        let above = path.parent().unwrap_or(path);
        let is_in_names = self.rights.names.iter().any(|folder| folder == above);
        // Python writes `__pycache__` next to its modules and copes with a failure.
        let cache = path.components().any(|part| part.as_os_str() == "__pycache__");
        if cache || path.starts_with("/dev") || path.starts_with("/proc") {
            return GO_ON;
        }
        if granted || is_in_names {
            return refuse(AttemptKind::Write, path.display().to_string());
        }
        // Creating a file in a missing folder fails by itself.
        let own = OWN.iter().any(|folder| path.starts_with(folder)) && self.is_seen(above);
        if own || !above.is_dir() {
            return GO_ON;
        }
        refuse(AttemptKind::Write, path.display().to_string())
    }

    fn executed(&self, path: Option<PathBuf>) -> Look {
        let Some(path) = path else { return GO_ON };
        let real = settled(&path);
        let rights = &self.rights;
        if is_below(&real, &rights.write) || is_below(&real, &rights.whole) || self.is_seen(&real) {
            return GO_ON;
        }
        if !real.metadata().is_ok_and(|found| found.is_file()) {
            return GO_ON;
        }
        // The kernel returns ENOENT in the program's view, and a shell then continues along `PATH`.
        let attempt = Attempt::new(AttemptKind::Execute, real.display().to_string());
        (Answer::Continue, Some(attempt))
    }

    fn connected(&self, caller: &Caller, call: &Call, at: u64, length: u64) -> Look {
        let length = usize::try_from(length).unwrap_or(MAX_ADDRESS).min(MAX_ADDRESS);
        let Some(bytes) = caller.memory(at, length) else { return GO_ON };
        match Address::read(&bytes) {
            Address::Other | Address::Nothing => GO_ON,
            Address::Unix(path) => self.connected_by_path(caller, &path),
            // The network namespace contains only its own abstract sockets.
            Address::Abstract(_) if self.rights.net.is_own() => GO_ON,
            Address::Abstract(name) => {
                let name = String::from_utf8_lossy(&name).into_owned();
                refuse(AttemptKind::Connect, format!("the Unix socket @{name}"))
            }
            Address::Internet(address) => {
                let tcp = matches!(self.rights.net, Net::Tcp | Net::TcpAndLookups);
                let datagram = || caller.is_datagram(call.arguments[0]);
                if tcp && self.rights.ports.contains(&address.port()) && !datagram() {
                    return GO_ON;
                }
                if self.rights.net == Net::TcpAndLookups && datagram() {
                    return GO_ON;
                }
                self.out_of_reach(address, datagram())
            }
        }
    }

    fn connected_by_path(&self, caller: &Caller, path: &Path) -> Look {
        let path = caller.absolute(None, path).unwrap_or_else(|| path.to_owned());
        let real = settled(&path);
        let own = OWN.iter().any(|folder| real.starts_with(folder))
            && !is_below(&real, &self.rights.whole)
            && !is_below(&real, &self.rights.names)
            && self.is_seen(&real);
        if own || is_below(&real, &self.rights.write) {
            return GO_ON;
        }
        // Caches of users and names, which libraries query first if available.
        let asked = ["/run/nscd", "/var/run/nscd", "/run/systemd", "/var/lib/sss", "/dev/log"];
        if real.symlink_metadata().is_err() || asked.iter().any(|it| real.starts_with(it)) {
            return GO_ON;
        }
        refuse(AttemptKind::Connect, format!("the Unix socket {}", real.display()))
    }

    fn signalled(&self, process: u64, number: u64) -> Look {
        // Process groups and broadcasts only reach its own processes, and signal 0 only probes.
        let process = process as i32;
        if process <= 0 || number == 0 || self.rights.walls != Walls::Full {
            return GO_ON;
        }
        if process != 1 && self.is_seen(Path::new(&format!("/proc/{process}"))) {
            return GO_ON;
        }
        let attempt = Attempt::new(AttemptKind::Signal, format!("process {process}"));
        (Answer::Continue, Some(attempt))
    }

    /// Listens on behalf of the program if the socket is a Unix socket or in the program's own
    /// network. Using a copy of the descriptor rules out that it is swapped before the kernel acts
    /// (TOCTOU).
    fn listened(&self, caller: &Caller, socket: u64, waiting: u64) -> Look {
        let Some(socket) = caller.descriptor(socket) else {
            return (Answer::Fail(libc::EBADF), None);
        };
        let is_unix = rustix::net::sockopt::socket_domain(&socket) == Ok(AddressFamily::UNIX);
        if !is_unix && !self.is_inside(&socket) {
            return refuse(AttemptKind::Socket, "the internet, listening");
        }
        match rustix::net::listen(&socket, waiting as i32) {
            Ok(()) => (Answer::Done(0), None),
            Err(error) => (Answer::Fail(error.raw_os_error()), None),
        }
    }

    fn limited(caller: &Caller, process: u64) -> Look {
        // Programs may also name themselves by PID instead of 0.
        if caller.own_number().is_some_and(|own| u64::from(own) == process) {
            return GO_ON;
        }
        let what = format!("prlimit64 on process {process}");
        let attempt = Attempt::new(AttemptKind::SystemCall, what);
        (Answer::Fail(libc::EPERM), Some(attempt))
    }
}

fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

fn writes(flags: u64) -> bool {
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

fn made_socket(arguments: &[u64; 6]) -> Look {
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
    (Answer::Fail(error), Some(Attempt::new(AttemptKind::Socket, name)))
}

/// Checks that the kernel lets this process inspect that one as answering its calls requires:
/// reading its memory and copying its descriptors.
pub(super) fn look_into(process: u32) -> std::io::Result<()> {
    let caller = Caller { thread: process, memory: RefCell::new(None) };
    File::open(caller.file("mem"))?;
    // Stderr always exists. EBADF would still mean that access was permitted.
    match caller.taken(2) {
        Err(error) if error != rustix::io::Errno::BADF => Err(error.into()),
        _ => Ok(()),
    }
}

/// The thread that made the waiting call.
struct Caller {
    thread: u32,
    memory: RefCell<Option<(u32, File)>>,
}

impl Caller {
    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.thread))
    }

    /// Reads up to `most` bytes of its memory, fewer at the end of a mapping.
    fn memory(&self, at: u64, most: usize) -> Option<Vec<u8>> {
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
        let memory = File::open(self.file("mem")).ok()?;
        let read = memory.read_at(&mut bytes, at).ok()?;
        *kept = Some((self.thread, memory));
        bytes.truncate(read);
        Some(bytes)
    }

    /// Reads the path at this address, made absolute and free of `.` and `..`. `folder` is the
    /// descriptor that it is relative to, if any.
    fn path(&self, folder: Option<u64>, at: u64) -> Option<PathBuf> {
        // Most paths are short.
        let mut bytes = self.memory(at, 256)?;
        if !bytes.contains(&0) {
            bytes = self.memory(at, MAX_PATH)?;
        }
        let end = bytes.iter().position(|&byte| byte == 0)?;
        bytes.truncate(end);
        let path = PathBuf::from(OsString::from_vec(bytes));
        self.absolute(folder, &path)
    }

    /// Makes a path absolute, keeping any dots and symlinks.
    fn joined(&self, path: &Path) -> rustix::io::Result<PathBuf> {
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        let folder = self.file("cwd").read_link().map_err(|_| rustix::io::Errno::NOENT)?;
        Ok(folder.join(path))
    }

    fn absolute(&self, folder: Option<u64>, path: &Path) -> Option<PathBuf> {
        if path.as_os_str().is_empty() {
            return None;
        }
        let folder = folder.map(|folder| folder as i32).filter(|&it| it != libc::AT_FDCWD);
        let from = || match folder {
            Some(number) => self.file(&format!("fd/{number}")).read_link().ok(),
            None => self.file("cwd").read_link().ok(),
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
    fn status(&self, line: &str) -> Option<u32> {
        let status = fs::read_to_string(self.file("status")).ok()?;
        let line = status.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'))?;
        line.split_whitespace().last()?.parse().ok()
    }

    /// Returns true if a descriptor of its process is close-on-exec.
    fn closes_on_exec(&self, number: u32) -> bool {
        let told = fs::read_to_string(self.file(&format!("fdinfo/{number}"))).unwrap_or_default();
        let flags = told.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|octal| i32::from_str_radix(octal.trim(), 8).ok());
        flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
    }

    /// Returns its process ID in the innermost PID namespace.
    fn own_number(&self) -> Option<u32> {
        // The line lists the PID in each nested namespace, innermost last.
        self.status("NStgid")
    }

    /// Copies a descriptor of its process.
    fn descriptor(&self, number: u64) -> Option<OwnedFd> {
        self.taken(number).ok()
    }

    /// Copies a descriptor of its process, with the reason for a failure.
    fn taken(&self, number: u64) -> rustix::io::Result<OwnedFd> {
        let process = self.status("Tgid").and_then(|process| i32::try_from(process).ok());
        let process = process.and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH)?;
        let process = rustix::process::pidfd_open(process, PidfdFlags::empty())?;
        let number = i32::try_from(number).map_err(|_| rustix::io::Errno::BADF)?;
        rustix::process::pidfd_getfd(process, number, PidfdGetfdFlags::empty())
    }

    fn is_datagram(&self, socket: u64) -> bool {
        let socket = self.descriptor(socket);
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
        let policy = Policy {
            read: vec![root.join("project")],
            write: vec![root.join("scratch")],
            secret: vec![root.join("project/.env")],
            protected: vec![root.join("project/reports")],
            walls: Walls::Inner,
            ..Policy::default()
        };
        let connectors = Connectors::start().unwrap();
        let mut watch = Watch::new(&policy, std::process::id(), None, connectors);
        let mut kind = |path: &str, writes| {
            let (answer, attempt) = watch.opened(Some(root.join(path)), writes);
            assert_eq!(answer == Answer::Continue, attempt.is_none(), "{path}");
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
