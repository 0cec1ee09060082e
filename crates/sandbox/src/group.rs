//! Control groups (cgroup v2) for programs: one group per run, and inside it one per case, if this
//! process may create them. Their limits apply to all processes of a case together.
//!
//! Never changes a group that it did not create: the controllers a parent delegates are used as
//! they are. Groups of dead runs are recognised by name, owner and an unheld lock, and removed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::error::RunGroupError;
use super::support::EnforcedLimits;
use crate::limits::SandboxLimits;
use crate::stale_folder;

/// Name prefix of the groups of runs.
const RUN_PREFIX: &str = "selftest-run-";

/// Name prefix of the groups of cases.
const CASE_PREFIX: &str = "case-";

/// Delay between attempts to remove a group whose last process is still exiting.
const RETRY_DELAY: Duration = Duration::from_millis(2);

/// The cgroup of one run. Dropping it kills its remaining processes and removes it.
#[derive(Debug)]
pub struct RunGroup {
    path: PathBuf,
    enforced_limits: EnforcedLimits,
    /// Lowest `pids.max` of the ancestors above this group.
    max_processes: Option<u64>,
    next_case: AtomicU32,
    /// Held open to keep the group locked.
    _lock: File,
}

/// The cgroup of one case. Dropping it removes it.
#[derive(Debug)]
pub struct CaseGroup {
    path: PathBuf,
}

impl RunGroup {
    /// Creates a group in the nearest ancestor that delegates the memory and pids controllers, else
    /// in the nearest writable one.
    pub fn create() -> Result<Self, RunGroupError> {
        let read = |file: &str| fs::read(file).map_err(|_| RunGroupError::Unsupported);
        let mounts = read("/proc/self/mountinfo")?;
        let own = read("/proc/self/cgroup")?;
        let (mount, own) = own_cgroup(&mounts, &own).ok_or(RunGroupError::NotInVersion2)?;
        Self::create_above(&mount, &own).ok_or(RunGroupError::NotWritable(own))
    }

    fn create_above(mount: &Path, own: &Path) -> Option<Self> {
        let mut places = candidate_parents(mount, own);
        // The sort is stable, so the nearest ancestor comes first among equals.
        places.sort_by_key(|place| !(place.delegates.memory && place.delegates.processes));
        places.iter().find_map(|place| {
            stale_folder::remove_stale(&place.path, is_run_name, remove_run);
            Self::create_in(place)
        })
    }

    fn create_in(place: &CgroupParent) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        // Between `mkdir` and `flock`, another process may take the new group for a leftover of a
        // dead run and remove it. Retry with another name.
        let (path, lock) = (0..3).find_map(|_| {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let path = place.path.join(format!("{RUN_PREFIX}{}-{number}", std::process::id()));
            DirBuilder::new().mode(0o755).create(&path).ok()?;
            let lock = stale_folder::lock_new(&path).ok()??;
            Some((path, lock))
        })?;
        let mut held = EnforcedLimits::default();
        for (controller, held) in [("memory", &mut held.memory), ("pids", &mut held.processes)] {
            let hand_on = format!("+{controller}");
            *held = fs::write(path.join("cgroup.subtree_control"), hand_on).is_ok();
        }
        let (most_processes, begun) = (place.max_processes, AtomicU32::new(0));
        let group = Self {
            path,
            enforced_limits: held,
            max_processes: most_processes,
            next_case: begun,
            _lock: lock,
        };
        // Moving a process requires write access to both the parent and the new group.
        let above = [&place.path, &group.path]
            .map(|path| fs::OpenOptions::new().write(true).open(path.join("cgroup.procs")).is_ok());
        above.iter().all(|&is_writable| is_writable).then_some(group)
    }

    /// Returns the resources that this group can limit.
    pub fn enforced_limits(&self) -> EnforcedLimits {
        self.enforced_limits
    }

    /// Creates a group with these limits for one case. The error is the kernel's.
    pub fn create_case(&self, limits: &SandboxLimits) -> io::Result<CaseGroup> {
        let number = self.next_case.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{CASE_PREFIX}{number}"));
        DirBuilder::new().mode(0o755).create(&path)?;
        let group = CaseGroup { path };
        if self.enforced_limits.memory {
            let most = u64::from(limits.total_memory_mib) << 20;
            group.set("memory.max", most)?;
            // Optional, since not all kernels support them. Without them swapped memory is bounded
            // only by the machine, and the OOM killer ends one process instead of the whole case.
            let _ = group.set("memory.swap.max", 0);
            let _ = group.set("memory.oom.group", 1);
        }
        if self.enforced_limits.processes {
            // One extra for the harness's own process in the group.
            let most = u64::from(limits.processes) + 1;
            group.set("pids.max", self.max_processes.map_or(most, |above| most.min(above)))?;
        }
        Ok(group)
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        remove_run(&self.path);
    }
}

impl CaseGroup {
    /// Returns the group's path in the cgroup file system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn set(&self, file: &str, value: u64) -> io::Result<()> {
        // Opens only files that the kernel provides; nothing is ever created here.
        let mut file = fs::OpenOptions::new().write(true).open(self.path.join(file))?;
        io::Write::write_all(&mut file, value.to_string().as_bytes())
    }
}

impl Drop for CaseGroup {
    fn drop(&mut self) {
        // If this fails, the group is removed together with the run's.
        let _ = remove(&self.path, 20);
    }
}

/// A group in which a new one could be created.
#[derive(Debug, PartialEq, Eq)]
struct CgroupParent {
    path: PathBuf,
    delegates: EnforcedLimits,
    max_processes: Option<u64>,
}

/// Returns the groups from this process's own upwards, as far as leaving one escapes no limit: the
/// walk stops at a limit on memory or CPU. A limit on processes, which service managers set
/// everywhere, is carried along instead.
fn candidate_parents(mount: &Path, own: &Path) -> Vec<CgroupParent> {
    let mut places = Vec::new();
    let mut most_processes: Option<u64> = None;
    for path in own.ancestors().take_while(|path| path.starts_with(mount)) {
        let words = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let handed_on = words("cgroup.subtree_control");
        let hands_on = |controller| handed_on.split_whitespace().any(|it| it == controller);
        let hands_on = EnforcedLimits { memory: hands_on("memory"), processes: hands_on("pids") };
        places.push(CgroupParent {
            path: path.to_owned(),
            delegates: hands_on,
            max_processes: most_processes,
        });
        let is_bounded = |file: &str| {
            let words = words(file);
            words.split_whitespace().next().is_some_and(|most| most != "max")
        };
        if ["memory.max", "memory.high", "cpu.max", "memory.swap.max"].into_iter().any(is_bounded) {
            break;
        }
        if let Ok(most) = words("pids.max").trim().parse::<u64>() {
            most_processes = Some(most_processes.map_or(most, |known| known.min(most)));
        }
    }
    places
}

/// Returns the cgroup v2 mount point and this process's group below it, from the contents of
/// `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn own_cgroup(mounts: &[u8], own: &[u8]) -> Option<(PathBuf, PathBuf)> {
    let own = own.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    let own = PathBuf::from(std::ffi::OsString::from_vec(own.to_vec()));
    // The kernel writes a group outside of this cgroup namespace with `..` components.
    let is_plain = |path: &Path| !path.components().any(|it| it == std::path::Component::ParentDir);
    if !own.is_absolute() || !is_plain(&own) {
        return None;
    }
    mounts.split(|&byte| byte == b'\n').find_map(|line| {
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        // Optional fields of variable number precede the separator `-`; the file system type
        // follows it.
        let end = words.iter().position(|&word| word == b"-")?;
        if words.get(end + 1) != Some(&&b"cgroup2"[..]) {
            return None;
        }
        let (root, mount) =
            (unescape_mount_path(words.get(3)?), unescape_mount_path(words.get(4)?));
        let below = own.strip_prefix(&root).ok()?;
        let own = if below == Path::new("") { mount.clone() } else { mount.join(below) };
        Some((mount, own))
    })
}

/// Decodes a path in a `/proc` table, where the kernel writes spaces and similar characters as
/// three octal digits.
fn unescape_mount_path(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, after @ ..] = rest {
        let digits = (*first == b'\\').then(|| after.first_chunk::<3>()).flatten();
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Kills the remaining processes of a run's group, and removes it with the groups of its cases.
fn remove_run(path: &Path) {
    // Needs Linux 5.14. On older kernels the supervisors have already ended their processes.
    if let Ok(mut kill) = fs::OpenOptions::new().write(true).open(path.join("cgroup.kill")) {
        let _ = io::Write::write_all(&mut kill, b"1");
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let is_case = entry.file_name().to_str().is_some_and(|name| name.starts_with(CASE_PREFIX));
        if is_case && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = remove(&entry.path(), 100);
        }
    }
    let _ = remove(path, 100);
}

/// Removes a group; the files in it belong to the kernel and disappear with it.
fn remove(path: &Path, tries: u32) -> io::Result<()> {
    for _ in 1..tries {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(RETRY_DELAY);
            }
            ended => return ended,
        }
    }
    fs::remove_dir(path)
}

/// Returns true if this is the name of a run's group.
fn is_run_name(name: &str) -> bool {
    let numbers = name.strip_prefix(RUN_PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(process, number)| {
        process.parse::<u32>().is_ok() && number.parse::<u32>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
    const HYBRID: &str = "18 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                          20 41 0:38 / /sys/fs/cgroup/version\\0402 rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_group_is_found_below_its_mount() {
        let of = |mounts: &str, own: &str| {
            let (mount, own) = own_cgroup(mounts.as_bytes(), own.as_bytes())?;
            Some((mount.display().to_string(), own.display().to_string()))
        };
        let found = |mount: &str, own: &str| Some((mount.to_owned(), own.to_owned()));
        let scope = "0::/user.slice/user-1000.slice/a.scope\n";
        let own = "/sys/fs/cgroup/user.slice/user-1000.slice/a.scope";
        assert_eq!(of(V2, scope), found("/sys/fs/cgroup", own));
        let hybrid = "8:pids:/x\n0::/\n";
        let mount = "/sys/fs/cgroup/version 2";
        assert_eq!(of(HYBRID, hybrid), found(mount, mount));
        // Without a cgroup namespace, a container sees its own part of the tree.
        let container = "31 24 0:27 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        assert_eq!(
            of(container, "0::/docker/abc/x\n"),
            found("/sys/fs/cgroup", "/sys/fs/cgroup/x")
        );
        for (mounts, own) in [
            (V2, "0::/../other\n"),
            (container, "0::/elsewhere\n"),
            (V2, "8:pids:/\n"),
            ("18 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw\n", "0::/\n"),
            ("", ""),
            ("- cgroup2\n31 24 - cgroup2", "0::/"),
        ] {
            assert_eq!(of(mounts, own), None, "{mounts} {own}");
        }
    }

    /// A folder tree that looks like cgroups: creating a group in it creates an empty folder.
    fn tree(groups: &[(&str, &[(&str, &str)])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (group, files) in groups {
            let group = root.path().join(group);
            fs::create_dir_all(&group).unwrap();
            for (file, text) in *files {
                fs::write(group.join(file), text).unwrap();
            }
        }
        root
    }

    #[test]
    fn the_nearest_group_that_hands_on_what_is_needed_is_taken() {
        let all = ("cgroup.subtree_control", "cpu memory pids\n");
        let root = tree(&[
            ("", &[all]),
            ("user", &[all]),
            ("user/app", &[all, ("pids.max", "500\n")]),
            ("user/app/scope", &[("memory.max", "max\n"), ("pids.max", "900\n")]),
        ]);
        let path = |group: &str| root.path().join(group);
        let found = candidate_parents(root.path(), &path("user/app/scope"));
        let held = EnforcedLimits { memory: true, processes: true };
        let place = |group: &str, hands_on, most_processes| CgroupParent {
            path: path(group),
            delegates: hands_on,
            max_processes: most_processes,
        };
        assert_eq!(
            found[..3],
            [
                place("user/app/scope", EnforcedLimits::default(), None),
                place("user/app", held, Some(900)),
                place("user", held, Some(500)),
            ]
        );
        // No process escapes a limit that is set on its own group.
        for (file, limit) in [("memory.max", "1048576\n"), ("cpu.max", "50000 100000\n")] {
            fs::write(path("user/app/scope").join(file), limit).unwrap();
            assert_eq!(candidate_parents(root.path(), &path("user/app/scope")).len(), 1, "{file}");
            fs::write(path("user/app/scope").join(file), "max 100000\n").unwrap();
        }
        assert_eq!(candidate_parents(root.path(), &path("user/app/scope")).len(), 4);
    }

    #[test]
    fn groups_of_dead_runs_are_removed_and_no_others() {
        let root = tree(&[
            ("selftest-run-77-0/case-3", &[]),
            ("selftest-run-77-x", &[]),
            ("selftest-run-", &[]),
            ("session.scope", &[]),
        ]);
        let alive = root.path().join("selftest-run-78-1");
        fs::create_dir(&alive).unwrap();
        let lock = File::open(&alive).unwrap();
        lock.try_lock().unwrap();
        stale_folder::remove_stale(root.path(), is_run_name, remove_run);
        let names = || {
            let entries = fs::read_dir(root.path()).unwrap();
            let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let rest = ["selftest-run-", "selftest-run-77-x", "session.scope"];
        assert_eq!(names(), [rest[0], rest[1], "selftest-run-78-1", rest[2]]);
        drop(lock);
        stale_folder::remove_stale(root.path(), is_run_name, remove_run);
        assert_eq!(names(), rest);
    }

    #[test]
    fn limits_are_written_where_the_kernel_holds_to_them_and_nowhere_else() {
        let root = tree(&[("run/case-0", &[("memory.max", ""), ("pids.max", "")])]);
        let path = root.path().join("run");
        // The kernel creates these files together with the folder; a test folder lacks them.
        fs::remove_dir_all(path.join("case-0")).unwrap();
        let lock = File::open(&path).unwrap();
        let run = |held| RunGroup {
            path: path.clone(),
            enforced_limits: held,
            max_processes: Some(20),
            next_case: AtomicU32::new(0),
            _lock: lock.try_clone().unwrap(),
        };
        let nothing = std::mem::ManuallyDrop::new(run(EnforcedLimits::default()));
        let case = nothing.create_case(&SandboxLimits::default()).unwrap();
        assert_eq!(fs::read_dir(case.path()).unwrap().count(), 0);
        let folder = case.path().to_owned();
        drop(case);
        assert!(!folder.exists());
        let all =
            std::mem::ManuallyDrop::new(run(EnforcedLimits { memory: true, processes: true }));
        assert!(
            all.create_case(&SandboxLimits::default()).is_err(),
            "a limit that nobody keeps is no limit"
        );
    }
}
