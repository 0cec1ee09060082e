//! What keeps a program from doing harm, and what does not, in the words of reports. Pure.

use crate::sut::Isolation;
use crate::sut::confine::{Standing, Walls};
use crate::sut::sut_settings::{Limits, ProgramSettings, WorkFolder};

/// The rules that hold here.
pub(super) fn isolation(standing: &Standing, settings: &ProgramSettings) -> Isolation {
    let mut isolation = Isolation {
        enforced: vec![
            "environment cleared to an allow-list and the configured variables".to_owned(),
        ],
        not_enforced: Vec::new(),
    };
    match standing.walls {
        Walls::Full => full(standing, settings, &mut isolation),
        Walls::Inner => inner(standing, settings, &mut isolation),
        Walls::Off => off(&mut isolation),
    }
    isolation
}

fn project(settings: &ProgramSettings) -> &'static str {
    match settings.work_folder {
        WorkFolder::Project => "the project",
        WorkFolder::Copy => "a copy of the project in its scratch folder",
    }
}

fn ports(settings: &ProgramSettings) -> String {
    let ports: Vec<String> = settings.tcp_ports.iter().map(ToString::to_string).collect();
    ports.join(", ")
}

fn full(standing: &Standing, settings: &ProgramSettings, isolation: &mut Isolation) {
    let Isolation { enforced, not_enforced } = isolation;
    let also = |least| if standing.landlock >= least { " and Landlock" } else { "" };
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
    if settings.tcp_ports.is_empty() {
        enforced.push("has no network at all: no TCP, no UDP (namespace of networks)".to_owned());
    } else {
        let ports = ports(settings);
        if standing.landlock >= 4 {
            enforced.push(format!(
                "connects by TCP only to these ports, of any machine: {ports}; listens on none \
                 (Landlock, filter of calls)"
            ));
        } else {
            not_enforced.push(format!(
                "the ports of TCP: Landlock 4 is needed, the kernel has {}; asked were {ports}",
                standing.landlock
            ));
        }
        if settings.name_lookups {
            not_enforced.push("UDP is open to any address, for `name_lookups`".to_owned());
        } else {
            enforced.push("no UDP, so no look-up of names (filter of calls)".to_owned());
        }
        if standing.landlock < 6 {
            not_enforced.push(
                "abstract Unix sockets of the machine: refused by a look that threads can outrun"
                    .to_owned(),
            );
        }
    }
    enforced.push(
        "no capabilities, no setuid bits, no sockets but plain TCP, UDP and Unix, no debugging, \
         keyrings, mounts, namespaces, io_uring, bpf or System V IPC; no other ABI (filter of \
         calls)"
            .to_owned(),
    );
    let Limits { memory_mib, processes, file_mib, cpu_seconds } = settings.limits;
    enforced.push(format!(
        "each process at most {memory_mib} MiB of data, {file_mib} MiB a file and {cpu_seconds} s \
         of processor time; at most {processes} processes (rlimit)"
    ));
    if standing.landlock < 1 {
        not_enforced.push("Landlock, the wall within the wall: the kernel has none".to_owned());
    }
    if !standing.watched {
        not_enforced.push("attempts are refused, but not seen: Linux 5.5 is needed".to_owned());
    }
    if !standing.proc {
        not_enforced.push("there is no /proc: this container does not allow one".to_owned());
    }
    not_enforced.push(
        "a Unix socket that appears in a readable folder during the run is refused by a look that \
         threads can outrun; memory and processor time are limited for each process, not for all \
         together; an answer key that was reworded under another name is not known as one"
            .to_owned(),
    );
}

fn inner(standing: &Standing, settings: &ProgramSettings, isolation: &mut Isolation) {
    let Isolation { enforced, not_enforced } = isolation;
    let abi = standing.landlock;
    if let Some(missing) = &standing.missing {
        not_enforced.push(format!("no namespaces: {missing}"));
    }
    let open = match ports(settings) {
        none if none.is_empty() => "none".to_owned(),
        ports => ports,
    };
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
        (4, format!("connects by TCP only to these ports: {open}; listens on none")),
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
    if standing.filtered {
        enforced.push(
            "no setuid bits, raw sockets, debugging, keyrings, namespaces, io_uring, bpf or System \
             V IPC (filter of calls)"
                .to_owned(),
        );
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
    not_enforced.push("memory and processor time are limited for each process alone".to_owned());
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

    fn of(standing: &Standing, settings: &serde_json::Value) -> (String, String) {
        let settings: ProgramSettings = serde_json::from_value(settings.clone()).unwrap();
        let Isolation { enforced, not_enforced } = isolation(standing, &settings);
        (enforced.join("\n"), not_enforced.join("\n"))
    }

    #[test]
    fn nothing_is_said_that_does_not_stand() {
        let agent = serde_json::json!({ "run": ["a"] });
        let full = Standing {
            landlock: 7,
            filtered: true,
            watched: true,
            proc: true,
            ..Standing::default()
        };
        let (enforced, not_enforced) = of(&full, &agent);
        assert!(enforced.contains("has no network at all"), "{enforced}");
        assert!(!not_enforced.contains("TCP") && !not_enforced.contains("UNSANDBOXED"));

        let ports = serde_json::json!({ "run": ["a"], "tcp_ports": [443] });
        let (enforced, _) = of(&full, &ports);
        assert!(enforced.contains("these ports, of any machine: 443"), "{enforced}");
        let (enforced, not_enforced) = of(&Standing { landlock: 3, ..full }, &ports);
        assert!(!enforced.contains("443") && not_enforced.contains("443"), "{not_enforced}");

        let inner = Standing { walls: Walls::Inner, landlock: 0, ..Standing::default() };
        let (enforced, not_enforced) = of(&inner, &agent);
        assert!(!enforced.contains("Landlock"), "{enforced}");
        assert!(not_enforced.contains("writes only to") || !cfg!(target_os = "linux"));

        let off = Standing { walls: Walls::Off, ..Standing::default() };
        let (enforced, not_enforced) = of(&off, &agent);
        assert!(!enforced.contains("writes") && not_enforced.contains("UNSANDBOXED"));
    }
}
