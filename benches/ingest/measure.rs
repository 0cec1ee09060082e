//! The cost of a child process, and the parsing for comparison.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;

/// The cost of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) peak_bytes: u64,
}

/// Runs a command to its end; its standard output, and what it has cost.
#[expect(unsafe_code, reason = "the standard library does not tell what one child has cost")]
#[expect(clippy::zombie_processes, reason = "wait4 waits for it")]
pub(crate) fn run(command: &mut Command) -> (Vec<u8>, Cost) {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    let id = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: wait4 writes nothing but the status and the struct that it is given, which is plain
    // numbers. The child is ours, and no other code waits for it.
    let (status, usage) = unsafe {
        let (mut status, mut usage): (_, libc::rusage) = (0, std::mem::zeroed());
        assert_eq!(libc::wait4(id, &raw mut status, 0, &raw mut usage), id);
        (status, usage)
    };
    let wall = started.elapsed();
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{command:?}: {status}");
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs())
            + Duration::from_micros(u64::from(u32::try_from(time.tv_usec).unwrap()))
    };
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    (said, Cost { wall, cpu, peak_bytes: usage.ru_maxrss.unsigned_abs() * unit })
}

/// The middle one by wall time.
pub(crate) fn median(mut costs: Vec<Cost>) -> Cost {
    costs.sort_unstable_by_key(|cost| cost.wall);
    costs[costs.len() / 2]
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Parses every file below a folder on two threads and keeps nothing of it: JSON lines one by
/// one out of a buffer, documents whole.
pub(crate) fn parse(folder: &Path) {
    let mut paths = Vec::new();
    files(folder, &mut paths);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut buffer = Vec::new();
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    parse_file(path, &mut buffer);
                }
            });
        }
    });
}

fn parse_file(path: &Path, buffer: &mut Vec<u8>) {
    const CHUNK: usize = 256 * 1024;
    let ignore = |json: &[u8]| {
        serde_json::from_slice::<IgnoredAny>(json).unwrap();
    };
    let mut file = File::open(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "json") {
        buffer.clear();
        file.read_to_end(buffer).unwrap();
        ignore(buffer);
        return;
    }
    let (mut start, mut end) = (0, 0);
    loop {
        let mut searched = start;
        while let Some(length) = memchr::memchr(b'\n', &buffer[searched..end]) {
            ignore(&buffer[start..searched + length]);
            start = searched + length + 1;
            searched = start;
        }
        buffer.copy_within(start..end, 0);
        (start, end) = (0, end - start);
        if end + CHUNK > buffer.len() {
            buffer.resize((end + CHUNK).next_power_of_two(), 0);
        }
        match file.read(&mut buffer[end..]).unwrap() {
            0 => return,
            count => end += count,
        }
    }
}
