//! Connects sockets on behalf of a confined program: to the address that was read once, and for
//! Unix sockets to the file that was opened once. The kernel does not read either again, so nothing
//! can change between check and use (TOCTOU).
//!
//! Without namespaces, Unix sockets in the file system are only inspected.

use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::super::attempt::AttemptKind;
use super::super::kernel::{self, CallReply, WaitingCall};
use super::super::policy::SandboxLevel;
use super::super::syscalls::NetworkAccess;
use super::super::view::OWN_FOLDERS;
use super::{CONTINUE, CallDecision, CallWatcher, CallingThread, MAX_ADDRESS, deny, is_below};

/// Maximum number of simultaneous connection attempts.
const MAX_CONNECTIONS: usize = 256;

/// Stack size in bytes of the thread that waits for one of them.
const STACK_BYTES: usize = 128 << 10;

const fn fail(error: i32) -> CallDecision {
    (CallReply::Fail(error), None)
}

/// A socket of the program and its destination.
struct PendingConnection {
    socket: OwnedFd,
    to: ConnectTarget,
}

enum ConnectTarget {
    Internet(SocketAddr),
    File(OwnedFd),
    Abstract(Vec<u8>),
    /// Dissolves an existing association (`AF_UNSPEC`).
    Unspecified,
}

impl PendingConnection {
    /// Connects, blocking if the program's socket would.
    fn connect(&self) -> CallReply {
        let Self { socket, to } = self;
        let made = match to {
            ConnectTarget::Internet(address) => rustix::net::connect(socket, address),
            // Connecting through the descriptor reaches the very file that was checked.
            ConnectTarget::File(file) => {
                SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_raw_fd()))
                    .and_then(|address| rustix::net::connect(socket, &address))
            }
            ConnectTarget::Abstract(name) => SocketAddrUnix::new_abstract_name(name)
                .and_then(|address| rustix::net::connect(socket, &address)),
            ConnectTarget::Unspecified => rustix::net::connect_unspec(socket),
        };
        made.map_or_else(|error| CallReply::Fail(error.raw_os_error()), |()| CallReply::Done(0))
    }
}

/// A call that waits for a connection.
struct WaitingConnect {
    connection: PendingConnection,
    listener: Arc<OwnedFd>,
    id: u64,
    in_flight: InFlightGuard,
}

impl WaitingConnect {
    fn finish(self) {
        let Self { connection, listener, id, in_flight: begun } = self;
        // The caller may have exited by now.
        let _ = kernel::answer_call(listener.as_fd(), id, connection.connect());
        drop(begun);
    }
}

/// Makes connections, each in its own thread: a program can make any connection hang, and its other
/// calls must not wait for it. A dedicated thread starts the others, because the one that entered
/// the namespaces cannot.
pub(in super::super) struct ConnectorPool {
    sender: Sender<WaitingConnect>,
    in_flight: Arc<AtomicUsize>,
}

impl ConnectorPool {
    /// Starts the dedicated thread, which ends when this value is dropped.
    pub(in super::super) fn start() -> std::io::Result<Self> {
        let (way, waiting) = std::sync::mpsc::channel::<WaitingConnect>();
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            for call in waiting {
                let (listener, id) = (Arc::clone(&call.listener), call.id);
                let started = std::thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .spawn(move || call.finish());
                if started.is_err() {
                    let _ =
                        kernel::answer_call(listener.as_fd(), id, CallReply::Fail(libc::EAGAIN));
                }
            }
        })?;
        Ok(Self { sender: way, in_flight: Arc::default() })
    }

    /// Starts a connection whose thread will answer the call. Returns an answer if that is not
    /// possible.
    fn start_connection(
        &self,
        connection: PendingConnection,
        listener: &OwnedFd,
        id: u64,
    ) -> Option<CallDecision> {
        let too_many = Some(fail(libc::EAGAIN));
        let Ok(listener) = listener.try_clone().map(Arc::new) else { return too_many };
        let begun = InFlightGuard::count_one(&self.in_flight);
        if self.in_flight.load(Ordering::Relaxed) > MAX_CONNECTIONS {
            return too_many;
        }
        let sent = self.sender.send(WaitingConnect { connection, listener, id, in_flight: begun });
        if sent.is_err() { too_many } else { None }
    }
}

/// Counts one connection for as long as it lives.
struct InFlightGuard(Arc<AtomicUsize>);

impl InFlightGuard {
    fn count_one(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(all))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallWatcher {
    /// Connects on behalf of the caller. Returns `None` if a thread will answer.
    pub(super) fn connect_for(
        &self,
        listener: &OwnedFd,
        caller: &CallingThread,
        call: &WaitingCall,
    ) -> Option<CallDecision> {
        match self.plan_connection(listener, caller, call) {
            Ok(connection) => self.connectors.start_connection(connection, listener, call.id),
            Err(look) => Some(look),
        }
    }

    fn plan_connection(
        &self,
        listener: &OwnedFd,
        caller: &CallingThread,
        call: &WaitingCall,
    ) -> Result<PendingConnection, CallDecision> {
        let [number, at, length, ..] = call.arguments;
        // The kernel reads the length as an `int`.
        let length = usize::try_from(length as u32).unwrap_or(usize::MAX);
        if length > MAX_ADDRESS {
            return Err(fail(libc::EINVAL));
        }
        // A partial read would leave part of the address unchecked.
        let bytes = caller.read_memory(at, length).filter(|bytes| bytes.len() == length);
        let bytes = bytes.ok_or(fail(libc::EFAULT))?;
        let mut socket =
            caller.try_copy_descriptor(number).map_err(|error| fail(error.raw_os_error()))?;
        let domain = rustix::net::sockopt::socket_domain(&socket);
        let domain = domain.map_err(|error| fail(error.raw_os_error()))?;
        let to = match (domain, SocketDestination::parse(&bytes)) {
            (AddressFamily::INET | AddressFamily::INET6, SocketDestination::Internet(address)) => {
                self.check_reach(&socket, address)?;
                if self.rights.addresses.contains(&address) && self.is_inside(&socket) {
                    socket = replace_socket(listener, caller, call, &socket, domain)
                        .map_err(|error| fail(error.raw_os_error().unwrap_or(libc::EMFILE)))?;
                }
                ConnectTarget::Internet(convert_to_family(address, domain))
            }
            (AddressFamily::UNIX, SocketDestination::Unix(path)) => {
                self.open_unix_socket(caller, &path)?
            }
            (AddressFamily::UNIX, SocketDestination::Abstract(name)) => {
                self.check_abstract_name(name)?
            }
            (
                AddressFamily::INET | AddressFamily::INET6 | AddressFamily::UNIX,
                SocketDestination::Unspecified,
            ) => ConnectTarget::Unspecified,
            (AddressFamily::INET | AddressFamily::INET6 | AddressFamily::UNIX, _) => {
                return Err(fail(libc::EAFNOSUPPORT));
            }
            // The kernel (netlink), to which no program needs to connect.
            _ => return Err(fail(libc::EPERM)),
        };
        Ok(PendingConnection { socket, to })
    }

    /// Checks that a socket may be connected to this address.
    fn check_reach(&self, socket: &OwnedFd, address: SocketAddr) -> Result<(), CallDecision> {
        let rights = &self.rights;
        let kind = rustix::net::sockopt::socket_type(socket);
        let is_stream = kind == Ok(SocketType::STREAM);
        let granted = match rights.net {
            NetworkAccess::Empty | NetworkAccess::Denied => false,
            NetworkAccess::Loopback => is_stream && is_loopback(address),
            NetworkAccess::LoopbackAndListed => {
                let is_listed = rights.addresses.contains(&address);
                is_stream && (is_listed || is_loopback(address) && self.is_inside(socket))
            }
            NetworkAccess::TcpAndLookups if kind == Ok(SocketType::DGRAM) => true,
            NetworkAccess::Tcp | NetworkAccess::TcpAndLookups if rights.addresses.is_empty() => {
                is_stream && rights.ports.contains(&address.port())
            }
            NetworkAccess::Listed | NetworkAccess::Tcp | NetworkAccess::TcpAndLookups => {
                is_stream && rights.addresses.contains(&address)
            }
        };
        if granted { Ok(()) } else { Err(self.deny_address(address, !is_stream)) }
    }

    fn open_unix_socket(
        &self,
        caller: &CallingThread,
        path: &Path,
    ) -> Result<ConnectTarget, CallDecision> {
        let look = self.inspect_unix_connect(caller, path);
        if look != CONTINUE || self.rights.walls != SandboxLevel::Full {
            return Err(look);
        }
        // Resolve the path once, as the program sees it, and keep the result open. `IN_ROOT` keeps
        // `..` and absolute links inside; magic links of `/proc` could lead out.
        let root = PathBuf::from(format!("/proc/{}/root", self.first_process));
        let opened = caller.join_working_folder(path).and_then(|path| {
            let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = rustix::fs::open(&root, folder, Mode::empty())?;
            let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            let file = OFlags::PATH | OFlags::CLOEXEC;
            rustix::fs::openat2(folder, path, file, Mode::empty(), how)
        });
        let file = opened.map_err(|error| fail(error.raw_os_error()))?;
        let found = rustix::fs::fstat(&file).map_err(|error| fail(error.raw_os_error()))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
            return Err(fail(libc::ECONNREFUSED));
        }
        // The in-memory folders are file systems of the program's own.
        let in_memory = OWN_FOLDERS.iter().any(|own| {
            let own = root.join(own.trim_start_matches('/'));
            rustix::fs::stat(&own).is_ok_and(|own| own.st_dev == found.st_dev)
        });
        let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        if in_memory || real.as_ref().is_ok_and(|real| is_below(real, &self.rights.write)) {
            return Ok(ConnectTarget::File(file));
        }
        let real = real.unwrap_or_else(|_| path.to_owned());
        Err(deny(AttemptKind::Connect, format!("the Unix socket {}", real.display())))
    }

    fn check_abstract_name(&self, name: Vec<u8>) -> Result<ConnectTarget, CallDecision> {
        // The network namespace contains only its own abstract sockets.
        if self.rights.net.has_own_namespace() {
            return Ok(ConnectTarget::Abstract(name));
        }
        let name = String::from_utf8_lossy(&name).into_owned();
        Err(deny(AttemptKind::Connect, format!("the Unix socket @{name}")))
    }

    /// Returns true if the socket belongs to the program's own network, with ports of its own. A
    /// socket never changes its network.
    pub(super) fn is_inside(&self, socket: &OwnedFd) -> bool {
        match self.rights.net {
            NetworkAccess::Loopback => true,
            NetworkAccess::LoopbackAndListed => {
                let network = kernel::network_id(socket.as_fd()).ok();
                // If the kernel does not report networks, no socket counts as inside.
                self.host_network.is_some() && network.is_some() && network != self.host_network
            }
            _ => false,
        }
    }

    /// Binds on behalf of the program in its own network. All other sockets are left to the kernel,
    /// where Landlock denies TCP.
    pub(super) fn bind_for(&self, caller: &CallingThread, arguments: &[u64; 6]) -> CallDecision {
        let [number, at, length, ..] = *arguments;
        let Ok(socket) = caller.try_copy_descriptor(number) else { return fail(libc::EBADF) };
        let domain = rustix::net::sockopt::socket_domain(&socket);
        let Ok(domain @ (AddressFamily::INET | AddressFamily::INET6)) = domain else {
            return CONTINUE;
        };
        if rustix::net::sockopt::socket_type(&socket) != Ok(SocketType::STREAM) {
            return CONTINUE;
        }
        if !self.is_inside(&socket) {
            return deny(AttemptKind::Socket, "the internet, listening");
        }
        let length = usize::try_from(length as u32).unwrap_or(usize::MAX).min(MAX_ADDRESS);
        let Some(bytes) = caller.read_memory(at, length) else { return fail(libc::EFAULT) };
        let SocketDestination::Internet(address) = SocketDestination::parse(&bytes) else {
            return fail(libc::EAFNOSUPPORT);
        };
        match rustix::net::bind(&socket, &convert_to_family(address, domain)) {
            Ok(()) => (CallReply::Done(0), None),
            Err(error) => fail(error.raw_os_error()),
        }
    }

    /// Denies an address that was not granted.
    pub(super) fn deny_address(&self, address: SocketAddr, is_datagram: bool) -> CallDecision {
        let known = |listed: &SocketAddr| listed.ip() == address.ip();
        // Libraries sort addresses by connecting UDP sockets, without sending anything.
        let is_tried = address.ip().is_loopback() || self.rights.addresses.iter().any(known);
        if is_datagram && is_tried {
            return fail(libc::ENETUNREACH);
        }
        deny(AttemptKind::Connect, address.to_string())
    }
}

/// Returns true for a loopback address. The unspecified address connects to loopback too.
fn is_loopback(address: SocketAddr) -> bool {
    address.ip().is_loopback() || address.ip().is_unspecified()
}

/// Returns the network namespace ID of this process.
pub(super) fn own_network_id() -> Option<u64> {
    let socket = std::os::unix::net::UnixDatagram::unbound().ok()?;
    kernel::network_id(socket.as_fd()).ok()
}

/// Creates a socket outside and puts it in place of the program's own, under the same number, with
/// the same flags and the options that programs usually set before connecting.
fn replace_socket(
    listener: &OwnedFd,
    caller: &CallingThread,
    call: &WaitingCall,
    own: &OwnedFd,
    family: AddressFamily,
) -> std::io::Result<OwnedFd> {
    let number = call.arguments[0] as u32;
    let mut flags = SocketFlags::CLOEXEC;
    let own_flags = rustix::fs::fcntl_getfl(own)?;
    flags.set(SocketFlags::NONBLOCK, own_flags.contains(OFlags::NONBLOCK));
    let outside = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Options only affect performance or timeouts, so a failure to copy one is not fatal.
    let _ = copy_options(own, &outside);
    let close_on_exec = caller.closes_on_exec(number);
    let (listener, handed) = (listener.as_fd(), outside.as_fd());
    kernel::install_descriptor(listener, call.id, handed, Some(number), close_on_exec)?;
    Ok(outside)
}

fn copy_options(from: &OwnedFd, to: &OwnedFd) -> rustix::io::Result<()> {
    use rustix::net::sockopt as option;
    option::set_tcp_nodelay(to, option::tcp_nodelay(from)?)?;
    for timeout in [option::Timeout::Recv, option::Timeout::Send] {
        option::set_socket_timeout(to, timeout, option::socket_timeout(from, timeout)?)?;
    }
    option::set_tcp_user_timeout(to, option::tcp_user_timeout(from)?)?;
    option::set_socket_keepalive(to, option::socket_keepalive(from)?)?;
    option::set_tcp_keepidle(to, option::tcp_keepidle(from)?)?;
    option::set_tcp_keepintvl(to, option::tcp_keepintvl(from)?)?;
    option::set_tcp_keepcnt(to, option::tcp_keepcnt(from)?)
}

/// Converts an address to the socket's family.
fn convert_to_family(address: SocketAddr, family: AddressFamily) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if family == AddressFamily::INET6 => {
            SocketAddr::new(ip.to_ipv6_mapped().into(), address.port())
        }
        _ => address,
    }
}

/// Creates a TCP socket outside and hands it over. Until it is connected, which only
/// [`CallWatcher::connect_for`] does, no data can pass through it.
pub(super) fn create_outside(listener: &OwnedFd, call: &WaitingCall) -> CallDecision {
    let [family, kind, protocol] = [0, 1, 2].map(|at| call.arguments[at] as i32);
    let family = match family {
        libc::AF_INET => AddressFamily::INET,
        _ => AddressFamily::INET6,
    };
    let is_plain = protocol == 0 || protocol == libc::IPPROTO_TCP;
    debug_assert!(is_plain && kind & 0xf == libc::SOCK_STREAM);
    let mut flags = SocketFlags::CLOEXEC;
    flags.set(SocketFlags::NONBLOCK, kind & libc::SOCK_NONBLOCK != 0);
    let made = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
    let handed = made.map_err(std::io::Error::from).and_then(|socket| {
        let close_on_exec = kind & libc::SOCK_CLOEXEC != 0;
        kernel::install_descriptor(listener.as_fd(), call.id, socket.as_fd(), None, close_on_exec)
    });
    match handed {
        Ok(number) => (CallReply::Done(number), None),
        Err(error) => fail(error.raw_os_error().unwrap_or(libc::EMFILE)),
    }
}

/// The destination of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SocketDestination {
    Unix(PathBuf),
    Abstract(Vec<u8>),
    Internet(SocketAddr),
    /// Disconnects the socket.
    Unspecified,
    /// Missing, or not a socket address that programs may use.
    Other,
}

impl SocketDestination {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let Some((family, rest)) = bytes.split_first_chunk::<2>() else { return Self::Other };
        let family = i32::from(u16::from_ne_bytes(*family));
        match (family, rest) {
            (libc::AF_UNSPEC, _) => Self::Unspecified,
            (libc::AF_UNIX, [0, name @ ..]) => Self::Abstract(name.to_vec()),
            (libc::AF_UNIX, [_, ..]) => {
                let path = rest.split(|&byte| byte == 0).next().unwrap_or_default();
                Self::Unix(OsStr::from_bytes(path).into())
            }
            (libc::AF_INET, [p, q, ip @ ..]) => {
                let Some(ip) = ip.first_chunk::<4>() else { return Self::Other };
                let ip = IpAddr::V4(Ipv4Addr::from(*ip));
                Self::Internet(SocketAddr::new(ip, u16::from_be_bytes([*p, *q])))
            }
            (libc::AF_INET6, [p, q, _, _, _, _, ip @ ..]) => {
                let Some(ip) = ip.first_chunk::<16>() else { return Self::Other };
                // Normalise IPv4-mapped addresses, so that they match IPv4 addresses in the list.
                let ip = IpAddr::V6(Ipv6Addr::from(*ip)).to_canonical();
                Self::Internet(SocketAddr::new(ip, u16::from_be_bytes([*p, *q])))
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(family: i32) -> Vec<u8> {
        u16::try_from(family).unwrap().to_ne_bytes().to_vec()
    }

    #[test]
    fn addresses_are_read() {
        let unix = |path: &[u8]| [family(libc::AF_UNIX), path.to_vec()].concat();
        let read = SocketDestination::parse(&unix(b"/run/docker.sock\0rest"));
        assert_eq!(read, SocketDestination::Unix("/run/docker.sock".into()));
        assert_eq!(
            SocketDestination::parse(&unix(b"\0bus")),
            SocketDestination::Abstract(b"bus".to_vec())
        );
        assert_eq!(SocketDestination::parse(&unix(b"")), SocketDestination::Other);
        assert_eq!(SocketDestination::parse(&[0; 16]), SocketDestination::Unspecified);
        let inet = [family(libc::AF_INET), vec![0, 80, 127, 0, 0, 1], vec![0; 8]].concat();
        assert_eq!(
            SocketDestination::parse(&inet),
            SocketDestination::Internet("127.0.0.1:80".parse().unwrap())
        );
        let mut ip = [0; 16];
        ip[10..].copy_from_slice(&[255, 255, 10, 0, 0, 1]);
        // With a scope ID, which is ignored: it selects an interface.
        let inet6 = [family(libc::AF_INET6), vec![1, 187, 0, 0, 0, 0], ip.to_vec(), vec![7; 4]];
        let inet6 = inet6.concat();
        assert_eq!(
            SocketDestination::parse(&inet6),
            SocketDestination::Internet("10.0.0.1:443".parse().unwrap())
        );
        for broken in [&inet[..5], &inet6[..20], &[0][..], &[][..], &family(libc::AF_NETLINK)] {
            assert_eq!(SocketDestination::parse(broken), SocketDestination::Other);
        }
    }

    #[test]
    fn options_are_carried_over() {
        use rustix::net::sockopt as option;
        let socket = || rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let (from, to) = (socket(), socket());
        option::set_tcp_nodelay(&from, true).unwrap();
        option::set_socket_keepalive(&from, true).unwrap();
        option::set_tcp_keepcnt(&from, 7).unwrap();
        copy_options(&from, &to).unwrap();
        assert!(option::tcp_nodelay(&to).unwrap() && option::socket_keepalive(&to).unwrap());
        assert_eq!(option::tcp_keepcnt(&to), Ok(7));
    }

    #[test]
    fn an_address_is_written_as_its_socket_reads_it() {
        let old: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let mapped: SocketAddr = "[::ffff:127.0.0.1]:80".parse().unwrap();
        assert_eq!(convert_to_family(old, AddressFamily::INET), old);
        assert_eq!(convert_to_family(old, AddressFamily::INET6), mapped);
        let new: SocketAddr = "[::1]:80".parse().unwrap();
        assert_eq!(convert_to_family(new, AddressFamily::INET6), new);
    }
}
