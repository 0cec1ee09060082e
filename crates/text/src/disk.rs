//! The disk as journals, reports and records use it, as a trait: simulations put a disk in memory in
//! its place, which fails by a seed.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::file::{checked, without_waiting};

#[cfg(any(test, feature = "simulation"))]
#[path = "simulated_disk.rs"]
pub mod simulated_disk;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// To read an existing file.
    Read,
    /// To read and write an existing file.
    ReadWrite,
    /// To read and write a file, which is created if it is not there.
    Create,
    /// To read and write a file that must not be there. A link in its place is not followed.
    CreateNew,
    /// Like [`OpenMode::CreateNew`]; other users cannot read it.
    CreatePrivate,
}

/// A file system.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn OpenFile>>;

    /// Returns true for a regular file, without opening it: a named pipe would block.
    fn is_file(&self, path: &Path) -> io::Result<bool>;

    /// Returns the paths in a folder; entries that cannot be read are left out.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Returns the absolute path without links.
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf>;

    /// Creates a folder with those above it.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Renames a file over another one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder survive a loss of power.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// An open file. It is closed, and its lock released, when the last reference goes.
pub trait OpenFile: Debug + Send + Sync {
    /// Writes all bytes at the end. After an error, some of them may be written. Two processes that
    /// append to one file write over each other: the file has to be locked.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Returns a reader from the start of the file. Readers of one open file share their position.
    fn reader(&self) -> io::Result<Box<dyn Read + '_>>;

    /// Cuts the file to this length.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes what was written survive a loss of power.
    fn sync(&self) -> io::Result<()>;

    /// Locks the file for this process alone.
    fn try_lock(&self) -> Result<(), TryLockError>;

    /// Locks the file together with others that share it.
    fn try_lock_shared(&self) -> Result<(), TryLockError>;

    /// Returns true if this file has that path.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// The disk of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn OpenFile>> {
        let mut options = OpenOptions::new();
        // Also to write: journals are read again by the process that appends to them.
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => drop(options.write(true)),
            OpenMode::Create => drop(options.write(true).create(true).truncate(false)),
            OpenMode::CreateNew | OpenMode::CreatePrivate => {
                options.write(true).create_new(true);
            }
        }
        #[cfg(unix)]
        if mode == OpenMode::CreatePrivate {
            use std::os::unix::fs::OpenOptionsExt as _;
            // At creation: a `chmod` after it would leave a moment in which others can open the
            // file.
            options.mode(0o600);
        }
        without_waiting(&mut options, true);
        Ok(Arc::new(checked(options.open(path)?)?))
    }

    fn is_file(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::metadata(path)?.is_file())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        // One entry that cannot be read hides no other.
        Ok(fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect())
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

impl OpenFile for File {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        // A file that is opened for appending cannot be cut on Windows.
        let mut file = self;
        file.seek(SeekFrom::End(0))?;
        file.write_all(bytes)
    }

    fn reader(&self) -> io::Result<Box<dyn Read + '_>> {
        let mut file = self;
        file.seek(SeekFrom::Start(0))?;
        Ok(Box::new(file))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        File::set_len(self, length)
    }

    fn sync(&self) -> io::Result<()> {
        // Includes the length, without which the data could not be read; times do not matter.
        self.sync_data()
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        File::try_lock(self)
    }

    fn try_lock_shared(&self) -> Result<(), TryLockError> {
        File::try_lock_shared(self)
    }

    #[cfg(unix)]
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt as _;
        let own = self.metadata()?;
        match fs::metadata(path) {
            // The path may name another file by now, if someone renamed or replaced it after the
            // file was opened.
            Ok(found) => Ok((own.dev(), own.ino()) == (found.dev(), found.ino())),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    #[cfg(not(unix))]
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }
}

/// Writes to the end of an open file.
#[derive(Debug)]
pub struct FileWriter<'a>(pub &'a dyn OpenFile);

impl io::Write for FileWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
