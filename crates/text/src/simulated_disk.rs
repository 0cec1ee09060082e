//! A disk in memory that fails by a seed: short writes, a full disk, I/O errors, renames that did or
//! did not happen, syncs that fail, the death of the process in the middle of an operation, and a
//! loss of power, which takes what was not synced. One seed always fails in the same places.
//!
//! What a loss of power leaves of a file that was written since its last sync: what was synced, or a
//! beginning of the new content, which may end in zeros or have a hole of zeros. Of the changes of
//! names since the last sync of anything, a beginning happened, as on file systems with a journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::TryLockError;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, OpenFile, OpenMode};

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
        // Written out instead of taken from a crate: a seed has to give the same numbers in every
        // version.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `most`, which must not be 0.
    pub fn below(&mut self, most: u64) -> u64 {
        // The bias of the remainder is far below what a simulation could notice.
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

/// A disk in memory. References share it.
#[derive(Debug, Clone, Default)]
pub struct SimulatedDisk(Arc<Mutex<DiskState>>);

#[derive(Debug)]
struct DiskState {
    plan: FaultPlan,
    numbers: SeededNumbers,
    operations: u64,
    is_dead: bool,
    /// By number; files that nothing names stay until the end.
    files: Vec<StoredFile>,
    folders: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, usize>,
    synced_names: BTreeMap<PathBuf, usize>,
    /// Changes since the names were synced.
    changes: Vec<NameChange>,
    opened: u64,
}

#[derive(Debug, Default)]
struct StoredFile {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Bytes at the start that did not change since the last sync.
    unchanged: usize,
    /// Numbers of the open files that hold the lock, and whether each holds it alone.
    locks: Vec<(u64, bool)>,
}

#[derive(Debug)]
enum NameChange {
    Added(PathBuf, usize),
    Renamed(PathBuf, PathBuf),
    Removed(PathBuf),
}

/// A file that a process opened.
#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    number: usize,
    opening: u64,
}

/// What becomes of one operation.
enum Fate {
    Done,
    /// It fails with this error, after a part of it was done.
    Failed(ErrorKind),
    Died,
}

/// Most bytes between the ends of a hole that a loss of power leaves.
const HOLE: usize = 4096;

impl Default for DiskState {
    fn default() -> Self {
        Self {
            plan: FaultPlan::default(),
            numbers: SeededNumbers::new(0),
            operations: 0,
            is_dead: false,
            files: Vec::new(),
            folders: BTreeSet::new(),
            names: BTreeMap::new(),
            synced_names: BTreeMap::new(),
            changes: Vec::new(),
            opened: 0,
        }
    }
}

impl SimulatedDisk {
    /// Starts the next process on this disk, which fails by this plan, in places that the seed
    /// decides. The locks of the former one are released.
    pub fn start_process(&self, plan: FaultPlan, seed: u64) {
        let mut state = self.lock();
        state.plan = plan;
        state.numbers = SeededNumbers::new(seed);
        state.operations = 0;
        state.is_dead = false;
        for file in &mut state.files {
            file.locks.clear();
        }
    }

    /// Takes the power: what was not synced may be lost.
    pub fn lose_power(&self, seed: u64) {
        let mut state = self.lock();
        let mut numbers = SeededNumbers::new(seed);
        // Some prefix of the changes: journaling file systems keep the order of changes to names.
        let happened = numbers.index(state.changes.len() + 1);
        let mut names = std::mem::take(&mut state.synced_names);
        for change in state.changes.drain(..).take(happened) {
            change.apply(&mut names);
        }
        state.synced_names.clone_from(&names);
        state.names = names;
        for file in &mut state.files {
            file.lose_power(&mut numbers);
        }
    }

    /// Returns true once the process has died: nothing that it does has an effect any more.
    pub fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    /// Reads a file, without a fault.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.lock();
        Some(state.files[*state.names.get(path)?].bytes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        // Every operation leaves plain data, valid after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskState {
    /// Decides about the next operation, and which part of `length` is done if not all of it is.
    fn next(&mut self, length: usize) -> (Fate, usize) {
        if self.is_dead {
            return (Fate::Died, 0);
        }
        self.operations += 1;
        // Drawn in any case, so that the numbers after an operation do not depend on its fate.
        let part = self.numbers.index(length + 1);
        if self.plan.death == Some(self.operations) {
            self.is_dead = true;
            return (Fate::Died, part);
        }
        match self.plan.failure {
            Some(times) if self.numbers.one_in(times) => {
                let kinds = [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::QuotaExceeded];
                let kind = kinds[self.numbers.index(kinds.len())];
                (Fate::Failed(kind), part)
            }
            _ => (Fate::Done, length),
        }
    }

    /// Decides about an operation that happens as a whole or not at all, whatever it returns.
    /// Returns whether it happens, and the result.
    fn whole(&mut self) -> (bool, io::Result<()>) {
        let (fate, part) = self.next(1);
        (part == 1, fate.result())
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    /// A journal of a file system has all changes of names before a sync of anything.
    fn sync_names(&mut self) {
        self.synced_names.clone_from(&self.names);
        self.changes.clear();
    }

    fn is_locked(&self, number: usize, by_one: bool) -> bool {
        self.files[number].locks.iter().any(|(_, is_alone)| by_one || *is_alone)
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            NameChange::Added(path, number) => drop(names.insert(path.clone(), *number)),
            NameChange::Renamed(from, to) => {
                if let Some(number) = names.remove(from) {
                    names.insert(to.clone(), number);
                }
            }
            NameChange::Removed(path) => drop(names.remove(path)),
        }
    }
}

impl StoredFile {
    fn lose_power(&mut self, numbers: &mut SeededNumbers) {
        let unchanged = self.unchanged.min(self.bytes.len());
        if unchanged < self.bytes.len() || unchanged < self.synced.len() {
            let kept = unchanged + numbers.index(self.bytes.len() - unchanged + 1);
            match numbers.below(4) {
                // Nothing after the sync reached the disk, not even a shorter length.
                0 => self.bytes.clone_from(&self.synced),
                // The length reached the disk, the content did not.
                1 => self.bytes[kept..].fill(0),
                2 => {
                    let end = kept + numbers.index(HOLE);
                    let end = end.min(self.bytes.len());
                    self.bytes[kept..end].fill(0);
                }
                _ => self.bytes.truncate(kept),
            }
        }
        self.set_synced();
    }

    fn set_synced(&mut self) {
        self.synced.truncate(self.unchanged.min(self.bytes.len()));
        let shared = self.synced.len();
        self.synced.extend_from_slice(&self.bytes[shared..]);
        self.unchanged = self.bytes.len();
    }
}

impl Fate {
    fn result(self) -> io::Result<()> {
        match self {
            Fate::Done => Ok(()),
            Fate::Failed(kind) => Err(kind.into()),
            Fate::Died => Err(io::Error::other("the process was killed")),
        }
    }
}

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn OpenFile>> {
        let mut state = self.lock();
        let found = state.names.get(path).copied();
        let number = match (found, mode) {
            (Some(_), OpenMode::CreateNew | OpenMode::CreatePrivate) => {
                return Err(ErrorKind::AlreadyExists.into());
            }
            (Some(number), _) => {
                state.next(0).0.result()?;
                number
            }
            (None, OpenMode::Read | OpenMode::ReadWrite) => {
                return Err(ErrorKind::NotFound.into());
            }
            (None, _) => {
                if !path.parent().is_some_and(|folder| state.folders.contains(folder)) {
                    return Err(ErrorKind::NotFound.into());
                }
                let (happens, result) = state.whole();
                let number = state.files.len();
                if happens {
                    state.files.push(StoredFile::default());
                    state.change_name(NameChange::Added(path.to_owned(), number));
                }
                result?;
                number
            }
        };
        state.opened += 1;
        let opening = state.opened;
        Ok(Arc::new(SimulatedFile { disk: self.clone(), number, opening }))
    }

    fn is_file(&self, path: &Path) -> io::Result<bool> {
        let state = self.lock();
        if state.folders.contains(path) {
            return Ok(false);
        }
        state.names.get(path).map(|_| true).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut state = self.lock();
        if !state.folders.contains(folder) {
            return Err(ErrorKind::NotFound.into());
        }
        state.next(0).0.result()?;
        let paths = state.names.keys();
        Ok(paths.filter(|path| path.parent() == Some(folder)).cloned().collect())
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if state.folders.contains(folder) {
            return Ok(());
        }
        let (happens, result) = state.whole();
        if happens {
            // A simplification: folders survive a loss of power at once.
            state.folders.extend(folder.ancestors().map(Path::to_owned));
        }
        result
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if !state.names.contains_key(from) {
            return Err(ErrorKind::NotFound.into());
        }
        let (happens, result) = state.whole();
        if happens {
            state.change_name(NameChange::Renamed(from.to_owned(), to.to_owned()));
        }
        result
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if !state.names.contains_key(path) {
            return Err(ErrorKind::NotFound.into());
        }
        let (happens, result) = state.whole();
        if happens {
            state.change_name(NameChange::Removed(path.to_owned()));
        }
        result
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        let mut state = self.lock();
        let (happens, result) = state.whole();
        if happens {
            state.sync_names();
        }
        result
    }
}

impl OpenFile for SimulatedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        let (fate, part) = state.next(bytes.len());
        // Also if the process dies: a write may have reached the page cache in part.
        state.files[self.number].bytes.extend_from_slice(&bytes[..part]);
        fate.result()
    }

    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        let mut state = self.disk.lock();
        state.next(0).0.result()?;
        Ok(Box::new(io::Cursor::new(state.files[self.number].bytes.clone())))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.lock();
        let (happens, result) = state.whole();
        if happens {
            let length = usize::try_from(length).map_err(io::Error::other)?;
            let file = &mut state.files[self.number];
            file.bytes.resize(length, 0);
            // A file that is cut and grows again has new content from there on.
            file.unchanged = file.unchanged.min(length);
        }
        result
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        let (happens, result) = state.whole();
        if happens {
            state.sync_names();
            state.files[self.number].set_synced();
        }
        result
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        let mut state = self.disk.lock();
        if state.is_locked(self.number, true) {
            return Err(TryLockError::WouldBlock);
        }
        state.files[self.number].locks.push((self.opening, true));
        Ok(())
    }

    fn try_lock_shared(&self) -> Result<(), TryLockError> {
        let mut state = self.disk.lock();
        if state.is_locked(self.number, false) {
            return Err(TryLockError::WouldBlock);
        }
        state.files[self.number].locks.push((self.opening, false));
        Ok(())
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        Ok(self.disk.lock().names.get(path) == Some(&self.number))
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.disk.lock();
        state.files[self.number].locks.retain(|(opening, _)| *opening != self.opening);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (SimulatedDisk, PathBuf) {
        let disk = SimulatedDisk::default();
        disk.create_folder(Path::new("/room")).unwrap();
        (disk, PathBuf::from("/room/file"))
    }

    #[test]
    fn what_is_synced_survives_a_loss_of_power() {
        for seed in 0..200 {
            let (disk, path) = disk();
            let file = disk.open(&path, OpenMode::CreateNew).unwrap();
            file.append(b"synced").unwrap();
            file.sync().unwrap();
            file.append(b", not synced").unwrap();
            disk.lose_power(seed);
            let left = disk.content(&path).unwrap();
            assert!(left.starts_with(b"synced") && left.len() <= 18, "{seed}: {left:?}");
        }
    }

    #[test]
    fn a_rename_that_is_not_synced_happens_or_does_not() {
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let (disk, path) = disk();
            let other = path.with_file_name("other");
            disk.open(&path, OpenMode::CreateNew).unwrap().sync().unwrap();
            disk.rename(&path, &other).unwrap();
            disk.lose_power(seed);
            seen.insert((disk.content(&path).is_some(), disk.content(&other).is_some()));
        }
        assert_eq!(seen, BTreeSet::from([(false, true), (true, false)]));
    }

    #[test]
    fn a_lock_goes_with_its_file() {
        let (disk, path) = disk();
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.try_lock().unwrap();
        let second = disk.open(&path, OpenMode::Read).unwrap();
        assert!(matches!(second.try_lock_shared(), Err(TryLockError::WouldBlock)));
        drop(file);
        second.try_lock_shared().unwrap();
    }

    #[test]
    fn nothing_happens_after_death() {
        let (disk, path) = disk();
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        disk.start_process(FaultPlan { death: Some(1), failure: None }, 7);
        file.append(b"12345678").unwrap_err();
        let left = disk.content(&path).unwrap();
        assert!(left.len() <= 8 && disk.is_dead());
        file.append(b"12345678").unwrap_err();
        disk.remove(&path).unwrap_err();
        assert_eq!(disk.content(&path), Some(left));
    }
}
