//! Names and digests of weight files, and the staging folder of downloads.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{engine_error, write_error};
use crate::ModelError;
use selftest_text::digest;

/// Accepts a file name that cannot leave its folder: letters, digits, `.`, `_` and `-`, without a
/// leading dot or `..`.
pub(super) fn check_name(name: &str) -> Result<(), ModelError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=200).contains(&name.len())
        && name.chars().all(plain)
        && !name.starts_with('.')
        && !name.contains("..")
    {
        return Ok(());
    }
    Err(ModelError::InvalidName {
        name: selftest_text::one_line(name, 80),
        why: "letters, digits, `.`, `_` and `-` only, or a path".to_owned(),
    })
}

/// Returns the SHA-256 of a file in lower-case hexadecimal.
pub(crate) async fn sha256(file: PathBuf) -> Result<String, ModelError> {
    let shown = file.display().to_string();
    let work = tokio::task::spawn_blocking(move || -> io::Result<String> {
        let mut input = File::open(file)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            match input.read(&mut buffer)? {
                0 => return Ok(digest::hex(&hasher.finalize())),
                count => hasher.update(&buffer[..count]),
            }
        }
    });
    work.await.map_err(io::Error::other).and_then(|result| result).map_err(|error| {
        engine_error(format!("cannot read {shown}: {error}"), "is the disk sound?")
    })
}

/// A private folder beside the weights, so that files can be moved into place by renaming. Removed
/// when dropped.
pub(super) struct StagingFolder(PathBuf);

const STAGING_PREFIX: &str = ".staging-";

impl StagingFolder {
    pub(super) fn in_folder(folder: &Path) -> Result<Self, ModelError> {
        // Absolute, because the programs that write to it run inside it.
        let folder = std::path::absolute(folder).map_err(|error| write_error(folder, &error))?;
        fs::create_dir_all(&folder).map_err(|error| write_error(&folder, &error))?;
        remove_abandoned(&folder);
        let path = folder.join(format!("{STAGING_PREFIX}{:032x}", rand::random::<u128>()));
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|error| write_error(&path, &error))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the total size of all files in it.
    pub(super) fn bytes(&self) -> u64 {
        fn sum(folder: &Path) -> u64 {
            let items = fs::read_dir(folder).into_iter().flatten().flatten();
            items
                .map(|item| match item.metadata() {
                    Ok(metadata) if metadata.is_dir() => sum(&item.path()),
                    Ok(metadata) => metadata.len(),
                    Err(_) => 0,
                })
                .sum()
        }
        sum(&self.0)
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        // A process that was just killed may still be inside a system call.
        for _ in 0..5 {
            match fs::remove_dir_all(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => return,
            }
        }
    }
}

/// Removes staging folders of downloads that were killed more than a day ago.
fn remove_abandoned(folder: &Path) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let old = item
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > Duration::from_hours(24)));
        if old && item.file_name().to_string_lossy().starts_with(STAGING_PREFIX) {
            // A process that still uses the folder will report an error.
            let _ = fs::remove_dir_all(item.path());
        }
    }
}
