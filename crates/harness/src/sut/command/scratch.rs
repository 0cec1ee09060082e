//! Scratch folders that programs may write to, one per session. Each is locked while its owner
//! lives, so that folders of killed processes can be recognised and removed.
//!
//! Whether a program read certain files is found out by their access times. Linux updates the access
//! time of a file that is read if it is older than the last change (`relatime`, the default of all
//! distributions). So the time is set to one far in the past before the program starts. A file system
//! that keeps no access times says nothing.

use std::fs::{self, DirBuilder, File, FileTimes};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use super::ProgramStartError;
use crate::sut::namespace::SessionId;
use crate::sut::project::remove_tree;
use selftest_sandbox::stale_folder;

/// Maximum number of attempts to create a folder that another process removes as stale.
const MAX_TRIES: u32 = 200;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// Longest wait for a removal. A program may leave half a million files, and some disks take
/// milliseconds for each.
const REMOVAL_LIMIT: Duration = Duration::from_secs(10);

/// Infix between the id of a session and the number of a check's folder.
const CHECK: &str = "-check-";

/// Name prefix of a folder that only tests for free disk space.
pub(super) const PROBE: &str = "selftest-probe-";

/// A folder of this process, removed with its session.
pub(super) struct ScratchFolder {
    pub(super) path: PathBuf,
    /// Holds the lock as long as it is open. `None` once the removal has begun, which takes it along.
    lock: Option<File>,
}

impl ScratchFolder {
    /// Creates a folder that only this user can enter. The error is an I/O error.
    pub(super) fn make(root: &Path, name: &str) -> Result<Self, ProgramStartError> {
        let path = root.join(name);
        let failed = |source| ProgramStartError::Scratch { path: path.clone(), source };
        fs::create_dir_all(root).map_err(failed)?;
        for number in 0..MAX_TRIES {
            match Self::try_make(&path) {
                Ok(Some(scratch)) => return Ok(scratch),
                Ok(None) => {}
                // It is being removed.
                Err(error) if number > 0 && error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
            std::thread::sleep(PAUSE);
        }
        Err(failed(io::Error::other("another process removes it again and again")))
    }

    /// Returns `None` if another process took it for a stale folder before it was locked.
    fn try_make(path: &Path) -> io::Result<Option<Self>> {
        make_private(path)?;
        let Some(lock) = stale_folder::lock_new(path)? else { return Ok(None) };
        // Not every program understands Windows's verbatim paths (`\\?\`).
        let path = if cfg!(windows) { std::path::absolute(path)? } else { path.canonicalize()? };
        Ok(Some(Self { path, lock: Some(lock) }))
    }
}

impl ScratchFolder {
    /// Returns the path of the file next to it in which the supervisor records attempts. The
    /// program cannot see it.
    pub(super) fn notes(&self) -> PathBuf {
        notes_of(&self.path)
    }
}

impl ScratchFolder {
    /// Removes the folder. A removal that takes too long continues in the background, and ends with this process:
    /// then the next run removes the rest.
    pub(super) async fn remove(&mut self) -> io::Result<()> {
        let removal = self.start_removal();
        let waited = tokio::task::spawn_blocking(move || wait_for(&removal, REMOVAL_LIMIT)).await;
        waited.unwrap_or_else(|lost| Err(io::Error::other(lost)))
    }

    fn start_removal(&mut self) -> mpsc::Receiver<io::Result<()>> {
        let (path, lock) = (self.path.clone(), self.lock.take());
        in_background(move || {
            // Until the end, so that no other process takes it for a leftover and works on it too.
            lock.map_or(Ok(()), |_lock| remove_tree(&path))
        })
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // Usually it is gone already: this handles sessions that are dropped instead of closed.
        if self.lock.is_some() {
            let _ = wait_for(&self.start_removal(), REMOVAL_LIMIT);
        }
        let _ = fs::remove_file(self.notes());
    }
}

/// Runs this on a thread that nothing waits for at the end of the process.
fn in_background(
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> mpsc::Receiver<io::Result<()>> {
    let (sender, done) = mpsc::channel();
    let name = "removal".to_owned();
    // Without a thread the receiver's wait ends at once, with an error.
    let _ = std::thread::Builder::new().name(name).spawn(move || {
        // Without a receiver nothing waits any more.
        let _ = sender.send(work());
    });
    done
}

fn wait_for(removal: &mpsc::Receiver<io::Result<()>>, limit: Duration) -> io::Result<()> {
    removal.recv_timeout(limit).unwrap_or_else(|why| match why {
        mpsc::RecvTimeoutError::Timeout => {
            let what = format!(
                "it takes more than {} s; it continues in the background, and the next run removes \
                 what is left",
                limit.as_secs()
            );
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        }
        mpsc::RecvTimeoutError::Disconnected => Err(io::Error::other("its thread ended")),
    })
}

/// Creates a folder that only this user can enter.
#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    std::os::unix::fs::DirBuilderExt::mode(&mut DirBuilder::new(), 0o700).create(path)
}

/// On Windows it inherits its permissions from the parent, which belongs to the user.
#[cfg(windows)]
fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().create(path)
}

fn notes_of(path: &Path) -> PathBuf {
    path.with_extension("attempts")
}

/// Removes the folders of dead processes. Folders that cannot be removed stay; what takes too long
/// continues in the background.
pub(super) fn sweep(root: &Path) {
    let root = root.to_owned();
    let removal = in_background(move || {
        stale_folder::remove_stale(&root, is_name, |path| {
            let _ = fs::remove_file(notes_of(path));
            let _ = remove_tree(path);
        });
        Ok(())
    });
    let _ = wait_for(&removal, REMOVAL_LIMIT);
}

/// Returns true if a folder of this name belongs to this program.
fn is_name(name: &str) -> bool {
    let session = name.split_once(CHECK).map_or(name, |(session, _)| session);
    name.starts_with(PROBE) || SessionId::try_from(session.to_owned()).is_ok()
}

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
    // Unix asks for the ownership of the file here, not for a handle that can write.
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
    // Opening a file does not change its access time, only reading does.
    File::open(probe)?.read_to_end(&mut Vec::new())?;
    let found = was_marked && is_marked(probe) == Some(false);
    std::fs::remove_file(probe)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAD: &str = "selftest-20260206-1234-dddddd";

    #[test]
    fn folders_of_the_dead_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let names = [DEAD, &format!("{DEAD}-check-3"), "selftest-probe-77", "mine", "selftest-x"];
        for name in names {
            fs::create_dir_all(path(name).join("inner")).unwrap();
        }
        std::os::unix::fs::symlink(path("mine"), path("selftest-20260206-1234-llllll")).unwrap();
        fs::write(path("selftest-20260206-1234-ffffff"), "a file").unwrap();
        let closed = path("selftest-20260206-1234-cccccc");
        fs::create_dir_all(closed.join("inner")).unwrap();
        for folder in [closed.join("inner"), closed] {
            let none = std::os::unix::fs::PermissionsExt::from_mode(0o000);
            fs::set_permissions(folder, none).unwrap();
        }
        let alive = ScratchFolder::make(root.path(), "selftest-20260206-1234-bbbbbb").unwrap();
        sweep(root.path());
        let mut left: Vec<String> = fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let expected = [
            "mine",
            "selftest-20260206-1234-bbbbbb",
            "selftest-20260206-1234-ffffff",
            "selftest-20260206-1234-llllll",
            "selftest-x",
        ];
        assert_eq!(left, expected);
        assert!(path("mine").join("inner").exists());
        let folder = alive.path.clone();
        drop(alive);
        assert!(!folder.exists());
    }

    #[test]
    fn makers_and_sweepers_do_not_disturb_each_other() {
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let root = root.path();
                scope.spawn(move || {
                    for number in 0..100 {
                        let name = format!("selftest-20260206-1234-t{thread}n{number}");
                        let scratch = ScratchFolder::make(root, &name).unwrap();
                        sweep(root);
                        fs::write(scratch.path.join("file"), "kept").unwrap();
                        assert!(scratch.path.join("file").exists());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_removal_that_takes_too_long_is_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let mut scratch =
            ScratchFolder::make(root.path(), "selftest-20260206-1234-bbbbbb").unwrap();
        let path = scratch.path.clone();
        fs::write(path.join("file"), "x").unwrap();
        let (go, wait) = mpsc::channel();
        let lock = scratch.lock.take();
        let tree = path.clone();
        let removal = in_background(move || {
            let _ = wait.recv();
            lock.map_or(Ok(()), |_lock| remove_tree(&tree))
        });
        let late = wait_for(&removal, Duration::ZERO).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        // Neither its owner nor another run works on it meanwhile.
        drop(scratch);
        sweep(root.path());
        assert!(path.join("file").exists());
        go.send(()).unwrap();
        wait_for(&removal, Duration::from_mins(1)).unwrap();
        assert!(!path.exists());
    }

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
