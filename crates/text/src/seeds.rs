//! Runs a simulation on many seeds and all processors, and collects what it violates.
//!
//! `SELFTEST_SIMULATE` is the number of seeds, `SELFTEST_SIMULATE_FROM` the first one, so that a single
//! seed can be replayed. Only for tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Number of seeds after which a long run says how far it is.
const REPORTED: u64 = 10_000;

/// Simulates `usual` seeds, or as many as the environment asks for. `prepare` makes what each thread
/// needs; `again` is the recipe that replays a seed, such as `simulate`.
///
/// # Panics
/// Panics with the first violations, if there are any.
#[expect(clippy::print_stdout, reason = "a long simulation says how far it is")]
pub fn run_seeds<T, E: std::fmt::Display>(
    usual: u64,
    again: &str,
    prepare: impl Fn() -> T + Sync,
    simulate: impl Fn(&T, u64) -> Result<(), E> + Sync,
) {
    let number_of = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let first = number_of("SELFTEST_SIMULATE_FROM").unwrap_or(0);
    let count = number_of("SELFTEST_SIMULATE").unwrap_or(usual);
    let begun = Instant::now();
    let next = AtomicU64::new(first);
    let found = Mutex::new(Vec::new());
    let violations = || found.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let prepared = prepare();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    if seed > first && (seed - first).is_multiple_of(REPORTED) {
                        let (failed, took) = (violations().len(), begun.elapsed());
                        println!("up to seed {seed}: {failed} violations, {took:.1?}");
                    }
                    if let Err(why) = simulate(&prepared, seed) {
                        let violation =
                            format!("seed {seed} (again: just {again} 1 {seed}): {why}");
                        println!("{violation}");
                        violations().push(violation);
                    }
                }
            });
        }
    });
    let violations = violations();
    let (failed, took) = (violations.len(), begun.elapsed());
    println!("{count} seeds from {first}, {failed} violations, {:.1} s", took.as_secs_f64());
    assert!(
        violations.is_empty(),
        "{failed} of {count} seeds: {:#?}",
        &violations[..failed.min(10)]
    );
}
