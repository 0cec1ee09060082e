//! Watches what no limit of the kernel covers: the disk below the writable folders, the number of
//! files there, and, without a control group for memory, the memory of processes together with what
//! they share. Runs on a thread of the supervisor, which ends the case if a limit is exceeded.
//!
//! Not seen is space that was deleted while a program had it mapped, and whose descriptor is closed.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs;
use std::io::Result;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, fstatvfs, openat, statat};
use tokio::sync::watch;

use super::policy::{SandboxLevel, SandboxPolicy};
use crate::limits::SandboxLimits;

/// Interval between checks.
const INTERVAL: Duration = Duration::from_millis(250);

/// Longest time between two walks through the folders, unless a walk takes long.
const MAX_WALK_INTERVAL: Duration = Duration::from_secs(2);

/// Share of the time that walks may take: one in this many parts.
const WALK_SHARE: u32 = 20;

/// Change of the free space at which the folders are walked at once.
const NOTICEABLE_BYTES: u64 = 64 << 20;

/// Unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// The thread that watches, seen from the supervisor.
#[derive(Clone)]
pub(super) struct UsageWatch {
    exceeded: watch::Receiver<Option<String>>,
}

impl UsageWatch {
    /// Starts the thread. It ends with this process.
    pub(super) fn start(policy: &SandboxPolicy) -> Result<Self> {
        let (sender, exceeded) = watch::channel(None);
        if policy.level == SandboxLevel::Off || policy.is_trial {
            return Ok(Self { exceeded });
        }
        let folders = policy.write.iter().filter(|path| !path.starts_with("/dev"));
        let folders = folders.filter_map(|path| open_folder(path)).collect();
        let usage = CaseUsage {
            folders,
            limits: policy.limits,
            watches_memory: !policy.cgroup_counts_memory,
            supervisor: std::process::id(),
        };
        std::thread::Builder::new().stack_size(1 << 18).spawn(move || {
            if let Some(what) = usage.watch(|| sender.is_closed()) {
                // Without a receiver the supervisor is about to end.
                let _ = sender.send(Some(what));
            }
        })?;
        Ok(Self { exceeded })
    }

    /// Waits until a limit is exceeded, and describes it: `64 MiB of disk`.
    pub(super) async fn exceeded(&self) -> String {
        let mut exceeded = self.exceeded.clone();
        match exceeded.wait_for(Option::is_some).await.map(|what| what.clone()) {
            Ok(Some(what)) => what,
            _ => std::future::pending().await,
        }
    }
}

fn open_folder(path: &Path) -> Option<OwnedFd> {
    let folder = fs::File::open(path).ok()?;
    folder.metadata().is_ok_and(|found| found.is_dir()).then(|| folder.into())
}

/// Space and number of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DiskUsage {
    bytes: u64,
    files: u64,
}

impl DiskUsage {
    const MAX: Self = Self { bytes: u64::MAX, files: u64::MAX };

    fn is_above(self, most: Self) -> bool {
        self.bytes > most.bytes || self.files > most.files
    }

    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
        }
    }
}

/// What a case uses, and may use.
struct CaseUsage {
    folders: Vec<OwnedFd>,
    limits: SandboxLimits,
    watches_memory: bool,
    /// Its descendants are the processes of the case.
    supervisor: u32,
}

impl CaseUsage {
    /// Watches until a limit is exceeded or `is_over`.
    fn watch(&self, is_over: impl Fn() -> bool) -> Option<String> {
        let limits = &self.limits;
        // Its copy of the project is not the program's doing.
        let start = self.measure_folders(DiskUsage::MAX);
        let allowed =
            DiskUsage { bytes: u64::from(limits.disk_mib) << 20, files: u64::from(limits.files) };
        let most = start.plus(allowed);
        let mut walk = WalkSchedule::starting_at(self.free());
        loop {
            std::thread::sleep(INTERVAL);
            if is_over() {
                return None;
            }
            let processes = descendants(self.supervisor);
            if self.watches_memory
                && let Some(what) = exceeded_memory(&processes, limits)
            {
                return Some(what);
            }
            let free = self.free();
            if !walk.is_due(free) {
                continue;
            }
            let begun = Instant::now();
            let mut used = self.measure_folders(most);
            used.bytes = used.bytes.saturating_add(self.deleted_bytes(&processes));
            if used.bytes > most.bytes {
                return Some(format!("{} MiB of disk", limits.disk_mib));
            }
            if used.files > most.files {
                return Some(format!("{} files", limits.files));
            }
            walk = WalkSchedule::after(begun, free, most.bytes - used.bytes);
        }
    }

    /// Measures all folders, until more is found than `most`.
    fn measure_folders(&self, most: DiskUsage) -> DiskUsage {
        let measure = |all: DiskUsage, folder| all.plus(measure(folder, most));
        self.folders.iter().fold(DiskUsage::default(), measure)
    }

    /// Returns the free bytes of the file systems of all folders.
    fn free(&self) -> u64 {
        let free = self.folders.iter().filter_map(|folder| fstatvfs(folder).ok());
        free.map(|found| found.f_bavail.saturating_mul(found.f_frsize)).sum()
    }

    /// Returns the space of deleted files in these folders' file systems that processes still hold.
    fn deleted_bytes(&self, processes: &[u32]) -> u64 {
        let devices: Vec<u64> = self
            .folders
            .iter()
            .filter_map(|folder| fstat(folder).ok())
            .map(|it| it.st_dev)
            .collect();
        open_deleted_files(processes, |name| !is_memory_file(name))
            .into_iter()
            .filter(|((device, _), _)| devices.contains(device))
            .map(|(_, bytes)| bytes)
            .sum()
    }
}

/// When to walk next: a walk costs time, and the free space shows whether there is anything to find.
struct WalkSchedule {
    ended: Instant,
    pause: Duration,
    free: u64,
    /// Loss of free space at which the limit could be reached.
    loss: u64,
}

impl WalkSchedule {
    fn starting_at(free: u64) -> Self {
        Self { ended: Instant::now(), pause: MAX_WALK_INTERVAL, free, loss: NOTICEABLE_BYTES }
    }

    fn after(begun: Instant, free: u64, left: u64) -> Self {
        let ended = Instant::now();
        let pause = (ended - begun).saturating_mul(WALK_SHARE).max(MAX_WALK_INTERVAL);
        Self { ended, pause, free, loss: (left / 2).max(NOTICEABLE_BYTES) }
    }

    fn is_due(&self, free: u64) -> bool {
        self.free.saturating_sub(free) >= self.loss || self.ended.elapsed() >= self.pause
    }
}

/// A folder on the way to the current one.
struct Level {
    id: (u64, u64),
    /// Folders in it that are not measured yet.
    waiting: Vec<CString>,
}

/// Measures everything below a folder, with one open descriptor at a time however deep it is. Stops
/// once there is more than `most`, and at a folder that was moved meanwhile.
fn measure(root: &OwnedFd, most: DiskUsage) -> DiskUsage {
    let mut used = DiskUsage::default();
    let Ok((mut here, level)) = enter(root, c".", &mut used) else { return used };
    let mut levels = vec![level];
    while let Some(level) = levels.last_mut() {
        if used.is_above(most) {
            return used;
        }
        if let Some(name) = level.waiting.pop() {
            if let Ok((below, level)) = enter(&here, &name, &mut used) {
                here = below;
                levels.push(level);
            }
            continue;
        }
        levels.pop();
        let Some(above) = levels.last() else { return used };
        match open_below(&here, c"..") {
            Ok(up) if id(&up) == Some(above.id) => here = up,
            _ => return used,
        }
    }
    used
}

fn enter(
    folder: &OwnedFd,
    name: &CStr,
    used: &mut DiskUsage,
) -> rustix::io::Result<(OwnedFd, Level)> {
    let opened = open_below(folder, name)?;
    let id = id(&opened).ok_or(rustix::io::Errno::NOENT)?;
    let mut waiting = Vec::new();
    for entry in Dir::read_from(&opened)?.flatten() {
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let Ok(found) = statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        #[expect(clippy::useless_conversion, reason = "the type differs from machine to machine")]
        let links = u64::from(found.st_nlink.max(1));
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        // A file with several names is met at each of them.
        let names = if is_folder { 1 } else { links };
        used.bytes = used.bytes.saturating_add(space(found.st_blocks) / names);
        used.files += 1;
        if is_folder {
            waiting.push(name.to_owned());
        }
    }
    Ok((opened, Level { id, waiting }))
}

fn space(blocks: i64) -> u64 {
    u64::try_from(blocks).unwrap_or(0).saturating_mul(BLOCK_BYTES)
}

fn open_below(folder: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

fn id(folder: &impl AsFd) -> Option<(u64, u64)> {
    fstat(folder).ok().map(|found| (found.st_dev, found.st_ino))
}

/// Returns the processes below this one.
fn descendants(process: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut waiting = vec![process];
    while let Some(process) = waiting.pop() {
        for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten()
        {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children =
                children.split_whitespace().filter_map(|number| number.parse::<u32>().ok());
            let before = found.len();
            found.extend(children);
            waiting.extend_from_slice(&found[before..]);
        }
    }
    found
}

/// Returns which memory limit the processes exceed, if any.
fn exceeded_memory(processes: &[u32], limits: &SandboxLimits) -> Option<String> {
    let resident: Vec<u64> = processes.iter().map(|process| own_and_shared_kib(*process)).collect();
    let kib = |mib: u32| u64::from(mib) << 10;
    if resident.iter().any(|used| *used > kib(limits.memory_mib)) {
        let most = limits.memory_mib;
        return Some(format!("{most} MiB of memory, of one process with what it shares"));
    }
    let files: u64 = open_deleted_files(processes, is_memory_file).values().sum();
    // Memory that several processes share counts for each of them here, so look closer only above.
    let most = kib(limits.total_memory_mib);
    if resident.iter().sum::<u64>().max(files >> 10) <= most {
        return None;
    }
    let (own, shared) = processes
        .iter()
        .map(|process| proportional_kib(*process))
        .fold((0, 0), |all: (u64, u64), it| (all.0 + it.0, all.1 + it.1));
    // A file in memory may be mapped or not; it counts once.
    let used = own + shared.max(files >> 10);
    let most_mib = limits.total_memory_mib;
    (used > most).then(|| format!("{most_mib} MiB of memory, of all its processes together"))
}

/// Returns a process's anonymous memory and the shared memory that it has touched, in KiB.
fn own_and_shared_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    kib_after(&status, "RssAnon:") + kib_after(&status, "RssShmem:")
}

/// Returns the same two, each page divided by the number of processes that share it.
fn proportional_kib(process: u32) -> (u64, u64) {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    (kib_after(&rollup, "Pss_Anon:"), kib_after(&rollup, "Pss_Shmem:"))
}

fn kib_after(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns true for a file that exists in memory only.
fn is_memory_file(name: &str) -> bool {
    name.starts_with("/memfd:") || name.starts_with("/dev/zero ") || name.starts_with("/SYSV")
}

/// Returns the size of each deleted file that a process has open and whose name is `wanted`, by
/// device and inode.
fn open_deleted_files(
    processes: &[u32],
    wanted: impl Fn(&str) -> bool,
) -> BTreeMap<(u64, u64), u64> {
    let mut found = BTreeMap::new();
    for process in processes {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        for file in files.map(|file| file.path()) {
            let name = file.read_link().unwrap_or_else(|_| PathBuf::new());
            let name = name.to_string_lossy();
            if !name.ends_with(" (deleted)") || !wanted(&name) {
                continue;
            }
            if let Ok(file) = file.metadata()
                && file.is_file()
            {
                let bytes = file.blocks().saturating_mul(BLOCK_BYTES);
                found.insert((file.dev(), file.ino()), bytes);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(folder: &Path) -> DiskUsage {
        measure(&open_folder(folder).unwrap(), DiskUsage::MAX)
    }

    #[test]
    fn what_is_below_a_folder_is_measured_however_deep() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(measured(folder.path()), DiskUsage::default());
        let deep = folder.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("one"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(deep.join("one"), folder.path().join("again")).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("root")).unwrap();
        let used = measured(folder.path());
        assert_eq!(used.files, 6);
        assert!((1 << 20..1 << 21).contains(&used.bytes), "{used:?}");
        let most = DiskUsage { files: 1, ..DiskUsage::MAX };
        let early = measure(&open_folder(folder.path()).unwrap(), most);
        assert!(early.files < used.files, "{early:?}");
    }

    #[test]
    fn deleted_and_shared_memory_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let script = "import mmap, os, sys, time\n\
            f = open(sys.argv[1], 'wb'); f.write(b'x' * (3 << 20)); f.flush(); os.unlink(sys.argv[1])\n\
            m = os.memfd_create('m'); os.write(m, b'x' * (5 << 20))\n\
            s = mmap.mmap(-1, 32 << 20); s.write(b'x' * (32 << 20))\n\
            print('ready', flush=True); time.sleep(1000)";
        let mut child = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(folder.path().join("gone"))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
        let processes = descendants(std::process::id());
        assert!(processes.contains(&child.id()));
        let own = [child.id()];
        let usage = CaseUsage {
            folders: vec![open_folder(folder.path()).unwrap()],
            limits: SandboxLimits::default(),
            watches_memory: true,
            supervisor: std::process::id(),
        };
        assert_eq!(usage.deleted_bytes(&own) >> 20, 3);
        assert_eq!(open_deleted_files(&own, is_memory_file).values().sum::<u64>() >> 20, 5);
        let limit = |memory_mib, total_memory_mib| {
            let limits = SandboxLimits { memory_mib, total_memory_mib, ..SandboxLimits::default() };
            exceeded_memory(&own, &limits)
        };
        assert_eq!(limit(1 << 10, 1 << 10), None);
        assert!(limit(30, 1 << 10).unwrap().contains("of one process"));
        assert!(limit(1 << 10, 30).unwrap().contains("of all its processes"));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Prints what watching adds to the start of a case; the numbers are in benches/README.md.
    #[test]
    #[ignore = "measures and asserts nothing"]
    fn what_the_start_of_watching_costs() {
        const TIMES: usize = 500;
        let median = |work: &dyn Fn()| {
            let mut times: Vec<Duration> = (0..TIMES)
                .map(|_| {
                    let started = Instant::now();
                    work();
                    started.elapsed()
                })
                .collect();
            times.sort_unstable();
            times[TIMES / 2]
        };
        let folder = tempfile::tempdir().unwrap();
        let large = tempfile::tempdir().unwrap();
        for number in 0..10_000 {
            fs::write(large.path().join(number.to_string()), "x").unwrap();
        }
        let policy = SandboxPolicy {
            level: SandboxLevel::Full,
            write: vec![folder.path().to_owned()],
            ..SandboxPolicy::default()
        };
        println!(
            "start of the thread: {:?}",
            median(&|| drop(UsageWatch::start(&policy).unwrap()))
        );
        let pidfd = || {
            let own = rustix::process::getpid();
            rustix::process::pidfd_open(own, rustix::process::PidfdFlags::NONBLOCK).unwrap()
        };
        println!("descriptor of the harness: {:?}", median(&|| drop(pidfd())));
        let walk = |folder: &Path| assert!(measured(folder).files <= 10_000);
        println!("beside the case, first walk: {:?}", median(&|| walk(folder.path())));
        println!("the same, 10,000 files: {:?}", median(&|| walk(large.path())));
    }
}
