//! Text files replaced as a whole: a reader sees the old text or the new one, never a part. Knows
//! nothing of what the files are for.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a temporary file beside the target and renames it over the target. `writer` is part of
/// its name: no two writers at a time may share one.
pub fn replace(target: &Path, writer: &str, text: &str) -> io::Result<()> {
    replace_by(target, writer, |file| file.write_all(text.as_bytes()))
}

/// The same for a text that is written piece by piece.
pub fn replace_by(
    target: &Path,
    writer: &str,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let temporary = target.with_file_name(format!(".{name}.{writer}.tmp"));
    create_new(&temporary)
        .and_then(|mut file| write(&mut file))
        .and_then(|()| fs::rename(&temporary, target))
        .inspect_err(|_| {
            // The write has failed already; a leftover does no harm.
            let _ = fs::remove_file(&temporary);
        })
}

/// Opens a file that is not there yet, so that a link in its place is never followed. A leftover
/// of a broken write is removed.
pub fn create_new(path: &Path) -> io::Result<File> {
    let open = || OpenOptions::new().write(true).create_new(true).open(path);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            open()
        }
        result => result,
    }
}
