//! Folders that end with who made them: locked while that one lives, so that those of dead runs can be
//! told by name, owner and a lock that nobody holds. Does not know what is in them, nor how to remove it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// Locks a folder that was just made, for as long as what is returned is open. `None` where another
/// process took it for one of the dead in the very moment between making and locking it.
pub fn hold(folder: &Path) -> io::Result<Option<File>> {
    let opened = match open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    // Folders cannot be locked there: nobody takes one for that of a dead run either, see below.
    if cfg!(windows) {
        return Ok(Some(opened));
    }
    match opened.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(is_there(folder, &opened).then_some(opened)),
    }
}

/// Removes the folders of the dead in a folder: those with names that are ours. What cannot be removed
/// stays.
pub fn sweep(root: &Path, is_ours: impl Fn(&str) -> bool, remove: impl Fn(&Path)) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(&is_ours);
        // A link in the place of a folder leads to anywhere.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours && is_folder && is_own(&entry.path()) {
            // Where somebody lives in it, or has just removed it, nothing is held.
            if let Ok(Some(_lock)) = hold(&entry.path()) {
                remove(&entry.path());
            }
        }
    }
}

#[cfg(unix)]
fn open(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

/// Windows opens folders only for who says that it means them.
#[cfg(windows)]
fn open(folder: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const BACKUP_SEMANTICS: u32 = 0x0200_0000;
    fs::OpenOptions::new().read(true).custom_flags(BACKUP_SEMANTICS).open(folder)
}

/// Whether a folder is of this user.
#[cfg(unix)]
fn is_own(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

/// Whether the folder at this path is the opened one.
#[cfg(unix)]
fn is_there(path: &Path, folder: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(path).and_then(|found| Ok((found, folder.metadata()?)));
    found.is_ok_and(|(found, own)| (found.dev(), found.ino()) == (own.dev(), own.ino()))
}

/// Not known on Windows, where the folders of runs that were killed stay.
#[cfg(windows)]
fn is_own(_folder: &Path) -> bool {
    false
}

#[cfg(windows)]
fn is_there(path: &Path, _folder: &File) -> bool {
    path.is_dir()
}
