//! A disk that fails by a seed: short writes, a full disk, I/O errors, renames that did or did not
//! happen, and the death of the process in the middle of an operation. One seed always fails in the
//! same places.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::Disk;

/// A generator of numbers that depends on its seed alone (`SplitMix64`).
#[derive(Debug, Clone)]
pub struct SeededNumbers(u64);

impl SeededNumbers {
    /// Creates the numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws a number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `most`, which must not be 0.
    pub fn below(&mut self, most: u64) -> u64 {
        self.draw() % most
    }

    /// Draws an index of a slice of this length, which must not be 0.
    pub fn index(&mut self, length: usize) -> usize {
        // Below a `usize`, and so one itself.
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    /// Returns true once in `times`, on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// What a disk does to the process that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultPlan {
    /// Number of the operation during which the process dies; `None` if it lives.
    pub death: Option<u64>,
    /// One operation in this many fails; `None` if none does.
    pub failure: Option<u64>,
}

/// The disk of one process.
#[derive(Debug)]
pub struct SimulatedDisk {
    plan: FaultPlan,
    state: Mutex<DiskState>,
}

#[derive(Debug)]
struct DiskState {
    numbers: SeededNumbers,
    operations: u64,
    is_dead: bool,
}

/// What becomes of one operation.
enum Fate {
    Done,
    /// It fails with this error, after a part of it was done.
    Failed(ErrorKind),
    Died,
}

impl SimulatedDisk {
    /// Creates a disk that fails by this plan, in places that the seed decides.
    pub fn new(plan: FaultPlan, seed: u64) -> Self {
        let numbers = SeededNumbers::new(seed);
        Self { plan, state: Mutex::new(DiskState { numbers, operations: 0, is_dead: false }) }
    }

    /// Returns true once the process has died: nothing that it does has an effect any more.
    pub fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DiskState> {
        // Plain numbers are valid after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about the next operation, and which part of `length` is done if not all of it is.
    fn next(&self, length: usize) -> (Fate, usize) {
        let mut state = self.lock();
        if state.is_dead {
            return (Fate::Died, 0);
        }
        state.operations += 1;
        let part = state.numbers.index(length + 1);
        if self.plan.death == Some(state.operations) {
            state.is_dead = true;
            return (Fate::Died, part);
        }
        match self.plan.failure {
            Some(times) if state.numbers.one_in(times) => {
                let kinds = [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::QuotaExceeded];
                let kind = kinds[state.numbers.index(kinds.len())];
                (Fate::Failed(kind), part)
            }
            _ => (Fate::Done, length),
        }
    }
}

fn death() -> io::Error {
    io::Error::other("the process was killed")
}

impl Disk for SimulatedDisk {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        let (fate, part) = self.next(bytes.len());
        file.write_all(&bytes[..part])?;
        match fate {
            Fate::Done => Ok(()),
            Fate::Failed(kind) => Err(kind.into()),
            Fate::Died => Err(death()),
        }
    }

    fn set_len(&self, file: &File, length: u64) -> io::Result<()> {
        match self.next(1) {
            (Fate::Done, _) => file.set_len(length),
            (Fate::Failed(kind), _) => Err(kind.into()),
            (Fate::Died, _) => Err(death()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (fate, part) = self.next(1);
        // A rename happens as a whole or not at all, whatever is returned.
        if part == 1 {
            fs::rename(from, to)?;
        }
        match fate {
            Fate::Done => Ok(()),
            Fate::Failed(kind) => Err(kind.into()),
            Fate::Died => Err(death()),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.next(1) {
            (Fate::Done, _) => fs::remove_file(path),
            (Fate::Failed(kind), _) => Err(kind.into()),
            (Fate::Died, _) => Err(death()),
        }
    }
}
