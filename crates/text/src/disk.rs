//! The operations on files that the results of a run depend on, as a trait: simulations make each of
//! them fail.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

#[cfg(any(test, feature = "simulation"))]
#[path = "simulated_disk.rs"]
pub mod simulated_disk;

/// Operations that change files. Reading is not among them.
pub trait Disk: Debug + Send + Sync {
    /// Writes all bytes at the position of the file. After an error, some of them may be written.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file to this length.
    fn set_len(&self, file: &File, length: u64) -> io::Result<()>;

    /// Renames a file over another one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn set_len(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// A file that is written through a [`Disk`].
#[derive(Debug)]
pub struct DiskFile<'a> {
    disk: &'a dyn Disk,
    file: File,
}

impl<'a> DiskFile<'a> {
    /// Wraps an open file.
    pub fn new(disk: &'a dyn Disk, file: File) -> Self {
        Self { disk, file }
    }
}

impl io::Write for DiskFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.write(&self.file, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
