//! Processors for the embedded engine: whether they have the instructions, whose turn it is, and how
//! many threads a call gets.
//!
//! llama.cpp's kernels are chosen at build time: a statically linked library cannot select them at
//! startup. An older CPU is rejected before it hits an illegal instruction.
//!
//! llama.cpp's threads spin while they wait for each other. Two models on the same cores can take a
//! hundred times as long as one after the other, so models of one process take turns, as do
//! processes that use the same file. If other programs occupy the cores, one thread can be ten
//! times as fast as two.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use super::llama;
use crate::ModelError;

/// Above this number, threads mostly wait for each other on models small enough for a CPU.
const MAX_THREADS: usize = 8;
/// Number of samples of the system load and the pause between them, so that short bursts are
/// ignored.
const SAMPLES: u32 = 3;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(3);

/// Returns the number of threads to use on an idle machine.
pub(super) fn max_threads() -> usize {
    available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS)
}

/// Returns the number of threads that match the free processors. Keeps `current` if the difference
/// is small. Falls back to [`max_threads`] if the load is unknown.
pub(super) fn available_threads(current: usize) -> usize {
    let mut most_free = None;
    for look in 0..SAMPLES {
        if look > 0 {
            sleep(SAMPLE_INTERVAL);
        }
        let free =
            std::fs::read_to_string("/proc/stat").ok().and_then(|stat| idle_processors(&stat));
        most_free = most_free.max(free);
    }
    choose_threads(most_free, current, max_threads())
}

fn choose_threads(free: Option<usize>, current: usize, all: usize) -> usize {
    let Some(free) = free else { return all };
    let wanted = free.clamp(1, all);
    // Shrinks at once, but grows only to the maximum or by a factor of two.
    let close = wanted >= current && wanted < all && wanted < 2 * current;
    if close { current } else { wanted }
}

/// Returns the number of idle processors from Linux's `/proc/stat`, without counting the calling
/// thread.
fn idle_processors(stat: &str) -> Option<usize> {
    let processors = stat
        .lines()
        .filter_map(|line| line.strip_prefix("cpu"))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .count();
    let running = stat.lines().find_map(|line| line.strip_prefix("procs_running "))?;
    let others = running.trim().parse::<usize>().ok()?.saturating_sub(1);
    (processors > 0).then(|| processors.saturating_sub(others))
}

static TURN: Mutex<()> = Mutex::new(());

/// An extra handle to the weights file, locked during computation. `None` if it cannot be opened;
/// processes then only slow each other down.
pub(super) struct ComputeLock(Option<File>);

/// The right to compute until dropped.
pub(super) struct ComputeGuard<'a> {
    file: Option<&'a File>,
    _process: MutexGuard<'static, ()>,
}

impl ComputeLock {
    pub(super) fn open(file: &Path) -> Self {
        // On other systems, a lock would keep other processes from reading the file.
        Self(if cfg!(unix) { File::open(file).ok() } else { None })
    }

    /// Waits for a turn, at most one batch of each other model.
    pub(super) fn acquire(&self) -> ComputeGuard<'_> {
        let process = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.0.as_ref().filter(|file| file.lock().is_ok());
        ComputeGuard { file, _process: process }
    }
}

impl Drop for ComputeGuard<'_> {
    fn drop(&mut self) {
        // Runs before the fields are dropped, so the file is unlocked before the mutex.
        if let Some(file) = self.file {
            // Closing the file releases the lock anyway.
            let _ = file.unlock();
        }
    }
}

/// Returns an error if instructions are missing.
pub(super) fn check() -> Result<(), ModelError> {
    check_against(&llama::compiled_features(), cpu_supports)
}

fn check_against(wanted: &[&'static str], has: impl Fn(&str) -> bool) -> Result<(), ModelError> {
    let missing: Vec<&str> = wanted.iter().copied().filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("the embedded engine needs a processor with {}", missing.join(", "));
    let hint = "use a model server (ollama/NAME, openai/NAME), or build selftest on this machine \
                with RUSTFLAGS=-Ctarget-cpu=native";
    Err(ModelError::engine(what, Some(hint.to_owned())))
}

#[cfg(target_arch = "x86_64")]
fn cpu_supports(name: &str) -> bool {
    match name {
        "SSSE3" => std::is_x86_feature_detected!("ssse3"),
        "AVX" => std::is_x86_feature_detected!("avx"),
        "AVX2" => std::is_x86_feature_detected!("avx2"),
        "FMA" => std::is_x86_feature_detected!("fma"),
        "F16C" => std::is_x86_feature_detected!("f16c"),
        "BMI2" => std::is_x86_feature_detected!("bmi2"),
        "AVX-512" => std::is_x86_feature_detected!("avx512f"),
        _ => true,
    }
}

/// Builds for other architectures target the oldest processors.
#[cfg(not(target_arch = "x86_64"))]
fn cpu_supports(_: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_free_that_no_other_program_uses() {
        let stat =
            |running: u32| format!("cpu  1 2\ncpu0 1\ncpu1 1\nintr 5 0\nprocs_running {running}\n");
        assert_eq!(idle_processors(&stat(1)), Some(2));
        assert_eq!(idle_processors(&stat(2)), Some(1));
        assert_eq!(idle_processors(&stat(9)), Some(0));
        assert_eq!(idle_processors("cpu  1 2\nprocs_running 1\n"), None);
        assert_eq!(idle_processors("nonsense"), None);
    }

    #[test]
    fn threads_follow_the_free_processors() {
        assert_eq!(choose_threads(None, 1, 2), 2);
        assert_eq!(choose_threads(Some(2), 2, 2), 2);
        assert_eq!(choose_threads(Some(1), 2, 2), 1);
        assert_eq!(choose_threads(Some(0), 2, 2), 1);
        assert_eq!(choose_threads(Some(2), 1, 2), 2);
        assert_eq!(choose_threads(Some(9), 4, 8), 8);
        assert_eq!(choose_threads(Some(6), 4, 8), 4, "not worth a change");
        assert_eq!(choose_threads(Some(3), 4, 8), 3);
    }

    #[test]
    fn what_runs_these_tests_has_all_of_it() {
        check().unwrap();
    }

    #[test]
    fn what_is_missing_is_named_with_a_way_out() {
        let error = check_against(&["AVX", "AVX2", "FMA"], |name| name == "AVX").unwrap_err();
        assert_eq!(error.to_string(), "the embedded engine needs a processor with AVX2, FMA");
        assert!(error.hint().unwrap().contains("ollama/NAME"));
    }

    #[cfg(unix)]
    #[test]
    fn a_turn_locks_the_file_until_it_ends() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let other = File::open(file.path()).unwrap();
        let turns = ComputeLock::open(file.path());
        let turn = turns.acquire();
        assert!(other.try_lock().is_err());
        drop(turn);
        other.try_lock().unwrap();
    }
}
