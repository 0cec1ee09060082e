//! Digests of weight files, cached in the cache folder so that gigabytes are not read at every
//! start.
//!
//! A record is valid while size and modification time are unchanged. On Unix, device, inode and
//! change time, which programs cannot set, must match as well. An invalid or missing record only
//! costs time.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::file::sha256;
use crate::ModelError;
use selftest_text::digest;

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
