//! Removes files that killed processes left behind, if their run is no longer alive.

use std::collections::BTreeMap;
use std::path::Path;

use super::EXTENSION;
use crate::sut::namespace::RunId;
use selftest_text::disk::{Disk, OpenMode, SystemDisk};

/// Removes temporary files of dead runs from the report folders. Files that cannot be removed stay.
pub fn remove_leftovers(json_folder: &Path, markdown_folder: &Path) {
    remove_leftovers_on(&SystemDisk, json_folder, markdown_folder);
}

/// Like [`remove_leftovers`], on this disk.
pub fn remove_leftovers_on(disk: &dyn Disk, json_folder: &Path, markdown_folder: &Path) {
    let mut alive = BTreeMap::<RunId, bool>::new();
    for folder in [json_folder, markdown_folder] {
        for path in disk.list(folder).unwrap_or_default() {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(run) = name.and_then(owner_of) else { continue };
            let is_alive =
                *alive.entry(run.clone()).or_insert_with(|| is_alive(disk, json_folder, &run));
            if !is_alive {
                let _ = disk.remove(&path);
            }
        }
    }
}

/// Returns the run that a temporary file belongs to: `.<name>.<run id>.tmp` or `.<run id>.probe`.
fn owner_of(name: &str) -> Option<RunId> {
    let inner = name.strip_prefix('.')?;
    let run = match inner.strip_suffix(".tmp") {
        Some(inner) => inner.rsplit_once('.')?.1,
        None => inner.strip_suffix(".probe")?,
    };
    RunId::try_from(run.to_owned()).ok()
}

/// Returns true if a process holds the lock on the run's journal. A run without a journal may be
/// about to start, so it counts as alive.
fn is_alive(disk: &dyn Disk, folder: &Path, run: &RunId) -> bool {
    let journal = folder.join(format!("{run}.{EXTENSION}"));
    disk.open(&journal, OpenMode::Read).map_or(true, |file| file.try_lock_shared().is_err())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn only_files_of_dead_runs_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (dead, alive) = ("selftest-20260206-1234-dddddd", "selftest-20260206-1234-bbbbbb");
        let new = "selftest-20260206-1234-nnnnnn";
        for run in [dead, alive, new] {
            fs::write(path(&format!(".{run}.json.{run}.tmp")), "half").unwrap();
        }
        fs::write(path(&format!(".{dead}.probe")), "").unwrap();
        fs::write(path(".index.md.mine.tmp"), "").unwrap();
        fs::write(path(&format!("{dead}.journal")), "").unwrap();
        let held = File::create(path(&format!("{alive}.journal"))).unwrap();
        held.lock().unwrap();
        remove_leftovers(folder.path(), folder.path());
        let left: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with('.'))
            .collect();
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(left.iter().all(|name| !name.contains(dead)), "{left:?}");
    }
}
