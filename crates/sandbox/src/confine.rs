//! The last steps before the program starts: its view of the file system, resource limits,
//! Landlock, dropped capabilities, system call filters. In namespaces this process is PID 1, starts
//! the program and reaps exited processes; otherwise it replaces itself with the program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::error::SandboxError;
use super::policy::{SandboxLevel, SandboxPolicy};

/// Fault of a command line that ends with the policy.
const NO_PROGRAM: &str = "expected a program after `--`";

/// Replaces itself with the program, or runs it. Returns its exit code, or 128 + n if signal n
/// killed it.
#[cfg(not(target_os = "linux"))]
pub(super) fn run(arguments: &[OsString]) -> Result<u8, SandboxError> {
    let (policy, program) = SandboxPolicy::from_arguments(arguments)?;
    if policy.level != SandboxLevel::Off {
        set_limits(&policy);
    }
    let (name, arguments) = program.split_first().ok_or(SandboxError::Argument(NO_PROGRAM))?;
    #[cfg(target_os = "macos")]
    if policy.level != SandboxLevel::Off && std::path::Path::new(super::SANDBOX_EXEC).is_file() {
        let profile = super::seatbelt::profile(&policy);
        let error = Command::new(super::SANDBOX_EXEC)
            .args(["-p", &profile, "--"])
            .arg(name)
            .args(arguments)
            .exec();
        return Err(SandboxError::start(name, error));
    }
    let error = Command::new(name).args(arguments).exec();
    Err(SandboxError::start(name, error))
}

/// Replaces itself with the program, or runs it. Returns its exit code, or 128 + n if signal n
/// killed it. The first argument is the number of the control descriptor.
#[cfg(target_os = "linux")]
pub(super) fn run(arguments: &[OsString]) -> Result<u8, SandboxError> {
    use super::control::{self, ActiveProtections};
    use super::view::{self, FileSystemView};
    use super::{kernel, landlock_rules, namespaces};

    let (control, arguments) =
        arguments.split_first().ok_or(SandboxError::Argument("expected a descriptor"))?;
    let (policy, program) = SandboxPolicy::from_arguments(arguments)?;
    let number = control.to_str().and_then(|number| number.parse().ok());
    let control = number.map(kernel::take_inherited).and_then(Result::ok);
    let control = control.ok_or(SandboxError::Argument("no descriptor"))?;
    // The supervisor ends the process tree; this covers a supervisor that is itself killed.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    rustix::io::fcntl_setfd(&control, rustix::io::FdFlags::CLOEXEC)
        .map_err(SandboxError::step("keep a descriptor"))?;
    // Start nothing and use no resources before the supervisor has moved this process into its
    // cgroup.
    let unseen = control::wait_for_release(&control)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    let null = null.map_err(SandboxError::step("open /dev/null"))?;

    let mut standing =
        ActiveProtections { walls: policy.level, unseen, ..ActiveProtections::default() };
    if policy.level == SandboxLevel::Off {
        control::send_report(&control, standing, None)?;
    } else {
        let grants = policy.grants();
        if policy.level == SandboxLevel::Full {
            let folder =
                std::env::current_dir().map_err(SandboxError::step("find the working folder"))?;
            let view = FileSystemView::of(&grants, &policy.requested_paths());
            namespaces::create_inner_namespaces(control::network_access(&policy))
                .map_err(SandboxError::step("have mounts and a network of its own"))?;
            standing.proc = view::mount_view(&view, &policy, &folder)
                .map_err(SandboxError::step("make the file system of the sandbox"))?;
            let _ = rustix::system::sethostname(b"selftest");
        }
        set_limits(&policy);
        // After the mounts, which need capabilities and which Landlock would forbid.
        drop_capabilities().map_err(SandboxError::step("drop capabilities"))?;
        standing.landlock = landlock_rules::restrict(&policy, &grants)?;
        // Prevents the program's processes from inspecting this one.
        let hidden = rustix::process::DumpableBehavior::NotDumpable;
        let _ = rustix::process::set_dumpable_behavior(hidden);
        control::install_filters(&policy, &control, standing)?;
    }
    drop(control);
    if policy.is_trial {
        return Ok(0);
    }
    let (name, arguments) = program.split_first().ok_or(SandboxError::Argument(NO_PROGRAM))?;
    let mut command = Command::new(name);
    command.args(arguments);
    if policy.level != SandboxLevel::Full {
        return Err(SandboxError::start(name, command.exec()));
    }
    let program = command.spawn().map_err(|error| SandboxError::start(name, error))?;
    // From here on only the program holds its stdin and stdout, so that the harness notices when it
    // closes them.
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .map_err(SandboxError::step("let go of the program's input and output"))?;
    Ok(reap_until_exit(rustix::process::Pid::from_child(&program)))
}

/// Waits for the program and reaps every orphan. When this process exits, the kernel kills whatever
/// is left in its PID namespace.
#[cfg(target_os = "linux")]
fn reap_until_exit(program: rustix::process::Pid) -> u8 {
    use rustix::process::{WaitOptions, wait};
    loop {
        match wait(WaitOptions::empty()) {
            // The shell's convention: 128 + n stands for a death by signal n.
            Ok(Some((child, status))) if child == program => {
                let number = status.exit_status().or(status.terminating_signal().map(|n| 128 + n));
                return number.and_then(|number| u8::try_from(number).ok()).unwrap_or(u8::MAX);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return u8::MAX,
        }
    }
}

/// Sets limits that the program cannot raise again. A lower limit that is already set stays.
fn set_limits(policy: &SandboxPolicy) {
    for (resource, most) in rlimits(policy) {
        // Raising a hard limit fails for an ordinary user, which leaves the lower one in place.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

fn rlimits(policy: &SandboxPolicy) -> Vec<(Resource, u64)> {
    let limits = &policy.limits;
    let mib = |mib: u32| u64::from(mib) << 20;
    let mut all = vec![
        (Resource::Core, 0),
        (Resource::Fsize, mib(limits.file_mib)),
        // Not the address space, of which language runtimes reserve terabytes.
        (Resource::Data, mib(limits.memory_mib)),
        (Resource::Cpu, u64::from(limits.cpu_seconds)),
    ];
    // Outside a user namespace it would count all other processes of the user. Beside a cgroup it
    // would be hit first, and no event would be recorded.
    if policy.level == SandboxLevel::Full && !policy.cgroup_counts_processes {
        all.push((Resource::Nproc, u64::from(limits.processes)));
    }
    all
}

/// Drops all capabilities, and every way for a program to regain them.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    };
    set_no_new_privs(true)?;
    for power in CapabilitySet::all().iter() {
        // Fails for an ordinary user without namespaces, who has no capabilities anyway.
        if capability_is_in_bounding_set(power).unwrap_or(false) {
            let _ = remove_capability_from_bounding_set(power);
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_once() {
        let is_bound = |walls, counted| {
            let policy = SandboxPolicy {
                level: walls,
                cgroup_counts_processes: counted,
                ..SandboxPolicy::default()
            };
            rlimits(&policy).iter().any(|(resource, _)| *resource == Resource::Nproc)
        };
        assert!(is_bound(SandboxLevel::Full, false));
        assert!(!is_bound(SandboxLevel::Full, true), "the control group does");
        assert!(!is_bound(SandboxLevel::Inner, false), "whatever else the user runs would count");
    }
}
