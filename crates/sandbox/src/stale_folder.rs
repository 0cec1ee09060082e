//! Folders that should disappear with the process that created them. Each is locked while its
//! process lives, so leftovers of dead runs are recognised by name, owner and an unheld lock. Their
//! content, and how to remove it, is up to the caller.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// Locks a folder that was just created, until the returned file is closed. Returns `None` if
/// another process mistook it for a leftover between creation and locking.
pub fn lock_new(folder: &Path) -> io::Result<Option<File>> {
    let opened = match open(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    // Windows cannot lock folders. Nothing is swept there either, see `is_owned_by_user` below.
    if cfg!(windows) {
        return Ok(Some(opened));
    }
    match opened.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
        // The sweep of another process may have removed the folder before the lock was taken, and
        // the lock would then be on a deleted inode.
        Ok(()) => Ok(is_same_folder(folder, &opened).then_some(opened)),
    }
}

/// Removes the leftovers of dead runs among the subfolders of `root` with matching names. What
/// cannot be removed stays.
pub fn remove_stale(root: &Path, is_ours: impl Fn(&str) -> bool, remove: impl Fn(&Path)) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(&is_ours);
        // A symlink in place of a folder could lead anywhere.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours && is_folder && is_owned_by_user(&entry.path()) {
            make_accessible(&entry.path());
            // A live folder is locked, and one that was just removed cannot be opened.
            if let Ok(Some(_lock)) = lock_new(&entry.path()) {
                remove(&entry.path());
            }
        }
    }
}

/// Gives this user back the permissions on a folder of its own that a program took away.
#[cfg(unix)]
fn make_accessible(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    if open(folder).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        // If that fails, the folder cannot be locked and stays.
        let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    }
}

#[cfg(windows)]
fn make_accessible(_folder: &Path) {}

#[cfg(unix)]
fn open(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

/// Windows opens folders only with this flag.
#[cfg(windows)]
fn open(folder: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const BACKUP_SEMANTICS: u32 = 0x0200_0000;
    fs::OpenOptions::new().read(true).custom_flags(BACKUP_SEMANTICS).open(folder)
}

/// Returns true if the folder belongs to this user.
#[cfg(unix)]
fn is_owned_by_user(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

/// Returns true if the folder at this path is the opened one.
#[cfg(unix)]
fn is_same_folder(path: &Path, folder: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(path).and_then(|found| Ok((found, folder.metadata()?)));
    found.is_ok_and(|(found, own)| (found.dev(), found.ino()) == (own.dev(), own.ino()))
}

/// Always false: ownership is not checked on Windows, so folders of killed runs stay.
#[cfg(windows)]
fn is_owned_by_user(_folder: &Path) -> bool {
    false
}

#[cfg(windows)]
fn is_same_folder(path: &Path, _folder: &File) -> bool {
    path.is_dir()
}
