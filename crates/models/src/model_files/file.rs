//! Names and digests of weight files, and the staging folder of downloads.
//!
//! Digests are cached in the cache folder so that gigabytes are not read at every start. A record is
//! valid while size and modification time are unchanged. On Unix, device, inode and change time,
//! which programs cannot set, must match as well. An invalid or missing record only costs time.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
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

/// Name of the folder in the cache folder.
const DIGESTS_FOLDER: &str = "digests";

/// Metadata that must be unchanged since the file was digested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    bytes: u64,
    changed_nanoseconds: u128,
    inode: Option<(u64, u64)>,
    /// Change time (ctime) of the file. Unlike the modification time, programs cannot set it.
    #[serde(default)]
    status_changed: Option<(i64, i64)>,
}

#[derive(Serialize, Deserialize)]
struct DigestRecord {
    stamp: FileStamp,
    sha256: String,
}

impl FileStamp {
    fn from_metadata(metadata: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        let (inode, status_changed) = {
            use std::os::unix::fs::MetadataExt as _;
            let inode = (metadata.dev(), metadata.ino());
            (Some(inode), Some((metadata.ctime(), metadata.ctime_nsec())))
        };
        #[cfg(not(unix))]
        let (inode, status_changed) = (None, None);
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let changed_nanoseconds = changed.as_nanos();
        Some(Self { bytes: metadata.len(), changed_nanoseconds, inode, status_changed })
    }
}

/// Returns a line that changes whenever the file does, or `None` if the file is missing.
#[cfg(feature = "embedded")]
pub(crate) fn file_stamp(file: &Path) -> Option<String> {
    let stamp = fs::metadata(file).ok().as_ref().and_then(FileStamp::from_metadata)?;
    Some(format!("{stamp:?}"))
}

/// Returns the SHA-256 of a file in lower-case hexadecimal. Reads the file only if it has changed
/// since the last call.
pub(crate) async fn cached_sha256(file: &Path, cache: &Path) -> Result<String, ModelError> {
    // Taken before the file is read: if it changes meanwhile, the record is invalid.
    let stamp = fs::metadata(file).ok().as_ref().and_then(FileStamp::from_metadata);
    let record = record_path(file, cache);
    let known = fs::read(&record).ok();
    let known = known.and_then(|bytes| serde_json::from_slice::<DigestRecord>(&bytes).ok());
    if let Some(known) = known.filter(|known| Some(&known.stamp) == stamp.as_ref()) {
        return Ok(known.sha256);
    }
    let sha256 = sha256(file.to_owned()).await?;
    if let Some(stamp) = stamp {
        let digested = DigestRecord { stamp, sha256: sha256.clone() };
        if let (Some(folder), Ok(bytes)) = (record.parent(), serde_json::to_vec(&digested)) {
            let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&record, bytes));
        }
    }
    Ok(sha256)
}

fn record_path(file: &Path, cache: &Path) -> PathBuf {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let name = digest::sha256_hex(path.as_os_str().as_encoded_bytes());
    cache.join(DIGESTS_FOLDER).join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_changed_file_is_read_again_and_a_broken_record_costs_time_only() {
        let folder = tempfile::tempdir().unwrap();
        let (file, cache) = (folder.path().join("x.gguf"), folder.path().join("cache"));
        fs::write(&file, "one").unwrap();
        let first = cached_sha256(&file, &cache).await.unwrap();
        assert_eq!(first, digest::sha256_hex(b"one"));

        // The record is trusted while the file is unchanged.
        let record = record_path(&file, &cache);
        let forged = fs::read_to_string(&record).unwrap().replace(&first, "kept");
        fs::write(&record, forged).unwrap();
        assert_eq!(cached_sha256(&file, &cache).await.unwrap(), "kept");

        // Same length and old modification time.
        let changed = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "two").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(changed).unwrap();
        #[cfg(unix)]
        assert_eq!(cached_sha256(&file, &cache).await.unwrap(), digest::sha256_hex(b"two"));

        fs::write(&file, "other").unwrap();
        let other = digest::sha256_hex(b"other");
        assert_eq!(cached_sha256(&file, &cache).await.unwrap(), other);
        fs::write(&record, "{").unwrap();
        assert_eq!(cached_sha256(&file, &cache).await.unwrap(), other);
        fs::remove_file(&file).unwrap();
        assert!(cached_sha256(&file, &cache).await.is_err());
    }
}
