//! Namespaces for a program: user, PID, IPC and UTS. The caller enters these; its first child is
//! PID 1 and creates those that the caller must stay out of: mount, cgroup and, if no port was
//! granted, network.

use std::fs;
use std::io::{Error, ErrorKind};

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, capabilities, set_capabilities};

use super::syscalls::NetworkAccess;
use super::{kernel, loopback};

/// The capabilities over its namespaces that the first process needs to set them up.
const CAPABILITIES: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::NET_ADMIN);

/// Sysctls with which Ubuntu and Debian kernels deny namespaces to ordinary users, and their value
/// then.
const NAMESPACE_SYSCTLS: &[(&str, &str)] = &[
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("/proc/sys/user/max_user_namespaces", "0"),
];

/// The kernel denied namespaces.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.describe())]
pub(crate) struct NamespaceError {
    source: Error,
    /// The sysctl that is responsible, if it is known, and its value.
    sysctl: Option<(&'static str, &'static str)>,
}

impl NamespaceError {
    fn new(source: Error) -> Self {
        let is_denying = |(file, off): &&(&str, &str)| {
            fs::read_to_string(file).is_ok_and(|value| value.trim() == *off)
        };
        Self { source, sysctl: NAMESPACE_SYSCTLS.iter().find(is_denying).copied() }
    }

    fn describe(&self) -> String {
        let why = &self.source;
        match self.sysctl {
            Some((file, off)) => {
                let name = file.trim_start_matches("/proc/sys/").replace('/', ".");
                format!("the kernel gives this user no namespaces ({why}): {name} is {off}")
            }
            None => format!("the kernel gives this user no namespaces: {why}"),
        }
    }
}

/// Enters a user namespace, which grants the right to create the others. The process must be
/// single-threaded.
pub(super) fn enter_user_namespace() -> Result<(), NamespaceError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    match kernel::unshare(UnshareFlags::NEWUSER) {
        Ok(()) => {
            map_ids(user, group).map_err(NamespaceError::new)?;
            limit_watches();
            Ok(())
        }
        // Root can create the others even if the kernel has no user namespaces.
        Err(_) if user == 0 => Ok(()),
        Err(error) => Err(NamespaceError::new(error)),
    }
}

/// Enters the other namespaces. Afterwards this thread may start one child, and no threads.
pub(super) fn enter_process_namespaces() -> Result<(), NamespaceError> {
    let flags = UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    kernel::unshare(flags).map_err(NamespaceError::new)?;
    make_capabilities_ambient().map_err(|error| NamespaceError::new(error.into()))
}

/// Creates the remaining namespaces in the first process. The network namespace, if the policy
/// calls for one, is empty or has a loopback interface.
pub(super) fn create_inner_namespaces(net: NetworkAccess) -> Result<(), Error> {
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWCGROUP;
    if net.has_own_namespace() {
        flags |= UnshareFlags::NEWNET;
    }
    kernel::unshare(flags)?;
    if net.has_loopback() { loopback::bring_up() } else { Ok(()) }
}

/// Limits in this user namespace of what the kernel counts per user on the whole machine: a program
/// that used it up would leave none to other programs of the same user.
const COUNTED_PER_USER: [(&str, u32); 4] = [
    ("max_inotify_instances", 32),
    ("max_inotify_watches", 65_536),
    ("max_fanotify_groups", 0),
    ("max_fanotify_marks", 0),
];

fn limit_watches() {
    for (name, most) in COUNTED_PER_USER {
        // Each namespace has values of its own behind these names. Some containers mount them
        // read-only.
        let _ = fs::write(format!("/proc/sys/user/{name}"), most.to_string());
    }
}

/// Maps the user and group to themselves, so that programs see their usual IDs.
fn map_ids(user: u32, group: u32) -> Result<(), Error> {
    // An unprivileged user may write `gid_map` only after disabling `setgroups`.
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::write("/proc/self/uid_map", format!("{user} {user} 1\n"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1\n"))
}

/// Makes the needed capabilities ambient: all others are lost at `exec` by a non-root user.
fn make_capabilities_ambient() -> Result<(), Errno> {
    let own = capabilities(None)?;
    let inheritable = own.permitted & CAPABILITIES;
    set_capabilities(None, CapabilitySets { inheritable, ..own })?;
    for power in CAPABILITIES.iter() {
        rustix::thread::configure_capability_in_ambient_set(power, true)?;
    }
    Ok(())
}

/// Returns advice for a refusal with this text.
pub(super) fn refusal_advice(refusal: &str) -> &'static str {
    if refusal.contains("apparmor_restrict_unprivileged_userns") {
        "Ubuntu keeps namespaces from programs that it does not know: `sudo sysctl -w \
         kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor profile for selftest \
         with `userns,`; or set sut.sandbox to best_effort"
    } else if refusal.contains("unprivileged_userns_clone") {
        "`sudo sysctl -w kernel.unprivileged_userns_clone=1`, or set sut.sandbox to best_effort"
    } else if refusal.contains("max_user_namespaces") {
        "`sudo sysctl -w user.max_user_namespaces=10000`, or set sut.sandbox to best_effort"
    } else {
        "in a container, allow namespaces (`docker run --security-opt seccomp=unconfined \
         --security-opt systempaths=unconfined`); or set sut.sandbox to best_effort, which says \
         what is missing, or run `selftest` on the machine itself"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_advice() {
        for (refusal, command) in [
            ("kernel.apparmor_restrict_unprivileged_userns is 1", "apparmor_restrict"),
            ("kernel.unprivileged_userns_clone is 0", "userns_clone=1"),
            ("user.max_user_namespaces is 0", "max_user_namespaces="),
            ("Operation not permitted (os error 1)", "docker run"),
        ] {
            let advice = refusal_advice(refusal);
            assert!(advice.contains(command) && advice.contains("best_effort"), "{advice}");
        }
    }
}
