//! Namespaces of its own for a program: users, processes, IPC and names. The caller enters them; its
//! first child is process 1, which makes those that the caller must stay out of: mounts, control
//! groups and, where no port was granted, network.

use std::fs;
use std::io::{Error, ErrorKind};

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, capabilities, set_capabilities};

use super::calls::Net;
use super::{kernel, loopback};

/// The powers over its own namespaces that the first process needs to furnish them.
const POWERS: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::NET_ADMIN);

/// Switch of kernels of Ubuntu and Debian that takes namespaces from ordinary users.
const SWITCHES: &[(&str, &str)] = &[
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("/proc/sys/user/max_user_namespaces", "0"),
];

/// Enters that of users, where the others can be had by it. The process must have one thread.
pub(super) fn own_user() -> Result<(), String> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    match kernel::unshare(UnshareFlags::NEWUSER) {
        Ok(()) => map(user, group).map_err(|why| refusal(&why)),
        // Root of a machine without namespaces for users has the others all the same.
        Err(_) if user == 0 => Ok(()),
        Err(why) => Err(refusal(&why)),
    }
}

/// Enters the others. After this the thread may start one child, and no thread.
pub(super) fn enter() -> Result<(), String> {
    let flags = UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    kernel::unshare(flags).map_err(|why| refusal(&why))?;
    hand_on_powers().map_err(|why| refusal(&why.into()))
}

/// Makes the others, in the first process: a network of its own where that is what it may use, in which
/// there is nothing, or a loopback interface.
pub(super) fn furnish(net: Net) -> Result<(), Error> {
    let mut flags = UnshareFlags::NEWNS | UnshareFlags::NEWCGROUP;
    if net.is_own() {
        flags |= UnshareFlags::NEWNET;
    }
    kernel::unshare(flags)?;
    if net.is_local() { loopback::raise() } else { Ok(()) }
}

/// The user keeps its number: programs ask who they are.
fn map(user: u32, group: u32) -> Result<(), Error> {
    // A user may name its own group only after it gave up to change the others. Root need not.
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::write("/proc/self/uid_map", format!("{user} {user} 1\n"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1\n"))
}

/// Programs that an ordinary user starts lose every power but the ambient ones.
fn hand_on_powers() -> Result<(), Errno> {
    let own = capabilities(None)?;
    let inheritable = own.permitted & POWERS;
    set_capabilities(None, CapabilitySets { inheritable, ..own })?;
    for power in POWERS.iter() {
        rustix::thread::configure_capability_in_ambient_set(power, true)?;
    }
    Ok(())
}

/// Why the kernel refused, with the switch that does it where one is known.
fn refusal(why: &Error) -> String {
    let switch = SWITCHES
        .iter()
        .find(|(file, off)| fs::read_to_string(file).is_ok_and(|value| value.trim() == *off));
    match switch {
        Some((file, off)) => {
            let name = file.trim_start_matches("/proc/sys/").replace('/', ".");
            format!("the kernel gives this user no namespaces ({why}): {name} is {off}")
        }
        None => format!("the kernel gives this user no namespaces: {why}"),
    }
}

/// The remedy for a refusal in these words.
pub(super) fn advice(refusal: &str) -> &'static str {
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
            let advice = advice(refusal);
            assert!(advice.contains(command) && advice.contains("best_effort"), "{advice}");
        }
    }
}
