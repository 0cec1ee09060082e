//! Finds out whether a program read certain files, by their access times.
//!
//! Linux updates the access time of a file that is read if it is older than the last change
//! (`relatime`, the default of all distributions). So the time is set to one far in the past before
//! the program starts. A file system that keeps no access times says nothing.

use std::fs::{File, FileTimes};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A time before any file was made, after the start of 1970.
const LONG_AGO: Duration = Duration::from_hours(24);

/// Files whose reading is watched.
#[derive(Debug, Default)]
pub(super) struct ReadMarks {
    files: Vec<PathBuf>,
    /// True if the file system keeps access times.
    works: bool,
    phase: WatchPhase,
    was_read: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum WatchPhase {
    /// The program was not started yet.
    #[default]
    Before,
    Watching,
    /// The harness itself may have read the files.
    Over,
}

impl ReadMarks {
    /// Watches these files; `probe` is a file that may be written to find out if that works.
    pub(super) fn of(files: Vec<PathBuf>, probe: &Path) -> Self {
        let works = !files.is_empty() && keeps_access_times(probe).unwrap_or(false);
        Self { files, works, ..Self::default() }
    }

    /// Marks the files as unread. Call it before the program starts, and after our own reading.
    pub(super) fn set(&mut self) {
        self.look();
        if self.works {
            // A file that cannot be marked looks as if it was read: then nothing is known.
            self.works = self.files.iter().all(|file| mark(file).is_ok());
        }
        self.phase = WatchPhase::Watching;
    }

    /// Stops watching. Call it before the harness itself reads the folder.
    pub(super) fn stop(&mut self) {
        self.look();
        self.phase = WatchPhase::Over;
    }

    /// Returns true if one of the files was read while they were watched, `None` if that cannot be
    /// known.
    pub(super) fn look(&mut self) -> Option<bool> {
        let knows = self.phase != WatchPhase::Before && self.works;
        if knows && self.phase == WatchPhase::Watching && !self.was_read {
            self.was_read = self.files.iter().any(|file| is_marked(file) == Some(false));
        }
        knows.then_some(self.was_read)
    }
}

fn mark(file: &Path) -> io::Result<()> {
    let times = FileTimes::new().set_accessed(SystemTime::UNIX_EPOCH + LONG_AGO);
    File::open(file)?.set_times(times)
}

/// Returns true if the file was not read since it was marked; `None` if it is gone.
fn is_marked(file: &Path) -> Option<bool> {
    // A link that the program put in its place is not followed.
    let found = file.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(found.accessed().ok()? == SystemTime::UNIX_EPOCH + LONG_AGO)
}

fn keeps_access_times(probe: &Path) -> io::Result<bool> {
    std::fs::write(probe, "x")?;
    mark(probe)?;
    let was_marked = is_marked(probe) == Some(true);
    File::open(probe)?.read_to_end(&mut Vec::new())?;
    let found = was_marked && is_marked(probe) == Some(false);
    std::fs::remove_file(probe)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_leaves_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("SKILL.md");
        std::fs::write(&file, "Go.").unwrap();
        let mut marks = ReadMarks::of(vec![file.clone()], &folder.path().join("probe"));
        if !marks.works {
            return;
        }
        assert_eq!(marks.look(), None, "not set yet");
        marks.set();
        assert_eq!(marks.look(), Some(false));
        std::fs::read(&file).unwrap();
        assert_eq!(marks.look(), Some(true));
        marks.set();
        assert_eq!(marks.look(), Some(true), "what was seen stays");
        let mut marks = ReadMarks::of(vec![file.clone()], &folder.path().join("probe"));
        marks.set();
        marks.stop();
        std::fs::read(&file).unwrap();
        assert_eq!(marks.look(), Some(false), "that was the harness");
        assert!(!folder.path().join("probe").exists());
    }

    #[test]
    fn nothing_watched_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut marks = ReadMarks::of(Vec::new(), &folder.path().join("probe"));
        marks.set();
        assert_eq!(marks.look(), None);
    }
}
