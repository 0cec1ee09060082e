//! Mutual exclusion for computation on the CPU.
//!
//! llama.cpp's threads spin while they wait for each other, so two models on the same cores can
//! take a hundred times as long as one after the other. Models of one process take turns, as do
//! processes that use the same file.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

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
