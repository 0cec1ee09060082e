//! Chooses the number of threads for a call.
//!
//! llama.cpp's threads spin at barriers. If other programs occupy their cores, one thread can be
//! ten times as fast as two.

use std::thread::{available_parallelism, sleep};
use std::time::Duration;

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
/// is small. Falls back to [`all`] if the load is unknown.
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
}
