//! The supervisor's side of a case's cgroup: moves the program into it, detects which limits were
//! reached, and kills it as a whole. Its files are opened before any namespace is entered, because
//! groups outside cannot be written from within.

use std::fs::{File, OpenOptions};
use std::io::{Result, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use super::attempt::{AttemptKind, SandboxAttempt};
use crate::limits::SandboxLimits;

/// Maximum number of bytes read from a cgroup file.
const MAX_TEXT: usize = 4096;

/// Interval between checks of the CPU time.
const CPU_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The open files of a cgroup.
pub(super) struct CgroupFiles {
    procs: File,
    /// `cgroup.kill`; needs Linux 5.14.
    kill: Option<File>,
    cpu: Option<File>,
    /// `memory.events`; `None` without the memory controller.
    memory: Option<File>,
    /// `pids.events`; `None` without the pids controller.
    processes: Option<File>,
    limits: SandboxLimits,
}

impl CgroupFiles {
    /// Opens the cgroup at this path for a program with these limits.
    pub(super) fn open(group: &Path, limits: SandboxLimits) -> Result<Self> {
        let writable = |file: &str| OpenOptions::new().write(true).open(group.join(file));
        let readable = |file: &str| File::open(group.join(file)).ok();
        Ok(Self {
            procs: writable("cgroup.procs")?,
            kill: writable("cgroup.kill").ok(),
            cpu: readable("cpu.stat"),
            memory: readable("memory.events"),
            processes: readable("pids.events"),
            limits,
        })
    }

    /// Moves a process into the group; its future children inherit the membership.
    pub(super) fn add_process(&self, process: u32) -> Result<()> {
        (&self.procs).write_all(process.to_string().as_bytes())
    }

    /// Kills every process in the group atomically, so that none can escape by forking.
    pub(super) fn kill(&self) {
        if let Some(mut kill) = self.kill.as_ref() {
            let _ = kill.write_all(b"1");
        }
    }

    /// Waits until the processes have used up their total CPU time, and describes it. Never returns
    /// if the kernel does not count it.
    pub(super) async fn wait_for_cpu_limit(&self) -> String {
        let most = Duration::from_secs(self.limits.total_cpu_seconds.into());
        while let Some(used) = self.cpu.as_ref().and_then(|file| value_of_key(file, "usage_usec")) {
            if Duration::from_micros(used) >= most {
                let seconds = self.limits.total_cpu_seconds;
                return format!("{seconds} s of processor time, of all its processes together");
            }
            tokio::time::sleep(CPU_CHECK_INTERVAL).await;
        }
        std::future::pending().await
    }

    /// Returns the limits of the kernel that were reached, as attempts.
    pub(super) fn exceeded_limits(&self) -> Vec<SandboxAttempt> {
        let SandboxLimits { total_memory_mib, processes, .. } = self.limits;
        let above = |file: &Option<File>, name| {
            file.as_ref().and_then(|file| value_of_key(file, name)).is_some_and(|times| times > 0)
        };
        let mut reached = Vec::new();
        let mut push = |what: String| reached.push(SandboxAttempt::new(AttemptKind::Limit, what));
        if above(&self.memory, "oom_kill") {
            push(format!("{total_memory_mib} MiB of memory, of all its processes together"));
        }
        if above(&self.processes, "max") {
            push(format!("{processes} processes at a time"));
        }
        reached
    }
}

/// Returns the number after a key in a flat-keyed cgroup file.
fn value_of_key(file: &File, name: &str) -> Option<u64> {
    let mut bytes = [0; MAX_TEXT];
    // Cgroup files generate their contents on each read at offset 0, so the descriptor can be
    // reused.
    let read = file.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(bytes.get(..read)?).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, CgroupFiles) {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            fs::write(folder.path().join(file), text).unwrap();
        }
        let limits = SandboxLimits {
            total_memory_mib: 64,
            total_cpu_seconds: 2,
            processes: 7,
            ..SandboxLimits::default()
        };
        let grouped = CgroupFiles::open(folder.path(), limits).unwrap();
        (folder, grouped)
    }

    #[tokio::test]
    async fn what_was_reached_is_told() {
        let (_folder, grouped) = group(&[
            ("cgroup.procs", ""),
            ("cpu.stat", "usage_usec 2000000\nuser_usec 1\n"),
            ("memory.events", "low 0\noom 3\noom_kill 1\noom_group_kill 1\n"),
            ("pids.events", "max 12\n"),
        ]);
        let time = grouped.wait_for_cpu_limit().await;
        assert_eq!(time, "2 s of processor time, of all its processes together");
        let reached = grouped.exceeded_limits();
        let reached: Vec<&str> = reached.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(
            reached,
            ["64 MiB of memory, of all its processes together", "7 processes at a time",]
        );
    }

    #[tokio::test]
    async fn nothing_is_told_of_what_the_kernel_does_not_count() {
        let (folder, grouped) = group(&[("cgroup.procs", ""), ("pids.events", "max 0\n")]);
        assert_eq!(grouped.exceeded_limits(), []);
        let waited =
            tokio::time::timeout(Duration::from_millis(50), grouped.wait_for_cpu_limit()).await;
        assert!(waited.is_err());
        // Without `cgroup.kill` nothing is killed.
        grouped.kill();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(CgroupFiles::open(&folder.path().join("none"), SandboxLimits::default()).is_err());
    }
}
