//! The control channel between the first process in the sandbox and its supervisor. It carries the
//! permission to start, the active protections, and the descriptor on which calls wait for an
//! answer.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::error::SandboxError;
use super::kernel;
use super::policy::{SandboxLevel, SandboxPolicy};
use super::syscalls::{NetworkAccess, SeccompFilters};

/// Maximum size of a message, in bytes.
const MAX_MESSAGE: usize = 4096;

/// The active protections around a program, as found when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct ActiveProtections {
    pub(super) walls: SandboxLevel,
    /// Landlock ABI version, 0 if unsupported.
    pub(super) landlock: i32,
    /// True if system calls are filtered.
    pub(super) filtered: bool,
    /// True if the supervisor sees denied attempts.
    pub(super) watched: bool,
    /// True if the sandbox has its own `/proc`.
    pub(super) proc: bool,
    /// The error with which the kernel prevents the supervisor from inspecting the program.
    pub(super) unseen: Option<i32>,
}

/// Returns the network access of the program.
pub(super) fn network_access(policy: &SandboxPolicy) -> NetworkAccess {
    let is_full = policy.level == SandboxLevel::Full;
    if !policy.addresses.is_empty() {
        // Without a network namespace, Landlock prevents the program from connecting by itself.
        return match (is_full, policy.local_ports) {
            (true, true) => NetworkAccess::LoopbackAndListed,
            (true, false) => NetworkAccess::Listed,
            (false, _) => NetworkAccess::Tcp,
        };
    }
    match (policy.ports.is_empty(), is_full) {
        (true, true) if policy.local_ports => NetworkAccess::Loopback,
        (true, true) => NetworkAccess::Empty,
        (true, false) => NetworkAccess::Denied,
        (false, _) if policy.name_lookups => NetworkAccess::TcpAndLookups,
        (false, _) => NetworkAccess::Tcp,
    }
}

/// Lets the first process continue, now that it is in its control group. Sends the error, if any,
/// that prevents the supervisor from inspecting it.
pub(super) fn release(control: &OwnedFd, unseen: Option<i32>) -> std::io::Result<()> {
    Ok(rustix::io::write(control, &unseen.unwrap_or(0).to_ne_bytes()).map(drop)?)
}

/// Waits for permission to continue and returns the error sent by [`release`].
pub(super) fn wait_for_release(control: &OwnedFd) -> Result<Option<i32>, SandboxError> {
    let mut word = [0; 4];
    loop {
        match rustix::io::read(control, &mut word) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(4) => return Ok(Some(i32::from_ne_bytes(word)).filter(|&error| error != 0)),
            _ => return Err(SandboxError::SupervisorGone),
        }
    }
}

/// Returns the part of the policy that cannot be enforced if calls do not wait for the supervisor.
/// The harness does not request it on such a machine; this covers one that changed since it was
/// probed.
fn unenforceable_part(
    policy: &SandboxPolicy,
    standing: &ActiveProtections,
) -> Option<&'static str> {
    if standing.watched {
        None
    } else if !policy.addresses.is_empty() {
        Some("a list of addresses")
    } else if policy.local_ports {
        Some("ports of its own")
    } else if policy.level == SandboxLevel::Full
        && !policy.ports.is_empty()
        && standing.landlock < 4
    {
        Some("a list of ports")
    } else {
        None
    }
}

/// Filters the system calls of this process from here on, and reports the active protections to the
/// supervisor.
pub(super) fn install_filters(
    policy: &SandboxPolicy,
    control: &OwnedFd,
    mut standing: ActiveProtections,
) -> Result<(), SandboxError> {
    let Some(filters) = SeccompFilters::new(network_access(policy)) else {
        return send_report(control, standing, None);
    };
    for program in &filters.denying {
        if let Err(error) = seccompiler::apply_filter(program) {
            if policy.level == SandboxLevel::Full {
                return Err(SandboxError::Filter(error));
            }
            return send_report(control, standing, None);
        }
    }
    standing.filtered = true;
    // Must be the last filter: everything after it may be watched, except the `sendmsg` below,
    // which no filter intercepts.
    let listener = match standing.unseen {
        None => kernel::install_with_listener(&filters.watched).ok(),
        // A supervisor that cannot read the program's memory could answer nothing, and every
        // watched call would fail.
        Some(_) => None,
    };
    if listener.is_none() {
        seccompiler::apply_filter(&filters.unwatched).map_err(SandboxError::Filter)?;
    }
    standing.watched = listener.is_some();
    if let Some(what) = unenforceable_part(policy, &standing) {
        return Err(SandboxError::Unwatched(what));
    }
    send_report(control, standing, listener.as_ref().map(AsFd::as_fd))
}

/// Reports the active protections to the supervisor.
pub(super) fn send_report(
    control: &OwnedFd,
    standing: ActiveProtections,
    listener: Option<BorrowedFd<'_>>,
) -> Result<(), SandboxError> {
    let message =
        serde_json::to_vec(&standing).map_err(SandboxError::step("report to the supervisor"))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = listener.into_iter().collect();
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    sendmsg(control, &[IoSlice::new(&message)], &mut ancillary, SendFlags::empty())
        .map(drop)
        .map_err(SandboxError::step("reach the supervisor"))
}

/// Receives the protections, and the listener if calls wait for the supervisor. Returns `None` if
/// the process ended without reporting.
pub(super) fn receive_report(
    control: BorrowedFd<'_>,
) -> Option<(ActiveProtections, Option<OwnedFd>)> {
    let mut message = [0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(&mut message)];
    let length = recvmsg(control, &mut parts, &mut ancillary, flags).ok()?.bytes;
    let listener = ancillary.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Some((serde_json::from_slice(message.get(..length)?).ok()?, listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_that_cannot_be_kept() {
        let blind = ActiveProtections {
            unseen: Some(libc::EPERM),
            landlock: 3,
            ..ActiveProtections::default()
        };
        let listed = SandboxPolicy {
            addresses: vec!["[::1]:1".parse().unwrap()],
            ..SandboxPolicy::default()
        };
        let ports = SandboxPolicy { ports: vec![1], ..SandboxPolicy::default() };
        for (policy, landlock, is_kept) in [
            (&SandboxPolicy::default(), 0, true),
            (&listed, 7, false),
            (&ports, 3, false),
            (&ports, 4, true),
        ] {
            let standing = ActiveProtections { landlock, ..blind };
            assert_eq!(unenforceable_part(policy, &standing).is_none(), is_kept, "{policy:?}");
            assert_eq!(
                unenforceable_part(policy, &ActiveProtections { watched: true, ..standing }),
                None
            );
        }
    }

    #[test]
    fn the_first_process_is_told_why_it_is_not_seen() {
        let flags = rustix::net::SocketFlags::CLOEXEC;
        let kind = rustix::net::SocketType::SEQPACKET;
        let pair = rustix::net::socketpair(rustix::net::AddressFamily::UNIX, kind, flags, None);
        let (ours, theirs) = pair.unwrap();
        for unseen in [None, Some(libc::EPERM)] {
            release(&ours, unseen).unwrap();
            assert_eq!(wait_for_release(&theirs).unwrap(), unseen);
        }
        drop(ours);
        assert!(wait_for_release(&theirs).is_err());
    }
}
