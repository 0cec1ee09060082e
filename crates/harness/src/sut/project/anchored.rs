//! A folder that a program under test can write to, opened once before the program starts.
//!
//! Afterwards the program may rename the folder and put a link in its place, or race us with links
//! and pipes inside. So files are opened below the descriptor, without following any link, and are
//! checked only once they are open. A path to the folder is for walks alone, and leads through the
//! descriptor as well.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::{os::fd::OwnedFd, sync::Arc};

/// The folder. Clones share one descriptor.
#[derive(Debug, Clone)]
pub struct AnchoredFolder {
    #[cfg(unix)]
    folder: Arc<OwnedFd>,
    #[cfg(not(target_os = "linux"))]
    path: PathBuf,
}

impl AnchoredFolder {
    /// Opens a folder that nothing else can write to yet.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        Ok(Self {
            #[cfg(unix)]
            folder: Arc::new(unix::open_folder(&path)?),
            #[cfg(not(target_os = "linux"))]
            path,
        })
    }

    /// Returns a path for walks. On Linux it leads to the opened folder, wherever that is now.
    pub fn walk_path(&self) -> PathBuf {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd as _;
            // The dot makes it the folder and not a link to it.
            PathBuf::from(format!("/proc/self/fd/{}/.", self.folder.as_raw_fd()))
        }
        #[cfg(not(target_os = "linux"))]
        self.path.clone()
    }

    /// Opens a regular file by a relative path, for reading. A link on the way, a device and a pipe
    /// are errors; nothing blocks.
    pub fn open_file(&self, path: &Path) -> io::Result<File> {
        #[cfg(unix)]
        let file = unix::open_below(&self.folder, path)?;
        #[cfg(not(unix))]
        let file = {
            let named = self.path.join(path);
            if !named.canonicalize()?.starts_with(&self.path) {
                return Err(io::Error::other("it leads out of the folder"));
            }
            File::open(named)?
        };
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
    }
}

/// Removes a folder with all that a program left in it, however deep and with whatever
/// permissions. Nothing outside is followed or touched.
///
/// The standard library descends by recursion, which overflows the stack at some ten thousand
/// levels. Here a nested folder moves up to the top before its own content is looked at.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        unix::empty_folder(path)?;
        fs::remove_dir(path)
    }
    #[cfg(not(unix))]
    fs::remove_dir_all(path)
}

#[cfg(unix)]
mod unix {
    use std::ffi::CString;
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::{Component, Path};

    use rustix::fs::{self, AtFlags, CWD, Dir, Mode, OFlags};
    use rustix::io::Errno;

    const FOLDER: OFlags =
        OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);
    const FILE: OFlags = OFlags::RDONLY
        .union(OFlags::NOFOLLOW)
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOCTTY)
        .union(OFlags::CLOEXEC);

    pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
        Ok(fs::openat(CWD, path, FOLDER, Mode::empty())?)
    }

    /// Opens each part of the path below the one before, so that no link is followed anywhere. That
    /// needs no `openat2`, which some kernels and containers lack.
    pub(super) fn open_below(folder: &OwnedFd, path: &Path) -> io::Result<File> {
        let mut names = Vec::new();
        // The system would follow `..` and an absolute path out of the folder.
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                _ => return Err(io::Error::other("it leads out of the folder")),
            }
        }
        let Some((last, parents)) = names.split_last() else {
            return Err(io::Error::other("it is no file"));
        };
        let mut below: Option<OwnedFd> = None;
        for name in parents {
            let from = below.as_ref().unwrap_or(folder);
            below = Some(fs::openat(from, *name, FOLDER, Mode::empty())?);
        }
        let from = below.as_ref().unwrap_or(folder);
        match fs::openat(from, *last, FILE, Mode::empty()) {
            Err(Errno::LOOP) => Err(io::Error::other("it is a link")),
            opened => Ok(File::from(opened?)),
        }
    }

    /// Removes everything in a folder.
    pub(super) fn empty_folder(path: &Path) -> io::Result<()> {
        let top = match fs::openat(CWD, path, FOLDER, Mode::empty()) {
            Err(Errno::ACCESS) => {
                fs::chmod(path, Mode::RWXU)?;
                fs::openat(CWD, path, FOLDER, Mode::empty())?
            }
            opened => opened?,
        };
        // A program without write permission on its folder is one that took it away.
        let _ = fs::fchmod(&top, Mode::RWXU);
        let mut moved = 0_u64;
        // Removing a folder moves its folders up here, so that one pass is not enough.
        loop {
            let names = names_in(&top)?;
            if names.is_empty() {
                return Ok(());
            }
            for name in &names {
                remove_entry(&top, name, &mut moved)?;
            }
        }
    }

    /// Removes an entry of the top folder. If it is a folder, its folders move up to the top first.
    fn remove_entry(top: &OwnedFd, name: &CString, moved: &mut u64) -> io::Result<()> {
        match fs::unlinkat(top, name, AtFlags::empty()) {
            // Linux says that it is a folder by EISDIR, POSIX by EPERM.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(Errno::NOENT) => return Ok(()),
            done => return Ok(done?),
        }
        if fs::unlinkat(top, name, AtFlags::REMOVEDIR).is_ok() {
            return Ok(());
        }
        // To read it and to move its folders takes permissions that the program may have removed.
        // It is a folder of ours, so the name leads to no link.
        let _ = fs::chmodat(top, name, Mode::RWXU, AtFlags::empty());
        let folder = fs::openat(top, name, FOLDER, Mode::empty())?;
        for inner in names_in(&folder)? {
            match fs::unlinkat(&folder, &inner, AtFlags::empty()) {
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(Errno::NOENT) => continue,
                done => {
                    done?;
                    continue;
                }
            }
            if fs::unlinkat(&folder, &inner, AtFlags::REMOVEDIR).is_ok() {
                continue;
            }
            // Moving a folder changes its `..`, which takes permission to write to it.
            let _ = fs::chmodat(&folder, &inner, Mode::RWXU, AtFlags::empty());
            *moved += 1;
            fs::renameat(&folder, &inner, top, format!(".removing-{moved}"))?;
        }
        Ok(fs::unlinkat(top, name, AtFlags::REMOVEDIR)?)
    }

    fn names_in(folder: &OwnedFd) -> io::Result<Vec<CString>> {
        // All names first: on some systems a folder skips entries if others are removed meanwhile.
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn read(folder: &AnchoredFolder, path: &str) -> io::Result<String> {
        let mut text = String::new();
        folder.open_file(Path::new(path))?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_leads_nowhere() {
        let around = tempfile::tempdir().unwrap();
        let work = around.path().join("work");
        fs::create_dir_all(work.join("src")).unwrap();
        fs::write(work.join("src/a.rs"), "mine").unwrap();
        fs::write(around.path().join("secret"), "theirs").unwrap();
        let folder = AnchoredFolder::open(&work).unwrap();
        fs::rename(&work, around.path().join("elsewhere")).unwrap();
        symlink("/", &work).unwrap();
        assert_eq!(read(&folder, "src/a.rs").unwrap(), "mine");
        assert!(read(&folder, "etc/hostname").is_err());
        if cfg!(target_os = "linux") {
            assert_eq!(fs::read_to_string(folder.walk_path().join("src/a.rs")).unwrap(), "mine");
        }
        let inside = around.path().join("elsewhere");
        symlink("../secret", inside.join("link")).unwrap();
        symlink("/etc", inside.join("etc")).unwrap();
        for path in ["link", "etc/hostname", "../secret", "/etc/hostname", "src", "."] {
            assert!(read(&folder, path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_pipe_does_not_block() {
        let around = tempfile::tempdir().unwrap();
        let pipe = around.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if !made.is_ok_and(|status| status.success()) {
            return;
        }
        let folder = AnchoredFolder::open(around.path()).unwrap();
        assert!(read(&folder, "pipe").is_err());
    }

    #[test]
    fn what_a_program_leaves_is_removed() {
        let around = tempfile::tempdir().unwrap();
        let top = around.path().join("top");
        let outside = around.path().join("outside");
        fs::create_dir_all(top.join("closed/inner")).unwrap();
        fs::write(top.join("closed/inner/file"), "x").unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        symlink(&outside, top.join("link")).unwrap();
        fs::set_permissions(top.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        assert!(outside.join("kept").exists(), "links are not followed");
    }

    /// Each level costs the same however deep it is: a file system in memory takes a second or two.
    /// Elsewhere the disk may take milliseconds for each folder, nested or not.
    #[test]
    fn depth_neither_overflows_the_stack_nor_costs_more_per_level() {
        let memory = Path::new("/dev/shm");
        let is_in_memory = tempfile::tempdir_in(memory).is_ok();
        // Deeper than a stack of the standard library's recursion, and than a path may be long.
        let (root, depth) =
            if is_in_memory { (memory.to_owned(), 60_000) } else { (std::env::temp_dir(), 20_000) };
        let around = tempfile::tempdir_in(root).unwrap();
        let top = around.path().join("top");
        fs::create_dir(&top).unwrap();
        let script = format!(
            "import os\nfor _ in range({depth}): os.mkdir('d'); open('f', 'w').close(); os.chdir('d')"
        );
        let made =
            std::process::Command::new("python3").args(["-c", &script]).current_dir(&top).status();
        assert!(made.is_ok_and(|status| status.success()));
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }
}
