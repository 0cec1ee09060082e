//! Describes the isolation of a program for reports: enforced rules, and gaps in them. Pure.

use crate::sut::Isolation;
use crate::sut::sut_settings::{ProgramSettings, WorkFolder};
use selftest_sandbox::limits::SandboxLimits;
use selftest_sandbox::{EnforcedLimits, SandboxLevel, SandboxSupport};

/// Describes the rules that apply. `group` contains the limits enforced by control groups, or the
/// reason why there are none.
pub(super) fn describe_isolation(
    standing: &SandboxSupport,
    group: &Result<EnforcedLimits, String>,
    settings: &ProgramSettings,
) -> Isolation {
    let mut isolation = Isolation {
        enforced: vec![
            "environment cleared to an allow-list and the configured variables".to_owned(),
        ],
        not_enforced: Vec::new(),
    };
    match standing.level {
        SandboxLevel::Full => {
            full(standing, settings, &mut isolation);
            limits(standing, group, settings, &mut isolation);
        }
        SandboxLevel::Inner if standing.has_profile => {
            profile(settings, &mut isolation);
            limits(standing, group, settings, &mut isolation);
        }
        SandboxLevel::Inner if standing.has_job_object => job(settings, &mut isolation),
        SandboxLevel::Inner => {
            inner(standing, settings, &mut isolation);
            limits(standing, group, settings, &mut isolation);
        }
        SandboxLevel::Off => off(&mut isolation),
    }
    isolation
}

/// The rule for `local_ports`.
const LOCAL: &str = "listens on the loopback interface of a network of its own, which nobody outside of \
                     the case reaches";

fn project(settings: &ProgramSettings) -> &'static str {
    match settings.work_folder {
        WorkFolder::Project => "the project",
        WorkFolder::Copy => "a copy of the project in its scratch folder",
    }
}

fn addresses(settings: &ProgramSettings) -> String {
    let addresses: Vec<String> = settings.addresses.iter().map(ToString::to_string).collect();
    addresses.join(", ")
}

fn ports(settings: &ProgramSettings) -> String {
    let ports: Vec<String> = settings.tcp_ports.iter().map(ToString::to_string).collect();
    ports.join(", ")
}

fn full(standing: &SandboxSupport, settings: &ProgramSettings, isolation: &mut Isolation) {
    let Isolation { enforced, not_enforced } = isolation;
    let also = |least| if standing.landlock_abi >= least { " and Landlock" } else { "" };
    enforced.push(format!(
        "sees only {}, the system's libraries and programs, toolchains on PATH and `readable`; \
         answer keys, their copies that are known, recordings, git objects and known kinds of \
         secrets are not among them (a file system of its own{})",
        project(settings),
        also(1)
    ));
    enforced.push(format!(
        "writes only to a scratch folder of its own, which is HOME and TMPDIR, and to /tmp and \
         /dev/shm of its own (a file system of its own{})",
        also(3)
    ));
    enforced.push(
        "sees, signals and limits only its own processes, all of which end with the case \
         (namespace of processes)"
            .to_owned(),
    );
    enforced.push(
        "shares no System V memory, queues, host name or abstract sockets with others \
         (namespaces)"
            .to_owned(),
    );
    if !settings.addresses.is_empty() {
        listed(standing, settings, isolation);
    } else if settings.tcp_ports.is_empty() || !standing.can_restrict_ports() {
        enforced.push(if settings.local_ports {
            format!("{LOCAL}; reaches nothing outside by TCP or UDP (namespace of networks)")
        } else {
            "has no network at all: no TCP, no UDP (namespace of networks)".to_owned()
        });
        if !settings.tcp_ports.is_empty() {
            not_enforced.push(format!(
                "no port of `tcp_ports` can be reached here: {}, and Landlock 4 is missing; asked were {}",
                standing.unwatched_reason(),
                ports(settings)
            ));
        }
    } else {
        let by = match (standing.watches_calls, standing.landlock_abi >= 4) {
            (true, true) => "the supervisor connects; Landlock, filter of calls",
            (true, false) => "the supervisor connects; filter of calls",
            _ => "Landlock, filter of calls",
        };
        enforced.push(format!(
            "connects by TCP only to these ports, of any machine: {}; listens on none ({by})",
            ports(settings)
        ));
        not_enforced.push(
            "to whom it connects on these ports: sut.command.addresses names machines".to_owned(),
        );
        if settings.name_lookups {
            not_enforced.push("UDP is open to any address, for `name_lookups`".to_owned());
        } else {
            enforced.push("no UDP, so no look-up of names (filter of calls)".to_owned());
        }
        if standing.landlock_abi < 6 && !standing.watches_calls {
            not_enforced.push("abstract Unix sockets of the machine can be reached".to_owned());
        }
    }
    let Isolation { enforced, not_enforced } = isolation;
    enforced.push(
        "no capabilities, no setuid bits, no sockets but plain TCP, UDP, Unix streams and the list \
         of interfaces (netlink), no debugging, keyrings, mounts, namespaces, io_uring, bpf or \
         System V IPC; no other ABI (filter of calls)"
            .to_owned(),
    );
    enforced.push(
        "no leases, notifications or hints on files (filter of calls); at most 32 inotify instances \
         (namespace of users)"
            .to_owned(),
    );
    if standing.watches_calls {
        enforced.push(
            "no locks (flock) on files that it may only read (the supervisor locks)".to_owned(),
        );
        not_enforced.push("locks of ranges (fcntl) on files that it may read".to_owned());
    } else {
        not_enforced.push("locks on files that it may read".to_owned());
    }
    if standing.landlock_abi < 1 {
        not_enforced.push("Landlock, the wall within the wall: the kernel has none".to_owned());
    }
    if !standing.watches_calls {
        not_enforced
            .push(format!("attempts are refused, but not seen: {}", standing.unwatched_reason()));
    }
    if !standing.has_proc {
        not_enforced.push("there is no /proc: this container does not allow one".to_owned());
    }
    if standing.landlock_abi < 9 && !standing.watches_calls {
        not_enforced.push(
            "a Unix socket that appears in a readable folder during the run can be reached"
                .to_owned(),
        );
    }
    not_enforced
        .push("an answer key that was reworded under another name is not known as one".to_owned());
}

/// Describes the network of a program with a list of addresses.
fn listed(standing: &SandboxSupport, settings: &ProgramSettings, isolation: &mut Isolation) {
    let Isolation { enforced, not_enforced } = isolation;
    let addresses = addresses(settings);
    if !standing.can_restrict_addresses() {
        let why = match &standing.inspection_error {
            Some(why) => why,
            None => "no calls can be made to wait, or Landlock 4 is missing",
        };
        not_enforced.push(format!(
            "nothing of `addresses` can be reached here, and nothing else: {why}; asked were {addresses}"
        ));
        return;
    }
    let by = match standing.level {
        SandboxLevel::Full => "namespace of networks; a supervisor makes and connects the sockets",
        _ => "Landlock; a supervisor connects the sockets; filter of calls",
    };
    let listens = if settings.local_ports {
        format!("no UDP outside; {LOCAL}")
    } else {
        "no UDP; listens on none".to_owned()
    };
    enforced.push(format!(
        "connects by TCP only to these addresses: {addresses}; names are looked up outside, before \
         the case; {listens} ({by})"
    ));
    if standing.level != SandboxLevel::Full {
        not_enforced.push(
            "names of `addresses` are known in there only where the machine's own file of hosts has \
             them"
                .to_owned(),
        );
    }
    not_enforced.push(
        "which of those that share an address and a port it speaks to, such as sites behind one \
         proxy"
            .to_owned(),
    );
}

/// Adds the limits of each process and of all processes together.
fn limits(
    standing: &SandboxSupport,
    group: &Result<EnforcedLimits, String>,
    settings: &ProgramSettings,
    isolation: &mut Isolation,
) {
    let Isolation { enforced, not_enforced } = isolation;
    let SandboxLimits {
        memory_mib,
        total_memory_mib,
        processes,
        file_mib,
        disk_mib,
        files,
        cpu_seconds,
        total_cpu_seconds,
    } = settings.limits;
    enforced.push(format!(
        "each process at most {memory_mib} MiB of data, {file_mib} MiB a file and {cpu_seconds} s \
         of processor time (rlimit)"
    ));
    let held = group.as_ref().copied().unwrap_or_default();
    if held.processes {
        enforced.push(format!("all together at most {processes} processes (control group)"));
    } else if standing.level == SandboxLevel::Full {
        enforced.push(format!("all together at most {processes} processes (rlimit)"));
    } else {
        not_enforced.push(format!("the number of processes: asked were {processes}"));
    }
    if held.memory {
        enforced.push(format!(
            "all together at most {total_memory_mib} MiB of memory, shared memory and /tmp included \
             (control group)"
        ));
    } else if cfg!(target_os = "linux") {
        enforced.push(format!(
            "with shared memory each process at most {memory_mib} MiB and all together at most \
             {total_memory_mib} MiB (the supervisor looks four times a second and ends the case)"
        ));
    }
    if cfg!(target_os = "linux") {
        enforced.push(format!(
            "all together at most {disk_mib} MiB of disk and {files} files in its folders (the \
             supervisor looks every two seconds, at once if 64 MiB are gone, and ends the case)"
        ));
    } else {
        not_enforced
            .push(format!("space on disk and number of files: asked were {disk_mib} MiB, {files}"));
    }
    if standing.level == SandboxLevel::Full {
        enforced.push(
            "/tmp and /dev/shm at most 512 MiB and 65536 files each, and no more than a process's \
             memory (size of the mount)"
                .to_owned(),
        );
    }
    if group.is_ok() {
        enforced.push(format!(
            "all together at most {total_cpu_seconds} s of processor time, and are ended as one \
             (control group)"
        ));
    }
    let missing = match group {
        Ok(EnforcedLimits { memory: true, .. }) => return,
        Ok(_) => {
            let why = "the control group above hands on no memory";
            format!("the memory of all processes together, to the byte: {why}")
        }
        Err(why) => {
            format!("memory to the byte, and processor time, of all processes together: {why}")
        }
    };
    not_enforced.push(missing);
}

/// Describes a macOS profile.
fn profile(settings: &ProgramSettings, isolation: &mut Isolation) {
    let Isolation { enforced, not_enforced } = isolation;
    enforced.push(format!(
        "reads only {}, system folders, toolchains on PATH and `readable`, and writes only to a \
         scratch folder of its own, which is HOME and TMPDIR (profile of sandbox-exec)",
        project(settings)
    ));
    let remote = match (addresses(settings), ports(settings)) {
        (none, ports) if none.is_empty() && ports.is_empty() => "nothing".to_owned(),
        (none, ports) if none.is_empty() => format!("these ports: {ports}"),
        (addresses, _) => format!("the ports of these addresses: {addresses}"),
    };
    enforced.push(format!("connects by TCP only to {remote} (profile of sandbox-exec)"));
    if !(settings.addresses.is_empty() && settings.tcp_ports.is_empty()) {
        not_enforced.push(
            "to which machine it connects: a profile can name this one or any, and no other; names \
             may be looked up"
                .to_owned(),
        );
    }
    enforced.push("the process group is ended with the case".to_owned());
    not_enforced.push(
        "a process that detaches survives; names, sizes and times of files can be seen; attempts are \
         refused, but not seen"
            .to_owned(),
    );
    not_enforced.push(
        "this profile was made and tested as a text, and has never been run on a Mac by its authors"
            .to_owned(),
    );
}

/// Describes a Windows job object.
fn job(settings: &ProgramSettings, isolation: &mut Isolation) {
    let Isolation { enforced, not_enforced } = isolation;
    let SandboxLimits {
        memory_mib,
        total_memory_mib,
        processes,
        file_mib,
        disk_mib,
        files,
        cpu_seconds,
        total_cpu_seconds,
    } = settings.limits;
    enforced.push("all its processes are ended with the case, also those that detached".to_owned());
    enforced.push(format!(
        "each process at most {memory_mib} MiB of memory and {cpu_seconds} s of processor time, all \
         together at most {total_memory_mib} MiB, {total_cpu_seconds} s and {processes} processes (job \
         object)"
    ));
    not_enforced.push(
        "NOT ENFORCED on Windows: it reads and writes whatever its user may, answer keys and secrets \
         too, sees and ends other processes, and its attempts are not seen"
            .to_owned(),
    );
    let asked = match (addresses(settings), ports(settings)) {
        (none, ports) if none.is_empty() && ports.is_empty() => "nothing".to_owned(),
        (none, ports) if none.is_empty() => format!("the ports {ports}"),
        (addresses, _) => addresses,
    };
    not_enforced.push(format!(
        "NOT ENFORCED on Windows: the network; it may connect to anybody and listen; asked was {asked}"
    ));
    not_enforced.push(format!(
        "NOT ENFORCED on Windows: the size of files, the disk and the number of files; asked were \
             {file_mib} MiB, {disk_mib} MiB and {files}"
    ));
    not_enforced.push(
        "the job object was checked by a compiler alone, and has never been run on Windows by its \
         authors"
            .to_owned(),
    );
}

fn inner(standing: &SandboxSupport, settings: &ProgramSettings, isolation: &mut Isolation) {
    let Isolation { enforced, not_enforced } = isolation;
    let abi = standing.landlock_abi;
    if let Some(missing) = &standing.missing_namespaces {
        not_enforced.push(format!("no namespaces: {missing}"));
    }
    let is_listed = !settings.addresses.is_empty();
    let open = match ports(settings) {
        none if none.is_empty() || is_listed => "none".to_owned(),
        ports => ports,
    };
    // The versions came with Linux 5.13 (1), 6.2 (3), 6.7 (4), 6.10 (5) and 6.12 (6).
    let rules: &[(i32, String)] = &[
        (
            1,
            format!(
                "reads only {}, system folders, toolchains on PATH and `readable`; not the \
                 reports, prompts and configuration that hold answers",
                project(settings)
            ),
        ),
        (1, "writes only to a scratch folder of its own, which is HOME and TMPDIR".to_owned()),
        (3, "cannot truncate files that it may not write".to_owned()),
        (4, format!("connects by TCP by itself only to these ports: {open}; listens on none")),
        (5, "cannot control devices".to_owned()),
        (6, "cannot signal processes or reach abstract Unix sockets outside".to_owned()),
        (9, "cannot connect to Unix sockets outside its scratch folder".to_owned()),
    ];
    for (least, rule) in rules {
        if abi >= *least {
            enforced.push(format!("{rule} (Landlock)"));
        } else if cfg!(target_os = "linux") {
            not_enforced.push(format!(
                "not held to this, for which Landlock ABI {least} is needed and the kernel has \
                 {abi}: {rule}"
            ));
        }
    }
    if standing.filters_calls {
        enforced.push(
            "no setuid bits, raw sockets, debugging, keyrings, namespaces, io_uring, bpf or System \
             V IPC (filter of calls)"
                .to_owned(),
        );
    }
    if let Some(why) = &standing.inspection_error {
        not_enforced.push(format!("attempts are refused, but not seen: {why}"));
    }
    if cfg!(target_os = "linux") {
        enforced.push("has no capabilities".to_owned());
        enforced.push(
            "the whole process tree is ended with the case, also processes that detached"
                .to_owned(),
        );
        not_enforced.push(
            "names, sizes and times of files can be seen everywhere, and so can the command lines \
             of other processes; modes, owners and times of its user's files can be changed"
                .to_owned(),
        );
    } else {
        enforced.push("the process group is ended with the case".to_owned());
        not_enforced.push(
            "files and network are not limited on this system, and a process that detaches \
             survives: the sandbox exists on Linux only"
                .to_owned(),
        );
    }
    if is_listed && cfg!(target_os = "linux") {
        listed(standing, settings, isolation);
    }
}

fn off(isolation: &mut Isolation) {
    isolation.enforced.push("the process tree is ended with the case".to_owned());
    isolation.not_enforced.push(
        "UNSANDBOXED: sut.sandbox is off, and the program may do whatever its user may do"
            .to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &str = "there are no control groups";

    fn of(standing: &SandboxSupport, settings: &serde_json::Value) -> (String, String) {
        let settings: ProgramSettings = serde_json::from_value(settings.clone()).unwrap();
        let Isolation { enforced, not_enforced } =
            describe_isolation(standing, &Err(NONE.to_owned()), &settings);
        (enforced.join("\n"), not_enforced.join("\n"))
    }

    #[test]
    fn nothing_is_said_that_does_not_stand() {
        let agent = serde_json::json!({ "run": ["a"] });
        let full = SandboxSupport {
            landlock_abi: 7,
            filters_calls: true,
            watches_calls: true,
            has_proc: true,
            ..SandboxSupport::default()
        };
        let (enforced, not_enforced) = of(&full, &agent);
        assert!(enforced.contains("has no network at all"), "{enforced}");
        assert!(!not_enforced.contains("TCP") && !not_enforced.contains("UNSANDBOXED"));

        let local = serde_json::json!({ "run": ["a"], "local_ports": true });
        let (enforced, _) = of(&full, &local);
        assert!(enforced.contains("reaches nothing outside by TCP or UDP"), "{enforced}");
        assert!(enforced.contains("loopback") && !enforced.contains("no TCP"), "{enforced}");
        let ports = serde_json::json!({ "run": ["a"], "tcp_ports": [443] });
        let (enforced, _) = of(&full, &ports);
        assert!(enforced.contains("these ports, of any machine: 443"), "{enforced}");
        let (_, not_enforced) = of(&full, &ports);
        assert!(not_enforced.contains("to whom"), "{not_enforced}");
        let unwatched = SandboxSupport { landlock_abi: 3, watches_calls: false, ..full.clone() };
        let (enforced, not_enforced) = of(&unwatched, &ports);
        assert!(!enforced.contains("443") && not_enforced.contains("443"), "{not_enforced}");

        let listed = serde_json::json!({ "run": ["a"], "addresses": ["localhost:11434"] });
        let (enforced, not_enforced) =
            of(&SandboxSupport { landlock_abi: 0, ..full.clone() }, &listed);
        assert!(enforced.contains("only to these addresses: localhost:11434;"), "{enforced}");
        assert!(!not_enforced.contains("11434"), "{not_enforced}");
        assert!(enforced.contains("listens on none"), "{enforced}");
        let both = serde_json::json!({
            "run": ["a"], "addresses": ["localhost:11434"], "local_ports": true
        });
        let (enforced, _) = of(&full, &both);
        assert!(enforced.contains(LOCAL), "{enforced}");
        let (enforced, not_enforced) = of(&unwatched, &listed);
        assert!(!enforced.contains("11434") && not_enforced.contains("11434"), "{enforced}");
        let within = SandboxSupport { level: SandboxLevel::Inner, landlock_abi: 4, ..full.clone() };
        let (enforced, _) = of(&within, &listed);
        assert!(enforced.contains("11434") || !cfg!(target_os = "linux"), "{enforced}");
        let (enforced, not_enforced) = of(&SandboxSupport { landlock_abi: 3, ..within }, &listed);
        assert!(!enforced.contains("11434") && not_enforced.contains("11434"), "{enforced}");

        let inner = SandboxSupport {
            level: SandboxLevel::Inner,
            landlock_abi: 0,
            ..SandboxSupport::default()
        };
        let (enforced, not_enforced) = of(&inner, &agent);
        assert!(!enforced.contains("Landlock"), "{enforced}");
        assert!(not_enforced.contains("writes only to") || !cfg!(target_os = "linux"));

        let mac = SandboxSupport {
            level: SandboxLevel::Inner,
            has_profile: true,
            ..SandboxSupport::default()
        };
        let (enforced, not_enforced) = of(&mac, &listed);
        assert!(enforced.contains("ports of these addresses: localhost:11434"), "{enforced}");
        assert!(not_enforced.contains("to which machine"), "{not_enforced}");
        assert!(not_enforced.contains("never been run on a Mac"), "{not_enforced}");

        let windows = SandboxSupport {
            level: SandboxLevel::Inner,
            has_job_object: true,
            ..SandboxSupport::default()
        };
        let (enforced, not_enforced) = of(&windows, &listed);
        assert!(enforced.contains("1024 processes (job object)"), "{enforced}");
        assert!(!enforced.contains("rlimit") && !enforced.contains("reads"), "{enforced}");
        assert!(not_enforced.contains("asked was localhost:11434"), "{not_enforced}");
        assert!(not_enforced.contains("never been run on Windows"), "{not_enforced}");

        let off = SandboxSupport { level: SandboxLevel::Off, ..SandboxSupport::default() };
        let (enforced, not_enforced) = of(&off, &agent);
        assert!(!enforced.contains("writes") && not_enforced.contains("UNSANDBOXED"));
    }

    #[test]
    fn limits_are_said_to_be_of_what_they_are() {
        let settings: ProgramSettings =
            serde_json::from_value(serde_json::json!({ "run": ["a"] })).unwrap();
        let of = |group: Result<EnforcedLimits, &str>| {
            let group = group.map_err(str::to_owned);
            let Isolation { enforced, not_enforced } =
                describe_isolation(&SandboxSupport::default(), &group, &settings);
            (enforced.join("\n"), not_enforced.join("\n"))
        };
        let (enforced, not_enforced) = of(Ok(EnforcedLimits { memory: true, processes: true }));
        assert!(
            enforced.contains("16384 MiB of memory, shared memory and /tmp included"),
            "{enforced}"
        );
        assert!(enforced.contains("8192 MiB of disk and 500000 files"), "{enforced}");
        assert!(enforced.contains("1024 processes (control group)"), "{enforced}");
        assert!(!not_enforced.contains("together"), "{not_enforced}");
        let (enforced, not_enforced) = of(Ok(EnforcedLimits::default()));
        assert!(enforced.contains("1024 processes (rlimit)"), "{enforced}");
        assert!(enforced.contains("7200 s of processor time, and are ended as one"), "{enforced}");
        assert!(not_enforced.contains("memory of all processes together"), "{not_enforced}");
        let (enforced, not_enforced) = of(Err(NONE));
        assert!(!enforced.contains("control group"), "{enforced}");
        assert!(not_enforced.contains(NONE), "{not_enforced}");
    }
}
