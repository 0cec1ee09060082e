//! Atomic replacement of text files: a reader sees either the old text or the new one, never a
//! part, even after a loss of power. And bounded reads.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, FileWriter, OpenFile, OpenMode, SystemDisk};

/// Size of a write, in bytes.
const BUFFER: usize = 64 * 1024;

/// Writes a temporary file beside the target and renames it over the target. `writer` is part of
/// the temporary name, so concurrent writers need different values.
pub fn replace(target: &Path, writer: &str, text: &str) -> io::Result<()> {
    replace_with(target, writer, |file| file.write_all(text.as_bytes()))
}

/// Like [`replace`], for a text that is written incrementally.
pub fn replace_with(
    target: &Path,
    writer: &str,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    replace_on(&SystemDisk, target, writer, write)
}

/// Like [`replace_with`], on this disk.
pub fn replace_on(
    disk: &dyn Disk,
    target: &Path,
    writer: &str,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    // In the same folder, because a rename is atomic only within a file system.
    let temporary = target.with_file_name(format!(".{name}.{writer}.tmp"));
    create_new(disk, &temporary)
        .and_then(|file| {
            let mut buffer = BufWriter::with_capacity(BUFFER, FileWriter(&*file));
            write(&mut buffer)?;
            buffer.flush()?;
            drop(buffer);
            // The name may reach the disk before the content.
            file.sync()
        })
        .and_then(|()| disk.rename(&temporary, target))
        .inspect_err(|_| {
            // The write has already failed, and a leftover file is harmless.
            let _ = disk.remove(&temporary);
        })
}

/// Removes a file. A file that is not there counts as removed.
pub fn remove_if_present(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Opens a file that someone else names or may have replaced: a project, a suite, a store. Returns
/// at once also for a pipe whose other end is missing; that, a device and a folder are errors, and
/// their message completes `PATH: `.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    without_waiting(&mut options, true);
    checked(options.open(path)?)
}

/// Like [`open_regular`], for a file that is no link. The folders on the way may be links.
pub fn open_unlinked(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    without_waiting(&mut options, false);
    checked(options.open(path)?)
}

/// Makes opening a pipe, and reading from it, return at once. Unless it follows links, opening one is
/// an error, on Unix.
pub(crate) fn without_waiting(options: &mut fs::OpenOptions, follows_links: bool) {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        // A terminal must not become the one that controls this process either.
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, !follows_links);
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    #[cfg(not(unix))]
    let _ = (options, follows_links);
}

/// Returns a file if it is a regular one. Checked after opening: before it, another could take its
/// place.
pub(crate) fn checked(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    Err(if kind.is_dir() {
        io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, expected a file")
    } else {
        io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe or a device, expected a file")
    })
}

/// Reads a file that is regular ([`open_regular`]) and has at most `most` bytes. A larger one is
/// [`io::ErrorKind::FileTooLarge`].
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    open_regular(path).and_then(|file| bounded(file, most))
}

/// Reads a file that is regular ([`open_regular`]) and has at most `most` bytes of UTF-8. A larger
/// one is [`io::ErrorKind::FileTooLarge`].
pub fn read_bounded_text(path: &Path, most: u64) -> io::Result<String> {
    read_bounded(path, most).and_then(decoded)
}

/// Like [`read_bounded_text`], for a file that the user names on the command line. It may be a pipe,
/// as in `--from <(command)`, and is waited for.
pub fn read_named_text(path: &Path, most: u64) -> io::Result<String> {
    File::open(path).and_then(|file| bounded_text(file, most))
}

/// Reads at most `most` bytes of UTF-8. A longer text is [`io::ErrorKind::FileTooLarge`].
pub fn bounded_text(source: impl io::Read, most: u64) -> io::Result<String> {
    bounded(source, most).and_then(decoded)
}

fn bounded(source: impl io::Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    // Before characters are decoded, since the bound may cut one.
    if bytes.len() as u64 > most {
        let why = format!("it has more than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

fn decoded(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let why = format!("it is not UTF-8 (byte {at}), expected a text");
        io::Error::new(io::ErrorKind::InvalidData, why)
    })
}

/// Opens a file that must not exist yet, so a symlink in its place is never followed. Removes a
/// leftover of an interrupted write first.
pub fn create_new(disk: &dyn Disk, path: &Path) -> io::Result<Arc<dyn OpenFile>> {
    match disk.open(path, OpenMode::CreateNew) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove(path)?;
            disk.open(path, OpenMode::CreateNew)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_within_a_character_is_a_bound() {
        let text = "aé€😀";
        for most in 0..text.len() as u64 {
            let refused = bounded_text(text.as_bytes(), most).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge, "{most}: {refused}");
        }
        for most in [text.len() as u64, u64::MAX] {
            assert_eq!(bounded_text(text.as_bytes(), most).unwrap(), text);
        }
        let refused = bounded_text(&b"ab\xff"[..], 3).unwrap_err();
        assert_eq!(refused.to_string(), "it is not UTF-8 (byte 2), expected a text");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        if rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), kind, mode, 0).is_ok() {
            let refused = read_bounded(&at("pipe"), 9).unwrap_err();
            assert_eq!(refused.to_string(), "it is a pipe or a device, expected a file");
        }
        symlink("/dev/zero", at("device")).unwrap();
        let refused = read_bounded_text(&at("device"), 9).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        assert!(open_regular(&at("link")).is_ok() && open_unlinked(&at("file")).is_ok());
        assert!(open_unlinked(&at("link")).is_err() && open_unlinked(&at("pipe")).is_err());
        let refused = open_regular(folder.path()).unwrap_err();
        assert_eq!(refused.to_string(), "it is a folder, expected a file");
        File::create(at("large")).unwrap().set_len(3 << 30).unwrap();
        let refused = read_bounded(&at("large"), 9).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        // A file that the user names may be a device.
        assert_eq!(read_named_text(Path::new("/dev/null"), 9).unwrap(), "");
    }
}
