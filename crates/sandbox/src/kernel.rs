//! Linux system calls for which no library provides a safe function. Each wrapper is impossible to
//! misuse; policy lives elsewhere.
#![expect(unsafe_code, reason = "the kernel's interface is C, and no library has these calls")]

use std::ffi::CString;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::thread::UnshareFlags;
use seccompiler::sock_filter;
use tokio::io::unix::AsyncFd;

/// A system call that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitingCall {
    pub(super) id: u64,
    /// The calling thread, in the supervisor's PID namespace.
    pub(super) thread: u32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// The answer to a waiting call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallReply {
    /// The kernel continues the call and applies all other rules.
    Continue,
    /// The call was performed on behalf of the program and returned this value.
    Done(i64),
    /// The call fails with this error number.
    Fail(i32),
}

/// Moves the calling thread into new namespaces. A user namespace requires a single-threaded
/// process.
pub(super) fn unshare(flags: UnshareFlags) -> Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: descriptors stay shared, see the assertion.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Sets close-on-exec for all descriptors from `first` on.
pub(super) fn close_on_exec_from(first: u32) -> Result<()> {
    // SAFETY: only flags of descriptors change.
    let code =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if code == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Takes ownership of a descriptor inherited at startup. Call it once per descriptor.
pub(super) fn take_inherited(number: RawFd) -> Result<OwnedFd> {
    // SAFETY: asks for flags only.
    if number < 3 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the descriptor is open, and the caller takes it over once, before opening anything
    // else.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Changes the attributes of the mount at a path, and of all mounts below it if `all` is true.
pub(super) fn set_mount_attributes(path: &Path, all: bool, set: u64, clear: u64) -> Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes =
        libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    let flags = if all { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers outlive the call, which reads the given number of bytes.
    let code = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if code == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Installs a filter whose watched calls wait for an answer on the returned descriptor.
pub(super) fn install_with_listener(program: &[sock_filter]) -> Result<OwnedFd> {
    let program: Vec<libc::sock_filter> = program
        .iter()
        .map(|step| libc::sock_filter { code: step.code, jt: step.jt, jf: step.jf, k: step.k })
        .collect();
    let length = u16::try_from(program.len()).map_err(Error::other)?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Without the second flag (Linux 5.19), a signal can interrupt a call that was already
    // received, and the call is reported again.
    let mut error = Error::from_raw_os_error(libc::EINVAL);
    for flags in [listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listener] {
        // SAFETY: the program outlives the call, which only reads it.
        let number = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        if let Ok(number @ 0..) = RawFd::try_from(number) {
            // SAFETY: the kernel just made it for this process.
            return Ok(unsafe { OwnedFd::from_raw_fd(number) });
        }
        error = Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(error)
}

/// Registers a descriptor with the async runtime.
pub(super) fn register_descriptor(descriptor: OwnedFd) -> Result<AsyncFd<OwnedFd>> {
    // SAFETY: the returned value owns the descriptor, so it stays valid until deregistered.
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

/// Makes the kernel run caller and supervisor in turns on the same CPU, which is many times faster.
/// Ignored before Linux 6.6.
pub(super) fn answer_on_same_cpu(listener: BorrowedFd<'_>) {
    // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, which the libc crate lacks.
    let flags: libc::c_ulong = 1;
    // SAFETY: the request takes a number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags) };
}

/// Receives the next waiting call. Blocks unless the listener is readable.
pub(super) fn receive_call(listener: BorrowedFd<'_>) -> Result<WaitingCall> {
    // SAFETY: a structure of numbers, for which zero is a value; the kernel demands it.
    let mut raised: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is the one that this request fills.
    let code = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut raised)
    };
    if code < 0 {
        return Err(Error::last_os_error());
    }
    Ok(WaitingCall {
        id: raised.id,
        thread: raised.pid,
        number: i64::from(raised.data.nr),
        arguments: raised.data.args,
    })
}

/// Installs a copy of a descriptor in the calling process and returns its number there. It replaces
/// `number` if given, else takes the lowest free one. The call keeps waiting.
#[expect(clippy::cast_possible_truncation, reason = "one bit")]
pub(super) fn install_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    descriptor: BorrowedFd<'_>,
    number: Option<u32>,
    close_on_exec: bool,
) -> Result<i64> {
    let flags = if close_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 };
    let handed = libc::seccomp_notif_addfd {
        id,
        flags: number.map_or(0, |_| libc::SECCOMP_ADDFD_FLAG_SETFD as u32),
        srcfd: descriptor.as_raw_fd().cast_unsigned(),
        newfd: number.unwrap_or(0),
        newfd_flags: flags,
    };
    // SAFETY: the structure is the one that this request reads.
    let number = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const handed)
    };
    if number < 0 { Err(Error::last_os_error()) } else { Ok(number.into()) }
}

/// Returns the unique ID of the network namespace that a socket belongs to. Needs Linux 5.14.
pub(super) fn network_id(socket: BorrowedFd<'_>) -> Result<u64> {
    // SO_NETNS_COOKIE, which the libc crate lacks.
    const NETWORK: libc::c_int = 71;
    let mut number = 0_u64;
    let mut length: libc::socklen_t = 8;
    // SAFETY: both pointers outlive the call, which writes at most `length` bytes.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            NETWORK,
            (&raw mut number).cast(),
            &raw mut length,
        )
    };
    if code == 0 { Ok(number) } else { Err(Error::last_os_error()) }
}

/// Answers a call. An error usually means that the caller no longer exists.
#[expect(clippy::cast_possible_truncation, reason = "one bit")]
pub(super) fn answer_call(listener: BorrowedFd<'_>, id: u64, answer: CallReply) -> Result<()> {
    let (val, error, flags) = match answer {
        CallReply::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        CallReply::Done(value) => (value, 0, 0),
        CallReply::Fail(number) => (0, -number, 0),
    };
    let reply = libc::seccomp_notif_resp { id, val, error, flags };
    // SAFETY: the structure is the one that this request reads.
    let code = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const reply)
    };
    if code < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
